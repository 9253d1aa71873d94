// Attacks on the visitor's own picture: what a card shows from the first message of the worker to the verdict.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeWorker } from './own.js';
import { AREA, GREY, LINEUP, TRUTH, openOwn, photo } from './own_setup.js';
import { brushOf } from './page.js';

const SENT = {
  ...{ kind: 'sent', numbers: Float32Array.of(1, -3, 0, 2), labels: [3], count: 15826 },
  tensors: [
    { from: 0, to: 2 },
    { from: 2, to: 4 },
  ],
};
/** @type {(step: number, pictures: Float32Array, kind?: string) => object} */
const frame = (step, pictures, kind = 'frame') => ({ kind, step, steps: 450, rate: 40.4, seconds: 2.5, labelsRight: 1, pictures });

test('an attack shows what is sent, the guess as it comes, and at the end the verdict, which is told aloud', async (t) => {
  const { own, one, cards, said, told, choose, start } = openOwn(t);
  await choose(photo);
  const worker = await start();
  assert.equal(cards()[0].getAttribute('aria-label'), 'Guess and compare (iDLG) · Small network (LeNet) · Seed 1');
  assert.equal(said('.gle-own-now'), 'The network gets its random weights …');
  const [order] = worker.heard;
  assert.deepEqual([order.network, order.attack, order.steps, order.seed], ['lenet', 'idlg', 150, 1]);
  assert.deepEqual(order.pictures, TRUTH);
  worker.say(SENT);
  assert.equal(said('.gle-own-wire b'), '15,826 numbers');
  assert.deepEqual(
    [...cards()[0].querySelectorAll('.gle-own-strips canvas')].map((strip) => brushOf(strip).pixels.length / 4),
    [2, 2], // a cell for each entry
  );
  const grey = -10 * Math.log10(TRUTH.reduce((sum, value) => sum + (value - 0.5) ** 2, 0) / TRUTH.length);
  assert.equal(
    said('.gle-own-verdict small'),
    `close to your picture (more is closer; from 40 on they look alike). A plain grey picture has ${grey.toFixed(1)} dB.`,
  );
  worker.say(frame(7, GREY));
  assert.equal(said('.gle-own-big'), `${grey.toFixed(1)} dB`);
  assert.equal(said('.gle-own-now'), 'step 7 of 450 at most, 40 steps a second');
  assert.deepEqual(brushOf(cards()[0].querySelector('.gle-own-attacker canvas')).pixels.slice(0, 4), [128, 128, 128, 255]);
  assert.equal(said('.gle-own-word'), '');
  assert.equal(told(), '');
  worker.say(frame(190, TRUTH, 'end'));
  assert.equal(said('.gle-own-big'), '100.0 dB');
  assert.equal(said('.gle-own-word'), 'recognizable');
  assert.equal(cards()[0].dataset.word, 'recognizable');
  assert.equal(said('.gle-own-now'), 'finished after 190 steps in 2.5 s');
  assert.equal(cards()[0].querySelector('.gle-own-verdict')?.firstElementChild?.className, 'gle-own-word');
  assert.match(
    said('.gle-own-notes'), // what it means comes first
    /^The people who .* Of 4 pictures, yours is the nearest to the attacker’s picture\. .* Yours got class number 3; the attacker read number 3: right\. $/,
  );
  assert.equal(
    told(),
    `recognizable, 100.0 dB close to your picture (more is closer; from 40 on they look alike). A plain grey picture has ${grey.toFixed(1)} dB.`,
  );
  assert.deepEqual([worker.ended, own.run?.over], [true, true]);
  assert.equal(one('.gle-own-stop').hidden, true);
});

test('a class that was read wrong is said', async (t) => {
  const { said, choose, start } = openOwn(t);
  await choose(photo);
  const worker = await start();
  worker.say({ ...SENT, labels: [5] });
  worker.say({ ...frame(3, GREY, 'end'), labelsRight: 0 });
  assert.match(said('.gle-own-notes'), /the attacker read number 5: wrong\. /);
  assert.equal(said('.gle-own-word'), 'not shown by this attack');
});

test('of a sum, the guess nearest to the own picture is shown', async (t) => {
  const { said, choose, start } = openOwn(t, { begin: { protection: 'sum', amount: 2 } });
  await choose(photo);
  const worker = await start();
  assert.deepEqual([worker.heard[0].labels, worker.heard[0].phones.length], [[3, 4], 3 * AREA]);
  worker.say({ ...SENT, labels: [3, 4] });
  worker.say(frame(9, Float32Array.of(...GREY, ...TRUTH), 'end'));
  assert.equal(said('.gle-own-big'), '100.0 dB');
  assert.doesNotMatch(said('.gle-own-notes'), /the attacker read number/);
});

test('Stop ends the worker, says at which step, and hears nothing more', async (t) => {
  const { one, cards, said, choose, start } = openOwn(t);
  await choose(photo);
  const worker = await start();
  worker.say(frame(12, GREY));
  one('.gle-own-stop').click();
  assert.equal(worker.ended, true);
  assert.equal(said('.gle-own-now'), 'Stopped at step 12.');
  assert.equal(cards()[0].dataset.over, 'true');
  worker.say(frame(13, TRUTH, 'end'));
  assert.equal(said('.gle-own-now'), 'Stopped at step 12.');
  assert.notEqual(said('.gle-own-big'), '100.0 dB');
});

test('who stops before the line-up has come starts no worker', async (t) => {
  const { page, one, said, choose } = openOwn(t);
  await choose(photo);
  page.serve = () => undefined;
  one('.gle-own-start').click();
  one('.gle-own-stop').click();
  page.awaited.get(LINEUP)?.({ width: 96, height: 32, pixels: [0] });
  await page.tick();
  assert.deepEqual(FakeWorker.all, []);
  assert.equal(said('.gle-own-now'), 'Stopped at step 0.');
});

test('a second run stands beside the first, which it stops; a third takes the place of the oldest', async (t) => {
  const { own, one, cards, said, choose, start } = openOwn(t);
  await choose(photo);
  const first = await start();
  first.say(frame(5, GREY));
  assert.equal(one('.gle-own-start').textContent, 'Attack it again');
  own.use({ seed: 2 });
  const second = await start();
  assert.deepEqual([first.ended, second.ended], [true, false]);
  assert.deepEqual(
    cards().map((card) => card.getAttribute('aria-label')),
    ['Guess and compare (iDLG) · Small network (LeNet) · Seed 2', 'Guess and compare (iDLG) · Small network (LeNet) · Seed 1'],
  );
  assert.equal(said('.gle-own-now', cards()[1]), 'Stopped at step 5.');
  second.say(frame(1, TRUTH, 'end'));
  own.use({ seed: 3 });
  const third = await start();
  assert.deepEqual(
    cards().map((card) => card.getAttribute('aria-label')),
    ['Guess and compare (iDLG) · Small network (LeNet) · Seed 3', 'Guess and compare (iDLG) · Small network (LeNet) · Seed 2'],
  );
  assert.equal(said('.gle-own-now', cards()[1]), 'finished after 1 step in 2.5 s');
  assert.equal(third.ended, false);
});

test('a run says that it is of the settings or of the picture before, until these are chosen again', async (t) => {
  const { own, cards, said, choose, start } = openOwn(t);
  const marks = () => cards().map((card) => said('.gle-own-old', card));
  await choose(photo);
  (await start()).say(frame(3, TRUTH, 'end'));
  assert.deepEqual(marks(), ['']);
  own.use({ protection: 'noise', amount: 0.1 });
  assert.deepEqual(marks(), ['Made with the settings before']);
  await start();
  assert.deepEqual(marks(), ['', 'Made with the settings before']);
  own.use({ protection: 'none', amount: 0 });
  assert.deepEqual(marks(), ['Made with the settings before', '']);
  await choose(new File(['other'], 'other.jpg', { type: 'image/jpeg' }));
  assert.deepEqual(marks(), ['Made from the picture before', 'Made from the picture before']);
  await choose(photo);
  assert.deepEqual(marks(), ['Made with the settings before', '']);
});

test('what singled out means is said once, and why plain grey may be closer in decibels', async (t) => {
  const { own, said, choose, start } = openOwn(t);
  await choose(photo);
  await start();
  const [card] = own.cards;
  card.reached = card.closenessOfGrey - 1;
  card.showVerdict({ word: 'singled', rank: 1, size: 100 });
  assert.match(said('.gle-own-notes'), /nearer to yours than to any of 99 other pictures: the server can tell which one is yours\. /);
  assert.match(said('.gle-own-notes'), /Pixel by pixel plain grey is closer to yours/);
  assert.doesNotMatch(said('.gle-own-notes'), /yours is/);
  await start();
  const [next] = own.cards;
  next.reached = next.closenessOfGrey + 1;
  next.showVerdict({ word: 'partly', rank: 40.5, size: 100 });
  assert.match(said('.gle-own-notes'), /If 100 pictures are sorted by their nearness to the attacker’s picture, yours is number 41\. /);
  assert.doesNotMatch(said('.gle-own-notes'), /plain grey is closer/);
});

test('two presses at once start one worker', async (t) => {
  const { page, one, cards, said, choose } = openOwn(t);
  await choose(photo);
  one('.gle-own-start').click();
  one('.gle-own-start').click();
  await page.tick();
  assert.equal(FakeWorker.all.length, 1);
  assert.equal(cards().length, 2);
  assert.equal(said('.gle-own-now', cards()[1]), 'Stopped at step 0.');
});

test('while the page is hidden the attack rests', async (t) => {
  const { page, choose, start } = openOwn(t);
  await choose(photo);
  const worker = await start();
  page.hide(true);
  page.hide(false);
  assert.deepEqual(worker.heard.slice(1), [{ pause: true }, { pause: false }]);
  worker.say(frame(3, TRUTH, 'end'));
  page.hide(true);
  assert.equal(worker.heard.length, 3); // an attack that has ended hears nothing
  const behind = await start();
  assert.deepEqual(behind.heard.slice(1), [{ pause: true }]); // it begins while the page is hidden
});

test('an attack that fails is said in a sentence, and so is a browser without a worker', async (t) => {
  const failing = openOwn(t);
  await failing.choose(photo);
  (await failing.start()).say({ kind: 'failed', message: 'no memory' });
  assert.equal(failing.said('.gle-own-now'), 'The attack ended with an error: no memory');
  assert.equal(failing.told(), 'The attack ended with an error: no memory');
  assert.equal(FakeWorker.all[0].ended, true);
  (await failing.start()).onerror?.({ message: '' });
  assert.equal(
    failing.said('.gle-own-now'),
    'This browser does not let the page compute in the background (the worker did not start). The lessons play recordings of such attacks.',
  );
});

test('a browser that refuses a worker is said', async (t) => {
  class Refused {
    constructor() {
      throw new Error('blocked by its policy');
    }
  }
  const { said, told, choose, start } = openOwn(t, { worker: Refused });
  await choose(photo);
  await start();
  assert.match(said('.gle-own-now'), /^This browser does not let the page compute in the background \(blocked by its policy\)/);
  assert.equal(told(), said('.gle-own-now'));
});

test('without a line-up there are decibels and no word', async (t) => {
  const { said, told, choose, start } = openOwn(t, { lineup: false });
  await choose(photo);
  const worker = await start();
  worker.say(SENT);
  worker.say(frame(3, TRUTH, 'end'));
  assert.equal(said('.gle-own-word'), '');
  assert.match(said('.gle-own-notes'), /The pictures for the line-up could not be loaded/);
  assert.match(told() ?? '', /^100\.0 dB close to your picture/);
});

test('who asked for less motion sees a picture a second, and the last', async (t) => {
  const { page, said, choose, start } = openOwn(t, { calm: true });
  await choose(photo);
  const worker = await start();
  worker.say(frame(1, GREY));
  await page.tick(500);
  worker.say(frame(2, GREY));
  assert.match(said('.gle-own-now'), /^step 1 of/);
  await page.tick(500);
  worker.say(frame(3, GREY));
  assert.match(said('.gle-own-now'), /^step 3 of/);
  worker.say(frame(4, TRUTH, 'end'));
  assert.equal(said('.gle-own-big'), '100.0 dB');
});
