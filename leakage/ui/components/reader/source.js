// Where lessons, pictures and links come from: the routes of the program, or a folder that `make site` wrote and a browser opens without one.
import { element } from '../dom.js';
import { say } from './phrases.js';

/**
 * @typedef {object} About what the page says of itself
 * @property {string} base what stands before every address of the program
 * @property {string} data where the program has the data of the lessons
 * @property {string} own the address of the script that attacks the visitor's own picture
 * @property {boolean} [rooms] a class may follow on its phones
 * @property {boolean} [folder] there is no program: everything lies beside the page
 * @property {import('./shelf.js').Entry[]} lessons
 * @property {import('./door.js').DoorData} [door] stands above the lessons where there is no Lab to have it
 *
 * @typedef {object} Source
 * @property {(id: string) => Promise<import('./lesson.js').LessonData>} lesson
 * @property {(name: string) => Promise<import('./recording.js').Recording>} record a recorded run by itself
 * @property {(kind: 'runs' | 'grids' | 'thumbnails', name: string) => string} picture its address
 * @property {(query: string | null, words: string) => HTMLAnchorElement} lab a link to the Lab with these settings; without
 *   an address where the visitor may not go there
 * @property {string} own see About
 * @property {(name: string) => string} handout the address of a page to print
 * @property {(run: string) => HTMLAnchorElement[]} slides links to a recorded run as pictures for a slide
 */

/** @type {(about: About) => Source} */
export const sourceOf = (about) => (about.folder ? folder(about) : program(about));

/** @type {(about: About) => Source} */
const program = ({ base, data, own }) => ({
  own,
  lesson: (id) => fetchJson(`${data}/lessons/${id}.json`),
  record: (name) => fetchJson(`${data}/records/${name}.json`),
  picture: (kind, name) => `${data}/${kind}/${name}.webp`,
  lab: (query, words) => link(`${base}/${query ? `?${query}` : ''}`, words),
  handout: (name) => `${base}/learn/worksheets/${name}.html`,
  slides: (run) => [link(`${data}/slides/${run}.png`, say('slide')), link(`${data}/slides/${run}.gif`, say('moving'))],
});

/** @param {string} address */
async function fetchJson(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

/**
 * A page from a folder may fetch nothing: its data are scripts, which hand over what they hold by `gle.data`.
 * @param {About} about
 * @returns {Source}
 */
function folder({ own }) {
  /** @type {Map<string, any>} */
  const known = new Map();
  const data = (/** @type {string} */ name, /** @type {any} */ value) => known.set(name, value);
  Object.assign(globalThis, { gle: { data } });
  const bring = async (/** @type {string} */ name, /** @type {string} */ address) => {
    await load(address);
    if (!known.has(name)) throw new Error(`${address} brought nothing.`);
    return known.get(name);
  };
  return {
    own,
    lesson: (id) => bring(`lessons/${id}`, `data/${id}.js`),
    record: (name) => bring(`records/${name}`, `data/${name}.js`),
    picture: (kind, name) => `${kind}/${name}.webp`,
    lab: (query, words) => link(`program.html${query ? `?${query}` : ''}`, `${words} (${say('needsProgram')})`),
    handout: (name) => `worksheets/${name}.html`,
    slides: (run) => [link(`slides/${run}.png`, say('slide'))],
  };
}

/**
 * @param {string} address of a classic script
 * @returns {Promise<void>} when it has run
 */
export function load(address) {
  return new Promise((ready, failed) => {
    const script = element('script', '');
    script.addEventListener('load', () => ready());
    script.addEventListener('error', () => failed(new Error(`There is no ${address}.`)));
    script.src = address;
    document.head.append(script);
  });
}

/**
 * @param {string} address
 * @param {string} words
 */
export function link(address, words) {
  const made = element('a', '', words);
  made.href = address;
  return made;
}
