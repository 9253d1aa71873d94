// The projector view: the stage alone and enlarged. A class on the document says so, and the styles do the rest; nothing is drawn or computed anew.

const CLASS = 'gle-projecting';

export class Projector {
  /**
   * @param {HTMLElement} host the stage
   * @param {AbortSignal} signal ends it
   */
  constructor(host, signal) {
    this.host = host;
    const pressed = (/** @type {Event} */ { target }) => /** @type {Element | null} */ (target)?.closest?.('.gle-project');
    host.addEventListener('click', (event) => pressed(event) && this.set(!this.on), { signal });
    document.addEventListener('keydown', (event) => this.key(event), { signal });
    signal.addEventListener('abort', () => document.documentElement.classList.remove(CLASS));
  }

  get on() {
    return document.documentElement.classList.contains(CLASS);
  }

  /** @param {boolean} on */
  set(on) {
    document.documentElement.classList.toggle(CLASS, on);
    this.tell();
    this.host.scrollIntoView({ block: on ? 'start' : 'nearest' });
  }

  /** Every button says whether it is pressed; called again when runs have come. */
  tell() {
    this.host.querySelectorAll('.gle-project').forEach((button) => button.setAttribute('aria-pressed', String(this.on)));
  }

  /**
   * f shows it and takes it away, unless somebody writes; Escape takes it away.
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
    else return;
    event.preventDefault();
  }
}
