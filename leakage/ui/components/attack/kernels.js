// The arithmetic of matrices, planes and vectors in plain JavaScript. simd.js has the same arithmetic as WebAssembly. A matrix is stored
// row by row.

/**
 * @typedef {Float32Array | Float64Array} Numbers
 */

/**
 * Where a plane begins in its array, and where its weights begin. The weight of a pair of planes lies at the sum of both.
 * @typedef {[plane: number, weights: number]} Place
 */

/**
 * Planes of rows and columns that lie in an array, each with its place among the weights of a convolution: a filter's output, or all that
 * one number of a filter meets in a padded picture.
 * @typedef {[table: Int32Array, count: number, pitch: number, size: number]} Planes
 *   table   the place of each plane, made by placeTable(); the first plane begins at 0
 *   count   the number of planes of one picture
 *   pitch   from one row to the next
 *   size    from one picture to the next
 */

/**
 * The number of pictures, the rows of a plane, its columns (a multiple of eight), and room for the copies that assembly/planes.ts makes.
 * @typedef {[batch: number, rows: number, columns: number, packed: Numbers]} Block
 */

/**
 * Where numbers lie in an array: the first one, and the distance from one plane, row and column to the next.
 * @typedef {[first: number, plane: number, row: number, column: number]} Grid
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
   * Store the places of planes so that every kernel can read them.
   * @param {Place[]} places
   */
  placeTable(places) {
    return Int32Array.from(places.flat());
  }

  /**
   * Add sums of planes, each times a weight, to the planes of out.
   * @param {Numbers} out
   * @param {Planes} outPlanes
   * @param {Numbers} source
   * @param {Planes} sourcePlanes
   * @param {Numbers} weight one for each pair of planes
   * @param {Block} block
   */
  addCombinations(out, [outTable, outCount, outPitch, outSize], source, [table, count, pitch, size], weight, [batch, rows, columns]) {
    for (let b = 0; b < batch; b++)
      for (let i = 0; i < 2 * outCount; i += 2)
        for (let k = 0; k < 2 * count; k += 2) {
          const w = weight[outTable[i + 1] + table[k + 1]];
          let [to, from] = [b * outSize + outTable[i], b * size + table[k]];
          for (let row = 0; row < rows; row++, to += outPitch, from += pitch)
            for (let c = 0; c < columns; c++) out[to + c] += w * source[from + c];
        }
  }

  /**
   * Add the inner product of each plane of one array with each plane of another array, over all pictures, to the weight of the pair.
   * @param {Numbers} weight
   * @param {Numbers} source
   * @param {Planes} sourcePlanes
   * @param {Numbers} other
   * @param {Planes} otherPlanes
   * @param {Block} block
   */
  addInnerProducts(
    weight,
    source,
    [table, count, pitch, size],
    other,
    [otherTable, otherCount, otherPitch, otherSize],
    [batch, rows, columns],
  ) {
    for (let b = 0; b < batch; b++)
      for (let i = 0; i < 2 * count; i += 2)
        for (let k = 0; k < 2 * otherCount; k += 2) {
          let [sum, from, at] = [0, b * size + table[i], b * otherSize + otherTable[k]];
          for (let row = 0; row < rows; row++, from += pitch, at += otherPitch)
            for (let c = 0; c < columns; c++) sum += source[from + c] * other[at + c];
          weight[table[i + 1] + otherTable[k + 1]] += sum;
        }
  }

  /**
   * Copy planes of rows between two arrays. Places and distances are in numbers.
   * @param {Numbers} out
   * @param {Grid} to
   * @param {Numbers} source
   * @param {Grid} from
   * @param {[planes: number, rows: number, columns: number]} shape of the block that is copied
   */
  copyRows(out, [outFirst, outPlane, outRow, outColumn], source, [first, plane, row, column], [planes, rows, columns]) {
    for (let p = 0; p < planes; p++)
      for (let r = 0; r < rows; r++) {
        const to = outFirst + p * outPlane + r * outRow;
        const from = first + p * plane + r * row;
        for (let c = 0; c < columns; c++) out[to + c * outColumn] = source[from + c * column];
      }
  }

  /**
   * Fill value, derivative and curvature with the sigmoid of z and its first and second derivative, all made by array().
   * @param {Numbers} z
   * @param {Numbers} value
   * @param {Numbers} derivative
   * @param {Numbers} curvature
   */
  sigmoid(z, value, derivative, curvature) {
    for (let i = 0; i < z.length; i++) {
      const s = 1 / (1 + Math.exp(-z[i]));
      const first = s * (1 - s);
      value[i] = s;
      derivative[i] = first;
      curvature[i] = first * (1 - 2 * s);
    }
  }

  /**
   * Fill out with a * b, entry by entry, all made by array() and of one length.
   * @param {Numbers} out
   * @param {Numbers} a
   * @param {Numbers} b
   */
  multiply(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = a[i] * b[i];
  }

  /**
   * Fill out with a * b + c * d * e, entry by entry, all made by array() and of one length.
   * @param {Numbers} out
   * @param {Numbers} a
   * @param {Numbers} b
   * @param {Numbers} c
   * @param {Numbers} d
   * @param {Numbers} e
   */
  productRule(out, a, b, c, d, e) {
    for (let i = 0; i < out.length; i++) out[i] = a[i] * b[i] + c[i] * d[i] * e[i];
  }

  /**
   * The inner product of two arrays of one length, summed in float64.
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
   * Add scale * a to out, and return the inner product of out and b, all of one length.
   * @param {Numbers} out
   * @param {number} scale
   * @param {Numbers} a
   * @param {Numbers} b
   * @returns {number}
   */
  addAndDot(out, scale, a, b) {
    this.add(out, scale, a);
    return this.dot(out, b);
  }

  /**
   * Add scale * a to out, both made by array() and of one length.
   * @param {Numbers} out
   * @param {number} scale
   * @param {Numbers} a
   */
  add(out, scale, a) {
    this.combine(out, 1, out, scale, a);
  }

  /**
   * Fill out with p * a + q * b, all made by array() and of one length.
   * @param {Numbers} out
   * @param {number} p
   * @param {Numbers} a
   * @param {number} q
   * @param {Numbers} b
   */
  combine(out, p, a, q, b) {
    for (let i = 0; i < out.length; i++) out[i] = p * a[i] + q * b[i];
  }

  /**
   * Move the unknowns against the sign of their gradient by a step of Adam, and clamp them to [0, 1]; all made by array() and of one length.
   * @param {Numbers} z the unknowns
   * @param {Numbers} gradient
   * @param {Numbers} mean of the signs, with the decay 0.9
   * @param {Numbers} square the mean of the squared signs, with the decay 0.999
   * @param {number} rate the step size times the correction of the mean
   * @param {number} root the square root of the correction of the square
   */
  signedStep(z, gradient, mean, square, rate, root) {
    for (let i = 0; i < z.length; i++) {
      const sign = Math.sign(gradient[i]);
      mean[i] += 0.1 * (sign - mean[i]);
      square[i] = 0.999 * square[i] + 0.001 * sign * sign;
      z[i] = Math.min(1, Math.max(0, z[i] - (rate * mean[i]) / (Math.sqrt(square[i]) * root + 1e-8)));
    }
  }
}

/**
 * Add the product a b to out: out (n, m), b (k, m). The entry of a in row r and column c is a[r * down + c * right].
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
  for (let row = 0; row < n; row++)
    for (let c = 0; c < k; c++) {
      const weight = a[row * down + c * right];
      for (let i = 0; i < m; i++) out[row * m + i] += weight * b[c * m + i];
    }
}
