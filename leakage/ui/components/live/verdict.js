// The verdict on the run, or, where somebody looks back, on the frame they see.
import { find } from '../dom.js';
import { FINAL, isAnswer } from './record.js';
import { CUT_SHORT, INAPPLICABLE, NOT_SHOWN, REFUSED } from './words.js';

/**
 * @typedef {import('./record.js').Frame} Frame
 * @typedef {import('./record.js').RunRecord} RunRecord
 */

const NO_REASON = 'The worker gave no reason. Try again with the same settings.';
const UNTRIED =
  'This attack cannot work with these settings, whatever the pictures are. The attack was not tried, and says nothing about what leaks.';
const ASKS =
  'The verdict asks whether the stolen picture could be picked out of a line-up, and whether it is better than pictures made without a gradient.';

/**
 * What is said of the run: `mark` is what the badge is drawn by.
 * @param {RunRecord} record
 * @param {Frame | null} seen the frame that somebody looks back at
 */
export function verdictWords(record, seen = null) {
  const { end, state, frames } = record;
  if (state.status === 'failed') return { mark: 'failed', word: 'no result', why: state.message ?? NO_REASON, meaning: '', rule: '' };
  if (end?.ending?.how === 'inapplicable') {
    const why = end.ending.words.replace(/^Does not apply: /, '');
    return { mark: INAPPLICABLE, word: INAPPLICABLE, why, meaning: `${UNTRIED} Choose another attack, or what it needs.`, rule: '' };
  }
  if (end?.ending?.how === 'refused') return { mark: REFUSED, word: REFUSED, why: end.ending.words, meaning: '', rule: '' };
  const back = seen !== null && !isAnswer(record, seen);
  const latest = back ? seen : end ? null : frames[frames.length - 1];
  const unready = Boolean(latest?.note?.layer); // on its way from layer to layer it has no picture yet
  const verdict = unready ? null : back ? seen.verdict : record.verdict;
  if (verdict) {
    const when = back ? 'At this step: ' : end ? 'In the end: ' : 'So far: ';
    const { word: mark, why = '', meaning = '', rule = '' } = verdict;
    return { mark, word: wordOf(record, mark, back), why: when + why, meaning, rule };
  }
  if (end && !back) {
    return { mark: '', word: 'no verdict', why: '', meaning: 'The run ended before there was a picture to judge.', rule: '' };
  }
  const waiting = state.status === 'queued' || !state.status;
  const coming = waiting ? 'Comes when the attack has run.' : 'Comes when the attack is over.';
  return { mark: '', word: 'result', why: back ? 'No picture to judge yet at this step.' : coming, meaning: ASKS, rule: '' };
}

/**
 * The word of a verdict as the badge says it: what goes on has shown nothing so far, and what was cut short showed it until then.
 * @param {RunRecord} record
 * @param {string} word
 * @param {boolean} back
 */
function wordOf({ end, state }, word, back) {
  if (!end) return word === NOT_SHOWN && !FINAL.has(state.status ?? '') ? 'nothing shown so far' : word;
  const how = end.ending?.how ?? 'answer';
  return back || how === 'answer' || word === CUT_SHORT ? word : `${word}, when it ${how === 'diverged' ? how : 'was stopped'}`;
}

/**
 * @param {HTMLElement} host
 * @param {RunRecord} record
 * @param {Frame | null} seen
 */
export function tellVerdict(host, record, seen = null) {
  const words = verdictWords(record, seen);
  const key = JSON.stringify(words);
  if (host.dataset.key === key) return;
  Object.assign(host.dataset, { key, word: words.mark });
  find(host, '.gle-word').textContent = words.word;
  find(host, '.gle-why').textContent = words.why;
  find(host, '.gle-meaning').textContent = words.meaning;
  find(host, '.gle-rule').hidden = !words.rule;
  find(host, '.gle-rule p').textContent = words.rule;
}
