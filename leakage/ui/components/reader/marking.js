// The question of a beat: options to choose from, and, once the answer is shown, which option was right and why.
import { element } from '../dom.js';
import { button } from './dots.js';
import { say } from './phrases.js';
import { letter } from './walk.js';

/**
 * @typedef {import('./walk.js').Option} Option
 * @typedef {object} Asked
 * @property {Option[]} options
 * @property {number | undefined} chosen
 * @property {boolean} revealed
 * @property {number[][]} [votes] of a hall: one, or the one before and the one after; shown with the answer
 * @property {(votes: number) => string} [votesWords] how many voted for an option, where there is one vote
 * @property {(option: number) => void} choose
 */

/**
 * The options as buttons. Before the answer is seen they only say which is chosen; afterwards each says what is right, and why.
 * @param {Asked} asked
 */
export function optionList({ options, chosen, revealed, votes = [], votesWords = String, choose }) {
  const list = element('ol', 'gle-options');
  list.setAttribute('aria-label', say('question'));
  options.forEach((option, place) => {
    const item = element('li', '');
    const press = element('button', 'gle-option');
    press.type = 'button';
    press.setAttribute('aria-pressed', String(place === chosen));
    press.append(element('b', 'gle-letter', letter(place)), element('span', '', option.text));
    if (revealed) {
      item.dataset.mark = option.right ? 'right' : 'wrong';
      press.setAttribute('aria-disabled', 'true');
      press.append(element('em', '', markOf(option, place === chosen)));
      item.append(press, ...barsOfVotes(votes, place, votesWords), element('p', 'gle-why', option.why));
    } else {
      if (place === chosen) press.append(element('em', '', say('yourGuess')));
      press.addEventListener('click', () => choose(place));
      item.append(press);
    }
    list.append(item);
  });
  return list;
}

/**
 * How many votes an option had, as parts of all; of two votes side by side.
 * @param {number[][]} votes
 * @param {number} option
 * @param {(votes: number) => string} words
 */
function barsOfVotes(votes, option, words) {
  if (!votes.length) return [];
  const row = element('p', 'gle-votes');
  votes.forEach((hands, round) => {
    const all = hands.reduce((sum, one) => sum + one, 0);
    const vote = element('span', 'gle-vote');
    const track = element('span', 'gle-bar-track');
    const bar = element('i', '');
    bar.style.width = `${(100 * hands[option]) / all}%`;
    track.append(bar);
    if (votes.length > 1) vote.append(element('small', '', say(round ? 'voteAfter' : 'voteBefore')));
    vote.append(track, element('b', '', votes.length > 1 ? String(hands[option]) : words(hands[option])));
    row.append(vote);
  });
  return [row];
}

/**
 * What a class reads below the options: how many have voted.
 * @param {string} words
 */
export const raisedHands = (words) => (words ? [element('p', 'gle-raised', words)] : []);

/**
 * What the teacher of a class with phones may press at a question outside a presentation, each with its key.
 * @param {{ revealed: boolean, reveal: () => void, again: () => void }} how
 */
export function voteActs({ revealed, reveal, again }) {
  const row = element('p', 'gle-vote-acts');
  row.append(
    button('gle-quiet', `${say(revealed ? 'hideAnswer' : 'showAnswer')} (r)`, reveal),
    button('gle-quiet', `${say('keyAgain')} (v)`, again),
  );
  return row;
}

/**
 * In words and a sign, not by colour alone.
 * @param {Option} option
 * @param {boolean} mine
 */
function markOf({ right }, mine) {
  const sign = right ? `✓ ${say('rightAnswer')}` : mine ? `✗ ${say('wrong')}` : '';
  return [mine ? say('yourGuess') : '', sign].filter(Boolean).join(' · ');
}

/**
 * What came of the guess, above the beat that answers it.
 * @param {{ options: Option[], chosen: number, right: number }} outcome
 */
export function outcomeOf({ options, chosen, right }) {
  const hit = chosen === right;
  const made = element('div', 'gle-outcome');
  made.dataset.mark = hit ? 'right' : 'wrong';
  const words = hit ? `✓ ${say('guessedRight')}` : `✗ ${say('guessedWrong', { letter: letter(chosen), right: letter(right) })}`;
  made.append(
    element('p', 'gle-outcome-head', words),
    element('p', '', `${letter(chosen)}: ${options[chosen].text} ${options[chosen].why}`),
  );
  if (!hit) made.append(element('p', '', `${letter(right)}: ${options[right].text} ${options[right].why}`));
  return made;
}
