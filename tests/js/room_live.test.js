// A live run of a room: the newest picture is shown, at the end the answer, and the state is said in words.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RoomApi } from '../../leakage/ui/components/room/room_api.js';
import { RoomLive } from '../../leakage/ui/components/room/room_live.js';
import { brushOf, NOTHING, openPage } from './page.js';

const META = { kind: 'meta', batch: 1, steps: 100, class_names: ['cat', 'dog'], pictures: [{ class_name: 'dog' }], seq: 1 };
/** @param {number} seq @param {number} step @param {number} psnr */
const frame = (seq, step, psnr) => ({ kind: 'frame', seq, step, scores: { psnr }, labels: [1], picture: true });

/** @param {import('node:test').TestContext} t @param {number | null} [recorded] */
function open(t, recorded = null) {
  const page = openPage(t);
  const live = new RoomLive('r9', new RoomApi('/gle').run('KRT4P', 'r9', { key: 'k' }), { recorded });
  page.document.body.append(live.root);
  const { root } = live;
  const send = (/** @type {object} */ event) => page.sources[page.sources.length - 1].send(event);
  const words = (/** @type {string} */ name) => root.querySelector(name)?.textContent;
  return { page, live, root, send, words };
}

test('it shows the private picture and the newest frame with closeness, step and label', async (t) => {
  const { page, root, send, words } = open(t);
  assert.equal(page.sources[0].url, '/gle/api/class/KRT4P/runs/r9/events?key=k&since=0');
  send(META);
  send(frame(2, 10, 12.34));
  await page.tick();
  const folder = '/gle/api/class/KRT4P/runs/r9';
  assert.deepEqual(page.asked, [`${folder}/private.png?key=k`, `${folder}/frames/2.png?key=k`]);
  assert.equal(brushOf(root.querySelector('.gle-private canvas')).drawn[0].source, page.asked[0]);
  assert.deepEqual(
    [words('.gle-big'), words('.gle-verdict small'), words('.gle-attacker figcaption')],
    ['12.3 dB', 'step 10 of 100', 'dog'],
  );
});

test('while a picture loads, those in between are passed over', async (t) => {
  const { page, send, words } = open(t);
  page.serve = (address) => (address.includes('frames/2.') ? undefined : { width: 32, height: 32 });
  send(META);
  for (const [seq, step] of [[2, 10], [3, 20], [4, 30]]) send(frame(seq, step, step)); // prettier-ignore
  await page.tick();
  page.awaited.get(page.asked[1])?.({ width: 32, height: 32 });
  await page.tick();
  assert.deepEqual(page.asked.slice(1).map((address) => /frames\/(\d)/.exec(address)?.[1]), ['2', '4']); // prettier-ignore
  assert.equal(words('.gle-verdict small'), 'step 30 of 100');
});

test('at the end it shows the answer, which is not always the last frame, and listens no more', async (t) => {
  const { page, root, send, words } = open(t);
  send(META);
  send(frame(2, 10, 30));
  send(frame(3, 20, 10));
  await page.tick();
  send({ kind: 'end', status: 'done', answer: 2, seq: 4, ending: { how: 'answer', words: 'Attack finished' } });
  await page.tick();
  assert.deepEqual([root.dataset.step, words('[role=status]'), page.open.streams], ['10', 'Attack finished', 0]);
});

for (const [recorded, live, said] of /** @type {[number | null, number, boolean][]} */ ([
  [30.2, 30.1, true],
  [30.11, 30.09, false], // both 30.1 dB
  [30.2, 12.5, false], // more than the last digits
  [null, 30.1, false],
])) {
  test(`a recorded result of ${recorded} beside a live one of ${live} dB: rounding is ${said ? '' : 'not '}named, and only at the end`, async (t) => {
    const { page, root, send } = open(t, recorded);
    const hidden = () => [...root.querySelectorAll('.gle-foot')].map((words) => /** @type {HTMLElement} */ (words).hidden);
    send(META);
    send(frame(2, 10, live));
    await page.tick();
    assert.deepEqual(hidden(), [true]);
    send({ kind: 'end', status: 'done', answer: 2, seq: 3, ending: { how: 'answer', words: 'Attack finished' } });
    await page.tick();
    assert.deepEqual(hidden(), [!said]);
  });
}

test('a run that failed says why', (t) => {
  const { send, words } = open(t);
  send({ kind: 'state', status: 'failed', message: 'Out of memory.' });
  assert.equal(words('[role=status]'), 'Failed: Out of memory.');
});

test('destroyed, it leaves nothing behind', (t) => {
  const { page, live } = open(t);
  live.destroy();
  assert.deepEqual(page.open, NOTHING);
});

test('until there is a number it says Starting…, and a run that fails before has none', (t) => {
  const { send, words, root } = open(t);
  assert.equal(words('.gle-verdict'), 'Starting…\u00a0');
  send({ kind: 'state', status: 'failed', message: 'no memory' });
  assert.deepEqual([words('.gle-kind'), root.querySelector('.gle-verdict')?.childElementCount], ['Failed: no memory', 0]);
});
