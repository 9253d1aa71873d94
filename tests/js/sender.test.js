// The sender: what a file is by its name, one transfer after the other, what the page is told, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readableSize, roleWords, targetOf } from '../../leakage/ui/components/sender/naming.js';
import { Sender } from '../../leakage/ui/components/sender/sender.js';
import { openPage } from './page.js';

/** @typedef {{ address: string, file: File | null, progress: (done: number) => void, end: (problem?: string) => Promise<void>, stopped: boolean }} Sent */

/**
 * A sender on a page, the transfers that it has begun, and what it tells Python.
 * @param {import('./page.js').Page} page
 */
function make(page) {
  /** @type {Sent[]} */
  const sent = [];
  /** @type {string[]} */
  const told = [];
  const parent = page.component('sender');
  const sender = new Sender(parent, (address, file, progress) => {
    /** @type {(problem: string) => void} */
    let resolve = () => {};
    const problem = /** @type {Promise<string>} */ (new Promise((done) => (resolve = done)));
    const end = async (words = '') => {
      resolve(words);
      await new Promise((done) => setImmediate(done));
    };
    /** @type {Sent} */
    const one = { address, file, progress, end, stopped: false };
    sent.push(one);
    return { problem, abort: () => void ((one.stopped = true), resolve('Stopped.')) };
  });
  const update = (/** @type {object} */ data) => sender.update({ address: '/api/updates/a/b', ...data }, (name) => told.push(name));
  update({});
  const rows = () => [...parent.querySelectorAll('.gle-file')].map((row) => row.querySelector('b')?.textContent);
  const sizes = () => [...parent.querySelectorAll('.gle-file-size')].map((cell) => cell.textContent);
  const problems = () => [...parent.querySelectorAll('.gle-file-problem')].map((cell) => cell.textContent).filter(Boolean);
  const add = (/** @type {[string, number][]} */ ...files) => {
    for (const [name, size] of files) sender.add(/** @type {File} */ (/** @type {unknown} */ ({ name, size })));
    sender.paint();
    sender.sendNext();
  };
  return { sender, parent, sent, told, update, rows, sizes, problems, add };
}

test('a name says what a file is, or the visitor is asked', () => {
  const targets = [
    'before.npz',
    'Global_Weights.safetensors',
    'client3-after.npz',
    'delta.npz',
    'grads.npz',
    'x.JSON',
    'all.zip',
    'round7.npz',
  ];
  assert.deepEqual(
    targets.map((name) => targetOf(name).target),
    ['before.npz', 'before.safetensors', 'after.npz', 'difference.npz', 'gradient.npz', 'card.json', 'update.zip', ''],
  );
  assert.equal(targetOf('before_and_after.npz').target, '', 'two roles are none');
  assert.match(targetOf('model.pt').problem, /can run code/);
  assert.match(targetOf('notes.txt').problem, /no file of an update/);
  assert.equal(roleWords('after.npz'), 'Weights after the training');
  assert.deepEqual([5, 2048, 3 * 2 ** 20].map(readableSize), ['5 B', '2 kB', '3.0 MB']);
});

test('files go one after the other, with their progress, and the page is told of each', async (t) => {
  const page = openPage(t);
  const { sent, told, sizes, add, update, rows, sender } = make(page);
  add(['before.npz', 1000], ['after.npz', 4000]);
  assert.deepEqual(
    sent.map(({ address }) => address),
    ['/api/updates/a/b/before.npz'],
  );
  sent[0]?.progress(500);
  assert.deepEqual(sizes(), ['50 % of 1000 B', '4 kB']);
  await sent[0]?.end();
  assert.deepEqual(told, ['changed']);
  assert.equal(sent.length, 2);
  update({ files: { 'before.npz': 1000 } });
  assert.deepEqual(rows(), ['Weights before the training', 'Weights after the training'], 'what is on its way stays');
  await sent[1]?.end('There is no room for this file now.');
  assert.deepEqual(told, ['changed']);
  update({ files: { 'before.npz': 1000 } });
  assert.deepEqual(sizes(), ['1000 B ✓', '4 kB']);
  sender.destroy();
});

test('a file that is chosen again replaces the first, and what is too large or code is not sent', async (t) => {
  const page = openPage(t);
  const { sent, add, problems, rows, sender } = make(page);
  add(['gradient.npz', 10]);
  add(['gradient.npz', 20], ['model.pt', 5], ['after.npz', 300 * 2 ** 20]);
  assert.equal(sent[0]?.stopped, true);
  await sent[0]?.end();
  assert.deepEqual(rows(), ['Gradient', 'model.pt', 'after.npz']);
  assert.equal(problems().length, 2);
  assert.match(problems()[1] ?? '', /300\.0 MB; a file may have 200 MB/);
  assert.deepEqual(
    sent.map(({ file }) => file?.size),
    [10, 20],
  );
  sender.destroy();
});

test('other files begin with an empty list, and files that a run uses stay', (t) => {
  const page = openPage(t);
  const { update, rows, parent, sender } = make(page);
  update({ files: { 'gradient.npz': 10 }, closed: true });
  assert.deepEqual(rows(), ['Gradient']);
  assert.equal(/** @type {HTMLElement} */ (parent.querySelector('.gle-drop')).hidden, true);
  assert.equal(/** @type {HTMLElement} */ (parent.querySelector('.gle-file-remove')).hidden, true);
  update({ address: '/api/updates/a/c' });
  assert.deepEqual(rows(), []);
  sender.destroy();
});
