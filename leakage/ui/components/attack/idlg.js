// DLG and iDLG: L-BFGS on the squared distance of gradients, from one random start after another (Zhu et al. 2019, algorithm 1; Zhao et al.
// 2020). The numbers are those of leakage/attacks/_lbfgs.py.
import { squaredDistance, expectedDistance } from './distances.js';
import { oneHot } from './label_rules.js';
import { Lbfgs, largest } from './lbfgs.js';
import { Matching } from './matching.js';
import { squaredNorm } from './received.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./received.js').Received} Received */
/** @typedef {import('./received.js').Snapshot} Snapshot */
/** @typedef {{ diverged: boolean, loss: number, pictures: Numbers, labels: number[], start: number }} End */

const LOST = 1e3; // a pixel of larger magnitude means that the search has diverged
const SOLVED = 1e-4; // a start has succeeded when the distance is below this fraction of ||g*||^2
const [FITTED, LEAST] = [0.9, 0.6]; // a start ends when it fits known errors in 90 % of its unknowns, but it leaves 60 % of them
const PATIENCE = 20; // a start ends when the distance fell by less in so many steps than
const [SETTLED, STUCK] = [0.01, 0.3]; // ... 1 % after it has succeeded, 30 % before
const AGREE = 0.05; // two starts agree when their distances differ by less than this fraction

/**
 * @param {Received} received
 * @param {import('./random.js').Generator} random draws the starts
 * @param {{ labels: number[] | null, steps: number, restarts: number }} options without labels the search finds them with the pictures
 * @returns {Generator<Snapshot>} the last one is the best of all starts
 */
export function* descend(received, random, { labels, steps, restarts }) {
  const { kernels, batch, plan, update, squaredErrors } = received;
  const pixels = batch * plan.shape.reduce((product, side) => product * side);
  const floor = expectedDistance('squared', squaredErrors, squaredNorm(received));
  const solved = Math.max(SOLVED * squaredNorm(received), floor);
  const until = floor * Math.max(1 - (FITTED * pixels) / update.length, LEAST);
  const unknowns = new Unknowns(received, labels, pixels);
  const z = kernels.array(pixels + (labels ? 0 : batch * received.classes));
  const search = new Lbfgs(kernels, z, (values, gradient) => unknowns.objective(values, gradient));
  /** @type {End[]} */
  const ended = [];
  let taken = 0;
  for (let start = 1; start <= restarts; start++) {
    const noise = random.normal(pixels);
    const logits = random.normal(batch * received.classes); // drawn even where the labels are known, as in the program
    z.set(noise);
    if (!labels) z.set(logits, pixels);
    search.restart();
    /** @type {number[]} */
    const recent = [];
    let fitted = false;
    for (let step = 1; step <= steps && !fitted; step++) {
      const guess = unknowns.guess(z);
      const loss = search.step();
      taken++;
      yield { step: taken, start, loss, ...guess };
      if (loss <= until) {
        ended.push({ diverged: false, loss, start, ...guess });
        fitted = true;
      }
      const enough = 1 - (loss <= solved ? SETTLED : STUCK);
      if (diverged(z.subarray(0, pixels), loss) || (recent.length === PATIENCE && loss > enough * recent[0])) break;
      recent.push(loss);
      if (recent.length > PATIENCE) recent.shift();
    }
    if (!fitted) {
      const loss = unknowns.objective(z, search.gradient);
      ended.push({ diverged: diverged(z.subarray(0, pixels), loss), loss, start, ...unknowns.guess(z) });
    }
    const last = ended[ended.length - 1];
    const lowest = Math.min(...ended.slice(0, -1).flatMap((end) => (end.diverged ? [] : end.loss)));
    if (!last.diverged && (last.loss <= solved || Math.abs(last.loss - lowest) <= AGREE * last.loss)) break;
  }
  const { diverged: _, ...best } = ended.reduce((one, other) => (worse(one, other) ? other : one));
  yield { step: taken, ...best };
}

/** The unknowns of a search as pictures, and logits of the labels behind them where these are searched too. */
class Unknowns {
  /**
   * @param {Received} received
   * @param {number[] | null} labels
   * @param {number} pixels
   */
  constructor(received, labels, pixels) {
    this.matching = new Matching(received, squaredDistance(received.kernels, received.update));
    this.classes = received.classes;
    this.batch = received.batch;
    this.pixels = pixels;
    this.labels = labels;
    this.y = oneHot(labels ?? new Array(received.batch).fill(0), received.classes);
  }

  /**
   * The distance at the unknowns; fills its gradient.
   * @param {Numbers} z
   * @param {Numbers} gradient
   */
  objective(z, gradient) {
    const { matching, classes, pixels, y } = this;
    if (!this.labels) softmax(z.subarray(pixels), classes, y);
    const loss = matching.evaluate(z.subarray(0, pixels), y);
    matching.differentiate();
    gradient.set(matching.pictureGradient);
    if (this.labels) return loss;
    for (let from = 0; from < y.length; from += classes) {
      let mean = 0;
      for (let c = from; c < from + classes; c++) mean += y[c] * matching.labelGradient[c];
      for (let c = from; c < from + classes; c++) gradient[pixels + c] = y[c] * (matching.labelGradient[c] - mean);
    }
    return loss;
  }

  /**
   * Copies of the pictures and their likeliest labels.
   * @param {Numbers} z
   */
  guess(z) {
    const { pixels, classes, batch } = this;
    const likeliest = (/** @type {number} */ b) => {
      const logits = [...z.subarray(pixels + b * classes, pixels + (b + 1) * classes)];
      return logits.indexOf(Math.max(...logits));
    };
    return { pictures: z.slice(0, pixels), labels: this.labels ?? Array.from({ length: batch }, (_, b) => likeliest(b)) };
  }
}

/**
 * @param {Numbers} logits (batch, classes)
 * @param {number} classes
 * @param {Float64Array} y filled
 */
function softmax(logits, classes, y) {
  for (let from = 0; from < logits.length; from += classes) {
    const top = Math.max(...logits.subarray(from, from + classes));
    let sum = 0;
    for (let c = from; c < from + classes; c++) sum += y[c] = Math.exp(logits[c] - top);
    for (let c = from; c < from + classes; c++) y[c] /= sum;
  }
}

/** @type {(z: Numbers, loss: number) => boolean} */
const diverged = (z, loss) => !Number.isFinite(loss) || !(largest(z) <= LOST);

/** @type {(one: End, other: End) => boolean} whether the other end is better */
const worse = (one, other) => (one.diverged !== other.diverged ? one.diverged : other.loss < one.loss);
