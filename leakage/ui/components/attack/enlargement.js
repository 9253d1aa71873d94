// Bilinear enlargement of pictures, as torch's interpolate does it without aligned corners, and its derivative.

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {{ from: number, to: number, share: number }[]} Axis for each pixel: its two neighbors, and the share of the second one */

export class Enlargement {
  /**
   * @param {number} planes pictures times channels
   * @param {[rows: number, columns: number]} small
   * @param {[height: number, width: number]} large
   */
  constructor(planes, [rows, columns], [height, width]) {
    this.planes = planes;
    this.rows = rows;
    this.columns = columns;
    this.height = height;
    this.width = width;
    this.count = planes * rows * columns; // numbers of the small pictures
    this.places = new Uint32Array(4 * height * width); // in a small plane: the four pixels that each enlarged pixel is made of
    this.shares = new Float64Array(4 * height * width); // of these four
    const [down, across] = [axis(rows, height), axis(columns, width)];
    let i = 0;
    for (const row of down)
      for (const column of across)
        for (const [y, part] of [
          [row.from, 1 - row.share],
          [row.to, row.share],
        ]) {
          this.places.set([y * columns + column.from, y * columns + column.to], i);
          this.shares.set([part * (1 - column.share), part * column.share], i);
          i += 2;
        }
  }

  /**
   * The enlarged pictures.
   * @param {Numbers} small (..., rows, columns)
   * @param {Numbers} pictures filled, (..., height, width)
   */
  enlarge(small, pictures) {
    const { planes, places, shares } = this;
    const [count, area] = [this.rows * this.columns, this.height * this.width];
    pictures.fill(0);
    for (let plane = 0; plane < planes; plane++)
      for (let i = 0; i < 4 * area; i++) pictures[plane * area + (i >> 2)] += shares[i] * small[plane * count + places[i]];
  }

  /**
   * The derivative by the small pictures from the derivative by the enlarged ones.
   * @param {Numbers} gradient (..., height, width)
   * @param {Numbers} small filled, (..., rows, columns)
   */
  pullBack(gradient, small) {
    const { planes, places, shares } = this;
    const [count, area] = [this.rows * this.columns, this.height * this.width];
    small.fill(0);
    for (let plane = 0; plane < planes; plane++)
      for (let i = 0; i < 4 * area; i++) small[plane * count + places[i]] += shares[i] * gradient[plane * area + (i >> 2)];
  }
}

/**
 * @param {number} small pixels
 * @param {number} large pixels
 * @returns {Axis}
 */
function axis(small, large) {
  return Array.from({ length: large }, (_, index) => {
    const place = Math.max(0, ((index + 0.5) * small) / large - 0.5);
    const from = Math.floor(place);
    return { from, to: Math.min(from + 1, small - 1), share: place - from };
  });
}
