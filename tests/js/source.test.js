// Where the reader's data come from: the program's routes, or the scripts of a folder.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sourceOf } from '../../leakage/ui/components/reader/source.js';
import { openPage } from './page.js';

const PROGRAM = { base: '/gle', data: '/gle/api/learn/v', own: '/gle/api/own/own.0.js', lessons: [] };
const FOLDER = { base: '', data: '', own: 'own.0.js', folder: true, lessons: [] };

/** @param {HTMLAnchorElement} made */
const read = (made) => [made.getAttribute('href'), made.textContent];

test('with the program everything lies below its routes', async (t) => {
  const page = openPage(t);
  /** @type {string[]} */
  const asked = [];
  page.replace(globalThis, 'fetch', {
    value: async (/** @type {string} */ address) => {
      asked.push(address);
      return { ok: !address.includes('99'), status: 404, json: async () => ({ id: 'x' }) };
    },
  });
  const source = sourceOf(PROGRAM);
  assert.deepEqual(await source.lesson('07-noise'), { id: 'x' });
  await assert.rejects(source.lesson('99-none'), /99-none\.json: 404/);
  assert.deepEqual(asked, ['/gle/api/learn/v/lessons/07-noise.json', '/gle/api/learn/v/lessons/99-none.json']);
  assert.equal(source.picture('runs', 'r09'), '/gle/api/learn/v/runs/r09.webp');
  assert.deepEqual(read(source.lab('v=1', 'Open')), ['/gle/?v=1', 'Open']);
  assert.deepEqual(read(source.lab(null, 'Open')), ['/gle/', 'Open']);
  assert.equal(source.own, '/gle/api/own/own.0.js');
  assert.equal(source.handout('index'), '/gle/learn/worksheets/index.html');
  assert.deepEqual(source.slides('r09').map(read), [
    ['/gle/api/learn/v/slides/r09.png', 'Slide (PNG)'],
    ['/gle/api/learn/v/slides/r09.gif', 'Animation (GIF)'],
  ]);
});

test('in a folder everything lies beside the page, and a link to the Lab says what it needs', (t) => {
  openPage(t);
  const source = sourceOf(FOLDER);
  assert.equal(source.picture('grids', 'g07'), 'grids/g07.webp');
  assert.deepEqual(read(source.lab('v=1', 'Open')), ['program.html?v=1', 'Open (needs the program: two commands)']);
  assert.equal(source.own, 'own.0.js');
  assert.equal(source.handout('07-noise'), 'worksheets/07-noise.html');
  assert.deepEqual(source.slides('r09').map(read), [['slides/r09.png', 'Slide (PNG)']]);
});

test('a lesson of a folder is what its script hands over; one that does not come, or brings nothing, fails', async (t) => {
  const page = openPage(t);
  const source = sourceOf(FOLDER);
  t.after(() => Reflect.deleteProperty(globalThis, 'gle'));
  /** @type {HTMLElement[]} */
  const scripts = [];
  page.replace(page.document.head, 'append', { value: (/** @type {HTMLElement} */ script) => scripts.push(script) });
  const coming = source.lesson('07-noise');
  assert.equal(scripts[0].getAttribute('src'), 'data/07-noise.js');
  /** @type {any} */ (globalThis).gle.data('lessons/07-noise', { id: '07-noise' });
  page.fire(scripts[0], 'load');
  assert.deepEqual(await coming, { id: '07-noise' });
  const empty = source.lesson('08-empty');
  page.fire(scripts[1], 'load');
  await assert.rejects(empty, /brought nothing/);
  const gone = source.lesson('09-gone');
  page.fire(scripts[2], 'error');
  await assert.rejects(gone, /There is no data\/09-gone\.js/);
});
