// The answers of a phone on their way to the server: each is sent until the server has taken or refused it. No access to the page.
import { RoomError } from './room_api.js';
import { cellKey, keyOf } from './room_kept.js';

const PAUSE = 3000; // milliseconds after an attempt that failed
const LATER = [0, 404, 429]; // the server was not reached, does not know the room yet, or asks to wait

/** @typedef {import('./room_kept.js').Answer} Answer */

export class PhoneAnswers {
  /**
   * @param {Record<string, Answer>} answers
   * @param {{ send: (body: { beat: number, option?: number, round?: number, cell?: number }) => Promise<void>, changed: () => void,
   *   refused: (sentence: string) => void }} how
   */
  constructor(answers, { send, changed, refused }) {
    this.answers = answers;
    this.how = { send, changed, refused };
    this.sending = false;
    this.failed = -Infinity; // when the last attempt failed
    this.closed = false;
    /** @type {Set<string>} what the server does not have yet */
    this.due = new Set(Object.keys(answers).filter((key) => answers[key].value !== answers[key].counted));
  }

  /**
   * The option that was chosen in a round of a question.
   * @param {number} beat
   * @param {number} round
   */
  option(beat, round) {
    return this.answers[keyOf(beat, round)]?.value;
  }

  /**
   * The option that was chosen last, in whichever round.
   * @param {number} beat
   */
  latest(beat) {
    const rounds = Object.keys(this.answers)
      .map((key) => key.split('/'))
      .filter(([of, round]) => Number(of) === beat && round !== 'cell')
      .map(([, round]) => Number(round));
    return rounds.length ? this.option(beat, Math.max(...rounds)) : undefined;
  }

  /** @param {number} beat */
  cell(beat) {
    return this.answers[cellKey(beat)]?.value;
  }

  /**
   * The cell that the server has taken last.
   * @param {number} beat
   */
  counted(beat) {
    return this.answers[cellKey(beat)]?.counted;
  }

  /**
   * @param {string} key
   * @param {number} value
   */
  give(key, value) {
    this.answers[key] = { value, counted: this.answers[key]?.counted ?? null };
    this.due.add(key);
    this.how.changed();
    this.flush();
  }

  /**
   * Send the answers of a beat again: the server has forgotten them.
   * @param {number} beat
   */
  repeat(beat) {
    for (const key of Object.keys(this.answers)) if (key.startsWith(`${beat}/`)) this.due.add(key);
    this.flush();
  }

  /**
   * The teacher has cleared this answer.
   * @param {string} key
   */
  forget(key) {
    delete this.answers[key];
    this.due.delete(key);
    this.how.changed();
  }

  /** Send what waits, unless an attempt has just failed. */
  flush() {
    if (!this.sending && performance.now() - this.failed >= PAUSE) this.sendAll();
  }

  async sendAll() {
    this.sending = true;
    for (const key of this.due) {
      const { value } = this.answers[key];
      try {
        await this.how.send(bodyOf(key, value));
        if (this.closed) return;
        this.settle(key, value);
      } catch (error) {
        if (this.closed) return;
        const { status, message } = /** @type {RoomError} */ (error);
        if (LATER.includes(status) || status >= 500) {
          this.failed = performance.now();
          break;
        }
        this.withdraw(key, message);
      }
    }
    this.sending = false;
  }

  /** Send nothing more. */
  close() {
    this.closed = true;
    this.due.clear();
  }

  /**
   * The server has this answer. Another that was given meanwhile is sent next.
   * @param {string} key
   * @param {number} value
   */
  settle(key, value) {
    const answer = this.answers[key];
    answer.counted = value;
    this.due.delete(key);
    if (answer.value !== value) this.due.add(key);
    this.how.changed();
  }

  /**
   * The server does not take this answer: what it took before holds.
   * @param {string} key
   * @param {string} sentence
   */
  withdraw(key, sentence) {
    const { value, counted } = this.answers[key];
    this.due.delete(key);
    if (counted === null) delete this.answers[key];
    else this.answers[key].value = counted;
    this.how.changed();
    if (value !== counted) this.how.refused(sentence);
  }
}

/**
 * @param {string} key
 * @param {number} value
 */
function bodyOf(key, value) {
  const [beat, round] = key.split('/');
  return round === 'cell' ? { beat: Number(beat), cell: value } : { beat: Number(beat), option: value, round: Number(round) };
}
