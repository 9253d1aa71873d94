// Numbers and states as words.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  clamp,
  curveWords,
  decibel,
  duration,
  fixed,
  isNumber,
  noteWords,
  short,
  solvedWords,
  stateWords,
  superscript,
  weight,
  whole,
} from '../../leakage/ui/components/live/words.js';
import { newRecord, take } from '../../leakage/ui/components/live/record.js';
import { frame, recorded } from './recorded.js';

/**
 * What a function makes of values, beside what it should make of them.
 * @param {(value: any) => unknown} words
 * @param {[unknown, unknown][]} pairs
 */
const all = (words, pairs) =>
  assert.deepEqual(
    pairs.map(([value]) => [value, words(value)]),
    pairs,
  );

/** @type {unknown[]} */
const NO_NUMBERS = [null, undefined, NaN, Infinity, -Infinity, '3', true, {}];
const without = (/** @type {string} */ words) => NO_NUMBERS.map((value) => /** @type {[unknown, unknown]} */ ([value, words]));

test('a number is finite and of type number', () => {
  all(isNumber, [...NO_NUMBERS.map((value) => /** @type {[unknown, unknown]} */ ([value, false])), [0, true], [-1.5, true]]);
});

test('clamp keeps a value between its bounds', () => {
  assert.deepEqual(
    [-1, 0, 1.5, 3, 4].map((value) => clamp(value, 0, 3)),
    [0, 0, 1.5, 3, 3],
  );
});

test('fixed has so many digits, and nothing is minus zero', () => {
  const pairs = /** @type {[unknown, unknown][]} */ ([
    [1.236, '1.24'],
    [2, '2.00'],
    [-0.004, '0.00'],
    [-0.006, '-0.01'],
    [-0, '0.00'],
    [-10, '-10.00'],
  ]);
  all((value) => fixed(value, 2), [...pairs, ...without('–')]);
  assert.equal(fixed(-0.4, 0), '0');
  assert.equal(fixed(12.96, 1), '13.0');
});

test('whole rounds and groups thousands', () => {
  all(whole, [[0, '0'], [2.4, '2'], [2.5, '3'], [999.5, '1,000'], [1234567, '1,234,567'], ...without('–')]);
});

test('short has three digits at any size', () => {
  all(short, [[0, '0'], [-0, '0'], [3.14159, '3.14'], [1.5, '1.5'], [-2.718, '-2.72'], [123.456, '123'], ...without('–')]);
  all(short, [
    [999.4, '999'],
    [999.6, '1,000'],
    [1000, '1,000'],
    [1234.6, '1,235'],
    [-1500, '-1,500'],
  ]);
  all(short, [
    [0.0123456, '0.0123'],
    [0.001, '0.001'],
    [0.00099, '9.9·10⁻⁴'],
    [4.5e-7, '4.5·10⁻⁷'],
    [-2e-5, '-2.0·10⁻⁵'],
    [1e-12, '1.0·10⁻¹²'],
  ]);
  assert.equal(short(3.14159, 2), '3.1');
  assert.equal(short(3.14159, 4), '3.142');
});

test('powers stand in small raised digits', () => {
  all(superscript, [
    [0, '⁰'],
    [-10, '⁻¹⁰'],
    [1234567890, '¹²³⁴⁵⁶⁷⁸⁹⁰'],
  ]);
});

test('a weight is in bytes, kB or MB, a thousand each', () => {
  all(weight, [
    [0, '0 bytes'],
    [999, '999 bytes'],
    [1000, '1 kB'],
    [1499, '1 kB'],
    [1500, '2 kB'],
    [63304, '63 kB'],
    [999499, '999 kB'],
  ]);
  all(weight, [[1e6, '1.0 MB'], [1.26e6, '1.3 MB'], [12345678, '12.3 MB'], ...without('')]);
});

test('a duration is in tenths of a second, seconds, or minutes', () => {
  all(duration, [
    [0, '0.0 s'],
    [0.11, '0.1 s'],
    [9.94, '9.9 s'],
    [10, '10 s'],
    [10.6, '11 s'],
    [89.4, '89 s'],
  ]);
  all(duration, [[90, '2 min'], [149, '2 min'], [150, '3 min'], [3600, '60 min'], ...without('')]);
});

test('decibels have one digit, and none is minus zero', () => {
  all(decibel, [[10.894590635550701, '10.9 dB'], [-3.26, '-3.3 dB'], [0, '0.0 dB'], [-0.04, '0.0 dB'], ...without('–')]);
});

test('every state has its words', () => {
  assert.equal(stateWords(), 'Opening');
  assert.equal(stateWords({}), 'Opening');
  assert.equal(stateWords({ status: 'loading', message: 'Loading the data' }), 'Loading the data');
  assert.equal(stateWords({ status: 'running', message: 'not this' }), 'Attack running');
  assert.equal(stateWords({ status: 'done' }), 'Attack finished');
  assert.equal(stateWords({ status: 'cancelled' }), 'Stopped');
  assert.equal(stateWords({ status: 'cancelled', message: 'Cancelled before it began.' }), 'Stopped: Cancelled before it began.');
  assert.equal(stateWords({ status: 'failed', message: 'out of memory' }), 'Failed: out of memory');
  const ending = { how: 'limit', words: "Stopped at its time limit of 3 s, at step 9 of 40: not the attack's answer" };
  assert.equal(stateWords({ status: 'done', message: 'not this' }, ending), ending.words, 'how it ended goes before all');
});

test('an attack that found the picture early says so, and one that only ended early does not', () => {
  const run = (/** @type {number} */ step, /** @type {string} */ word, how = 'answer') =>
    /** @type {any} */ ({ meta: { steps: 300 }, end: { step, ending: { how, words: '' } }, verdict: { word } });
  assert.equal(solvedWords(run(198, 'recognizable')), 'Solved after 198 of 300 steps');
  assert.equal(solvedWords(run(198, 'not shown by this attack')), '');
  assert.equal(solvedWords(run(300, 'recognizable')), '');
  assert.equal(solvedWords(run(198, 'recognizable', 'stopped')), '');
  assert.equal(solvedWords({ end: null, meta: null, verdict: null }), '');
});

test('who waits is told how many are before them: position 1 is the next', () => {
  const at = (/** @type {number | null} */ position, /** @type {number | null} */ wait = null) =>
    stateWords({ status: 'queued', position, wait });
  assert.equal(at(null), 'Waiting: yours is next');
  assert.equal(at(0), 'Waiting: yours is next');
  assert.equal(at(1), 'Waiting: yours is next');
  assert.equal(at(2), 'Waiting: 1 run before yours');
  assert.equal(at(3), 'Waiting: 2 runs before yours');
  assert.equal(at(1, 0.2), 'Waiting: yours is next, about 1.0 s');
  assert.equal(at(2, 45.4), 'Waiting: 1 run before yours, about 45 s');
  assert.equal(at(12, 120), 'Waiting: 11 runs before yours, about 2 min');
});

test('a note says what has no other place on the page', () => {
  const { frames } = recorded(); // {start: 1, label rule: ..., label certainty: 1}
  assert.equal(noteWords(frames[0].note), 'try 1');
  assert.equal(noteWords({ start: 2, rule: 'sign' }), 'try 2, rule sign');
  assert.equal(
    noteWords({ best_of_all: 4.5e-5, of: 12345.4, found: false, seed: 0 }),
    'best of all 4.5·10⁻⁵, of 12,345, found false, seed 0',
  );
  assert.equal(noteWords({ nothing: null, list: [1], map: { a: 1 }, left: 'x' }), 'left x');
  const elsewhere = ['event', 'label certainty', 'equations', 'unknowns', 'rank', 'condition', 'residual', 'layer', 'explanations'];
  const twin = ['distance of the picture', 'distance of the twin', 'start from the twin', 'end from the twin'];
  for (const name of [...elsewhere, ...twin]) assert.equal(noteWords({ [name]: 3 }), '', name);
  for (const none of [null, undefined, {}]) assert.equal(noteWords(none), '');
});

test('the curves in words: from the first frame to the last', () => {
  const record = newRecord('r');
  assert.equal(curveWords(record), 'Curves: no values yet');
  take(record, frame(1, { loss: 0.5, scores: { psnr: 5.25 } }));
  assert.equal(curveWords(record), 'Curves over 1 steps: gradient distance from 0.5 to 0.5, PSNR from 5.3 dB to 5.3 dB.');
  take(record, frame(2, { loss: 0.4, scores: { psnr: 6 } }));
  take(record, frame(1234, { loss: null }));
  assert.equal(curveWords(record), 'Curves over 1,234 steps: gradient distance from 0.5 to –, PSNR from 5.3 dB to –.');
});

test('the curves of the recorded run in words, beside a grey picture', () => {
  const { id, meta, frames } = recorded();
  const record = newRecord(id);
  for (const event of [meta, ...frames]) take(record, event);
  const words =
    'Curves over 198 steps: gradient distance from 233 to 4.3·10⁻⁷, PSNR from 5.3 dB to 50.6 dB; a grey picture scores 10.9 dB.';
  assert.equal(curveWords(record), words);
});
