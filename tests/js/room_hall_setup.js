// A lesson in front of a class with phones: the server is a function of the test, and its stream sends what a test says.
import { LessonView } from '../../leakage/ui/components/reader/lesson.js';
import { Presenter } from '../../leakage/ui/components/reader/presenter.js';
import { sourceOf } from '../../leakage/ui/components/reader/source.js';
import { openPage } from './page.js';

const OPTIONS = [
  { text: 'this', right: false, why: 'Because not.' },
  { text: 'that', right: true, why: 'Because.' },
  { text: 'neither', right: false, why: 'Why?' },
];

/** @param {number} psnr @param {string} word */
const cell = (psnr, word) => ({ lab: 'a=1', answer: { private: 0, answer: 1, batch: 1, scores: { psnr, grey: 10 }, labels: [0], truth: [0], word, why: '' } }); // prettier-ignore

/** Two networks, three strengths of noise; of the last cell nothing is recorded. */
export const GRID = /** @type {any} */ ({
  title: 'Noise',
  knobs: [
    { name: 'network', values: [{ label: 'LeNet', number: null }, { label: 'Wide', number: null }] }, // prettier-ignore
    { name: 'noise', values: [{ label: 'none', number: 0 }, { label: '0.01', number: 0.01 }, { label: '0.1', number: 0.1 }] }, // prettier-ignore
  ],
  plot: { x: 'noise', y: 'psnr', colour: 'network' },
  cells: [
    ...[cell(40, 'recognizable'), cell(30, 'recognizable'), cell(12, 'no')],
    ...[cell(50, 'recognizable'), cell(20, 'partly'), { lab: 'a=2', answer: null }],
  ],
  film: null,
  class_names: ['cat'],
});

export const LESSON = /** @type {any} */ ({
  ...{ id: '01-one', title: 'One', minutes: 8, caveat: 'Careful.', source: ['A paper'], notes: '', runs: {}, grids: { g: GRID } },
  beats: [
    { kind: 'text', text: 'An idea.', hall: 4 },
    { kind: 'guess', text: 'What?', options: OPTIONS, hall: 7 },
    { kind: 'try', text: 'Try.', grid: 'g', hall: 1 },
    { kind: 'takeaway', text: 'Remember.', hall: 4 },
  ],
});

export const ROOM = {
  ...{ code: 'KRT4P', key: 'k', addresses: ['http://192.168.1.5:8501', 'http://10.0.0.7:8501'], local: false, command: 'make class' },
};

/** A state of the room, with what a test says of it. @param {object} [more] */
export const state = (more = {}) => ({
  ...{ opened: 'o1', lesson: '1', id: '01-one', beat: 1, furthest: 1, phones: 0, locked: false, students: false, closed: false },
  ...{ vote: null, dots: null, runs: {}, ...more },
});

/** @param {object} [more] */
export const vote = (more = {}) => ({ round: 0, second: false, count: 0, revealed: false, bars: [null], ...more });

/**
 * @typedef {{ method: string, path: string, body: any }} Request
 * @typedef {(request: Request) => { status: number, text: string } | undefined} Server undefined: done as asked
 */

/**
 * @param {import('node:test').TestContext} t
 * @param {{ kept?: object, leader?: string, lesson?: any, opened?: object }} [begin] `kept`: what the browser kept of a room; `leader`: what
 *   the tab kept of it
 */
export function teach(t, { kept, leader = 'me', lesson = LESSON, opened: more } = {}) {
  const opened = { ...ROOM, ...more }; // what the server says of a room that it opens
  const page = openPage(t, { calm: true });
  /** @type {Request[]} */
  const asked = [];
  const server = { answer: /** @type {Server} */ (() => undefined) };
  const answer = async (/** @type {string} */ path, /** @type {any} */ { method, body = 'null' }) => {
    const request = { method, path, body: JSON.parse(body) };
    asked.push(request);
    const { status, text } = server.answer(request) ?? { status: path === '/api/class' ? 201 : 204, text: '' };
    return { ok: status < 300, status, text: async () => text, json: async () => (path.endsWith('/live') ? { run: 'r1' } : opened) };
  };
  page.replace(globalThis, 'fetch', { value: answer });
  for (const name of ['sessionStorage', 'localStorage']) {
    page.window[name].clear();
    page.replace(globalThis, name, { value: page.window[name] });
  }
  page.replace(AbortSignal, 'timeout', { value: () => undefined });
  page.replace(Math, 'random', { value: () => 0.5 });
  if (kept) page.window.localStorage.setItem('gle-room', JSON.stringify({ since: Date.now(), leader: 'me', ...kept }));
  page.window.sessionStorage.setItem('gle-room-leader', leader);
  /** @type {string[]} */
  const said = [];
  const source = sourceOf({ base: '', data: '/d', own: '', lessons: [] });
  const view = new LessonView(lesson, { source, announce: (words) => said.push(words), moved: () => {}, next: null });
  const presenter = new Presenter(view, '');
  page.document.body.append(view.root);
  view.go(0);
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (page.document.querySelector(name));
  const all = (/** @type {string} */ name) => /** @type {HTMLElement[]} */ ([...page.document.querySelectorAll(name)]);
  const texts = (/** @type {string} */ name) => all(name).map((each) => each.textContent);
  const press = (/** @type {string} */ key, more = {}) => {
    const event = /** @type {any} */ ({ key, code: '', shiftKey: false, target: page.document.body, preventDefault: () => {}, ...more });
    return presenter.key(event) || view.key(event);
  };
  const click = async (/** @type {string} */ name) => {
    page.fire(one(name), 'click');
    await page.tick();
  };
  const hear = async (/** @type {object} */ more) => {
    page.sources
      .filter(({ url }) => url.includes('KRT4P/events?'))
      .at(-1)
      ?.send(state(more));
    await page.tick();
  };
  const kept_ = () => JSON.parse(page.window.localStorage.getItem('gle-room') ?? 'null');
  /** The bodies that were posted to lead, without the key. */
  const led = () => asked.filter(({ path }) => path.endsWith('/lead')).map(({ body: { key: _, ...rest } }) => rest);
  const open = async () => {
    await click('.gle-open-room');
    await hear({});
  };
  /** A room whose dialog was closed again. */
  const begin = async () => {
    await open();
    presenter.panel.close();
  };
  return { begin, page, view, presenter, asked, server, said, one, all, texts, press, click, hear, kept: kept_, led, open, opened };
}
