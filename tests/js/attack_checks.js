// The checks of the attacks' parts beside what the program computes (attack_cases.json). They take the modules that they check as
// arguments, so that attack_faults.test.js can check broken ones.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { assertClose, numbersOf } from './network_checks.js';

/** @typedef {import('../../leakage/ui/components/attack/kernels.js').Numbers} Numbers */
/** @typedef {import('../../leakage/ui/components/attack/received.js').Received} Received */
/** @typedef {import('../../leakage/ui/components/attack/received.js').Snapshot} Snapshot */
/** @typedef {import('./attack_modules.js').Modules} Modules */

/** What the program computes: see tests/support/browser_attack_cases.py. */
const CASES = JSON.parse(readFileSync(new URL('attack_cases.json', import.meta.url), 'utf8'));

const [CLASSES, SEED] = [5, 1];
/** @type {[number, number, number]} */
const SHAPE = [3, 8, 8];
/** Of normal numbers, relative to the largest: torch computes logarithms and cosines in float32. */
const ROUNDING = 5e-7;

/** @type {Record<string, (modules: Modules) => void>} */
export const CHECKS = {
  'SHA-256': ({ sha256 }) => {
    for (const [text, digest] of Object.entries(CASES.digests)) assert.equal(Buffer.from(sha256(text)).toString('hex'), digest);
  },

  'random numbers': ({ generator, Generator }) => {
    const { seed, uniform, normal, permutation, range, start } = CASES.random;
    for (const random of [generator(SEED, 'attack'), new Generator(seed)]) {
      assert.deepEqual([...random.uniform(5)], uniform);
      for (const count of [3, 15, 16, 37]) assertClose(random.normal(count), normal[count], ROUNDING, `${count} normal numbers`);
      assert.deepEqual([...random.permutation(12)], permutation);
      assert.deepEqual([...random.uniform(5, -0.3, 0.4)], range);
    }
    assertClose(generator(SEED, 'attack').normal(192), start, ROUNDING, 'the first picture of an attack');
  },

  'weights of a seed': ({ Kernels, Network, PLANS, drawWeights }) => {
    for (const { network: name, count, first, sha256 } of CASES.weights) {
      const plan = PLANS[/** @type {keyof typeof PLANS} */ (name)]([3, 16, 16], 10);
      const network = new Network(new Kernels(), plan);
      drawWeights(network, plan, 7);
      const { weights } = network;
      assert.deepEqual([weights.length, ...weights.subarray(0, 4)], [count, ...first], name);
      const bytes = new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength);
      assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256, name);
    }
  },

  distances: ({ Kernels, squaredDistance, cosineDistance }) => {
    for (const { kind, value, derivative } of CASES.distances) {
      const distance = (kind === 'squared' ? squaredDistance : cosineDistance)(new Kernels(Float64Array), numbersOf(30, 2));
      const filled = new Float64Array(30);
      assertClose([distance(numbersOf(30, 1), filled)], [value], 1e-12, kind);
      assertClose(filled, derivative, 1e-12, `derivative of ${kind}`);
    }
  },

  'total variation': ({ smooth }) => {
    for (const { shape, derivative } of CASES.variations) {
      const count = derivative.length;
      const filled = new Float64Array(count).fill(2);
      smooth(numbersOf(count, 4), filled, { weight: 0.5, height: shape[2], width: shape[3] });
      const added = filled.map((each) => each - 2);
      assertClose(added, derivative, 1e-12, 'derivative');
    }
  },

  'rules for labels': ({ labelCounts, nearestCounts, rowsWithoutBias }) => {
    for (const { rows, labels } of CASES.labels.counts) assert.deepEqual(labelCounts(rows, 5), labels);
    const scaled = (/** @type {number[]} */ wanted) => wanted.map((each) => 4 * Math.abs(Math.fround(each)));
    for (const { wanted, labels } of CASES.labels.nearest) assert.deepEqual(nearestCounts(scaled(wanted), 5), labels);
    assertClose(rowsWithoutBias(numbersOf(20, 9), 5), CASES.labels.sign_free, 1e-12, 'rows without a bias');
  },

  'labels of batches': (modules) => {
    for (const { network, labels, found, counts, bias, plain, matched } of CASES.labels.batches) {
      const received = receivedOf(modules, network, labels);
      const last = modules.lastLayer(received);
      const means = modules.meanPredictions(received, last);
      // The program enlarges its probe pictures in float32.
      assertNear(means.bias, bias, 1e-5, `${network}: bias gradient`);
      assertNear(means.plain, plain, 1e-5, `${network}: predictions`);
      assertNear(means.matched, matched, 1e-5, `${network}: matched predictions`);
      assert.deepEqual(modules.labelsByPrior(means, labels.length).labels, found, network);
      if (last.bias) assert.deepEqual(modules.labelCounts(last.bias, labels.length), counts, network);
      assert.deepEqual(modules.readLabels(received), [...labels].sort(), network);
    }
  },

  iDLG: (modules) => {
    const received = receivedOf(modules, 'lenet', [2]);
    const random = randomOf([numbersOf(192, 4, 1.5), new Float64Array(CLASSES)]);
    const search = modules.descend(received, random, { labels: [2], steps: 3, restarts: 1 });
    assertPath(search, CASES.searches.idlg, 1e-9, 1e-7); // each step multiplies rounding about tenfold
  },

  'DLG, which searches the label too': (modules) => {
    const received = receivedOf(modules, 'lenet', [2]);
    const random = randomOf([numbersOf(192, 4, 1.5), Float64Array.from(CASES.searches.dlg.logits)]);
    assertPath(modules.descend(received, random, { labels: null, steps: 2, restarts: 1 }), CASES.searches.dlg, 1e-9);
  },

  'L-BFGS with strong Wolfe conditions': (modules) => {
    const received = receivedOf(modules, 'lenet', [2]);
    const matching = new modules.Matching(received, modules.squaredDistance(received.kernels, received.update));
    const y = modules.oneHot([2], CLASSES);
    const z = numbersOf(192, 4, 1.5);
    const search = new modules.Lbfgs(received.kernels, z, evaluate, modules.searchLine);
    /** @type {(z: Numbers, gradient: Numbers) => number} */
    function evaluate(z, gradient) {
      const value = matching.evaluate(z, y);
      matching.differentiate();
      gradient.set(matching.pictureGradient);
      return value;
    }
    const losses = [search.step(), search.step(), search.step(), matching.evaluate(z, y)];
    assertRelative(losses, CASES.searches.strong_wolfe.losses, 1e-9);
    assertClose(third(z), CASES.searches.strong_wolfe.end, 1e-9, 'pictures');
  },

  'Inverting Gradients': (modules) => {
    for (const [name, schedule, floor] of /** @type {const} */ ([
      ['inverting_gradients', 'steps', 0],
      ['coarse first', 'coarse first', 0],
      ['behind errors', 'steps', CASES.searches['behind errors'].floor],
    ])) {
      const received = receivedOf(modules, 'lenet', [0, 3]);
      // Behind these errors E the true pictures are expected at this floor: 1 - sqrt(1 - r) with r = E / ||g*||^2.
      received.squaredErrors = (1 - (1 - floor) ** 2) * modules.squaredNorm(received);
      const options = { labels: [0, 3], steps: 20, step_size: 0.1, tv_weight: 0.001, schedule };
      assertPath(modules.invert(received, randomOf([numbersOf(384, 4, 1.5)]), options), CASES.searches[name], 1e-10);
    }
  },

  'the bias attack': (modules) => {
    for (const { labels, pictures, loss } of CASES.linear_layer) {
      const [answer] = modules.solve(receivedOf(modules, 'mlp', labels), { labels });
      assertClose(third(answer.pictures), pictures, 1e-9, `${labels.length} pictures`);
      assertNear([answer.loss], [loss], 1e-9, 'distance');
    }
  },

  'number formats': ({ roundToFormat }) => {
    for (const [format, values, rounded] of /** @type {const} */ ([
      ['int8', [127, 0.5, 1.5, 2.5, -2.6], [127, 0, 2, 2, -3]], // one level is 1; ties go to the even number
      ['fp16', [2049, 2051, 65519, 65520, 2 ** -25, 3 * 2 ** -25], [2048, 2052, 65504, Infinity, 0, 2 ** -23]], // 11 significant bits
      ['bf16', [257, 259, -0.3], [256, 260, -0.30078125]], // 8 significant bits: -77 / 256
    ])) {
      const numbers = Float32Array.from(values);
      roundToFormat(numbers, format);
      assert.deepEqual([...numbers], rounded, format);
    }
  },

  protections: ({ protect, generator }) => {
    for (const { protection, sent, noise } of CASES.protections)
      for (let round = 0; round < sent.length; round++) {
        const gradient = Float32Array.from(gradientOf(Math.fround));
        const drawn = generator(3, 'defense', 0, protection.id, round);
        let at = 0;
        const given = { ...randomOf([]), normal: (/** @type {number} */ count) => noise.slice(at, (at += count)) };
        protect(gradient, TENSORS, protection, noise && !round ? given : drawn);
        const name = JSON.stringify(protection);
        if (protection.id === 'clipping') assertClose(gradient, sent[round], 1e-6, name);
        else if (noise && round) assertClose(gradient, sent[round], ROUNDING, name);
        else assert.deepEqual([...gradient], sent[round].map(positive), name);
      }
  },

  'what an adaptive attacker knows': ({ imitationOf, errorsBehind, collectRounds, drawsAnew }) => {
    for (const { protection, sent, imitated, pulled_back, errors, collected } of CASES.protections) {
      const name = JSON.stringify(protection);
      const rounds = sent.map((/** @type {number[]} */ update) => Float64Array.from(update));
      const situation = { update: rounds[0], tensors: TENSORS, single: true, last: true, collected: false, rounds: 1 };
      const guess = gradientOf(Math.fround);
      let at = 0;
      for (const { from, to } of TENSORS) {
        const part = numbersOf(to - from, 5);
        for (let i = 0; i < part.length; i++, at++) guess[at] += 0.05 * part[i];
      }
      const [result, derivative] = [guess.slice(), numbersOf(guess.length, 2)];
      const imitation = imitationOf(protection, situation);
      imitation?.apply(result);
      imitation?.pullBack(guess, derivative);
      assertClose(result, imitated, 1e-12, name);
      assertClose(derivative, pulled_back, 1e-12, name);
      const zeros = new Float64Array(guess.length);
      assertVariances(errorsBehind(protection, zeros, situation), errors, name);
      assert.equal(drawsAnew(protection), collected !== null, name);
      if (!collected) continue;
      const update = collectRounds(rounds, protection);
      assertClose(update, collected.update, 1e-12, name);
      assertVariances(errorsBehind(protection, zeros, { ...situation, update, collected: true, rounds: 3 }), collected.errors, name);
    }
  },
};

const TENSORS = [
  { from: 0, to: 40 },
  { from: 40, to: 47 },
  { from: 47, to: 80 },
];

/**
 * The gradient of tests/support/browser_protection_cases.py.
 * @param {(value: number) => number} round as torch rounds it
 */
function gradientOf(round) {
  const scales = [1, 0.1, 0.01];
  return numbersOf(80, 1).map((value, i) => round(round(scales[TENSORS.findIndex(({ to }) => i < to)]) * round(value)));
}

/** @param {number} value */
const positive = (value) => value + 0; // torch's -0, a product with a mask, becomes 0

/**
 * What the server has of the pictures of tests/support/browser_attack_cases.py, in float64.
 * @param {Modules} modules
 * @param {string} name
 * @param {number[]} labels
 * @returns {Received}
 */
function receivedOf({ Kernels, Network, PLANS, drawWeights, send, receive }, name, labels) {
  const plan = PLANS[/** @type {keyof typeof PLANS} */ (name)](SHAPE, CLASSES);
  const kernels = new Kernels(Float64Array);
  const network = new Network(kernels, plan);
  drawWeights(network, plan, SEED);
  const pictures = /** @type {any} */ (numbersOf(labels.length * 192, 3).map((number) => (number + 1) / 2)); // not rounded to float32
  const { weights, tensors } = network;
  const task = { plan, classes: CLASSES, weights, protections: [], rounds: 1, seed: SEED };
  const updates = send(kernels, { pictures, labels, phones: 1 }, task);
  return receive({ kernels, plan, weights, tensors, classes: CLASSES, batch: labels.length, phones: 1 }, updates, []);
}

/**
 * A generator that gives these normal numbers, one list at a call.
 * @param {Float64Array[]} lists
 * @returns {any}
 */
function randomOf(lists) {
  return { normal: () => lists.shift() };
}

/**
 * @param {Generator<Snapshot>} search
 * @param {{ losses: number[], end: number[] }} expected
 * @param {number} tolerance
 * @param {number} [atEnd] the tolerance of the last distance and pictures
 */
function assertPath(search, { losses, end }, tolerance, atEnd = tolerance) {
  const found = [];
  let pictures = new Float64Array(0);
  for (const snapshot of search) {
    found.push(snapshot.loss);
    pictures = Float64Array.from(snapshot.pictures);
  }
  assertRelative(found.slice(0, -1), losses.slice(0, -1), tolerance);
  assertRelative(found.slice(-1), losses.slice(-1), atEnd);
  assertClose(third(pictures), end, atEnd, 'pictures');
}

/** @type {(actual: number[], expected: number[], tolerance: number) => void} */
function assertRelative(actual, expected, tolerance) {
  assert.equal(actual.length, expected.length);
  actual.forEach((value, step) => assertClose([value], [expected[step]], tolerance, `step ${step + 1}`));
}

/** @type {(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number, what: string) => void} relative to numbers above 1 */
function assertNear(actual, expected, tolerance, what) {
  assert.equal(actual.length, expected.length, what);
  for (let i = 0; i < expected.length; i++) {
    const gap = Math.abs(actual[i] - expected[i]);
    assert.ok(gap <= tolerance * Math.max(1, Math.abs(expected[i])), `${what}: entry ${i} differs by ${gap}`);
  }
}

/** @type {(actual: Float64Array | null, expected: number[] | null, what: string) => void} */
function assertVariances(actual, expected, what) {
  if (!expected || !actual) assert.equal(actual, expected, what);
  else assertNear(actual, expected, 1e-7 * Math.max(...expected), what); // torch holds them in float32 where they are one number
}

/** @param {Numbers} values */
const third = (values) => values.filter((_, i) => i % 3 === 0);
