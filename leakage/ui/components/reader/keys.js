// The keys of a lesson: their names, which keys work in a presentation, and which are left to the focused element. No access to the page.
import { say } from './phrases.js';

/**
 * @typedef {import('./phrases.js').Phrase} Phrase
 * @typedef {{ keys: string[], does: Phrase, shown?: Phrase }} Key `shown`: what is printed on them, where that is not what they type
 */

/** @type {Record<string, Key>} */
export const READING = {
  next: { keys: ['ArrowRight', 'PageDown', ' ', 'n'], does: 'next' },
  back: { keys: ['ArrowLeft', 'PageUp', 'p'], does: 'back' },
  choose: { keys: ['1', '2', '3', '4'], does: 'keyChoose' },
  play: { keys: ['k'], does: 'keyPlay' },
  fill: { keys: ['f', 'F5'], does: 'keyFill' },
  help: { keys: ['?'], does: 'keyHelp' },
};

/** @type {Record<string, Key>} */
export const PRESENTING = {
  reveal: { keys: ['r'], does: 'keyReveal' },
  raise: { keys: [], shown: 'capRaise', does: 'keyRaise' },
  again: { keys: ['v'], does: 'keyAgain' },
  black: { keys: ['b', '.'], does: 'keyBlack' },
  speaker: { keys: ['s'], does: 'speaker' },
  room: { keys: ['o'], does: 'keyRoom' },
  jump: { keys: ['g'], does: 'keyJump' },
  address: { keys: ['q'], does: 'keyAddress' },
  leave: { keys: ['Escape'], does: 'leave' },
};

/** @type {Record<string, Phrase>} keys that are words on a keyboard */
const CAPS = { ' ': 'capSpace', PageDown: 'capPageDown', PageUp: 'capPageUp', Escape: 'capEscape' };
/** @type {Record<string, string>} */
const ARROWS = { ArrowRight: '→', ArrowLeft: '←' };

/**
 * What is printed on the keys.
 * @param {Key} key
 */
export const capsOf = ({ keys, shown }) => (shown ? [say(shown)] : keys.map((key) => (CAPS[key] ? say(CAPS[key]) : (ARROWS[key] ?? key))));

/**
 * What a key is for; empty where it is none of ours.
 * @param {KeyboardEvent} event
 */
export function nameOf(event) {
  if (optionOf(event) >= 0) return 'raise';
  const named = Object.entries({ ...READING, ...PRESENTING }).find(([, { keys }]) => keys.includes(event.key));
  return named?.[0] ?? '';
}

/**
 * The option that a hand is raised for: Shift with a digit, which types another sign on every keyboard.
 * @param {KeyboardEvent} event
 */
export const optionOf = ({ shiftKey, code }) => (shiftKey ? ['Digit1', 'Digit2', 'Digit3', 'Digit4'].indexOf(code) : -1);

/**
 * Whether a key belongs to the browser, or to what has the focus. While presenting, what was pressed
 * last keeps no key that turns the beats: Enter presses it too, and the arrows up and down choose.
 * @param {KeyboardEvent} event
 * @param {boolean} [presenting]
 */
export function isTaken({ key, target, altKey, ctrlKey, metaKey }, presenting = false) {
  const on = /** @type {Element | null} */ (target);
  if (altKey || ctrlKey || metaKey) return true;
  if (key === 'Escape' || (presenting && on?.closest?.('a, button, summary, input[type=radio], input[type=checkbox]'))) return false;
  if (on?.closest?.('input[type=radio]')) return key.startsWith('Arrow') || key === ' ';
  return Boolean(on?.closest?.('input, select, textarea, .gle-wide') || (key === ' ' && on?.closest?.('a, button, summary')));
}
