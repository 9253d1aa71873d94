// The arithmetic of a chart: readable ticks, and values as pixels. No access to the page.
import { isNumber, short, superscript } from '../live/words.js';

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} at pixels
 * @property {{ value: number, text: string }[]} ticks
 */

/**
 * Round steps (1, 2 or 5 times a power of ten) that cover the values, about `count` of them.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 */
export function niceTicks(low, high, count) {
  const rough = (high - low || Math.abs(high) || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

/**
 * @param {(number | null | undefined)[]} values
 * @param {{ from: number, to: number, count?: number, log?: boolean }} how pixels of the ends, and about how many ticks
 * @returns {Scale}
 */
export function scaleOf(values, { from, to, count = 4, log = false }) {
  const known = values.filter(isNumber).filter((value) => !log || value > 0);
  if (!known.length) known.push(log ? 1 : 0);
  return log ? decades(known, { from, to, count }) : linear(known, { from, to, count });
}

/** @type {(values: number[], how: { from: number, to: number, count: number }) => Scale} */
function linear(values, { from, to, count }) {
  const ticks = niceTicks(Math.min(...values), Math.max(...values), count);
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  return {
    at: (value) => from + ((value - low) / (high - low)) * (to - from),
    ticks: ticks.map((value) => ({ value, text: short(value) })),
  };
}

/** @type {(values: number[], how: { from: number, to: number, count: number }) => Scale} */
function decades(values, { from, to, count }) {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  const stride = Math.max(1, Math.ceil((high - low) / count));
  const ticks = [];
  for (let power = low; power <= high; power += stride) ticks.push(power);
  return {
    at: (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from),
    ticks: ticks.map((power) => ({
      value: 10 ** power,
      text: Math.abs(power) < 3 ? String(Number((10 ** power).toPrecision(3))) : `10${superscript(power)}`,
    })),
  };
}
