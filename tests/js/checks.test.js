// What the phone checked, beside the private pictures; and a run that it refused, on the stage.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkWords, telling } from '../../leakage/ui/components/live/checks.js';
import { frame } from './recorded.js';
import { END, FRAMES, META_OF_R, RUNNING, show } from './viewing.js';

const REFUSAL = 'The phone refused to train this model in round 1: the check A measured 4, above its threshold of 0.5. Nothing was sent.';
const A = { check: 'a', title: 'A', measures: 'how many layers are new', number: 4, threshold: 0.5, tripped: true, round: 1 };
const B = { ...A, check: 'b', title: 'B', measures: '', number: 0.25, tripped: false };
const REFUSED = { kind: 'end', run: 'r', status: 'done', answer: null, ending: { how: 'refused', words: REFUSAL, checks: [A, B] } };
const AT_A = 'A 4 (threshold 0.5): tripped in round 1It measures how many layers are new.';

test('the number of a check, its threshold, and whether it tripped', () => {
  assert.equal(checkWords(A), '4 (threshold 0.5): tripped in round 1');
  assert.equal(checkWords(B), '0.25 (threshold 0.5): did not trip');
  assert.equal(checkWords({ ...A, number: null, round: 3 }), 'infinite (threshold 0.5): tripped in round 3');
  assert.equal(checkWords({ ...B, number: null }), 'not defined here');
});

test('of several rounds each check shows the first in which it tripped, or that of its largest number', () => {
  const later = { ...A, round: 2, number: 9 };
  const none = { ...B, number: null };
  const more = { ...B, number: 0.5, round: 2 };
  assert.deepEqual(telling([A, none, later, B, more, { ...B, round: 3 }]), [A, more]);
  assert.deepEqual(
    telling([
      { ...A, tripped: false, number: 9 },
      { ...A, round: 2 },
    ]),
    [{ ...A, round: 2 }],
  );
  assert.deepEqual(telling([]), []);
});

test('what the checks found stands beside the private pictures as soon as the run has told it', async (t) => {
  const { page, view, one, hear } = show(t);
  const lines = () => [...one('checks').querySelectorAll('li')].map((line) => line.textContent);
  hear(RUNNING);
  await page.tick(50);
  assert.equal(one('checks').hidden, true);
  hear({ ...META_OF_R, checks: [A, B] }, frame(1));
  await page.tick(50);
  assert.equal(one('checks').hidden, false);
  assert.deepEqual(lines(), [AT_A, 'B 0.25 (threshold 0.5): did not trip']);
  assert.equal(view.root.hasAttribute('data-refused'), false);
  view.reset({ id: 's' });
  await page.tick(50);
  assert.deepEqual([one('checks').hidden, lines()], [true, []]);
});

test('of a run that the phone refused only the refusal and the checks are told', async (t) => {
  const { page, view, one, text, hear } = show(t);
  hear(RUNNING, REFUSED);
  await page.tick(50);
  assert.equal(view.root.hasAttribute('data-refused'), true);
  assert.deepEqual([text('word'), text('why'), text('meaning'), one('rule').hidden], ['refused', REFUSAL, '', true]);
  assert.equal(text('status-text'), REFUSAL);
  assert.equal(text('received'), 'Nothing was sent.');
  assert.equal(text('private .gle-foot'), 'It never leaves the phone.');
  assert.equal(text('network .gle-where'), 'over the network');
  assert.equal(text('attacker .gle-where'), '');
  assert.equal(text('guess figcaption'), 'nothing sent');
  assert.equal(text('checks li'), AT_A);
  const later = { ...REFUSED, ending: { ...REFUSED.ending, checks: [{ ...A, round: 2 }, B] } };
  view.reset({ id: 'r' });
  hear(RUNNING, later);
  await page.tick(50);
  assert.equal(text('received'), 'Nothing was sent from round 2 on.');
  view.reset({ id: 's' }); // another run, which the phone trains
  hear({ ...RUNNING, run: 's' }, { ...META_OF_R, run: 's' }, ...FRAMES.map((one) => ({ ...one, run: 's' })), { ...END, run: 's' });
  await page.tick(50);
  assert.equal(view.root.hasAttribute('data-refused'), false);
  assert.equal(text('attacker .gle-where'), 'rebuilt from the gradient alone');
  assert.match(text('received') ?? '', /this is all that is sent/);
});
