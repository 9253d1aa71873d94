// Faults planted in the modules of the attacks: the checks of attack_parts.test.js find each of them.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CHECKS } from './attack_checks.js';
import { ATTACK, modulesOf } from './attack_modules.js';

/**
 * A fault: in this module, `text` becomes `wrong`, and this check fails.
 * @typedef {{ name: string, module: string, text: string, wrong: string, check: string }} Fault
 */

/** @type {Fault[]} */
const FAULTS = [
  { name: 'a wrong rotation', module: 'sha256.js', text: 'turn(e, 11)', wrong: 'turn(e, 12)', check: 'SHA-256' },
  { name: 'other bytes of a digest', module: 'random.js', text: 'getUint32(3)', wrong: 'getUint32(0)', check: 'random numbers' },
  {
    name: 'a last block that is not drawn anew',
    module: 'random.js',
    text: 'out.set(this.uniform(BLOCK), count - BLOCK);',
    wrong: '',
    check: 'random numbers',
  },
  {
    name: 'another bound of a bias',
    module: 'weights.js',
    text: ': 1 / Math.sqrt(inputs)',
    wrong: ': 1 / inputs',
    check: 'weights of a seed',
  },
  {
    name: 'a derivative without its part along g',
    module: 'distances.js',
    text: 'inner / own / length, gradient',
    wrong: '0, gradient',
    check: 'distances',
  },
  {
    name: 'a gap without the received gradient',
    module: 'distances.js',
    text: '2, gradient, -2, wanted',
    wrong: '2, gradient, 0, wanted',
    check: 'distances',
  },
  {
    name: 'a variation across the edge',
    module: 'distances.js',
    text: 'column + 1 < width',
    wrong: 'at + 1 < pictures.length',
    check: 'total variation',
  },
  {
    name: 'the label of the largest row',
    module: 'label_rules.js',
    text: 'rows[c] < rows[label]',
    wrong: 'rows[c] > rows[label]',
    check: 'rules for labels',
  },
  { name: 'probes that are not shifted', module: 'label_probes.js', text: 'logit + shift[c]', wrong: 'logit', check: 'labels of batches' },
  {
    name: 'a history with a wrong scale',
    module: 'lbfgs.js',
    text: 'combine(direction, this.scale, direction',
    wrong: 'combine(direction, 1, direction',
    check: 'iDLG',
  },
  {
    name: 'a first step of full size',
    module: 'lbfgs.js',
    text: 'this.iterations === 1 ? Math.min(1, 1 / sumOfSizes(gradient)) : 1',
    wrong: '1',
    check: 'iDLG',
  },
  {
    name: 'logits without the derivative of softmax',
    module: 'idlg.js',
    text: '(matching.labelGradient[c] - mean)',
    wrong: 'matching.labelGradient[c]',
    check: 'DLG, which searches the label too',
  },
  {
    name: 'a weaker condition of curvature',
    module: 'line_search.js',
    text: 'CURVATURE] = [1e-4, 0.9]',
    wrong: 'CURVATURE] = [1e-4, 0.01]',
    check: 'L-BFGS with strong Wolfe conditions',
  },
  { name: 'moments that are not corrected', module: 'adam.js', text: '(1 - MEAN ** this.steps)', wrong: '1', check: 'Inverting Gradients' },
  {
    name: 'aligned corners',
    module: 'enlargement.js',
    text: '(index + 0.5) * small) / large - 0.5',
    wrong: 'index * (small - 1)) / (large - 1)',
    check: 'Inverting Gradients',
  },
  {
    name: 'a step size that never falls',
    module: 'inverting_gradients.js',
    text: 'step > Math.floor(steps / part)',
    wrong: 'false',
    check: 'Inverting Gradients',
  },
  {
    name: 'errors that are fitted',
    module: 'inverting_gradients.js',
    text: 'loss >= floor',
    wrong: 'loss >= 0',
    check: 'Inverting Gradients',
  },
  {
    name: 'rows with equal weights',
    module: 'rows.js',
    text: 'd.map((each) => each / total)',
    wrong: 'd.map(() => 1 / d.length)',
    check: 'the bias attack',
  },
  { name: 'pictures in another order', module: 'last_layer.js', text: '-row[label]', wrong: 'row[label]', check: 'the bias attack' },
  { name: 'levels of 128 steps', module: 'number_formats.js', text: 'LEVELS = 127', wrong: 'LEVELS = 128', check: 'protections' },
  {
    name: 'ties that are rounded up',
    module: 'number_formats.js',
    text: 'return floor % 2 ? floor + 1 : floor;',
    wrong: 'return floor + 1;',
    check: 'number formats',
  },
  {
    name: 'one entry more that is pruned',
    module: 'protections.js',
    text: 'Math.abs(gradient[i]) < least',
    wrong: 'Math.abs(gradient[i]) <= least',
    check: 'protections',
  },
  {
    name: 'a clipped guess whose norm moves',
    module: 'imitations.js',
    text: 'v[i] - along * g[i]',
    wrong: 'v[i]',
    check: 'what an adaptive attacker knows',
  },
  {
    name: 'a narrower step of rounding',
    module: 'imitations.js',
    text: "'stochastic' ? 1 : 0.5",
    wrong: "'stochastic' ? 1 : 0.25",
    check: 'what an adaptive attacker knows',
  },
  {
    name: 'rounds that are not averaged',
    module: 'imitations.js',
    text: 'collected[i] /= updates.length',
    wrong: 'collected[i] /= 1',
    check: 'what an adaptive attacker knows',
  },
];

/**
 * Import the modules from a folder of their own, with a fault.
 * @param {import('node:test').TestContext} test
 * @param {Fault} fault
 */
async function modulesWith(test, { module, text, wrong }) {
  const folder = mkdtempSync(join(tmpdir(), 'fault-'));
  test.after(() => rmSync(folder, { recursive: true }));
  cpSync(ATTACK, folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const file = join(folder, module);
  const parts = readFileSync(file, 'utf8').split(text);
  assert.equal(parts.length, 2, `${module} contains ${text} once`);
  writeFileSync(file, parts.join(wrong));
  return modulesOf(folder);
}

for (const fault of FAULTS)
  test(`a check finds ${fault.name}`, async (t) => {
    const modules = await modulesWith(t, fault);
    assert.throws(() => CHECKS[fault.check](modules), { code: 'ERR_ASSERTION' });
  });
