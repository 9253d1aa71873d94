// The picker: what is picked and what is added, in which order, how many at most, and what Python is told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mount, Picker, toggled } from '../../leakage/ui/components/picker/picker.js';
import { NOTHING, openPage } from './page.js';

/** @typedef {import('./page.js').Page} Page */

const ITEMS = ['a', 'b', 'c', 'd', 'e'].map((id) => ({
  id,
  title: `Cat ${id}`,
  class_name: 'cat',
  alt: `a cat, ${id}`,
  thumb: `data:,${id}`,
}));
const NOW = 1_700_000_000_000; // the page's clock

/**
 * A picker on a page, what it sends, and how its buttons look.
 * @param {Page} page
 * @param {object} data
 */
function pick(page, data) {
  const parent = page.component('picker');
  const picker = new Picker(parent);
  /** @type {[string, any][]} */
  const sent = [];
  const update = (/** @type {object} */ told) => picker.update({ items: ITEMS, ...told }, (name, value) => sent.push([name, value]));
  update(data);
  const button = (/** @type {string} */ id) => /** @type {HTMLElement} */ (parent.querySelector(`[data-id="${id}"]`));
  const plus = (/** @type {string} */ id) => /** @type {HTMLElement} */ (button(id).nextElementSibling);
  const count = () => parent.querySelector('.gle-picker-count')?.textContent;
  const pressed = () => picker.buttons.filter((one) => one.getAttribute('aria-pressed') === 'true').map((one) => one.dataset.id);
  const stops = () => picker.buttons.filter((one) => one.getAttribute('tabindex') === '0').map((one) => one.dataset.id);
  return {
    picker,
    sent,
    update,
    button,
    count,
    pressed,
    stops,
    press: (/** @type {string} */ id) => page.fire(button(id), 'click'),
    plus,
    add: (/** @type {string} */ id) => page.fire(plus(id), 'click'),
  };
}

test('adding puts a picture at the end or takes it out, never more than the limit, and never the last one', () => {
  assert.deepEqual(toggled(['b'], 'a', 2), ['b', 'a']);
  assert.deepEqual(toggled(['b', 'a', 'c'], 'a', 3), ['b', 'c']);
  assert.equal(toggled(['a', 'b'], 'c', 2), null);
  assert.equal(toggled(['a'], 'a', 2), null);
  assert.deepEqual(toggled(['a', 'b', 'c'], 'c', 2), ['a', 'b']);
  const picked = ['a'];
  toggled(picked, 'b', 3);
  assert.deepEqual(picked, ['a']);
});

test('every picture is a button with its picture, its title and its place', (t) => {
  const page = openPage(t);
  const { button } = pick(page, {
    items: [...ITEMS.slice(0, 1), { id: 'x', thumb: 'data:,x' }, { id: 'y', title: 'Y', thumb: 'data:,y' }],
  });
  const one = /** @type {HTMLButtonElement} */ (button('a'));
  assert.deepEqual([one.type, one.className, one.title], ['button', 'gle-pick', 'Cat a, cat']);
  const image = /** @type {HTMLImageElement} */ (one.querySelector('img'));
  assert.deepEqual([image.getAttribute('src'), image.alt, image.draggable], ['data:,a', 'a cat, a', false]);
  assert.deepEqual([...one.children].map((part) => part.className), ['', 'gle-pick-title', 'gle-pick-place']); // prettier-ignore
  assert.equal(one.querySelector('.gle-pick-title')?.textContent, 'Cat a');
  assert.equal(one.querySelector('.gle-pick-place')?.getAttribute('aria-hidden'), 'true');
  assert.deepEqual([button('x').querySelector('.gle-pick-title')?.textContent, button('x').title], ['x', '']);
  assert.equal(button('x').querySelector('img')?.alt, '');
  assert.deepEqual([button('y').querySelector('img')?.alt, button('y').title], ['Y', 'Y']);
});

test('a press takes that picture alone; + adds it, − takes it out; each is sent once, with a number that grows', async (t) => {
  const page = openPage(t);
  const { sent, press, add, plus, pressed, button, count } = pick(page, { selected: ['c'] });
  assert.deepEqual([pressed(), count(), sent], [['c'], 'Press + on a picture to add it to the batch.', []]);
  press('a');
  await page.tick(5);
  page.fire(/** @type {Element} */ (button('b').querySelector('img')), 'click');
  assert.deepEqual(sent.map(([name, { ids }]) => [name, ids]), [['selected', ['a']], ['selected', ['b']]]); // prettier-ignore
  const [first, second] = sent.map(([, { click }]) => click);
  assert.ok(first >= NOW && first <= NOW + 1 && second >= NOW + 5 && second <= NOW + 6);
  const signs = () => ['a', 'b', 'c'].map((id) => (plus(id).hidden ? '' : plus(id).textContent));
  assert.deepEqual(signs(), ['+', '', '+']);
  add('a');
  page.fire(button('c'), 'click', { ctrlKey: true });
  assert.deepEqual([sent[3][1].ids, signs(), count()], [['b', 'a', 'c'], ['−', '−', '−'], '3 pictures in the batch']);
  assert.deepEqual(['b', 'a', 'c'].map((id) => button(id).querySelector('.gle-pick-place')?.textContent), ['1', '2', '3']); // prettier-ignore
  assert.deepEqual(['b', 'a', 'd'].map((id) => button(id).getAttribute('aria-description')), ['number 1 in the batch', 'number 2 in the batch', '']); // prettier-ignore
  assert.deepEqual([plus('d').getAttribute('aria-label'), plus('a').title], ['Add Cat d to the batch', 'Take Cat a out of the batch']);
  add('b');
  assert.deepEqual(
    [sent[4][1].ids, pressed()],
    [
      ['a', 'c'],
      ['a', 'c'],
    ],
  );
  assert.deepEqual(['a', 'c'].map((id) => button(id).querySelector('.gle-pick-place')?.textContent), ['1', '2']); // prettier-ignore
  press('c');
  page.fire(button('c'), 'click', { shiftKey: true });
  assert.deepEqual([sent.length, pressed(), count()], [6, ['c'], 'One picture stays.']);
});

test('a press beside the pictures sends nothing', (t) => {
  const page = openPage(t);
  const { sent, picker } = pick(page, {});
  page.fire(picker.grid, 'click');
  assert.deepEqual(sent, []);
});

test('above the limit nothing is added or sent, a sentence says why, and every + is disabled', (t) => {
  const page = openPage(t);
  const { sent, add, press, plus, pressed, count } = pick(page, { selected: ['a'], limit: 2 });
  const disabled = () => ['a', 'b', 'c'].map((id) => plus(id).getAttribute('aria-disabled'));
  assert.deepEqual(disabled(), ['false', 'false', 'false']);
  add('b');
  assert.deepEqual([disabled(), sent.length], [['false', 'false', 'true'], 1]);
  add('c');
  assert.deepEqual([count(), pressed(), sent.length], ['At most 2 pictures: take one out first.', ['a', 'b'], 1]);
  press('c');
  assert.deepEqual([pressed(), disabled(), sent.length], [['c'], ['false', 'false', 'false'], 2]);
});

test('what Python says is taken, unless a newer press is on its way', (t) => {
  const page = openPage(t);
  const { sent, add, pressed, update } = pick(page, { selected: ['a'] });
  add('b');
  const { click } = sent[0][1];
  update({ selected: ['a'], click: 0 });
  assert.deepEqual(pressed(), ['a', 'b']); // Python has not heard of it yet
  update({ selected: ['d', 'e'], click });
  assert.deepEqual(pressed(), ['d', 'e']);
  update({ selected: [], click: click + 10 });
  assert.deepEqual([pressed(), sent.length], [[], 1]);
});

test('pictures that are no longer there are no longer picked; no limit again means none', (t) => {
  const page = openPage(t);
  const { pressed, update, add, sent } = pick(page, { selected: ['a', 'b'], limit: 2 });
  update({ items: ITEMS.slice(1), selected: ['a', 'b', 'nobody'], limit: null });
  assert.deepEqual(pressed(), ['b']);
  add('c');
  add('d');
  assert.deepEqual(sent[1][1].ids, ['b', 'c', 'd']);
});

test('the same pictures keep their buttons, others take their place, and a press is still heard once', (t) => {
  const page = openPage(t);
  const { update, button, press, sent, picker } = pick(page, {});
  const before = button('a');
  update({ items: ITEMS.map((item) => ({ ...item })), selected: ['a'] });
  assert.equal(button('a'), before);
  update({ items: ITEMS.map((item) => (item.id === 'a' ? { ...item, thumb: 'data:,another' } : item)) });
  assert.notEqual(button('a'), before);
  assert.equal(button('a').querySelector('img')?.getAttribute('src'), 'data:,another');
  update({ items: ITEMS.map((item) => ({ ...item, title: `Dog ${item.id}` })) });
  assert.equal(button('b').querySelector('.gle-pick-title')?.textContent, 'Dog b');
  assert.equal(picker.buttons.length, 5);
  press('a');
  assert.equal(sent.length, 1);
});

test('the grid is one tab stop: the first that is picked, then wherever the focus is', (t) => {
  const page = openPage(t);
  const { stops, button, plus } = pick(page, { selected: ['c', 'b'] });
  assert.deepEqual(stops(), ['b']);
  button('d').focus();
  assert.deepEqual([stops(), plus('d').tabIndex, plus('b').tabIndex], [['d'], 0, -1]);
  plus('d').focus();
  assert.deepEqual(stops(), ['d']);
  const bare = pick(page, {});
  assert.deepEqual(bare.stops(), ['a']);
  bare.update({ selected: ['e'] });
  assert.deepEqual(bare.stops(), ['a']); // it does not wander under the visitor
});

test('arrow keys walk the grid as it is laid out, Home and End go to its ends, and nothing else is taken', (t) => {
  const page = openPage(t);
  const { picker, button, sent } = pick(page, {});
  picker.grid.style.gridTemplateColumns = '80px 80px';
  const walk = (/** @type {string} */ from, /** @type {string} */ key) => {
    button(from).focus();
    const event = page.fire(button(from), 'keydown', { key });
    return [/** @type {HTMLElement} */ (page.document.activeElement).dataset.id, event.defaultPrevented];
  };
  assert.deepEqual(walk('b', 'ArrowLeft'), ['a', true]);
  assert.deepEqual(walk('b', 'ArrowRight'), ['c', true]);
  assert.deepEqual(walk('b', 'ArrowDown'), ['d', true]);
  assert.deepEqual(walk('d', 'ArrowUp'), ['b', true]);
  assert.deepEqual(walk('d', 'Home'), ['a', true]);
  assert.deepEqual(walk('b', 'End'), ['e', true]);
  assert.deepEqual(walk('e', 'ArrowRight'), ['e', true]); // there is no further
  assert.deepEqual(walk('a', 'ArrowLeft'), ['a', true]);
  assert.deepEqual(walk('b', 'Enter'), ['b', false]);
  assert.deepEqual(walk('b', 'Tab'), ['b', false]);
  assert.equal(page.fire(picker.grid, 'keydown', { key: 'End' }).defaultPrevented, false);
  assert.deepEqual(sent, []);
});

test('it listens as long as it is there, and no longer', (t) => {
  const page = openPage(t);
  const { picker, press, sent, button, stops } = pick(page, {});
  assert.deepEqual(page.open.listeners, ['click', 'focusin', 'keydown']);
  picker.destroy();
  assert.deepEqual(page.open, NOTHING);
  press('a');
  button('c').focus();
  assert.deepEqual([sent, stops()], [[], ['a']]);
});

test('mount makes a picker of the element', (t) => {
  const page = openPage(t);
  const parent = page.component('picker');
  const component = mount(parent);
  component.update({ items: ITEMS }, () => {});
  assert.equal(parent.querySelectorAll('.gle-pick').length, 5);
  component.destroy();
  assert.deepEqual(page.open, NOTHING);
});
