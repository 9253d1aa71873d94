// One EventSource that survives: closed while the tab is hidden, reopened where it stopped, patient with errors.
const SHORTEST = 500; // milliseconds before the first new attempt; doubled with every failure
const LONGEST = 15000; // and at most

export class Stream {
  /**
   * @param {() => string} address where to listen, asked again at every start
   * @param {(event: any, seq: number) => void} hear
   */
  constructor(address, hear) {
    this.address = address;
    this.hear = hear;
    this.failures = 0;
    this.closed = false;
    /** @type {EventSource | null} */
    this.source = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.look = () => (document.hidden ? this.drop() : this.open());
    document.addEventListener('visibilitychange', this.look);
    this.open();
  }

  open() {
    if (this.closed || this.source || document.hidden) return;
    clearTimeout(this.timer);
    this.source = new EventSource(this.address());
    this.source.onmessage = (message) => {
      this.failures = 0;
      this.hear(JSON.parse(message.data), Number(message.lastEventId) || 0);
    };
    // The browser gives up after an HTTP error and retries at once after others: one back-off of ours for both.
    this.source.onerror = () => {
      this.drop();
      const pause = Math.min(LONGEST, SHORTEST * 2 ** this.failures) * (0.75 + Math.random() / 2);
      this.failures += 1;
      this.timer = setTimeout(() => this.open(), pause);
    };
  }

  drop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  close() {
    this.closed = true;
    this.drop();
    document.removeEventListener('visibilitychange', this.look);
  }
}
