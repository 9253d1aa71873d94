// The arithmetic of charts and grids: round ticks, values as pixels, and which cell of a grid a choice is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plotOf } from '../../leakage/ui/components/reader/figures.js';
import { niceTicks, scaleOf } from '../../leakage/ui/components/reader/scales.js';
import { axisOf, cellOf, placesOf } from '../../leakage/ui/components/reader/whatif.js';

test('ticks are whole multiples of 1, 2 or 5 and cover all values', () => {
  assert.deepEqual(niceTicks(0, 50.6, 4), [0, 20, 40, 60]);
  assert.deepEqual(niceTicks(5.3, 10.9, 4), [4, 6, 8, 10, 12]);
  assert.deepEqual(niceTicks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(niceTicks(7, 7, 4), [6, 8]);
  assert.deepEqual(niceTicks(0, 0, 4), [0, 0.5]);
});

test('a linear scale puts its first tick at one end and its last at the other', () => {
  const { at, ticks } = scaleOf([2, 38], { from: 100, to: 0 });
  assert.deepEqual(ticks.map(({ text }) => text), ['0', '10', '20', '30', '40']); // prettier-ignore
  assert.deepEqual([at(0), at(20), at(40)], [100, 50, 0]);
});

test('a logarithmic scale has a decade for each power and leaves out what has no logarithm', () => {
  const { at, ticks } = scaleOf([0, -1, null, 1e-6, 1], { from: 60, to: 0, log: true });
  assert.deepEqual([at(1e-6), at(1e-3), at(1)].map(Math.round), [60, 30, 0]);
  assert.deepEqual(ticks.map(({ text }) => text), ['10⁻⁶', '10⁻⁴', '0.01', '1']); // prettier-ignore
  assert.deepEqual(scaleOf([0], { from: 0, to: 1, log: true }).ticks.map(({ value }) => value), [1, 10]); // prettier-ignore
});

const KNOBS = [3, 2, 4].map((count, knob) => ({
  name: `k${knob}`,
  values: Array.from({ length: count }, (_, value) => ({ label: `${value}`, number: knob === 2 ? value / 10 : null })),
}));

test('the last knob of a grid turns fastest, and a cell leads back to its choice', () => {
  assert.equal(cellOf(KNOBS, [0, 0, 3]), 3);
  assert.equal(cellOf(KNOBS, [0, 1, 0]), 4);
  assert.equal(cellOf(KNOBS, [2, 1, 3]), 23);
  for (let cell = 0; cell < 24; cell += 1) assert.equal(cellOf(KNOBS, placesOf(KNOBS, cell)), cell);
});

test('answers are drawn over the knob that the grid names, else over the first that has numbers', () => {
  const grid = /** @type {any} */ ({ knobs: KNOBS, plot: null });
  assert.equal(axisOf(grid), 2);
  assert.equal(axisOf({ ...grid, plot: { x: 'k1', y: 'psnr', colour: 'k0' } }), 1);
  assert.equal(axisOf({ ...grid, knobs: KNOBS.slice(0, 2) }), -1);
});

const FIGURE = { x_title: 'noise', y_titles: ['mse'], y_unit: '', line: 0.5, line_title: 'grey', file: 'f.json' };

test('a figure is logarithmic where its values span two decades, and joined where every name has one value', () => {
  const plot = plotOf({ ...FIGURE, points: [[0, [0.001]], [0.0001, [1]]] }); // prettier-ignore
  assert.deepEqual([plot.log, plot.lines, plot.categories], [true, true, ['0', '10⁻⁴']]);
  assert.deepEqual(plot.series, [{ title: 'mse', points: [[0, 0.001], [1, 1]] }]); // prettier-ignore
  assert.deepEqual(plot.line, { at: 0.5, title: 'grey' });
  const several = plotOf({ ...FIGURE, line: null, y_unit: 'dB', points: [[8, [15]], [8, [16]], [16, [17]]] }); // prettier-ignore
  assert.deepEqual([several.log, several.lines, several.categories, several.line], [false, false, ['8', '16'], null]);
  assert.equal(several.yTitle, 'mse (dB)');
  assert.deepEqual(several.series[0].points, [[0, 15], [0, 16], [1, 17]]); // prettier-ignore
});
