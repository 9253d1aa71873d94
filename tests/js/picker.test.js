// The picker: what is picked, in which order, how many at most, and what Python is told.
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
  const count = () => parent.querySelector('.gle-picker-count')?.textContent;
  const pressed = () => picker.buttons.filter((one) => one.getAttribute('aria-pressed') === 'true').map((one) => one.dataset.id);
  const stops = () => picker.buttons.filter((one) => one.getAttribute('tabindex') === '0').map((one) => one.dataset.id);
  return { picker, sent, update, button, count, pressed, stops, press: (/** @type {string} */ id) => page.fire(button(id), 'click') };
}

test('a press adds at the end or takes out, never more than the limit, and one like a radio button', () => {
  assert.deepEqual(toggled([], 'a', 2), ['a']);
  assert.deepEqual(toggled(['b'], 'a', 2), ['b', 'a']);
  assert.deepEqual(toggled(['b', 'a', 'c'], 'a', 3), ['b', 'c']);
  assert.equal(toggled(['a', 'b'], 'c', 2), null);
  assert.deepEqual(toggled(['a'], 'b', 1), ['b']);
  assert.deepEqual(toggled(['a'], 'a', 1), []);
  assert.deepEqual(toggled(['a', 'b'], 'c', Infinity), ['a', 'b', 'c']);
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

test('a press is sent once, in the order of picking, with a number that grows', async (t) => {
  const page = openPage(t);
  const { sent, press, pressed, button, count } = pick(page, { selected: ['c'] });
  assert.deepEqual([pressed(), count(), sent], [['c'], '1 picked', []]);
  press('a');
  await page.tick(5);
  page.fire(/** @type {Element} */ (button('b').querySelector('img')), 'click');
  assert.deepEqual(sent.map(([name, { ids }]) => [name, ids]), [['selected', ['c', 'a']], ['selected', ['c', 'a', 'b']]]); // prettier-ignore
  const [first, second] = sent.map(([, { click }]) => click);
  assert.ok(first >= NOW && first <= NOW + 1 && second >= NOW + 5 && second <= NOW + 6);
  const places = ['c', 'a', 'b'].map((id) => button(id).querySelector('.gle-pick-place')?.textContent);
  assert.deepEqual(places, ['1', '2', '3']);
  assert.deepEqual(['c', 'a', 'd'].map((id) => button(id).getAttribute('aria-description')), ['number 1 in the batch', 'number 2 in the batch', '']); // prettier-ignore
  assert.equal(count(), '3 picked');
  press('c');
  assert.deepEqual(sent[2][1].ids, ['a', 'b']);
  assert.deepEqual(['a', 'b'].map((id) => button(id).querySelector('.gle-pick-place')?.textContent), ['1', '2']); // prettier-ignore
  assert.equal(button('c').getAttribute('aria-pressed'), 'false');
});

test('a press beside the pictures sends nothing', (t) => {
  const page = openPage(t);
  const { sent, picker } = pick(page, {});
  page.fire(picker.grid, 'click');
  assert.deepEqual(sent, []);
});

test('above the limit nothing is picked or sent, a sentence says why, and the others are disabled', (t) => {
  const page = openPage(t);
  const { sent, press, pressed, button, count } = pick(page, { selected: ['a'], limit: 2 });
  const disabled = () => ['a', 'b', 'c'].map((id) => button(id).getAttribute('aria-disabled'));
  assert.deepEqual([count(), disabled()], ['1 of at most 2 picked', ['false', 'false', 'false']]);
  press('b');
  assert.deepEqual([count(), disabled(), sent.length], ['2 of at most 2 picked', ['false', 'false', 'true'], 1]);
  press('c');
  assert.deepEqual([count(), pressed(), sent.length], ['At most 2 pictures: take one out first.', ['a', 'b'], 1]);
  press('a');
  assert.deepEqual([count(), disabled(), sent.length], ['1 of at most 2 picked', ['false', 'false', 'false'], 2]);
});

test('with a limit of one a press takes the place of the picture before, and nothing is disabled', (t) => {
  const page = openPage(t);
  const { sent, press, pressed, button, count } = pick(page, { selected: ['a'], limit: 1 });
  assert.equal(button('b').getAttribute('aria-disabled'), 'false');
  press('b');
  assert.deepEqual([pressed(), sent[0][1].ids, count()], [['b'], ['b'], '1 of at most 1 picked']);
  press('b');
  assert.deepEqual([pressed(), sent[1][1].ids, count()], [[], [], 'Pick at least one picture.']);
});

test('what Python says is taken, unless a newer press is on its way', (t) => {
  const page = openPage(t);
  const { sent, press, pressed, update } = pick(page, { selected: ['a'] });
  press('b');
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
  const { pressed, update, press, count, sent } = pick(page, { selected: ['a', 'b'], limit: 2 });
  update({ items: ITEMS.slice(1), selected: ['a', 'b', 'nobody'], limit: null });
  assert.deepEqual([pressed(), count()], [['b'], '1 picked']);
  press('c');
  press('d');
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
  const { stops, button } = pick(page, { selected: ['c', 'b'] });
  assert.deepEqual(stops(), ['b']);
  button('d').focus();
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
