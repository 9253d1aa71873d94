// A recording in columns becomes the record that a live run would have left: pictures, scores, verdicts, and the answer.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { answerPlace, scoresOf } from '../../leakage/ui/components/live/record.js';
import { recordOf, stopPlace, valueAt } from '../../leakage/ui/components/reader/recording.js';

const RUNS = new URL('../../assets/lessons/runs/', import.meta.url);
const SMALL = /** @type {any} */ ({
  title: 'Small',
  columns: { step: [1, 10, 20, 30], seconds: [0, 1, 2, 3], loss: [4, 3, 2, 1], psnr: [5, 6, 7, 8], ssim: [0.1, null, 0.3, null] },
  film: { side: 32, batch: 1, places: [0, 2, 3] },
  labels: [[0, [4]], [2, [5]]],
  notes: [[0, { start: 1 }]],
  verdicts: [[1, { word: 'partly', why: 'w' }]],
  views: [[2, { conv1: 'data:,x' }]],
  rule: 'the rule',
  meta: { batch: 1 },
  result: { answer: 3, scores: { psnr: 8.5 }, verdict: { word: 'singled out', why: 'v' } },
}); // prettier-ignore

test('what changed at a place holds until it changes again', () => {
  /** @type {[number, string][]} */
  const changes = [[1, 'a'], [4, 'b']]; // prettier-ignore
  assert.deepEqual([0, 1, 3, 4, 9].map((place) => valueAt(changes, place)), [undefined, 'a', 'a', 'b', 'b']); // prettier-ignore
});

test('frames, pictures and the answer stand where the columns have them', () => {
  const record = recordOf('r', SMALL);
  assert.deepEqual(record.frames.map(({ step, loss }) => [step, loss]), [[1, 4], [10, 3], [20, 2], [30, 1]]); // prettier-ignore
  assert.deepEqual(record.pictures.map(({ seq }) => seq), [1, 3, 4]); // prettier-ignore
  assert.equal(answerPlace(record), 2);
  assert.deepEqual(record.frames.map(({ labels }) => labels), [[4], [4], [5], [5]]); // prettier-ignore
  assert.deepEqual(record.frames.map(({ views }) => views), [undefined, undefined, { conv1: 'data:,x' }, undefined]); // prettier-ignore
  assert.equal(record.frames[0].verdict, null);
  assert.equal(record.frames[2].verdict?.word, 'partly');
  assert.equal(record.verdict?.word, 'singled out');
});

test('a score that was not measured is the one before, and the answer has its own', () => {
  const record = recordOf('r', SMALL);
  assert.equal(scoresOf(record, record.frames[1]).ssim, 0.1);
  assert.equal(scoresOf(record, record.frames[1]).psnr, 6);
  assert.equal(scoresOf(record, record.frames[3]).psnr, 8.5);
});

test('a beat stops at the last picture that is not beyond its step, before the first, or at the answer', () => {
  const { pictures } = recordOf('r', SMALL);
  assert.equal(stopPlace(pictures, 'first'), -1);
  assert.deepEqual(['step 1', 'step 19', 'step 20', 'step 999'].map((stop) => stopPlace(pictures, stop)), [0, 0, 1, 2]); // prettier-ignore
  assert.equal(stopPlace(pictures, 'answer'), 2);
});

test('without a recording there is a record without frames', () => {
  const record = recordOf('r', { title: 'Missing', lab: null });
  assert.deepEqual([record.frames, record.pictures, record.end], [[], [], null]);
});

for (const name of readdirSync(RUNS).filter((file) => file.endsWith('.json'))) {
  test(`${name} has a frame for every step, and its film ends with the answer`, () => {
    const raw = JSON.parse(readFileSync(new URL(name, RUNS), 'utf8'));
    const record = recordOf(name, raw);
    assert.equal(record.frames.length, raw.columns.step.length);
    assert.equal(record.pictures.length, raw.film.places.length);
    assert.equal(record.end?.answer, raw.result.answer + 1);
    assert.equal(answerPlace(record), record.pictures.length - 1);
    assert.equal(record.verdict?.word, raw.result.verdict.word);
  });
}
