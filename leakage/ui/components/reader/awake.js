// A screen that stays awake in front of a class, where the browser can keep it so (navigator.wakeLock). One that cannot is not an error.

export class Awake {
  constructor() {
    this.wanted = false;
    /** @type {WakeLockSentinel | null} */
    this.lock = null;
    this.look = () => this.ask(); // a hidden page loses its lock
  }

  /** @param {boolean} wanted */
  set(wanted) {
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    if (wanted) document.addEventListener('visibilitychange', this.look);
    else document.removeEventListener('visibilitychange', this.look);
    if (wanted) this.ask();
    else this.release();
  }

  async ask() {
    if (!this.wanted || document.hidden) return;
    try {
      const lock = await navigator.wakeLock?.request('screen');
      this.release();
      this.lock = lock ?? null;
      if (!this.wanted) this.release();
    } catch {
      // refused, for example to save the battery
    }
  }

  release() {
    this.lock?.release().catch(() => {});
    this.lock = null;
  }
}
