// The line search with strong Wolfe conditions of torch.optim.LBFGS (Nocedal and Wright 2006, algorithms 3.5 and 3.6).

import { largest } from './lbfgs.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * A point on the line: its step, the objective, its gradient, and the derivative along the line.
 * @typedef {{ step: number, value: number, gradient: Numbers, along: number }} Point
 */

const [DECREASE, CURVATURE] = [1e-4, 0.9]; // c1 and c2
const STILL = 1e-9; // the search ends when no entry would change by more
const [EDGE, GROWTH, LEAST_GROWTH] = [0.1, 10, 0.01]; // of steps, as torch has them

/**
 * Moves the unknowns of L-BFGS by a step that satisfies the conditions.
 * @type {import('./lbfgs.js').Search}
 */
export function searchLine(lbfgs, value, along, most) {
  const { z, gradient, direction, kernels } = lbfgs;
  const start = z.slice();
  /** @param {number} step */
  const move = (step) => {
    z.set(start);
    kernels.add(z, step, direction);
  };
  const { point, evaluations } = strongWolfe(
    (step) => {
      move(step);
      const reached = lbfgs.objective(z, gradient);
      return { step, value: reached, gradient: gradient.slice(), along: kernels.dot(gradient, direction) };
    },
    { step: 0, value, gradient: gradient.slice(), along },
    lbfgs.size,
    { largest: largest(direction), most },
  );
  move(point.step);
  gradient.set(point.gradient);
  lbfgs.size = point.step;
  return { value: point.value, evaluations };
}

/**
 * Searches a step that satisfies the conditions.
 * @param {(step: number) => Point} evaluate copies the gradient
 * @param {Point} start at step 0
 * @param {number} step the first to try
 * @param {{ largest: number, most: number }} limits the direction's largest entry, and the most evaluations after the first
 * @returns {{ point: Point, evaluations: number }}
 */
function strongWolfe(evaluate, start, step, { largest, most }) {
  /** @type {(point: Point) => boolean} */
  const tooHigh = ({ step, value }) => value > start.value + DECREASE * step * start.along;
  /** @type {(point: Point) => boolean} */
  const flat = ({ along }) => Math.abs(along) <= -CURVATURE * start.along;
  let [before, now] = [start, evaluate(step)];
  let tries = 0;
  /** @type {Point[] | null} one point that satisfies the conditions, or two with such a point between them */
  let bracket = null;
  while (!bracket && tries < most) {
    if (!tooHigh(now) && !(tries > 1 && now.value >= before.value)) {
      if (flat(now)) return { point: now, evaluations: tries + 1 };
      if (now.along < 0) {
        const next = cubicMinimum(before, now, now.step + LEAST_GROWTH * (now.step - before.step), GROWTH * now.step);
        [before, now] = [now, evaluate(next)];
        tries++;
        continue;
      }
    }
    bracket = [before, now];
  }
  const point = bracket ? zoom(bracket) : now.value < start.value ? now : start;
  return { point, evaluations: tries + 1 };

  /** @param {Point[]} ends */
  function zoom(ends) {
    let slow = false;
    let low = Number(ends[0].value > ends[1].value);
    while (tries < most && Math.abs(ends[1].step - ends[0].step) * largest >= STILL) {
      const [least, greatest] = ends[0].step < ends[1].step ? [ends[0].step, ends[1].step] : [ends[1].step, ends[0].step];
      let next = cubicMinimum(ends[0], ends[1], least, greatest);
      const edge = EDGE * (greatest - least);
      const near = Math.min(greatest - next, next - least) < edge;
      if (near && (slow || next >= greatest || next <= least)) {
        next = Math.abs(next - greatest) < Math.abs(next - least) ? greatest - edge : least + edge;
        slow = false;
      } else slow = near;
      const found = evaluate(next);
      tries++;
      if (tooHigh(found) || found.value >= ends[low].value) {
        ends[1 - low] = found;
        low = Number(ends[0].value > ends[1].value);
        continue;
      }
      if (!flat(found) && found.along * (ends[1 - low].step - ends[low].step) >= 0) ends[1 - low] = ends[low];
      ends[low] = found;
      if (flat(found)) break;
    }
    return ends[low];
  }
}

/**
 * The step of the minimum of the cubic polynomial through two points with their derivatives, clamped to [least, greatest].
 * @param {Point} first
 * @param {Point} second
 * @param {number} least
 * @param {number} greatest
 */
function cubicMinimum(first, second, least, greatest) {
  const [left, right] = first.step <= second.step ? [first, second] : [second, first];
  const slope = first.along + second.along - (3 * (first.value - second.value)) / (first.step - second.step);
  const square = slope ** 2 - first.along * second.along;
  if (!(square >= 0)) return (least + greatest) / 2;
  const root = Math.sqrt(square);
  const part = (right.along + root - slope) / (right.along - left.along + 2 * root);
  return Math.min(Math.max(right.step - (right.step - left.step) * part, least), greatest);
}
