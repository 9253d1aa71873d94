// The gradient as strips: the colour of every cell, the words of every row, and what is folded away.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawEmptyLayers, drawLayers, drawSingles, drawStrip, shade } from '../../leakage/ui/components/live/strips.js';
import { brushOf, openPage } from './page.js';

/** @param {import('node:test').TestContext} t */
function place(t) {
  const { document } = openPage(t);
  const host = document.createElement('div');
  document.body.append(host);
  const texts = (/** @type {string} */ selector) => [...host.querySelectorAll(selector)].map((found) => found.textContent);
  return { document, host, texts };
}

const layer = (/** @type {string} */ name, strip = [0, 255]) => ({ name, shape: [12, 3, 5, 5], norm: 4.208423, strip });

test('colours go from dark blue to yellow', () => {
  assert.deepEqual(shade(0), [0x00, 0x22, 0x4e]);
  assert.deepEqual(shade(255), [0xfe, 0xe8, 0x38]);
  assert.deepEqual([shade(-5), shade(300)], [shade(0), shade(255)]);
  assert.deepEqual(shade(85).map(Math.round), [0x57, 0x5d, 0x6d]); // a third of the way: the fourth of ten
  assert.deepEqual(shade(255 / 18).map((value) => value.toFixed(1)), ['9.0', '43.5', '95.0']); // prettier-ignore
});

test('a strip has a cell per level', (t) => {
  const { document } = place(t);
  const canvas = document.createElement('canvas');
  drawStrip(canvas, [255, 0, 85]);
  assert.deepEqual([canvas.width, canvas.height], [3, 1]);
  assert.deepEqual(brushOf(canvas).pixels, [254, 232, 56, 255, 0, 34, 78, 255, 87, 93, 109, 255]);
  drawStrip(canvas, []);
  assert.deepEqual([canvas.width, brushOf(canvas).pixels], [1, [0, 0, 0, 0]]);
});

test('a row tells the layer, its strip and its length', (t) => {
  const { host, texts } = place(t);
  drawLayers(host, [layer('conv1.weight'), layer('conv1.bias', [85]), { name: 'scale', shape: [], norm: null, strip: [] }]);
  assert.deepEqual(texts('.gle-layer-name'), ['conv1', 'conv1 bias', 'scale']);
  assert.deepEqual(texts('.gle-layer-norm'), ['4.2', '4.2', '–']);
  const rows = /** @type {HTMLElement[]} */ ([...host.querySelectorAll('.gle-layer')]);
  assert.deepEqual(rows.map((row) => row.title), ['conv1.weight: 12 × 3 × 5 × 5, length 4.21', 'conv1.bias: 12 × 3 × 5 × 5, length 4.21', 'scale: a number, length –']); // prettier-ignore
  const strips = rows.map((row) => brushOf(row.querySelector('canvas.gle-strip')).pixels);
  assert.deepEqual(strips, [[0, 34, 78, 255, 254, 232, 56, 255], [87, 93, 109, 255], [0, 0, 0, 0]]); // prettier-ignore
});

test('ten layers are shown; of more nine, and the rest is folded', (t) => {
  const { host, texts } = place(t);
  const layers = (/** @type {number} */ count) => Array.from({ length: count }, (_, number) => layer(`fc${number + 1}.weight`));
  drawLayers(host, layers(10));
  assert.deepEqual([host.childElementCount, texts('summary')], [10, []]);
  drawLayers(host, layers(12));
  assert.deepEqual([host.childElementCount, texts('summary')], [10, ['3 more layers']]);
  assert.deepEqual(texts('details.gle-more .gle-layer-name'), ['fc10', 'fc11', 'fc12']);
  assert.equal(/** @type {HTMLElement} */ (host.children[8]).textContent, 'fc94.2');
  drawLayers(host, []);
  assert.equal(host.childElementCount, 0);
});

test('before a network is known eight rows keep its room, without words', (t) => {
  const { host } = place(t);
  drawEmptyLayers(host);
  assert.equal(host.childElementCount, 8);
  assert.equal(host.textContent, '');
  assert.ok([...host.children].every((row) => !(/** @type {HTMLElement} */ (row).title)));
});

test('the single gradients add up: a plus before all but the first, eight at most', (t) => {
  const { host, texts } = place(t);
  drawSingles(host, [[0], [255], [85]]);
  assert.deepEqual(texts('.gle-single-row span'), ['', '+', '+']);
  assert.deepEqual(brushOf(host.querySelectorAll('canvas')[1]).pixels, [254, 232, 56, 255]);
  assert.deepEqual(texts('p'), []);
  drawSingles(host, Array(8).fill([1]));
  assert.deepEqual([texts('.gle-single-row').length, texts('p')], [8, []]);
  drawSingles(host, Array(11).fill([1]));
  assert.deepEqual([texts('.gle-single-row').length, texts('p.gle-small')], [8, ['+ 3 more']]);
});
