// Twelve stories as cards: the private picture beside its reconstruction, a few words, and links to a lesson and to the Lab.
import { element } from '../dom.js';
import { say } from './phrases.js';

const FLASK =
  '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M9.5 3h5M10.5 3v6.5L5 19a1.4 1.4 0 0 0 1.2 2h11.6A1.4 1.4 0 0 0 19 19l-5.5-9.5V3M7.6 15h8.8"/></svg>';

/** @typedef {{ title: string, line: string, href: string, lab: string | null, thumbnail: string }} Story */

/**
 * @param {Story} story
 * @param {string} note on its link to the Lab
 */
function card({ title, line, href, lab, thumbnail }, note) {
  const item = element('li', 'gle-story');
  const link = element('a', 'gle-story-link');
  link.href = href;
  const image = element('img', '');
  Object.assign(image, { src: thumbnail, alt: '', width: 128, height: 64, loading: 'lazy', decoding: 'async' });
  const words = element('span', 'gle-story-words');
  words.append(element('strong', '', title), element('span', '', line));
  link.append(image, words);
  item.append(link);
  if (!lab) return item;
  const corner = element('a', 'gle-story-lab');
  corner.href = lab;
  corner.innerHTML = FLASK;
  corner.title = say('openLab') + note;
  corner.setAttribute('aria-label', say('storyLab', { title }) + note);
  item.append(corner);
  return item;
}

/**
 * @param {Story[]} stories
 * @param {string} [note]
 */
export function storyList(stories, note = '') {
  const list = element('ol', 'gle-stories');
  list.append(...stories.map((story) => card(story, note)));
  return list;
}
