// L-BFGS as torch.optim.LBFGS computes it with step size 1, 20 inner iterations and a history of 100 (Liu and Nocedal 1989).

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {{ change: Numbers, move: Numbers, scale: number }} Pair a change of the gradient, its cause, and 1 / <change, move> */

/**
 * Moves the unknowns along the direction, leaves the gradient there, and writes the step as `size`. `value` is the objective where the line
 * begins, `along` its derivative along the line, and `most` the most evaluations.
 * @typedef {(lbfgs: Lbfgs, value: number, along: number, most: number) => { value: number, evaluations: number }} Search
 */

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
   * @param {Search | null} [search] finds the step along the direction; without it the step is 1
   */
  constructor(kernels, z, objective, search = null) {
    this.kernels = kernels;
    this.z = z;
    this.objective = objective;
    this.search = search;
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
      if (this.iterations === 1) kernels.combine(direction, -1, gradient, 0, gradient);
      else this.turn();
      before.set(gradient);
      const earlier = value;
      this.size = this.iterations === 1 ? Math.min(1, 1 / sumOfSizes(gradient)) : 1;
      const along = kernels.dot(gradient, direction);
      if (along > -STILL) break;
      if (this.search) {
        const found = this.search(this, value, along, EVALUATIONS - evaluations);
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
    const { change, move } = pair;
    kernels.combine(change, 1, gradient, -1, before);
    kernels.combine(move, this.size, direction, 0, direction);
    kernels.combine(direction, -1, gradient, 0, gradient);
    const product = kernels.dot(change, move);
    if (product > CURVED) {
      if (pairs.length === HISTORY) this.unused.push(...pairs.splice(0, 1));
      pair.scale = 1 / product;
      pairs.push(pair);
      this.scale = product / kernels.dot(change, change);
    } else this.unused.push(pair);
    const last = pairs.length - 1;
    const shares = new Float64Array(pairs.length);
    let inner = last < 0 ? 0 : kernels.dot(pairs[last].move, direction);
    for (let at = last; at >= 0; at--) {
      shares[at] = inner * pairs[at].scale;
      if (at) inner = kernels.addAndDot(direction, -shares[at], pairs[at].change, pairs[at - 1].move);
      else kernels.add(direction, -shares[at], pairs[at].change);
    }
    kernels.combine(direction, this.scale, direction, 0, direction);
    if (last >= 0) inner = kernels.dot(pairs[0].change, direction);
    for (let at = 0; at <= last; at++) {
      const share = shares[at] - inner * pairs[at].scale;
      if (at < last) inner = kernels.addAndDot(direction, share, pairs[at].move, pairs[at + 1].change);
      else kernels.add(direction, share, pairs[at].move);
    }
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
