// The votes of a class on the questions of a lesson: raised hands before and after discussion, and which answer is shown. No access to the page.
import { say } from './phrases.js';

/**
 * @typedef {object} Votes what a presentation asks of the votes of a class, be they raised hands or those of phones
 * @property {boolean} counted whether phones count them, so that no key does
 * @property {number} unveiled the place of the question that shows its answer, or -1
 * @property {(place: number, option: number, count: number) => void} raise
 * @property {(place: number) => void} again
 * @property {(place: number) => number[][]} votesOf
 * @property {(place: number, revealed: boolean) => string} wordsOf
 * @property {(votes: number) => string} votesWords
 */

const sum = (/** @type {number[]} */ hands) => hands.reduce((all, one) => all + one, 0);

export class Hall {
  constructor() {
    this.counted = false;
    this.unveiled = -1; // the question that shows its answer
    /** @type {Map<number, number[][]>} the place of a question -> its votes: of each option, how many hands */
    this.votes = new Map();
  }

  /**
   * One more hand for an option.
   * @param {number} place of the question
   * @param {number} option
   * @param {number} count of options
   */
  raise(place, option, count) {
    const votes = this.votes.get(place) ?? [Array(count).fill(0)];
    votes[votes.length - 1][option] += 1;
    this.votes.set(place, votes);
  }

  /**
   * Hide the answer and vote again: what was counted last stands beside what comes.
   * @param {number} place
   */
  again(place) {
    const latest = this.votes.get(place)?.at(-1) ?? [];
    this.unveiled = -1;
    if (sum(latest)) this.votes.set(place, [latest, latest.map(() => 0)]);
  }

  /**
   * How many hands are up in the vote that goes on.
   * @param {number} place
   */
  raised(place) {
    return sum(this.votes.get(place)?.at(-1) ?? []);
  }

  /**
   * Whether the question is voted on again.
   * @param {number} place
   */
  isSecond(place) {
    return (this.votes.get(place)?.length ?? 0) > 1;
  }

  /**
   * Return the votes with at least one raised hand: the vote before the discussion, the vote after it, or both.
   * @param {number} place
   */
  votesOf(place) {
    return (this.votes.get(place) ?? []).filter(sum);
  }

  /**
   * Before the answer the class sees only how many hands are up, so that students do not follow each other.
   * @param {number} place
   * @param {boolean} revealed
   */
  wordsOf(place, revealed) {
    const count = this.raised(place);
    return revealed ? '' : [this.isSecond(place) ? say('discuss') : '', count ? this.votesWords(count) : ''].filter(Boolean).join(' ');
  }

  /** @param {number} votes */
  votesWords(votes) {
    return say('hands', { n: votes });
  }
}
