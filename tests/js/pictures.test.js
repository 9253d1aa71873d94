// Contact sheets and tiles: which part of which sheet stands in which tile, and what is said of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { captionTile, columnsFor, drawSheet, layPairs, layTiles, loadImage, Sheets } from '../../leakage/ui/components/live/pictures.js';
import { brushOf, openPage } from './page.js';

/** @param {import('node:test').TestContext} t */
function grids(t) {
  const page = openPage(t);
  const { document } = page;
  document.body.innerHTML = '<div id="run"><div class="gle-scene"><i class="gle-tiles"></i><i class="gle-tiles"></i></div></div>';
  const [grid, other] = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('.gle-tiles')]);
  return { page, grid, other, root: /** @type {HTMLElement} */ (document.querySelector('#run')) };
}

test('each sheet is asked for once, and is ready when it has come', async (t) => {
  const { page } = grids(t);
  page.serve = () => undefined;
  const sheets = new Sheets((seq) => `/frames/${seq}.png`);
  assert.equal(sheets.busy, 0);
  const first = sheets.fetch(4);
  assert.equal(sheets.fetch(4), first);
  sheets.fetch(5);
  assert.deepEqual([page.asked, sheets.busy, sheets.ready.has(4)], [['/frames/4.png', '/frames/5.png'], 2, false]);
  page.awaited.get('/frames/5.png')?.({ width: 8, height: 8 });
  await page.tick();
  assert.deepEqual([sheets.busy, [...sheets.ready.keys()], sheets.ready.get(5)?.getAttribute('src')], [1, [5], '/frames/5.png']);
  page.awaited.get('/frames/4.png')?.({ width: 8, height: 8 });
  assert.equal((await first).getAttribute('src'), '/frames/4.png');
  assert.equal(sheets.busy, 0);
});

test('a picture is there when it is decoded, and one that is gone is refused', async (t) => {
  const { page } = grids(t);
  page.serve = (address) => (address === '/gone.png' ? null : { width: 64, height: 32 });
  const image = await loadImage('/here.png');
  assert.deepEqual([image.naturalWidth, image.naturalHeight, image.getAttribute('src')], [64, 32, '/here.png']);
  await assert.rejects(loadImage('/gone.png'));
});

test('columns for so many pictures', () => {
  const counts = [0, 1, 2, 4, 5, 9, 10, 16, 17, 25, 26, 36, 37, 64, 65, 128];
  assert.deepEqual(counts.map(columnsFor), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 8]);
});

test('tiles are empty canvases with their captions, in classes by their number', (t) => {
  const { grid } = grids(t);
  layTiles(grid, 2, [{ text: 'Astronaut', mark: 'right', label: 'Astronaut, class person', detail: '12.3 dB' }]);
  const [first, second] = /** @type {HTMLElement[]} */ ([...grid.children]);
  assert.deepEqual([first.tagName, first.className, first.title], ['FIGURE', 'gle-tile gle-empty', 'Astronaut, class person, 12.3 dB']);
  const canvas = /** @type {HTMLCanvasElement} */ (first.querySelector('canvas'));
  assert.deepEqual([canvas.width, canvas.height, canvas.getAttribute('role')], [32, 32, 'img']);
  assert.equal(canvas.getAttribute('aria-label'), 'Astronaut, class person');
  assert.equal(first.querySelector('figcaption')?.innerHTML, '<span class="">Astronaut</span><small class="">12.3 dB</small>');
  assert.equal(first.querySelector('figcaption')?.dataset.mark, 'right');
  assert.equal(second.querySelector('figcaption')?.textContent, '');
  const look = (/** @type {number} */ count) => {
    layTiles(grid, count, []);
    const names = ['single', 'many', 'crowd'].filter((name) => grid.classList.contains(`gle-${name}`));
    return [grid.childElementCount, grid.style.getPropertyValue('--gle-columns'), ...names];
  };
  assert.deepEqual(look(1), [1, '1', 'single']);
  assert.deepEqual(look(9), [9, '3']);
  assert.deepEqual(look(10), [10, '4', 'many']);
  assert.deepEqual(look(36), [36, '6', 'many']);
  assert.deepEqual(look(37), [37, '7', 'many', 'crowd']);
});

test('a grid of the same size keeps its tiles and what is on them, with new captions', (t) => {
  const { grid } = grids(t);
  layTiles(grid, 3, [{ text: 'a' }, { text: 'b' }, { text: 'c' }]);
  const before = [...grid.children];
  layTiles(grid, 3, [{ text: 'x' }, { text: 'b' }]);
  assert.deepEqual([...grid.children], before);
  assert.deepEqual(before.map((tile) => tile.querySelector('figcaption')?.textContent), ['x', 'b', '']); // prettier-ignore
  layTiles(grid, 2, []);
  assert.ok(!before.includes(grid.children[0]));
});

test('a caption changes with each of its parts, also with what only a screen reader says', (t) => {
  const { grid } = grids(t);
  layTiles(grid, 1, []);
  const tile = /** @type {HTMLElement} */ (grid.firstElementChild);
  const canvas = /** @type {Element} */ (tile.firstElementChild);
  const caption = /** @type {HTMLElement} */ (tile.lastElementChild);
  captionTile(tile, { text: '', label: 'not reconstructed yet' });
  assert.equal(canvas.getAttribute('aria-label'), 'not reconstructed yet');
  captionTile(tile, { text: '', label: 'Reconstruction of Astronaut' });
  assert.deepEqual([canvas.getAttribute('aria-label'), tile.title], ['Reconstruction of Astronaut', 'Reconstruction of Astronaut']);
  captionTile(tile, { text: 'cat', mark: 'wrong' });
  assert.deepEqual([caption.textContent, caption.dataset.mark, canvas.getAttribute('aria-label')], ['cat', 'wrong', 'cat']);
  captionTile(tile, { text: 'cat', mark: 'right' });
  assert.equal(caption.dataset.mark, 'right');
  captionTile(tile, { text: 'cat', mark: 'right', detail: '9.0 dB' });
  assert.deepEqual([caption.textContent, tile.title], ['cat9.0 dB', 'cat, 9.0 dB']);
  const before = caption.firstChild;
  captionTile(tile, { text: 'cat', mark: 'right', detail: '9.0 dB' });
  assert.equal(caption.firstChild, before);
});

test('a sheet is cut into the tiles, from left to right, in native pixels', async (t) => {
  const { page, grid } = grids(t);
  layTiles(grid, 3, []);
  page.serve = () => ({ width: 84, height: 28 });
  drawSheet(await loadImage('/frames/7.png'), grid);
  const drawn = [...grid.querySelectorAll('canvas')].map((canvas) => brushOf(canvas).drawn);
  const at = (/** @type {number} */ left) => [{ source: '/frames/7.png', cut: [left, 0, 28, 28, 0, 0, 28, 28], size: [28, 28] }];
  assert.deepEqual(drawn, [at(0), at(28), at(56)]);
  assert.equal(grid.querySelectorAll('.gle-empty').length, 0);
});

test('pairs stand in rows of two, in as many columns as fit', (t) => {
  const { grid, other, root } = grids(t);
  const lay = (/** @type {number} */ count) => {
    for (const tiles of [grid, other]) layTiles(tiles, count, []);
    layPairs(root, count);
    const { style } = /** @type {HTMLElement} */ (root.firstElementChild);
    const said = ['narrow', 'narrow-rows', 'wide', 'wide-rows'].map((name) => style.getPropertyValue(`--gle-${name}`));
    return [root.classList.contains('gle-paired'), ...said];
  };
  assert.deepEqual(lay(4), [false, '4', '2', '8', '2']);
  assert.deepEqual(lay(5), [true, '4', '4', '8', '2']);
  assert.deepEqual(lay(16), [true, '4', '8', '8', '4']);
  const row = (/** @type {number} */ place, width = 'narrow') =>
    [grid, other].map((tiles) => /** @type {HTMLElement} */ (tiles.children[place]).style.getPropertyValue(`--gle-${width}-row`));
  assert.deepEqual([row(0), row(3), row(4), row(15)], [['0', '0'], ['0', '0'], ['2', '2'], ['6', '6']]); // prettier-ignore
  assert.deepEqual([row(7, 'wide'), row(8, 'wide')], [['0', '0'], ['2', '2']]); // prettier-ignore
  assert.deepEqual(lay(17), [true, '6', '6', '11', '4']);
  assert.deepEqual(lay(37), [true, '10', '8', '16', '6']);
  assert.equal(lay(1)[0], false);
});
