// The curves on the page: when they are drawn, where the cursor stands, and what a press on them picks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find } from '../../leakage/ui/components/dom.js';
import { newRecord, take } from '../../leakage/ui/components/live/record.js';
import { NOTHING, openPage, settle } from './page.js';
import { frame, recorded } from './recorded.js';

/** @typedef {{ name: string, traces?: any, layout?: any, still?: any }} Call */

/** A Plotly that writes down what is asked of it. */
function plotlyOf() {
  /** @type {Call[]} */
  const calls = [];
  const react = async (/** @type {any} */ _area, /** @type {any} */ traces, /** @type {any} */ layout, /** @type {any} */ still) =>
    void calls.push({ name: 'react', traces, layout, still });
  const resize = async () => void calls.push({ name: 'resize' });
  return { calls, react, purge: () => calls.push({ name: 'purge' }), Plots: { resize } };
}

/** The place of the drawing in the element: a step is two pixels wide, a decibel one pixel high, the loss ten. */
const AXES = {
  xaxis: { _offset: 40, _length: 200, d2p: (/** @type {number} */ step) => 2 * step, p2d: (/** @type {number} */ pixel) => pixel / 2 },
  yaxis: { _offset: 22, _length: 100, d2p: (/** @type {number} */ psnr) => 100 - psnr },
  yaxis2: { _offset: 160, _length: 80, d2p: (/** @type {number} */ loss) => 80 - 10 * loss },
};

let copies = 0;

/**
 * Curves of a page that has been open for a second, with their own copy of the module: it keeps what it has loaded.
 * @param {import('node:test').TestContext} test
 * @param {{ loaded?: boolean }} [way] whether Plotly is here already
 */
async function curvesOf(test, { loaded = true } = {}) {
  const page = openPage(test);
  const plotly = plotlyOf();
  page.replace(globalThis, 'Plotly', { value: loaded ? plotly : undefined, writable: true });
  /** @type {HTMLScriptElement[]} the scripts on the page */
  const scripts = [];
  const append = (/** @type {HTMLScriptElement} */ script) => {
    scripts.push(script);
    script.remove = () => void scripts.splice(scripts.indexOf(script), 1);
  };
  page.replace(page.document.head, 'append', { value: append });
  const template = /** @type {HTMLTemplateElement} */ (find(page.component('live'), 'template'));
  const host = /** @type {HTMLElement} */ (find(template.content, '.gle-plot').cloneNode(true));
  page.document.body.append(host);
  await page.tick(1000);
  const address = `../../leakage/ui/components/live/curves.js?copy=${(copies += 1)}`;
  /** @type {typeof import('../../leakage/ui/components/live/curves.js')} */
  const { Curves } = await import(address);
  /** @type {number[]} */
  const picked = [];
  const curves = new Curves(host, '/base', (step) => picked.push(step));
  const record = newRecord('r');
  const draws = () => plotly.calls.filter(({ name }) => name === 'react');
  const draw = async () => {
    curves.update(record);
    await page.tick(250);
    Object.assign(curves.area, { _fullLayout: AXES });
  };
  const marks = () => [curves.cursor, curves.dots.psnr, curves.dots.loss].map((mark) => (mark.hidden ? '' : mark.style.transform));
  return { page, plotly, scripts, host, Curves, curves, record, picked, draws, draw, marks };
}

test('Plotly is loaded once for all curves, then they are drawn', async (t) => {
  const { page, plotly, scripts, host, Curves, curves, record, draws } = await curvesOf(t, { loaded: false });
  const other = new Curves(/** @type {HTMLElement} */ (host.cloneNode(true)), '/base', () => {});
  curves.update(record);
  other.update(record);
  await page.tick(0);
  assert.deepEqual(
    scripts.map((script) => script.getAttribute('src')),
    ['/base/api/plotly.min.js'],
  );
  assert.equal(draws().length, 0);
  Object.assign(globalThis, { Plotly: plotly });
  scripts[0].onload?.(/** @type {any} */ (null));
  await settle();
  assert.equal(draws().length, 2);
  assert.deepEqual(draws()[0].still, { displayModeBar: false, responsive: false, doubleClick: false, showTips: false });
});

test('where Plotly is here, nothing is loaded', async (t) => {
  const { scripts, draw, draws } = await curvesOf(t);
  await draw();
  assert.deepEqual([scripts.length, draws().length], [0, 1]);
});

test('a script that did not come is told, asked for again with the next news, and forgotten when it comes', async (t) => {
  const { page, plotly, scripts, host, curves, record, draws } = await curvesOf(t, { loaded: false });
  curves.update(record);
  await page.tick(0);
  scripts[0].onerror?.('');
  await settle();
  assert.deepEqual([host.classList.contains('gle-no-curves'), scripts.length], [true, 0]);
  curves.update(record);
  await page.tick(250);
  scripts[0].onload?.(/** @type {any} */ (null)); // it came, but it was something else
  await settle();
  assert.deepEqual([host.classList.contains('gle-no-curves'), scripts.length, draws().length], [true, 0, 0]);
  curves.update(record);
  await page.tick(250);
  Object.assign(globalThis, { Plotly: plotly });
  scripts[0].onload?.(/** @type {any} */ (null));
  await settle();
  assert.deepEqual([host.classList.contains('gle-no-curves'), draws().length], [false, 1]);
});

test('the recorded run is drawn with all its values', async (t) => {
  const { host, record, draw, draws } = await curvesOf(t);
  await draw();
  assert.equal(host.classList.contains('gle-drawn'), false, 'no values yet');
  const { meta, frames } = recorded();
  for (const event of [meta, ...frames]) take(record, event);
  await draw();
  const [, { traces, layout }] = draws();
  assert.deepEqual([traces[0].x.length, traces[0].x[96], traces[1].y[0]], [97, 198, frames[0].loss]);
  assert.deepEqual([layout.xaxis.range, layout.font.color], [[0, 300], 'rgb(255,255,255)']); // prettier-ignore
  assert.equal(host.classList.contains('gle-drawn'), true);
});

test('at once, and then every 250 ms at most, with the newest values', async (t) => {
  const { page, curves, record, draws } = await curvesOf(t);
  curves.update(newRecord('older'));
  curves.update(record);
  assert.equal(page.open.timers, 1);
  await page.tick(0);
  assert.equal(draws().length, 1);
  for (let seq = 1; seq < 4; seq += 1) {
    take(record, frame(seq));
    curves.update(record);
  }
  assert.equal(page.open.timers, 1);
  await page.tick(249);
  assert.equal(draws().length, 1);
  await page.tick(1);
  assert.deepEqual([draws().length, draws()[1].traces[0].x], [2, [1, 2, 3]]);
  await page.tick(1000);
  assert.equal(draws().length, 2, 'no news, no drawing');
  curves.update(record);
  await page.tick(0);
  assert.equal(draws().length, 3);
});

test('where a redraw takes long, the next waits ten times as long: the attack may need the core', async (t) => {
  const { page, plotly, curves, record, draws } = await curvesOf(t);
  const { react } = plotly;
  plotly.react = async (area, traces, layout, still) => {
    page.now += 60;
    await react(area, traces, layout, still);
  };
  curves.update(record);
  await page.tick(0);
  curves.update(record);
  await page.tick(599);
  assert.equal(draws().length, 1);
  await page.tick(1);
  assert.equal(draws().length, 2);
});

test('the cursor stands at the step through both curves, the dots at the values', async (t) => {
  const { curves, draw, marks } = await curvesOf(t);
  await draw();
  const at = /** @type {any} */ ({ step: 30, loss: 0.5, scores: { psnr: 20 } });
  curves.place(at);
  assert.deepEqual(marks(), ['translateX(100.0px)', 'translate(100.0px, 102.0px)', 'translate(100.0px, 235.0px)']);
  assert.deepEqual([curves.cursor.style.top, curves.cursor.style.height], ['22px', '218px'], 'from 22 to 160 + 80');
  curves.place({ ...at, step: 30.26, loss: 0, scores: {} });
  assert.deepEqual(marks(), ['translateX(100.5px)', '', ''], 'zero has no logarithm');
  curves.place({ ...at, loss: null, scores: { psnr: 0 } });
  assert.deepEqual(marks(), ['translateX(100.0px)', 'translate(100.0px, 122.0px)', '']);
  for (const none of [null, undefined, { ...at, step: null }]) {
    curves.place(at);
    curves.place(none);
    assert.deepEqual(marks(), ['', '', '']);
  }
});

test('a frame that was placed before anything is drawn has its cursor afterwards', async (t) => {
  const { curves, draw, marks } = await curvesOf(t);
  curves.place(/** @type {any} */ ({ step: 10, loss: 1, scores: {} }));
  assert.deepEqual(marks(), ['', '', '']);
  await draw();
  await draw();
  assert.deepEqual(marks(), ['translateX(60.0px)', '', 'translate(60.0px, 230.0px)']);
  curves.place(/** @type {any} */ ({ step: 20, loss: 1, scores: {} }));
  await draw();
  assert.equal(marks()[0], 'translateX(80.0px)', 'drawn anew, it stays where it was put last');
  curves.place(null);
  await draw();
  assert.deepEqual(marks(), ['', '', '']);
});

test('a press or a drag picks the step under it, up to 12 pixels beside the axis', async (t) => {
  const { page, host, curves, draw, picked } = await curvesOf(t);
  const press = (/** @type {number} */ clientX, type = 'pointerdown', more = {}) =>
    page.fire(host, type, { clientX, button: 0, buttons: 1, ...more });
  press(100);
  assert.deepEqual(picked, [], 'nothing is drawn');
  await draw();
  page.lay(curves.area, { left: 10 }); // the axis begins at 10 + 40
  [50, 51, 150, 250, 38.1, 261.9, 38, 262].forEach((clientX) => press(clientX));
  assert.deepEqual(picked, [0, 0.5, 50, 100, 0, 100]);
  press(70, 'pointermove', { button: -1 });
  press(72, 'pointermove', { button: -1, buttons: 0 });
  press(74, 'pointermove', { button: -1, buttons: 2 });
  press(76, 'pointermove', { button: -1, buttons: 3 });
  press(78, 'pointerdown', { button: 2, buttons: 2 });
  assert.deepEqual(picked.slice(6), [10, 13]);
  curves.area.addEventListener('pointerdown', (event) => event.stopPropagation());
  page.fire(curves.area, 'pointerdown', { clientX: 90, button: 0, buttons: 1 });
  assert.deepEqual(picked.slice(8), [20], 'also where Plotly keeps the press for itself');
});

test('another size: drawn anew and the cursor put right, if there is anything to see', async (t) => {
  const { page, plotly, host, curves, draw, marks } = await curvesOf(t);
  const resized = () => plotly.calls.filter(({ name }) => name === 'resize').length;
  assert.deepEqual(
    [...page.observers].map((watched) => [...watched]),
    [[host]],
  );
  page.lay(host, { clientWidth: 300 });
  page.resize();
  assert.equal(resized(), 0, 'nothing is drawn');
  await draw();
  curves.place(/** @type {any} */ ({ step: 10, loss: 1, scores: {} }));
  Object.assign(curves.area, { _fullLayout: { ...AXES, xaxis: { ...AXES.xaxis, _offset: 50 } } });
  page.resize();
  await settle();
  assert.deepEqual([resized(), marks()[0]], [1, 'translateX(70.0px)']);
  page.lay(host, { clientWidth: 0 });
  page.resize();
  assert.equal(resized(), 1, 'hidden');
  page.lay(host, { clientWidth: 300 });
  plotly.Plots.resize = () => Promise.reject(new Error('no'));
  page.resize();
  await settle();
});

test('the curves say what they show when asked', async (t) => {
  const { host, curves, record, draw } = await curvesOf(t);
  curves.describe();
  assert.equal(host.getAttribute('aria-label'), 'Curves: no values yet');
  take(record, frame(3, { loss: 0.5, scores: { psnr: 6 } }));
  await draw();
  assert.equal(host.getAttribute('aria-label'), 'Curves: no values yet');
  curves.describe();
  assert.equal(host.getAttribute('aria-label'), 'Curves over 3 steps: gradient distance from 0.5 to 0.5, PSNR from 6.0 dB to 6.0 dB.');
});

test('gone: nothing is drawn, watched or picked any more, and Plotly lets go', async (t) => {
  const { page, plotly, host, curves, record, draw, draws, picked } = await curvesOf(t);
  await draw();
  page.lay(host, { clientWidth: 300 });
  curves.update(record);
  const [watched] = page.observers;
  curves.destroy();
  assert.deepEqual(page.open, NOTHING);
  assert.deepEqual(
    plotly.calls.map(({ name }) => name),
    ['react', 'purge'],
  );
  page.fire(host, 'pointerdown', { clientX: 100, button: 0, buttons: 1 });
  /** @type {any} */ (watched).changed();
  await page.tick(1000);
  assert.deepEqual([draws().length, plotly.calls.length, picked], [1, 2, []]); // prettier-ignore
});

test('gone before Plotly came: nothing is drawn', async (t) => {
  const { page, plotly, scripts, curves, record } = await curvesOf(t, { loaded: false });
  curves.update(record);
  await page.tick(0);
  curves.destroy();
  Object.assign(globalThis, { Plotly: plotly });
  scripts[0].onload?.(/** @type {any} */ (null));
  await settle();
  assert.deepEqual(plotly.calls, []);
});
