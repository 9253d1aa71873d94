// The room of a class, as the teacher's page leads it: its beat, its votes and its choices, fed by the room's stream. No access to the page.
import { say } from '../reader/phrases.js';
import { phones, word } from './hall_phrases.js';
import { tell } from './room_phrases.js';
import { isLed, keepRoom, withAddresses } from './room_store.js';
import { RoomStream } from './room_stream.js';

const PATIENCE = 2000; // milliseconds in which a state may still be older than what the teacher pressed

/**
 * @typedef {import('./room_state.js').RoomState} RoomState
 * @typedef {import('./room_state.js').VoteState} VoteState
 * @typedef {object} Led what the room tells the page
 * @property {() => void} changed
 * @property {(place: number) => void} went the room is at this beat, counted from 0; once, after a page has found its room again
 * @property {(words: string) => void} told
 * @property {(words: string, stays?: boolean) => void} ended `stays`: the words are to be found later, too
 */

export class ClassRoom {
  /**
   * @param {import('./room_api.js').RoomApi} api
   * @param {import('./room_store.js').Kept} kept
   * @param {number} place of the lesson's beat, counted from 0
   * @param {Led} led
   */
  constructor(api, kept, place, led) {
    this.api = api;
    this.kept = kept;
    this.place = place;
    this.led = led;
    this.counted = true;
    /** @type {RoomState | null} */
    this.state = null;
    this.moved = kept.beat === undefined; // a room that was just opened is where the page is
    /** @type {Map<number, VoteState>} the place of a question -> its votes as they were last */
    this.votes = new Map();
    /** @type {Map<number, Pick<RoomState, 'dots' | 'runs'>>} the place of a beat to try -> the choices, and the live runs */
    this.tries = new Map();
    /** @type {{ place: number, vote: Partial<VoteState>, until: number } | null} what was pressed and is not in a state yet */
    this.wish = null;
    this.pending = 0;
    this.silent = false;
    /** @type {Promise<unknown>} requests follow one another, so that none overtakes another */
    this.queue = Promise.resolve();
    this.stream = new RoomStream(() => api.events(this.kept.code, { key: this.kept.key }), {
      hear: (state) => this.hear(state),
      lost: () => this.rest(true),
      found: () => this.rest(false),
      refused: () => void this.openAgain(),
      alone: true,
    });
  }

  get phones() {
    return this.state?.phones ?? 0;
  }

  /** @param {boolean} silent whether nothing is heard of the server */
  rest(silent) {
    this.silent = silent;
    this.led.changed();
  }

  /** @param {RoomState} state */
  hear(state) {
    if (state.closed) return this.end(tell('closed'));
    const { kept } = this;
    if (state.id !== kept.lesson || !isLed(kept)) return this.yield();
    const first = !this.state;
    const restarted = kept.opened !== undefined && kept.opened !== state.opened;
    if (restarted) this.votes.clear();
    this.state = state;
    const place = state.beat - 1;
    if (state.vote) this.votes.set(place, state.vote);
    if (state.dots) this.tries.set(place, { dots: state.dots, runs: state.runs });
    if (this.wish && (this.isMet(state.vote) || Date.now() > this.wish.until)) this.wish = null;
    if (first && !this.moved) {
      this.place = place;
      this.led.went(place);
    } else if (!this.pending && place !== this.place) this.post({ beat: this.place + 1 });
    this.keep();
    this.led.changed();
    if (restarted) this.led.told(word('restarted'));
  }

  /**
   * Whether the server has done what was pressed.
   * @param {VoteState | null} vote
   */
  isMet(vote) {
    const { revealed, second = vote?.second } = this.wish?.vote ?? {};
    return !vote || (vote.revealed === revealed && vote.second === second);
  }

  /** What a reload, or a restart of the server, must find again. */
  keep() {
    if (!this.state) return;
    const { opened, beat, students, vote } = this.state;
    const { round = 0, second = false, revealed = false } = vote ?? {};
    this.kept = { ...this.kept, opened, beat, students, round, second, revealed };
    keepRoom(this.kept);
  }

  /**
   * Take the class to a beat. Answers whether the page was at another before.
   * @param {number} place counted from 0
   */
  lead(place) {
    if (place === this.place) return false;
    this.place = place;
    this.moved = true;
    this.wish = null;
    this.post({ beat: place + 1 });
    return true;
  }

  /**
   * @param {{ beat?: number, act?: string }} body
   * @returns {Promise<boolean>} whether the server did it
   */
  post(body) {
    this.pending += 1;
    const done = this.queue.then(() => this.deliver(body));
    this.queue = done.finally(() => (this.pending -= 1));
    return done;
  }

  /**
   * @param {{ beat?: number, act?: string }} body
   * @param {boolean} [again] whether to open a room again that the server does not know any more
   * @returns {Promise<boolean>}
   */
  async deliver(body, again = true) {
    const { code, key } = this.kept;
    try {
      await this.api.lead(code, { key, ...body });
      return true;
    } catch (error) {
      if (again && statusOf(error) === 404 && (await this.openAgain())) return this.deliver(body, false);
      this.wish = null;
      this.led.told(sentenceOf(error));
      this.led.changed();
      return false;
    }
  }

  /** Open the same room again, if the server was started again, and learn its addresses. Answers whether the room is open. */
  async openAgain() {
    const { code, key, lesson, round = 0, second = false, revealed = false, students = false } = this.kept;
    const beat = this.moved ? this.place + 1 : (this.kept.beat ?? 1);
    const there = beat === this.kept.beat; // the votes are those of the beat that was heard last
    try {
      const votes = there ? { round, second, revealed } : {};
      this.kept = withAddresses(this.kept, await this.api.open({ lesson, beat, code, key, students, ...votes }));
      this.led.changed();
      return true;
    } catch (error) {
      const status = statusOf(error);
      if (status >= 400 && status < 500) this.end(sentenceOf(error));
      return false;
    }
  }

  /**
   * Compute a cell of the grid of this beat live.
   * @param {number} cell
   */
  async live(cell) {
    const { code, key } = this.kept;
    return this.api.live(code, { key, beat: this.place + 1, cell });
  }

  /**
   * The votes on a question: as the server told them, and as they will be after what was just pressed.
   * @param {number} place
   * @returns {VoteState | null}
   */
  seen(place) {
    const vote = this.votes.get(place);
    return vote ? { ...vote, ...(this.wish?.place === place ? this.wish.vote : {}) } : null;
  }

  get unveiled() {
    return this.seen(this.place)?.revealed ? this.place : -1;
  }

  /** Show the answer of a question, or, with -1, hide it. */
  set unveiled(place) {
    const revealed = place >= 0;
    this.want({ revealed });
    this.post({ act: revealed ? 'reveal' : 'hide' });
  }

  /** @param {Partial<VoteState>} vote */
  want(vote) {
    this.wish = { place: this.place, vote, until: Date.now() + PATIENCE };
  }

  /** Phones count themselves. */
  raise() {}

  /** @param {number} place */
  again(place) {
    this.want(this.seen(place)?.count ? { revealed: false, second: true, count: 0 } : { revealed: false });
    this.post({ act: 'again' });
  }

  /**
   * The votes of five phones and more: the vote before the discussion, the vote after it, or both.
   * @param {number} place
   */
  votesOf(place) {
    return (this.seen(place)?.bars ?? []).filter((bar) => bar !== null);
  }

  /**
   * How many phones have voted; with the answer the bars say it, or, of fewer than five votes, that no more is shown.
   * @param {number} place
   * @param {boolean} revealed
   */
  wordsOf(place, revealed) {
    const vote = this.seen(place);
    if (!vote) return '';
    const { count, second, bars } = vote;
    const answered = tell('answered', { n: count, all: this.phones });
    if (revealed) return bars?.at(-1) ? '' : `${answered} ${tell('fewVotes')}`;
    return second ? `${say('discuss')} ${answered}` : answered;
  }

  /** @param {number} votes */
  votesWords(votes) {
    return votes === 1 ? tell('vote') : tell('votes', { n: votes });
  }

  /**
   * What the class has tried at a beat, and which cells are computed live.
   * @param {number} place
   */
  triesOf(place) {
    const { dots, runs = {} } = this.tries.get(place) ?? {};
    return { dots: dots ?? {}, runs };
  }

  /** The address of the server that phones are to use, or an empty text. */
  get at() {
    return this.kept.local ? '' : (this.kept.addresses[0] ?? '');
  }

  /** @param {string} address one of the server's: from now on the first */
  use(address) {
    this.kept.addresses = [address, ...this.kept.addresses.filter((other) => other !== address)];
    keepRoom(this.kept);
    this.led.changed();
  }

  /** The phones in words. */
  get crowd() {
    return phones(this.phones);
  }

  /** End the room for everybody. */
  async close() {
    if (await this.post({ act: 'close' })) this.end(word('ended'));
  }

  /** Another page leads the room now. */
  yield() {
    this.destroy();
    this.led.ended(word('superseded', { code: this.kept.code }), true);
  }

  /** @param {string} words */
  end(words) {
    keepRoom(null);
    this.destroy();
    this.led.ended(words);
  }

  /** Leave the room open, and hear it no more. */
  destroy() {
    this.stream.close();
  }
}

/** @param {unknown} error */
const statusOf = (error) => Number(/** @type {any} */ (error).status ?? 0);

/** @param {unknown} error */
export const sentenceOf = (error) => (statusOf(error) ? /** @type {Error} */ (error).message : word('unreachable'));
