// The checks of a network's derivatives: beside finite differences, and beside torch (network_cases.json). They take the modules that they
// check as arguments, so that network_faults.test.js can check broken ones.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Kernels } from '../../leakage/ui/components/attack/kernels.js';
import { Network } from '../../leakage/ui/components/attack/network.js';
import { PLANS } from '../../leakage/ui/components/attack/plans.js';

/** @typedef {import('../../leakage/ui/components/attack/kernels.js').Numbers} Numbers */
/** @typedef {import('../../leakage/ui/components/attack/plans.js').Plan} Plan */
/** @typedef {import('../../leakage/ui/components/attack/plans.js').Layer} Layer */
/** @typedef {{ Kernels: typeof Kernels, Network: typeof Network, PLANS: typeof PLANS }} Modules */

/**
 * What torch computes for a network: see tests/support/browser_network_cases.py.
 * @typedef {object} Case
 * @property {keyof typeof PLANS} plan
 * @property {import('../../leakage/ui/components/attack/plans.js').PictureShape} shape
 * @property {number} classes
 * @property {number} batch
 * @property {object} options of the plan
 * @property {number} scale of the weights
 * @property {[name: string, shape: number[]][]} tensors
 * @property {number} loss
 * @property {number} gradient_norm
 * @property {number[]} gradient every stride-th entry
 * @property {number} stride
 * @property {number[]} picture_slope
 * @property {number[]} label_slope
 */

/** @type {Modules} */
export const MODULES = { Kernels, Network, PLANS };

/** @type {Case[]} */
const CASES = JSON.parse(readFileSync(new URL('network_cases.json', import.meta.url), 'utf8'));

const STEP = 1e-6; // of finite differences: their error is about 1e-10, and hardly a step crosses the kink of a ReLU
const [CLOSE, GRADIENT_CLOSE, SLOPE_CLOSE] = [1e-6, 1e-12, 1e-11]; // relative to the largest entry

/**
 * Pseudo-random numbers between -scale and scale, from the linear congruential generator of Press et al. 1992 (section 7.1).
 * tests/support/browser_network_cases.py makes the same numbers.
 * @param {number} count
 * @param {number} seed
 * @param {number} [scale]
 */
export function numbersOf(count, seed, scale = 1) {
  let state = seed;
  return Float64Array.from({ length: count }, () => {
    state = (Math.imul(1664525, state) + 1013904223) >>> 0;
    return scale * (state / 2 ** 31 - 1);
  });
}

/**
 * Soft labels: positive numbers whose sum in every row is 1.
 * @param {number} batch
 * @param {number} classes
 * @param {number} seed
 */
export function labelsOf(batch, classes, seed) {
  const labels = numbersOf(batch * classes, seed).map((number) => number + 1.1);
  return labels.map((label, i) => {
    const row = labels.subarray(i - (i % classes), i - (i % classes) + classes);
    return label / row.reduce((sum, each) => sum + each);
  });
}

/** @type {(actual: ArrayLike<number>, expected: ArrayLike<number>) => number} the largest difference over the largest entry */
export function relativeError(actual, expected) {
  assert.equal(actual.length, expected.length);
  let [error, largest] = [0, 0];
  for (let i = 0; i < expected.length; i++) {
    error = Math.max(error, Math.abs(actual[i] - expected[i])); // NaN stays NaN
    largest = Math.max(largest, Math.abs(expected[i]));
  }
  return error / largest;
}

/** @type {(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number, what: string) => void} */
export function assertClose(actual, expected, tolerance, what) {
  const error = relativeError(actual, expected);
  assert.ok(error < tolerance, `${what}: relative error ${error}`);
}

/**
 * A plan of some layers, on pictures of two channels and 7 x 6 pixels, with four classes.
 * @param {Layer[]} layers all but the last
 * @param {{ bias?: boolean }} [options]
 * @returns {Plan}
 */
export const planOf = (layers, { bias = true } = {}) => ({
  shape: [2, 7, 6],
  layers: [...layers, { kind: 'linear', name: 'linear', units: 4, bias }],
  initialisation: 'default',
});

/**
 * Compare gradient, pictureSlope and labelSlope of a network with central differences in float64.
 * @param {Modules} modules
 * @param {Plan} plan
 * @param {number} batch
 * @param {string} name of the network in messages
 */
export function checkDerivatives({ Kernels, Network }, plan, batch, name) {
  const kernels = new Kernels(Float64Array);
  const network = new Network(kernels, plan, batch);
  network.weights.set(numbersOf(network.count, 1, 0.7));
  network.direction.set(numbersOf(network.count, 2));
  const x = kernels.array(network.pictureSlope.length);
  x.set(numbersOf(x.length, 3));
  const y = labelsOf(batch, network.classes, 4);
  network.differentiate(x, y);
  network.differentiateAgain();
  const [gradient, pictureSlope, labelSlope] = [network.gradient, network.pictureSlope, network.labelSlope].map((array) => array.slice());
  const loss = () => network.differentiate(x, y);
  const alongDirection = () => {
    network.differentiate(x, y);
    return kernels.dot(network.gradient, network.direction);
  };
  assertClose(gradient, differences(loss, network.weights), CLOSE, `${name}: dL/dw`);
  assertClose(pictureSlope, differences(alongDirection, x), CLOSE, `${name}: d<g, v>/dx`);
  assertClose(labelSlope, differences(alongDirection, y), CLOSE, `${name}: d<g, v>/dy`);
}

/** @type {(value: () => number, at: Numbers) => Float64Array} the central differences of a value by every entry of an array */
function differences(value, at) {
  return Float64Array.from(at, (middle, i) => {
    at[i] = middle + STEP;
    const above = value();
    at[i] = middle - STEP;
    const below = value();
    at[i] = middle;
    return (above - below) / (2 * STEP);
  });
}

/**
 * Compare each network of network_cases.json with what torch computes.
 * @param {Modules} modules
 */
export function checkCases({ Kernels, Network, PLANS }) {
  for (const expected of CASES) {
    const { plan, shape, classes, batch, options, scale, stride } = expected;
    const kernels = new Kernels(Float64Array);
    const network = new Network(kernels, PLANS[plan](shape, classes, options), batch);
    const tensors = network.tensors.map((tensor) => [tensor.name, tensor.shape]);
    assert.deepEqual([network.classes, tensors], [classes, expected.tensors], `${plan}: tensors`);
    network.weights.set(numbersOf(network.count, 1, scale));
    network.direction.set(numbersOf(network.count, 2));
    const x = kernels.array(batch * shape[0] * shape[1] * shape[2]);
    x.set(numbersOf(x.length, 3));
    const loss = network.differentiate(x, labelsOf(batch, classes, 4));
    network.differentiateAgain();
    const entries = network.gradient.filter((_, i) => i % stride === 0);
    const norm = Math.sqrt(kernels.dot(network.gradient, network.gradient));
    assertClose([loss], [expected.loss], GRADIENT_CLOSE, `${plan}: loss`);
    assertClose([norm], [expected.gradient_norm], GRADIENT_CLOSE, `${plan}: norm of dL/dw`);
    assertClose(entries, expected.gradient, GRADIENT_CLOSE, `${plan}: dL/dw`);
    assertClose(network.pictureSlope, expected.picture_slope, SLOPE_CLOSE, `${plan}: d<g, v>/dx`);
    assertClose(network.labelSlope, expected.label_slope, SLOPE_CLOSE, `${plan}: d<g, v>/dy`);
  }
}
