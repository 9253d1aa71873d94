// How near a guess is to the visitor's picture, and in which word: as the program says it, in a file that tests/ui/test_browser_likeness.py keeps.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { blindPictures } from '../../leakage/ui/components/own/blind_pictures.js';
import { Likeness, decibels, similarity, squaredError } from '../../leakage/ui/components/own/likeness.js';
import { momentsOf } from '../../leakage/ui/components/own/ssim.js';

const { pictures, others, judged } = JSON.parse(readFileSync(new URL('likeness_cases.json', import.meta.url), 'utf8'));
const SIZE = { channels: 3, side: 32 };

/** @param {string} text bytes in base64 */
const pictureOf = (text) => Float32Array.from(Buffer.from(text, 'base64'), (byte) => byte / 255);
/** @type {Record<string, Float32Array>} */
const named = Object.fromEntries(Object.entries(pictures).map(([name, text]) => [name, pictureOf(text)]));
const lineup = others.map(pictureOf);

for (const name of new Set(judged.map((/** @type {{ private: string }} */ one) => one.private))) {
  const likeness = new Likeness(named[name], lineup, SIZE);
  for (const { private: truth, guess, count, psnr, ssim, word, rank } of judged) {
    if (truth !== name) continue;
    test(`${guess} as a guess of ${truth}, one of ${count}: ${word}`, () => {
      assert.ok(Math.abs(decibels(named[guess], named[truth]) - psnr) < 1e-6);
      assert.ok(Math.abs(similarity(named[guess], named[truth], SIZE) - ssim) < 1e-6);
      assert.deepEqual(likeness.judge(named[guess], count), { word, rank, size: lineup.length + 1 });
    });
  }
}

test('scores of flat pictures can be worked out by hand', () => {
  const flat = (/** @type {number} */ value) => new Float32Array(64).fill(value);
  const size = { channels: 1, side: 8 };
  assert.equal(squaredError(flat(1), flat(0)), 1);
  assert.ok(Math.abs(decibels(flat(1), flat(0))) < 1e-12);
  assert.ok(Math.abs(decibels(flat(0.75), flat(0.5)) - 12.0412) < 1e-4); // 10 log10(16)
  assert.equal(decibels(flat(0.5), flat(0.5)), 100);
  assert.ok(Math.abs(similarity(flat(1), flat(0), size) - 1e-4 / 1.0001) < 1e-12); // C1 / (1 + C1)
});

test('a copy of the private picture in the line-up does not compete with it', () => {
  const photo = named.photo;
  const again = photo.map((value) => Math.min(1, value + 0.01)); // another file of the same picture
  const { rank, size } = new Likeness(photo, [again, ...lineup], SIZE).judge(photo);
  assert.deepEqual([rank, size], [1, lineup.length + 1]);
});

test('a tie in the line-up counts half', () => {
  const size = { channels: 1, side: 8 };
  const truth = Float32Array.from({ length: 64 }, (_, i) => (i % 3 ? 0 : 0.5));
  const likeness = new Likeness(truth, [truth.map((value) => 0.5 - value), new Float32Array(64).fill(0.25)], size);
  assert.equal(likeness.ranks(momentsOf(new Float32Array(64).fill(0.25), size))[0], 2.5); // behind one, level with one
});

test('without a line-up no place counts, and a word is still said', () => {
  assert.deepEqual(new Likeness(named.photo, [], SIZE).judge(named.photo), { word: 'recognizable', rank: null, size: 1 });
});

test('what shows nothing: grey, black, white, the mean colour, the mean of the line-up, and noise that is the same each time', () => {
  const size = { channels: 3, side: 8 };
  const truth = Float32Array.from({ length: 192 }, (_, i) => (i < 64 ? 0.25 : i < 128 ? 0.5 : 1) * (i % 2));
  const [one, other] = [new Float32Array(192).fill(0.25), new Float32Array(192).fill(0.75)];
  const { plain, blurred } = blindPictures(truth, [one, other], size);
  assert.deepEqual(
    plain.slice(0, 5).map((picture) => [picture[0], picture[64], picture[128]]),
    [
      [0.5, 0.5, 0.5],
      [0, 0, 0],
      [1, 1, 1],
      [0.125, 0.25, 0.5],
      [0.5, 0.5, 0.5],
    ],
  );
  assert.equal(plain[5][0], Math.fround(48271 / 2147483647));
  assert.deepEqual(blindPictures(truth, [], size).plain[4], new Float32Array(192).fill(0.5));
  assert.equal(blurred.length, 4);
  for (const picture of blurred) {
    const mean = picture.reduce((sum, value) => sum + value, 0) / 192;
    const deviation = Math.sqrt(picture.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 192);
    assert.ok(Math.abs(mean - 0.5) < 0.01 && Math.abs(deviation - 0.15) < 0.01);
    assert.deepEqual(picture.slice(0, 64), picture.slice(64, 128)); // equal in all channels
  }
});
