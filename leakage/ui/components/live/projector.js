// The projector view: the stage alone and enlarged, walked with the keys of a lesson. A class on the document says so, and the styles do the
// rest; nothing is drawn or computed anew.

import { element } from '../dom.js';

const CLASS = 'gle-projecting';
/** @typedef {import('./controls.js').Controls} Controls */
/** @type {Record<string, (controls: Controls) => void>} as in a lesson: see reader/keys.js */
const MOVES = {
  ...Object.fromEntries(['ArrowRight', 'PageDown', ' ', 'n'].map((key) => [key, ({ player }) => player.forward()])),
  ...Object.fromEntries(['ArrowLeft', 'PageUp', 'p'].map((key) => [key, ({ player }) => player.back()])),
  k: ({ player }) => player.toggle(),
};
const BLACK = ['b', '.'];

export class Projector {
  /**
   * @param {HTMLElement} host the stage
   * @param {AbortSignal} signal ends it
   * @param {() => Controls[]} controls of the runs shown, or of all together
   */
  constructor(host, signal, controls = () => []) {
    this.host = host;
    this.controls = controls;
    this.black = element('div', 'gle-projector-black');
    this.black.hidden = true;
    document.body.append(this.black);
    const pressed = (/** @type {Event} */ { target }) => /** @type {Element | null} */ (target)?.closest?.('.gle-project');
    host.addEventListener('click', (event) => pressed(event) && this.set(!this.on), { signal });
    document.addEventListener('keydown', (event) => this.key(event), { signal, capture: true }); // before the stage's own keys
    signal.addEventListener('abort', () => {
      document.documentElement.classList.remove(CLASS);
      this.black.remove();
    });
  }

  get on() {
    return document.documentElement.classList.contains(CLASS);
  }

  /** @param {boolean} on */
  set(on) {
    document.documentElement.classList.toggle(CLASS, on);
    this.black.hidden = true;
    if (on) /** @type {HTMLElement | null} */ (document.activeElement)?.blur(); // else Space would press the button once more
    this.tell();
    this.host.scrollIntoView({ block: on ? 'start' : 'nearest' });
  }

  /** Every button says whether it is pressed; called again when runs have come. */
  tell() {
    this.host.querySelectorAll('.gle-project').forEach((button) => button.setAttribute('aria-pressed', String(this.on)));
  }

  /**
   * f shows it and takes it away, unless somebody writes; Escape takes it away; while it is shown, the keys of a lesson move what plays.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    if (event.defaultPrevented || altKey || ctrlKey || metaKey) return;
    const writes = /** @type {Element | null} */ (target)?.closest?.(
      'input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]',
    );
    if (key === 'f' && !writes) this.set(!this.on);
    else if (key === 'Escape' && this.on) this.set(false);
    else if (this.on && !writes && BLACK.includes(key)) this.black.hidden = !this.black.hidden;
    else if (this.on && !writes && MOVES[key]) this.controls().forEach(MOVES[key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
