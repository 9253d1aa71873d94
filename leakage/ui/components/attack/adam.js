// Adam on the sign of the gradient, with pixels clamped to [0, 1] (Kingma and Ba 2015, algorithm 1; Geiping et al. 2020, section 5).

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */

const [MEAN, SQUARE] = [0.9, 0.999]; // beta 1 and beta 2, the decays of Kernels.signedStep

export class SignedAdam {
  /**
   * @param {Kernels} kernels
   * @param {Numbers} z the unknowns, which `step` moves; an array of these kernels
   * @param {number} size of the first steps, in units of the unknowns
   */
  constructor(kernels, z, size) {
    this.kernels = kernels;
    this.z = z;
    this.size = size;
    this.steps = 0;
    this.mean = kernels.array(z.length);
    this.square = kernels.array(z.length);
  }

  /**
   * Moves every unknown against the sign of its derivative.
   * @param {Numbers} gradient
   * @param {number} fraction of the first step size
   */
  step(gradient, fraction) {
    this.steps++;
    const rate = (this.size * fraction) / (1 - MEAN ** this.steps);
    this.kernels.signedStep(this.z, gradient, this.mean, this.square, rate, 1 / Math.sqrt(1 - SQUARE ** this.steps));
  }
}
