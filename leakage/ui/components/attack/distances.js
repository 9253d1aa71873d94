// What gradient matching minimizes: a distance between gradients, and the total variation of pictures.

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * The distance of a gradient g (n,) from the received gradient; fills its derivative dD/dg (n,).
 * @typedef {(gradient: Numbers, derivative: Numbers) => number} Distance
 */

/**
 * ||g - g*||^2 (Zhu et al. 2019).
 * @param {Kernels} kernels
 * @param {Numbers} target g*, (n,)
 * @returns {Distance}
 */
export function squaredDistance(kernels, target) {
  const wanted = copyOf(kernels, target);
  return (gradient, derivative) => {
    kernels.combine(derivative, 2, gradient, -2, wanted);
    return kernels.dot(derivative, derivative) / 4;
  };
}

/**
 * 1 - <g, g*> / (||g|| ||g*||), one cosine over all entries (Geiping et al. 2020, equation 4).
 * @param {Kernels} kernels
 * @param {Numbers} target g*, (n,)
 * @returns {Distance}
 */
export function cosineDistance(kernels, target) {
  const wanted = copyOf(kernels, target);
  const squared = kernels.dot(wanted, wanted);
  return (gradient, derivative) => {
    const [inner, own] = [kernels.dot(gradient, wanted), kernels.dot(gradient, gradient)];
    const length = Math.sqrt(own) * Math.sqrt(squared);
    kernels.combine(derivative, inner / own / length, gradient, -1 / length, wanted);
    return 1 - inner / length;
  };
}

/** @type {(kernels: Kernels, numbers: Numbers) => Numbers} a copy in the memory of these kernels */
function copyOf(kernels, numbers) {
  const copy = kernels.array(numbers.length);
  copy.set(numbers);
  return copy;
}

/**
 * Adds the derivative of the anisotropic total variation, mean |dx| + mean |dy|, times `weight` to `gradient`. Each difference pulls its two
 * pixels together.
 * @param {Numbers} pictures (B, C, H, W)
 * @param {Numbers} gradient (B, C, H, W)
 * @param {{ weight: number, height: number, width: number }} options
 */
export function smooth(pictures, gradient, { weight, height, width }) {
  const planes = pictures.length / (height * width);
  const across = weight / Math.max(planes * height * (width - 1), 1);
  const down = weight / Math.max(planes * (height - 1) * width, 1);
  const fromAbove = new Float64Array(width); // the pull of the row above on each pixel
  for (let row = 0; row < planes * height; row++) {
    const lowest = row % height === height - 1;
    let fromLeft = 0;
    for (let column = 0, at = row * width; column < width; column++, at++) {
      const toRight = column + 1 < width ? across * signOf(pictures[at + 1] - pictures[at]) : 0;
      const toBelow = lowest ? 0 : down * signOf(pictures[at + width] - pictures[at]);
      gradient[at] += fromLeft + fromAbove[column] - toRight - toBelow;
      fromLeft = toRight;
      fromAbove[column] = toBelow;
    }
  }
}

/** @type {(value: number) => number} Math.sign without a jump */
const signOf = (value) => Number(value > 0) - Number(value < 0);

/**
 * The distance of the true gradient that is expected where the received one has errors (leakage/engine/discrepancy.py).
 * @param {'squared' | 'cosine'} kind
 * @param {number} squaredErrors expected sum of squared errors
 * @param {number} squaredNorm ||g*||^2
 */
export function expectedDistance(kind, squaredErrors, squaredNorm) {
  if (kind === 'squared') return squaredErrors;
  return 1 - Math.sqrt(1 - Math.min(squaredErrors / squaredNorm, 1));
}
