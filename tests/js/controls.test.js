// The player's buttons, slider and keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find } from '../../leakage/ui/components/dom.js';
import { Controls } from '../../leakage/ui/components/live/controls.js';
import { openPage } from './page.js';

/**
 * The controls of a section with `count` pictures, and the places that they show.
 * @param {import('node:test').TestContext} test
 * @param {{ count?: number, place?: number, answer?: number, running?: boolean }} [now]
 */
function controlsOf(test, { count = 5, place = 0, answer = count - 1, running = false } = {}) {
  const page = openPage(test);
  const template = /** @type {HTMLTemplateElement} */ (find(page.component('live'), 'template'));
  const root = /** @type {HTMLElement} */ (find(template.content, '.gle-run').cloneNode(true));
  page.document.body.append(root);
  /** @type {number[]} */
  const shown = [];
  const controls = new Controls(root, { show: (at) => shown.push(at), ready: () => true, settled: () => {} });
  const news = (/** @type {object} */ more = {}) => controls.player.update({ count, place, answer, running, ...more });
  if (count) news();
  return { page, root, controls, player: controls.player, shown, news };
}

/** @param {Controls} controls */
const disabled = ({ play, back, forward, live, slider }) => [play, back, forward, live, slider].map((part) => part.disabled);

/** @param {HTMLElement} part */
const share = (part) => Number(part.style.getPropertyValue('--gle-part'));

test('without pictures nothing can be pressed', (t) => {
  const { controls } = controlsOf(t, { count: 0 });
  assert.deepEqual(disabled(controls), [true, true, true, true, true]);
  assert.deepEqual([controls.slider.max, controls.slider.value, share(controls.slider), share(controls.answer)], ['0', '0', 0, 0]);
  assert.equal(controls.answer.hidden, true);
});

test('one picture can be looked at, not played', (t) => {
  const { controls } = controlsOf(t, { count: 1 });
  assert.deepEqual(disabled(controls), [true, true, true, false, false]);
  assert.deepEqual([controls.slider.max, controls.slider.value, share(controls.slider)], ['0', '0', 0]);
  assert.equal(controls.answer.hidden, true);
  const two = controlsOf(t, { count: 2 });
  assert.deepEqual(disabled(two.controls), [false, false, false, false, false]);
});

test('the slider has a place for every picture and stands where the player does', (t) => {
  const { controls, player, news } = controlsOf(t, { place: 1 });
  const { slider } = controls;
  assert.deepEqual([slider.min, slider.max, slider.value, share(slider)], ['0', '4', '1', 0.25]);
  player.seek(4);
  assert.deepEqual([slider.value, share(slider)], ['4', 1]);
  news({ count: 9, place: 8 });
  assert.deepEqual([slider.max, slider.value, share(slider)], ['8', '8', 1], 'a value beyond the old end is not cut');
  news({ count: 9, place: -1 });
  assert.deepEqual([slider.value, share(slider)], ['0', 0]);
  news({ count: 3, place: 1 });
  assert.deepEqual([slider.max, slider.value, share(slider)], ['2', '1', 0.5]);
});

test('the buttons move the player by one, and to the result', (t) => {
  const { page, controls, shown } = controlsOf(t, { place: 2, answer: 1 });
  const { forward, back, live } = controls;
  for (const button of [forward, forward, back, live]) page.fire(button, 'click');
  assert.deepEqual(shown, [3, 4, 3, 1]);
});

test('the slider seeks while it is dragged', (t) => {
  const { page, controls, player, shown } = controlsOf(t);
  for (const value of ['3', '0', '2']) {
    controls.slider.value = value;
    page.fire(controls.slider, 'input');
  }
  assert.deepEqual([shown, player.mode], [[3, 0, 2], 'still']);
});

test('play becomes pause while it plays', async (t) => {
  const { page, controls, player, shown } = controlsOf(t);
  const face = () => [controls.play.getAttribute('aria-label'), controls.play.classList.contains('gle-playing')];
  assert.deepEqual(face(), ['Play', false]);
  page.fire(controls.play, 'click');
  assert.deepEqual([face(), player.mode], [['Pause', true], 'play']);
  await page.tick(400);
  assert.deepEqual([shown, controls.slider.value], [[0, 1], '1']);
  page.fire(controls.play, 'click');
  assert.deepEqual([face(), player.mode, player.place], [['Play', false], 'still', 1]);
});

test('the speed is that of the menu', async (t) => {
  const { page, controls, player, shown } = controlsOf(t);
  const speeds = [...controls.speed.options].map(({ value }) => value);
  assert.deepEqual(speeds, ['0.25', '0.5', '1', '2', '4']);
  controls.speed.value = '0.25';
  page.fire(controls.speed, 'change');
  assert.equal(player.speed, 0.25);
  player.play(0);
  await page.tick(1599);
  assert.deepEqual(shown, [0], '400 ms at a quarter of the speed are 1600');
  await page.tick(1);
  assert.deepEqual(shown, [0, 1]);
});

test('live while it runs, result afterwards; pressed where that is what one sees', (t) => {
  const { controls, player, news } = controlsOf(t, { place: 4, running: true });
  const face = () => [
    controls.live.textContent?.trim(),
    controls.live.getAttribute('aria-pressed'),
    controls.live.classList.contains('gle-onair'),
  ];
  assert.deepEqual(face(), ['Live', 'true', true]);
  player.seek(4);
  assert.deepEqual(face(), ['Live', 'false', true], 'the newest stands still');
  news({ running: false, answer: 2 });
  assert.deepEqual(face(), ['Result', 'false', false]);
  player.seek(2);
  assert.deepEqual(face(), ['Result', 'true', false]);
  player.play(2);
  assert.deepEqual(face(), ['Result', 'false', false], 'the answer in passing');
});

test('the answer has its mark, unless it is the last picture or not there yet', (t) => {
  const { controls, news } = controlsOf(t, { answer: 3, running: true });
  assert.equal(controls.answer.hidden, true);
  news({ running: false });
  assert.deepEqual([controls.answer.hidden, share(controls.answer)], [false, 0.75]);
  news({ running: false, answer: 4 });
  assert.equal(controls.answer.hidden, true);
  news({ running: false, answer: 0 });
  assert.deepEqual([controls.answer.hidden, share(controls.answer)], [false, 0]);
  news({ running: false, count: 1, answer: 3 });
  assert.deepEqual([controls.answer.hidden, share(controls.answer)], [true, 0]);
});

test('space plays, arrows step, Home and End jump, and the page does not scroll', (t) => {
  const { page, root, controls, player, shown } = controlsOf(t, { place: 2, answer: 1 });
  root.addEventListener('keydown', (event) => controls.key(event));
  const keys = ['ArrowLeft', 'ArrowRight', 'ArrowRight', 'Home', 'End'];
  const prevented = keys.map((key) => page.fire(root, 'keydown', { key }).defaultPrevented);
  assert.deepEqual([shown, prevented], [[1, 2, 3, 0, 4], keys.map(() => true)]); // prettier-ignore
  page.fire(root, 'keydown', { key: ' ' });
  assert.deepEqual([player.mode, player.place], ['play', 0]);
  page.fire(root, 'keydown', { key: ' ' });
  assert.equal(player.mode, 'still');
});

test('other keys, and keys with Alt, Ctrl or Meta, are not ours', (t) => {
  const { page, root, controls, shown } = controlsOf(t, { place: 2 });
  root.addEventListener('keydown', (event) => controls.key(event));
  const others = [{ key: 'a' }, { key: 'Enter' }, ...['altKey', 'ctrlKey', 'metaKey'].map((name) => ({ key: 'ArrowLeft', [name]: true }))];
  for (const init of others) assert.equal(page.fire(root, 'keydown', init).defaultPrevented, false);
  assert.deepEqual(shown, []);
});

test('a menu keeps all keys, a button and a summary keep the space bar', (t) => {
  const { page, root, controls, player, shown } = controlsOf(t, { place: 2 });
  root.addEventListener('keydown', (event) => controls.key(event));
  for (const key of [' ', 'ArrowLeft', 'Home']) assert.equal(page.fire(controls.speed, 'keydown', { key }).defaultPrevented, false);
  for (const part of [controls.play, find(root, 'summary')]) assert.equal(page.fire(part, 'keydown', { key: ' ' }).defaultPrevented, false);
  assert.deepEqual([shown, player.mode], [[], 'follow']);
  page.fire(controls.play, 'keydown', { key: 'ArrowLeft' });
  page.fire(controls.slider, 'keydown', { key: 'ArrowLeft' });
  page.fire(controls.slider, 'keydown', { key: ' ' });
  assert.deepEqual([shown, player.mode], [[1, 0, 0], 'play'], 'the slider steps by our pictures');
});

test('the slider says where it stands to those who hear the page', (t) => {
  const { controls } = controlsOf(t);
  controls.say('step 5 of 300, PSNR 6.1 dB');
  assert.equal(controls.slider.getAttribute('aria-valuetext'), 'step 5 of 300, PSNR 6.1 dB');
});

test('gone: no button does anything, and no clock is left', (t) => {
  const { page, controls, shown, player } = controlsOf(t);
  player.play(0);
  controls.destroy();
  const { play, back, forward, live, slider, speed } = controls;
  for (const button of [play, back, forward, live]) page.fire(button, 'click');
  slider.value = '3';
  page.fire(slider, 'input');
  speed.value = '4';
  page.fire(speed, 'change');
  assert.deepEqual([shown, player.speed, page.open.frames, page.open.listeners], [[0], 1, 0, []]); // prettier-ignore
});
