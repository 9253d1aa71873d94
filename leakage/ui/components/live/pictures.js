// Contact sheets and tiles: a sheet holds all pictures of a batch in one row; every tile is a canvas in native pixels.
import { childrenOf, element, find } from '../dom.js';

const PAIRS_FROM = 5; // pictures: each private one stands above its guess, so that nobody has to look for its twin

/** @typedef {{ text?: string, mark?: string, label?: string, detail?: string }} Caption */

/** Decoded sheets by sequence number, so that showing one is a copy between canvases and never flickers. */
export class Sheets {
  /** @param {(seq: number) => string} address */
  constructor(address) {
    this.address = address;
    /** @type {Map<number, Promise<HTMLImageElement>>} */
    this.waiting = new Map();
    /** @type {Map<number, HTMLImageElement | null>} */
    this.ready = new Map(); // null: it is gone from the server
  }

  /**
   * @param {number} seq
   * @returns {Promise<HTMLImageElement>}
   */
  fetch(seq) {
    const asked = this.waiting.get(seq);
    if (asked) return asked;
    const loaded = loadImage(this.address(seq)).then((image) => {
      this.ready.set(seq, image);
      return image;
    });
    this.waiting.set(seq, loaded);
    return loaded;
  }

  get busy() {
    return this.waiting.size - this.ready.size;
  }
}

/**
 * The address of the private pictures of a run.
 * @param {string} run
 */
export const privateOf = (run) => `/api/runs/${encodeURIComponent(run)}/private.png`;

/** @param {string} address */
export async function loadImage(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

/** @param {number} count */
export function columnsFor(count) {
  if (count <= 1) return 1;
  if (count <= 4) return 2;
  if (count <= 9) return 3;
  return count <= 16 ? 4 : Math.min(8, Math.ceil(Math.sqrt(count)));
}

/**
 * Make `count` empty tiles; an unchanged grid is kept as it is, so that nothing jumps when a run follows another.
 * @param {HTMLElement} grid
 * @param {number} count
 * @param {Caption[]} captions
 */
export function layTiles(grid, count, captions) {
  grid.style.setProperty('--gle-columns', String(columnsFor(count)));
  grid.classList.toggle('gle-single', count === 1);
  grid.classList.toggle('gle-many', count > 9);
  grid.classList.toggle('gle-crowd', count > 36);
  if (grid.childElementCount !== count) grid.replaceChildren(...Array.from({ length: count }, emptyTile));
  childrenOf(grid).forEach((tile, place) => captionTile(tile, captions[place] ?? {}));
}

function emptyTile() {
  const tile = element('figure', 'gle-tile gle-empty');
  const canvas = element('canvas', '');
  canvas.width = canvas.height = 32;
  canvas.setAttribute('role', 'img');
  tile.append(canvas, element('figcaption', ''));
  return tile;
}

/**
 * Where the pairs of `count` pictures stand: columns and rows on a narrow and on a wide screen, for the style sheet.
 * @param {HTMLElement} root
 * @param {number} count
 */
export function layPairs(root, count) {
  const scene = find(root, '.gle-scene');
  const columns = { narrow: count > 36 ? 10 : count > 16 ? 6 : 4, wide: count > 36 ? 16 : count > 16 ? 11 : 8 };
  root.classList.toggle('gle-paired', count >= PAIRS_FROM);
  for (const [width, across] of Object.entries(columns)) {
    scene.style.setProperty(`--gle-${width}`, String(across));
    scene.style.setProperty(`--gle-${width}-rows`, String(2 * Math.ceil(count / across)));
    for (const grid of scene.querySelectorAll('.gle-tiles')) {
      childrenOf(grid).forEach((tile, place) => tile.style.setProperty(`--gle-${width}-row`, String(2 * Math.floor(place / across))));
    }
  }
}

/**
 * `text` stands under the tile, `mark` is right or wrong (a sign and a colour), `label` is what a screen reader says.
 * @param {HTMLElement} tile
 * @param {Caption} caption
 */
export function captionTile(tile, { text = '', mark = '', label = text, detail = '' }) {
  const [canvas, caption] = childrenOf(tile);
  const key = JSON.stringify([text, mark, label, detail]);
  if (caption.dataset.key === key) return;
  caption.dataset.key = key;
  caption.dataset.mark = mark;
  caption.replaceChildren(element('span', '', text), element('small', '', detail));
  canvas.setAttribute('aria-label', label);
  tile.title = [label, detail].filter(Boolean).join(', ');
}

/**
 * Cut a sheet, or one row of several, into the tiles of a grid.
 * @param {HTMLImageElement} image
 * @param {HTMLElement} grid
 * @param {{ top: number, height: number, width?: number }} [row] `width` of all its tiles, where it does not fill the sheet
 */
export function drawSheet(image, grid, { top, height, width: across = image.naturalWidth } = { top: 0, height: image.naturalHeight }) {
  const width = Math.round(across / grid.childElementCount);
  childrenOf(grid).forEach((tile, place) => {
    const canvas = /** @type {HTMLCanvasElement} */ (tile.firstElementChild);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    canvas.getContext('2d')?.drawImage(image, place * width, top, width, height, 0, 0, width, height);
    tile.classList.remove('gle-empty');
  });
}
