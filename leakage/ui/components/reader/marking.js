// The question of a beat: options to choose from, and, once the answer is shown, which option was right and why.
import { element } from '../dom.js';
import { say } from './phrases.js';
import { letter } from './walk.js';

/**
 * @typedef {import('./walk.js').Option} Option
 * @typedef {object} Asked
 * @property {Option[]} options
 * @property {number | undefined} chosen
 * @property {boolean} revealed
 * @property {number[][]} [votes] of a hall: one, or the one before and the one after; shown with the answer
 * @property {(option: number) => void} choose
 */

/**
 * The options as buttons. Before the answer is seen they only say which is chosen; afterwards each says what is right, and why.
 * @param {Asked} asked
 */
export function optionList({ options, chosen, revealed, votes = [], choose }) {
  const list = element('ol', 'gle-options');
  list.setAttribute('aria-label', say('question'));
  options.forEach((option, place) => {
    const item = element('li', '');
    const button = element('button', 'gle-option');
    button.type = 'button';
    button.setAttribute('aria-pressed', String(place === chosen));
    button.append(element('b', 'gle-letter', letter(place)), element('span', '', option.text));
    if (revealed) {
      item.dataset.mark = option.right ? 'right' : 'wrong';
      button.setAttribute('aria-disabled', 'true');
      button.append(element('em', '', markOf(option, place === chosen)));
      item.append(button, ...barsOfVotes(votes, place), element('p', 'gle-why', option.why));
    } else {
      if (place === chosen) button.append(element('em', '', say('yourGuess')));
      button.addEventListener('click', () => choose(place));
      item.append(button);
    }
    list.append(item);
  });
  return list;
}

/**
 * How many hands an option had, as parts of all that were raised; of two votes side by side.
 * @param {number[][]} votes
 * @param {number} option
 */
function barsOfVotes(votes, option) {
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
    vote.append(track, element('b', '', votes.length > 1 ? String(hands[option]) : say('hands', { n: hands[option] })));
    row.append(vote);
  });
  return [row];
}

/**
 * Before the answer the class sees only how many hands are up, so that students do not follow each other.
 * @param {number} count
 * @param {boolean} second whether it votes again
 */
export function raisedHands(count, second) {
  const words = [second ? say('discuss') : '', count ? say('hands', { n: count }) : ''].filter(Boolean).join(' ');
  return words ? [element('p', 'gle-raised', words)] : [];
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
