// The gradient as horizontal strips: 64 cells each, coloured by size with cividis (perceptually uniform, safe for colour-blind eyes).
import { element } from '../dom.js';
import { clamp, short } from './words.js';

const CIVIDIS = ['00224e', '123570', '3b496c', '575d6d', '707173', '8a8678', 'a59c74', 'c3b369', 'e1cc55', 'fee838'].map((hex) =>
  [0, 2, 4].map((start) => parseInt(hex.slice(start, start + 2), 16)),
);
const LAYERS_SHOWN = 10;
const SINGLES_SHOWN = 8;

/** @typedef {import('./events.js').ReceivedLayer} Layer */

/**
 * The colour of a level from 0 to 255, as [red, green, blue].
 * @param {number} level
 */
export function shade(level) {
  const place = clamp(level / 255, 0, 1) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(place), CIVIDIS.length - 2);
  return CIVIDIS[low].map((value, channel) => value + (CIVIDIS[low + 1][channel] - value) * (place - low));
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} levels
 */
export function drawStrip(canvas, levels) {
  canvas.width = Math.max(1, levels.length);
  canvas.height = 1;
  const context = canvas.getContext('2d');
  if (!context) return;
  const image = context.createImageData(canvas.width, 1);
  levels.forEach((level, cell) => image.data.set([...shade(level), 255], 4 * cell));
  context.putImageData(image, 0, 0);
}

/** @param {Layer} layer */
function stripRow({ name, shape, norm, strip }) {
  const row = element('div', 'gle-layer');
  const canvas = element('canvas', 'gle-strip');
  drawStrip(canvas, strip ?? []);
  if (name) row.title = `${name}: ${(shape ?? []).join(' × ') || 'a number'}, length ${short(norm)}`;
  const words = name.replace(/\.weight$/, '').replace(/\.bias$/, ' bias');
  row.append(element('span', 'gle-layer-name', words), canvas, element('span', 'gle-layer-norm', name ? short(norm, 2) : ''));
  return row;
}

/**
 * @param {HTMLElement} host
 * @param {Layer[]} layers
 */
export function drawLayers(host, layers) {
  const rows = layers.map(stripRow);
  const rest = rows.splice(layers.length > LAYERS_SHOWN ? LAYERS_SHOWN - 1 : LAYERS_SHOWN);
  host.replaceChildren(...rows);
  if (!rest.length) return;
  const more = element('details', 'gle-more');
  more.append(element('summary', '', `${rest.length} more layers`), ...rest);
  host.append(more);
}

/**
 * Rows without names or values: the room that a network will take.
 * @param {HTMLElement} host
 */
export const drawEmptyLayers = (host) =>
  drawLayers(
    host,
    Array.from({ length: 8 }, () => ({ name: '', shape: [], norm: null, strip: [] })),
  );

/**
 * The gradients of the single pictures: thin, dimmed rows with plus signs that lead into the one sum.
 * @param {HTMLElement} host
 * @param {number[][]} singles
 */
export function drawSingles(host, singles) {
  const rows = singles.slice(0, SINGLES_SHOWN).map((levels, place) => {
    const row = element('div', 'gle-single-row');
    const canvas = element('canvas', 'gle-strip');
    drawStrip(canvas, levels);
    row.append(element('span', '', place ? '+' : ''), canvas);
    return row;
  });
  host.replaceChildren(...rows);
  if (singles.length > SINGLES_SHOWN) host.append(element('p', 'gle-small', `+ ${singles.length - SINGLES_SHOWN} more`));
}
