// Rounding to the formats of low precision: int8, fp16 and bf16, as torch rounds (leakage/defenses/low_precision.py).

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {'int8' | 'fp16' | 'bf16'} Format */

const LEVELS = 127; // of int8, on either side of 0
const FORMATS = { fp16: { bits: 10, least: -14, most: 65504 }, bf16: { bits: 7, least: -126, most: 2 ** 127 * (2 - 2 ** -7) } };
const TINY = { 4: 2 ** -126, 8: 2 ** -1022 }; // the smallest normal numbers, by the bytes of a number

/**
 * The function that rounds to the precision of an array, for a result that is used before it is stored.
 * @param {Numbers} values
 * @returns {(value: number) => number}
 */
export const roundTo = (values) => (values instanceof Float32Array ? Math.fround : (value) => value);

/**
 * The difference of two neighboring numbers of int8, max|g| / 127 of a tensor.
 * @param {Numbers} values the entries of one tensor
 */
export function levelOf(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]));
  return roundTo(values)(Math.max(most, values instanceof Float32Array ? TINY[4] : TINY[8]) / LEVELS);
}

/**
 * Rounds each entry of one tensor to the nearest number of a format, in place.
 * @param {Numbers} values
 * @param {Format} format
 */
export function roundToFormat(values, format) {
  if (format === 'int8') {
    const [level, round] = [levelOf(values), roundTo(values)];
    for (let i = 0; i < values.length; i++) values[i] = toEven(round(values[i] / level)) * level;
    return;
  }
  const { bits, most } = FORMATS[format];
  for (let i = 0; i < values.length; i++) {
    const unit = 2 ** (exponentOf(values[i], format) - bits);
    const rounded = toEven(values[i] / unit) * unit;
    values[i] = Math.abs(rounded) > most ? Math.sign(rounded) * Infinity : rounded;
  }
}

/**
 * How far the gradient's entry can be from a received number of a format of 16 bits.
 * @param {number} value
 * @param {'fp16' | 'bf16'} format
 */
export const slackOf = (value, format) => Math.max(Math.abs(value), 2 ** FORMATS[format].least) * 2 ** (-FORMATS[format].bits - 1);

/**
 * The exponent of a number in a format; numbers below its smallest normal number share that one's exponent.
 * @param {number} value
 * @param {'fp16' | 'bf16'} format
 */
function exponentOf(value, format) {
  const size = Math.max(Math.abs(value), 2 ** FORMATS[format].least);
  const guess = Math.floor(Math.log2(size)); // off by one where a logarithm is rounded to a whole number
  return 2 ** guess > size ? guess - 1 : 2 ** (guess + 1) <= size ? guess + 1 : guess;
}

/**
 * The nearest whole number, of two the even one.
 * @param {number} value
 */
export function toEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 ? floor + 1 : floor;
}
