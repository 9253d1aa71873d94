// The last layer as the server knows it: the labels that its gradient shows, and the classes of pictures that were read off.
import { Kernels } from './kernels.js';
import { labelsByPrior, meanPredictions } from './label_probes.js';
import { labelCounts, labelOfRows, rowsWithoutBias, sumsOfRows } from './label_rules.js';
import { Network } from './network.js';
import { assign } from './pairing.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./received.js').Received} Received */

const FITS = 0.8; // the counts by predictions are used if at least this fraction of them is warranted

/**
 * The gradient of the last layer in what the attacker works with.
 * @param {Received} received
 * @returns {{ weight: Numbers, bias: Numbers | null }} (classes, features) and (classes,)
 */
export function lastLayer({ update, tensors }) {
  const [before, last] = tensors.slice(-2);
  const biased = last.name.endsWith('.bias');
  const weight = biased ? before : last;
  return { weight: update.subarray(weight.from, weight.to), bias: biased ? update.subarray(last.from, last.to) : null };
}

/**
 * The labels that the attacker reads from the last layer's gradient, sorted. For a batch they are the counts that fit the model's
 * predictions, as long as these explain the gradient: so it is with an untrained network without protection. Otherwise they are the counts
 * of greedy subtraction; the program rehearses there.
 * @param {Received} received
 */
export function readLabels(received) {
  const { batch, classes } = received;
  const last = lastLayer(received);
  if (batch === 1) return [labelOfRows(last.bias ?? rowsWithoutBias(last.weight, classes))];
  const { labels, warranted } = labelsByPrior(meanPredictions(received, last), batch);
  return warranted >= FITS ? labels : labelCounts(last.bias ?? sumsOfRows(last.weight, classes), batch);
}

/**
 * The pictures in the order of the labels, by the classes that the last layer's gradient gives them: B dL/dW = sum_b (p_b - e_b) h_b^T with
 * the model's predictions p and the inputs h of its last layer, so least squares gives all e_b (leakage/attacks/_labels.py).
 * @template {ArrayLike<number>} Picture
 * @param {Received} received
 * @param {Picture[]} pictures
 * @param {number[]} labels
 * @returns {Picture[]}
 */
export function inOrderOfLabels(received, pictures, labels) {
  if (pictures.length === 1) return pictures;
  const { batch, classes } = received;
  const { weight } = lastLayer(received);
  const network = new Network(new Kernels(), received.plan);
  network.weights.set(received.weights);
  const x = network.pictureSlope.slice();
  const seen = pictures.map((picture) => {
    x.set(picture);
    network.differentiate(x, new Float64Array(classes).fill(1 / classes));
    return { features: [...network.stages[network.stages.length - 2].value], prediction: [...network.probabilities] };
  });
  const features = seen[0].features.length;
  const gram = seen.map((one) => seen.map((other) => dot(one.features, other.features)));
  const predicted = (/** @type {number} */ c) => seen.map(({ prediction }) => prediction[c]);
  const scores = seen.map(() => new Array(classes).fill(0));
  for (let c = 0; c < classes; c++) {
    const row = [...weight.subarray(c * features, (c + 1) * features)];
    const right = seen.map(({ features }, b) => dot(gram[b], predicted(c)) - batch * dot(features, row));
    solveSymmetric(gram, right).forEach((score, b) => (scores[b][c] = score));
  }
  const columns = assign(scores.map((row) => labels.map((label) => -row[label])));
  const ordered = new Array(pictures.length);
  columns.forEach((place, b) => (ordered[place] = pictures[b]));
  return ordered;
}

/** @type {(a: number[], b: number[]) => number} */
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

/**
 * The solution of a system with a Gram matrix, by elimination; unknowns that depend on earlier ones become 0.
 * @param {number[][]} matrix (n, n)
 * @param {number[]} right (n,)
 */
function solveSymmetric(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const count = rows.length;
  const scale = Math.max(...matrix.map((row, i) => row[i]));
  const dependent = new Set();
  for (let i = 0; i < count; i++) {
    if (!(rows[i][i] > 1e-12 * scale)) {
      dependent.add(i);
      continue;
    }
    for (let j = 0; j < count; j++) {
      if (j === i || dependent.has(j)) continue;
      const factor = rows[j][i] / rows[i][i];
      for (let k = i; k <= count; k++) rows[j][k] -= factor * rows[i][k];
    }
  }
  return rows.map((row, i) => (dependent.has(i) ? 0 : row[count] / row[i]));
}
