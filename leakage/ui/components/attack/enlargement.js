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
    this.down = axis(rows, height);
    this.across = axis(columns, width);
    this.count = planes * rows * columns; // numbers of the small pictures
  }

  /**
   * The enlarged pictures.
   * @param {Numbers} small (..., rows, columns)
   * @param {Numbers} pictures filled, (..., height, width)
   */
  enlarge(small, pictures) {
    pictures.fill(0);
    this.visit((at, pixel, weight) => (pictures[pixel] += weight * small[at]));
  }

  /**
   * The derivative by the small pictures from the derivative by the enlarged ones.
   * @param {Numbers} gradient (..., height, width)
   * @param {Numbers} small filled, (..., rows, columns)
   */
  pullBack(gradient, small) {
    small.fill(0);
    this.visit((at, pixel, weight) => (small[at] += weight * gradient[pixel]));
  }

  /**
   * Calls `use` for the four small pixels that each enlarged pixel is made of.
   * @param {(at: number, pixel: number, weight: number) => void} use
   */
  visit(use) {
    const { planes, height, width, rows, columns, down, across } = this;
    for (let plane = 0, pixel = 0; plane < planes; plane++)
      for (let y = 0; y < height; y++) {
        const row = down[y];
        const [upper, lower] = [(plane * rows + row.from) * columns, (plane * rows + row.to) * columns];
        for (let x = 0; x < width; x++, pixel++) {
          const column = across[x];
          use(upper + column.from, pixel, (1 - row.share) * (1 - column.share));
          use(upper + column.to, pixel, (1 - row.share) * column.share);
          use(lower + column.from, pixel, row.share * (1 - column.share));
          use(lower + column.to, pixel, row.share * column.share);
        }
      }
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
