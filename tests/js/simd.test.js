// The WebAssembly kernels: they compute what plain JavaScript computes, and their code is that of assembly/kernels.ts.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
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

test('unfold and fold in WebAssembly compute what they compute in plain JavaScript, for all geometries', () => {
  for (const size of [1, 2, 3, 5])
    for (const stride of [1, 2, 3])
      for (const rows of [1, 2, 3])
        for (const columns of SIDES) {
          const [height, width] = [rows, columns].map((count) => (count - 1) * stride + size);
          const geometry = { channels: 2, height, width: width + 1, size, stride, rows, columns };
          const [pixels, entries] = [2 * height * (width + 1), 2 * size * size * rows * columns];
          const what = JSON.stringify(geometry);
          compare([entries, pixels], (kernels, [patches, picture]) => kernels.unfold(patches, picture, geometry), `unfold ${what}`);
          compare([pixels, entries], (kernels, [picture, patches]) => kernels.fold(picture, patches, geometry), `fold ${what}`);
        }
});

test('dot and add in WebAssembly compute what they compute in plain JavaScript, for all lengths', () => {
  for (let count = 1; count < 70; count++) {
    compare([1, count, count], (kernels, [out, a, b]) => (out[0] = kernels.dot(a, b)), `dot ${count}`);
    compare([count, count], (kernels, [out, a]) => kernels.add(out, -0.3, a), `add ${count}`);
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
