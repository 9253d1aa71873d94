// The pictures of one run as they come: what is known of the run, which of its pictures are loaded, and which one is on the page.
import { Sheets } from './pictures.js';
import { answerPlace, isFinal, newRecord, placeOf, take } from './record.js';

const BURST = 1500; // milliseconds: a run that ends this soon after its first frame was not watched
export const HOLD = 200; // milliseconds: history arrives in one go, wait for it before the first picture is shown
export const QUIET = 30; // milliseconds without an event: all history has arrived

/** @typedef {import('./record.js').Frame} Frame */

export class Film {
  /**
   * @param {string} base the prefix of our routes
   * @param {string} id of the run
   * @param {() => void} changed is called when a picture turns out to be gone
   */
  constructor(base, id, changed) {
    this.record = newRecord(id);
    this.changed = changed;
    this.sheets = new Sheets((seq) => `${base}/api/runs/${encodeURIComponent(id)}/frames/${seq}.png`);
    /** @type {Frame | null} the picture on the page */
    this.shown = null;
    /** @type {Frame | null} the picture that was asked for last */
    this.wanted = null;
    this.shownAt = -Infinity;
    /** @type {Set<number>} */
    this.seen = new Set();
    this.lastEvent = -Infinity; // when it came
    /** @type {number | null} when the first frame came */
    this.firstFrame = null;
  }

  /** @param {import('./record.js').AttackEvent} event */
  receive(event) {
    take(this.record, event);
    this.lastEvent = performance.now();
    if (event.kind === 'frame') this.firstFrame ??= performance.now();
  }

  /** @param {number} age milliseconds */
  isYoungerThan(age) {
    return this.firstFrame !== null && performance.now() - this.firstFrame < age;
  }

  /** Whether history is still arriving. */
  get arriving() {
    return this.isYoungerThan(HOLD) && performance.now() - this.lastEvent < QUIET;
  }

  /** Of a run that is over: whether it was over before anybody could watch it. */
  get missed() {
    return this.isYoungerThan(BURST);
  }

  /** The picture to follow the attack with, unless it was asked for already. An answer is waited for, where there will be one. */
  get next() {
    const { record } = this;
    const newest = record.pictures[record.pictures.length - 1];
    return newest && newest !== this.wanted && (!isFinal(record) || record.end) ? newest : null;
  }

  /** What the player needs to know. */
  get extent() {
    const { pictures, end } = this.record;
    return {
      count: pictures.length,
      place: this.shown ? placeOf(pictures, this.shown.seq) : -1,
      answer: answerPlace(this.record),
      running: !end && !isFinal(this.record),
    };
  }

  /** @param {number} seq */
  isReady(seq) {
    this.fetch(seq);
    return this.sheets.ready.has(seq);
  }

  /**
   * A picture that is gone (thinned on the server meanwhile) leaves the list instead of leaving a hole in the film.
   * @param {number} seq
   */
  fetch(seq) {
    const { record, sheets } = this;
    return sheets.fetch(seq).catch(() => {
      sheets.ready.set(seq, null);
      record.pictures = record.pictures.filter((frame) => frame.seq !== seq);
      this.changed();
      return null;
    });
  }

  fetchAll() {
    this.record.pictures.forEach((frame) => this.fetch(frame.seq));
  }

  /**
   * Whether a frame whose picture has come is to be shown: scrubbing outruns the network, so only what is still wanted is, save when
   * following, where every picture counts that is not older than the one on the page.
   * @param {Frame} frame
   * @param {boolean} following
   */
  isWanted(frame, following) {
    return this.wanted === frame || (following && !(this.shown && this.shown.seq > frame.seq));
  }

  /** @param {Frame} frame which is on the page now */
  mark(frame) {
    this.seen.add(frame.seq);
    this.shown = frame;
    this.shownAt = performance.now();
  }
}
