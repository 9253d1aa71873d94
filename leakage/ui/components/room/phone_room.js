// A room as a phone knows it: its state, the lesson as far as the class has come, and the phone's own answers. No access to the page.
import { PhoneAnswers } from './phone_answers.js';
import { RoomError } from './room_api.js';
import { cellKey, keepRoom, keyOf, mayReturn, noteEnd } from './room_kept.js';
import { withViews } from './room_state.js';
import { RoomStream } from './room_stream.js';

const SPREAD = 3000; // milliseconds over which phones repeat their answers

/**
 * @typedef {import('./room_state.js').RoomState} RoomState
 * @typedef {import('./room_state.js').RoomLesson} RoomLesson
 * @typedef {object} Told the callbacks of a phone's page
 * @property {() => void} changed
 * @property {(sentence: string) => void} refused a sentence of the server
 * @property {(sentence: string) => void} gone this phone may not be here any more, and why
 */

export class PhoneRoom {
  /**
   * @param {string} code
   * @param {import('./room_api.js').RoomApi} api
   * @param {import('./room_kept.js').Kept} kept
   * @param {Told} told
   */
  constructor(code, api, kept, told) {
    this.code = code;
    this.api = api;
    this.kept = kept;
    this.told = told;
    this.resting = false;
    this.closed = false;
    /** @type {RoomState | null} */
    this.state = null;
    /** @type {RoomLesson | null} */
    this.lesson = null;
    this.version = ''; // of that lesson
    /** @type {Map<number, (number[] | null)[]>} a question, counted from 1 -> its bars when they were shown last */
    this.bars = new Map();
    this.fetching = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.repeating = undefined;
    this.answers = this.answersOf(kept);
    this.stream = new RoomStream(() => api.events(code, { slot: kept.slot }), {
      hear: (state) => this.hear(state),
      lost: () => this.rest(true),
      found: () => this.rest(false),
      refused: () => this.askWhy(),
    });
  }

  /** @param {import('./room_kept.js').Kept} kept */
  answersOf({ answers, slot }) {
    return new PhoneAnswers(answers, {
      send: (body) => this.api.me(this.code, { slot, ...body }),
      changed: () => {
        this.keep();
        this.told.changed();
      },
      refused: (sentence) => this.told.refused(sentence),
    });
  }

  keep() {
    if (!this.closed) keepRoom(this.code, this.kept);
  }

  /** @param {boolean} resting */
  rest(resting) {
    if (this.closed || this.resting === resting) return;
    this.resting = resting;
    this.told.changed();
  }

  /** @param {RoomState} state */
  hear(state) {
    const { kept } = this;
    this.state = state;
    this.resting = false;
    if (kept.lesson !== state.id) this.turnTo(state.id);
    if (state.cleared > (kept.cleared[state.beat] ?? 0)) this.answers.forget(cellKey(state.beat));
    kept.cleared[state.beat] = state.cleared;
    if (state.vote?.revealed && state.vote.bars) this.bars.set(state.beat, state.vote.bars);
    if (state.closed) return this.end();
    if (kept.opened && kept.opened !== state.opened) this.repeat();
    Object.assign(kept, { opened: state.opened, heard: Date.now(), ended: false });
    this.keep();
    this.answers.flush();
    if (state.lesson !== this.version) this.fetchLesson();
    this.told.changed();
  }

  /**
   * The class goes to a lesson: what this phone has of another one is forgotten.
   * @param {string} id
   */
  turnTo(id) {
    const { kept } = this;
    this.lesson = null;
    this.version = '';
    this.bars.clear();
    this.answers.close();
    Object.assign(kept, { lesson: id, answers: {}, cleared: {}, place: null });
    this.answers = this.answersOf(kept);
  }

  /** The room was opened again: give it the answers of its beat, at a random moment, since all phones do. */
  repeat() {
    clearTimeout(this.repeating);
    this.repeating = setTimeout(() => this.answers.repeat(this.state?.beat ?? 0), Math.random() * SPREAD);
  }

  /** A version that does not come, or comes of another lesson, is asked for again after the next message. */
  async fetchLesson() {
    const { state, code, kept } = this;
    if (this.fetching || !state) return;
    this.fetching = true;
    try {
      const lesson = await this.api.lesson(code, state.lesson, kept.slot);
      if (lesson.id === this.state?.id) {
        this.lesson = withViews(lesson, this.lesson);
        this.version = state.lesson;
      }
    } catch {
      return;
    } finally {
      this.fetching = false;
    }
    if (this.state?.lesson !== state.lesson) this.fetchLesson();
    this.told.changed();
  }

  /** The stream was refused. The sentence of the server says whether this phone may come back. */
  async askWhy() {
    try {
      await this.api.me(this.code, { slot: this.kept.slot });
    } catch (error) {
      const { status, message } = /** @type {RoomError} */ (error);
      if (this.closed) return;
      if (status === 403 || (status === 404 && !mayReturn(this.kept))) this.leave(message);
      else if (status) this.rest(true);
    }
  }

  /** @param {string} sentence */
  leave(sentence) {
    this.end();
    this.told.gone(sentence);
  }

  /** The room is closed: what was seen stays on the page, and only that it has ended is remembered. */
  end() {
    this.closed = true;
    this.destroy();
    noteEnd(this.code);
    this.told.changed();
  }

  /** @param {number} option of the question that is open */
  vote(option) {
    const { state } = this;
    if (this.closed || !state?.vote || state.vote.revealed) return;
    this.answers.give(keyOf(state.beat, state.vote.round), option);
  }

  /**
   * @param {number} beat counted from 1
   * @param {number} cell
   */
  choose(beat, cell) {
    if (!this.closed && this.state?.beat === beat && this.state.dots) this.answers.give(cellKey(beat), cell);
  }

  destroy() {
    this.stream.close();
    clearTimeout(this.repeating);
  }
}
