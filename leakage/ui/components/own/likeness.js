// How near a guess is to the private picture, and whether it can be recognized: the program's rule (leakage/evaluation/verdict.py) as far as
// a page can compute it. LPIPS needs a large network, so pixels and SSIM decide alone.

const [SOME, NEAR, CLEAR] = [0.15, 0.3, 0.5]; // shares of the way to an exact copy
const SAME = 0.02; // mean difference of two pictures, below which they are one
const WINDOW = 7; // pixels of a side of the windows of SSIM
const [FIRST, SECOND] = [0.01 ** 2, 0.03 ** 2]; // the constants of SSIM for pictures in [0, 1]

/** @typedef {{ channels: number, side: number }} Size */
/** @typedef {'recognizable' | 'singled' | 'partly' | 'hidden'} Word */

/**
 * The mean squared error of a guess.
 * @param {ArrayLike<number>} guess
 * @param {ArrayLike<number>} truth
 */
export function squaredError(guess, truth) {
  let sum = 0;
  for (let i = 0; i < truth.length; i++) sum += (guess[i] - truth[i]) ** 2;
  return sum / truth.length;
}

/**
 * Closeness in decibels, at most 100.
 * @param {ArrayLike<number>} guess in [0, 1]
 * @param {ArrayLike<number>} truth in [0, 1]
 */
export const decibels = (guess, truth) => Math.min(100, -10 * Math.log10(squaredError(guess, truth)));

/**
 * Structural similarity: the mean over all windows of 7 x 7 pixels inside the picture, with sample covariance (Wang et al. 2004, equation 13).
 * @param {ArrayLike<number>} a (channels, side, side)
 * @param {ArrayLike<number>} b
 * @param {Size} size
 */
export function similarity(a, b, { channels, side }) {
  const [count, windows] = [WINDOW * WINDOW, side - WINDOW + 1];
  const sample = count / (count - 1);
  let total = 0;
  for (let channel = 0; channel < channels; channel++)
    for (let top = 0; top < windows; top++)
      for (let left = 0; left < windows; left++) {
        let [sumA, sumB, squareA, squareB, product] = [0, 0, 0, 0, 0];
        for (let y = 0; y < WINDOW; y++) {
          const row = (channel * side + top + y) * side + left;
          for (let at = row; at < row + WINDOW; at++) {
            sumA += a[at];
            sumB += b[at];
            squareA += a[at] * a[at];
            squareB += b[at] * b[at];
            product += a[at] * b[at];
          }
        }
        const [meanA, meanB] = [sumA / count, sumB / count];
        const varianceA = sample * (squareA / count - meanA * meanA);
        const varianceB = sample * (squareB / count - meanB * meanB);
        const covariance = sample * (product / count - meanA * meanB);
        total +=
          ((2 * meanA * meanB + FIRST) * (2 * covariance + SECOND)) /
          ((meanA * meanA + meanB * meanB + FIRST) * (varianceA + varianceB + SECOND));
      }
  return total / (channels * windows * windows);
}

/**
 * Judges guesses of one private picture beside a line-up and beside pictures that show nothing of it.
 */
export class Likeness {
  /**
   * @param {Float32Array} truth (channels, side, side) in [0, 1]
   * @param {Float32Array[]} others the other pictures of the line-up
   * @param {Size} size
   */
  constructor(truth, others, size) {
    this.truth = truth;
    this.others = others.filter((other) => !isSame(other, truth));
    this.size = size;
    const { others: left } = this;
    this.blind = blindPictures(truth, left, size);
    this.leastError = Math.min(...this.blind.map((picture) => squaredError(picture, truth)));
    this.bestSimilarity = Math.max(...this.blind.map((picture) => similarity(picture, truth, size)));
    this.leastErrorOfOthers = Math.min(this.leastError, ...left.map((picture) => squaredError(picture, truth)));
    this.bestSimilarityOfOthers = Math.max(this.bestSimilarity, ...left.map((picture) => similarity(picture, truth, size)));
    // A distance by which a picture that shows nothing comes first does not count.
    this.counts = this.blind
      .map((picture) => this.ranks(picture))
      .reduce((counts, ranks) => counts.map((count, place) => count && ranks[place] !== 1), [true, true]);
  }

  /**
   * The place of the private picture among all of the line-up by nearness to the guess: by pixels, by SSIM.
   * @param {Float32Array} guess
   */
  ranks(guess) {
    const { truth, others, size } = this;
    const [error, alike] = [squaredError(guess, truth), similarity(guess, truth, size)];
    return [
      1 + others.filter((other) => squaredError(guess, other) < error).length,
      1 + others.filter((other) => similarity(guess, other, size) > alike).length,
    ];
  }

  /**
   * The verdict on a guess.
   * @param {Float32Array} guess
   * @returns {{ word: Word, rank: number, size: number }} `rank`: the better of the ranks that count
   */
  judge(guess) {
    const { truth, size, counts } = this;
    const [error, alike] = [squaredError(guess, truth), similarity(guess, truth, size)];
    const ranks = this.ranks(guess).filter((_, place) => counts[place]);
    const first = ranks.filter((rank) => rank === 1).length > 0 && 2 * ranks.filter((rank) => rank === 1).length >= ranks.length;
    const nearer = Math.max(1 - error / this.leastError, share(alike, this.bestSimilarity));
    const above = Math.max(1 - error / this.leastErrorOfOthers, share(alike, this.bestSimilarityOfOthers));
    const evidence = (first && nearer >= SOME) || above >= CLEAR;
    const clear = above >= NEAR && share(alike, this.bestSimilarity) >= CLEAR;
    const word = !evidence ? 'hidden' : clear ? 'recognizable' : first ? 'singled' : 'partly';
    return { word, rank: Math.min(...ranks, this.others.length + 1), size: this.others.length + 1 };
  }
}

/**
 * Whether two pictures are the same but for their files.
 * @param {Float32Array} one
 * @param {Float32Array} other
 */
const isSame = (one, other) => one.reduce((sum, value, place) => sum + Math.abs(value - other[place]), 0) / one.length < SAME;

/**
 * How far a similarity goes from the best of others to an exact copy.
 * @param {number} value
 * @param {number} best
 */
const share = (value, best) => (best < 1 - 1e-4 ? (value - best) / (1 - best) : -Infinity);

/**
 * Pictures that show nothing of the private one: grey, black, white, its mean colour, the mean of the line-up, noise.
 * @param {Float32Array} truth
 * @param {Float32Array[]} others
 * @param {Size} size
 * @returns {Float32Array[]}
 */
function blindPictures(truth, others, { channels, side }) {
  const area = side * side;
  const plain = (/** @type {number} */ value) => new Float32Array(truth.length).fill(value);
  const colour = plain(0);
  for (let channel = 0; channel < channels; channel++) {
    const part = truth.subarray(channel * area, (channel + 1) * area);
    colour.fill(part.reduce((sum, value) => sum + value, 0) / area, channel * area, (channel + 1) * area);
  }
  const mean = plain(others.length ? 0 : 0.5);
  for (const other of others) for (let i = 0; i < mean.length; i++) mean[i] += other[i] / others.length;
  let state = 1;
  const noise = plain(0).map(() => (state = (state * 48271) % 2147483647) / 2147483647); // Lehmer's generator: the same noise each time
  return [plain(0.5), plain(0), plain(1), colour, mean, noise];
}
