// The choices of a class as numbers: along which settings, where dots stand beside each other, and medians. No access to the page.
import { isNumber } from '../live/words.js';
import { axisOf, placesOf } from '../reader/whatif.js';

const TONES = 4; // colours of a chart
const SIGNS = 5; // that are told apart
const MEDIAN = 5; // dots of a place, at least, for a median
export const BAND = 0.84; // of a column's width: what dots may cover
const STRIDE = 0.7548776662466927; // of the one-dimensional part of the sequence R2 (Roberts 2018)

/**
 * @typedef {import('../reader/whatif.js').Grid} Grid
 * @typedef {object} Choice the phones that chose one cell
 * @property {number} cell
 * @property {number} count
 * @property {number} column the value of the knob along which is plotted
 * @property {number} group the value of the knob that gives the colour, or 0
 * @property {number} sign the value of the knob that gives the sign, or 0
 * @property {number} psnr dB
 * @typedef {Choice & { left: number, top: number, band: number }} Spot the middle of its height, and the part of its column; pixels
 * @typedef {{ name: string, spots: Spot[], half: number }} Heap choices with one button, from the top; `half` of the least height, pixels
 */

/**
 * The knobs of a plot, -1 for none: along which choices are plotted, and which give the colour and the sign. The first two are as the grid
 * says; else numbers, or the knob with the most values, and the last other knob of at most four values. The sign is the last that is left.
 * @param {Grid} grid
 */
export function classAxes(grid) {
  const { knobs, plot } = grid;
  const sizes = knobs.map(({ values }) => values.length);
  const found = axisOf(grid);
  const x = found < 0 ? sizes.indexOf(Math.max(...sizes)) : found;
  const last = (/** @type {number} */ most, /** @type {number[]} */ taken) =>
    sizes.map((size, knob) => !taken.includes(knob) && size > 1 && size <= most).lastIndexOf(true);
  const colour = plot ? knobs.findIndex(({ name }) => name === plot.colour) : last(TONES, [x]);
  return { x, colour, sign: last(SIGNS, [x, colour]) };
}

/**
 * The choices with a recorded result, by cell.
 * @param {Grid} grid
 * @param {Record<string, number>} dots cell -> phones
 * @returns {Choice[]}
 */
export function choicesOf(grid, dots) {
  const { x, colour, sign } = classAxes(grid);
  return Object.entries(dots)
    .map(([name, count]) => ({ cell: Number(name), count, psnr: grid.cells[Number(name)]?.answer?.scores.psnr ?? NaN }))
    .filter(({ count, psnr }) => count > 0 && isNumber(psnr))
    .map(({ cell, count, psnr }) => {
      const places = placesOf(grid.knobs, cell);
      return { cell, count, column: places[x], group: places[colour] ?? 0, sign: places[sign] ?? 0, psnr };
    })
    .sort((one, other) => one.cell - other.cell);
}

/**
 * Where the dots of a choice stand within a column, as parts of its width from its middle: always the same, and never all in one place.
 * @param {number} count
 * @param {number} group
 * @param {number} groups
 */
export function jitter(count, group, groups) {
  const band = BAND / groups;
  const left = -BAND / 2 + band * group;
  return Array.from({ length: count }, (_, dot) => left + band * (0.15 + 0.7 * ((0.5 + dot * STRIDE) % 1)));
}

/**
 * The median over the phones of these choices.
 * @param {Choice[]} choices
 */
export function medianOf(choices) {
  const all = choices.flatMap(({ count, psnr }) => Array(count).fill(psnr)).sort((one, other) => one - other);
  return (all[Math.floor((all.length - 1) / 2)] + all[Math.ceil((all.length - 1) / 2)]) / 2;
}

/**
 * The choices of each column and colour that have dots enough for a median.
 * @param {Choice[]} choices
 */
export function placesWithMedian(choices) {
  /** @type {Map<string, Choice[]>} */
  const places = new Map();
  for (const choice of choices) {
    const name = `${choice.column}/${choice.group}`;
    places.set(name, [...(places.get(name) ?? []), choice]);
  }
  return [...places.values()].filter((of) => of.reduce((sum, { count }) => sum + count, 0) >= MEDIAN);
}

/**
 * The choices of each column, those together whose buttons would lie over each other.
 * @param {Spot[]} spots
 * @param {number} half of the height of a button, pixels
 * @returns {Heap[]}
 */
export function heapsOf(spots, half) {
  /** @type {Heap[]} */
  const heaps = [];
  let rank = 0;
  for (const spot of [...spots].sort((one, other) => one.column - other.column || one.top - other.top)) {
    const last = heaps[heaps.length - 1]?.spots ?? [];
    const beside = last[last.length - 1];
    if (beside?.column === spot.column && spot.top - beside.top < 2 * half) last.push(spot);
    else {
      rank = beside?.column === spot.column ? rank + 1 : 0;
      heaps.push({ name: `${spot.column}/${rank}`, spots: [spot], half });
    }
  }
  return heaps;
}
