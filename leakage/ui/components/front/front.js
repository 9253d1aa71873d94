// The front door as a component of the Lab, whose settings stand below it on the same page.
import { find } from '../dom.js';
import { Door } from '../reader/door.js';

/** @typedef {import('../reader/door.js').DoorData & { settings?: string }} Data `settings`: finds them on the page */

export class Front {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.host = find(parent, '.gle-door');
    this.key = '';
    /** @type {Door | null} */
    this.door = null;
    this.settings = '';
    this.leaving = new AbortController();
    const how = { signal: this.leaving.signal, capture: true }; // some menus let no press through
    for (const kind of ['pointerdown', 'keydown']) document.addEventListener(kind, (event) => this.hear(event), how);
  }

  /**
   * Continue without a guess if the visitor turns to the settings.
   * @param {Event} event
   */
  hear(event) {
    if (/** @type {KeyboardEvent} */ (event).key === 'Tab') return;
    const column = this.settings && document.querySelector(this.settings)?.closest('.stColumn');
    if (column && column.contains(/** @type {Node} */ (event.target))) this.door?.goOn();
  }

  /**
   * The same door stays as it is.
   * @param {object} data
   */
  update(data) {
    const key = JSON.stringify(data);
    if (key === this.key) return;
    this.key = key;
    this.door?.destroy();
    const { settings = '', ...door } = /** @type {Data} */ (data);
    this.settings = settings;
    this.door = new Door(this.host, door);
  }

  destroy() {
    this.leaving.abort();
    this.door?.destroy();
  }
}

/**
 * @param {HTMLElement} parent
 * @returns {import('../stub.js').Component}
 */
export const mount = (parent) => new Front(parent);
