// Walking through a lesson: what is reached, what a question holds back, and what is remembered of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { letter, readHash, Walk, writeHash } from '../../leakage/ui/components/reader/walk.js';

const OPTIONS = [
  { text: 'a', right: false, why: 'no' },
  { text: 'b', right: true, why: 'yes' },
  { text: 'c', right: false, why: 'no' },
];
const BEATS = ['text', 'play', 'guess', 'reveal', 'text', 'guess', 'takeaway'].map((kind) => ({
  kind,
  text: kind,
  ...(kind === 'guess' ? { options: OPTIONS } : {}),
}));

test('nothing behind a question is reached before it is answered', () => {
  const walk = new Walk(BEATS);
  assert.equal(walk.gate, 2);
  assert.equal(walk.go(6), false);
  assert.equal(walk.place, 2);
  assert.equal(walk.go(3), false);
  assert.equal(walk.choose(1), true);
  assert.equal(walk.gate, 5); // the next question
  assert.equal(walk.go(3), true);
  assert.deepEqual(walk.outcome, { options: OPTIONS, chosen: 1, right: 1 });
  assert.equal(walk.go(6), false);
  assert.equal(walk.place, 5);
  assert.equal(walk.finished, false);
  walk.choose(0);
  assert.equal(walk.go(6), true);
  assert.equal(walk.finished, true);
  assert.deepEqual(walk.outcome, { options: OPTIONS, chosen: 0, right: 1 });
});

test('a guess may be changed until its answer was seen, and stands afterwards', () => {
  const walk = new Walk(BEATS);
  walk.go(2);
  walk.choose(0);
  assert.equal(walk.revealed(), false);
  assert.equal(walk.choose(2), true);
  walk.go(3);
  walk.go(2);
  assert.equal(walk.revealed(), true);
  assert.equal(walk.choose(1), false);
  assert.equal(walk.guesses.get(2), 2);
});

test('there is nothing to choose where there is no question, and no option beyond the last', () => {
  const walk = new Walk(BEATS);
  assert.equal(walk.choose(0), false);
  walk.go(2);
  for (const option of [-1, 3, 0.5, NaN]) assert.equal(walk.choose(option), false);
  assert.equal(walk.guesses.size, 0);
  assert.equal(walk.outcome, null);
});

test('what is kept comes back, and what does not fit is forgotten', () => {
  const walk = new Walk(BEATS);
  walk.go(2);
  walk.choose(1);
  walk.go(4);
  const again = new Walk(BEATS, JSON.parse(JSON.stringify(walk.kept)));
  assert.deepEqual(again.kept, { place: 4, furthest: 4, guesses: { 2: 1 } });
  assert.deepEqual(new Walk(BEATS, { place: 4, furthest: 6, guesses: { 2: 7 } }).kept, { place: 2, furthest: 2, guesses: {} });
  assert.deepEqual(new Walk(BEATS, { place: -3, furthest: 99, guesses: { 0: 1 } }).kept, { place: 0, furthest: 0, guesses: {} });
  const damaged = /** @type {any} */ ({ place: 'x', guesses: null });
  assert.deepEqual(new Walk(BEATS, damaged).kept, { place: 0, furthest: 0, guesses: {} });
});

test('whoever presents to a hall is not held, and what was presented does not count as read', () => {
  const walk = new Walk(BEATS);
  walk.free = true;
  assert.equal(walk.go(6), true);
  assert.equal(walk.furthest, 0);
  walk.free = false;
  assert.equal(walk.place, 6);
  assert.deepEqual([walk.go(0), walk.go(6)], [true, true]); // what was presented may be read in any order
  assert.equal(new Walk(BEATS, walk.kept).place, 2); // next time the question asks again
});

test('addresses name a lesson, a beat counted from 1, and whether it is presented', () => {
  assert.deepEqual(readHash('#07-noise/3?present'), { lesson: '07-noise', place: 2, present: true });
  assert.deepEqual(readHash('#07-noise'), { lesson: '07-noise', place: null, present: false });
  assert.equal(readHash(''), null);
  assert.equal(readHash('#07-noise/3/4'), null);
  for (const [place, present] of /** @type {[number, boolean][]} */ ([
    [0, false],
    [11, true],
  ])) {
    // prettier-ignore
    assert.deepEqual(readHash(writeHash('02-search', place, present)), { lesson: '02-search', place, present });
  }
  assert.deepEqual([0, 3, 4].map(letter), ['A', 'D', '']);
});
