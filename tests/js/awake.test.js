// A screen that stays awake while a lesson is presented.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Awake } from '../../leakage/ui/components/reader/awake.js';
import { openPage } from './page.js';

/** @param {import('node:test').TestContext} t */
function screen(t) {
  const page = openPage(t);
  const held = { asked: 0, released: 0 };
  const request = async () => {
    held.asked += 1;
    return { release: async () => void (held.released += 1) };
  };
  page.replace(page.window.navigator, 'wakeLock', { value: { request } });
  return { page, held, awake: new Awake() };
}

test('the lock is asked for once, again when the page comes back, and released at the end', async (t) => {
  const { page, held, awake } = screen(t);
  awake.set(true);
  awake.set(true);
  await page.tick();
  assert.deepEqual(held, { asked: 1, released: 0 });
  page.hide(true);
  await page.tick();
  assert.equal(held.asked, 1);
  page.hide(false);
  await page.tick();
  assert.deepEqual(held, { asked: 2, released: 1 });
  awake.set(false);
  page.hide(false);
  await page.tick();
  assert.deepEqual(held, { asked: 2, released: 2 });
});

test('a lock that comes after the end is released, and a browser that has none is no error', async (t) => {
  const { page, held, awake } = screen(t);
  awake.set(true);
  awake.set(false);
  await page.tick();
  assert.deepEqual(held, { asked: 1, released: 1 });
  page.replace(page.window.navigator, 'wakeLock', { value: undefined });
  awake.set(true);
  await page.tick();
  page.replace(page.window.navigator, 'wakeLock', { value: { request: async () => Promise.reject(new Error('saving the battery')) } });
  page.hide(false);
  await page.tick();
  assert.equal(awake.lock, null);
});
