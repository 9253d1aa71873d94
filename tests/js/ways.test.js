// How far several runs have come, on one scale.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { furthestPlace, HEADS, pictureAt, placeWords, stepsOf, waysOf } from '../../leakage/ui/components/live/ways.js';
import { newRecord, take } from '../../leakage/ui/components/live/record.js';
import { frame, recorded } from './recorded.js';

/**
 * A run with pictures at these steps.
 * @param {number[]} steps
 * @param {{ planned?: number | null, over?: boolean }} [more] `planned`: not given is no meta yet
 */
function run(steps, { planned, over = false } = {}) {
  const record = newRecord('r');
  if (planned !== undefined) record.meta = { ...recorded().meta, steps: planned };
  steps.forEach((step, place) => take(record, frame(place + 1, { step })));
  if (over) take(record, { kind: 'end', seq: 99, answer: steps.length });
  return record;
}

test('steps before every picture, over all starts together', () => {
  const before = (/** @type {number[]} */ ...steps) => stepsOf(steps.map((step) => ({ step })));
  assert.deepEqual(before(), []);
  assert.deepEqual(before(7), [7]);
  assert.deepEqual(before(0, 5, 10), [0, 5, 10]);
  assert.deepEqual(before(0, 5, 10, 0, 4, 4, 8), [0, 5, 10, 10, 14, 14, 18]);
  assert.deepEqual(before(5, 10, 2, 6, 1), [5, 10, 12, 16, 17], 'three starts, of 10, 6 and 1 steps');
  assert.deepEqual(stepsOf(/** @type {any} */ ([{}, { step: 3 }])), [0, 3]);
});

test('nothing is known yet: every way is one long, and they are not compared by steps', () => {
  assert.deepEqual(waysOf([]), { ways: [], same: false });
  assert.deepEqual(waysOf([run([]), run([])]), { ways: Array(2).fill({ steps: [], last: 0, length: 1 }), same: false });
});

test('a way is as long as planned, or longer; afterwards as long as it was', () => {
  const length = (/** @type {ReturnType<typeof run>} */ record) => waysOf([record]).ways[0].length;
  assert.equal(length(run([1, 50], { planned: 300 })), 300);
  assert.equal(length(run([1, 350], { planned: 300 })), 350);
  assert.equal(length(run([1, 198], { planned: 300, over: true })), 198);
  assert.equal(length(run([1, 200, 5, 198], { planned: 300 })), 398);
  assert.equal(length(run([0], { planned: null })), 1);
  assert.equal(length(run([], { planned: 300, over: true })), 1);
});

test('runs that plan the same number of steps share the longest way', () => {
  const { ways, same } = waysOf([run([1, 100], { planned: 300, over: true }), run([1, 40], { planned: 300 })]);
  assert.equal(same, true);
  assert.deepEqual(ways, [
    { steps: [1, 100], last: 100, length: 300 },
    { steps: [1, 40], last: 40, length: 300 },
  ]);
  const over = waysOf([run([100], { planned: 300, over: true }), run([120], { planned: 300, over: true })]);
  assert.deepEqual(
    over.ways.map(({ length }) => length),
    [120, 120],
  );
});

test('runs that plan different numbers keep their own ways', () => {
  const { ways, same } = waysOf([run([10], { planned: 300 }), run([10], { planned: 200 }), run([10])]);
  assert.equal(same, false);
  assert.deepEqual(
    ways.map(({ length }) => length),
    [300, 200, 10],
  );
});

test('a run that has no plan yet does not part the others; one without steps neither', () => {
  assert.equal(waysOf([run([1], { planned: 300 }), run([])]).same, true);
  assert.equal(waysOf([run([1], { planned: 300 }), run([1], { planned: null })]).same, true);
  assert.equal(waysOf([run([1], { planned: null })]).same, false);
});

test('the play head has 121 places: 0 to 119 along the way, and the results', () => {
  assert.equal(HEADS, 121);
});

test('at a place of the play head stands the last picture that is not beyond it', () => {
  const way = { steps: [0, 10, 60, 119], last: 119, length: 119 }; // one step a place
  const found = [0, 9, 10, 11, 59, 60, 118, 119, 120].map((place) => pictureAt(way, place));
  assert.deepEqual(found, [0, 0, 1, 1, 1, 2, 2, 3, 3]);
  assert.equal(pictureAt({ ...way, steps: [5, 8] }, 2), 0, 'before the first there is only the first');
  assert.equal(pictureAt({ ...way, steps: [] }, 50), -1);
  const half = { steps: [0, 100, 200], last: 200, length: 200 };
  assert.deepEqual(
    [59, 60, 118, 119].map((place) => pictureAt(half, place)),
    [0, 1, 1, 2],
    'place 59 is step 99.2, place 60 step 100.8',
  );
});

test('a picture at the very place counts, however the division rounds', () => {
  for (const length of [198, 300, 1000, 4800]) {
    const steps = Array.from({ length: 120 }, (_, place) => (place * length) / 119);
    for (let place = 0; place < 120; place += 1) assert.equal(pictureAt({ steps, last: length, length }, place), place);
  }
});

test('the play head is where the run is that has come furthest', () => {
  const way = (/** @type {number} */ last, /** @type {number} */ length) => ({ steps: [], last, length });
  assert.equal(furthestPlace([]), 0);
  assert.equal(furthestPlace([way(0, 300)]), 0);
  assert.equal(furthestPlace([way(50, 100), way(30, 300)]), 60, '59.5 is rounded up');
  assert.equal(furthestPlace([way(1, 300), way(198, 300)]), 79, '0.66 of 119 is 78.5');
  assert.equal(furthestPlace([way(300, 300)]), 119);
});

test('where the play head stands, in steps where all have the same, and else in per cent', () => {
  const way = (/** @type {number} */ length) => ({ steps: [], last: 0, length });
  const same = { ways: [way(2380), way(2380)], same: true };
  const other = { ways: [way(300), way(2380)], same: false };
  const at = (/** @type {number} */ place, running = true, all = same, count = HEADS) => placeWords({ place, count, running }, all);
  assert.equal(at(5, true, same, 0), 'no pictures yet');
  assert.equal(at(-1), 'step 0 of 2,380');
  assert.equal(at(0), 'step 0 of 2,380');
  assert.equal(at(60), 'step 1,200 of 2,380');
  assert.equal(at(119), 'step 2,380 of 2,380');
  assert.equal(at(120), 'step 2,380 of 2,380', 'there are no results yet');
  assert.equal(at(119, false), 'step 2,380 of 2,380');
  assert.equal(at(120, false), 'the results');
  assert.equal(at(1, true, other), '1 % of the way');
  assert.equal(at(60, true, other), '50 % of the way');
  assert.equal(at(119, true, other), '100 % of the way');
  assert.equal(at(120, true, other), '100 % of the way');
  assert.equal(at(120, false, other), 'the results');
});
