// The place on a page where a visitor attacks a picture of their own. What it needs is one script, loaded when it is asked for.
import { element, prefersCalm } from '../dom.js';
import { say } from './phrases.js';
import { load } from './source.js';

/** @typedef {import('../own/own_picture.js').OwnPicture} OwnPicture */

/** @type {Map<string, Promise<void>>} */
const loading = new Map();

export class OwnPlace {
  /**
   * @param {string} address of the script
   * @param {import('./source.js').Source['lab']} lab
   */
  constructor(address, lab) {
    this.address = address;
    this.lab = lab;
    this.root = element('div', 'gle-own-place');
    this.gone = false;
    /** @type {OwnPicture | null} */
    this.own = null;
  }

  /**
   * Open it with these settings, or give these settings to what is open.
   * @param {object} begin
   */
  async open(begin) {
    const { address } = this;
    try {
      if (!loading.has(address)) loading.set(address, load(address));
      await loading.get(address);
    } catch {
      loading.delete(address);
      const note = element('p', 'gle-note', say('ownFailed'));
      note.setAttribute('role', 'alert');
      this.root.replaceChildren(note);
      note.scrollIntoView({ block: 'nearest' });
      return;
    }
    if (this.gone) return;
    const { gleOwn } = /** @type {any} */ (globalThis);
    if (this.own) this.own.use(begin);
    else {
      this.own = /** @type {OwnPicture} */ (new gleOwn.OwnPicture(gleOwn, { lab: this.lab, begin }));
      this.root.replaceChildren(this.own.root);
    }
    this.own.root.scrollIntoView({ behavior: prefersCalm() ? 'instant' : 'smooth', block: 'start' });
    this.own.input.focus({ preventScroll: true });
  }

  destroy() {
    this.gone = true;
    this.own?.destroy();
    this.root.remove();
  }
}
