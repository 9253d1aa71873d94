// What gradient matching minimizes: a distance between gradients, and the total variation of pictures, with their gradients.

/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * The distance of a gradient g (n,) from the received gradient; fills its derivative dD/dg (n,).
 * @typedef {(gradient: Numbers, derivative: Numbers) => number} Distance
 */

/**
 * ||g - g*||^2 over all entries, or over those of a mask (Zhu et al. 2019).
 * @param {Numbers} target g*, (n,)
 * @param {ArrayLike<number> | null} [mask] 1 for an entry that counts, 0 for one that does not
 * @returns {Distance}
 */
export function squaredDistance(target, mask = null) {
  return (gradient, derivative) => {
    let sum = 0;
    for (let i = 0; i < target.length; i++) {
      const gap = mask && !mask[i] ? 0 : gradient[i] - target[i];
      sum += gap * gap;
      derivative[i] = 2 * gap;
    }
    return sum;
  };
}

/**
 * 1 - <g, g*> / (||g|| ||g*||), one cosine over all entries, or over those of a mask (Geiping et al. 2020, equation 4).
 * @param {Numbers} target g*, (n,)
 * @param {ArrayLike<number> | null} [mask] 1 for an entry that counts, 0 for one that does not
 * @returns {Distance}
 */
export function cosineDistance(target, mask = null) {
  let wanted = 0;
  for (let i = 0; i < target.length; i++) if (!mask || mask[i]) wanted += target[i] * target[i];
  return (gradient, derivative) => {
    let [inner, own] = [0, 0];
    for (let i = 0; i < target.length; i++) {
      if (mask && !mask[i]) continue;
      inner += gradient[i] * target[i];
      own += gradient[i] * gradient[i];
    }
    const length = Math.sqrt(own) * Math.sqrt(wanted);
    const part = inner / own;
    for (let i = 0; i < target.length; i++) derivative[i] = mask && !mask[i] ? 0 : (part * gradient[i] - target[i]) / length;
    return 1 - inner / length;
  };
}

/**
 * The anisotropic total variation, mean |dx| + mean |dy|; adds `weight` times its derivative to `gradient`.
 * @param {Numbers} pictures (B, C, H, W)
 * @param {Numbers} gradient (B, C, H, W)
 * @param {{ weight: number, height: number, width: number }} options
 */
export function totalVariation(pictures, gradient, { weight, height, width }) {
  const planes = pictures.length / (height * width);
  const across = 1 / Math.max(planes * height * (width - 1), 1);
  const down = 1 / Math.max(planes * (height - 1) * width, 1);
  let [sideways, downwards] = [0, 0];
  /** @type {(at: number, next: number, share: number) => number} */
  const pull = (at, next, share) => {
    const gap = pictures[next] - pictures[at];
    const sign = Math.sign(gap) * weight * share;
    gradient[next] += sign;
    gradient[at] -= sign;
    return Math.abs(gap);
  };
  for (let row = 0; row < planes * height; row++) {
    const from = row * width;
    const lowest = row % height === height - 1;
    for (let at = from; at < from + width; at++) {
      if (at + 1 < from + width) sideways += pull(at, at + 1, across);
      if (!lowest) downwards += pull(at, at + width, down);
    }
  }
  return across * sideways + down * downwards;
}

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
