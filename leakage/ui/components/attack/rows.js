// The input of a fully connected layer from the rows of its gradient (leakage/attacks/_rows.py). For one picture row j of dL/dW is d_j x;
// for a batch it is a sum over the pictures b of d_bj x_b, and dL/db_j is the sum of d_bj.
import { largest } from './lbfgs.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {{ gradient: Numbers[], d: number[] }} Rows the rows (m, n) of a weight's gradient, and the entries (m,) of the bias's */

const THRESHOLD = 1e-12; // rows with a bias gradient below this fraction of the largest are left out
const SLACK = 0.01; // the pixels of a candidate may exceed [0, 1] by so much
const CLOSE = 10; // two rows agree if their distance is at most so many times that of the closest two,
const [ROUNDING, LOOSEST] = [1e-6, 1e-3]; // ... but at least float32's rounding, and at most a quarter of a grey level

/**
 * The rows that are used: those whose bias gradient is not 0 and not far below the largest.
 * @param {Numbers} weightGradient (m, n)
 * @param {Numbers} biasGradient (m,)
 * @returns {Rows}
 */
export function usedRows(weightGradient, biasGradient) {
  const inputs = weightGradient.length / biasGradient.length;
  const most = largest(biasGradient);
  const used = [...biasGradient.keys()].filter((j) => biasGradient[j] !== 0 && Math.abs(biasGradient[j]) >= THRESHOLD * most);
  return { gradient: used.map((j) => weightGradient.subarray(j * inputs, (j + 1) * inputs)), d: used.map((j) => biasGradient[j]) };
}

/**
 * The input (n,) by least squares over the rows: sum_j d_j dW_j / sum_j d_j^2.
 * @param {Rows} rows
 */
export function leastSquares({ gradient, d }) {
  const total = d.reduce((sum, each) => sum + each ** 2, 0);
  return weightedSum(gradient, d.map((each) => each / total)); // prettier-ignore
}

/**
 * Separates the pictures of a batch by the rows that agree with each other. A row that a single picture activates is that picture; every
 * other row is a different mixture. So the candidate with which most rows agree is the first picture, as their mean with weights d_j^2;
 * then the next. Once no two rows agree, the candidate furthest from all chosen pictures follows.
 * @param {Rows} rows
 * @param {number} count the most pictures
 * @returns {Float64Array[]} at most `count` pictures (n,)
 */
export function separate({ gradient, d }, count) {
  const candidates = gradient.map((row, j) => Float64Array.from(row, (entry) => entry / d[j]));
  const legal = candidates.map((row) => row.every((pixel) => pixel > -SLACK && pixel < 1 + SLACK));
  const left = candidates.filter((_, j) => legal[j]);
  const weights = d.filter((_, j) => legal[j]).map((each) => each ** 2);
  if (!left.length) return [];
  const apart = left.map((row) => left.map((other) => distance(row, other)));
  let closest = Infinity;
  apart.forEach((row, j) => row.forEach((gap, k) => (closest = j === k ? closest : Math.min(closest, gap))));
  const limit = Math.min(Math.max(left.length > 1 ? CLOSE * closest : 0, ROUNDING), LOOSEST);
  const heaviest = Math.max(...weights);
  const free = new Set(left.keys());
  /** @type {Float64Array[]} */
  const found = [];
  while (found.length < count && free.size) {
    const agreeing = (/** @type {number} */ j) => [...free].filter((k) => apart[j][k] <= limit);
    let best = bestOf(free, (j) => agreeing(j).length + (0.5 * weights[j]) / heaviest);
    if (found.length && agreeing(best).length < 2)
      best = bestOf(free, (j) => Math.min(...found.map((picture) => distance(left[j], picture))));
    const members = agreeing(best);
    const total = members.reduce((sum, j) => sum + weights[j], 0);
    found.push(weightedSum(members.map((j) => left[j]), members.map((j) => weights[j] / total))); // prettier-ignore
    for (const j of members) free.delete(j);
  }
  return found;
}

/**
 * The member with the largest score, of equal ones the first.
 * @param {Iterable<number>} members
 * @param {(member: number) => number} score
 */
function bestOf(members, score) {
  let [best, most] = [-1, -Infinity];
  for (const member of members) {
    const value = score(member);
    if (value > most) [best, most] = [member, value];
  }
  return best;
}

/**
 * @param {ArrayLike<number>[]} vectors (m, n)
 * @param {number[]} weights (m,)
 */
function weightedSum(vectors, weights) {
  const sum = new Float64Array(vectors[0].length);
  vectors.forEach((vector, j) => {
    for (let i = 0; i < sum.length; i++) sum[i] += weights[j] * vector[i];
  });
  return sum;
}

/**
 * The root mean square of the difference.
 * @param {Float64Array} one
 * @param {Float64Array} other
 */
function distance(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += (one[i] - other[i]) ** 2;
  return Math.sqrt(sum / one.length);
}
