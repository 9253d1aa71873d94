// What an adaptive attacker does about a protection: how it imitates the phone, and how large it expects the errors to be. These are the
// strategies that the program's defenses declare; the first that can be used is used, or averaging where there are several rounds.
import { levelOf, roundToFormat, slackOf } from './number_formats.js';
import { normOf, part } from './protections.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./protections.js').Protection} Protection */
/** @typedef {import('./protections.js').Tensor} Tensor */
/** @typedef {import('./protections.js').Pruning} Pruning */
/** @typedef {import('./protections.js').Clipping} Clipping */

/**
 * What the phone would send of a guess, and its derivative.
 * @typedef {object} Imitation
 * @property {boolean} linear whether the imitation of a mean is the mean of the imitations
 * @property {(gradient: Numbers) => void} apply in place
 * @property {(gradient: Numbers, derivative: Numbers) => void} pullBack turns the derivative by the result into that by the input
 *     `gradient`, in place
 */

/**
 * What the attacker knows when it imitates a protection.
 * @typedef {object} Situation
 * @property {Numbers} update what the attacker works with: what arrived, or what it made of several rounds
 * @property {readonly Tensor[]} tensors
 * @property {boolean} single whether the server received the update of one phone, not of several in one sum
 * @property {boolean} last whether this is the phone's last protection
 * @property {boolean} collected whether `update` was made of several rounds, against this protection
 * @property {number} rounds
 */

/**
 * The imitation of a protection; null where the attacker imitates nothing.
 * @param {Protection} protection
 * @param {Situation} situation
 * @returns {Imitation | null}
 */
export function imitationOf(protection, { update, tensors, single, last, collected }) {
  if (protection.id === 'pruning') return masking(arrivedEntries(update, tensors, protection));
  if (protection.id === 'clipping') return clipping(tensors, protection);
  if (protection.id === 'gaussian_noise' || collected) return null;
  if (single && last) return snapping(update, slackOfTensors(update, tensors, protection));
  return rounding(tensors, protection.number);
}

/**
 * The expected squared errors (n,) behind a protection, given those before it; null where the attacker does not know them.
 * @param {Protection} protection
 * @param {Float64Array | null} incoming
 * @param {Situation} situation
 * @returns {Float64Array | null}
 */
export function errorsBehind(protection, incoming, { update, tensors, single, last, collected, rounds }) {
  if (!incoming) return null;
  const clean = incoming.every((variance) => variance === 0);
  switch (protection.id) {
    case 'gaussian_noise':
      return incoming.map((variance) => (variance + protection.scale ** 2) / (collected ? rounds : 1));
    case 'clipping':
      return clean ? incoming : null;
    case 'pruning': {
      if (!single || (!clean && protection.scope !== 'random')) return null;
      const arrived = arrivedEntries(update, tensors, protection);
      return incoming.map((variance, i) => variance * arrived[i]);
    }
    case 'low_precision': {
      if (!clean) return null;
      if (collected) return errorsOfMean(update, tensors, rounds);
      return protection.rounding === 'stochastic' && !(single && last) ? null : incoming;
    }
  }
}

/**
 * Whether several rounds tell more than one about what was sent: the protection draws anew in each.
 * @param {Protection} protection
 */
export const drawsAnew = (protection) =>
  protection.id === 'gaussian_noise' ||
  (protection.id === 'pruning' && protection.scope === 'random') ||
  (protection.id === 'low_precision' && protection.number === 'int8' && protection.rounding === 'stochastic');

/**
 * What the attacker makes of several rounds with the same weights and pictures: their mean, or of pruned ones each entry that ever arrived.
 * @param {readonly Numbers[]} updates of all rounds, (n,) each
 * @param {Protection} protection the last one
 * @returns {Numbers}
 */
export function collectRounds(updates, protection) {
  const collected = updates[0].slice();
  for (const update of updates.slice(1))
    for (let i = 0; i < collected.length; i++) {
      if (protection.id !== 'pruning') collected[i] += update[i];
      else if (update[i] !== 0) collected[i] = update[i];
    }
  if (protection.id !== 'pruning') for (let i = 0; i < collected.length; i++) collected[i] /= updates.length;
  return collected;
}

/**
 * A mask (n,) of the entries that were not pruned. A tensor with more zeros than pruning makes counts as a whole: its zeros are real.
 * @param {Numbers} update
 * @param {readonly Tensor[]} tensors
 * @param {Pruning} protection
 */
export function arrivedEntries(update, tensors, { fraction, scope }) {
  const arrived = Uint8Array.from(update, (entry) => Number(entry !== 0));
  if (scope === 'random') return arrived;
  for (const { from, to } of scope === 'each tensor' ? tensors : [{ from: 0, to: update.length }]) {
    const zeros = arrived.subarray(from, to).reduce((count, there) => count + 1 - there, 0);
    if (zeros > Math.floor(fraction * (to - from))) arrived.fill(1, from, to);
  }
  return arrived;
}

/**
 * @param {Uint8Array} mask (n,)
 * @returns {Imitation}
 */
function masking(mask) {
  /** @param {Numbers} values */
  const keep = (values) => {
    for (let i = 0; i < values.length; i++) values[i] *= mask[i];
  };
  return { linear: true, apply: keep, pullBack: (_, derivative) => keep(derivative) };
}

/**
 * An entry of the guess within the slack of the received one becomes the received one; beyond it, only the part beyond the slack counts.
 * @param {Numbers} update (n,)
 * @param {Float64Array} slack (n,)
 * @returns {Imitation}
 */
function snapping(update, slack) {
  return {
    linear: false,
    apply: (gradient) => {
      for (let i = 0; i < gradient.length; i++) {
        const gap = gradient[i] - update[i];
        gradient[i] = update[i] + gap - Math.min(Math.max(gap, -slack[i]), slack[i]);
      }
    },
    pullBack: (gradient, derivative) => {
      for (let i = 0; i < gradient.length; i++) if (Math.abs(gradient[i] - update[i]) <= slack[i]) derivative[i] = 0;
    },
  };
}

/**
 * The guess is rounded, and differentiated as if it were not (straight-through, Bengio et al. 2013).
 * @param {readonly Tensor[]} tensors
 * @param {import('./number_formats.js').Format} number
 * @returns {Imitation}
 */
const rounding = (tensors, number) => ({
  linear: false,
  apply: (gradient) => tensors.forEach((tensor) => roundToFormat(part(gradient, tensor), number)),
  pullBack: () => {},
});

/**
 * g bound / max(||g||, bound); the derivative loses its part along g where g is clipped.
 * @param {readonly Tensor[]} tensors
 * @param {Clipping} protection
 * @returns {Imitation}
 */
function clipping(tensors, { bound, scope }) {
  /** @param {Numbers} gradient */
  const groups = (gradient) => (scope === 'each layer' ? tensors : [{ from: 0, to: gradient.length }]);
  return {
    linear: false,
    apply: (gradient) => {
      for (const tensor of groups(gradient)) {
        const values = part(gradient, tensor);
        const factor = bound / Math.max(normOf(values), bound);
        for (let i = 0; i < values.length; i++) values[i] *= factor;
      }
    },
    pullBack: (gradient, derivative) => {
      for (const tensor of groups(gradient)) {
        const [g, v] = [part(gradient, tensor), part(derivative, tensor)];
        const norm = normOf(g);
        if (norm <= bound) continue;
        let along = 0;
        for (let i = 0; i < g.length; i++) along += (g[i] * v[i]) / norm ** 2;
        for (let i = 0; i < g.length; i++) v[i] = (bound / norm) * (v[i] - along * g[i]);
      }
    },
  };
}

/**
 * How far each entry (n,) of the gradient can be from the received one.
 * @param {Numbers} update
 * @param {readonly Tensor[]} tensors
 * @param {import('./protections.js').LowPrecision} protection
 */
function slackOfTensors(update, tensors, { number, rounding }) {
  if (number !== 'int8') return Float64Array.from(update, (entry) => slackOf(entry, number));
  const slack = new Float64Array(update.length);
  for (const tensor of tensors) slack.fill(levelOf(part(update, tensor)) * (rounding === 'stochastic' ? 1 : 0.5), tensor.from, tensor.to);
  return slack;
}

/**
 * The variances (n,) of the mean of several rounds of stochastic rounding: level^2 f (1 - f) / (rounds - 1), where a fraction f of the
 * rounds was rounded up, which follows from the mean.
 * @param {Numbers} update
 * @param {readonly Tensor[]} tensors
 * @param {number} rounds
 */
function errorsOfMean(update, tensors, rounds) {
  const variances = new Float64Array(update.length);
  for (const tensor of tensors) {
    const level = levelOf(part(update, tensor));
    for (let i = tensor.from; i < tensor.to; i++) {
      const share = update[i] / level - Math.floor(update[i] / level);
      variances[i] = (level ** 2 * share * (1 - share)) / (rounds - 1);
    }
  }
  return variances;
}
