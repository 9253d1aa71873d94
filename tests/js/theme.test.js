// The theme's colours as numbers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colourOf, isDark, themeOf } from '../../leakage/ui/components/live/theme.js';
import { openPage } from './page.js';

/** @param {import('node:test').TestContext} t @param {Record<string, string>} colours */
function themed(t, colours) {
  const page = openPage(t);
  const host = page.document.createElement('div');
  page.document.body.append(host);
  for (const [name, value] of Object.entries(colours)) host.style.setProperty(name, value);
  return { page, host };
}

test('a colour is what the canvas paints of it, white where there is none, and nothing stays on the page', (t) => {
  const { host } = themed(t, { '--gle-warm': 'rgb(200, 100, 50)', '--gle-cool': '#0a141e' });
  assert.deepEqual(colourOf(host, '--gle-warm'), [200, 100, 50]);
  assert.deepEqual(colourOf(host, '--gle-cool'), [10, 20, 30]);
  assert.deepEqual(colourOf(host, '--gle-none'), [255, 255, 255]);
  assert.equal(host.childElementCount, 0);
});

test('every part of the figure has the colour that the style sheet gives it', (t) => {
  const names = ['gle-text', 'gle-soft', 'gle-line', 'st-background-color', 'gle-warm', 'gle-cool', 'gle-warm-ink', 'gle-cool-ink'];
  const colours = Object.fromEntries(names.map((name, number) => [`--${name}`, `rgb(${number}, 0, 9)`]));
  const { host } = themed(t, colours);
  host.style.fontFamily = 'Inter';
  assert.deepEqual(themeOf(host), {
    ...{ font: 'Inter', text: 'rgb(0,0,9)', soft: 'rgb(1,0,9)', line: 'rgb(2,0,9)', paper: 'rgb(3,0,9)' },
    ...{ psnr: 'rgb(4,0,9)', loss: 'rgb(5,0,9)', warm: 'rgb(6,0,9)', cool: 'rgb(7,0,9)' },
  });
});

test('dark is a background below half of the light', (t) => {
  const { host } = themed(t, {});
  const dark = (/** @type {string} */ colour) => {
    host.style.setProperty('--st-background-color', colour);
    return isDark(host);
  };
  assert.deepEqual([dark('#0e1117'), dark('#ffffff'), dark('rgb(127, 127, 127)'), dark('rgb(129, 129, 129)')], [true, false, true, false]);
  assert.deepEqual([dark('rgb(255, 0, 0)'), dark('rgb(0, 255, 0)'), dark('rgb(0, 0, 255)')], [true, false, true]); // 77, 153, 26
  host.style.removeProperty('--st-background-color');
  assert.equal(isDark(host), false);
});
