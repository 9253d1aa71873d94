// The gradient of a network, and the derivatives of <gradient, direction> by pictures and labels, beside finite differences and torch.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kernels } from '../../leakage/ui/components/attack/kernels.js';
import { Network } from '../../leakage/ui/components/attack/network.js';
import { PLANS } from '../../leakage/ui/components/attack/plans.js';
import { checkCases, checkDerivatives, MODULES, planOf } from './network_checks.js';

/** @typedef {import('../../leakage/ui/components/attack/plans.js').Layer} Layer */

const ACTIVATIONS = /** @type {const} */ (['sigmoid', 'tanh', 'relu', 'leaky_relu']);

/** @type {(activation: typeof ACTIVATIONS[number]) => Layer} */
const active = (activation) => ({ kind: 'activation', activation });

for (const activation of ACTIVATIONS)
  test(`two convolutions and a linear layer with ${activation} have the derivatives that finite differences give`, () => {
    for (const stride of [1, 2, 3])
      for (const padding of [0, 1, 2])
        for (const bias of [true, false])
          for (const batch of [1, 2]) {
            const first = /** @type {const} */ ({ kind: 'conv', name: 'conv1', filters: 3, size: 3, stride, padding, bias });
            const second = /** @type {const} */ ({ kind: 'conv', name: 'conv2', filters: 2, size: 2, stride: 1, padding: 1, bias });
            const plan = planOf([first, active(activation), second, active(activation)], { bias });
            checkDerivatives(MODULES, plan, batch, JSON.stringify({ activation, stride, padding, bias, batch }));
          }
  });

for (const depth of [0, 1, 2, 3])
  test(`${depth + 1} linear layers have the derivatives that finite differences give`, () => {
    for (const activation of ACTIVATIONS)
      for (const bias of [true, false])
        for (const batch of [1, 2]) {
          const hidden = Array.from(
            { length: depth },
            (_, i) => /** @type {Layer} */ ({ kind: 'linear', name: `linear${i + 1}`, units: 5, bias }),
          );
          const plan = planOf(
            hidden.flatMap((layer) => [layer, active(activation)]),
            { bias },
          );
          checkDerivatives(MODULES, plan, batch, JSON.stringify({ activation, bias, batch }));
        }
  });

test('layers without an activation between them, and one after the last layer, have the right derivatives', () => {
  const first = /** @type {const} */ ({ kind: 'conv', name: 'conv1', filters: 3, size: 4, stride: 1, padding: 1, bias: true });
  const second = /** @type {const} */ ({ kind: 'linear', name: 'linear1', units: 5, bias: true });
  const plan = planOf([first, second]);
  checkDerivatives(MODULES, { ...plan, layers: [...plan.layers, active('tanh')] }, 2, 'linear convolution');
});

test('the networks compute what torch computes', () => checkCases(MODULES));

test('the networks have as many parameters as their papers and models say', () => {
  const [color, gray] = /** @type {const} */ ([
    [3, 32, 32],
    [1, 28, 28],
  ]);
  const count = (/** @type {import('../../leakage/ui/components/attack/plans.js').Plan} */ plan) => new Network(new Kernels(), plan).count;
  assert.equal(count(PLANS.lenet([...color], 10)), 15826);
  assert.equal(count(PLANS.lenet([...gray], 10)), 13426);
  assert.equal(count(PLANS.lenet_star([...color], 10)), 15780);
  assert.equal(count(PLANS.mnist_cnn([...gray], 10)), 35900);
  assert.equal(count(PLANS.mlp([...gray], 10)), 784 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10);
});

test('a network says where each parameter is, in the order of torch', () => {
  const network = new Network(new Kernels(), PLANS.mlp([1, 2, 3], 4, { width: 5, depth: 1 }));
  assert.deepEqual(network.tensors, [
    { name: 'linear1.weight', from: 0, to: 30, shape: [5, 6] },
    { name: 'linear1.bias', from: 30, to: 35, shape: [5] },
    { name: 'linear.weight', from: 35, to: 55, shape: [4, 5] },
    { name: 'linear.bias', from: 55, to: 59, shape: [4] },
  ]);
});

test('a filter that is larger than its padded picture is refused', () => {
  const message = 'A filter of 5 x 5 does not fit in 4 x 9 pixels. Choose larger pictures.';
  assert.throws(() => new Network(new Kernels(), PLANS.mnist_cnn([1, 4, 9], 10)), { name: 'RangeError', message });
});
