// The stage: which runs are shown, which stream feeds them, and what Python is told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mount } from '../../leakage/ui/components/live/live.js';
import { Stage } from '../../leakage/ui/components/live/stage.js';
import { plotly } from './lacking.js';
import { NOTHING, openPage } from './page.js';
import { frame, recorded } from './recorded.js';

const RECORDED = recorded();
const RUNS = { one: [{ id: 'a/b' }], two: [{ id: 'a/b', title: 'A' }, { id: 'c', title: 'C' }], none: [] }; // prettier-ignore

/**
 * A stage that shows these runs, and what it sends.
 * @param {import('node:test').TestContext} t
 * @param {object} data
 * @param {{ calm?: boolean, hidden?: boolean, active?: boolean }} [visitor]
 */
function stage(t, data, { calm = false, hidden = false, active = false } = {}) {
  const page = openPage(t, { calm });
  page.hidden = hidden;
  page.replace(page.window.navigator, 'userActivation', { value: { hasBeenActive: active } });
  const parent = page.component('live');
  const made = new Stage(parent);
  /** @type {[string, unknown][]} */
  const sent = [];
  const update = (/** @type {object} */ more) => made.update({ base: '/gle', ...more }, (name, value) => sent.push([name, value]));
  update(data);
  const addresses = () => page.sources.map(({ url }) => url);
  const last = () => page.sources[page.sources.length - 1];
  const roots = () => /** @type {HTMLElement[]} */ ([...made.host.querySelectorAll('.gle-run')]);
  return { page, made, sent, update, addresses, last, roots };
}

test('one stream feeds all runs, from the start', (t) => {
  const { addresses, roots, made, page } = stage(t, { runs: RUNS.two });
  assert.deepEqual(addresses(), ['/gle/api/runs/stream?ids=a%2Fb,c&since=0']);
  assert.deepEqual(roots().map((root) => [root.dataset.run, root.querySelector('.gle-title')?.textContent]), [['a/b', 'A'], ['c', 'C']]); // prettier-ignore
  assert.ok(made.host.classList.contains('gle-several'));
  assert.equal(page.open.streams, 1);
});

test('no runs: no stream, no alarm', (t) => {
  const { page, roots } = stage(t, { runs: RUNS.none });
  assert.deepEqual([page.open.streams, page.open.timers, roots().length], [0, 0, 0]);
});

test('a rerun with the same runs changes nothing but the colours', async (t) => {
  const { page, made, update, addresses, roots } = stage(t, { runs: RUNS.one });
  await page.tick(500);
  const before = roots();
  const drawn = plotly.calls.length;
  assert.equal(made.host.dataset.dark, 'false');
  made.host.style.setProperty('--st-background-color', '#0e1117');
  update({ runs: [{ id: 'a/b', title: 'another' }] });
  await page.tick(500);
  assert.deepEqual([addresses().length, page.open.streams, roots()], [1, 1, before]);
  assert.deepEqual([made.host.dataset.dark, plotly.calls.length], ['true', drawn + 1]);
  assert.equal(page.scrolled.length, 0);
});

test('other runs get a new stream, the old one is closed, and views stay as long as they are needed', (t) => {
  const { page, update, addresses, roots, made } = stage(t, { runs: RUNS.two });
  const [first, second] = roots();
  page.sources[0].send(frame(7, { run: 'c' }), 7);
  page.sources[0].send(frame(8, { run: 'a/b' }), 8); // the view that stays has heard something, too
  update({ runs: [{ id: 'd', title: 'D' }] });
  assert.deepEqual(addresses().slice(1), ['/gle/api/runs/stream?ids=d&since=0']);
  assert.deepEqual(page.sources.map(({ closed }) => closed), [true, false]); // prettier-ignore
  assert.deepEqual([roots(), second.isConnected], [[first], false]);
  assert.equal(first.querySelector('.gle-title')?.textContent, 'D');
  assert.ok(!made.host.classList.contains('gle-several'));
  update({ runs: [] });
  assert.deepEqual([page.open.streams, roots().length], [0, 0]);
});

test('the base path counts as another place', (t) => {
  const { update, addresses } = stage(t, { runs: RUNS.one, base: '' });
  update({ runs: RUNS.one, base: '/gle' });
  assert.deepEqual(addresses(), ['/api/runs/stream?ids=a%2Fb&since=0', '/gle/api/runs/stream?ids=a%2Fb&since=0']);
});

test('each event reaches its own run; of unknown ones nothing is taken', async (t) => {
  const { last, roots, page, made } = stage(t, { runs: RUNS.two });
  last().send({ kind: 'state', run: 'c', status: 'running' }, 1);
  last().send({ kind: 'state', run: 'nobody', status: 'failed' }, 2);
  await page.tick(50);
  assert.deepEqual(roots().map((root) => root.dataset.status), ['opening', 'running']); // prettier-ignore
  assert.equal(made.host.dataset.status, 'opening'); // the stage tells of its first run
});

test('after a break the stream goes on where the run is that is furthest behind; runs that ended do not count', async (t) => {
  const { page, last, addresses } = stage(t, { runs: RUNS.two });
  last().send(frame(5, { run: 'a/b' }), 5);
  last().send(frame(9, { run: 'c' }), 9);
  last().send(frame(8, { run: 'c' }), 8);
  last().fail();
  await page.tick(700);
  assert.equal(addresses()[1], '/gle/api/runs/stream?ids=a%2Fb,c&since=5');
  last().send({ ...RECORDED.end, run: 'a/b', seq: 12, answer: 5 }, 12);
  last().send(frame(20, { run: 'c' }), 20);
  last().fail();
  await page.tick(700);
  assert.equal(addresses()[2], '/gle/api/runs/stream?ids=a%2Fb,c&since=20');
  assert.equal(page.open.streams, 1);
});

for (const over of [
  { kind: 'end', answer: 1, status: 'done' },
  { kind: 'state', status: 'failed' },
  { kind: 'state', status: 'cancelled' },
]) {
  test(`the stream is closed when every run is over: ${over.kind} ${over.status}`, (t) => {
    const { page, last } = stage(t, { runs: RUNS.two });
    last().send({ ...over, run: 'c' }, 1);
    assert.equal(page.open.streams, 1);
    last().send({ ...over, run: 'a/b' }, 2);
    assert.equal(page.open.streams, 0);
  });
}

test('silence is told once, and once that it is over', async (t) => {
  const { page, sent, last, update } = stage(t, { runs: RUNS.one, offline_after: 2 });
  await page.tick(1999);
  assert.deepEqual(sent, []);
  await page.tick(1);
  assert.deepEqual(sent, [['offline', true]]);
  update({ runs: [{ id: 'next' }], offline_after: 2 });
  await page.tick(5000);
  assert.equal(sent.length, 1); // Python knows
  last().send({ kind: 'state', run: 'next', status: 'queued' }, 1);
  last().send({ kind: 'state', run: 'next', status: 'running' }, 2);
  assert.deepEqual(sent, [['offline', true], ['offline', false]]); // prettier-ignore
});

test('who hears something in time is never told to be offline', async (t) => {
  const { page, sent, last, update } = stage(t, { runs: RUNS.one });
  await page.tick(2990);
  last().send({ kind: 'state', run: 'a/b', status: 'running' }, 1);
  await page.tick(9000);
  assert.deepEqual(sent, []);
  update({ runs: [{ id: 'next' }] }); // of these nothing has been heard
  await page.tick(3000);
  assert.deepEqual(sent, [['offline', true]]);
});

test('a hidden tab hears nothing and complains about nothing, until somebody looks', async (t) => {
  const { page, sent, addresses } = stage(t, { runs: RUNS.one }, { hidden: true });
  await page.tick(9000);
  assert.deepEqual([sent, addresses()], [[], []]);
  page.hide(false);
  assert.equal(addresses().length, 1);
  await page.tick(1000);
  page.hide(true);
  await page.tick(9000);
  assert.deepEqual([sent, page.open.streams], [[], 0]);
  page.hide(false);
  await page.tick(3000);
  assert.deepEqual([sent, page.open.streams], [[['offline', true]], 1]);
});

test('whoever asks for other runs is brought to the stage, if it is out of sight', (t) => {
  const { page, made, update } = stage(t, { runs: RUNS.one });
  const ask = (/** @type {number} */ top) => {
    page.lay(made.host, { top });
    update({ runs: [{ id: `run at ${top}` }] });
    return page.scrolled.length;
  };
  assert.deepEqual([ask(0), ask(400), ask(401), ask(-1)], [0, 0, 1, 2]);
  assert.deepEqual(page.scrolled[0], { element: made.host, options: { block: 'start', behavior: 'smooth' } });
  page.calm = true;
  ask(500);
  assert.equal(page.scrolled[2].options.behavior, 'auto');
});

test('a comparison that was pressed for comes into view when the page has settled', async (t) => {
  const { page, made } = stage(t, { runs: RUNS.two, together: true }, { active: true });
  page.lay(made.host, { top: 900 });
  await page.tick(399);
  assert.equal(page.scrolled.length, 0);
  await page.tick(1);
  assert.equal(page.scrolled.length, 1);
  assert.ok(!made.host.classList.contains('gle-several'));
});

/** @type {[{ together: boolean, apart?: boolean }, { active: boolean }][]} */
const STILL = [
  [{ together: true }, { active: false }],
  [{ together: false }, { active: true }],
  [{ together: true, apart: true }, { active: true }],
];
for (const [data, visitor] of STILL) {
  // prettier-ignore
  test(`nothing moves for ${JSON.stringify({ ...data, ...visitor })}`, async (t) => {
    const { page, made } = stage(t, { runs: RUNS.two, ...data }, visitor);
    page.lay(made.host, { top: 900 });
    await page.tick(1000);
    assert.equal(page.scrolled.length, 0);
  });
}

for (const together of [false, true]) {
  test(`it leaves nothing behind, ${together ? 'together' : 'side by side'}, whatever was under way`, async (t) => {
    const { page, made, last, roots, sent } = stage(t, { runs: RUNS.two, together }, { active: true });
    last().send({ ...RECORDED.meta, run: 'c', seq: 1 }, 1);
    last().send(frame(2, { run: 'c' }), 2);
    await page.tick(300);
    last().send(frame(3, { run: 'c' }), 3);
    const heard = page.asked.length;
    made.destroy();
    assert.deepEqual(page.open, NOTHING);
    page.hide(true);
    page.hide(false);
    await page.tick(9000);
    assert.deepEqual([page.open, roots().length, page.asked.length, sent, page.scrolled], [NOTHING, 0, heard, [], []]);
    assert.deepEqual(plotly.calls.filter(({ name }) => name === 'purge').length, together ? 0 : 2);
  });
}

test('it may leave before anything has come, also while it waits for a new stream', async (t) => {
  const { page, made, last, sent } = stage(t, { runs: RUNS.one, together: true }, { active: true });
  last().fail();
  made.destroy();
  assert.deepEqual(page.open, NOTHING);
  await page.tick(9000);
  assert.deepEqual([page.sources.length, sent, page.scrolled], [1, [], []]);
});

test('the recorded run, from its first event to its answer', async (t) => {
  const { page, last, roots, made } = stage(t, { runs: [{ id: RECORDED.id, title: 'iDLG' }] });
  const { meta, frames, end } = RECORDED;
  for (const event of [meta, ...frames.slice(0, 5)]) last().send(event, event.seq);
  await page.tick(300);
  const { psnr, seq, step } = made.host.dataset;
  assert.deepEqual({ psnr, seq, step }, { psnr: '7.01', seq: '8', step: '8' });
  await page.tick(2000);
  for (const event of [...frames.slice(5), end]) last().send(event, event.seq);
  await page.tick(300);
  assert.deepEqual(
    { ...made.host.dataset },
    { ...made.host.dataset, status: 'done', psnr: '50.63', seq: '100', step: '198', mode: 'still' },
  );
  assert.equal(roots()[0].querySelector('.gle-now')?.textContent, 'step 198 of 300');
  assert.equal(page.open.streams, 0);
});

test('mount makes a stage of the element', (t) => {
  const page = openPage(t);
  const component = mount(page.component('live'));
  component.update({ runs: RUNS.one }, () => {});
  assert.equal(page.sources.length, 1);
  component.destroy();
  assert.deepEqual(page.open, NOTHING);
});
