// The event stream: closed while nobody looks, opened again where it stopped, patient with errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stream } from '../../leakage/ui/components/live/stream.js';
import { NOTHING, openPage } from './page.js';

/**
 * A stream that asks for what comes after the last event it heard.
 * @param {import('node:test').TestContext} test
 * @param {{ hidden?: boolean, random?: number }} [way] `random` is what Math.random gives: at 0.5 a pause is as long as planned
 */
function open(test, { hidden = false, random = 0.5 } = {}) {
  const page = openPage(test);
  test.mock.method(Math, 'random', () => random);
  page.hidden = hidden;
  /** @type {{ event: any, seq: number }[]} */
  const heard = [];
  const since = () => `/api/runs/stream?ids=r&since=${heard[heard.length - 1]?.seq ?? 0}`;
  const stream = new Stream(since, (event, seq) => heard.push({ event, seq }));
  const urls = () => page.sources.map(({ url }) => Number(url.split('since=')[1]));
  const newest = () => page.sources[page.sources.length - 1];
  return { page, stream, heard, urls, newest };
}

test('it listens at once, and hands on every event with its number, once', (t) => {
  const { page, heard, newest } = open(t);
  assert.deepEqual(
    page.sources.map(({ url }) => url),
    ['/api/runs/stream?ids=r&since=0'],
  );
  newest().send({ kind: 'state', status: 'queued' });
  newest().send({ kind: 'frame', seq: 12 }, 12);
  newest().send({ kind: 'frame', seq: 13 }, 13);
  newest().send({ kind: 'note' }, 'no number');
  assert.deepEqual(heard, [
    { event: { kind: 'state', status: 'queued' }, seq: 0 },
    { event: { kind: 'frame', seq: 12 }, seq: 12 },
    { event: { kind: 'frame', seq: 13 }, seq: 13 },
    { event: { kind: 'note' }, seq: 0 },
  ]);
});

test('closed while hidden, open again where it stopped', (t) => {
  const { page, newest, urls } = open(t);
  newest().send({}, 7);
  page.hide(true);
  assert.deepEqual(page.open, { ...NOTHING, listeners: ['visibilitychange'] });
  page.hide(true);
  page.hide(false);
  assert.deepEqual(urls(), [0, 7]);
  assert.equal(page.open.streams, 1);
  page.hide(false);
  assert.deepEqual(urls(), [0, 7], 'visible twice is one stream');
  newest().send({}, 8);
  page.hide(true);
  page.hide(false);
  assert.deepEqual(urls(), [0, 7, 8]);
});

test('born in a hidden tab it waits until somebody looks', (t) => {
  const { page, stream } = open(t, { hidden: true });
  assert.equal(page.sources.length, 0);
  stream.open();
  assert.equal(page.sources.length, 0);
  page.hide(false);
  assert.equal(page.open.streams, 1);
});

test('after an error it closes, waits, and goes on after the last event heard', async (t) => {
  const { page, newest, urls } = open(t);
  newest().send({}, 41);
  newest().fail();
  assert.deepEqual([page.open.streams, page.open.timers], [0, 1]);
  await page.tick(499);
  assert.deepEqual(urls(), [0]);
  await page.tick(1);
  assert.deepEqual(urls(), [0, 41]);
  assert.equal(page.open.timers, 0);
});

/**
 * The pauses before so many new attempts, to the millisecond.
 * @param {ReturnType<typeof open>} opened
 * @param {number} attempts
 */
async function pauses({ page, newest }, attempts) {
  const measured = [];
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    newest().fail();
    measured.push(Math.min(...[...page.jobs.values()].map(({ at }) => at)) - page.now);
    assert.equal(page.jobs.size, 1);
    await page.tick(measured[attempt]);
  }
  return measured;
}

test('every failure doubles the pause, up to 15 seconds', async (t) => {
  const opened = open(t);
  assert.deepEqual(await pauses(opened, 7), [500, 1000, 2000, 4000, 8000, 15000, 15000]);
  assert.equal(opened.page.sources.length, 8);
});

test('a quarter more or less, at random, so that not all come back at once', async (t) => {
  assert.deepEqual(await pauses(open(t, { random: 0 }), 2), [375, 750]);
  assert.deepEqual(await pauses(open(t, { random: 1 }), 2), [625, 1250]);
});

test('one event heard makes the next pause short again; an opened line alone does not', async (t) => {
  const opened = open(t);
  await pauses(opened, 3);
  opened.newest().send({}, 1);
  assert.deepEqual(await pauses(opened, 2), [500, 1000]);
});

test('hidden while it waits: no attempt; visible again: at once, and only one', async (t) => {
  const { page, newest } = open(t);
  newest().fail();
  page.hide(true);
  assert.equal(page.open.timers, 0);
  await page.tick(20000);
  assert.equal(page.sources.length, 1);
  page.hide(false);
  assert.equal(page.sources.length, 2);
  newest().fail();
  page.hide(false);
  assert.deepEqual([page.sources.length, page.open.timers], [3, 0], 'the waiting attempt is overtaken');
  await page.tick(20000);
  assert.equal(page.sources.length, 3);
});

test('closed it hears nothing, and neither time nor looking opens it again', async (t) => {
  const { page, stream, heard, newest } = open(t);
  stream.close();
  assert.deepEqual(page.open, NOTHING);
  newest().send({}, 3);
  assert.deepEqual(heard, []);
  page.hide(true);
  page.hide(false);
  stream.open();
  await page.tick(20000);
  assert.equal(page.sources.length, 1);
});

test('closed while it waits after an error: no attempt follows', async (t) => {
  const { page, stream, newest } = open(t);
  newest().fail();
  stream.close();
  assert.deepEqual(page.open, NOTHING);
  await page.tick(20000);
  assert.equal(page.sources.length, 1);
});

test('an error that comes after the close opens nothing', async (t) => {
  const { page, stream, newest } = open(t);
  const { onerror } = newest();
  stream.close();
  onerror?.();
  await page.tick(20000);
  assert.equal(page.open.streams, 0);
});
