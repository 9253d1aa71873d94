// The WebAssembly kernels: they compute what plain JavaScript computes, and their code is that of assembly/kernels.ts.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Convolution } from '../../leakage/ui/components/attack/convolution.js';
import { Kernels } from '../../leakage/ui/components/attack/kernels.js';
import { Network } from '../../leakage/ui/components/attack/network.js';
import { PLANS } from '../../leakage/ui/components/attack/plans.js';
import { fastestKernels, simdKernels } from '../../leakage/ui/components/attack/simd.js';
import { assertClose, labelsOf, numbersOf } from './network_checks.js';

/** @typedef {import('../../leakage/ui/components/attack/kernels.js').Numbers} Numbers */

const CLOSE = 1e-5; // relative to the largest entry, in float32
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Call one kernel in plain JavaScript and in WebAssembly on the same numbers, and compare the array that it adds to, with its neighbors.
 * @param {number[]} counts of the arrays; the first is the one that the kernel changes
 * @param {(kernels: Kernels, arrays: Numbers[]) => void} call
 * @param {string} what
 */
function compare(counts, call, what) {
  const [plain, simd] = [new Kernels(), simdKernels(2 ** 20)].map((kernels) => {
    const before = kernels.array(4);
    const arrays = counts.map((count) => kernels.array(count));
    const after = kernels.array(4);
    [before, ...arrays, after].forEach((array, i) => array.set(numbersOf(array.length, i + 1)));
    call(kernels, arrays);
    return { arrays, neighbors: [...before, ...arrays.slice(1).flatMap((array) => [...array]), ...after] };
  });
  assert.notDeepEqual([...plain.arrays[0]], [...numbersOf(counts[0], 2).map(Math.fround)], `${what} changes nothing`);
  assertClose(simd.arrays[0], plain.arrays[0], CLOSE, what);
  assert.deepEqual(simd.neighbors, plain.neighbors, `${what} changes other arrays`);
}

const SIDES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 17];

for (const name of /** @type {const} */ (['gemm', 'gemmTN', 'gemmNT']))
  test(`${name} in WebAssembly computes what it computes in plain JavaScript, for all sizes`, () => {
    for (const n of SIDES)
      for (const k of SIDES)
        for (const m of SIDES) {
          const counts = { gemm: [n * m, n * k, k * m], gemmTN: [k * m, n * k, n * m], gemmNT: [n * k, n * m, k * m] }[name];
          compare(counts, (kernels, [out, a, b]) => kernels[name](out, a, b, n, k, m), `${name} ${n}, ${k}, ${m}`);
        }
  });

test('a matrix product adds to what is there', () => {
  for (const kernels of [new Kernels(), simdKernels(2 ** 20)]) {
    const [out, a, b] = [
      [1, 1, 1, 1],
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ].map((numbers) => {
      const array = kernels.array(4);
      array.set(numbers);
      return array;
    });
    kernels.gemm(out, a, b, 2, 2, 2);
    assert.deepEqual([...out], [20, 23, 44, 51]); // 1 + [1 2; 3 4] [5 6; 7 8]
    kernels.gemmTN(out, a, b, 2, 2, 2);
    assert.deepEqual([...out], [46, 53, 82, 95]); // ... + [1 3; 2 4] [5 6; 7 8]
    kernels.gemmNT(out, a, b, 2, 2, 2);
    assert.deepEqual([...out], [63, 76, 121, 148]); // ... + [1 2; 3 4] [5 7; 6 8]
  }
});

test('a convolution in WebAssembly computes what it computes in plain JavaScript, for all geometries', () => {
  const counts = /** @type {const} */ ([[1, 1, 1], [2, 3, 2], [3, 5, 1], [1, 4, 3]]); // prettier-ignore
  const filters = /** @type {const} */ ([[1, 1, 0], [2, 3, 1], [3, 2, 1], [5, 1, 2], [5, 2, 2]]); // prettier-ignore
  for (const [channels, count, batch] of counts)
    for (const [size, stride, padding] of filters)
      for (const side of [2, 5, 8, 17]) {
        const layer = { filters: count, size, stride, padding, bias: true };
        const [plain, simd] = [new Kernels(Float64Array), simdKernels(2 ** 20)].map((kernels) =>
          allParts(kernels, batch, [channels, side, side], layer),
        );
        for (const [name, array] of Object.entries(simd))
          assertClose(array, plain[name], CLOSE, `${name}: ${JSON.stringify({ ...layer, channels, batch, side })}`);
      }
});

/**
 * Compute all parts of a convolution of random numbers, and return all arrays, each with four numbers behind it that must not change.
 * @param {Kernels} kernels
 * @param {number} batch
 * @param {[channels: number, height: number, width: number]} shape
 * @param {{ filters: number, size: number, stride: number, padding: number, bias: boolean }} layer
 * @returns {Record<string, Numbers>}
 */
function allParts(kernels, batch, shape, layer) {
  const convolution = new Convolution(kernels, batch, shape, layer);
  const product = (/** @type {number[]} */ sides) => sides.reduce((result, side) => result * side);
  const [inputs, outputs] = [batch * product(shape), batch * product(convolution.outputShape)];
  const weights = product(convolution.weightShape);
  const lengths = { x: inputs, xTangent: inputs, xGradient: inputs, z: outputs, zTangent: outputs, zGradient: outputs, second: outputs };
  const all = Object.entries({ ...lengths, weight: weights, direction: weights, weightGradient: weights, bias: layer.filters });
  const made = Object.fromEntries(
    all.map(([name, count], i) => {
      const array = kernels.array(count + 4);
      array.set(numbersOf(count + 4, i));
      return [name, array];
    }),
  );
  const a = Object.fromEntries(all.map(([name, count]) => [name, /** @type {Numbers} */ (made[name].subarray(0, count))]));
  convolution.forward(a.x, a.z, { weight: a.weight, bias: a.bias });
  convolution.addWeightGradient(a.zGradient, { weight: a.weightGradient, bias: null });
  convolution.backward(a.xGradient, [[a.zGradient, a.weight], [a.second, a.direction]]); // prettier-ignore
  convolution.forwardTangent(a.xTangent, a.zTangent, { weight: a.weight, bias: null }, { weight: a.direction, bias: a.bias });
  return made;
}

test('rows are copied alike in WebAssembly and in plain JavaScript, and nothing between them', () => {
  for (const columns of SIDES)
    for (const step of [1, 2, 3])
      compare(
        [1 + 2 * 3 * (columns + 2), 2 + 2 * 3 * columns * step],
        (kernels, [out, from]) => {
          const row = columns * step;
          kernels.copyRows(out, [1, 3 * (columns + 2), columns + 2, 1], from, [2, 3 * row, row, step], [2, 3, columns]);
        },
        `copyRows ${columns}, ${step}`,
      );
  const kernels = simdKernels(2 ** 20);
  const [out, from] = [kernels.array(8), kernels.array(4)];
  from.set([1, 2, 3, 4]);
  kernels.copyRows(out, [1, 8, 4, 2], from, [0, 4, 2, 1], [1, 2, 2]);
  assert.deepEqual([...out], [0, 1, 0, 2, 0, 3, 0, 4]);
});

test('the sigmoid in WebAssembly is that of plain JavaScript to the last bit but one, for small and for extreme numbers', () => {
  const [plain, simd] = [new Kernels(), simdKernels(2 ** 20)].map((kernels) => {
    const arrays = [1, 2, 3, 4].map(() => kernels.array(2003));
    const [z, value, derivative, curvature] = arrays;
    z.set(Float32Array.from(z, (_, i) => (i - 1001) / 8));
    z.set([-1e30, 1e30, -800, 800, -Infinity, Infinity, 0], 10);
    kernels.sigmoid(z, value, derivative, curvature);
    return arrays;
  });
  plain.forEach((array, which) =>
    array.forEach((number, i) => {
      const allowed = 2 ** -23 * Math.abs(number) + 1e-30; // one unit in the last place; above 700 an exponential is cut off
      assert.ok(Math.abs(simd[which][i] - number) <= allowed || simd[which][i] === number, `${which}, ${i}: ${simd[which][i]}, ${number}`);
    }),
  );
  assert.deepEqual([simd[1][16], simd[2][16], simd[3][16]], [0.5, 0.25, 0]);
  const kernels = simdKernels(2 ** 20);
  const [z, ...rest] = [1, 2, 3, 4].map(() => kernels.array(1));
  z[0] = NaN;
  kernels.sigmoid(z, rest[0], rest[1], rest[2]);
  assert.ok(rest.every((array) => Number.isNaN(array[0])));
});

test('the sums and products of vectors in WebAssembly compute what they compute in plain JavaScript, for all lengths', () => {
  for (let count = 1; count < 70; count++) {
    compare([1, count, count], (kernels, [out, a, b]) => (out[0] = kernels.dot(a, b)), `dot ${count}`);
    compare([count, count], (kernels, [out, a]) => kernels.add(out, -0.3, a), `add ${count}`);
    compare([count, count, count], (kernels, [out, a, b]) => kernels.multiply(out, a, b), `multiply ${count}`);
    compare([count, count, count], (kernels, [out, a, b]) => kernels.combine(out, 0.7, a, -0.3, b), `combine ${count}`);
    compare(new Array(6).fill(count), (kernels, [out, a, b, c, d, e]) => kernels.productRule(out, a, b, c, d, e), `productRule ${count}`);
    const step = (/** @type {Kernels} */ kernels, /** @type {Numbers[]} */ [z, gradient]) => {
      const [mean, square] = [0.05, 0.3].map((value) => kernels.array(count).fill(value));
      z.forEach((number, i) => (z[i] = 0.5 + number / 4)); // away from 0, where all would end alike
      kernels.signedStep(z, gradient, mean, square, 0.2, 1.5);
    };
    compare([count, count], step, `signedStep ${count}`);
    const inner = [new Kernels(), simdKernels(2 ** 20)].map((kernels) => {
      const arrays = [1, 2, 3].map((seed) => {
        const array = kernels.array(count);
        array.set(numbersOf(count, seed));
        return array;
      });
      return [kernels.addAndDot(arrays[0], -0.3, arrays[1], arrays[2]), ...arrays[0]];
    });
    assertClose(inner[1], inner[0], CLOSE, `addAndDot ${count}`);
  }
});

test('LeNet has the same slopes in WebAssembly as in plain JavaScript', () => {
  const [plain, simd] = [new Kernels(), simdKernels()].map((kernels) => {
    const network = new Network(kernels, PLANS.lenet([3, 32, 32], 10), 2);
    network.weights.set(numbersOf(network.count, 1, 0.5));
    network.direction.set(numbersOf(network.count, 2));
    const x = kernels.array(network.pictureSlope.length);
    x.set(numbersOf(x.length, 3));
    network.differentiate(x, labelsOf(2, 10, 4));
    network.differentiateAgain();
    return network;
  });
  for (const name of /** @type {const} */ (['gradient', 'pictureSlope', 'labelSlope'])) assertClose(simd[name], plain[name], CLOSE, name);
});

test('arrays of other kernels are refused, and so are more arrays than the memory holds', () => {
  const kernels = simdKernels(65536);
  assert.throws(() => kernels.dot(kernels.array(4), new Float32Array(4)), TypeError);
  const message = 'The arrays need more than the 65536 bytes that were reserved.';
  assert.throws(() => kernels.array(16384), { name: 'RangeError', message });
});

test('where WebAssembly is refused, plain JavaScript computes', (t) => {
  assert.notEqual(fastestKernels().constructor, Kernels);
  t.mock.method(WebAssembly, 'Module', () => {
    throw new WebAssembly.CompileError('refused by the content security policy');
  });
  assert.equal(fastestKernels().constructor, Kernels);
});

test('the compiled code is that of assembly/kernels.ts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kernels-'));
  try {
    const built = join(folder, 'simd_code.js');
    execFileSync('bash', [join(ROOT, 'scripts/build_kernels.sh'), built]);
    assert.equal(readFileSync(built, 'utf8'), readFileSync(join(ROOT, 'leakage/ui/components/attack/simd_code.js'), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
