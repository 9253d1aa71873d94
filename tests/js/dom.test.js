// The little that every component needs of the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childrenOf, element, find, prefersCalm } from '../../leakage/ui/components/dom.js';
import { openPage } from './page.js';

test('an element is made with its class and its text', (t) => {
  openPage(t);
  const made = element('small', 'gle-one gle-two', '<b> & more');
  assert.equal(made.outerHTML, '<small class="gle-one gle-two">&lt;b&gt; &amp; more</small>');
  assert.equal(element('p', '').textContent, '');
});

test('the first element that matches is found, below the host alone', (t) => {
  const { document } = openPage(t);
  document.body.innerHTML = '<i class="a" id="outside"></i><div><i class="a" id="first"></i><i class="a" id="second"></i></div>';
  const host = /** @type {HTMLElement} */ (document.querySelector('div'));
  assert.equal(find(host, '.a').id, 'first');
  assert.throws(() => find(host, '.gle-none'), new Error("The component's HTML has no .gle-none."));
});

test('children are an array of the elements, without text and without grandchildren', (t) => {
  const { document } = openPage(t);
  document.body.innerHTML = '<div>text<i id="a"><b id="deep"></b></i> <i id="b"></i></div>';
  const children = childrenOf(/** @type {HTMLElement} */ (document.querySelector('div')));
  assert.ok(Array.isArray(children));
  assert.deepEqual(
    children.map(({ id }) => id),
    ['a', 'b'],
  );
});

test('calm is whoever asked for less motion, asked anew every time', (t) => {
  const page = openPage(t, { calm: true });
  assert.equal(prefersCalm(), true);
  page.calm = false;
  assert.equal(prefersCalm(), false);
});
