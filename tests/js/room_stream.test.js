// The stream of a room: what is silent is given up, and many phones do not come back within the same second.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RoomStream } from '../../leakage/ui/components/room/room_stream.js';
import { NOTHING, openPage } from './page.js';

/**
 * @param {import('node:test').TestContext} test
 * @param {{ random?: number, alone?: boolean }} [way] `random` is what Math.random gives
 */
function open(test, { random = 0, alone = false } = {}) {
  const page = openPage(test);
  test.mock.method(Math, 'random', () => random);
  /** @type {string[]} */
  const told = [];
  const listener = {
    hear: (/** @type {any} */ state) => told.push(`beat ${state.beat}`),
    lost: () => told.push('lost'),
    found: () => told.push('found'),
    refused: () => told.push('refused'),
    alone,
  };
  const stream = new RoomStream(() => '/api/class/KRT4P/events?slot=s', listener);
  const newest = () => page.sources[page.sources.length - 1];
  return { page, stream, told, newest };
}

test('it hands on every state', (t) => {
  const { page, told, newest } = open(t);
  newest().send({ beat: 1 });
  newest().send({ beat: 2 });
  assert.deepEqual(told, ['beat 1', 'beat 2']);
  assert.deepEqual([page.sources.length, newest().url], [1, '/api/class/KRT4P/events?slot=s']);
});

test('after 12 s of silence it is lost, once; the next state says that it is found', async (t) => {
  const { page, told, newest } = open(t);
  newest().send({ beat: 1 });
  await page.tick(11999);
  assert.deepEqual(told, ['beat 1']);
  await page.tick(1);
  assert.deepEqual([told.at(-1), page.sources[0].closed], ['lost', true]);
  await page.tick(60000);
  assert.deepEqual(told, ['beat 1', 'lost']);
  newest().send({ beat: 1 });
  newest().send({ beat: 2 });
  assert.deepEqual(told, ['beat 1', 'lost', 'found', 'beat 1', 'beat 2']);
});

test('a message every 5 s keeps it open', async (t) => {
  const { page, told, newest } = open(t);
  for (let beat = 1; beat < 10; beat += 1) {
    newest().send({ beat });
    await page.tick(5000);
  }
  assert.deepEqual([page.sources.length, told.includes('lost')], [1, false]);
});

/**
 * Milliseconds from each failure to the next attempt.
 * @param {ReturnType<typeof open>} opened
 * @param {number} count
 */
async function pauses({ page, newest }, count) {
  const measured = [];
  for (let attempt = 0; attempt < count; attempt += 1) {
    const [before, from] = [page.sources.length, page.now];
    newest().fail();
    while (page.sources.length === before) await page.tick(100);
    measured.push(page.now - from);
  }
  return measured;
}

test('the first pause is 0.5 to 8 s, later ones 5 to 12 s, and a message makes the next one a first one', async (t) => {
  const soonest = open(t, { random: 0 });
  assert.deepEqual(await pauses(soonest, 3), [500, 5000, 5000]);
  soonest.newest().send({ beat: 1 });
  assert.deepEqual(await pauses(soonest, 1), [500]);
});

test('the longest pauses, and those of a page that is alone', async (t) => {
  assert.deepEqual(await pauses(open(t, { random: 1 }), 2), [12000, 12000]);
  assert.deepEqual(await pauses(open(t, { random: 1, alone: true }), 2), [2000, 2000]);
});

for (const [random, patience] of [
  [0, 12000],
  [1, 20000],
]) {
  test(`an attempt that hangs is given up after ${patience / 1000} s at random ${random}`, async (t) => {
    const { page } = open(t, { random });
    await page.tick(patience - 1);
    assert.deepEqual([page.sources.length, page.sources[0].closed], [1, false]);
    await page.tick(1);
    assert.equal(page.sources[0].closed, true);
    await page.tick(12000);
    assert.equal(page.sources.length, 2);
  });
}

test('only after an HTTP error it says that it was refused', (t) => {
  const { told, newest } = open(t);
  newest().fail();
  assert.deepEqual(told, []);
  const refused = open(t);
  Object.assign(refused.newest(), { readyState: 2 });
  refused.newest().fail();
  assert.deepEqual(refused.told, ['refused']);
});

test('hidden it neither listens nor counts the silence; visible again it listens at once', async (t) => {
  const { page, told, newest } = open(t);
  newest().send({ beat: 1 });
  page.hide(true);
  assert.deepEqual(page.open, { ...NOTHING, listeners: ['visibilitychange'] });
  await page.tick(60000);
  page.hide(false);
  assert.deepEqual([page.sources.length, told], [2, ['beat 1']]);
});

test('closed it leaves nothing behind', async (t) => {
  const { page, stream, newest } = open(t);
  newest().fail();
  stream.close();
  assert.deepEqual(page.open, NOTHING);
  page.hide(true);
  page.hide(false);
  await page.tick(20000);
  assert.equal(page.sources.length, 1);
});
