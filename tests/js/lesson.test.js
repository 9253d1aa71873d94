// A lesson on the page: words, questions that hold, answers that are marked in words, and a stage that stays while its picture is discussed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LessonView } from '../../leakage/ui/components/reader/lesson.js';
import { sourceOf } from '../../leakage/ui/components/reader/source.js';
import { openPage } from './page.js';

const RUN = {
  title: 'A run',
  lab: 'v=1',
  columns: { step: [1, 10, 20], seconds: [0, 1, 2], loss: [4, 3, 2], psnr: [5, 6, 30] },
  film: { side: 32, batch: 1, places: [0, 1, 2] },
  labels: [[0, [0]]],
  verdicts: [[0, { word: 'not shown by this attack', why: '' }]],
  seconds: 2,
  meta: {
    ...{ batch: 1, size: 32, steps: 20, class_names: ['cat'], pictures: [{ title: 'Cat', class_name: 'cat', label: 0 }] },
    ...{ baselines: { grey: { psnr: 11 } }, received: { entries: 15826, bytes: 4, layers: [] } },
  },
  result: { answer: 2, scores: { psnr: 30 }, verdict: { word: 'recognizable', why: '' }, labels: [0] },
};
const KNOB = { name: 'noise', values: [{ label: 'none', number: 0 }, { label: 'much', number: 1 }] }; // prettier-ignore
const GRID = {
  ...{ title: 'What if', knobs: [KNOB], plot: null, film: null, class_names: ['cat'] },
  cells: [
    { lab: 'seed=1', answer: { private: 0, answer: 1, batch: 1, scores: { psnr: 40, grey: 11 }, labels: [0], truth: [0], word: 'recognizable', why: '' } },
    { lab: 'seed=2', answer: null },
  ],
}; // prettier-ignore
const LESSON = /** @type {any} */ ({
  ...{ id: '01-one', title: 'One', minutes: 8, caveat: 'Careful.', source: ['A paper'], notes: 'Say it.', runs: { r01: RUN }, grids: { g01: GRID } },
  beats: [
    { kind: 'text', text: 'An idea.' },
    { kind: 'play', text: 'Look.', runs: ['r01'], stop: 'step 10' },
    { kind: 'guess', text: 'What?', options: [{ text: 'this', right: false, why: 'Because not.' }, { text: 'that', right: true, why: 'Because.' }] },
    { kind: 'reveal', text: 'That.', runs: ['r01'], stop: 'answer' },
    { kind: 'try', text: 'Turn.', grid: 'g01' },
    { kind: 'takeaway', text: 'Remember.' },
  ],
}); // prettier-ignore

/** @param {import('node:test').TestContext} t */
function read(t) {
  const page = openPage(t, { calm: true });
  page.serve = () => ({ width: 32, height: 128 });
  /** @type {string[]} */
  const told = [];
  /** @type {string[]} */
  const moved = [];
  const view = new LessonView(LESSON, {
    source: sourceOf({ base: '', data: '/api/learn/v', own: '', lessons: [] }),
    announce: (words) => told.push(words),
    moved: (hash) => moved.push(hash),
    next: { id: '02-two', title: 'Two' },
  });
  page.document.body.append(view.root);
  view.go(0);
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (view.root.querySelector(name));
  const all = (/** @type {string} */ name) => /** @type {HTMLElement[]} */ ([...view.root.querySelectorAll(name)]);
  const key = (/** @type {string} */ name, target = view.root) =>
    view.key(/** @type {any} */ ({ key: name, target, preventDefault: () => {} }));
  return { page, view, told, moved, one, all, key };
}

test('a lesson begins with its idea, and every change is announced once and put into the address', (t) => {
  const { view, told, moved, one, key } = read(t);
  assert.equal(one('.gle-words').textContent, 'An idea.');
  assert.equal(view.root.dataset.staged, 'false');
  key('ArrowRight');
  assert.equal(one('.gle-words').textContent, 'Look.');
  assert.deepEqual(told, ['The idea, 1 of 6: An idea.', 'Watch, 2 of 6: Look.']);
  assert.deepEqual(moved, ['#01-one/1', '#01-one/2']);
});

test('the film stops where its beat does, and stays for the question', async (t) => {
  const { page, one, all, key } = read(t);
  key('PageDown');
  await page.tick(0);
  const screen = one('.gle-screen');
  assert.deepEqual([screen.dataset.step, screen.dataset.psnr], ['10', '6.00']);
  assert.equal(one('.gle-word').textContent, 'no verdict before the end', 'it would answer the question');
  assert.equal(one('.gle-attacker canvas').getAttribute('aria-label'), 'Reconstruction: 6.0 dB, no verdict before the end');
  assert.equal(one('.gle-slider').getAttribute('max'), '1');
  assert.deepEqual(page.asked, ['/api/learn/v/runs/r01.webp']);
  key('PageDown');
  assert.equal(one('.gle-screen'), screen);
  assert.equal(all('.gle-option').length, 2);
});

test('nothing moves on before a guess: not by key, button or link', async (t) => {
  const { page, view, told, one, all, key } = read(t);
  view.go(5);
  assert.equal(one('.gle-words').textContent, 'What?');
  for (const name of ['ArrowRight', 'PageDown', ' ', 'n']) key(name);
  page.fire(one('.gle-next'), 'click');
  view.go(4);
  assert.equal(view.root.dataset.place, '3');
  assert.equal(one('.gle-next').getAttribute('aria-disabled'), 'true');
  assert.equal(one('.gle-hint').textContent, 'Guess first: then you see what happens.');
  assert.equal(told.at(-1), 'Guess first: then you see what happens.');
  const held = all('.gle-dot').slice(3);
  assert.deepEqual(held.map((dot) => [dot.getAttribute('href'), dot.getAttribute('aria-disabled')]), Array(3).fill([null, 'true'])); // prettier-ignore
});

test('a wrong guess is told with the right answer and both reasons, and the film goes on to its end', async (t) => {
  const { page, one, all, key } = read(t);
  key('ArrowRight');
  key('ArrowRight');
  key('1');
  assert.deepEqual(all('.gle-option').map((option) => option.getAttribute('aria-pressed')), ['true', 'false']); // prettier-ignore
  assert.equal(one('.gle-why'), null); // nothing is given away yet
  assert.equal(one('.gle-next').getAttribute('aria-disabled'), 'false');
  key('ArrowRight');
  await page.tick(0);
  assert.equal(one('.gle-outcome').dataset.mark, 'wrong');
  assert.equal(one('.gle-outcome').textContent, '✗ You guessed A. The answer is B.A: this Because not.B: that Because.');
  assert.equal(one('.gle-screen').dataset.psnr, '30.00');
  assert.equal(one('.gle-word').textContent, 'recognizable');
  key('ArrowLeft');
  assert.deepEqual(all('.gle-option em').map((mark) => mark.textContent), ['Your guess · ✗ Not this', '✓ The answer']); // prettier-ignore
  assert.deepEqual(all('.gle-why').map((why) => why.textContent), ['Because not.', 'Because.']); // prettier-ignore
  key('2');
  assert.equal(all('.gle-option')[0].getAttribute('aria-pressed'), 'true'); // the guess stands
});

test('a right guess is told as that, and the way leads to the takeaway with caveat, sources and notes', async (t) => {
  const { one, all, key, moved } = read(t);
  key('n');
  key('n');
  key('2');
  key('n');
  assert.equal(one('.gle-outcome').textContent, '✓ You guessed right.B: that Because.');
  key('n');
  key('n');
  assert.equal(one('.gle-words').textContent, 'Remember.');
  assert.equal(
    one('.gle-after').textContent,
    'What this does not showCareful.SourcesA paperNotes for teachersSay it.To print: Worksheet Solution Plan for a hallA run: Slide (PNG) Animation (GIF)',
  );
  assert.equal(all('.gle-dot[href]').length, 6);
  assert.equal(one('.gle-next').textContent, 'Next: Two');
  key('n');
  assert.equal(moved.at(-1), '#02-two');
});

test('a what-if answers from its recording, and says so where there is none', async (t) => {
  const { page, one, all, key, view } = read(t);
  view.go(2);
  key('2');
  view.go(4);
  assert.equal(one('.gle-whatif .gle-big').textContent, '40.0 dB');
  assert.equal(one('.gle-foot a').getAttribute('href'), '/?seed=1');
  page.fire(all('.gle-value input')[1], 'change');
  assert.equal(one('.gle-result').textContent, 'This choice was not computed beforehand. The Lab computes it, with all settings free to change: Compute it in the Lab'); // prettier-ignore
  assert.equal(one('.gle-result a').getAttribute('href'), '/?seed=2');
  assert.equal(one('.gle-whatif').dataset.recorded, 'false');
  assert.equal(all('.gle-whatif tbody tr').length, 2);
});

test('keys that an input or a button uses itself are left to it', (t) => {
  const { page, view, key } = read(t);
  const input = page.document.createElement('input');
  const press = page.document.createElement('button');
  view.root.append(input, press);
  assert.equal(key('ArrowRight', input), false);
  assert.equal(key(' ', press), false);
  assert.equal(view.root.dataset.place, '1');
  assert.equal(key('x'), false);
});

test('who asked for less motion sees the end, and by k the first, the middle and the last picture, one at a time', async (t) => {
  const { page, view, one, key } = read(t);
  view.go(2);
  key('2');
  view.go(3);
  await page.tick(0);
  const seen = [one('.gle-screen').dataset.step];
  for (let press = 0; press < 4; press += 1) {
    key('k');
    seen.push(one('.gle-screen').dataset.step);
  }
  assert.deepEqual(seen, ['20', '1', '10', '20', '1']);
  await page.tick(9000);
  assert.equal(one('.gle-screen').dataset.step, '1'); // nothing moves by itself
});

test('a lesson that is left leaves nothing running', async (t) => {
  const { page, view, key } = read(t);
  key('n');
  await page.tick(0);
  view.destroy();
  const { timers, frames, observers } = page.open;
  assert.deepEqual({ timers, frames, observers }, { timers: 0, frames: 0, observers: 0 });
});
