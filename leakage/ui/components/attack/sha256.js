// SHA-256 (FIPS 180-4). crypto.subtle does not exist on plain http pages of a local network.

const ROUNDS = 64;
const BLOCK = 64; // bytes
const LENGTH_AT = 56; // the byte of the last block where the length of the text begins

/**
 * The first 32 bits of the fractional part of a root of a prime number.
 * @param {number} root
 */
const fraction = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32) >>> 0;

const PRIMES = primes(ROUNDS);
const CONSTANTS = Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));
const START = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));

/**
 * The SHA-256 digest of a text in UTF-8, 32 bytes.
 * @param {string} text
 */
export function sha256(text) {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(BLOCK * Math.ceil((bytes.length + 9) / BLOCK));
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - BLOCK + LENGTH_AT + 4, bytes.length * 8); // texts are shorter than 2^29 bytes
  const hash = START.slice();
  for (let at = 0; at < padded.length; at += BLOCK) compress(hash, view, at);
  const digest = new DataView(new ArrayBuffer(32));
  hash.forEach((word, index) => digest.setUint32(4 * index, word));
  return new Uint8Array(digest.buffer);
}

/**
 * Adds one block of 64 bytes to the hash (section 6.2.2).
 * @param {Uint32Array} hash 8 words
 * @param {DataView} view
 * @param {number} at the byte where the block begins
 */
function compress(hash, view, at) {
  const words = new Uint32Array(ROUNDS);
  for (let t = 0; t < 16; t++) words[t] = view.getUint32(at + 4 * t);
  for (let t = 16; t < ROUNDS; t++) {
    const [early, late] = [words[t - 15], words[t - 2]];
    const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    words[t] = words[t - 16] + first + words[t - 7] + second;
  }
  let [a, b, c, d, e, f, g, h] = hash;
  for (let t = 0; t < ROUNDS; t++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + CONSTANTS[t] + words[t]) | 0;
    const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => (hash[index] += word));
}

/**
 * The word rotated to the right.
 * @param {number} word
 * @param {number} bits
 */
function turn(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

/**
 * The first prime numbers.
 * @param {number} count
 */
function primes(count) {
  /** @type {number[]} */
  const found = [];
  for (let number = 2; found.length < count; number++) if (found.every((prime) => number % prime)) found.push(number);
  return found;
}
