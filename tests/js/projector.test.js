// The projector view: one key and a button, both ways, and nothing of it is left when the stage goes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stage } from '../../leakage/ui/components/live/stage.js';
import { openPage } from './page.js';

/** @param {import('node:test').TestContext} t @param {string[]} ids */
function show(t, ...ids) {
  const page = openPage(t, { calm: true });
  const parent = page.component('live');
  const stage = new Stage(parent);
  stage.update({ runs: ids.map((id) => ({ id })), base: '' }, () => {});
  const root = page.document.documentElement;
  const on = () => root.classList.contains('gle-projecting');
  const buttons = () => [...parent.querySelectorAll('.gle-project')];
  const key = (/** @type {string} */ name, on = page.document.body, more = {}) => page.fire(on, 'keydown', { key: name, ...more });
  return { page, parent, stage, on, buttons, key };
}

test('f shows it, f or Escape takes it away, and runs and stream stay as they are', (t) => {
  const { page, on, key } = show(t, 'a');
  const run = page.document.querySelector('.gle-run');
  assert.equal(key('Escape').defaultPrevented, false);
  assert.equal(key('f').defaultPrevented, true);
  assert.equal(on(), true);
  key('f');
  assert.equal(on(), false);
  key('f');
  key('Escape');
  assert.equal(on(), false);
  assert.equal(page.document.querySelector('.gle-run'), run);
  assert.equal(page.sources.length, 1);
});

test('the buttons of all runs say whether it is on, also of runs that come later', (t) => {
  const { page, stage, on, buttons } = show(t, 'a', 'b');
  page.fire(/** @type {Element} */ (buttons()[1].querySelector('svg')), 'click');
  assert.equal(on(), true);
  assert.deepEqual(buttons().map((button) => button.getAttribute('aria-pressed')), ['true', 'true']); // prettier-ignore
  stage.update({ runs: ['c', 'd', 'e'].map((id) => ({ id })), base: '' }, () => {});
  assert.deepEqual(buttons().map((button) => button.getAttribute('aria-pressed')), ['true', 'true', 'true']); // prettier-ignore
  page.fire(buttons()[0], 'click');
  assert.equal(on(), false);
});

test('whoever writes an f, or holds Ctrl, wants something else; a slider writes nothing', (t) => {
  const { page, on, key } = show(t, 'a');
  for (const [tag, type] of [['input', 'text'], ['input', 'number'], ['textarea', ''], ['select', '']]) {
    const field = /** @type {HTMLInputElement} */ (page.document.createElement(tag));
    if (type) field.type = type;
    page.document.body.append(field);
    key('f', field);
    assert.equal(on(), false, `${tag} ${type}`);
  } // prettier-ignore
  key('f', page.document.body, { ctrlKey: true });
  assert.equal(on(), false);
  key('f', /** @type {HTMLElement} */ (page.document.querySelector('.gle-slider')));
  assert.equal(on(), true);
});

test('a stage that goes takes the view along', (t) => {
  const { stage, on, key } = show(t, 'a');
  key('f');
  stage.destroy();
  assert.equal(on(), false);
  key('f');
  assert.equal(on(), false);
});

test('while it is shown, the keys of a lesson move what plays, Space does not leave it, and b makes it black', (t) => {
  const { page, stage, on, buttons, key } = show(t, 'a');
  /** @type {string[]} */
  const done = [];
  const { player } = stage.views[0].controls;
  for (const name of /** @type {const} */ (['forward', 'back', 'toggle'])) player[name] = () => void done.push(name);
  key('n');
  assert.deepEqual(done, []); // outside of it the page keeps its keys
  /** @type {HTMLElement} */ (buttons()[0]).focus();
  page.fire(buttons()[0], 'click');
  assert.equal(on(), true);
  assert.notEqual(page.document.activeElement, buttons()[0]); // Space would press it
  for (const name of [' ', 'ArrowRight', 'PageDown', 'n', 'ArrowLeft', 'PageUp', 'p', 'k']) assert.equal(key(name).defaultPrevented, true);
  assert.deepEqual(done, ['forward', 'forward', 'forward', 'forward', 'back', 'back', 'back', 'toggle']);
  assert.equal(on(), true);
  const black = /** @type {HTMLElement} */ (page.document.querySelector('.gle-projector-black'));
  key('b');
  assert.equal(black.hidden, false);
  key('.');
  assert.equal(black.hidden, true);
  key('b');
  key('Escape');
  assert.deepEqual([on(), black.hidden], [false, true]);
});
