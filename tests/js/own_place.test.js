// Where a lesson offers a choice with the visitor's own picture: settings that a page can compute open with these settings.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { link } from '../../leakage/ui/components/reader/source.js';
import { OwnPlace } from '../../leakage/ui/components/reader/own.js';
import { WhatIf } from '../../leakage/ui/components/reader/whatif.js';
import { bringOwn, scriptsOf } from './own.js';
import { openPage } from './page.js';

const SETTINGS = [{ seed: 1 }, { seed: 2 }, null];
const GRID = {
  ...{ title: 'What if', plot: null, film: null, class_names: [] },
  knobs: [{ name: 'seed', values: SETTINGS.map((_, place) => ({ label: `choice ${place}`, number: place })) }],
  cells: SETTINGS.map((own) => ({ lab: null, own, answer: null })),
};
const lab = (/** @type {string | null} */ query, /** @type {string} */ words) => link(`/?${query}`, words);

/**
 * @param {import('node:test').TestContext} t
 * @param {string} own
 */
function offer(t, own) {
  const page = openPage(t);
  const [scripts, made] = [scriptsOf(page), bringOwn(t)];
  const grid = new WhatIf(GRID, { film: '', lab, own });
  page.document.body.append(grid.root);
  const here = () => /** @type {HTMLElement} */ (grid.root.querySelector('.gle-own-here'));
  return { page, grid, scripts, made, here, press: () => here().querySelector('button')?.click() };
}

test('a choice that a page can compute opens with its settings, and the next gives its settings to what is open', async (t) => {
  const { page, grid, scripts, made, here, press } = offer(t, '/own.grid.js');
  assert.equal(here().textContent, 'Compute it here, with your own picture');
  press();
  page.fire(scripts[0], 'load');
  await page.tick();
  assert.deepEqual(made[0].how.begin, { seed: 1 });
  assert.equal(made[0].root.parentElement?.parentElement, grid.root);
  grid.turn(0, 1);
  press();
  await page.tick();
  assert.deepEqual([made.length, made[0].used], [1, [{ seed: 2 }]]);
  grid.destroy();
  assert.equal(made[0].gone, true);
});

test('of a choice that a page cannot compute it says so; without a script nothing is offered', (t) => {
  const { grid, here } = offer(t, '/own.none.js');
  grid.turn(0, 2);
  assert.equal(here().querySelector('button'), null);
  assert.match(here().textContent ?? '', /^A page cannot compute these settings/);
  assert.equal(offer(t, '').here().textContent, '');
});

test('a script that does not come is said, and asked for again by the next press', async (t) => {
  const { page, grid, scripts, made, press } = offer(t, '/own.late.js');
  press();
  page.fire(scripts[0], 'error');
  await page.tick();
  assert.match(grid.root.querySelector('.gle-own-place')?.textContent ?? '', /^The script for your own picture could not be loaded/);
  press();
  page.fire(scripts[1], 'load');
  await page.tick();
  assert.equal(made.length, 1);
  assert.doesNotMatch(grid.root.querySelector('.gle-own-place')?.textContent ?? '', /could not be loaded/);
});

test('a place that has gone before its script came stays empty', async (t) => {
  const page = openPage(t);
  const [scripts, made] = [scriptsOf(page), bringOwn(t)];
  const place = new OwnPlace('/own.gone.js', lab);
  const opened = place.open({});
  place.destroy();
  page.fire(scripts[0], 'load');
  await opened;
  assert.deepEqual(made, []);
});
