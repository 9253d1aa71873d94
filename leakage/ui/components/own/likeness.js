// How near a guess is to the private picture, and whether it can be recognized: the program's rule (leakage/evaluation/verdict.py) as far as
// a page can compute it. LPIPS needs a large network, so pixels and SSIM decide alone.
import { blindPictures } from './blind_pictures.js';
import { momentsOf, similarityOf } from './ssim.js';

const [SOME, NEAR, CLEAR] = [0.15, 0.3, 0.5]; // shares of the way to an exact copy
const [ROOM, ROOM_OF_ERROR] = [1e-4, 1e-6]; // a picture nearer than this to an exact copy, by SSIM or by squared error, counts as a copy
const SAME = 0.02; // mean difference of two pictures, below which they are one: a file of the line-up may be another copy of the visitor's

/** @typedef {import('./ssim.js').Size} Size */
/** @typedef {import('./ssim.js').Moments} Moments */
/** @typedef {'recognizable' | 'singled' | 'partly' | 'hidden'} Word */

/**
 * The mean squared error of a guess.
 * @param {ArrayLike<number>} guess
 * @param {ArrayLike<number>} truth
 */
export function squaredError(guess, truth) {
  let sum = 0;
  for (let i = 0; i < truth.length; i++) sum += (guess[i] - truth[i]) ** 2;
  return sum / truth.length;
}

/**
 * Closeness (PSNR) in dB, at most 100.
 * @param {ArrayLike<number>} guess in [0, 1]
 * @param {ArrayLike<number>} truth in [0, 1]
 */
export const decibels = (guess, truth) => Math.min(100, -10 * Math.log10(squaredError(guess, truth)));

/**
 * Structural similarity (SSIM).
 * @param {Float32Array} guess (channels, side, side) in [0, 1]
 * @param {Float32Array} truth
 * @param {Size} size
 */
export const similarity = (guess, truth, size) => similarityOf(momentsOf(guess, size), momentsOf(truth, size), size);

/**
 * Judges guesses of one private picture beside a line-up and beside pictures that show nothing of it.
 */
export class Likeness {
  /**
   * @param {Float32Array} truth (channels, side, side) in [0, 1]
   * @param {Float32Array[]} others the other pictures of the line-up
   * @param {Size} size
   */
  constructor(truth, others, size) {
    this.size = size;
    this.truth = momentsOf(truth, size);
    const left = others.filter((other) => !isSame(other, truth));
    this.others = left.map((other) => momentsOf(other, size));
    const { plain, blurred } = blindPictures(truth, left, size);
    const blind = plain.map((picture) => momentsOf(picture, size));
    const every = [...blind, ...blurred.map((picture) => momentsOf(picture, size))];
    this.best = this.bestOf(every);
    this.bestOfAll = this.bestOf([...every, ...this.others]);
    const ranks = blind.map((picture) => this.ranks(picture));
    this.counts = [0, 1].map((distance) => ranks.every((each) => each[distance] >= 2)); // whether no picture that shows nothing comes first
  }

  /**
   * The least squared error and the largest similarity that one of some pictures has as a guess.
   * @param {Moments[]} pictures
   */
  bestOf(pictures) {
    const scores = pictures.map((picture) => this.scores(picture, this.truth));
    return { error: Math.min(...scores.map(({ error }) => error)), alike: Math.max(...scores.map(({ alike }) => alike)) };
  }

  /**
   * @param {Moments} guess
   * @param {Moments} picture
   */
  scores(guess, picture) {
    return { error: squaredError(guess.picture, picture.picture), alike: similarityOf(guess, picture, this.size) };
  }

  /**
   * The place of the private picture among all of the line-up by nearness to the guess, by pixels and by SSIM; a tie counts half.
   * @param {Moments} guess
   */
  ranks(guess) {
    const own = this.scores(guess, this.truth);
    const others = this.others.map((other) => this.scores(guess, other));
    const count = (/** @type {number[]} */ distances) => distances.reduce((sum, one) => sum + (one < 0 ? 1 : one === 0 ? 0.5 : 0), 0);
    return [1 + count(others.map(({ error }) => error - own.error)), 1 + count(others.map(({ alike }) => own.alike - alike))];
  }

  /**
   * The verdict on a guess.
   * @param {Float32Array} picture (channels, side, side) in [0, 1]
   * @param {number} [count] guesses among which this is the nearest: of several, luck has more tries
   * @returns {{ word: Word, rank: number | null, size: number }} `rank`: the median of the ranks that count; null where none does
   */
  judge(picture, count = 1) {
    const guess = momentsOf(picture, this.size);
    const score = this.scores(guess, this.truth);
    const ranks = this.ranks(guess).filter((_, distance) => this.counts[distance]);
    const firsts = ranks.filter((rank) => rank === 1).length;
    const first = firsts > 0 && 2 * firsts >= ranks.length;
    const above = nearer(score, this.bestOfAll);
    const evidence = (first && nearer(score, this.best) >= SOME && (count === 1 || above >= SOME)) || above >= CLEAR;
    const clear = above >= NEAR && shareOfSimilarity(score.alike, this.best.alike) >= CLEAR;
    const word = !evidence ? 'hidden' : clear ? 'recognizable' : first ? 'singled' : 'partly';
    const rank = ranks.length ? ranks.reduce((sum, one) => sum + one, 0) / ranks.length : null;
    return { word, rank, size: this.others.length + 1 };
  }
}

/**
 * Whether two pictures are the same but for their files.
 * @param {Float32Array} one
 * @param {Float32Array} other
 */
const isSame = (one, other) => one.reduce((sum, value, place) => sum + Math.abs(value - other[place]), 0) / one.length < SAME;

/**
 * How far a guess goes from the best of other pictures (0) to an exact copy (1), by pixels or by SSIM; -Infinity where these are copies.
 * @param {{ error: number, alike: number }} guess
 * @param {{ error: number, alike: number }} best
 */
const nearer = (guess, best) =>
  Math.max(best.error > ROOM_OF_ERROR ? 1 - guess.error / best.error : -Infinity, shareOfSimilarity(guess.alike, best.alike));

/** @type {(alike: number, best: number) => number} */
const shareOfSimilarity = (alike, best) => (1 - best > ROOM ? (alike - best) / (1 - best) : -Infinity);
