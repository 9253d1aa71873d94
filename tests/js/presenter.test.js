// In front of a hall: the keys of a clicker and of whoever presents, hands that are counted, dialogs, and the speaker's window.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LessonView } from '../../leakage/ui/components/reader/lesson.js';
import { Presenter } from '../../leakage/ui/components/reader/presenter.js';
import { sourceOf } from '../../leakage/ui/components/reader/source.js';
import { openPage } from './page.js';

const OPTIONS = [
  { text: 'this', right: false, why: 'Because not.' },
  { text: 'that', right: true, why: 'Because.' },
  { text: 'neither', right: false, why: 'Why?' },
];
const LESSON = /** @type {any} */ ({
  ...{ id: '01-one', title: 'One', minutes: 8, caveat: 'Careful.', source: ['A paper'], notes: 'Say it.', runs: {}, grids: {} },
  beats: [
    { kind: 'text', text: 'An idea.', hall: 4 },
    { kind: 'guess', text: 'What?', options: OPTIONS, note: 'Hands at step 20.', hall_note: 'One minute alone.', hall: 7 },
    { kind: 'text', text: 'That.', hall_note: 'In your own words.', hall: 1 },
    { kind: 'takeaway', text: 'Remember.', hall: 4 },
  ],
});

/** @param {import('node:test').TestContext} t */
function present(t) {
  const page = openPage(t, { calm: true });
  /** @type {string[]} */
  const moved = [];
  const source = sourceOf({ base: '', data: '/d', own: '', lessons: [] });
  const around = {
    source,
    announce: () => {},
    moved: (/** @type {string} */ hash) => moved.push(hash),
    next: { id: '02-two', title: 'Two' },
  };
  const view = new LessonView(LESSON, around);
  const presenter = new Presenter(view);
  page.document.body.append(view.root);
  view.go(0);
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (page.document.querySelector(name));
  const all = (/** @type {string} */ name) => [...page.document.querySelectorAll(name)];
  const texts = (/** @type {string} */ name) => all(name).map((each) => each.textContent);
  /** As the page hears a key: the presenter first. @param {string} key @param {object} [more] */
  const press = (key, more = {}) => {
    let prevented = false;
    const event = /** @type {any} */ ({
      key,
      code: '',
      shiftKey: false,
      target: page.document.body,
      preventDefault: () => (prevented = true),
      ...more,
    });
    const ours = presenter.key(event) || view.key(event);
    return ours && prevented;
  };
  const raise = (/** @type {number} */ option) => press('!"§$'[option - 1], { shiftKey: true, code: `Digit${option}` });
  return { page, view, presenter, moved, one, all, texts, press, raise };
}

test('f fills the screen for those who came by a link, and leaves only what fills it', (t) => {
  const { page, press, presenter, view } = present(t);
  let filled = 0;
  page.replace(page.document.documentElement, 'requestFullscreen', { value: async () => void (filled += 1) });
  presenter.set(true); // as an address that ends with ?present does
  press('f');
  assert.deepEqual([view.presenting, filled], [true, 1]);
  page.replace(page.document, 'fullscreenElement', { value: page.document.documentElement });
  page.replace(page.document, 'exitFullscreen', { value: async () => {} });
  press('f');
  assert.deepEqual([view.presenting, filled], [false, 1]);
});

test('f begins and Escape ends; F5 and Shift+F5, which clickers send, do not leave, and reload for a reader', (t) => {
  const { page, moved, press, view } = present(t);
  let filled = 0;
  page.replace(page.document.documentElement, 'requestFullscreen', { value: async () => void (filled += 1) });
  assert.equal(press('F5'), false);
  assert.equal(press('f'), true);
  assert.deepEqual([view.presenting, moved.at(-1), filled], [true, '#01-one/1?present', 1]);
  assert.equal(press('F5'), true);
  assert.equal(press('F5', { shiftKey: true }), true);
  assert.deepEqual([view.presenting, filled], [true, 3]);
  press('Escape');
  assert.deepEqual([view.presenting, moved.at(-1)], [false, '#01-one/1']);
});

test('a clicker walks past a question, and whoever only reads has none of these keys', (t) => {
  const { moved, one, press, view } = present(t);
  for (const key of ['r', 'v', 'g', 'q', 's', 'b', '.', 'Escape']) assert.equal(press(key), false, key);
  press('f');
  for (const key of ['ArrowRight', 'PageDown', ' ']) assert.equal(press(key), true, key);
  assert.equal(view.place, 3);
  for (const key of ['ArrowRight', 'PageDown', ' ']) assert.equal(press(key), true, key);
  assert.equal(view.place, 3); // the end of a lesson: a link leads to the next
  assert.ok(moved.every((hash) => hash.startsWith('#01-one')));
  assert.equal(one('.gle-way-on').getAttribute('href'), '#02-two/1?present');
  for (const key of ['ArrowLeft', 'PageUp', 'p']) assert.equal(press(key), true, key);
  assert.equal(view.place, 0);
  press('n');
  assert.equal(press('x'), false);
});

test('the first keys are told for three seconds', async (t) => {
  const { page, one, press } = present(t);
  assert.equal(one('.gle-cue').hidden, true);
  press('f');
  assert.equal(one('.gle-cue').textContent, '→ next · r reveal · s speaker’s window · ? all keys');
  await page.tick(2999);
  assert.equal(one('.gle-cue').hidden, false);
  await page.tick(1);
  assert.equal(one('.gle-cue').hidden, true);
});

test('b and the full stop blacken the screen and bring it back', (t) => {
  const { one, press } = present(t);
  press('f');
  press('b');
  assert.equal(one('.gle-black').hidden, false);
  press('.');
  assert.equal(one('.gle-black').hidden, true);
});

test('hands are counted before the answer, and shown with it', (t) => {
  const { one, all, texts, press, raise } = present(t);
  press('f');
  raise(1); // no question here
  press('n');
  [1, 1, 1, 2].forEach(raise);
  raise(4); // no such option
  assert.equal(one('.gle-raised').textContent, 'Hands: 4');
  assert.equal(one('.gle-votes'), null);
  press('r');
  assert.deepEqual(texts('.gle-vote'), ['Hands: 3', 'Hands: 1', 'Hands: 0']);
  assert.deepEqual(all('.gle-vote i').map((bar) => /** @type {HTMLElement} */ (bar).style.width), ['75%', '25%', '0%']); // prettier-ignore
  assert.deepEqual(texts('.gle-option em'), ['', '✓ The answer', '']);
  press('r');
  assert.equal(one('.gle-votes'), null);
});

test('v hides the answer for a second vote, which stands beside the first', (t) => {
  const { one, texts, press, raise, view } = present(t);
  press('f');
  press('n');
  press('3');
  [1, 1, 2].forEach(raise);
  press('r');
  press('v');
  assert.equal(one('.gle-why'), null);
  assert.equal(one('.gle-raised').textContent, 'Talk to your neighbour, then vote again.');
  assert.equal(view.walk.guesses.size, 0);
  [2, 2, 2, 3].forEach(raise);
  assert.equal(one('.gle-raised').textContent, 'Talk to your neighbour, then vote again. Hands: 4');
  press('r');
  assert.deepEqual(texts('.gle-votes'), ['before2after0', 'before1after3', 'before0after1']);
  press('v'); // a third vote stands beside the second
  raise(1);
  press('r');
  assert.deepEqual(texts('.gle-votes'), ['before0after1', 'before3after0', 'before1after0']);
});

test('a vote without hands is not shown, and the hands of a hall are not of the reader', (t) => {
  const { one, press, raise } = present(t);
  press('f');
  press('n');
  press('v');
  press('r');
  assert.equal(one('.gle-votes'), null);
  raise(1);
  press('Escape');
  assert.equal(one('.gle-votes'), null);
  assert.equal(one('.gle-raised'), null);
  assert.equal(one('.gle-next').getAttribute('aria-disabled'), 'true'); // the reader has not guessed
});

test('the question mark lists the keys, for a reader too, and it or Escape closes them', (t) => {
  const { one, texts, press } = present(t);
  const dialog = () => /** @type {HTMLDialogElement} */ (one('.gle-panel'));
  press('?', { shiftKey: true });
  assert.equal(dialog().open, true);
  assert.equal(one(`#${dialog().getAttribute('aria-labelledby')}`).textContent, 'Keys');
  const keys = texts('.gle-keys kbd');
  for (const key of ['→', 'Page Down', 'Space', 'n', '1', '4', 'k', 'r', 'v', 'b', '.', 'f', 'F5', 's', 'g', 'q', '?', 'Esc', 'Shift + 1 to 4']) assert.ok(keys.includes(key), key); // prettier-ignore
  assert.equal(texts('.gle-keys dd').includes(''), false);
  press('?', { shiftKey: true });
  assert.equal(dialog().open, false);
  press('?');
  press('Escape');
  assert.equal(dialog().open, false);
});

test('Escape leaves the dialog first, then the presentation', (t) => {
  const { press, view } = present(t);
  press('f');
  press('q');
  press('Escape');
  assert.equal(view.presenting, true);
  press('Escape');
  assert.equal(view.presenting, false);
});

test('g goes to the beat of a digit or a press, and leaves other keys to the dialog', (t) => {
  const { page, all, texts, press, view, one } = present(t);
  press('f');
  press('g');
  assert.deepEqual(texts('.gle-beats button'), ['1The idea: An idea.', '2Guess: What?', '3Background: That.', '4Take away: Remember.']);
  assert.equal(press('Tab'), false);
  assert.equal(press('ArrowRight'), false);
  assert.equal(press('7'), false);
  assert.equal(view.place, 0);
  press('3');
  assert.equal(view.place, 2);
  press('g');
  assert.equal(one('.gle-beats [aria-current]').textContent, '3Background: That.');
  page.fire(all('.gle-beats button')[1], 'click');
  assert.equal(view.place, 1);
  assert.equal(/** @type {HTMLDialogElement} */ (one('.gle-panel')).open, false);
});

test('q shows the address of the lesson without its scheme, and says where others cannot reach it; a clicker goes on', (t) => {
  const { page, one, press, view } = present(t);
  press('f');
  press('q');
  assert.equal(one('.gle-address').textContent, 'localhost:8501/lab#01-one');
  assert.match(one('.gle-panel .gle-note').textContent ?? '', /on this computer only/);
  press('PageDown');
  assert.equal(view.place, 1);
  assert.equal(/** @type {HTMLDialogElement} */ (one('.gle-panel')).open, false);
  page.window.happyDOM.setURL('http://lab.example.org/learn#01-one/2?present');
  press('q');
  assert.equal(one('.gle-address').textContent, 'lab.example.org/learn#01-one');
  assert.equal(one('.gle-panel .gle-note'), null);
});

test('a knob keeps its arrows for a reader; while presenting they turn the beats after a press on it, but not in a field or on a slider', (t) => {
  const { page, press, view } = present(t);
  const made = (/** @type {string} */ html) => {
    const box = page.document.createElement('div');
    box.innerHTML = html;
    page.document.body.append(box);
    return box.firstElementChild;
  };
  const [radio, knob] = ['<input type="radio">', '<button>Turn</button>'].map(made);
  const own = ['<input type="text">', '<input type="range">', '<select></select>', '<textarea></textarea>'].map(made);
  assert.equal(press('ArrowRight', { target: radio }), false);
  assert.equal(press(' ', { target: radio }), false);
  assert.equal(press(' ', { target: knob }), false);
  press('f');
  for (const target of own) for (const key of ['ArrowRight', 'ArrowLeft', ' ']) assert.equal(press(key, { target }), false, key);
  assert.equal(view.place, 0);
  for (const target of [radio, knob]) assert.equal(press('ArrowRight', { target }), true);
  assert.equal(view.place, 2);
  assert.equal(press('ArrowLeft', { target: radio }), true);
  assert.equal(press(' ', { target: knob }), true);
  assert.equal(view.place, 2);
  for (const key of ['ArrowUp', 'ArrowDown', 'Enter']) assert.equal(press(key, { target: radio }), false, key); // those choose
});

test('the speaker sees notes, the next beat, the answer, hands and a button for every key, which keep the focus', (t) => {
  const { page, press, raise, view } = present(t);
  const other = new page.window.constructor({ url: 'about:blank' });
  page.replace(page.window, 'open', { value: () => other });
  page.replace(globalThis, 'open', { value: () => other });
  page.replace(globalThis, 'setInterval', { value: () => 0 });
  page.replace(globalThis, 'clearInterval', { value: () => {} });
  press('f');
  press('n');
  press('s');
  assert.equal(other.document.title, 'Speaker view');
  const body = other.document.body;
  const text = () => body.textContent;
  assert.match(
    text(),
    /One, 2 of 4What\?.*Notes for teachersHands at step 20\.One minute alone\.The answerA: this Because not\.✓ B: that Because\..*NextThat\./s,
  );
  assert.match(text(), /planned for now: minute 4 of 16/); // the plan of a hall, not a reader's 8 minutes
  assert.doesNotMatch(text(), /Guesses/);
  [1, 1, 2].forEach(raise);
  press('3');
  assert.match(text(), /GuessesChosen: CA: 2 {2}· {2}B: 1 {2}· {2}C: 0/);
  const buttons = [...body.querySelectorAll('button')].filter(({ hidden }) => !hidden);
  const caps = buttons.map((each) => each.querySelector('kbd')?.textContent);
  for (const cap of ['←', '→', 'k', 'r', 'v', 'b', 'g', 'q', '?', 'Esc', '1', '3', '⇧1', '⇧3']) assert.ok(caps.includes(cap), cap);
  assert.equal(caps.includes('4'), false); // three options
  const named = (/** @type {string} */ cap) => buttons[caps.indexOf(cap)];
  page.fire(named('⇧2'), 'click');
  assert.match(text(), /B: 2/);
  page.fire(named('r'), 'click');
  assert.equal(view.opened, true);
  page.fire(named('→'), 'click');
  assert.equal(view.place, 2);
  assert.match(text(), /minute 11 of 16.*Notes for teachersIn your own words\./s);
  assert.doesNotMatch(text(), /step 20/); // each beat has its own
  assert.ok(named('→').isConnected); // the very button, so that it keeps the focus
  other.onkeydown({ key: 'PageDown', target: body, preventDefault: () => {} });
  assert.match(text(), /One, 4 of 4/);
});

test('what is left leaves no dialog, no black screen and no class on the page', (t) => {
  const { page, press, presenter, all } = present(t);
  press('f');
  presenter.destroy();
  assert.deepEqual(all('.gle-panel, .gle-black, .gle-cue'), []);
  assert.equal(page.document.documentElement.className, '');
});
