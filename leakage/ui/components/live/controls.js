// The player's buttons, slider and keys: they move a player and show where it stands.
import { find } from '../dom.js';
import { Player } from './player.js';

export class Controls {
  /**
   * @param {HTMLElement} host holds the controls
   * @param {Omit<import('./player.js').Hooks, 'changed'>} hooks
   */
  constructor(host, hooks) {
    const player = new Player({ ...hooks, changed: () => this.paint() });
    this.player = player;
    const button = (/** @type {string} */ name) => /** @type {HTMLButtonElement} */ (find(host, `.gle-${name}`));
    this.play = button('play');
    this.back = button('back');
    this.forward = button('forward');
    this.live = button('live');
    this.slider = /** @type {HTMLInputElement} */ (find(host, '.gle-slider'));
    this.speed = /** @type {HTMLSelectElement} */ (find(host, '.gle-speed'));
    this.answer = find(host, '.gle-answer');
    this.now = find(host, '.gle-now');
    this.leaving = new AbortController();
    const { signal } = this.leaving;
    this.play.addEventListener('click', () => player.toggle(), { signal });
    this.back.addEventListener('click', () => player.back(), { signal });
    this.forward.addEventListener('click', () => player.forward(), { signal });
    this.live.addEventListener('click', () => player.result(), { signal });
    this.slider.addEventListener('input', () => player.seek(Number(this.slider.value)), { signal });
    this.speed.addEventListener('change', () => (player.speed = Number(this.speed.value)), { signal });
    this.paint();
  }

  /**
   * Space plays, arrows step, Home and End jump; a button or menu that has the focus keeps the keys that are its own.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const { player } = this;
    /** @type {Record<string, (() => void) | undefined>} */
    const moves = {
      ' ': () => player.toggle(),
      ArrowLeft: () => player.back(),
      ArrowRight: () => player.forward(),
      Home: () => player.home(),
      End: () => player.end(),
    };
    const move = moves[event.key];
    const target = /** @type {Element} */ (event.target);
    const own = target.matches('select') || (event.key === ' ' && target.matches('summary, button'));
    if (!move || own || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move();
  }

  /**
   * What the slider says to those who hear the page.
   * @param {string} words
   */
  say(words) {
    this.slider.setAttribute('aria-valuetext', words);
  }

  paint() {
    const { count, place, mode, running, answer } = this.player;
    const playing = mode === 'play';
    const top = Math.max(0, count - 1);
    if (this.slider.max !== String(top)) this.slider.max = String(top); // max first: a value beyond it would be cut
    this.slider.value = String(Math.max(0, place));
    this.slider.style.setProperty('--gle-part', String(count > 1 ? Math.max(0, place) / top : 0));
    this.slider.disabled = !count;
    for (const button of [this.play, this.back, this.forward]) button.disabled = count < 2;
    this.play.classList.toggle('gle-playing', playing);
    this.play.setAttribute('aria-label', playing ? 'Pause' : 'Play');
    find(this.live, 'span').textContent = running ? 'Live' : 'Result';
    this.live.disabled = !count;
    this.live.setAttribute('aria-pressed', String(running ? mode === 'follow' : mode === 'still' && place === answer));
    this.live.classList.toggle('gle-onair', running);
    this.answer.hidden = running || count < 2 || answer === top;
    this.answer.style.setProperty('--gle-part', String(count > 1 ? answer / top : 0));
  }

  destroy() {
    this.leaving.abort();
    this.player.destroy();
  }
}
