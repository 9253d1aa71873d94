// Inverting Gradients: the cosine distance of gradients and the total variation, by Adam on the sign of the gradient (Geiping et al. 2020,
// equation 4, section 5). The numbers are those of leakage/attacks/inverting_gradients.py and _adam.py.
import { SignedAdam } from './adam.js';
import { cosineDistance, expectedDistance, smooth } from './distances.js';
import { HalfSize } from './half_size.js';
import { oneHot } from './label_rules.js';
import { Matching } from './matching.js';
import { toEven } from './number_formats.js';
import { squaredNorm } from './received.js';

/** @typedef {import('./received.js').Received} Received */
/** @typedef {import('./received.js').Snapshot} Snapshot */

const MILESTONES = [2.667, 1.6, 1.142]; // the step size falls tenfold after steps / each of these
const COARSE = 0.5; // the fraction of the steps, from the first on, in which pictures of half the size are moved

/**
 * @typedef {object} Options
 * @property {number[]} labels
 * @property {number} steps
 * @property {number} step_size how far one step may move a pixel at first
 * @property {number} tv_weight of the total variation
 * @property {'steps' | 'coarse first'} schedule
 */

/**
 * @param {Received} received
 * @param {import('./random.js').Generator} random draws the start
 * @param {Options} options
 * @returns {Generator<Snapshot>}
 */
export function* invert(received, random, { labels, steps, step_size, tv_weight, schedule }) {
  const { kernels, plan, batch, classes, update, squaredErrors } = received;
  const [, height, width] = plan.shape;
  const z = kernels.array(batch * plan.shape.reduce((product, side) => product * side));
  const gradient = kernels.array(z.length);
  z.set(random.normal(z.length));
  const [matching, y] = [new Matching(received, cosineDistance(kernels, update)), oneHot(labels, classes)];
  const floor = squaredErrors ? expectedDistance('cosine', squaredErrors, squaredNorm(received)) : -Infinity;
  const coarse = schedule === 'coarse first' ? toEven(COARSE * steps) : 0;
  const half = new HalfSize([batch * plan.shape[0], height, width]);
  const [small, smallGradient] = [kernels.array(half.count), kernels.array(half.count)];
  if (coarse) half.reduce(z, small);
  let adam = new SignedAdam(kernels, coarse ? small : z, step_size);
  for (let step = 1; step <= steps; step++) {
    if (step <= coarse) half.enlarge(small, z);
    else if (adam.z === small) {
      half.enlarge(small, z);
      adam = new SignedAdam(kernels, z, step_size);
    }
    const loss = matching.evaluate(z, y);
    if (loss >= floor) {
      matching.differentiate();
      gradient.set(matching.pictureGradient);
    } else gradient.fill(0); // the guess fits as well as the true pictures would
    smooth(z, gradient, { weight: tv_weight, height, width });
    yield { step, start: 1, loss, pictures: z, labels };
    if (step <= coarse) half.pullBack(gradient, smallGradient);
    adam.step(step <= coarse ? smallGradient : gradient, 0.1 ** MILESTONES.filter((part) => step > Math.floor(steps / part)).length);
  }
  if (steps <= coarse) half.enlarge(small, z);
  yield { step: steps, start: 1, loss: matching.evaluate(z, y), pictures: z, labels };
}
