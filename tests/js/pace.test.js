// How long a run still takes: by its own pace, where that is known, else as it was estimated.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secondsLeft, timeWords } from '../../leakage/ui/components/live/pace.js';
import { newRecord, take } from '../../leakage/ui/components/live/record.js';
import { frame, recorded } from './recorded.js';

/** @param {[number, number][]} heard pairs of a step and its seconds, of 100 steps */
function after(...heard) {
  const record = newRecord('r');
  take(record, { ...recorded().meta, seq: undefined, steps: 100, estimate: 7 });
  heard.forEach(([step, seconds], place) => take(record, frame(place + 1, { step, seconds })));
  return record;
}

test('the pace is that of the last ten seconds', () => {
  assert.equal(secondsLeft(after([10, 20])), 180);
  assert.equal(secondsLeft(after([10, 20], [20, 30], [40, 40])), 30); // 20 steps in 10 s, 60 to come
  assert.equal(secondsLeft(after([10, 20], [10, 31])), 279); // none of late: its pace from the beginning
});

test('nothing is said before a second has passed, of an attack without steps, and of tries beyond those planned', () => {
  for (const record of [after(), after([1, 0.5]), after([120, 60]), after([0, 5])]) assert.equal(secondsLeft(record), null);
  assert.equal(secondsLeft({ ...after([10, 20]), meta: { ...recorded().meta, steps: null } }), null);
  assert.equal(secondsLeft({ ...after([10, 20]), meta: null }), null);
});

test('the words: what is left, else the estimate; nothing that is not known; never less than a second', () => {
  assert.equal(timeWords(after([50, 4]), 500), 'about 4 s left');
  assert.equal(timeWords(after([50, 4]), 60_000), 'about 1 s left');
  assert.equal(timeWords(after([1, 0.5]), 0), 'about 7.0 s');
  assert.equal(timeWords(newRecord('r'), 0), '');
  const waits = (/** @type {number | null} */ wait) => timeWords({ ...newRecord('r'), state: { status: 'queued', wait } }, 2000);
  assert.deepEqual([waits(null), waits(1), waits(12), waits(600)], ['', 'begins in about 1 s', 'begins in about 10 s', 'begins in about 10 min']); // prettier-ignore
});
