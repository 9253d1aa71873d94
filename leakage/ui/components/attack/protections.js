// What a phone does to its gradient before it sends it: the protections of leakage/defenses with the same ids, fields and defaults.
import { levelOf, roundTo, roundToFormat } from './number_formats.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./number_formats.js').Format} Format */
/** @typedef {{ from: number, to: number }} Tensor the entries of a tensor in a gradient */

/**
 * Where the random numbers come from: a Generator, or given numbers.
 * @typedef {object} RandomNumbers
 * @property {(count: number) => ArrayLike<number>} normal N(0, 1)
 * @property {(count: number) => ArrayLike<number>} uniform U(0, 1)
 * @property {(count: number) => ArrayLike<number>} permutation
 */

/**
 * @typedef {{ id: 'gaussian_noise', scale: number }} GaussianNoise
 * @typedef {{ id: 'pruning', fraction: number, scope: 'each tensor' | 'whole gradient' | 'random' }} Pruning
 * @typedef {{ id: 'low_precision', number: Format, rounding: 'nearest' | 'stochastic' }} LowPrecision
 * @typedef {{ id: 'clipping', bound: number, scope: 'whole gradient' | 'each layer' }} Clipping
 * @typedef {GaussianNoise | Pruning | LowPrecision | Clipping} Protection
 */

/** The default fields of each protection. */
export const DEFAULTS = {
  gaussian_noise: { scale: 0.01 },
  pruning: { fraction: 0.9, scope: 'each tensor' },
  low_precision: { number: 'int8', rounding: 'nearest' },
  clipping: { bound: 4, scope: 'whole gradient' },
};

/**
 * Changes a gradient in place, as a protection does it before the gradient is sent.
 * @param {Numbers} gradient (n,)
 * @param {readonly Tensor[]} tensors
 * @param {Protection} protection
 * @param {RandomNumbers} random
 */
export function protect(gradient, tensors, protection, random) {
  switch (protection.id) {
    case 'gaussian_noise':
      return tensors.forEach((tensor) => addNoise(part(gradient, tensor), protection.scale, random));
    case 'pruning':
      return prune(gradient, tensors, protection, random);
    case 'low_precision':
      if (protection.number !== 'int8' || protection.rounding === 'nearest')
        return tensors.forEach((tensor) => roundToFormat(part(gradient, tensor), protection.number));
      return tensors.forEach((tensor) => roundAtRandom(part(gradient, tensor), random));
    case 'clipping':
      return clip(gradient, tensors, protection);
  }
}

/**
 * The entries of one tensor, as a view.
 * @param {Numbers} gradient
 * @param {Tensor} tensor
 * @returns {Numbers}
 */
export const part = (gradient, { from, to }) => gradient.subarray(from, to);

/**
 * g + N(0, scale^2) in every entry (leakage/defenses/gaussian_noise.py).
 * @param {Numbers} values one tensor
 * @param {number} scale
 * @param {RandomNumbers} random
 */
function addNoise(values, scale, random) {
  const [drawn, round] = [random.normal(values.length), roundTo(values)];
  for (let i = 0; i < values.length; i++) values[i] += round(round(scale) * drawn[i]);
}

/**
 * Sets floor(fraction * n) of n entries to 0: the smallest of each tensor or of all, or random ones (leakage/defenses/pruning.py).
 * @param {Numbers} gradient
 * @param {readonly Tensor[]} tensors
 * @param {Pruning} protection
 * @param {RandomNumbers} random
 */
function prune(gradient, tensors, { fraction, scope }, random) {
  if (scope === 'random') {
    for (const { from, to } of tensors) {
      const order = random.permutation(to - from);
      for (let i = 0; i < Math.floor(fraction * (to - from)); i++) gradient[from + order[i]] = 0;
    }
    return;
  }
  for (const { from, to } of scope === 'each tensor' ? tensors : [{ from: 0, to: gradient.length }]) {
    const sizes = gradient.slice(from, to).map(Math.abs).sort();
    const least = sizes[Math.floor(fraction * sizes.length)];
    for (let i = from; i < to; i++) if (Math.abs(gradient[i]) < least) gradient[i] = 0;
  }
}

/**
 * floor(g / s + u) s with u ~ U(0, 1) and s = max|g| / 127: int8 with the right mean (leakage/defenses/low_precision.py).
 * @param {Numbers} values one tensor
 * @param {RandomNumbers} random
 */
function roundAtRandom(values, random) {
  const [level, up, round] = [levelOf(values), random.uniform(values.length), roundTo(values)];
  for (let i = 0; i < values.length; i++) {
    const rounded = round(Math.floor(round(round(values[i] / level) + up[i])) * level);
    values[i] += round(rounded - values[i]); // the program differentiates this sum, which rounds once more
  }
}

/**
 * g min(1, bound / ||g||) with the norm of the whole gradient or of each tensor (leakage/defenses/clipping.py).
 * @param {Numbers} gradient
 * @param {readonly Tensor[]} tensors
 * @param {Clipping} protection
 */
function clip(gradient, tensors, { bound, scope }) {
  for (const tensor of scope === 'each layer' ? tensors : [{ from: 0, to: gradient.length }]) {
    const values = part(gradient, tensor);
    const factor = bound / Math.max(normOf(values), bound);
    if (factor < 1) for (let i = 0; i < values.length; i++) values[i] *= factor;
  }
}

/**
 * The Euclidean norm.
 * @param {Numbers} values
 */
export function normOf(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * values[i];
  return Math.sqrt(sum);
}
