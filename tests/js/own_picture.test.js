// "Try your own picture": a file becomes a picture of a few pixels, and nothing stays open.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeWorker } from './own.js';
import { PARTS, PIXELS, TRUTH, openOwn, photo } from './own_setup.js';
import { NOTHING, brushOf } from './page.js';

const digit = new File(['digit'], 'digit.png', { type: 'image/png' });

test('without a picture there is nothing to start', async (t) => {
  const { one, start, cards } = openOwn(t);
  assert.equal(one('.gle-own-controls').hidden, true);
  assert.equal(one('.gle-own-choose').textContent, 'Choose or take a picture');
  await start();
  assert.deepEqual([cards(), FakeWorker.all], [[], []]);
});

test('the Lab is named with a link to these settings, and not at all to a guest, who may not go there', (t) => {
  const foots = [false, true].map((guest) => openOwn(t, { guest }).one('.gle-own-limits'));
  assert.deepEqual(foots.map((foot) => foot.querySelectorAll('a').length), [1, 0]); // prettier-ignore
  assert.deepEqual(foots.map((foot) => /the Lab/i.test(foot.textContent ?? '')), [true, false]); // prettier-ignore
});

test('a file becomes a preview of what the phone trains on, and the page says that the file never left', async (t) => {
  const { own, one, choose } = openOwn(t);
  await choose(photo);
  assert.deepEqual(own.read?.picture, TRUTH);
  assert.deepEqual(brushOf(one('.gle-own-preview canvas')).pixels.slice(0, 3), PIXELS.slice(0, 3));
  assert.match(
    one('.gle-own-preview').textContent ?? '',
    /The phone trains on the middle of your picture, in 32 x 32 pixels\. It never left this device/,
  );
  assert.equal(one('.gle-own-choose').textContent, 'Another picture');
  assert.equal(one('.gle-own-controls').hidden, false);
  assert.equal(one('.gle-own-controls').firstElementChild, one('.gle-own-start')); // in sight on a phone
});

test('the middle square of a picture is taken, and reduced by halves at most', async (t) => {
  const { page, choose } = openOwn(t);
  /** @type {[number[], number[]][]} */
  const steps = [];
  const create = page.document.createElement.bind(page.document);
  page.replace(page.document, 'createElement', {
    value: (/** @type {string} */ name) => {
      const made = create(name);
      if (name === 'canvas') {
        const brush = brushOf(made);
        const draw = brush.drawImage.bind(brush);
        brush.drawImage = (/** @type {any} */ image, /** @type {number[]} */ ...cut) => {
          steps.push([cut.slice(0, 4), cut.slice(4)]);
          draw(image, ...cut);
        };
      }
      return made;
    },
  });
  await choose(photo);
  assert.deepEqual(steps, [
    [
      [80, 0, 480, 480],
      [0, 0, 240, 240],
    ],
    [
      [0, 0, 240, 240],
      [0, 0, 120, 120],
    ],
    [
      [0, 0, 120, 120],
      [0, 0, 60, 60],
    ],
    [
      [0, 0, 60, 60],
      [0, 0, 32, 32],
    ],
  ]);
});

test('another network reads the file again in its size', async (t) => {
  const { own, one, choose } = openOwn(t);
  await choose(photo);
  own.use({ network: 'mnist_cnn' });
  await new Promise((done) => void setImmediate(done));
  assert.equal(own.read?.picture?.length, 28 * 28);
  assert.match(one('.gle-own-preview').textContent ?? '', /in 28 x 28 pixels/);
  assert.match(one('.gle-own-limits').textContent ?? '', /at 28 x 28 pixels/);
  const address = one('.gle-own-limits a').getAttribute('href') ?? '';
  assert.match(address, /^\/\?v=1&model=mnist_cnn&channels=1&size=28&/);
});

test('a slow file does not replace a later one; a file that cannot be used leaves the picture as it is', async (t) => {
  const { page, own, one, choose } = openOwn(t);
  page.serve = () => undefined;
  await choose(photo);
  const [slow] = page.awaited.values();
  page.serve = () => ({ width: 64, height: 64, pixels: [0, 0, 0, 255] });
  await choose(digit);
  slow({ width: 640, height: 480, pixels: PIXELS });
  await page.tick();
  assert.equal(own.file, digit);
  assert.equal(own.read?.picture?.[0], 0);
  page.serve = () => null;
  await choose(new File(['words'], 'words.txt', { type: 'text/plain' }));
  assert.match(one('.gle-own-problem').textContent ?? '', /^This browser cannot read the file as a picture/);
  assert.equal(own.file, digit);
  page.serve = () => ({ width: 640, height: 480, pixels: PIXELS });
  await choose(photo);
  assert.equal(one('.gle-own-problem').textContent, '');
});

test('whoever leaves ends the worker, and nothing stays open', async (t) => {
  const { page, own, choose, start } = openOwn(t);
  await choose(photo);
  const worker = await start();
  const text = await (await fetch(worker.address)).text();
  assert.equal(text, PARTS.worker);
  own.destroy();
  assert.equal(worker.ended, true);
  assert.deepEqual(page.open, NOTHING);
  await assert.rejects(fetch(worker.address));
});
