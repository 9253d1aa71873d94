// A question on a phone: open until the teacher shows the answer, then with the votes of the class and what came of the phone's own guess.
import { element } from '../dom.js';
import { optionList, outcomeOf } from '../reader/marking.js';
import { say } from '../reader/phrases.js';
import { letter } from '../reader/walk.js';
import { tell } from './room_phrases.js';
import { isAnswered } from './room_state.js';

/**
 * @typedef {import('./phone_room.js').PhoneRoom} PhoneRoom
 * @typedef {object} Question how a question stands
 * @property {import('../reader/walk.js').Option[]} options
 * @property {boolean} here the class is at it
 * @property {boolean} open it can be answered now
 * @property {boolean} revealed
 * @property {number | undefined} chosen
 * @property {number | undefined} first while the class votes again: what this phone chose before
 * @property {boolean} second the class votes again
 * @property {(number[] | null)[]} bars of the first and the second vote; null: fewer than five voted
 */

/**
 * How the question at a place stands; null where there is none.
 * @param {PhoneRoom} room
 * @param {number} place counted from 0
 * @returns {Question | null}
 */
export function questionAt({ state, lesson, answers, bars, closed }, place) {
  const options = lesson?.beats[place]?.options;
  if (!options || !state) return null;
  const beat = place + 1;
  const vote = state.beat === beat ? state.vote : null;
  const second = Boolean(vote?.second);
  const first = vote && second ? answers.option(beat, vote.round - 1) : undefined;
  const revealed = isAnswered(options) && (vote?.revealed ?? true);
  const chosen = vote ? answers.option(beat, vote.round) : answers.latest(beat);
  return {
    options,
    here: vote !== null,
    open: Boolean(vote && !vote.revealed && !closed),
    revealed,
    chosen: revealed ? (chosen ?? first) : chosen,
    ...{ first, second, bars: bars.get(beat) ?? [] },
  };
}

/**
 * What came of the phone's guess at a question whose answer is shown.
 * @param {Question | null} question
 */
export function outcome(question) {
  if (!question?.revealed) return [];
  const { options, chosen } = question;
  if (chosen === undefined) return [element('p', 'gle-note', tell('noGuess'))];
  return [outcomeOf({ options, chosen, right: options.findIndex(({ right }) => right) })];
}

/**
 * The options, and what there is to say about them.
 * @param {Question} question
 * @param {(option: number) => void} choose
 */
export function questionParts({ options, here, open, revealed, chosen, first, second, bars }, choose) {
  /** @type {HTMLElement[]} */
  const parts = [];
  if (open && second) parts.push(element('p', 'gle-again', say('discuss')));
  if (open && first !== undefined) parts.push(element('p', 'gle-soft', tell('firstGuess', { letter: letter(first) })));
  const votes = bars.filter((one) => one !== null);
  const votesWords = (/** @type {number} */ n) => (n === 1 ? tell('vote') : tell('votes', { n }));
  const list = optionList({ options, chosen, revealed, votes, votesWords, choose: open ? choose : () => {} });
  if (!open) list.querySelectorAll('button').forEach((button) => button.setAttribute('aria-disabled', 'true'));
  parts.push(list);
  if (!here && !revealed) parts.push(element('p', 'gle-soft', tell('notOpen')));
  if (revealed && bars.length && !votes.length) parts.push(element('p', 'gle-soft', tell('fewVotes')));
  return parts;
}

/**
 * How many have answered the question at a place; empty where the class is elsewhere.
 * @param {PhoneRoom} room
 * @param {number} place counted from 0
 */
export const countWords = ({ state }, place) =>
  state?.vote && state.beat === place + 1 ? tell('answered', { n: state.vote.count, all: state.phones }) : '';
