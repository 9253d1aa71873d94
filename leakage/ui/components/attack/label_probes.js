// The labels of a batch as the model's mean prediction less the bias gradient: B dL/db_c = B pbar_c - n_c, where probe pictures show about
// what the model predicts (the rules "matched prior" and "model prior" of leakage/engine/labels.py).
import { Enlargement } from './enlargement.js';
import { nearestCounts } from './label_rules.js';
import { Network } from './network.js';
import { generator } from './random.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./received.js').Received} Received */
/** @typedef {{ logits: Float64Array[], features: Float64Array[] }} Predictions of each probe: (classes,), and the last layer's input */

const [MOST, FEWEST, AREA] = [64, 16, 64 * 32 * 32]; // probe pictures: 64 of 32 x 32, fewer larger ones
const GRID = 4; // squares of noise on each side

/**
 * @typedef {object} Means
 * @property {Float64Array} bias the gradient of the last bias (classes,), or an estimate of it
 * @property {Float64Array} plain the mean prediction on probe pictures
 * @property {Float64Array} matched the same after the probes' mean feature was shifted to that of the batch, which the gradient shows
 */

/**
 * @param {Received} received
 * @param {{ weight: Numbers, bias: Numbers | null }} gradient of the last layer, (classes, features) and (classes,)
 * @returns {Means}
 */
export function meanPredictions(received, { weight, bias }) {
  const { classes, weights, tensors } = received;
  const { logits, features } = predict(received);
  const usual = mean(features);
  const count = usual.length;
  if (!bias) {
    const estimated = Float64Array.from({ length: classes }, (_, c) => product(weight, c * count, usual) / dot(usual, usual));
    const plain = mean(logits.map(softmax));
    return { bias: estimated, plain, matched: plain };
  }
  const rows = Float64Array.from(bias);
  const length = dot(rows, rows);
  // The batch's mean feature h by least squares of dL/dW = dL/db h^T, less that of the probes.
  const step = usual.map((value, i) =>
    length
      ? dot(
          rows,
          Float64Array.from(rows, (_, c) => weight[c * count + i]),
        ) /
          length -
        value
      : 0,
  );
  const { from } = tensors[tensors.length - 2];
  const shift = Float64Array.from({ length: classes }, (_, c) => product(weights, from + c * count, step));
  const matched = mean(logits.map((each) => softmax(each.map((logit, c) => logit + shift[c]))));
  return { bias: rows, plain: mean(logits.map(softmax)), matched };
}

/**
 * The labels with the counts nearest to B (mean prediction - bias gradient), and an estimate of the fraction that is right.
 * @param {Means} means
 * @param {number} batch B
 */
export function labelsByPrior({ bias, plain, matched }, batch) {
  const labels = nearestCounts(
    matched.map((p, c) => batch * (p - bias[c])),
    batch,
  );
  let wrong = 0;
  for (let c = 0; c < bias.length; c++) {
    const fraction = labels.filter((label) => label === c).length / batch;
    wrong += (Math.abs(bias[c] - (matched[c] - fraction)) + Math.abs(matched[c] - plain[c])) / 2;
  }
  return { labels, warranted: Math.max(1 - wrong, 0) };
}

/**
 * What the model computes of smooth random pictures, enlarged noise; the same at each call.
 * @param {Received} received
 * @returns {Predictions}
 */
function predict({ kernels, plan, weights, batch }) {
  const [channels, height, width] = plan.shape;
  const wanted = Math.min(Math.max(Math.floor(AREA / (height * width)), FEWEST), MOST);
  const probes = Math.ceil(wanted / batch) * batch;
  const noise = generator(0, 'label probes').uniform(probes * channels * GRID * GRID);
  const network = new Network(kernels, plan);
  network.weights.set(weights);
  const enlargement = new Enlargement(channels, [GRID, GRID], [height, width]);
  const x = kernels.array(channels * height * width);
  /** @type {Predictions} */
  const found = { logits: [], features: [] };
  for (let probe = 0; probe < probes; probe++) {
    enlargement.enlarge(noise.subarray(probe * enlargement.count, (probe + 1) * enlargement.count), x);
    found.logits.push(Float64Array.from(network.predict(x)));
    found.features.push(Float64Array.from(network.stages[network.stages.length - 2].value));
  }
  return found;
}

/** @type {(vectors: Float64Array[]) => Float64Array} */
const mean = (vectors) => vectors[0].map((_, i) => vectors.reduce((sum, vector) => sum + vector[i], 0) / vectors.length);

/** @param {Float64Array} logits */
function softmax(logits) {
  const top = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - top));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** @type {(one: Float64Array, other: Float64Array) => number} */
const dot = (one, other) => one.reduce((sum, value, i) => sum + value * other[i], 0);

/** @type {(matrix: Numbers, from: number, vector: Float64Array) => number} */
const product = (matrix, from, vector) => vector.reduce((sum, value, i) => sum + matrix[from + i] * value, 0);
