// Where the planes of a convolution lie. Each filter has an output plane (rows, columns); each number of a filter meets a plane of the same
// shape in the input, which is shifted by its place in the filter. With weights W
//   convolution                output plane f += sum over t of W[f, t] input plane t
//   derivative by the input    input plane t  += sum over f of W[f, t] output plane f
//   derivative by the weights  W[f, t]        += <output plane f, input plane t>
// f is a filter, t one of its numbers (channel, row, column). No patch is copied: input planes overlap in the padded picture. Neighbors in
// an output plane meet pixels that are `stride` apart. So a padded row holds columns 0, stride, 2 stride first, then 1, stride + 1, ...
// Each row of a plane is extended to a multiple of eight columns. In gradients the additional columns are 0, in outputs nobody reads them.

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./kernels.js').Grid} Grid */
/** @typedef {import('./kernels.js').Place} Place */
/** @typedef {[planes: number, rows: number, columns: number]} Shape */
/** @typedef {[padded: Grid, dense: Grid, shape: Shape]} Part where the same numbers lie in two arrays, and how many there are */

export class Layout {
  /**
   * @param {Kernels} kernels
   * @param {Place[]} places
   * @param {number} pitch from one row of a plane to the next
   * @param {number} size of the array for one picture
   * @param {Part[]} parts
   */
  constructor(kernels, places, pitch, size, parts) {
    this.kernels = kernels;
    /** @type {import('./kernels.js').Planes} */
    this.planes = [kernels.placeTable(places), places.length, pitch, size];
    this.parts = parts;
  }

  /** @type {(padded: Numbers, dense: Numbers) => void} copy pictures, or outputs, to the array in which planes lie */
  write(padded, dense) {
    for (const [to, from, shape] of this.parts) this.kernels.copyRows(padded, to, dense, from, shape);
  }

  /** @type {(dense: Numbers, padded: Numbers) => void} copy them back */
  read(dense, padded) {
    for (const [from, to, shape] of this.parts) this.kernels.copyRows(dense, to, padded, from, shape);
  }
}

/**
 * The planes of the input.
 * @param {Kernels} kernels
 * @param {number} batch
 * @param {Shape} shape of a picture
 * @param {{ size: number, stride: number, padding: number }} filter
 * @param {number} columns of a plane
 */
export function layoutOfInput(kernels, batch, [channels, height, width], { size, stride, padding }, columns) {
  const sorted = Math.max(Math.ceil((width + 2 * padding) / stride), Math.floor((size - 1) / stride) + columns); // of one remainder
  const row = stride * sorted;
  const plane = (height + 2 * padding) * row;
  const column = (/** @type {number} */ x) => (x % stride) * sorted + Math.floor(x / stride);
  // Planes that follow each other begin in different rows: to add to numbers that were just changed is slow.
  const places = range(size).flatMap((right) =>
    range(channels * size).map((line) => {
      const [channel, down] = [Math.floor(line / size), line % size];
      return /** @type {Place} */ ([channel * plane + down * row + column(right), line * size + right]);
    }),
  );
  const parts = range(stride).map((first) => {
    const columnsFrom = Math.ceil((width - first) / stride); // every column of the picture from the first on
    const padded = [padding * row + column(first + padding), plane, row, 1];
    return /** @type {Part} */ ([padded, [first, height * width, width, stride], [batch * channels, height, columnsFrom]]);
  });
  return new Layout(kernels, places, stride * row, channels * plane, parts);
}

/**
 * The planes of the output.
 * @param {Kernels} kernels
 * @param {number} batch
 * @param {Shape} shape of the output of a picture
 * @param {number} taps the numbers of a filter
 * @param {number} pitch the columns of a plane
 */
export function layoutOfOutput(kernels, batch, [filters, rows, columns], taps, pitch) {
  const places = range(filters).map((f) => /** @type {Place} */ ([f * rows * pitch, f * taps]));
  return new Layout(kernels, places, pitch, filters * rows * pitch, [
    [
      [0, rows * pitch, pitch, 1],
      [0, rows * columns, columns, 1],
      [batch * filters, rows, columns],
    ],
  ]);
}

/** @type {(count: number) => number[]} */
const range = (count) => [...Array(count).keys()];
