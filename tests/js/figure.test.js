// The curves as data for Plotly.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figure, powers, range, series } from '../../leakage/ui/components/live/figure.js';
import { newRecord, take } from '../../leakage/ui/components/live/record.js';
import { frame, recorded } from './recorded.js';

/** @type {import('../../leakage/ui/components/live/theme.js').Theme} */
const THEME = {
  ...{ font: 'Inter', text: 'text', soft: 'soft', line: 'line', paper: 'paper' },
  ...{ psnr: 'orange', loss: 'blue', warm: 'dark orange', cool: 'dark blue' },
};

/** @param {import('../../leakage/ui/components/live/record.js').AttackEvent[]} events */
function recordOf(...events) {
  const record = newRecord('r');
  events.forEach((event) => take(record, event));
  return record;
}

/** @type {(...rows: [number, number | null, number | null][]) => ReturnType<typeof recordOf>} of step, loss and PSNR */
const run = (...rows) => recordOf(...rows.map(([step, loss, psnr], place) => frame(place + 1, { step, loss, scores: { psnr } })));

test('a series is interrupted where the steps start again, and only there', () => {
  const { frames } = run([0, 1, null], [5, 2, null], [5, 3, null], [2, 4, null], [3, null, null], [0, 6, null]);
  assert.deepEqual(
    series(frames, ({ loss }) => loss),
    { x: [0, 5, 5, 2, 2, 3, 0, 0], y: [1, 2, 3, null, 4, null, null, 6] },
  );
  assert.deepEqual(
    series([], ({ loss }) => loss),
    { x: [], y: [] },
  );
});

test('a range is whole multiples of the step around all values, with a margin of 15 % of the step', () => {
  assert.deepEqual(range([], 5), [0, 5]);
  assert.deepEqual(range([null, undefined, NaN, Infinity], 5), [0, 5]);
  assert.deepEqual(range([7], 5), [5, 10]);
  assert.deepEqual(range([5.7, 9.3], 5), [0, 15], '5.7 - 0.75 lies below 5, 9.3 + 0.75 above 10');
  assert.deepEqual(range([5.8, 9.2], 5), [5, 10]);
  assert.deepEqual(range([12, null, -3, NaN, 40], 5), [-5, 45]);
  assert.deepEqual(range([-6.3, 2.3], 1), [-7, 3]);
  assert.deepEqual(range([-6.1, 2.9], 1), [-7, 4]);
  assert.deepEqual(range([-6, 2], 1), [-7, 3], 'a value on the border has room too');
});

test('at most five ticks at whole powers; the small ones are written out', () => {
  assert.deepEqual(powers([-2, 2]), { tickvals: [0.01, 0.1, 1, 10, 100], ticktext: ['0.01', '0.1', '1', '10', '100'] });
  assert.deepEqual(powers([0, 1]), { tickvals: [1, 10], ticktext: ['1', '10'] });
  assert.deepEqual(powers([-3, -2]).ticktext, ['10⁻³', '0.01']);
  assert.deepEqual(powers([2, 3]).ticktext, ['100', '10³']);
  assert.deepEqual(powers([-7, 3]).ticktext, ['10⁻⁷', '10⁻⁴', '0.1', '100'], 'ten decades, every third');
  assert.deepEqual(powers([-12, -4]).ticktext, ['10⁻¹²', '10⁻¹⁰', '10⁻⁸', '10⁻⁶', '10⁻⁴']);
  assert.deepEqual(powers([-7, 3]).tickvals, [10 ** -7, 10 ** -4, 0.1, 100]);
});

test('nothing yet: empty curves on axes that are there', () => {
  const { traces, layout } = figure(recordOf(), THEME);
  assert.deepEqual(
    traces.map(({ x, y }) => [x, y]),
    [
      [[], []],
      [[], []],
    ],
  );
  assert.deepEqual([layout.xaxis.range, layout.yaxis.range, layout.yaxis2.range], [[0, 1], [0, 5], [0, 1]]); // prettier-ignore
  assert.deepEqual(layout.yaxis2.ticktext, ['1', '10']);
  assert.deepEqual(layout.shapes, []);
  assert.deepEqual(
    layout.annotations.map(({ text }) => text),
    ['closeness to the private pictures (PSNR, dB)', 'gradient distance (logarithmic)'],
  );
});

test('PSNR above, gradient distance below; what has no logarithm is a gap', () => {
  const { traces, layout } = figure(run([1, 200, 6], [2, 0, 7], [3, -1, null], [4, null, 13], [6, 0.05, 14]), THEME);
  const [psnr, loss] = traces;
  assert.deepEqual([psnr.x, psnr.y], [[1, 2, 3, 4, 6], [6, 7, null, 13, 14]]); // prettier-ignore
  assert.deepEqual([loss.x, loss.y], [[1, 2, 3, 4, 6], [200, null, null, null, 0.05]]); // prettier-ignore
  assert.deepEqual([psnr.line.color, loss.line.color], ['orange', 'blue']);
  assert.deepEqual(
    traces.map(({ type, mode, connectgaps, ...rest }) => [type, mode, connectgaps, 'yaxis' in rest ? rest.yaxis : 'y']),
    [
      ['scatter', 'lines', false, 'y'],
      ['scatter', 'lines', false, 'y2'],
    ],
  );
  assert.deepEqual(
    traces.map(({ hovertemplate }) => hovertemplate),
    ['step %{x}: PSNR %{y:.1f} dB<extra></extra>', 'step %{x}: %{y:.3g}<extra></extra>'],
  );
  assert.deepEqual(layout.xaxis.range, [0, 6]);
  assert.deepEqual(layout.yaxis.range, [5, 15], '6 - 0.75 and 14 + 0.75');
  assert.deepEqual(layout.yaxis2.range, [-2, 3], 'from log 0.05 = -1.3 to log 200 = 2.3');
  assert.deepEqual([layout.yaxis2.type, 'type' in layout.yaxis], ['log', false]);
  assert.deepEqual([layout.yaxis.domain, layout.yaxis2.domain], [[0.58, 1], [0, 0.42]]); // prettier-ignore
});

test('a frame without scores is a gap', () => {
  assert.deepEqual(figure(recordOf(frame(1), frame(2, { scores: { psnr: 0 } })), THEME).traces[0].y, [null, 0]);
});

test('while it runs the axis goes as far as planned, or further; afterwards as far as it came', () => {
  const { meta, end } = recorded(); // 300 steps are planned
  const last = (/** @type {ReturnType<typeof recordOf>} */ record) => figure(record, THEME).layout.xaxis.range;
  assert.deepEqual(last(recordOf(meta)), [0, 300].map((step) => step)); // prettier-ignore
  assert.deepEqual(last(recordOf(meta, frame(4, { step: 198 }))), [0, 300]);
  assert.deepEqual(last(recordOf(meta, frame(4, { step: 350 }), frame(5, { step: 20 }))), [0, 350]);
  assert.deepEqual(last(recordOf(meta, frame(4, { step: 198 }), end)), [0, 198]);
  assert.deepEqual(last(recordOf({ ...meta, steps: null }, frame(4, { step: 7 }))), [0, 7]);
  assert.deepEqual(last(recordOf(frame(4, { step: 0 }), end)), [0, 1]);
});

test('the recorded run: all its values, beside a grey picture and the loss by its name', () => {
  const { meta, frames, end } = recorded();
  const { traces, layout } = figure(recordOf(meta, ...frames, end), THEME);
  const steps = frames.map(({ step }) => step);
  assert.deepEqual([traces[0].x, traces[1].x], [steps, steps]);
  assert.deepEqual(
    traces[0].y,
    frames.map(({ scores }) => scores?.psnr),
  );
  assert.deepEqual(
    traces[1].y,
    frames.map(({ loss }) => loss),
  );
  assert.deepEqual(layout.xaxis.range, [0, 198]);
  assert.deepEqual(layout.yaxis.range, [0, 55], 'from 5.3 - 0.75 to 50.6 + 0.75');
  assert.deepEqual(layout.yaxis2.range, [-7, 3], 'from log 4.25e-7 = -6.4 to log 233 = 2.4');
  const grey = 10.894590635550701;
  const [closeness, distance, words] = layout.annotations;
  assert.deepEqual(
    [closeness.text, closeness.y, closeness.font.color],
    ['closeness to the private pictures (PSNR, dB)', 1.01, 'dark orange'],
  );
  assert.deepEqual([distance.text, distance.y, distance.font.color], ['squared gradient distance (logarithmic)', 0.43, 'dark blue']);
  assert.deepEqual([words.text, words.y, words.yref, words.xanchor], ['grey picture', grey, 'y', 'right']);
  assert.deepEqual(
    layout.shapes.map(({ x0, x1, xref, y0, y1, yref, line }) => [x0, x1, xref, y0, y1, yref, line.dash]),
    [[0, 1, 'paper', grey, grey, 'y', 'dash']],
  );
});

test('the grey line is always on the axis', () => {
  const { meta } = recorded();
  assert.deepEqual(figure(recordOf(meta, frame(4, { scores: { psnr: 27 } })), THEME).layout.yaxis.range, [10, 30]);
});

test('the colours and the font are those of the theme', () => {
  const { layout } = figure(recordOf(), THEME);
  assert.deepEqual(layout.font, { family: 'Inter', size: 12, color: 'text' });
  assert.deepEqual([layout.hoverlabel.bgcolor, layout.hoverlabel.bordercolor, layout.xaxis.gridcolor], ['paper', 'line', 'line']);
  assert.equal(layout.yaxis.tickfont.color, 'soft');
  assert.deepEqual(
    [layout.xaxis.title.text, layout.uirevision, layout.dragmode, layout.yaxis.fixedrange],
    ['step of the attack', 'keep', false, true],
  );
});
