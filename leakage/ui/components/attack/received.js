// What the server has after the phones have sent: the network with its weights, what arrived, and what it knows of the protections.
import { collectRounds, drawsAnew, errorsBehind, imitationOf } from './imitations.js';
import { normOf } from './protections.js';

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./network.js').Tensor} Tensor */
/** @typedef {import('./protections.js').Protection} Protection */
/** @typedef {import('./imitations.js').Imitation} Imitation */

/**
 * What an attack gets; never a private picture.
 * @typedef {object} Received
 * @property {Kernels} kernels of the server
 * @property {import('./plans.js').Plan} plan
 * @property {Numbers} weights
 * @property {readonly Tensor[]} tensors
 * @property {number} classes
 * @property {number} batch pictures of all phones
 * @property {number} phones
 * @property {Numbers} update the mean gradient that the attacker works with, (n,)
 * @property {Imitation[]} imitations of the protections, in their order; [] for a naive attacker
 * @property {number} squaredErrors the expected sum of squared errors in `update`; 0 where it is exact, or where the attacker does not know
 */

/**
 * The state of an attack after a step.
 * @typedef {object} Snapshot
 * @property {number} step steps so far, over all starts
 * @property {number} start the number of the start, from 1
 * @property {number} loss what the attack minimizes; never a distance to the private pictures
 * @property {Numbers} pictures the guess (batch, C, H, W), not clamped; it may change with the next step
 * @property {number[]} labels the labels of the guess (batch,)
 */

/**
 * @param {Omit<Received, 'update' | 'imitations' | 'squaredErrors'>} known what the server had before
 * @param {Numbers[]} updates what arrived in each round, (n,) each
 * @param {readonly Protection[]} protections those that the attacker knows; [] for a naive attacker
 * @returns {Received}
 */
export function receive(known, updates, protections) {
  const { tensors, phones } = known;
  const last = protections[protections.length - 1];
  const collecting = updates.length > 1 && phones === 1 && last !== undefined && drawsAnew(last);
  const update = collecting ? collectRounds(updates, last) : updates[updates.length - 1];
  const situations = protections.map((protection) => {
    const final = protection === last;
    return { update, tensors, single: phones === 1, last: final, collected: collecting && final, rounds: updates.length };
  });
  const imitations = protections.flatMap((protection, index) => imitationOf(protection, situations[index]) ?? []);
  /** @type {Float64Array | null} */
  let errors = new Float64Array(update.length);
  protections.forEach((protection, index) => (errors = errorsBehind(protection, errors, situations[index])));
  const squaredErrors = errors ? errors.reduce((sum, variance) => sum + variance, 0) / phones : 0;
  return { ...known, update, imitations, squaredErrors };
}

/**
 * The squared length of the gradient that the attacker matches, ||g*||^2.
 * @param {Received} received
 */
export const squaredNorm = ({ update }) => normOf(update) ** 2;
