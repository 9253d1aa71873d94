// The three places of a run, in the words that a visitor reads.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelsRight } from '../../leakage/ui/components/live/labels.js';
import { layTiles } from '../../leakage/ui/components/live/pictures.js';
import { captionGuesses, layBoth, markTwins, tellReceived, tellWhere } from '../../leakage/ui/components/live/zones.js';
import { brushOf, openPage } from './page.js';
import { recorded } from './recorded.js';

const { meta: META } = recorded();

/** @param {import('node:test').TestContext} t */
function run(t) {
  const page = openPage(t);
  const template = /** @type {HTMLTemplateElement} */ (page.component('live').querySelector('template'));
  const root = /** @type {HTMLElement} */ (template.content.querySelector('.gle-run')?.cloneNode(true));
  page.document.body.append(root);
  const one = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (root.querySelector(selector));
  return {
    page,
    root,
    one,
    truth: one('.gle-truth'),
    guess: one('.gle-guess'),
    text: (/** @type {string} */ selector) => one(selector).textContent,
  };
}

const tiles = (/** @type {HTMLElement} */ grid) =>
  [...grid.children].map((tile) => ({
    words: [...tile.querySelectorAll('figcaption > *')].map((part) => part.textContent),
    label: tile.querySelector('canvas')?.getAttribute('aria-label'),
    mark: tile.querySelector('figcaption')?.dataset.mark,
  }));

test('where the pictures are, what travels, and what the guesses are made of', (t) => {
  const { root, text } = run(t);
  const told = () =>
    [
      '.gle-private h4',
      '.gle-private .gle-where',
      '.gle-private .gle-foot',
      '.gle-network h4',
      '.gle-network .gle-where',
      '.gle-attacker .gle-where',
      '.gle-sum span',
    ].map(text);
  tellWhere(root, {}, 1);
  assert.deepEqual(told(), [
    'The private picture',
    'on the phone',
    'It never leaves the phone.\nOnly numbers do.',
    'What the server receives',
    'over the network: the gradient',
    'rebuilt from the gradient alone',
    'averaged on the phone',
  ]);
  tellWhere(root, { sent: 'sums over 4 phones', phones: 4, plain: true, receiver: 'another phone' }, 8);
  assert.deepEqual(told(), [
    'The private pictures',
    'on 4 phones',
    'They never leave their phones.\nOnly numbers do.',
    'What another phone receives',
    'over the network: sums over 4 phones',
    'rebuilt from sums over 4 phones alone',
    'mixed on 4 phones, then added up',
  ]);
  tellWhere(root, { sent: 'the weights', plain: false }, 2); // the same place shows a run of a server again
  assert.deepEqual(
    [text('.gle-sum span'), text('.gle-private .gle-foot'), text('.gle-network h4')],
    ['mixed by the local steps', 'They never leave the phone.\nOnly numbers do.', 'What the server receives'],
  );
});

test('tiles for both sides: titles, classes below them in a batch, and no guess yet', (t) => {
  const { truth, guess } = run(t);
  layBoth({ truth, guess }, META.pictures, 1);
  assert.deepEqual(tiles(truth), [{ words: ['Astronaut', ''], label: 'Astronaut, class person', mark: '' }]);
  assert.deepEqual(tiles(guess), [{ words: ['', ''], label: 'not reconstructed yet', mark: '' }]);
  const pictures = [
    { title: 'Astronaut', class_name: 'person', label: 0 },
    { title: '', class_name: 'cat', label: 1 },
  ];
  layBoth({ truth, guess }, pictures, 2);
  assert.deepEqual(tiles(truth), [
    { words: ['Astronaut', 'person'], label: 'Astronaut', mark: '' },
    { words: ['cat', ''], label: 'cat', mark: '' },
  ]);
  assert.deepEqual([truth.childElementCount, guess.childElementCount], [2, 2]);
});

test('in a batch every guess has the word of its own verdict below itself; a single one leaves that to the verdict', (t) => {
  const { truth, guess } = run(t);
  const marked = () => [...guess.children].map((tile) => /** @type {HTMLElement} */ (tile).dataset.word);
  const pictures = [1, 2, 3, 4].map(() => ({ title: '', class_name: 'cat', label: 1 }));
  layBoth({ truth, guess }, pictures, 4);
  const words = ['recognizable', 'singled out', 'partly', 'not shown by this attack'];
  captionGuesses(guess, { labels: undefined, each: [21.04, 15, 14, 9], words, meta: { ...META, pictures } });
  assert.deepEqual(
    tiles(guess).map((tile) => tile.words.at(-1)),
    ['21.0 dB, recognizable', '15.0 dB, singled out', '14.0 dB, partly', '9.0 dB, not shown'],
  );
  assert.deepEqual(marked(), words);
  layBoth({ truth, guess }, pictures.slice(1), 1);
  captionGuesses(guess, { labels: undefined, each: [21], words, meta: { ...META, pictures } });
  assert.deepEqual(marked(), ['']);
});

test('a label counts as right wherever it stands in the batch, once for each picture of its class', () => {
  assert.deepEqual(labelsRight([2, 0, 1], [0, 1, 2]), [true, true, true]); // all of them, in another order
  assert.deepEqual(labelsRight([1, 1, 1], [0, 1, 2]), [false, true, false]); // one picture of class 1: in its place
  assert.deepEqual(labelsRight([3, 3, 0], [0, 3, 3]), [true, true, true]);
  assert.deepEqual(labelsRight([5, 0, undefined], [0, 1, 2]), [false, true, false]);
});

test('what the server receives: strips, and how many numbers they stand for', (t) => {
  const { root, one, text } = run(t);
  tellReceived(root, META.received, 1);
  assert.equal(text('.gle-received'), '15,826 numbers, 63 kB:\nthis is all that is sent.');
  assert.equal(one('.gle-layers').childElementCount, 8);
  assert.deepEqual(brushOf(one('.gle-layers canvas')).pixels.length, 4 * 64);
  assert.deepEqual([one('.gle-singles').hidden, one('.gle-single-rows').childElementCount], [true, 0]);
  tellReceived(root, { layers: [], singles: [[0], [255]], entries: 12, bytes: 2_500_000 }, 2);
  assert.equal(text('.gle-received'), '12 numbers, 2.5 MB:\nthis is all that is sent.');
  assert.deepEqual([one('.gle-singles').hidden, one('.gle-single-rows').childElementCount], [false, 2]);
  tellReceived(root, { singles: [[0]] }, 1); // of one picture there is nothing to add up
  assert.deepEqual([one('.gle-singles').hidden, text('.gle-received')], [true, 'This is all that is sent.']);
});

test('below each guess its class, whether it is right, and at the answer how close it is', (t) => {
  const { guess } = run(t);
  layTiles(guess, 3, []);
  const pictures = [
    { title: 'Astronaut', class_name: 'person', label: 0 },
    { title: 'Chelsea', class_name: 'cat', label: 1 },
    { title: '', class_name: 'cat', label: 1 },
  ];
  const meta = { ...META, pictures, class_names: ['person', 'cat'], labels_granted: false };
  captionGuesses(guess, { labels: [0, 0, 7], each: null, meta });
  assert.deepEqual(tiles(guess), [
    { words: ['person', ''], label: 'Reconstruction of Astronaut, guessed class person (right)', mark: 'right' },
    { words: ['person', ''], label: 'Reconstruction of Chelsea, guessed class person (wrong)', mark: 'wrong' },
    { words: ['class 7', ''], label: 'Reconstruction, guessed class 7 (wrong)', mark: 'wrong' },
  ]);
  captionGuesses(guess, { labels: [0, 1, 1], each: [50.62, null, 0], meta });
  assert.deepEqual(
    tiles(guess).map(({ words, mark }) => [...words, mark]),
    [
      ['person', '50.6 dB', 'right'],
      ['cat', '', 'right'],
      ['cat', '0.0 dB', 'right'],
    ],
  );
  captionGuesses(guess, { meta });
  assert.deepEqual(tiles(guess)[0], { words: ['', ''], label: 'Reconstruction of Astronaut', mark: '' });
});

test('classes that were given are neither right nor wrong', (t) => {
  const { guess } = run(t);
  layTiles(guess, 1, []);
  captionGuesses(guess, { labels: [0], meta: { ...META, labels_granted: true } });
  assert.deepEqual([tiles(guess)[0].mark, tiles(guess)[0].words], ['', ['person', '']]);
  assert.equal(tiles(guess)[0].label, 'Reconstruction of Astronaut, given class person');
});

test('the picture that is pointed at and its twin are marked, alone', (t) => {
  const { truth, guess, one } = run(t);
  layBoth({ truth, guess }, [], 3);
  const marked = () => [truth, guess].map((grid) => [...grid.children].map((tile) => Number(tile.classList.contains('gle-twin'))));
  markTwins([truth, guess], guess.children[1].querySelector('canvas'));
  assert.deepEqual(marked(), [[0, 1, 0], [0, 1, 0]]); // prettier-ignore
  markTwins([truth, guess], truth.children[2]);
  assert.deepEqual(marked(), [[0, 0, 1], [0, 0, 1]]); // prettier-ignore
  markTwins([truth, guess], one('.gle-title'));
  assert.deepEqual(marked(), [[0, 0, 0], [0, 0, 0]]); // prettier-ignore
  markTwins([truth, guess], truth.children[0]);
  markTwins([truth, guess], null);
  assert.deepEqual(marked(), [[0, 0, 0], [0, 0, 0]]); // prettier-ignore
  layBoth({ truth, guess }, [], 1);
  markTwins([truth, guess], truth.children[0]);
  assert.deepEqual(marked(), [[0], [0]]); // one has no twin to look for
});
