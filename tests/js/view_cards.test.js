// The view cards: a card for every step that shows pictures beside the guess, what stands on it, and where a press on it leads.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ViewCards, measured } from '../../leakage/ui/components/live/view_cards.js';
import { NOTHING, openPage } from './page.js';
import { frame } from './recorded.js';

const kept = (/** @type {number} */ seq, /** @type {object} */ more) => /** @type {any} */ (frame(seq, more));
const LAYER = { layer: 'conv2', rank: 1200, unknowns: 2400, equations: 1234, condition: 15.27, residual: 0.000456 };

/** @param {import('node:test').TestContext} t */
function viewCards(t) {
  const page = openPage(t);
  const host = page.document.createElement('div');
  page.document.body.append(host);
  /** @type {number[]} */
  const sought = [];
  const made = new ViewCards(host, (seq) => sought.push(seq));
  const lines = (/** @type {Element} */ card) => [...card.querySelectorAll('.gle-view-card-line')].map((line) => line.textContent);
  return { page, host, sought, made, lines, cards: () => /** @type {HTMLElement[]} */ ([...host.querySelectorAll('.gle-view-card')]) };
}

test('a layer tells what its equations determine', () => {
  assert.deepEqual(measured(LAYER), {
    share: 0.5,
    lines: ['1,200 of 2,400 unknowns', 'from 1,234 equations', 'condition 15', 'misfit 4.6·10⁻⁴'],
  });
  assert.deepEqual(measured({ ...LAYER, rank: 2400, condition: null }), {
    share: 1,
    lines: ['all 2,400 unknowns', 'from 1,234 equations', 'no unique solution', 'misfit 4.6·10⁻⁴'],
  });
  assert.deepEqual(measured({ layer: 'fc' }), { lines: ['fully connected:', 'read from its gradient'] });
});

test('candidates tell how far their gradients are from the one received', () => {
  const first = 'Both send the same gradient; relative distance';
  assert.deepEqual(measured({ 'distance of the picture': 0.125, 'distance of the twin': 1e-7 }), {
    lines: [first, 'of the picture 0.13', 'of its twin 1.0·10⁻⁷'],
  });
  const search = { 'distance of the twin': 0.5, 'start from the twin': 0.1, 'end from the twin': 0.0123 };
  assert.deepEqual(measured(search), {
    lines: [first, 'of its twin 0.5', 'DLG began 10 % away from the twin', 'and ended 1.2 % away'],
  });
  assert.deepEqual(measured({ 'distance of the twin': 0.5, 'end from the twin': 0.02 }).lines.slice(2), [
    'DLG began – % away from the twin',
    'and ended 2 % away',
  ]);
  assert.deepEqual(measured({}), { lines: [] });
  assert.deepEqual(measured({ 'end from the twin': 0.5 }), { lines: [] });
});

test('a layer gets a card with its picture, its bar and its lines', (t) => {
  const { made, cards, lines } = viewCards(t);
  made.update({ frames: [kept(1, {}), kept(2, { step: 3, note: LAYER, views: { 'conv2': 'data:,conv2' } })] }); // prettier-ignore
  const [card] = cards();
  assert.equal(cards().length, 1);
  assert.deepEqual([card.tagName, /** @type {HTMLButtonElement} */ (card).type, card.dataset.seq], ['BUTTON', 'button', '2']);
  assert.equal(card.querySelector('b')?.textContent, 'what enters conv2');
  const images = [...card.querySelectorAll('.gle-views .gle-view img')];
  assert.deepEqual(images.map((image) => [image.getAttribute('src'), image.getAttribute('alt')]), [['data:,conv2', 'conv2']]); // prettier-ignore
  assert.equal(card.querySelectorAll('.gle-view small').length, 0); // one picture needs no name
  const bar = /** @type {HTMLElement} */ (card.querySelector('.gle-rank'));
  assert.equal(/** @type {HTMLElement} */ (bar.firstElementChild).style.width, '50%');
  assert.equal(
    bar.title,
    'Condition: how much an error in the equations grows in their solution. Misfit: how far the equations are from holding.',
  );
  assert.deepEqual(lines(card), ['1,200 of 2,400 unknowns', 'from 1,234 equations', 'condition 15', 'misfit 4.6·10⁻⁴']);
});

test('titles and names: of the candidates, of the chosen one, of several pictures of a layer', (t) => {
  const { made, cards } = viewCards(t);
  const two = { 'the picture': 'data:,p', 'its twin': 'data:,t' };
  made.update({
    frames: [
      kept(1, { step: 1, views: two }),
      kept(2, { step: 2, views: two, note: { way: 'the picture' } }),
      kept(3, { step: 3, views: { 'the mean': 'data:,m' } }),
      kept(4, { step: 4, views: { 'conv1, picture 1': 'data:,1', 'conv1, picture 2, again': 'data:,2' }, note: { layer: 'conv1' } }),
    ],
  });
  assert.deepEqual(
    cards().map((card) => [
      card.querySelector('b')?.textContent,
      ...[...card.querySelectorAll('.gle-view small')].map((name) => name.textContent),
    ]),
    [
      ['the candidates', 'the picture', 'its twin'],
      ['the candidates: the picture is chosen', 'the picture', 'its twin'],
      ['the mean'],
      ['what enters conv1', 'picture 1', 'picture 2, again'],
    ],
  );
  assert.equal(cards()[0].querySelectorAll('.gle-rank').length, 0);
});

test('a frame comes once, an answer that is given again takes the place of the first', (t) => {
  const { made, cards } = viewCards(t);
  const frames = [kept(1, { step: 1, views: { a: 'data:,a' } }), kept(2, { step: 2, views: { b: 'data:,b' } })];
  made.update({ frames });
  const before = cards();
  made.update({ frames });
  assert.deepEqual(cards(), before);
  made.update({ frames: [...frames, kept(3, { step: 1, views: { again: 'data:,c' } })] });
  assert.deepEqual(cards().map((card) => [card.dataset.seq, card.querySelector('b')?.textContent]), [['3', 'again'], ['2', 'b']]); // prettier-ignore
  made.update({ frames: [kept(4, { step: 1, note: { layer: 'fc' }, views: { a: 'data:,a' } })] }); // same step, but a layer
  assert.deepEqual(cards().map((card) => card.dataset.seq), ['3', '2', '4']); // prettier-ignore
});

test('a press anywhere on a card seeks its frame, once; beside the cards nothing happens', (t) => {
  const { page, made, cards, sought, host } = viewCards(t);
  made.update({ frames: [kept(7, { views: { a: 'data:,a' } }), kept(9, { views: { b: 'data:,b' } })] });
  page.fire(cards()[1], 'click');
  page.fire(/** @type {Element} */ (cards()[0].querySelector('img')), 'click');
  page.fire(host, 'click');
  assert.deepEqual(sought, [9, 7]);
});

test('the card of the frame shown is current and in the middle, those after it wait', (t) => {
  const { page, made, cards, host } = viewCards(t);
  made.update({ frames: [3, 5, 8].map((seq) => kept(seq, { views: { a: `data:,${seq}` } })) });
  page.lay(host, { offsetLeft: 20, clientWidth: 300 });
  cards().forEach((card, place) => page.lay(card, { offsetLeft: 20 + 200 * place, clientWidth: 100 }));
  const seen = () => cards().map((card) => [card.getAttribute('aria-current'), card.classList.contains('gle-later')]);
  made.mark(5);
  assert.deepEqual(seen(), [[null, false], ['step', false], [null, true]]); // prettier-ignore
  assert.deepEqual(page.scrolled, [{ element: host, options: { left: 100 } }]); // 200 minus half of 300 - 100
  made.mark(5);
  made.mark(undefined);
  assert.equal(page.scrolled.length, 1);
  made.mark(4);
  assert.deepEqual(seen(), [[null, false], [null, true], [null, true]]); // prettier-ignore
  made.mark(8);
  assert.deepEqual(seen(), [[null, false], [null, false], ['step', false]]); // prettier-ignore
  assert.deepEqual(page.scrolled[1].options, { left: 300 });
});

test('another run starts with no cards, and the same numbers are heard again', (t) => {
  const { made, cards } = viewCards(t);
  const frames = [kept(5, { step: 1, views: { a: 'data:,a' } })];
  made.update({ frames });
  made.reset();
  assert.equal(cards().length, 0);
  made.update({ frames: [kept(2, { step: 1, views: { b: 'data:,b' } })] });
  assert.deepEqual(cards().map((card) => card.dataset.seq), ['2']); // prettier-ignore
});

test('it listens as long as it is there, and no longer', (t) => {
  const { page, made, cards, sought } = viewCards(t);
  made.update({ frames: [kept(7, { views: { a: 'data:,a' } })] });
  made.reset();
  made.update({ frames: [kept(7, { views: { a: 'data:,a' } })] });
  assert.deepEqual(page.open.listeners, ['click']);
  made.destroy();
  page.fire(cards()[0], 'click');
  assert.deepEqual([sought, page.open], [[], NOTHING]);
});

test('beside the answer the layer with too few equations is in view, and not before', (t) => {
  const { page, made, cards } = viewCards(t);
  const layers = [{ ...LAYER, rank: 2400 }, LAYER, { ...LAYER, layer: 'conv1', rank: 2400 }];
  const frames = layers.map((note, place) => kept(place + 1, { step: place + 1, note: { ...note, layer: `conv${3 - place}` }, views: { a: 'data:,' } })); // prettier-ignore
  made.update({ frames: [...frames, kept(4, { step: 4, note: {}, views: { 'the answer': 'data:,' } })] });
  cards().forEach((card, place) => page.lay(card, { offsetLeft: 100 * (place + 1), clientWidth: 100 }));
  const decisive = () => cards().filter((card) => card.classList.contains('gle-decisive')).map(({ dataset }) => dataset.seq); // prettier-ignore
  made.mark(3);
  assert.deepEqual(decisive(), []);
  made.mark(4);
  assert.deepEqual(decisive(), ['2']);
  assert.deepEqual(page.scrolled.map(({ options }) => options.left), [350, 250]); // prettier-ignore
  made.mark(1);
  assert.deepEqual(decisive(), []);
});
