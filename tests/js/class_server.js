// A server of a room for the tests of a phone: it records requests, refuses what a test tells it to refuse, and sends states.
import { Phone } from '../../leakage/ui/components/room/phone_page.js';
import { openPage, settle } from './page.js';

const WHY = ['Because not.', 'Because.', 'Nor this.'].map((why, place) => ({ right: place === 1, why }));
const OPTIONS = [{ text: 'this' }, { text: 'that' }, { text: 'those' }];
const CELLS = ['none', 'some', 'much'];
const SCORES = { psnr: 40, grey: 11 };
const answer = { private: 0, answer: 1, batch: 1, scores: SCORES, labels: [0], truth: [0], word: 'recognizable', why: '' };
const GRID = {
  ...{ title: 'What if', plot: null, film: null, class_names: ['cat'] },
  knobs: [{ name: 'noise', values: CELLS.map((label, number) => ({ label, number })) }],
  cells: CELLS.map(() => ({ lab: null, answer })),
};
const BEATS = [
  { kind: 'text', text: 'An idea.' },
  { kind: 'guess', text: 'What?', options: OPTIONS },
  { kind: 'reveal', text: 'That.' },
  { kind: 'try', text: 'Turn.', grid: 'g01' },
  { kind: 'takeaway', text: 'Remember.' },
];

/** The state of a room at its first beat. */
export const STATE = {
  ...{ opened: 'o1', lesson: 'v1', id: '01-one', beat: 1, furthest: 1, phones: 31, locked: false, students: false, closed: false },
  ...{ vote: null, dots: null, cleared: 0, runs: {}, computing: false },
};
export const VOTE = { round: 0, second: false, count: 17, revealed: false, bars: null };

/**
 * The lesson as a room serves it.
 * @param {number} furthest
 * @param {boolean} answered whether the question of beat 2 shows its answer
 */
export const lessonOf = (furthest, answered) => ({
  ...{ id: '01-one', title: 'One', minutes: 8, all: BEATS.length, caveat: 'Careful.', source: ['A paper'], notes: '' },
  ...{ runs: {}, grids: { g01: GRID } },
  beats: BEATS.slice(0, furthest).map((beat) =>
    beat.options && answered ? { ...beat, options: beat.options.map((option, place) => ({ ...option, ...WHY[place] })) } : beat,
  ),
});

/**
 * A page with its server. `asked` are the requests as texts; `refuse` maps the beginning of a request to a status and a sentence.
 * @param {import('node:test').TestContext} test
 * @param {{ code?: string, storage?: Record<string, string>, random?: number }} [visit]
 */
export function openPhone(test, { code = 'KRT4P', storage = {}, random = 0 } = {}) {
  /** @type {Phone | undefined} */
  let phone = undefined;
  test.after(() => phone?.close()); // before its page
  const page = openPage(test, { calm: true });
  test.mock.method(Math, 'random', () => random);
  /** @type {string[]} */
  const asked = [];
  /** @type {Record<string, [number, string]>} */
  const refuse = {};
  const server = { lesson: lessonOf(1, false) };
  const fetch = async (/** @type {string} */ address, /** @type {{ method: string, body?: string }} */ { method, body = '' }) => {
    const text = `${method} ${address} ${body}`.replace(/[0-9a-f]{24}/, 'SLOT').trim();
    asked.push(text);
    const refused = Object.entries(refuse).find(([begin]) => text.startsWith(begin));
    if (refused && !refused[1][0]) throw new TypeError('no network');
    if (refused) return new Response(refused[1][1], { status: refused[1][0] });
    if (address.includes('/lesson?')) return new Response(JSON.stringify(server.lesson));
    return address.endsWith('/live') ? new Response('{"run": "r9"}') : new Response(null, { status: 204 });
  };
  const { window } = page;
  for (const [name, value] of Object.entries(storage)) window.sessionStorage.setItem(name, value);
  const globals = { fetch, sessionStorage: window.sessionStorage, history: window.history };
  const hear = (/** @type {string} */ type, /** @type {any} */ listener) => window.addEventListener(type, listener);
  for (const [name, value] of Object.entries({ ...globals, addEventListener: hear })) page.replace(globalThis, name, { value });
  page.document.body.innerHTML = '<main></main><p class="gle-unseen"></p>';
  const main = /** @type {HTMLElement} */ (page.document.querySelector('main'));
  const status = /** @type {HTMLElement} */ (page.document.querySelector('.gle-unseen'));
  /** @type {string[]} */
  const told = [];
  Object.defineProperty(status, 'textContent', { set: (words) => told.push(words) });
  phone = new Phone(main, status, { base: '', data: '/api/learn/v', own: '', code });
  phone.start(code);
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (main.querySelector(name));
  const all = (/** @type {string} */ name) => /** @type {HTMLElement[]} */ ([...main.querySelectorAll(name)]);
  const votes = () => asked.filter((text) => /option|cell/.test(text)).map((text) => JSON.parse(text.slice(text.indexOf('{'))));
  /** @param {object} state what differs from STATE */
  const send = async (state) => {
    await settle();
    page.sources
      .filter(({ url, closed }) => !closed && url.includes('/KRT4P/events'))
      .forEach((source) => source.send({ ...STATE, ...state }));
    for (let turn = 0; turn < 5; turn += 1) await settle();
  };
  /** Go on to a beat with its lesson. @param {number} beat @param {boolean} [answered] @param {object} [more] */
  const lead = (beat, answered = beat > 2, more = {}) => {
    server.lesson = lessonOf(beat, answered);
    const vote = beat === 2 ? { ...VOTE, revealed: answered } : null;
    return send({ beat, furthest: beat, lesson: `v${beat}${answered}`, vote, dots: beat === 4 ? {} : null, ...more });
  };
  return { page, phone, server, asked, refuse, told, one, all, votes, send, lead };
}
