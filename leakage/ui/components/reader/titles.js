// What each kind of beat is called.
import { say } from './phrases.js';

const TITLES = /** @type {const} */ ({
  text: 'idea',
  play: 'watch',
  guess: 'guess',
  reveal: 'answer',
  try: 'try',
  figure: 'figure',
  takeaway: 'takeaway',
});

/**
 * The title of a beat; words that do not begin a lesson are its background.
 * @param {string} kind
 * @param {number} place
 */
export const titleOf = (kind, place) => say(kind === 'text' && place ? 'background' : TITLES[/** @type {keyof typeof TITLES} */ (kind)]);
