// The arithmetic of kernels.js as WebAssembly, which computes four numbers at once (assembly/kernels.ts).
import { Kernels } from './kernels.js';
import { CODE } from './simd_code.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */

const PAGE = 65536; // bytes
const ROOM = 64 * 2 ** 20; // bytes: enough for each of PLANS at 32 x 32 pixels and a batch of 8; pages that nobody writes to cost nothing
const ALIGNMENT = 16; // bytes

/** Kernels on arrays of their own memory. All memory is reserved at once, because memory that grows detaches every array. */
class SimdKernels extends Kernels {
  /** @param {number} bytes the size of the memory */
  constructor(bytes) {
    super(Float32Array);
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    const code = Uint8Array.from(CODE.match(/../g) ?? [], (byte) => parseInt(byte, 16));
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory } });
    this.compiled = /** @type {Record<string, (...numbers: number[]) => number>} */ (exports);
    this.buffer = memory.buffer; // reading it from the memory costs more
    this.used = ALIGNMENT; // bytes
  }

  /** @type {Kernels['array']} */
  array(count) {
    const from = this.used;
    this.used += Math.ceil((4 * count) / ALIGNMENT) * ALIGNMENT;
    if (this.used > this.buffer.byteLength)
      throw new RangeError(`The arrays need more than the ${this.buffer.byteLength} bytes that were reserved.`);
    return new Float32Array(this.buffer, from, count);
  }

  /** @type {Kernels['gemm']} */
  gemm(out, a, b, n, k, m) {
    this.run('addProduct', out, a, k, 1, b, n, k, m);
  }

  /** @type {Kernels['gemmTN']} */
  gemmTN(out, a, b, n, k, m) {
    this.run('addProduct', out, a, 1, k, b, k, n, m);
  }

  /** @type {Kernels['gemmNT']} */
  gemmNT(out, a, b, n, k, m) {
    this.run('gemmNT', out, a, b, n, k, m);
  }

  /** @type {Kernels['placeTable']} */
  placeTable(places) {
    const numbers = places.flat();
    const count = numbers.length + 6; // three entries of 0 more: planes.ts reads them
    const table = new Int32Array(this.buffer, this.array(count).byteOffset, count);
    table.set(numbers.map((number) => 4 * number)); // in bytes
    return table;
  }

  /** @type {Kernels['addCombinations']} */
  addCombinations(out, outPlanes, source, sourcePlanes, weight, block) {
    this.run('addCombinations', out, ...outPlanes, source, ...sourcePlanes, weight, ...block);
  }

  /** @type {Kernels['addInnerProducts']} */
  addInnerProducts(weight, source, sourcePlanes, other, otherPlanes, block) {
    this.run('addInnerProducts', weight, source, ...sourcePlanes, other, ...otherPlanes, ...block);
  }

  /** @type {Kernels['copyRows']} */
  copyRows(out, to, source, from, shape) {
    this.run('copyRows', out, ...to, source, ...from, ...shape);
  }

  /** @type {Kernels['sigmoid']} */
  sigmoid(z, value, derivative, curvature) {
    this.run('sigmoid', z, value, derivative, curvature, z.length);
  }

  /** @type {Kernels['multiply']} */
  multiply(out, a, b) {
    this.run('multiply', out, a, b, out.length);
  }

  /** @type {Kernels['productRule']} */
  productRule(out, a, b, c, d, e) {
    this.run('productRule', out, a, b, c, d, e, out.length);
  }

  /** @type {Kernels['dot']} */
  dot(a, b) {
    return this.run('dot', a, b, a.length);
  }

  /** @type {Kernels['addAndDot']} */
  addAndDot(out, scale, a, b) {
    return this.run('addAndDot', out, scale, a, b, out.length);
  }

  /** @type {Kernels['combine']} */
  combine(out, p, a, q, b) {
    this.run('combine', out, p, a, q, b, out.length);
  }

  /** @type {Kernels['signedStep']} */
  signedStep(z, gradient, mean, square, rate, root) {
    this.run('signedStep', z, gradient, mean, square, rate, root, z.length);
  }

  /**
   * Call a compiled function, with the addresses of arrays.
   * @param {string} name
   * @param {...(number | Numbers | Int32Array)} values
   */
  run(name, ...values) {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (typeof value === 'number') continue;
      if (value.buffer !== this.buffer) throw new TypeError('The array is not in the memory of these kernels: make it with array().');
      values[i] = value.byteOffset;
    }
    return this.compiled[name](.../** @type {number[]} */ (values));
  }
}

/**
 * Make WebAssembly kernels.
 * @param {number} [bytes] the memory for all their arrays
 * @returns {Kernels}
 */
export const simdKernels = (bytes = ROOM) => new SimdKernels(bytes);

/**
 * Make WebAssembly kernels, or kernels in plain JavaScript if the browser refuses WebAssembly or has no SIMD.
 * @param {number} [bytes] the memory for all arrays of the WebAssembly kernels
 * @returns {Kernels}
 */
export function fastestKernels(bytes = ROOM) {
  try {
    return simdKernels(bytes);
  } catch {
    return new Kernels();
  }
}
