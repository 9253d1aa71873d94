// What is sent and what stays: the picture that Python drew, in its place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mount } from '../../leakage/ui/components/sent/sent.js';
import { NOTHING, openPage } from './page.js';

const drawn = (/** @type {string} */ words) =>
  `<svg viewBox="0 0 340 84" role="img" aria-label="${words}"><circle class="gle-sum"></circle></svg>`;
const send = () => assert.fail('this component has nothing to tell Python');

test('the picture stands in its place, a new one takes the place of the old, and nothing empties it', (t) => {
  const page = openPage(t);
  const parent = page.component('sent');
  const host = /** @type {HTMLElement} */ (parent.querySelector('.gle-sent'));
  const sent = mount(parent);
  for (const picture of [drawn('The phone keeps its pictures.'), drawn('Each of 4 phones keeps its pictures.'), '']) {
    sent.update({ picture }, send);
    assert.equal(host.innerHTML, picture);
  }
  sent.update({ picture: drawn('again') }, send);
  sent.update({}, send);
  assert.equal(host.innerHTML, '');
});

test('the same picture again is left as it is, so that its animation does not start over', (t) => {
  const page = openPage(t);
  const parent = page.component('sent');
  const sent = mount(parent);
  sent.update({ picture: drawn('one') }, send);
  const before = parent.querySelector('svg');
  sent.update({ picture: drawn('one') }, send);
  assert.ok(before);
  assert.equal(parent.querySelector('svg'), before);
});

test('it leaves nothing behind', (t) => {
  const page = openPage(t);
  const sent = mount(page.component('sent'));
  sent.update({ picture: drawn('one') }, send);
  sent.destroy();
  assert.deepEqual(page.open, NOTHING);
});

test('it says when its HTML is another one', (t) => {
  const page = openPage(t);
  assert.throws(() => mount(page.component('picker')), /The component's HTML has no \.gle-sent\./);
});
