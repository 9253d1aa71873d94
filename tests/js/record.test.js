// What is known of a run: events in, plain data out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answerPlace,
  isAnswer,
  isFinal,
  nearestPlace,
  newRecord,
  placeOf,
  scoresOf,
  take,
} from '../../leakage/ui/components/live/record.js';
import { frame, recorded, verdict } from './recorded.js';

/**
 * @typedef {import('../../leakage/ui/components/live/record.js').AttackEvent} AttackEvent
 * @param {AttackEvent[]} events
 */
function recordOf(...events) {
  const record = newRecord('r');
  events.forEach((event) => take(record, event));
  return record;
}

/** @type {(list: { seq: number }[]) => number[]} */
const numbers = (list) => list.map(({ seq }) => seq);

/** @type {(answer: number, more?: Partial<import('./recorded.js').AttackEnd>) => AttackEvent} */
const end = (answer, more = {}) => ({ kind: 'end', run: 'r', answer, ...more });

test('a new record knows nothing', () => {
  const nothing = { id: 'r', state: {}, meta: null, frames: [], pictures: [], note: '', verdict: null, end: null, heard: 0 };
  assert.deepEqual(newRecord('r'), nothing);
  const other = newRecord('s');
  take(other, frame(1));
  assert.deepEqual(newRecord('r'), nothing, 'records share nothing');
});

test('the recorded run is taken in whole', () => {
  const { id, meta, frames, end } = recorded();
  const record = newRecord(id);
  for (const event of [meta, ...frames, end]) take(record, event);
  assert.equal(record.meta, meta);
  assert.equal(record.frames.length, 97);
  assert.deepEqual(numbers(record.frames), numbers(record.pictures));
  assert.deepEqual([record.frames[0].seq, record.frames[96].seq, record.frames[96].step], [4, 100, 198]);
  assert.equal(record.end, end);
  assert.equal(record.state.status, 'done');
  assert.equal(record.verdict?.word, 'recognizable');
  assert.equal(answerPlace(record), 96);
  assert.equal(record.frames[2].seldom.ssim, frames[0].scores?.ssim, 'frame 3 has no SSIM of its own');
  assert.equal(record.frames[2].verdict?.word, 'not shown by this attack');
});

test('states, notes and what is planned: the newest counts', () => {
  const record = recordOf({ kind: 'state', status: 'queued', position: 2 }, { kind: 'state', status: 'running', seq: 1 });
  assert.deepEqual(record.state, { kind: 'state', status: 'running', seq: 1 });
  take(record, { kind: 'note', text: 'one' });
  take(record, { kind: 'note', text: 'two' });
  assert.equal(record.note, 'two');
  const { meta } = recorded();
  take(record, meta);
  assert.equal(record.meta, meta);
  assert.deepEqual(record.frames, []);
});

test('only done, cancelled and failed are final', () => {
  const final = ['done', 'cancelled', 'failed', 'running', 'queued', 'opening', ''].map((status) => isFinal({ state: { status } }));
  assert.deepEqual(final, [true, true, true, false, false, false, false]);
  assert.equal(isFinal({ state: {} }), false);
});

test('what the stream repeats after a reconnect is skipped', () => {
  const record = recordOf(frame(4), frame(5), frame(6), frame(5, { step: 99 }), frame(6, { step: 99 }), frame(4), frame(7));
  assert.deepEqual(numbers(record.frames), [4, 5, 6, 7]);
  assert.deepEqual(numbers(record.pictures), [4, 5, 6, 7]);
  assert.deepEqual(
    record.frames.map(({ step }) => step),
    [4, 5, 6, 7],
  );
});

test('a repeated event of the past undoes nothing: no state, no note, no picture', () => {
  const record = recordOf(
    ...[1, 2, 3, 4].map((seq) => frame(seq)),
    { kind: 'thinned', seq: 5, kept: [1, 4] },
    ...[6, 7, 8].map((seq) => frame(seq)),
    { kind: 'note', seq: 9, text: 'newer' },
    end(8, { seq: 10, verdict: verdict('newer') }),
  );
  const before = structuredClone(record);
  take(record, { kind: 'state', seq: 2, status: 'running' });
  take(record, { kind: 'note', seq: 3, text: 'older' });
  take(record, { kind: 'thinned', seq: 5, kept: [1, 4] });
  take(record, frame(8, { verdict: verdict('older') }));
  take(record, end(1, { seq: 10, status: 'failed' }));
  assert.deepEqual(record, before);
  assert.deepEqual(numbers(record.pictures), [1, 4, 6, 7, 8]);
});

test('a place in the queue has no number and always counts', () => {
  const record = recordOf({ kind: 'state', seq: 7, status: 'queued' }, { kind: 'state', status: 'queued', position: 3 });
  assert.equal(record.state.position, 3);
  take(record, { kind: 'state', status: 'queued', position: 2 });
  assert.equal(record.state.position, 2);
  take(record, frame(8));
  assert.deepEqual(numbers(record.frames), [8]);
});

test('a frame without a picture is in the curves alone', () => {
  const record = recordOf(frame(1, { picture: false }), frame(2), frame(3, { picture: false }));
  assert.deepEqual(numbers(record.frames), [1, 2, 3]);
  assert.deepEqual(numbers(record.pictures), [2]);
  assert.equal(record.pictures[0], record.frames[1]);
});

test('thinned: only what was kept has a picture, and the newest; the curves stay', () => {
  const record = recordOf(frame(1), frame(2), frame(3), frame(4), frame(5), { kind: 'thinned', kept: [1, 3, 99] });
  assert.deepEqual(numbers(record.pictures), [1, 3, 5]);
  assert.deepEqual(numbers(record.frames), [1, 2, 3, 4, 5]);
  take(record, frame(6));
  assert.deepEqual(numbers(record.pictures), [1, 3, 5, 6]);
  assert.deepEqual(recordOf({ kind: 'thinned', kept: [1] }).pictures, []);
});

test('between two measurements SSIM, rank and share stand as they were last', () => {
  const first = { psnr: 1, ssim: 0.1, rank: 5, identified: 0 };
  const record = recordOf(
    frame(1, { scores: { psnr: 0 } }),
    frame(2, { scores: first }),
    frame(3, { scores: { psnr: 2 } }),
    frame(4),
    frame(5, { scores: { psnr: 3, ssim: 0.5 } }),
    frame(6, { scores: { psnr: 4 } }),
    frame(7, { scores: { psnr: 5, ssim: null } }),
  );
  const [before, measured, after, bare, again, last, none] = record.frames.map((at) => scoresOf(record, at));
  assert.deepEqual(before, { psnr: 0, ssim: undefined, rank: undefined, identified: undefined });
  assert.deepEqual(measured, first);
  assert.deepEqual(after, { ...first, psnr: 2 });
  assert.deepEqual(bare, { ssim: 0.1, rank: 5, identified: 0 }, 'a PSNR is never old');
  assert.deepEqual(again, { psnr: 3, ssim: 0.5, rank: undefined, identified: undefined });
  assert.deepEqual(last, { psnr: 4, ssim: 0.5, rank: undefined, identified: undefined });
  assert.equal(none.ssim, null, 'measured, and there was none');
  [{ psnr: 6 }, { ssim: 0 }, { psnr: 7 }, { rank: 2 }, { psnr: 8 }].forEach((scores, more) => take(record, frame(8 + more, { scores })));
  const news = record.frames.slice(7).map((at) => scoresOf(record, at));
  assert.deepEqual(
    news.map(({ ssim, rank }) => [ssim, rank]),
    [
      [null, undefined],
      [0, undefined],
      [0, undefined],
      [0, 2],
      [0, undefined],
    ],
  );
});

test('the verdict stands until the next, for the run and for every frame', () => {
  const [one, two] = [verdict('one'), verdict('two')];
  const record = recordOf(frame(1), frame(2, { verdict: one }), frame(3), frame(4, { verdict: two }), frame(5, { verdict: null }));
  assert.deepEqual(
    record.frames.map((at) => at.verdict?.word),
    [undefined, 'one', 'one', 'two', 'two'],
  );
  assert.equal(record.verdict, two);
});

test('the end tells status and verdict, and keeps what it does not tell', () => {
  const record = recordOf({ kind: 'state', status: 'running', message: 'm' }, frame(1, { verdict: verdict('one') }), end(1));
  assert.equal(record.state.status, 'done');
  assert.equal(record.state.message, 'm');
  assert.equal(record.verdict?.word, 'one');
  const stopped = recordOf(frame(1, { verdict: verdict('one') }), end(1, { status: 'cancelled', verdict: verdict('two') }));
  assert.equal(stopped.state.status, 'cancelled');
  assert.equal(stopped.verdict?.word, 'two');
  assert.deepEqual(numbers(stopped.pictures), [1], 'the last frame stays');
});

test('the place of a picture is the last that is not newer', () => {
  const { pictures } = recordOf(frame(4), frame(6), frame(9));
  const places = [1, 4, 5, 6, 8, 9, 10].map((seq) => placeOf(pictures, seq));
  assert.deepEqual(places, [0, 0, 0, 1, 1, 2, 2]);
  assert.equal(placeOf([], 4), -1);
});

test('the answer is the frame that the end names, and the newest until then', () => {
  const record = recordOf();
  assert.equal(answerPlace(record), -1);
  assert.equal(isAnswer(record, null), false);
  [4, 6, 9].forEach((seq) => take(record, frame(seq)));
  assert.equal(answerPlace(record), 2);
  assert.equal(isAnswer(record, record.pictures[2]), false, 'there is none before the end');
  take(record, end(6, { scores: { psnr: 30 } }));
  assert.equal(answerPlace(record), 1);
  assert.deepEqual(
    [...record.pictures, null, undefined].map((at) => isAnswer(record, at)),
    [false, true, false, false, false],
  );
  const nameless = recordOf(frame(4), frame(6), /** @type {any} */ (end(/** @type {any} */ (null))));
  assert.equal(answerPlace(nameless), 1);
  assert.equal(isAnswer(recordOf(end(0)), undefined), false);
  assert.equal(answerPlace(recordOf(frame(4), frame(6), end(0))), 0);
});

test('the scores of the answer are those of the end, and of no other frame', () => {
  const record = recordOf(
    frame(4, { scores: { psnr: 20, mse: 0.5 } }),
    frame(5, { scores: { psnr: 21 } }),
    end(4, { scores: { psnr: 30, lpips: 0.2 } }),
  );
  const [answer, other] = record.frames;
  assert.deepEqual(scoresOf(record, answer), { psnr: 30, mse: 0.5, lpips: 0.2, ssim: undefined, rank: undefined, identified: undefined });
  assert.equal(scoresOf(record, other).psnr, 21);
  assert.equal(scoresOf(record, null).psnr, undefined);
});

test('the nearest picture by steps; of two as near the earlier', () => {
  const { pictures } = recordOf(frame(1, { step: 0 }), frame(2, { step: 10 }), frame(3, { step: 20 }));
  const places = [-5, 4, 5, 6, 15, 15.1, 20, 999].map((step) => nearestPlace(pictures, step));
  assert.deepEqual(places, [0, 0, 0, 1, 1, 2, 2, 2]);
  assert.equal(nearestPlace([], 3), -1);
  assert.equal(nearestPlace(pictures, NaN), -1);
});

test('what begins anew has told nothing but why', () => {
  const record = recordOf({ kind: 'state', status: 'running', seq: 1 }, frame(2), frame(3), { kind: 'note', text: 'old', seq: 4 });
  take(record, { kind: 'restart', text: 'Its machine is gone.', seq: 5 });
  assert.deepEqual(record, { ...newRecord('r'), heard: 5, note: 'Its machine is gone.' });
  take(record, { kind: 'state', status: 'queued', seq: 6 });
  take(record, frame(7));
  assert.deepEqual([record.state.status, numbers(record.frames), numbers(record.pictures)], ['queued', [7], [7]]);
});
