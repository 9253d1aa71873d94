// The row of dots: one link for every beat of a lesson; those behind an open question are no links yet.
import { element } from '../dom.js';
import { say } from './phrases.js';

/**
 * @param {import('./walk.js').Walk} walk
 * @param {(kind: string, place: number) => string} titleOf
 * @param {(place: number) => string} hash the address of a beat
 */
export function dotsOf(walk, titleOf, hash) {
  return walk.beats.map(({ kind }, place) => {
    const link = element('a', 'gle-dot');
    const title = titleOf(kind, place);
    link.setAttribute('aria-label', `${say('beatsOf', { at: place + 1, n: walk.beats.length })}: ${title}`);
    link.title = title;
    link.dataset.kind = kind;
    link.dataset.read = String(place <= walk.furthest);
    link.append(element('i', ''));
    if (place === walk.place) link.setAttribute('aria-current', 'step');
    if (place <= walk.gate) link.href = hash(place);
    else {
      link.setAttribute('role', 'link');
      link.setAttribute('aria-disabled', 'true');
    }
    return link;
  });
}

/**
 * @param {string} className
 * @param {string} words
 * @param {() => void} press
 */
export function button(className, words, press) {
  const made = element('button', className, words);
  made.type = 'button';
  made.addEventListener('click', press);
  return made;
}
