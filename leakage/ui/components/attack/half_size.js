// Pictures as enlargements of pictures with half the height and width, rounded up (leakage/attacks/_coarse.py).
import { Enlargement } from './enlargement.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */

export class HalfSize extends Enlargement {
  /** @param {[planes: number, height: number, width: number]} shape of the pictures; planes are pictures times channels */
  constructor([planes, height, width]) {
    super(planes, [Math.ceil(height / 2), Math.ceil(width / 2)], [height, width]);
  }

  /**
   * Every second pixel in both directions, so that noise stays noise of the same size: (planes, rows, columns).
   * @param {Numbers} pictures (planes, height, width)
   * @param {Numbers} small filled
   */
  reduce(pictures, small) {
    for (let at = 0; at < this.count; at++) {
      const row = Math.floor(at / this.columns);
      const [plane, y, x] = [Math.floor(row / this.rows), row % this.rows, at % this.columns];
      small[at] = pictures[(plane * this.height + 2 * y) * this.width + 2 * x];
    }
  }
}
