// The teacher's page while a room is open and nothing is presented: what phones have answered, the answer, and the way on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { teach, vote } from './room_hall_setup.js';

const BARS = [[3, 2, 1]];

/** @param {import('node:test').TestContext} t */
async function question(t) {
  const taught = teach(t);
  await taught.begin();
  taught.press('n');
  await taught.hear({ beat: 2, phones: 7, vote: vote({ count: 6, bars: BARS }) });
  return taught;
}

test('the page shows the count, and with the answer the bars, by buttons and by keys', async (t) => {
  const { texts, one, page, all, press, led, hear } = await question(t);
  assert.deepEqual(texts('.gle-raised, .gle-vote-acts button'), ['6 of 7 have answered.', 'Show the answer (r)', 'Vote again (v)']);
  assert.equal(one('.gle-vote'), null);
  all('.gle-vote-acts button')[0].focus();
  page.fire(all('.gle-vote-acts button')[0], 'click');
  assert.deepEqual(texts('.gle-vote b, .gle-option em'), ['', '3 votes', '✓ The answer', '2 votes', '', '1 vote']);
  assert.equal(page.document.activeElement?.textContent, 'Hide the answer (r)');
  await hear({ beat: 2, phones: 7, vote: vote({ count: 6, bars: BARS, revealed: true }) });
  press('v');
  assert.equal(one('.gle-raised').textContent, 'Talk to your neighbour, then vote again. 0 of 7 have answered.');
  press('r');
  await page.tick();
  assert.deepEqual(led().slice(1), [{ act: 'reveal' }, { act: 'again' }, { act: 'reveal' }]);
});

test('the way on shows the answer first, by the button and by the key', async (t) => {
  const { view, page, press, one, led } = await question(t);
  assert.deepEqual([view.next.textContent, view.next.getAttribute('aria-disabled')], ['Show the answer', 'false']);
  press('n');
  assert.deepEqual([view.place, view.next.textContent, one('[data-mark=right]') === null], [1, 'Next', false]);
  page.fire(view.next, 'click');
  await page.tick();
  assert.deepEqual([view.place, led().slice(1)], [2, [{ act: 'reveal' }, { beat: 3 }]]);
});

test('without a room the page is the reader’s again: guess first', async (t) => {
  const { view, hear, one, press } = await question(t);
  await hear({ beat: 2, closed: true });
  assert.deepEqual([one('.gle-vote-acts'), one('.gle-raised'), view.next.textContent], [null, null, 'See what happens']);
  assert.equal(view.next.getAttribute('aria-disabled'), 'true');
  assert.equal(press('r'), false);
});

test('a locked room says so in the dialog and in the head, in place of the invitation', async (t) => {
  const { open, hear, one, texts, all } = teach(t);
  await open();
  const shown = () =>
    all('.gle-room-top :is(.gle-room-qr, .gle-room-where, .gle-room-code, .gle-room-shut)').filter(({ hidden }) => !hidden);
  assert.deepEqual(shown().map(({ className }) => className), ['gle-room-qr', 'gle-room-where', 'gle-room-code']); // prettier-ignore
  await hear({ phones: 31, locked: true });
  assert.deepEqual(shown().map(({ textContent }) => textContent), ['Locked: nobody else can join.']); // prettier-ignore
  assert.deepEqual(texts('.gle-room-line'), ['Locked: nobody else can join. 31 phones']);
  assert.equal(one('.gle-room-joined').textContent, '31 phones have joined.');
  assert.equal(all('.gle-panel > button')[0].textContent, 'Back to the lesson');
});

test('the first keys of a presentation name those of the room', async (t) => {
  const { begin, one, press } = teach(t);
  await begin();
  press('f');
  assert.equal(one('.gle-cue').textContent, '→ next · r reveal · v vote again · o code · s speaker’s window · ? all keys');
});
