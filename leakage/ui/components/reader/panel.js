// A dialog over the page: what the keys do, the lesson's address in large type, or the list of beats.
import { element } from '../dom.js';
import { button } from './dots.js';
import { capsOf, PRESENTING, READING } from './keys.js';
import { say } from './phrases.js';

const LOCAL = ['localhost', '127.0.0.1', '[::1]'];

export class Panel {
  constructor() {
    this.root = element('dialog', 'gle-panel');
    this.shows = ''; // the name of the key that opened it
    this.root.addEventListener('close', () => (this.shows = ''));
    document.body.append(this.root);
  }

  /**
   * @param {string} name of the key that opens it, and closes it again
   * @param {string} title
   * @param {HTMLElement[]} parts
   * @param {string} [leave] the words of the button that closes it
   */
  show(name, title, parts, leave = say('close')) {
    const heading = element('h2', '', title);
    heading.id = 'gle-panel-title';
    this.root.setAttribute('aria-labelledby', heading.id);
    this.root.dataset.shows = name;
    this.root.replaceChildren(
      heading,
      ...parts,
      button('gle-quiet', leave, () => this.close()),
    );
    if (!this.root.open) this.root.showModal();
    this.shows = name;
  }

  close() {
    this.root.close();
  }

  destroy() {
    this.root.remove();
  }
}

/**
 * Two lists of keys: for every reader, and for a presentation.
 * @param {Record<string, () => void>} acts what a presentation can do here: only some pages have rooms
 */
export function keyList(acts) {
  const box = element('div', 'gle-keys');
  for (const [title, keys] of /** @type {const} */ ([
    [say('keysAlways'), READING],
    [say('keysPresenting'), PRESENTING],
  ])) {
    // prettier-ignore
    const list = element('dl', '');
    for (const [name, key] of Object.entries(keys)) {
      if (name === 'room' && !acts[name]) continue;
      const row = element('div', '');
      const caps = element('dt', '');
      caps.append(...capsOf(key).flatMap((cap) => [element('kbd', '', cap), ' ']));
      row.append(caps, element('dd', '', say(key.does)));
      list.append(row);
    }
    const side = element('section', '');
    side.append(element('h3', '', title), list);
    if (keys === PRESENTING) side.append(element('p', 'gle-keys-focus', say('keysFocus')));
    box.append(side);
  }
  return box;
}

/**
 * An address to be read from the last row: without its scheme, and broken where it may be.
 * @param {URL} address
 */
export function largeAddress({ host, hostname, pathname, hash }) {
  const words = element('p', 'gle-address');
  for (const part of `${host}${pathname}${hash}`.split(/(?=[/#])/)) words.append(part, element('wbr', ''));
  return LOCAL.includes(hostname) ? [words, element('p', 'gle-note', say('addressLocal'))] : [words];
}

/**
 * All beats, to go to one by its number or a press.
 * @param {import('./lesson.js').LessonView} view
 * @param {(place: number) => void} go
 */
export function beatList(view, go) {
  const list = element('ol', 'gle-beats');
  view.lesson.beats.forEach(({ kind, text }, place) => {
    const item = element('li', '');
    const press = button('gle-quiet', '', () => go(place));
    press.append(element('b', '', String(place + 1)), element('span', '', `${view.titleOf(kind, place)}: ${text}`));
    if (place === view.place) {
      press.setAttribute('aria-current', 'step');
      press.autofocus = true;
    }
    item.append(press);
    list.append(item);
  });
  return list;
}
