// The verdict on a run, or on the frame that somebody looks back at.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find } from '../../leakage/ui/components/dom.js';
import { newRecord, take } from '../../leakage/ui/components/live/record.js';
import { tellVerdict, verdictWords } from '../../leakage/ui/components/live/verdict.js';
import { openPage } from './page.js';
import { frame, recorded, verdict } from './recorded.js';

/** @param {import('../../leakage/ui/components/live/record.js').AttackEvent[]} events */
function recordOf(...events) {
  const record = newRecord('r');
  events.forEach((event) => take(record, event));
  return record;
}

const running = /** @type {const} */ ({ kind: 'state', status: 'running' });
const [one, two, three] = ['one', 'two', 'three'].map(verdict);
/** @type {(when: string, word: string) => object} */
const said = (when, word) => ({ mark: word, word, why: `${when}why ${word}`, meaning: `meaning ${word}`, rule: `rule ${word}` });

test('nothing to say yet: it comes when the attack has run, or is over', () => {
  const waiting = { mark: '', word: 'result', why: 'Comes when the attack has run.', rule: '' };
  const { meaning, ...words } = verdictWords(recordOf());
  assert.deepEqual(words, waiting);
  assert.match(meaning, /^The verdict asks whether the stolen picture could be picked out of a line-up/);
  assert.equal(verdictWords(recordOf({ kind: 'state', status: 'queued' })).why, 'Comes when the attack has run.');
  assert.equal(verdictWords(recordOf(running)).why, 'Comes when the attack is over.');
  assert.equal(verdictWords(recordOf(running, frame(1))).why, 'Comes when the attack is over.');
});

test('so far, in the end, and at this step', () => {
  const record = recordOf(running, frame(1, { verdict: one }), frame(2), frame(3, { verdict: two }));
  const [first, second, third] = record.frames;
  assert.deepEqual(verdictWords(record), said('So far: ', 'two'));
  assert.deepEqual(verdictWords(record, second), said('At this step: ', 'one'));
  assert.deepEqual(verdictWords(record, third), said('At this step: ', 'two'));
  take(record, { kind: 'end', seq: 4, answer: 2, verdict: three });
  assert.deepEqual(verdictWords(record), said('In the end: ', 'three'));
  assert.deepEqual(verdictWords(record, second), said('In the end: ', 'three'), 'frame 2 is the answer');
  assert.deepEqual(verdictWords(record, first), said('At this step: ', 'one'));
  assert.deepEqual(verdictWords(record, third), said('At this step: ', 'two'));
});

test('the recorded run: at every step its own verdict, and the end for its answer', () => {
  const { id, meta, frames, end } = recorded();
  const record = newRecord(id);
  for (const event of [meta, ...frames, end]) take(record, event);
  assert.equal(verdictWords(record, record.frames[0]).word, 'not shown by this attack');
  assert.match(
    verdictWords(record, record.frames[0]).why,
    /^At this step: The attacker's picture: place 81 by pixels of 100 in the line-up/,
  );
  assert.match(
    verdictWords(record, record.frames[96]).why,
    /^In the end: The attacker's picture: place 1 by pixels, 1 by SSIM, 1 by LPIPS of 100 in the line-up, PSNR 50.6 dB/,
  );
  assert.equal(verdictWords(record).mark, 'recognizable');
});

test('an attack that does not apply has no verdict, and says why', () => {
  const words = 'Does not apply: Choose the MLP with ReLU.';
  const end = /** @type {any} */ ({ kind: 'end', seq: 3, answer: null, ending: { how: 'inapplicable', words } });
  const said = verdictWords(recordOf(frame(1, { verdict: verdict('partly') }), end));
  assert.deepEqual([said.mark, said.word, said.why], ['does not apply', 'does not apply', 'Choose the MLP with ReLU.']);
  assert.match(said.meaning, /The attack was not tried, and says nothing about what leaks/);
});

test('of a run that the phone refused the refusal is told, and nothing else', () => {
  const words = 'The phone refused to train this model. Nothing was sent.';
  const end = /** @type {any} */ ({ kind: 'end', seq: 3, answer: null, ending: { how: 'refused', words } });
  assert.deepEqual(verdictWords(recordOf(end)), { mark: 'refused', word: 'refused', why: words, meaning: '', rule: '' });
});

test('what goes on has shown nothing so far, and what was cut short showed it until then', () => {
  const nothing = verdict('not shown by this attack');
  const record = recordOf(running, frame(1, { verdict: nothing }), frame(2));
  const badge = () => [verdictWords(record).mark, verdictWords(record).word];
  assert.deepEqual(badge(), ['not shown by this attack', 'nothing shown so far']);
  assert.equal(verdictWords(record, record.frames[0]).word, 'nothing shown so far');
  const cut = (/** @type {string} */ word, /** @type {string} */ how) =>
    verdictWords(recordOf(frame(1), { kind: 'end', seq: 3, answer: 1, verdict: verdict(word), ending: { how, words: '' } })).word;
  assert.deepEqual(
    ['stopped', 'limit', 'over', 'diverged', 'answer'].map((how) => cut('partly', how)),
    [...Array(3).fill('partly, when it was stopped'), 'partly, when it diverged', 'partly'],
  );
  assert.equal(cut('stopped: no verdict', 'stopped'), 'stopped: no verdict');
  assert.equal(cut('not shown by this attack', 'answer'), 'not shown by this attack');
});

test('a run that failed gives its reason, whatever it had found', () => {
  const failed = { mark: 'failed', word: 'no result', meaning: '', rule: '' };
  const record = recordOf(frame(1, { verdict: one }), { kind: 'state', status: 'failed', message: 'out of memory' });
  assert.deepEqual(verdictWords(record), { ...failed, why: 'out of memory' });
  assert.deepEqual(verdictWords(record, record.frames[0]), { ...failed, why: 'out of memory' });
  const why = 'The worker gave no reason. Try again with the same settings.';
  assert.deepEqual(verdictWords(recordOf({ kind: 'state', status: 'failed' })), { ...failed, why });
});

test('an end without a verdict says so; looking back, so does a step', () => {
  const meaning = 'The run ended before there was a picture to judge.';
  const record = recordOf(running, frame(1), frame(2), { kind: 'end', seq: 3, answer: 2, verdict: null });
  assert.deepEqual(verdictWords(record), { mark: '', word: 'no verdict', why: '', meaning, rule: '' });
  const back = verdictWords(record, record.frames[0]);
  assert.deepEqual([back.word, back.why, back.rule], ['result', 'No picture to judge yet at this step.', '']);
});

test('from layer to layer there is no picture to judge', () => {
  const layer = { layer: 2 };
  const record = recordOf(running, frame(1, { verdict: one }), frame(2, { note: layer }));
  assert.deepEqual([verdictWords(record).word, verdictWords(record).why], ['result', 'Comes when the attack is over.']);
  assert.equal(verdictWords(record, record.frames[1]).why, 'No picture to judge yet at this step.');
  assert.deepEqual(verdictWords(record, record.frames[0]), said('At this step: ', 'one'), 'that one has a picture');
  take(record, frame(3, { note: {} }));
  assert.deepEqual(verdictWords(record), said('So far: ', 'one'));
  const over = recordOf(frame(1, { note: layer }), { kind: 'end', seq: 3, answer: 1, verdict: two });
  assert.deepEqual(verdictWords(over), said('In the end: ', 'two'), 'the end is not on its way');
});

test('a verdict of a word alone leaves the rest empty', () => {
  const record = recordOf(frame(1, { verdict: /** @type {any} */ ({ word: 'partly' }) }));
  const words = { mark: 'partly', word: 'partly', why: 'So far: ', meaning: '', rule: '' };
  assert.deepEqual(verdictWords(record), words);
});

test('on the page: the badge, the words, and the rule only where there is one', (t) => {
  const page = openPage(t);
  const template = /** @type {HTMLTemplateElement} */ (find(page.component('live'), 'template'));
  const host = /** @type {HTMLElement} */ (find(template.content, '.gle-verdict').cloneNode(true));
  const texts = () => ['.gle-word', '.gle-why', '.gle-meaning', '.gle-rule p'].map((name) => find(host, name).textContent);
  const record = recordOf(running);
  tellVerdict(host, record);
  assert.deepEqual([host.dataset.word, find(host, '.gle-rule').hidden, find(host, '.gle-rule p').textContent], ['', true, '']);
  take(record, frame(1, { verdict: one }));
  tellVerdict(host, record);
  assert.deepEqual(texts(), ['one', 'So far: why one', 'meaning one', 'rule one']);
  assert.deepEqual([host.dataset.word, find(host, '.gle-rule').hidden], ['one', false]);
  find(host, '.gle-word').textContent = 'left alone';
  tellVerdict(host, record);
  assert.equal(find(host, '.gle-word').textContent, 'left alone', 'the same again is not written again');
  take(record, frame(2, { verdict: two }));
  tellVerdict(host, record, record.frames[0]);
  assert.deepEqual(texts(), ['one', 'At this step: why one', 'meaning one', 'rule one']);
  tellVerdict(host, record, null);
  assert.deepEqual(texts(), ['two', 'So far: why two', 'meaning two', 'rule two']);
  take(record, { kind: 'state', seq: 3, status: 'failed', message: 'out of memory' });
  tellVerdict(host, record);
  assert.deepEqual([host.dataset.word, ...texts(), find(host, '.gle-rule').hidden], ['failed', 'no result', 'out of memory', '', '', true]);
});
