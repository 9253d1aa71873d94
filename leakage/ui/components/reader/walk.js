// A reader's position and guesses in a lesson: a beat behind an open question cannot be reached. No access to the page.

/**
 * @typedef {{ text: string, right: boolean, why: string }} Option
 * @typedef {{ kind: string, text: string, options?: Option[], note?: string, hall_note?: string, hall?: number }} Step a beat, as far as walking goes
 * @typedef {{ place: number, furthest: number, guesses: Record<string, number> }} Kept what is remembered of a lesson
 */

/** @type {(value: unknown, below: number) => value is number} */
const isPlace = (value, below) => Number.isInteger(value) && Number(value) >= 0 && Number(value) < below;

export class Walk {
  /**
   * @param {Step[]} beats
   * @param {Partial<Kept>} [kept] as it was remembered; what does not fit these beats is forgotten
   */
  constructor(beats, { place = 0, furthest = 0, guesses = {} } = {}) {
    this.beats = beats;
    this.free = false; // in a presentation open questions stop nobody
    /** @type {Set<number>} beats that a presentation has passed: their questions do not stop the reader any more */
    this.passed = new Set();
    /** @type {Map<number, number>} the place of a question -> the option chosen */
    this.guesses = new Map();
    beats.forEach(({ options = [] }, question) => {
      const option = guesses?.[question];
      if (isPlace(option, options.length)) this.guesses.set(question, option);
    });
    this.furthest = Math.min(isPlace(furthest, beats.length) ? furthest : 0, this.gate);
    this.place = Math.min(isPlace(place, beats.length) ? place : 0, this.gate);
  }

  get beat() {
    return this.beats[this.place];
  }

  get last() {
    return this.beats.length - 1;
  }

  /** The furthest place that can be reached: the first question without an answer that was not presented, or the end. */
  get gate() {
    const open = this.beats.findIndex(({ options }, place) => options?.length && !this.guesses.has(place) && !this.passed.has(place));
    return open < 0 || this.free ? this.last : open;
  }

  /**
   * Go there, or as far as the first open question. Answers whether it was that far.
   * @param {number} place
   */
  go(place) {
    const wanted = Math.min(Math.max(0, place), this.last);
    this.place = Math.min(wanted, this.gate);
    if (this.free) this.pass();
    else this.furthest = Math.max(this.furthest, this.place); // what was presented was not yet read
    return this.place === wanted;
  }

  /** All questions before this place were presented. */
  pass() {
    for (let place = 0; place < this.place; place += 1) this.passed.add(place);
  }

  /** Whether the question at `place` has been walked past: its answer is seen, and the guess stands. */
  revealed(place = this.place) {
    return this.guesses.has(place) && this.furthest > place;
  }

  /**
   * Choose an option of the question here; until the answer is seen, another may be chosen.
   * @param {number} option
   */
  choose(option) {
    if (!isPlace(option, this.beat.options?.length ?? 0) || (this.revealed() && !this.free)) return false;
    this.guesses.set(this.place, option);
    return true;
  }

  /** At the beat that follows a question: what was chosen there, and what is right. */
  get outcome() {
    const { options = [] } = this.beats[this.place - 1] ?? {};
    const chosen = this.guesses.get(this.place - 1);
    const right = options.findIndex((option) => option.right);
    return options.length && chosen !== undefined ? { options, chosen, right } : null;
  }

  get finished() {
    return this.furthest === this.last;
  }

  /** @returns {Kept} */
  get kept() {
    return { place: this.place, furthest: this.furthest, guesses: Object.fromEntries(this.guesses) };
  }
}

/** @type {(place: number) => string} */
export const letter = (place) => 'ABCD'[place] ?? '';

/**
 * The lesson and the beat of an address such as #07-noise/3?present; beats count from 1 there.
 * @param {string} hash
 */
export function readHash(hash) {
  const found = /^#([\w-]+)(?:\/(\d{1,3}))?(\?present)?$/.exec(hash);
  return found ? { lesson: found[1], place: found[2] ? Number(found[2]) - 1 : null, present: Boolean(found[3]) } : null;
}

/** @type {(lesson: string, place: number, present?: boolean) => string} */
export const writeHash = (lesson, place, present = false) => `#${lesson}/${place + 1}${present ? '?present' : ''}`;
