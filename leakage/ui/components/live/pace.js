// How long a run will still take, by its own pace, and how long it will still wait: counted down between what the server tells.
import { isFinal } from './record.js';
import { duration, isNumber } from './words.js';

const ENOUGH = 1; // seconds of a run that say how fast it is
const SECOND = 1000; // milliseconds
const RECENT = 10; // seconds: its pace is that of so many, for others may come to share the machine, or leave

/**
 * Seconds until the last step, at the pace of the last ones; null where nothing is known yet, or no number of steps is planned.
 * @param {Pick<import('./record.js').RunRecord, 'frames' | 'meta'>} record
 */
export function secondsLeft({ frames, meta }) {
  const steps = meta?.steps;
  const last = frames[frames.length - 1];
  if (!isNumber(steps) || !last || last.step >= steps || last.seconds < ENOUGH) return null;
  const start = { step: 0, seconds: 0 };
  const before = frames.filter((frame) => frame.seconds <= last.seconds - RECENT).at(-1) ?? start;
  const { step, seconds } = last.step > before.step ? before : start;
  return last.step > step ? ((last.seconds - seconds) / (last.step - step)) * (steps - last.step) : null;
}

/**
 * How long it took, will take or will wait. `passed`: milliseconds since the server told something.
 * @param {Pick<import('./record.js').RunRecord, 'frames' | 'meta' | 'state' | 'end'>} record
 * @param {number} passed
 */
export function timeWords(record, passed) {
  const { frames, meta, state, end } = record;
  if (end) return duration(frames[frames.length - 1]?.seconds);
  const left = state.status === 'queued' ? state.wait : secondsLeft(record);
  if (isNumber(left)) {
    const about = `about ${duration(Math.max(1, Math.round(left - passed / 1000))).replace('.0', '')}`;
    return state.status === 'queued' ? `begins in ${about}` : `${about} left`;
  }
  return isNumber(meta?.estimate) ? `about ${duration(meta.estimate)}` : '';
}

export class Countdown {
  /** @param {(words: string) => void} show is called whenever the words may be others, and every second while a run is not over */
  constructor(show) {
    this.show = show;
    this.heardAt = 0; // on the page's clock
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** Something has been told. */
  hear() {
    this.heardAt = performance.now();
  }

  /** @param {import('./record.js').RunRecord} record */
  tell(record) {
    clearTimeout(this.timer);
    const words = timeWords(record, performance.now() - this.heardAt);
    this.show(words);
    if (words && !isFinal(record)) this.timer = setTimeout(() => this.tell(record), SECOND);
  }

  destroy() {
    clearTimeout(this.timer);
  }
}
