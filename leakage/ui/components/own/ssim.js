// Structural similarity, as leakage/evaluation/metrics.py computes it: windows of 7 x 7 pixels inside the picture, sample covariance, range 1.

const WINDOW = 7; // pixels of a side
const SAMPLE = WINDOW ** 2 / (WINDOW ** 2 - 1); // turns a variance into that of a sample
const [FIRST, SECOND] = [0.01 ** 2, 0.03 ** 2]; // the constants of SSIM

/** @typedef {{ channels: number, side: number }} Size */

/**
 * A picture with mean and variance of every window: what is computed once for each picture, for many pairs.
 * @typedef {object} Moments
 * @property {Float32Array} picture (channels, side, side)
 * @property {Float64Array} mean (channels, side - 6, side - 6)
 * @property {Float64Array} variance (channels, side - 6, side - 6)
 */

/**
 * @param {Float32Array} picture (channels, side, side) in [0, 1]
 * @param {Size} size
 * @returns {Moments}
 */
export function momentsOf(picture, size) {
  const mean = meansOfProducts(picture, null, size);
  const variance = meansOfProducts(picture, picture, size).map((square, i) => square - mean[i] ** 2);
  return { picture, mean, variance };
}

/**
 * The structural similarity of two pictures (Wang et al. 2004, equation 13).
 * @param {Moments} a
 * @param {Moments} b
 * @param {Size} size
 */
export function similarityOf(a, b, size) {
  const products = meansOfProducts(a.picture, b.picture, size);
  let sum = 0;
  for (let i = 0; i < products.length; i++) {
    const [one, other] = [a.mean[i], b.mean[i]];
    const covariance = SAMPLE * (products[i] - one * other);
    const above = (2 * one * other + FIRST) * (2 * covariance + SECOND);
    sum += above / ((one ** 2 + other ** 2 + FIRST) * (SAMPLE * (a.variance[i] + b.variance[i]) + SECOND));
  }
  return sum / products.length;
}

/**
 * The mean of a b in every window, or of a where b is null: first over the columns of a window, then over its rows.
 * @param {Float32Array} a (channels, side, side)
 * @param {Float32Array | null} b
 * @param {Size} size
 * @returns {Float64Array} (channels, side - 6, side - 6)
 */
function meansOfProducts(a, b, { channels, side }) {
  const windows = side - WINDOW + 1;
  const rows = new Float64Array(channels * side * windows);
  for (let row = 0; row < channels * side; row++)
    for (let left = 0; left < windows; left++) {
      let sum = 0;
      for (let at = row * side + left; at < row * side + left + WINDOW; at++) sum += b ? a[at] * b[at] : a[at];
      rows[row * windows + left] = sum;
    }
  const means = new Float64Array(channels * windows * windows);
  for (let channel = 0; channel < channels; channel++)
    for (let place = 0; place < windows * windows; place++) {
      let sum = 0;
      for (let y = 0; y < WINDOW; y++) sum += rows[(channel * side + y) * windows + place];
      means[channel * windows * windows + place] = sum / WINDOW ** 2;
    }
  return means;
}
