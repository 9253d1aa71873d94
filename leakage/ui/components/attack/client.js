// The phones: each computes the gradient of its private pictures, protects it, and sends it. Nothing else of them leaves this module.
import { oneHot } from './label_rules.js';
import { Network } from './network.js';
import { protect } from './protections.js';
import { generator } from './random.js';

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * What the phones have.
 * @typedef {object} Private
 * @property {Float32Array} pictures of all phones, (phones * B, C, H, W) in [0, 1]
 * @property {number[]} labels (phones * B,)
 * @property {number} phones
 */

/**
 * What the server asks of the phones.
 * @typedef {object} Task
 * @property {import('./plans.js').Plan} plan
 * @property {number} classes
 * @property {Numbers} weights
 * @property {readonly import('./protections.js').Protection[]} protections in the order in which they act
 * @property {number} rounds in which the weights stay the same
 * @property {number} seed of all random numbers
 */

/**
 * What arrives at the server in each round: the mean of the phones' updates, as secure aggregation shows it (Bonawitz et al. 2017).
 * @param {Kernels} kernels
 * @param {Private} own
 * @param {Task} task
 * @returns {Numbers[]} (n,) for each round
 */
export function send(kernels, { pictures, labels, phones }, { plan, classes, weights, protections, rounds, seed }) {
  const batch = labels.length / phones;
  const network = new Network(kernels, plan, batch);
  network.weights.set(weights);
  const x = kernels.array(pictures.length / phones);
  const gradients = Array.from({ length: phones }, (_, phone) => {
    x.set(pictures.subarray(phone * x.length, (phone + 1) * x.length));
    network.differentiate(x, oneHot(labels.slice(phone * batch, (phone + 1) * batch), classes));
    return network.gradient.slice();
  });
  return Array.from({ length: rounds }, (_, round) => {
    const updates = gradients.map((gradient, phone) => {
      const update = gradient.slice();
      protections.forEach((protection, index) => {
        const random = generator(seed, 'defense', index, protection.id, ...(phone ? [phone] : []), round);
        protect(update, network.tensors, protection, random);
      });
      return update;
    });
    return meanOf(updates);
  });
}

/**
 * The mean of several updates.
 * @param {Numbers[]} updates (n,) each
 */
function meanOf(updates) {
  const mean = updates[0].slice();
  for (const update of updates.slice(1)) for (let i = 0; i < mean.length; i++) mean[i] += update[i];
  if (updates.length > 1) for (let i = 0; i < mean.length; i++) mean[i] /= updates.length;
  return mean;
}
