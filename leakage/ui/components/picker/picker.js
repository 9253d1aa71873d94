// The picker: a grid of pictures to put into the batch, in the order in which they are picked.
import { childrenOf, element, find } from '../dom.js';

/**
 * @typedef {{ id: string, title?: string, class_name?: string, alt?: string, thumb: string }} Item
 * @typedef {{ items?: Item[], selected?: string[], click?: number, limit?: number | null }} Data
 * @typedef {import('../stub.js').Send} Send
 */

/** @param {Item} item */
function makeButton(item) {
  const button = element('button', 'gle-pick');
  button.type = 'button';
  button.dataset.id = item.id;
  button.title = [item.title, item.class_name].filter(Boolean).join(', ');
  const image = element('img', '');
  Object.assign(image, { src: item.thumb, alt: item.alt ?? item.title ?? '', draggable: false });
  const badge = element('span', 'gle-pick-place');
  badge.setAttribute('aria-hidden', 'true'); // the place is part of the button's description instead
  button.append(image, element('span', 'gle-pick-title', item.title ?? item.id), badge);
  return button;
}

/**
 * The pictures picked after a press on `id`, or null where that would be more than `limit`. A limit of one works like a radio button.
 * @param {string[]} picked
 * @param {string} id
 * @param {number} limit
 */
export function toggled(picked, id, limit) {
  const next = picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id];
  if (next.length <= limit) return next;
  return limit > 1 ? null : next.slice(1);
}

/** @param {EventTarget | null} target */
const pickOf = (target) => /** @type {HTMLElement | null} */ (/** @type {Element | null} */ (target)?.closest('.gle-pick') ?? null);

export class Picker {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.grid = find(parent, '.gle-picker-grid');
    this.count = find(parent, '.gle-picker-count');
    /** @type {string[]} */
    this.picked = [];
    this.sent = 0; // the number of the newest click
    this.limit = Infinity;
    this.key = '';
    /** @type {Send} */
    this.send = () => {};
    this.leaving = new AbortController();
    const { signal } = this.leaving;
    this.grid.addEventListener('click', (event) => this.toggle(pickOf(event.target)?.dataset.id), { signal });
    this.grid.addEventListener('keydown', (event) => this.move(event), { signal });
    this.grid.addEventListener('focusin', (event) => this.rove(event.target), { signal });
  }

  get buttons() {
    return childrenOf(this.grid);
  }

  /**
   * Python says which click it has seen last; what it says is taken unless a newer click is still on its way.
   * @param {Data} data
   * @param {Send} send
   */
  update({ items = [], selected = [], click = 0, limit }, send) {
    this.send = send;
    this.limit = limit ?? Infinity;
    const key = JSON.stringify(items.map((item) => [item.id, item.title, item.thumb?.length]));
    if (key !== this.key) this.grid.replaceChildren(...items.map(makeButton));
    this.key = key;
    if (!(this.sent > click)) this.picked = [...selected];
    const known = new Set(items.map((item) => item.id));
    this.picked = this.picked.filter((id) => known.has(id));
    this.paint();
  }

  /** @param {string | undefined} id */
  toggle(id) {
    if (!id) return;
    const picked = toggled(this.picked, id, this.limit);
    if (!picked) {
      this.paint(`At most ${this.limit} pictures: take one out first.`);
      return;
    }
    this.picked = picked;
    this.sent = Date.now() + Math.random(); // grows with every click and survives a remount, as a counter would not
    this.paint();
    this.send('selected', { ids: picked, click: this.sent });
  }

  /**
   * Arrow keys walk the grid as it is laid out; Home and End go to its ends.
   * @param {KeyboardEvent} event
   */
  move(event) {
    const button = pickOf(event.target);
    const buttons = this.buttons;
    const here = button ? buttons.indexOf(button) : -1;
    const across = getComputedStyle(this.grid).gridTemplateColumns.split(' ').length;
    const ways = {
      ArrowLeft: here - 1,
      ArrowRight: here + 1,
      ArrowUp: here - across,
      ArrowDown: here + across,
      Home: 0,
      End: buttons.length - 1,
    };
    const target = /** @type {Record<string, number | undefined>} */ (ways)[event.key];
    if (here < 0 || target === undefined) return;
    event.preventDefault();
    buttons[target]?.focus();
  }

  /**
   * One tab stop for the whole grid: Tab leaves it, arrows walk in it.
   * @param {EventTarget | null | undefined} target
   */
  rove(target) {
    for (const button of this.buttons) button.tabIndex = button === target ? 0 : -1;
  }

  paint(message = '') {
    const full = this.picked.length >= this.limit && this.limit > 1;
    for (const button of this.buttons) {
      const place = this.picked.indexOf(button.dataset.id ?? '');
      button.setAttribute('aria-pressed', String(place >= 0));
      button.setAttribute('aria-disabled', String(full && place < 0));
      button.setAttribute('aria-description', place >= 0 ? `number ${place + 1} in the batch` : '');
      if (place >= 0) find(button, '.gle-pick-place').textContent = String(place + 1);
    }
    const stops = this.buttons.some((button) => button.tabIndex === 0 && button.hasAttribute('tabindex'));
    if (!stops) this.rove(this.grid.querySelector('[aria-pressed="true"]') ?? this.buttons[0]);
    const limit = Number.isFinite(this.limit) ? ` of at most ${this.limit}` : '';
    this.count.textContent = message || (this.picked.length ? `${this.picked.length}${limit} picked` : 'Pick at least one picture.');
  }

  destroy() {
    this.leaving.abort();
  }
}

/**
 * @param {HTMLElement} parent
 * @returns {import('../stub.js').Component}
 */
export const mount = (parent) => new Picker(parent);
