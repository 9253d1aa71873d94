// The player: which of the kept pictures is shown, and when the next one comes. Knows no page; its buttons are in controls.js.
import { clamp } from './words.js';

const LAPSE = 8000; // milliseconds a finished run plays for
const FASTEST = 33; // milliseconds per picture at normal speed
const SLOWEST = 400;

/**
 * @typedef {'follow' | 'play' | 'still'} Mode "follow" the newest picture, "play" a time lapse, or stand "still"
 * @typedef {object} Hooks
 * @property {(place: number) => void} show draws a picture
 * @property {(place: number) => boolean} ready says whether it can be drawn at once, and asks for it if not
 * @property {() => void} settled is called when somebody has come to rest on a picture
 * @property {() => void} [changed] is called whenever anything below has changed
 */

export class Player {
  /** @param {Hooks} hooks */
  constructor({ show, ready, settled, changed = () => {} }) {
    this.show = show;
    this.ready = ready;
    this.settled = settled;
    this.changed = changed;
    this.speed = 1;
    this.pause = 0; // milliseconds per picture where each is read; 0: by how many there are
    this.count = 0;
    this.place = -1;
    this.answer = -1;
    this.running = true;
    /** @type {Mode} */
    this.mode = 'follow';
    this.last = 0;
    this.timer = 0;
  }

  reset() {
    Object.assign(this, { count: 0, place: -1, answer: -1, running: true, mode: 'follow' });
    this.changed();
  }

  /**
   * There are `count` pictures now; the one shown stands at `place`, and the attack's answer at `answer`.
   * @param {{ count: number, place: number, answer: number, running: boolean }} now
   */
  update({ count, place, answer, running }) {
    Object.assign(this, { count, answer, running, place: Math.min(place, count - 1) });
    if (!running && this.mode === 'follow' && place === answer) this.mode = 'still';
    this.changed();
  }

  /**
   * @param {number} place
   * @param {Mode} [mode]
   */
  seek(place, mode = 'still') {
    if (!this.count) return;
    const wasPlaying = this.mode === 'play';
    this.mode = mode;
    this.place = clamp(place, 0, this.count - 1);
    this.show(this.place);
    this.changed();
    if (mode === 'still' || wasPlaying) this.settled();
  }

  follow() {
    this.seek(this.count - 1, 'follow');
  }

  back() {
    this.seek(this.place - 1);
  }

  forward() {
    this.seek(this.place + 1);
  }

  home() {
    this.seek(0);
  }

  /** The newest picture, and those to come while there are more. */
  end() {
    if (this.running) this.follow();
    else this.seek(this.count - 1);
  }

  /** The newest picture while the run goes on, its answer afterwards. */
  result() {
    if (this.running) this.follow();
    else this.seek(this.answer);
  }

  toggle() {
    if (this.mode === 'play') this.seek(this.place);
    else this.play(this.place >= this.count - 1 || (!this.running && this.place === this.answer) ? 0 : this.place);
  }

  /** @param {number} from */
  play(from) {
    if (this.count < 2) return;
    this.seek(from, 'play');
    this.last = performance.now();
    cancelAnimationFrame(this.timer);
    this.timer = requestAnimationFrame((now) => this.tick(now));
  }

  /** @param {number} now */
  tick(now) {
    if (this.mode !== 'play') return;
    const pause = (this.pause || clamp(LAPSE / this.count, FASTEST, SLOWEST)) / this.speed;
    const steps = Math.floor((now - this.last) / pause);
    const next = Math.min(this.place + clamp(steps, 0, 3), this.count - 1);
    if (steps > 0 && next === this.place) {
      this.result();
      return;
    }
    if (steps > 0 && this.ready(next)) {
      this.last = Math.max(this.last + steps * pause, now - pause); // what an animation frame rounds off is not lost
      this.seek(next, 'play');
    }
    this.timer = requestAnimationFrame((later) => this.tick(later));
  }

  destroy() {
    cancelAnimationFrame(this.timer);
    this.mode = 'still';
  }
}
