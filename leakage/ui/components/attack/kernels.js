// The arithmetic of matrices, patches and vectors in plain JavaScript. simd.js has the same arithmetic as WebAssembly. A matrix is stored
// row by row.

/**
 * @typedef {Float32Array | Float64Array} Numbers
 */

/**
 * What a convolution reads and writes: a padded picture (channels, height, width), square filters, and an output of rows x columns.
 * @typedef {object} Geometry
 * @property {number} channels of the padded picture
 * @property {number} height of the padded picture, in pixels
 * @property {number} width of the padded picture, in pixels
 * @property {number} size the side of a filter, in pixels
 * @property {number} stride in pixels
 * @property {number} rows of the output
 * @property {number} columns of the output
 */

/**
 * A matrix product that adds to its first argument.
 * @typedef {(out: Numbers, a: Numbers, b: Numbers, n: number, k: number, m: number) => void} Product
 */

export class Kernels {
  /** @param {Float32ArrayConstructor | Float64ArrayConstructor} [type] the precision */
  constructor(type = Float32Array) {
    this.type = type;
  }

  /**
   * Make an array of zeros that every kernel accepts.
   * @param {number} count
   * @returns {Numbers}
   */
  array(count) {
    return new this.type(count);
  }

  /**
   * Add the product a b to out: out (n, m), a (n, k), b (k, m).
   * @type {Product}
   */
  gemm(out, a, b, n, k, m) {
    addProduct(out, a, k, 1, b, n, k, m);
  }

  /**
   * Add the product of a transposed and b to out: out (k, m), a (n, k), b (n, m).
   * @type {Product}
   */
  gemmTN(out, a, b, n, k, m) {
    addProduct(out, a, 1, k, b, k, n, m);
  }

  /**
   * Add the product of a and b transposed to out: out (n, k), a (n, m), b (k, m).
   * @type {Product}
   */
  gemmNT(out, a, b, n, k, m) {
    for (let row = 0; row < n; row++)
      for (let column = 0; column < k; column++) {
        let sum = 0;
        for (let i = 0; i < m; i++) sum += a[row * m + i] * b[column * m + i];
        out[row * k + column] += sum;
      }
  }

  /**
   * Copy every patch of a padded picture into a column, as torch.nn.functional.unfold does.
   * @param {Numbers} patches (channels * size * size, rows * columns)
   * @param {Numbers} picture (channels, height, width)
   * @param {Geometry} geometry
   */
  unfold(patches, picture, { channels, height, width, size, stride, rows, columns }) {
    let to = 0;
    for (let channel = 0; channel < channels; channel++)
      for (let down = 0; down < size; down++)
        for (let right = 0; right < size; right++)
          for (let row = 0; row < rows; row++) {
            let from = (channel * height + row * stride + down) * width + right;
            for (let column = 0; column < columns; column++, from += stride) patches[to++] = picture[from];
          }
  }

  /**
   * Add every column to its patch of a padded picture, as torch.nn.functional.fold does. It is the adjoint of unfold.
   * @param {Numbers} picture (channels, height, width)
   * @param {Numbers} patches (channels * size * size, rows * columns)
   * @param {Geometry} geometry
   */
  fold(picture, patches, { channels, height, width, size, stride, rows, columns }) {
    let from = 0;
    for (let channel = 0; channel < channels; channel++)
      for (let down = 0; down < size; down++)
        for (let right = 0; right < size; right++)
          for (let row = 0; row < rows; row++) {
            let to = (channel * height + row * stride + down) * width + right;
            for (let column = 0; column < columns; column++, to += stride) picture[to] += patches[from++];
          }
  }

  /**
   * The inner product of two arrays of one length.
   * @param {Numbers} a
   * @param {Numbers} b
   * @returns {number}
   */
  dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  /**
   * Add scale * a to out, of one length.
   * @param {Numbers} out
   * @param {number} scale
   * @param {Numbers} a
   */
  add(out, scale, a) {
    for (let i = 0; i < out.length; i++) out[i] += scale * a[i];
  }
}

/**
 * Add the product a b to out: out (n, m), b (k, m). The entry of a in row r and column c is a[r * down + c * right]. Four rows of b are
 * added at once: this reads and writes out a quarter as often.
 * @param {Numbers} out
 * @param {Numbers} a
 * @param {number} down
 * @param {number} right
 * @param {Numbers} b
 * @param {number} n
 * @param {number} k
 * @param {number} m
 */
function addProduct(out, a, down, right, b, n, k, m) {
  for (let row = 0; row < n; row++) {
    const to = row * m;
    let from = row * down;
    let c = 0;
    for (; c + 4 <= k; c += 4, from += 4 * right) {
      const [a0, a1, a2, a3] = [a[from], a[from + right], a[from + 2 * right], a[from + 3 * right]];
      const [b0, b1, b2, b3] = [c * m, (c + 1) * m, (c + 2) * m, (c + 3) * m];
      for (let i = 0; i < m; i++) out[to + i] += a0 * b[b0 + i] + a1 * b[b1 + i] + a2 * b[b2 + i] + a3 * b[b3 + i];
    }
    for (; c < k; c++, from += right) for (let i = 0; i < m; i++) out[to + i] += a[from] * b[c * m + i];
  }
}
