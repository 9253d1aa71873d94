// One EventSource that survives: closed while the tab is hidden, reopened where it stopped, patient with errors.
class Stream {
  constructor(address, hear) {
    Object.assign(this, { address, hear, failures: 0 });
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
      this.timer = setTimeout(() => this.open(), Math.min(15000, 500 * 2 ** this.failures++) * (0.75 + Math.random() / 2));
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
