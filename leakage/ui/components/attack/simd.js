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
    this.memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    const code = Uint8Array.from(atob(CODE), (letter) => letter.charCodeAt(0));
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory: this.memory } });
    this.compiled = /** @type {Record<string, (...numbers: number[]) => number>} */ (exports);
    this.used = ALIGNMENT; // bytes
  }

  /** @type {Kernels['array']} */
  array(count) {
    const from = this.used;
    this.used += Math.ceil((4 * count) / ALIGNMENT) * ALIGNMENT;
    if (this.used > this.memory.buffer.byteLength)
      throw new RangeError(`The arrays need more than the ${this.memory.buffer.byteLength} bytes that were reserved.`);
    return new Float32Array(this.memory.buffer, from, count);
  }

  /** @type {Kernels['gemm']} */
  gemm(out, a, b, n, k, m) {
    this.compiled.addProduct(this.address(out), this.address(a), k, 1, this.address(b), n, k, m);
  }

  /** @type {Kernels['gemmTN']} */
  gemmTN(out, a, b, n, k, m) {
    this.compiled.addProduct(this.address(out), this.address(a), 1, k, this.address(b), k, n, m);
  }

  /** @type {Kernels['gemmNT']} */
  gemmNT(out, a, b, n, k, m) {
    this.compiled.gemmNT(this.address(out), this.address(a), this.address(b), n, k, m);
  }

  /** @type {Kernels['unfold']} */
  unfold(patches, picture, { channels, height, width, size, stride, rows, columns }) {
    this.compiled.unfold(this.address(patches), this.address(picture), channels, height, width, size, stride, rows, columns);
  }

  /** @type {Kernels['fold']} */
  fold(picture, patches, { channels, height, width, size, stride, rows, columns }) {
    this.compiled.fold(this.address(picture), this.address(patches), channels, height, width, size, stride, rows, columns);
  }

  /** @type {Kernels['dot']} */
  dot(a, b) {
    return this.compiled.dot(this.address(a), this.address(b), a.length);
  }

  /** @type {Kernels['add']} */
  add(out, scale, a) {
    this.compiled.add(this.address(out), scale, this.address(a), out.length);
  }

  /** @param {Numbers} array */
  address(array) {
    if (array.buffer !== this.memory.buffer) throw new TypeError('The array is not in the memory of these kernels: make it with array().');
    return array.byteOffset;
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
