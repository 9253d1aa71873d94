// Adam on the sign of the gradient, with pixels clamped to [0, 1] (Kingma and Ba 2015, algorithm 1; Geiping et al. 2020, section 5).

/** @typedef {import('./kernels.js').Numbers} Numbers */

const [MEAN, SQUARE, TINY] = [0.9, 0.999, 1e-8]; // beta 1, beta 2 and epsilon

export class SignedAdam {
  /**
   * @param {Numbers} z the unknowns, which `step` moves
   * @param {number} size of the first steps, in units of the unknowns
   */
  constructor(z, size) {
    this.z = z;
    this.size = size;
    this.steps = 0;
    this.mean = z.slice().fill(0);
    this.square = z.slice().fill(0);
  }

  /**
   * Moves every unknown against the sign of its derivative.
   * @param {Numbers} gradient
   * @param {number} fraction of the first step size
   */
  step(gradient, fraction) {
    const { z, mean, square } = this;
    this.steps++;
    const rate = (this.size * fraction) / (1 - MEAN ** this.steps);
    const root = Math.sqrt(1 - SQUARE ** this.steps);
    for (let i = 0; i < z.length; i++) {
      const sign = Math.sign(gradient[i]);
      mean[i] += (1 - MEAN) * (sign - mean[i]);
      square[i] = SQUARE * square[i] + (1 - SQUARE) * sign * sign;
      z[i] = Math.min(1, Math.max(0, z[i] - (rate * mean[i]) / (Math.sqrt(square[i]) / root + TINY)));
    }
  }
}
