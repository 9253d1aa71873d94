// L-BFGS as torch.optim.LBFGS computes it with step size 1, 20 inner iterations and a history of 100 (Liu and Nocedal 1989).
import { strongWolfe } from './line_search.js';

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {{ change: Numbers, move: Numbers, scale: number }} Pair a change of the gradient, its cause, and 1 / <change, move> */

const ITERATIONS = 20; // in each step
const EVALUATIONS = 25; // the most in each step: 5/4 of the iterations
const HISTORY = 100; // pairs that are remembered
const FLAT = 1e-7; // a step ends where no entry of the gradient is larger,
const STILL = 1e-9; // ... or where the unknowns or the objective change by no more
const CURVED = 1e-10; // pairs with a smaller product are left out

export class Lbfgs {
  /**
   * @param {Kernels} kernels
   * @param {Numbers} z the unknowns, which `step` moves; an array of these kernels
   * @param {(z: Numbers, gradient: Numbers) => number} objective returns its value and fills its gradient
   * @param {{ lineSearch?: boolean }} [options] whether a step is searched that satisfies the strong Wolfe conditions; else it is 1
   */
  constructor(kernels, z, objective, { lineSearch = false } = {}) {
    this.kernels = kernels;
    this.z = z;
    this.objective = objective;
    this.lineSearch = lineSearch;
    this.gradient = kernels.array(z.length);
    this.before = kernels.array(z.length);
    this.direction = kernels.array(z.length);
    /** @type {Pair[]} */
    this.pairs = [];
    /** @type {Pair[]} pairs whose memory is used again */
    this.unused = [];
    this.iterations = 0;
    this.size = 0; // of the last move, in units of the direction
    this.scale = 1; // of the first guess of the inverse Hessian
  }

  /** Forgets all that was learned, for a search from other unknowns. */
  restart() {
    this.unused.push(...this.pairs.splice(0));
    this.iterations = 0;
    this.scale = 1;
  }

  /** Moves the unknowns by up to 20 iterations; returns the objective where the step began. */
  step() {
    const { z, gradient, before, direction, kernels } = this;
    const first = this.objective(z, gradient);
    let [value, evaluations] = [first, 1];
    if (largest(gradient) <= FLAT) return first;
    for (let inner = 1; inner <= ITERATIONS; inner++) {
      this.iterations++;
      if (this.iterations === 1) for (let i = 0; i < z.length; i++) direction[i] = -gradient[i];
      else this.turn();
      before.set(gradient);
      const earlier = value;
      this.size = this.iterations === 1 ? Math.min(1, 1 / sumOfSizes(gradient)) : 1;
      const along = kernels.dot(gradient, direction);
      if (along > -STILL) break;
      if (this.lineSearch) {
        const found = this.search(value, along, EVALUATIONS - evaluations);
        value = found.value;
        evaluations += found.evaluations;
      } else {
        kernels.add(z, this.size, direction);
        if (inner < ITERATIONS) {
          value = this.objective(z, gradient);
          evaluations++;
        }
      }
      if (evaluations >= EVALUATIONS || largest(gradient) <= FLAT) break;
      if (this.size * largest(direction) <= STILL || Math.abs(value - earlier) < STILL) break;
    }
    return first;
  }

  /** Computes the direction by the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4). */
  turn() {
    const { gradient, before, direction, kernels, pairs } = this;
    const pair = this.unused.pop() ?? { change: kernels.array(gradient.length), move: kernels.array(gradient.length), scale: 0 };
    for (let i = 0; i < gradient.length; i++) {
      pair.change[i] = gradient[i] - before[i];
      pair.move[i] = direction[i] * this.size;
    }
    const product = kernels.dot(pair.change, pair.move);
    if (product > CURVED) {
      if (pairs.length === HISTORY) this.unused.push(...pairs.splice(0, 1));
      pair.scale = 1 / product;
      pairs.push(pair);
      this.scale = product / kernels.dot(pair.change, pair.change);
    } else this.unused.push(pair);
    for (let i = 0; i < gradient.length; i++) direction[i] = -gradient[i];
    const shares = new Float64Array(pairs.length);
    for (let at = pairs.length - 1; at >= 0; at--) {
      shares[at] = kernels.dot(pairs[at].move, direction) * pairs[at].scale;
      kernels.add(direction, -shares[at], pairs[at].change);
    }
    for (let i = 0; i < direction.length; i++) direction[i] *= this.scale;
    pairs.forEach(({ change, move, scale }, at) => kernels.add(direction, shares[at] - kernels.dot(change, direction) * scale, move));
  }

  /**
   * Moves the unknowns along the direction by the step that the line search finds; leaves the gradient there.
   * @param {number} value of the objective where the line begins
   * @param {number} along its derivative along the line
   * @param {number} most evaluations
   */
  search(value, along, most) {
    const { z, gradient, direction, kernels } = this;
    const start = z.slice();
    /** @param {number} step */
    const move = (step) => {
      z.set(start);
      kernels.add(z, step, direction);
    };
    const { point, evaluations } = strongWolfe(
      (step) => {
        move(step);
        const reached = this.objective(z, gradient);
        return { step, value: reached, gradient: gradient.slice(), along: kernels.dot(gradient, direction) };
      },
      { step: 0, value, gradient: gradient.slice(), along },
      this.size,
      { largest: largest(direction), most },
    );
    move(point.step);
    gradient.set(point.gradient);
    this.size = point.step;
    return { value: point.value, evaluations };
  }
}

/**
 * The largest magnitude; NaN where an entry is not a number.
 * @param {Numbers} values
 */
export function largest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]);
    if (!(size <= most)) most = size;
  }
  return most;
}

/** @param {Numbers} values */
function sumOfSizes(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.abs(values[i]);
  return sum;
}
