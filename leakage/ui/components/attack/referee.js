// The referee, who alone sees the private pictures and the attacker's guess, and scores the guess.
import { assign } from './pairing.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */

const CAP = 100; // dB; equal pictures have an infinite ratio
const GREY = 0.5;

export class Referee {
  /**
   * @param {Float32Array} pictures the private pictures (B, C, H, W)
   * @param {number[]} labels (B,)
   */
  constructor(pictures, labels) {
    this.pictures = pictures;
    this.labels = labels;
    this.size = pictures.length / labels.length; // numbers of a picture
  }

  /**
   * The mean PSNR in dB over the pictures, each with the guess that the assignment of least summed squared error gives it.
   * @param {Numbers} guess (B, C, H, W) in [0, 1]
   */
  psnr(guess) {
    const each = [...this.labels.keys()];
    const costs = each.map((b) => each.map((other) => this.error(guess, b, other)));
    const order = assign(costs);
    return each.reduce((sum, b) => sum + decibel(costs[b][order[b]]), 0) / each.length;
  }

  /** The mean PSNR in dB of pictures that are grey everywhere, the guess of an attacker who found nothing. */
  get grey() {
    return this.psnr(new Float32Array(this.pictures.length).fill(GREY));
  }

  /**
   * How many of the labels are right, whatever their order.
   * @param {number[]} found
   */
  labelsRight(found) {
    const left = [...this.labels];
    return found.filter((label) => {
      const at = left.indexOf(label);
      if (at >= 0) left.splice(at, 1);
      return at >= 0;
    }).length;
  }

  /**
   * The mean squared error between a private picture and a guess.
   * @param {Numbers} guess
   * @param {number} b the number of the picture
   * @param {number} other the number of the guess
   */
  error(guess, b, other) {
    const { pictures, size } = this;
    let sum = 0;
    for (let i = 0; i < size; i++) sum += (guess[other * size + i] - pictures[b * size + i]) ** 2;
    return sum / size;
  }
}

/** @param {number} error mean squared, of pictures in [0, 1] */
const decibel = (error) => Math.min(CAP, -10 * Math.log10(error));
