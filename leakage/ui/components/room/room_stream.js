// The event stream of a room: closed while the page is hidden, given up after a silence, opened again after a random pause.

// Milliseconds, from and to: the pauses and patience of many phones are spread, so that they do not all ask within the same second.
const FIRST = [500, 12000]; // before the first new attempt
const LATER = [5000, 12000]; // before each attempt after that
const ALONE = [500, 2000]; // before each attempt of a page that has no others beside it
const PATIENCE = [12000, 20000]; // for the first message of an attempt
const SILENCE = 12000; // the server sends a message at least every 5 s
const CLOSED = 2; // EventSource.CLOSED

/**
 * @typedef {object} Listener
 * @property {(state: any) => void} hear
 * @property {() => void} [lost] called once when nothing was heard for 12 s
 * @property {() => void} [found] called before the first message after that
 * @property {() => void} [refused] called after each HTTP error, which an EventSource cannot read
 * @property {boolean} [alone] the teacher's page: short pauses
 */

/** @param {number[]} span */
const within = ([from, to]) => from + Math.random() * (to - from);

export class RoomStream {
  /**
   * @param {() => string} address where to listen, asked again at every start
   * @param {Listener} listener
   */
  constructor(address, listener) {
    this.address = address;
    this.listener = listener;
    this.failures = 0;
    this.closed = false;
    this.silent = false;
    /** @type {EventSource | null} */
    this.source = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} until the next attempt, or until this one is given up */
    this.timer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} until the silence counts as a loss */
    this.alarm = undefined;
    this.look = () => (document.hidden ? this.rest() : this.wake());
    document.addEventListener('visibilitychange', this.look);
    this.wake();
  }

  /** Listen now, and watch for a silence. */
  wake() {
    if (this.closed || this.source || document.hidden) return;
    this.watch();
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source = new EventSource(this.address());
    this.source.onmessage = ({ data }) => this.receive(JSON.parse(data));
    this.source.onerror = () => this.fail();
    this.timer = setTimeout(() => this.retry(), within(PATIENCE));
  }

  /** @param {any} state */
  receive(state) {
    const { hear, found } = this.listener;
    this.failures = 0;
    this.watch();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), SILENCE);
    if (this.silent) found?.();
    this.silent = false;
    hear(state);
  }

  /** The browser gives up after an HTTP error only. */
  fail() {
    const refused = this.source?.readyState === CLOSED;
    this.retry();
    if (refused) this.listener.refused?.();
  }

  retry() {
    this.drop();
    const span = this.listener.alone ? ALONE : this.failures ? LATER : FIRST;
    this.failures += 1;
    this.timer = setTimeout(() => this.open(), within(span));
  }

  watch() {
    clearTimeout(this.alarm);
    this.alarm = setTimeout(() => {
      if (!this.silent) this.listener.lost?.();
      this.silent = true;
    }, SILENCE);
  }

  drop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  rest() {
    this.drop();
    clearTimeout(this.alarm);
  }

  close() {
    this.closed = true;
    this.rest();
    document.removeEventListener('visibilitychange', this.look);
  }
}
