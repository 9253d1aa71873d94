// The derivatives of a matched distance through an attacker's imitation of the phones, beside finite differences in float64.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cosineDistance, squaredDistance } from '../../leakage/ui/components/attack/distances.js';
import { HalfSize } from '../../leakage/ui/components/attack/half_size.js';
import { imitationOf } from '../../leakage/ui/components/attack/imitations.js';
import { Kernels } from '../../leakage/ui/components/attack/kernels.js';
import { Matching } from '../../leakage/ui/components/attack/matching.js';
import { Network } from '../../leakage/ui/components/attack/network.js';
import { PLANS } from '../../leakage/ui/components/attack/plans.js';
import { assertClose, labelsOf, numbersOf } from './network_checks.js';

/** @typedef {import('../../leakage/ui/components/attack/protections.js').Protection} Protection */

const [CLASSES, BATCH, STEP] = [4, 2, 1e-5];
const plan = PLANS.lenet([1, 6, 5], CLASSES);
const kernels = new Kernels(Float64Array);
const { tensors, count } = new Network(kernels, plan);
const weights = numbersOf(count, 1, 0.5);
const update = numbersOf(count, 2, 0.02);

/** @type {Protection} */
const CLIPPING = { id: 'clipping', bound: 0.5, scope: 'whole gradient' };

/** @type {[string, Protection[]][]} those whose imitation has a derivative, but where it jumps */
const IMITATIONS = [
  ['no protection', []],
  ['entries that were pruned', [{ id: 'pruning', fraction: 0.5, scope: 'random' }]],
  ['a clipped gradient', [CLIPPING]],
  ['each clipped layer', [{ id: 'clipping', bound: 0.5, scope: 'each layer' }]],
  ['a clipped and rounded gradient', [CLIPPING, { id: 'low_precision', number: 'int8', rounding: 'nearest' }]],
];

for (const [name, protections] of IMITATIONS)
  for (const phones of [1, 2])
    for (const distance of [squaredDistance, cosineDistance])
      test(`${name}, ${phones} phones, ${distance.name}: the derivatives are those of finite differences`, () => {
        const received = update.map((entry, i) => (protections[0]?.id === 'pruning' && i % 3 ? 0 : entry));
        const imitations = protections.flatMap((protection, index) => {
          // A rounded gradient is imitated by its slack, which has a derivative, where one phone sends it.
          const situation = {
            update: received,
            tensors,
            single: true,
            last: index === protections.length - 1,
            collected: false,
            rounds: 1,
          };
          return imitationOf(protection, situation) ?? [];
        });
        const known = { kernels, plan, weights, tensors, classes: CLASSES, batch: BATCH, phones };
        const matching = new Matching({ ...known, update: received, imitations, squaredErrors: 0 }, distance(kernels, received));
        const [x, y] = [numbersOf(BATCH * 30, 3), labelsOf(BATCH, CLASSES, 4)];
        matching.evaluate(x, y);
        matching.differentiate();
        const [pictures, labels] = [matching.pictureGradient.slice(), matching.labelGradient.slice()];
        assertClose(pictures, differences(() => matching.evaluate(x, y), x), 1e-6, 'pictures'); // prettier-ignore
        assertClose(labels, differences(() => matching.evaluate(x, y), y), 1e-6, 'labels'); // prettier-ignore
      });

test('pulling back to half the size is the transpose of enlarging', () => {
  const half = new HalfSize([2, 5, 6]);
  const [small, large] = [numbersOf(half.count, 1), numbersOf(60, 2)];
  const [enlarged, pulled] = [new Float64Array(60), new Float64Array(half.count)];
  half.enlarge(small, enlarged);
  half.pullBack(large, pulled);
  const dot = (/** @type {Float64Array} */ one, /** @type {Float64Array} */ other) =>
    one.reduce((sum, value, i) => sum + value * other[i], 0);
  assert.ok(Math.abs(dot(enlarged, large) - dot(small, pulled)) < 1e-12);
});

/** @type {(value: () => number, at: Float64Array) => Float64Array} the central differences of a value by every entry of an array */
function differences(value, at) {
  return at.map((middle, i) => {
    at[i] = middle + STEP;
    const above = value();
    at[i] = middle - STEP;
    const below = value();
    at[i] = middle;
    return (above - below) / (2 * STEP);
  });
}
