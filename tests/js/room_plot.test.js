// What a class has tried: one dot for each phone, medians, pictures on a press, numbers as a table, and a cell that is computed live.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { choicesOf, classAxes, heapsOf, jitter, medianOf, placesWithMedian } from '../../leakage/ui/components/room/class_choices.js';
import { ClassPlot } from '../../leakage/ui/components/room/class_plot.js';
import { NOTHING, openPage } from './page.js';
import { GRID, teach } from './room_hall_setup.js';

/** @param {number[]} sizes of the knobs @param {number[]} [numbers] the knobs whose values are numbers */
const grid = (sizes, numbers = []) => /** @type {any} */ ({
  plot: null,
  knobs: sizes.map((size, knob) => ({
    name: String(knob),
    values: Array.from({ length: size }, (_, value) => ({ label: String(value), number: numbers.includes(knob) ? value : null })),
  })),
}); // prettier-ignore

test('the axis is the one of the grid, else numbers, else the knob with the most values; of the others one is the colour, one the sign', () => {
  assert.deepEqual(classAxes(GRID), { x: 1, colour: 0, sign: -1 });
  assert.deepEqual(classAxes(grid([5, 4], [1])), { x: 1, colour: -1, sign: 0 });
  assert.deepEqual(classAxes(grid([3, 6, 2])), { x: 1, colour: 2, sign: 0 });
  assert.deepEqual(classAxes(grid([3, 3, 2], [0])), { x: 0, colour: 2, sign: 1 });
  assert.deepEqual(classAxes(grid([6, 2, 6], [0])), { x: 0, colour: 1, sign: -1 });
});

test('choices without a recorded result, or without a phone, are no dots', () => {
  const choices = choicesOf(GRID, { 5: 2, 4: 1, 0: 3, 1: 0 });
  assert.deepEqual(
    choices.map(({ cell, count, column, group, psnr }) => [cell, count, column, group, psnr]),
    [
      [0, 3, 0, 0, 40],
      [4, 1, 1, 1, 20],
    ],
  );
});

test('dots of one choice stand apart, within the part of the column that their mark has', () => {
  const [left, right] = [jitter(6, 0, 2), jitter(6, 1, 2)];
  assert.equal(new Set(left).size, 6);
  assert.ok(left.every((aside) => aside > -0.42 && aside < 0));
  assert.ok(right.every((aside) => aside > 0 && aside < 0.42));
  assert.deepEqual(jitter(6, 0, 2), left);
});

test('the median is over phones, not over settings', () => {
  const of = (/** @type {[number, number][]} */ many) =>
    medianOf(many.map(([count, psnr]) => ({ cell: 0, column: 0, group: 0, sign: 0, count, psnr })));
  assert.equal(of([[1, 10], [3, 20], [1, 40]]), 20); // prettier-ignore
  assert.equal(of([[1, 10], [1, 40]]), 25); // prettier-ignore
});

test('a column has a median for each colour with five dots, of whatever sign', () => {
  const choice = (/** @type {number} */ column, /** @type {number} */ group, /** @type {number} */ sign, /** @type {number} */ count) => ({
    ...{ cell: 0, psnr: 0, column, group, sign, count },
  });
  const [three, two, four] = [choice(0, 1, 0, 3), choice(0, 1, 4, 2), choice(0, 0, 0, 4)];
  assert.deepEqual(placesWithMedian([three, two, four, choice(1, 0, 0, 4)]), [[three, two]]);
});

test('the knob that is no axis gives the signs, full and hollow where colours differ, with a key', (t) => {
  const page = openPage(t);
  const of = (/** @type {string} */ label) => ({ label, number: null });
  const knobs = [
    { name: 'picture', values: ['Cat', 'Rocket'].map(of) },
    { name: 'noise', values: [of('none'), of('much')] },
    { name: 'looks', values: [of('once'), of('often')] },
  ];
  const plot = new ClassPlot(/** @type {any} */ ({ ...GRID, knobs, plot: { x: 'noise', y: 'psnr', colour: 'looks' }, cells: Array(8).fill(GRID.cells[0]) }), {}, () => {}); // prettier-ignore
  page.document.body.append(plot.root);
  plot.update({ 0: 1, 1: 1, 4: 2, 7: 1 }); // Cat, none, once; Cat, none, often; Rocket, none, once; Rocket, much, often
  const texts = (/** @type {string} */ name) => [...plot.root.querySelectorAll(name)].map(({ textContent }) => textContent);
  assert.deepEqual(texts('.gle-key-item'), ['●■ once', '○□ often', '● Cat', '■ Rocket']);
  assert.deepEqual(texts('.gle-curve[data-tone="0"] text'), ['●', '■', '■']);
  assert.deepEqual(texts('.gle-curve[data-tone="1"] text'), ['○', '□']);
  plot.destroy();
});

test('choices of a column that lie closer than a button is high have one button', () => {
  const spot = (/** @type {number} */ cell, /** @type {number} */ column, /** @type {number} */ top) => /** @type {any} */ ({ cell, column, top }); // prettier-ignore
  const heaps = heapsOf([spot(0, 0, 50), spot(1, 1, 10), spot(2, 0, 10), spot(3, 0, 73), spot(4, 0, 97)], 12);
  assert.deepEqual(
    heaps.map(({ name, spots }) => [name, ...spots.map(({ cell }) => cell)]),
    [
      ['0/0', 2],
      ['0/1', 0, 3],
      ['0/2', 4],
      ['1/0', 1],
    ],
  );
});

/** @param {import('node:test').TestContext} t */
async function tries(t) {
  const taught = teach(t);
  await taught.begin();
  taught.view.go(2);
  await taught.page.tick();
  return taught;
}

test('each phone is a dot, each choice a button that shows its pictures', async (t) => {
  const { page, hear, one, all, texts, view } = await tries(t);
  assert.match(one('.gle-class').textContent ?? '', /Each phone’s choice becomes a dot here/);
  await hear({ beat: 3, phones: 7, dots: { 0: 3, 4: 1, 5: 2, 3: 1 } });
  assert.equal(all('.gle-class .gle-curve text').length, 5);
  assert.deepEqual(texts('.gle-class .gle-key-item'), ['● LeNet', '■ Wide']);
  assert.equal(one('.gle-class .gle-level') === null, false); // the grey picture
  const labels = () => all('.gle-class-dot').map((each) => each.getAttribute('aria-label'));
  assert.deepEqual(labels(), [
    'Wide, none: 50.0 dB, recognizable, 1 phone',
    'LeNet, none: 40.0 dB, recognizable, 3 phones',
    'Wide, 0.01: 20.0 dB, partly, 1 phone',
  ]);
  assert.match(one('.gle-class-told').textContent ?? '', /The dots of 5 phones.*2 phones chose settings without a recorded result\./);
  assert.deepEqual(texts('.gle-class tbody tr'), [
    'LeNetnone340.0 dBrecognizable',
    'Widenone150.0 dBrecognizable',
    'Wide0.01120.0 dBpartly',
  ]);
  page.fire(all('.gle-class-dot')[2], 'click');
  assert.equal(one('.gle-whatif').dataset.cell, '4');
  assert.equal(one('.gle-whatif .gle-big').textContent, '20.0 dB');
  assert.equal(all('.gle-class-ring').length, 1);
  assert.deepEqual(all('.gle-whatif input').map((input) => /** @type {HTMLInputElement} */ (input).checked), [false, true, false, true, false]); // prettier-ignore
  assert.equal(view.place, 2);
});

test('the mouse presses the nearest of several dots, and keys go from one to the next', (t) => {
  const page = openPage(t);
  const plot = new ClassPlot(GRID, {}, () => {});
  page.lay(plot.layer, { left: 100, top: 50 });
  const spots = /** @type {any} */ ([
    { cell: 1, left: 0, band: 20, top: 10 },
    { cell: 2, left: 0, band: 20, top: 30 },
    { cell: 3, left: 20, band: 20, top: 30 },
  ]);
  const at = (/** @type {number} */ x, /** @type {number} */ y, detail = 1) =>
    plot.pressed(spots, /** @type {any} */ ({ detail, clientX: 100 + x, clientY: 50 + y }));
  assert.deepEqual([at(10, 12), at(12, 29), at(27, 29)], [1, 2, 3]);
  for (const cell of [1, 2, 3, 1]) {
    plot.mark(at(0, 0, 0));
    assert.equal(plot.current, cell);
  }
});

test('new dots keep the focus and the open table; a cleared beat has none', async (t) => {
  const { page, hear, one, all } = await tries(t);
  await hear({ beat: 3, phones: 7, dots: { 0: 3, 4: 1 } });
  const [, second] = all('.gle-class-dot');
  second.focus();
  /** @type {HTMLDetailsElement} */ (one('.gle-class details')).open = true;
  await hear({ beat: 3, phones: 9, dots: { 0: 5, 4: 4 } });
  assert.equal(page.document.activeElement, second);
  assert.match(second.getAttribute('aria-label') ?? '', /4 phones$/);
  assert.equal(/** @type {HTMLDetailsElement} */ (one('.gle-class details')).open, true);
  assert.equal(all('.gle-median').length, 1); // of the column with five phones
  assert.match(one('.gle-class-told').textContent ?? '', /The dots of 9 phones.*A short line is the median of at least five dots\./);
  await hear({ beat: 3, phones: 7, dots: {} });
  assert.deepEqual([all('.gle-class-dot').length, all('.gle-class svg').length], [0, 0]);
});

test('one cell is computed live: the run is asked for and shown until another cell is', async (t) => {
  const { page, hear, one, all, asked, click } = await tries(t);
  await hear({ beat: 3, phones: 1, dots: { 4: 1, 0: 1 } });
  page.fire(all('.gle-class-dot')[1], 'click');
  await click('.gle-compute');
  assert.deepEqual([asked.at(-1)?.path, asked.at(-1)?.body], ['/api/class/KRT4P/live', { key: 'k', beat: 3, cell: 4 }]);
  assert.match(page.sources.at(-1)?.url ?? '', /^\/api\/class\/KRT4P\/runs\/r1\/events\?key=k/);
  assert.deepEqual([one('.gle-whatif').dataset.live, one('.gle-compute').hidden], ['true', true]);
  assert.equal(one('.gle-live .gle-big').textContent, 'Starting…');
  await hear({ beat: 3, phones: 1, dots: { 4: 1, 0: 1 }, runs: { 4: 'r1' } });
  assert.equal(one('.gle-compute').hidden, true);
  page.sources.at(-1)?.send({ kind: 'state', status: 'done', seq: 1 });
  assert.deepEqual([one('.gle-live') === null, one('.gle-compute').hidden], [false, false]); // it has ended, and stays
  page.fire(all('.gle-class-dot')[0], 'click');
  assert.equal(one('.gle-live'), null);
  assert.equal(one('.gle-compute').textContent, 'Compute these settings live');
  page.fire(all('.gle-class-dot')[1], 'click');
  assert.equal(one('.gle-compute').textContent, 'Watch the live run');
  const before = asked.length;
  await click('.gle-compute');
  assert.deepEqual([asked.length, one('.gle-live') === null], [before, false]);
});

test('a live run that the server refuses says why', async (t) => {
  const { hear, one, click, server } = await tries(t);
  await hear({ beat: 3, phones: 1, dots: {} });
  server.answer = () => ({ status: 429, text: 'The queue is full.' });
  await click('.gle-compute');
  assert.equal(one('.gle-class > .gle-note').textContent, 'The queue is full.');
  assert.equal(one('.gle-class > .gle-note').hidden, false);
});

test('a closed room takes its dots along, and its live run', async (t) => {
  const { page, hear, one, click, presenter, view } = await tries(t);
  await hear({ beat: 3, phones: 1, dots: { 0: 1 } });
  await click('.gle-compute');
  await hear({ beat: 3, closed: true });
  assert.equal(one('.gle-class'), null);
  assert.notEqual(one('.gle-whatif'), null);
  presenter.destroy();
  view.destroy();
  assert.deepEqual([page.open.streams, page.open.observers], [NOTHING.streams, NOTHING.observers]);
});
