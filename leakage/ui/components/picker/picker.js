// The picker: a grid of pictures. A press takes that picture alone; its + adds it to the batch, its − takes it out.
import { childrenOf, element, find } from '../dom.js';

/**
 * @typedef {{ id: string, title?: string, class_name?: string, alt?: string, thumb: string }} Item
 * @typedef {{ items?: Item[], selected?: string[], click?: number, limit?: number | null }} Data
 * @typedef {import('../stub.js').Send} Send
 */

/** @param {Item} item */
function makeCard(item) {
  const card = element('div', 'gle-card');
  const button = element('button', 'gle-pick');
  button.dataset.id = item.id;
  button.title = [item.title, item.class_name].filter(Boolean).join(', ');
  const image = element('img', '');
  Object.assign(image, { src: item.thumb, alt: item.alt ?? item.title ?? '', draggable: false });
  const badge = element('span', 'gle-pick-place');
  badge.setAttribute('aria-hidden', 'true'); // the place is part of the button's description instead
  button.append(image, element('span', 'gle-pick-title', item.title ?? item.id), badge);
  const add = element('button', 'gle-add');
  button.type = add.type = 'button';
  card.append(button, add);
  return card;
}

/**
 * The pictures picked after `id` was added to them, or taken out where it was among them; null where that would be none, or more than
 * `limit`.
 * @param {string[]} picked
 * @param {string} id
 * @param {number} limit
 */
export function toggled(picked, id, limit) {
  const next = picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id];
  return next.length && next.length <= limit ? next : null;
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
    this.grid.addEventListener('click', (event) => this.press(event), { signal });
    this.grid.addEventListener('keydown', (event) => this.move(event), { signal });
    this.grid.addEventListener('focusin', (event) => this.rove(event.target), { signal });
  }

  get buttons() {
    return childrenOf(this.grid).map((card) => /** @type {HTMLElement} */ (card.firstElementChild));
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
    if (key !== this.key) this.grid.replaceChildren(...items.map(makeCard));
    this.key = key;
    if (!(this.sent > click)) this.picked = [...selected];
    const known = new Set(items.map((item) => item.id));
    this.picked = this.picked.filter((id) => known.has(id));
    this.paint();
  }

  /** @param {MouseEvent} event */
  press(event) {
    const add = /** @type {Element} */ (event.target).closest('.gle-add');
    const id = pickOf(add?.previousElementSibling ?? event.target)?.dataset.id;
    if (!id) return;
    const adds = add || event.ctrlKey || event.metaKey || event.shiftKey;
    const picked = adds ? toggled(this.picked, id, this.limit) : [id];
    if (picked) this.take(picked);
    else this.paint(this.picked.includes(id) ? 'One picture stays.' : `At most ${this.limit} pictures: take one out first.`);
  }

  /** @param {string[]} picked */
  take(picked) {
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
   * One picture for Tab, with its + or −: Tab leaves the grid behind them, arrows walk in it.
   * @param {EventTarget | null | undefined} target
   */
  rove(target) {
    const here = /** @type {Element | null | undefined} */ (target)?.parentElement;
    for (const card of childrenOf(this.grid)) for (const one of childrenOf(card)) one.tabIndex = card === here ? 0 : -1;
  }

  paint(message = '') {
    const full = this.picked.length >= this.limit;
    for (const button of this.buttons) {
      const place = this.picked.indexOf(button.dataset.id ?? '');
      const add = /** @type {HTMLElement} */ (button.nextElementSibling);
      const title = find(button, '.gle-pick-title').textContent;
      const words = place < 0 ? `Add ${title} to the batch` : `Take ${title} out of the batch`;
      button.setAttribute('aria-pressed', String(place >= 0));
      button.setAttribute('aria-description', place >= 0 ? `number ${place + 1} in the batch` : '');
      if (place >= 0) find(button, '.gle-pick-place').textContent = String(place + 1);
      add.textContent = place < 0 ? '+' : '−';
      add.title = words;
      add.setAttribute('aria-label', words);
      add.setAttribute('aria-disabled', String(full && place < 0));
      add.hidden = place >= 0 && this.picked.length === 1; // the last one stays
    }
    const stops = this.buttons.some((button) => button.tabIndex === 0 && button.hasAttribute('tabindex'));
    if (!stops) this.rove(this.grid.querySelector('[aria-pressed="true"]') ?? this.buttons[0]);
    const { length } = this.picked;
    this.count.textContent = message || (length > 1 ? `${length} pictures in the batch` : 'Press + on a picture to add it to the batch.');
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
