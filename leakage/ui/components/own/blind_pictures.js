// Pictures that show nothing of the private one, with which a verdict compares a guess: those of leakage/evaluation/baselines.py.

const SCALES = [1 / 16, 1 / 8, 1 / 4, 1 / 2]; // standard deviation of a blur, as a fraction of the side
const CONTRAST = 0.15; // standard deviation of blurred noise around grey
const REACH = 4; // standard deviations after which the blur ends

/** @typedef {import('./ssim.js').Size} Size */

/**
 * Grey, black, white, the mean colour of the private picture, the mean of the line-up (grey without others) and noise; and blurred noise,
 * which may be the nearest of a line-up by luck, so that its places do not count.
 * @param {Float32Array} truth the private picture, (channels, side, side) in [0, 1]
 * @param {Float32Array[]} others the other pictures of the line-up
 * @param {Size} size
 * @returns {{ plain: Float32Array[], blurred: Float32Array[] }}
 */
export function blindPictures(truth, others, { channels, side }) {
  const area = side * side;
  const filled = (/** @type {number} */ value) => new Float32Array(truth.length).fill(value);
  const colour = filled(0);
  for (let channel = 0; channel < channels; channel++) {
    const [from, to] = [channel * area, (channel + 1) * area];
    colour.fill(meanOf(truth.subarray(from, to)), from, to);
  }
  const mean = filled(others.length ? 0 : 0.5);
  for (const other of others) for (let i = 0; i < mean.length; i++) mean[i] += other[i] / others.length;
  const draw = lehmer();
  const plain = [filled(0.5), filled(0), filled(1), colour, mean, filled(0).map(draw)];
  const blurred = SCALES.map((scale) => {
    const noise = blurredNoise(Float64Array.from({ length: area }, draw), side, scale * side);
    return filled(0).map((_, i) => noise[i % area]);
  });
  return { plain, blurred };
}

/** Lehmer's generator of numbers in (0, 1): the same each time. */
function lehmer() {
  let state = 1;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

/**
 * Smooth noise of standard deviation CONTRAST around grey.
 * @param {Float64Array} noise (side, side)
 * @param {number} side
 * @param {number} deviation of the blur, in pixels
 */
function blurredNoise(noise, side, deviation) {
  const smooth = blur(blur(noise, side, deviation), side, deviation);
  const mean = meanOf(smooth);
  const scale = Math.sqrt(meanOf(smooth.map((value) => (value - mean) ** 2)));
  return smooth.map((value) => Math.min(1, Math.max(0, 0.5 + (CONTRAST * (value - mean)) / scale)));
}

/**
 * Blur the rows of a picture by a Gaussian, with the picture mirrored at its edges, and exchange rows and columns.
 * @param {Float64Array} picture (side, side)
 * @param {number} side
 * @param {number} deviation in pixels
 */
function blur(picture, side, deviation) {
  const radius = Math.floor(REACH * deviation + 0.5);
  const kernel = Float64Array.from({ length: 2 * radius + 1 }, (_, at) => Math.exp(-0.5 * ((at - radius) / deviation) ** 2));
  const sum = kernel.reduce((total, value) => total + value, 0);
  const mirrored = (/** @type {number} */ place) => {
    const within = ((place % (2 * side)) + 2 * side) % (2 * side);
    return Math.min(within, 2 * side - 1 - within);
  };
  return picture.map((_, at) => {
    const [row, column] = [at % side, Math.floor(at / side)];
    return kernel.reduce((total, value, i) => total + (value / sum) * picture[row * side + mirrored(column + i - radius)], 0);
  });
}

/** @param {Float32Array | Float64Array} values */
function meanOf(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}
