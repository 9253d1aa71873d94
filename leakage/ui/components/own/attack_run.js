// One attack in a worker of the browser: it is started, paused while nobody sees the page, and stopped.

/**
 * @typedef {object} Order what the worker is asked to do; see ../attack/attack_worker.js
 * @property {string} network
 * @property {number[]} shape
 * @property {number} classes
 * @property {Float32Array} pictures
 * @property {number[]} labels
 * @property {number} seed
 * @property {string} attack
 * @property {{ id: string }[]} [protection]
 * @property {boolean} [adaptive]
 * @property {number} [rounds]
 * @property {Float32Array} [phones]
 * @property {number} [steps]
 *
 * @typedef {{ kind: 'sent' | 'frame' | 'end' | 'failed' | 'refused', [name: string]: any }} Message `refused`: the worker did not start
 */

/** The reason for which this browser cannot run a worker. */
export class WorkerError extends Error {}

export class AttackRun {
  /**
   * @param {() => Worker} makeWorker
   * @param {Order} order
   * @param {(message: Message) => void} hear
   */
  constructor(makeWorker, order, hear) {
    this.hear = hear;
    this.over = false;
    this.started = false;
    this.leaving = new AbortController();
    try {
      this.worker = makeWorker();
    } catch (error) {
      throw new WorkerError(error instanceof Error ? error.message : String(error));
    }
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = ({ message }) =>
      this.take({ kind: this.started ? 'failed' : 'refused', message: message || 'the worker did not start' });
    document.addEventListener('visibilitychange', () => this.pause(document.hidden), { signal: this.leaving.signal });
    this.worker.postMessage(order);
    if (document.hidden) this.pause(true);
  }

  /** @param {Message} message */
  take(message) {
    if (this.over) return;
    this.started = true;
    if (message.kind !== 'sent' && message.kind !== 'frame') this.stop();
    this.hear(message);
  }

  /** @param {boolean} on */
  pause(on) {
    if (!this.over) this.worker.postMessage({ pause: on });
  }

  /** End the worker; nothing more is heard of it. */
  stop() {
    this.over = true;
    this.leaving.abort();
    this.worker.terminate();
  }
}

/** @param {string} text of a script */
export const addressOf = (text) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
