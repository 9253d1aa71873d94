// A picture file as numbers, and the files that cannot be used.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PictureFileError, numbersOf, readPicture } from '../../leakage/ui/components/own/picture_file.js';
import { openPage } from './page.js';

const COLOUR = { side: 32, channels: 3 };

/**
 * @param {import('node:test').TestContext} t
 * @param {import('./page.js').Size | null} served null: the browser cannot decode the file
 * @param {string} name
 * @param {string} [type]
 */
async function refusal(t, served, name, type = '') {
  const page = openPage(t);
  page.serve = () => served;
  /** @type {string[]} */
  const revoked = [];
  page.replace(URL, 'revokeObjectURL', { value: (/** @type {string} */ address) => revoked.push(address) });
  const words = await readPicture(new File(['x'], name, { type }), COLOUR).then(
    () => 'taken',
    (error) => (error instanceof PictureFileError ? error.message : 'another error'),
  );
  assert.deepEqual(revoked, page.asked); // the browser need not keep the file
  return words;
}

test('a file that is no picture is refused with what to choose', async (t) => {
  const words = 'This browser cannot read the file as a picture. Choose a JPEG, PNG, WebP or GIF file.';
  assert.equal(await refusal(t, null, 'letter.pdf', 'application/pdf'), words);
});

test('HEIC is named, by type or by name, since phones write it', async (t) => {
  const words = 'This browser cannot read HEIC pictures. Save the picture as JPEG, or take one with the camera here.';
  assert.equal(await refusal(t, null, 'IMG_1.HEIC'), words);
  assert.equal(await refusal(t, null, 'picture', 'image/heif'), words);
  assert.equal(await refusal(t, { width: 64, height: 64, pixels: [0, 0, 0, 255] }, 'IMG_1.HEIC'), 'taken'); // where the browser can
});

test('too few and too many pixels are refused with both sides', async (t) => {
  assert.match(
    await refusal(t, { width: 7, height: 900 }, 'a.png'),
    /^The picture has 7 x 900 pixels\. Choose one with at least 8 on each/,
  );
  assert.equal(await refusal(t, { width: 8, height: 8, pixels: [0, 0, 0, 255] }, 'a.png'), 'taken');
  const words = await refusal(t, { width: 15_001, height: 10_000 }, 'a.png');
  assert.equal(words, 'The picture has 15001 x 10000 pixels, more than this page can read. Choose a smaller one.');
  assert.equal(await refusal(t, { width: 15_000, height: 10_000, pixels: [0, 0, 0, 255] }, 'a.png'), 'taken');
});

test('colours lie one after another, and grey is the luminance', () => {
  const image = { data: [255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 255], width: 2, height: 2 };
  assert.deepEqual([...numbersOf(image, 3)], [1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
  const grey = [...numbersOf(image, 1)].map((value) => Number(value.toFixed(6)));
  assert.deepEqual(grey, [0.299, 0.587, 0.114, 1]); // ITU-R BT.601
});
