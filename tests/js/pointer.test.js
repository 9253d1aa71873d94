// The pointer of a presentation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestingPointer } from '../../leakage/ui/components/reader/pointer.js';
import { NOTHING, openPage } from './page.js';

test('the pointer hides after two seconds without moving, and shows when the mouse moves', async (t) => {
  const page = openPage(t);
  const pointer = new RestingPointer();
  const hides = () => page.document.documentElement.classList.contains('gle-pointer-rests');
  const move = (/** @type {number} */ screenX) =>
    page.document.dispatchEvent(new page.window.MouseEvent('mousemove', { screenX, screenY: 5 }));
  pointer.set(true);
  move(7);
  await page.tick(1999);
  assert.equal(hides(), false);
  move(7); // the page changed below it
  await page.tick(1);
  assert.equal(hides(), true);
  move(7);
  assert.equal(hides(), true);
  move(8);
  assert.equal(hides(), false);
  await page.tick(2000);
  assert.equal(hides(), true);
  pointer.set(false);
  assert.equal(hides(), false);
  assert.deepEqual(page.open, NOTHING);
});
