// Faults planted in the modules of the networks: the checks of network.test.js find each of them.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkCases, checkDerivatives, planOf } from './network_checks.js';

const ATTACK = fileURLToPath(new URL('../../leakage/ui/components/attack', import.meta.url));

/** @typedef {import('./network_checks.js').Modules} Modules */

/**
 * A fault: in this module, `text` becomes `wrong`.
 * @typedef {{ name: string, module: string, text: string, wrong: string }} Fault
 */

/** @type {Fault[]} */
const FAULTS = [
  { name: 'a wrong sign in the curvature of the sigmoid', module: 'kernels.js', text: '(1 - 2 * s)', wrong: '(1 + 2 * s)' },
  { name: 'no curvature of tanh', module: 'activations.js', text: 'curvature[i] = -2 * t * first;', wrong: '' },
  { name: 'another factor of LeakyReLU', module: 'activations.js', text: 'NEGATIVE_SLOPE = 0.2', wrong: 'NEGATIVE_SLOPE = 0.02' },
  { name: 'rows with a stride of 1', module: 'planes.js', text: 'places, stride * row, channels', wrong: 'places, row, channels' },
  { name: 'no padding at the left', module: 'planes.js', text: 'column(first + padding), plane', wrong: 'column(first), plane' },
  { name: 'columns that are not sorted', module: 'planes.js', text: '(x % stride) * sorted + Math.floor(x / stride)', wrong: 'x' },
  {
    name: 'a filter whose columns are mirrored',
    module: 'planes.js',
    text: 'line * size + right',
    wrong: 'line * size + size - 1 - right',
  },
  { name: 'the bias of one picture', module: 'bias.js', text: '] += sum', wrong: '] = sum' },
  {
    name: 'a convolution whose bias stands still',
    module: 'convolution.js',
    text: 'startWith(this.output, direction.bias',
    wrong: 'startWith(this.output, null',
  },
  {
    name: 'a linear layer whose bias stands still',
    module: 'linear.js',
    text: 'startWith(tangent, direction.bias',
    wrong: 'startWith(tangent, null',
  },
  {
    name: 'a transposed weight',
    module: 'linear.js',
    text: 'gemmNT(output, input, weight, this.batch, this.units, this.features)',
    wrong: 'gemm(output, input, weight, this.batch, this.features, this.units)',
  },
  {
    name: 'no mean over the batch',
    module: 'cross_entropy.js',
    text: '(probabilities[c] * mass - labels[c]) / batch',
    wrong: 'probabilities[c] * mass - labels[c]',
  },
  { name: 'half of the second derivative of softmax', module: 'cross_entropy.js', text: '* (tangent[c] - mean)', wrong: '* tangent[c]' },
  { name: 'a wrong sign in the labels', module: 'cross_entropy.js', text: 'mean - tangent[c])', wrong: 'tangent[c] - mean)' },
  { name: 'no second derivative of activations', module: 'kernels.js', text: ' + c[i] * d[i] * e[i]', wrong: '' },
  { name: 'weights that stand still in the backward pass', module: 'network.js', text: '[zGradient, direction.weight],', wrong: '' },
  { name: 'a gradient that is added to the last one', module: 'network.js', text: 'this.gradient.fill(0);', wrong: '' },
  { name: 'planes that overwrite each other', module: 'kernels.js', text: 'out[to + c] += w', wrong: 'out[to + c] = w' },
  {
    name: 'the inner products of one picture',
    module: 'kernels.js',
    text: 'weight[table[i + 1] + otherTable[k + 1]] +=',
    wrong: 'weight[table[i + 1] + otherTable[k + 1]] =',
  },
  { name: 'another padding of LeNet', module: 'plans.js', text: 'padding: 2', wrong: 'padding: 3' },
];

/**
 * Import the modules from a folder of their own, with a fault if there is one.
 * @param {import('node:test').TestContext} test
 * @param {Fault} [fault]
 * @returns {Promise<Modules>}
 */
async function modulesWith(test, fault) {
  const folder = mkdtempSync(join(tmpdir(), 'fault-'));
  test.after(() => rmSync(folder, { recursive: true }));
  cpSync(ATTACK, folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  if (fault) {
    const file = join(folder, fault.module);
    const parts = readFileSync(file, 'utf8').split(fault.text);
    assert.equal(parts.length, 2, `${fault.module} contains ${fault.text} once`);
    writeFileSync(file, parts.join(fault.wrong));
  }
  const [kernels, network, plans] = await Promise.all(
    ['kernels.js', 'network.js', 'plans.js'].map((name) => import(pathToFileURL(join(folder, name)).href)),
  );
  return { Kernels: kernels.Kernels, Network: network.Network, PLANS: plans.PLANS };
}

/** @param {Modules} modules */
function check(modules) {
  for (const activation of /** @type {const} */ (['sigmoid', 'tanh'])) {
    const plan = planOf([
      { kind: 'conv', name: 'conv1', filters: 3, size: 3, stride: 2, padding: 1, bias: true },
      { kind: 'activation', activation },
      { kind: 'linear', name: 'linear1', units: 5, bias: true },
      { kind: 'activation', activation },
    ]);
    checkDerivatives(modules, plan, 2, activation);
  }
  const conv = /** @type {const} */ ({ kind: 'conv', name: 'conv1', filters: 2, size: 2, stride: 2, padding: 0, bias: true });
  checkDerivatives(modules, { ...planOf([conv]), shape: [1, 2, 17] }, 1, 'a column that no filter meets');
  checkCases(modules);
}

test('the modules without a fault pass the checks', async (t) => check(await modulesWith(t)));

for (const fault of FAULTS)
  test(`the checks find ${fault.name}`, async (t) => {
    const modules = await modulesWith(t, fault);
    assert.throws(() => check(modules), { code: 'ERR_ASSERTION' });
  });
