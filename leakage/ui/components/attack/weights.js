// The first weights of a network, as the program draws them for a seed (leakage/engine/weights.py, leakage/models/_parts.py).
import { generator } from './random.js';

/** @typedef {import('./network.js').Network} Network */
/** @typedef {import('./plans.js').Plan} Plan */

const WIDE = 0.5; // of the initialisation "wide_uniform", for weights and biases

/**
 * Draws all weights and biases of a network.
 * @param {Network} network
 * @param {Pick<Plan, 'initialisation'>} plan
 * @param {number} seed of the experiment
 */
export function drawWeights(network, { initialisation }, seed) {
  const random = generator(seed, 'model');
  let inputs = 1;
  for (const { name, from, to, shape } of network.tensors) {
    // torch.nn draws U(-1 / sqrt(n), 1 / sqrt(n)) for the weight and the bias of a layer with n inputs of each unit.
    if (name.endsWith('.weight')) inputs = (to - from) / shape[0];
    const bound = name.endsWith('.weight')
      ? Math.sqrt(3) * (Math.sqrt(2 / (1 + Math.sqrt(5) ** 2)) / Math.sqrt(inputs))
      : 1 / Math.sqrt(inputs);
    network.weights.set(random.uniform(to - from, -bound, bound), from);
  }
  if (initialisation === 'default') return;
  for (const { from, to } of network.tensors) network.weights.set(random.uniform(to - from, -WIDE, WIDE), from);
}
