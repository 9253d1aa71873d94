// The bias attack: a fully connected layer's gradient contains its input, scaled, so no search is needed. With d = dL/dz of the first
// layer, dL/dW = d x^T and dL/db = d (Phong et al. 2018, section 3; Geiping et al. 2020, proposition 3.1; leakage/attacks/linear_layer.py).
import { squaredDistance } from './distances.js';
import { oneHot } from './label_rules.js';
import { inOrderOfLabels } from './last_layer.js';
import { Matching } from './matching.js';
import { squaredNorm } from './received.js';
import { leastSquares, separate, usedRows } from './rows.js';

/** @typedef {import('./received.js').Received} Received */
/** @typedef {import('./received.js').Snapshot} Snapshot */

/**
 * @param {Received} received of a network whose first layer is fully connected and has a bias
 * @param {{ labels: number[] }} options
 * @returns {Generator<Snapshot>} the only one
 */
export function* solve(received, { labels }) {
  const { update, tensors, batch, classes, kernels } = received;
  const [weight, bias] = tensors;
  const rows = usedRows(update.subarray(weight.from, weight.to), update.subarray(bias.from, bias.to));
  if (!rows.d.length)
    throw new Error('The first layer receives no gradient, so nothing can be read off. Choose another picture or another seed.');
  const mixture = leastSquares(rows);
  const found = batch === 1 ? [mixture] : separate(rows, batch);
  while (found.length < batch) found.push(mixture);
  const ordered = inOrderOfLabels(received, found, labels);
  const pictures = kernels.array(batch * mixture.length);
  ordered.forEach((picture, b) => pictures.set(picture, b * mixture.length));
  const distance = new Matching(received, squaredDistance(kernels, update)).evaluate(pictures, oneHot(labels, classes));
  const norm = squaredNorm(received);
  yield { step: 1, start: 1, loss: norm ? distance / norm : distance, pictures, labels };
}
