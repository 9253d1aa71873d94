// Random numbers as torch draws them on a CPU: a seed means the same weights and the same initial pictures as in the program.
import { sha256 } from './sha256.js';

const [SIZE, SHIFT] = [624, 397]; // of the Mersenne twister MT19937 (Matsumoto and Nishimura 1998)
const BLOCK = 16; // torch draws normal numbers in blocks, from so many numbers on
const PICKS = 0xffffffff / 20; // torch permutes so many entries or more with 64 bits each; no gradient here is that long

/** What protections draw from; torch.Generator on the CPU. */
export class Generator {
  /** @param {number} seed of which the lowest 32 bits count, as in torch */
  constructor(seed) {
    const state = new Uint32Array(SIZE);
    state[0] = seed;
    for (let i = 1; i < SIZE; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
    this.state = state;
    this.next = SIZE;
    /** @type {number | null} the second number of the last pair of `scalarNormal` */
    this.spare = null;
  }

  /** 32 random bits, 0 to 2^32 - 1. */
  bits() {
    const { state } = this;
    if (this.next === SIZE) {
      for (let i = 0; i < SIZE; i++) {
        const word = (state[i] & 0x80000000) | (state[(i + 1) % SIZE] & 0x7fffffff);
        state[i] = state[(i + SHIFT) % SIZE] ^ (word >>> 1) ^ (word & 1 ? 0x9908b0df : 0);
      }
      this.next = 0;
    }
    let word = state[this.next++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  /**
   * U(from, to), float32: torch.rand, and Tensor.uniform_.
   * @param {number} count
   * @param {number} [from]
   * @param {number} [to]
   */
  uniform(count, from = 0, to = 1) {
    const [low, range] = [Math.fround(from), Math.fround(Math.fround(to) - Math.fround(from))];
    const out = new Float32Array(count);
    for (let i = 0; i < count; i++) out[i] = ((this.bits() & 0xffffff) / 0x1000000) * range + low; // rounded once, as torch's fused product
    return out;
  }

  /**
   * N(0, 1), float32: torch.randn. The numbers differ from torch's by rounding, at most 3e-7.
   * @param {number} count
   */
  normal(count) {
    if (count < BLOCK) return Float32Array.from({ length: count }, () => this.scalarNormal());
    const out = this.uniform(count);
    let at = 0;
    for (; at + BLOCK <= count; at += BLOCK) boxMuller(out, at);
    if (at < count) {
      out.set(this.uniform(BLOCK), count - BLOCK); // the last block is drawn anew and overlaps the one before
      boxMuller(out, count - BLOCK);
    }
    return out;
  }

  /** One number N(0, 1) from two of 53 random bits; every second call returns the other one of a pair. */
  scalarNormal() {
    if (this.spare !== null) {
      const kept = this.spare;
      this.spare = null;
      return kept;
    }
    const angle = 2 * Math.PI * this.double();
    const radius = Math.sqrt(-2 * Math.log1p(-this.double()));
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** U(0, 1) of 53 random bits. */
  double() {
    const high = this.bits() & 0x1fffff;
    return (high * 2 ** 32 + this.bits()) / 2 ** 53;
  }

  /**
   * A random order of 0, ..., count - 1: torch.randperm.
   * @param {number} count
   */
  permutation(count) {
    if (count >= PICKS) throw new RangeError(`A permutation has fewer than ${PICKS} entries, not ${count}.`);
    const order = Uint32Array.from({ length: count }, (_, index) => index);
    for (let i = 0; i < count - 1; i++) {
      const other = i + (this.bits() % (count - i));
      [order[i], order[other]] = [order[other], order[i]];
    }
    return order;
  }
}

/**
 * The generator of one purpose of an experiment, as `generator` in leakage/engine/observation.py.
 * @param {number} seed of the experiment
 * @param {...(string | number)} purpose
 */
export function generator(seed, ...purpose) {
  const digest = sha256([seed, ...purpose].join(':'));
  return new Generator(new DataView(digest.buffer).getUint32(3)); // the program takes 7 bytes, and torch the lowest 4 of them
}

/**
 * Turns 16 numbers U(0, 1) into N(0, 1), in place (Box and Muller 1958): each of the first 8 with the one 8 places behind.
 * @param {Float32Array} values
 * @param {number} from
 */
function boxMuller(values, from) {
  for (let i = from; i < from + BLOCK / 2; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - values[i]));
    const angle = 2 * Math.PI * values[i + BLOCK / 2];
    values[i] = radius * Math.cos(angle);
    values[i + BLOCK / 2] = radius * Math.sin(angle);
  }
}
