// The index: twelve lessons as cards, each with a picture, its minutes, its question, and the reader's progress.
import { element } from '../dom.js';
import { forget, readKept } from './kept.js';
import { say } from './phrases.js';
import { link } from './source.js';

/** @typedef {{ id: string, title: string, minutes: number, beats: number, question: string, takeaway: string, thumbnail: boolean }} Entry */
/** @typedef {import('./source.js').Source} Source */

/**
 * How far a lesson was read, in words; empty where it was not begun.
 * @param {Entry} entry
 * @param {Partial<import('./walk.js').Kept> | undefined} kept
 */
export function progressOf({ beats }, kept) {
  const furthest = Number(kept?.furthest);
  if (!Number.isInteger(furthest) || (furthest < 1 && !Object.keys(kept?.guesses ?? {}).length)) return '';
  return furthest >= beats - 1 ? `✓ ${say('done')}` : say('goOn', { at: Math.min(furthest, beats - 1) + 1, n: beats });
}

/**
 * @param {Entry} entry
 * @param {Source} source
 * @param {Partial<import('./walk.js').Kept> | undefined} kept
 */
function card(entry, source, kept) {
  const link = element('a', 'gle-card');
  link.href = `#${entry.id}`;
  const picture = element('span', 'gle-thumbnail');
  if (entry.thumbnail) {
    const image = element('img', '');
    Object.assign(image, {
      src: source.picture('thumbnails', entry.id),
      alt: '',
      width: 160,
      height: 80,
      loading: 'lazy',
      decoding: 'async',
    });
    picture.append(image);
  }
  const words = element('span', 'gle-card-words');
  const progress = progressOf(entry, kept);
  const foot = element('span', 'gle-card-foot', say('minutes', { n: entry.minutes }));
  if (progress) foot.append(' · ', element('b', '', progress));
  words.append(
    element('small', '', `${Number(entry.id.slice(0, 2))}`),
    element('strong', '', entry.title),
    element('span', 'gle-question', entry.question),
    foot,
  );
  link.append(picture, words);
  const item = element('li', '');
  item.append(link);
  return item;
}

export class Shelf {
  /**
   * @param {Entry[]} entries
   * @param {Source} source
   * @param {string} note
   * @param {'h1' | 'h2'} heading the second where the front door stands above it
   */
  constructor(entries, source, note = '', heading = 'h1') {
    this.heading = heading;
    this.root = element('section', 'gle-shelf');
    const kept = readKept();
    const list = element('ol', 'gle-cards');
    list.append(...entries.map((entry) => card(entry, source, kept[entry.id])));
    if (note) this.root.append(element('p', 'gle-note', note));
    const teach = element('p', 'gle-teach');
    teach.append(link(source.handout('index'), say('teach')));
    this.root.append(
      element(heading, '', say('lessons')),
      element('p', 'gle-lead', say('about')),
      list,
      teach,
      this.privacy(entries, source),
    );
  }

  /**
   * @param {Entry[]} entries
   * @param {Source} source
   */
  privacy(entries, source) {
    const words = element('p', 'gle-soft', `${say('privacy')} `);
    const press = element('button', 'gle-quiet', say('forget'));
    press.type = 'button';
    press.addEventListener('click', () => {
      forget();
      const fresh = new Shelf(entries, source, '', this.heading);
      this.root.replaceWith(fresh.root);
      this.root = fresh.root;
      this.root.querySelector('button')?.focus();
    });
    words.append(press);
    return words;
  }

  destroy() {
    this.root.remove();
  }
}
