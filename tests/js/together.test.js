// Several runs as one: the private pictures once, and one play head that brings each run to its own picture of the same step.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stage } from '../../leakage/ui/components/live/stage.js';
import { Together } from '../../leakage/ui/components/live/together.js';
import { brushOf, NOTHING, openPage } from './page.js';
import { frame, recorded } from './recorded.js';

const { meta: META } = recorded();
const STEPS = { a: [0, 50, 100], b: [0, 20, 100] };

/** The events of a run of 100 steps: three pictures, numbered 1, 2 and 3. @param {'a' | 'b'} run */
const events = (run) => [
  { kind: 'state', run, status: 'running' },
  { ...META, run, seq: undefined, steps: 100, private: `/api/runs/${run}/private.png` },
  ...STEPS[run].map((step, place) => frame(place + 1, { run, step })),
];

const end = (/** @type {string} */ run, answer = 3) => ({ kind: 'end', run, status: 'done', answer, step: 100 });

/**
 * Two runs on a stage, with one play head.
 * @param {import('node:test').TestContext} t
 * @param {{ calm?: boolean, autoplay?: boolean, apart?: boolean, runs?: string[] }} [options]
 */
function both(t, { calm = false, autoplay = true, apart = false, runs = ['a', 'b'] } = {}) {
  const page = openPage(t, { calm });
  const stage = new Stage(page.component('live'));
  const ask = (/** @type {string[]} */ ids) =>
    stage.update({ runs: ids.map((id) => ({ id })), base: '/gle', together: true, autoplay, apart }, () => {});
  ask(runs);
  const { host } = stage;
  const one = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (host.querySelector(`.gle-together ${selector}`));
  const slider = /** @type {HTMLInputElement} */ (one('.gle-slider'));
  return {
    ...{ page, stage, host, ask, one, slider },
    together: /** @type {Together} */ (stage.together),
    hear: (/** @type {any[]} */ ...sent) => sent.forEach((event) => page.sources[page.sources.length - 1].send(event)),
    now: () => one('.gle-now').textContent,
    /** The numbers of the pictures that are shown. */
    shown: () => stage.views.map(({ root }) => root.dataset.seq),
    async slide(/** @type {number} */ place) {
      slider.value = String(place);
      page.fire(slider, 'input');
      await page.tick();
    },
  };
}

test('the private picture and the controls stand once, before all runs, and beside up to four of them', (t) => {
  const { ask, host, one, stage } = both(t);
  assert.equal(host.firstElementChild?.className, 'gle-together');
  assert.ok(host.classList.contains('gle-compare'));
  const beside = () => [host.classList.contains('gle-beside'), host.style.getPropertyValue('--gle-across')];
  assert.deepEqual(beside(), [true, '3']);
  assert.deepEqual(
    [one('.gle-own h4').textContent, one('.gle-own .gle-where').textContent],
    ['The private picture, on the phone', 'All variants start from here.'],
  );
  ask(['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(beside(), [false, '3']);
  ask(['a', 'b']);
  assert.equal(one('.gle-own .gle-tiles').childElementCount, 1);
  assert.equal(host.querySelectorAll('.gle-together .gle-player').length, 1);
  assert.ok(stage.views.every(({ together }) => together === stage.together));
  assert.deepEqual([one('.gle-now').textContent, one('.gle-slider').hasAttribute('disabled')], ['no pictures yet', true]);
});

test('of groups of people each keeps its private pictures above its guesses, one below the other, with one play head', (t) => {
  const { hear, host } = both(t, { apart: true });
  hear(...events('a'));
  const text = (/** @type {string} */ selector) => host.querySelector(`.gle-together ${selector}`)?.textContent;
  assert.ok(host.classList.contains('gle-apart') && host.classList.contains('gle-compare'));
  assert.equal(host.querySelector('.gle-together .gle-own'), null);
  assert.deepEqual([text('h4'), text('.gle-where')?.startsWith('Of each run: above')], ['The private pictures', true]);
  assert.equal(host.style.getPropertyValue('--gle-across'), '1');
  assert.equal(host.querySelectorAll('.gle-together .gle-player').length, 1);
});

test('the private pictures stand there while all runs still wait: those of the run that has most', async (t) => {
  const { page, stage, one } = both(t);
  stage.update({ runs: [{ id: 'c' }, { id: 'd', pictures: 3 }], base: '/gle', together: true }, () => {});
  await page.tick();
  assert.equal(one('.gle-own .gle-tiles').childElementCount, 3);
  assert.deepEqual(
    brushOf(one('.gle-own canvas')).drawn.map(({ source }) => source),
    ['/gle/api/runs/d/private.png'],
  );
  assert.ok(stage.views.every(({ guess }) => guess.textContent?.startsWith('waiting')));
});

test('many runs are drawn more seldom: 40 milliseconds for each of them, and a frame', async (t) => {
  const { hear, page, stage } = both(t);
  hear({ kind: 'state', run: 'b', status: 'running' });
  await page.tick(95);
  assert.equal(stage.views[1].root.dataset.status, 'opening');
  await page.tick(1);
  assert.equal(stage.views[1].root.dataset.status, 'running');
});

test('so many runs stand side by side', (t) => {
  const { ask, host } = both(t);
  const across = [1, 4, 5, 6, 7, 12].map((count) => {
    ask(Array.from({ length: count }, (_, number) => `run ${number}`));
    return host.style.getPropertyValue('--gle-across');
  });
  assert.deepEqual(across, ['2', '5', '3', '3', '4', '4']); // up to four beside the private picture;
});

test('the private pictures are those of the run that has most of them, with their words', async (t) => {
  const { hear, one, page, ask } = both(t);
  const pictures = [
    { title: 'Astronaut', class_name: 'person', label: 0 },
    { title: '', class_name: 'cat', label: 1 },
  ];
  const drawn = () => brushOf(one('canvas')).drawn.map(({ source }) => source);
  hear({ ...META, run: 'a', private: '/one.png' });
  await page.tick();
  assert.deepEqual(drawn(), ['/gle/one.png']);
  hear({ ...META, run: 'b', batch: 2, pictures, private: '/two.png' });
  await page.tick();
  assert.deepEqual([drawn(), one('h4').textContent], [['/gle/two.png'], 'The private pictures, on the phone']);
  assert.deepEqual([...one('.gle-tiles').children].map((tile) => tile.querySelector('figcaption')?.textContent), ['Astronaut', 'cat']); // prettier-ignore
  assert.deepEqual([...one('.gle-tiles').querySelectorAll('canvas')].map((canvas) => canvas.getAttribute('aria-label')), ['Astronaut, class person', 'cat']); // prettier-ignore
  assert.equal(one('.gle-tiles').style.getPropertyValue('--gle-columns'), '2');
  hear({ ...META, run: 'a', private: '/again.png' });
  await page.tick();
  assert.deepEqual(drawn(), ['/gle/two.png']);
  ask(['c', 'd']);
  assert.equal(one('h4').textContent, 'The private picture, on the phone');
  hear({ ...META, run: 'd', batch: 9, pictures: [], private: '' });
  assert.equal(one('.gle-tiles').style.getPropertyValue('--gle-columns'), '4');
});

test('private pictures that come late are not drawn above other runs', async (t) => {
  const { hear, one, page, ask } = both(t);
  page.serve = (address) => (address === '/gle/late.png' ? undefined : { width: 32, height: 32 });
  hear({ ...META, run: 'a', private: '/late.png' });
  const arrive = page.awaited.get('/gle/late.png');
  await page.tick();
  ask(['c']);
  hear({ ...META, run: 'c', private: '/new.png' });
  await page.tick();
  arrive?.({ width: 32, height: 32 });
  await page.tick();
  assert.deepEqual(brushOf(one('canvas')).drawn.map(({ source }) => source), ['/gle/new.png']); // prettier-ignore
});

test('while runs go on the head stands where the first of them is, and each shows its newest', async (t) => {
  const { hear, now, page, shown, slider, one, together } = both(t);
  hear(...events('a').slice(0, 4), ...events('b').slice(0, 4)); // steps 50 and 20 of 100
  await page.tick(600);
  assert.deepEqual([now(), slider.value, slider.max, shown()], ['step 50 of 100', '60', '120', ['2', '2']]);
  assert.equal(slider.getAttribute('aria-valuetext'), 'step 50 of 100');
  assert.deepEqual([together.root.dataset.mode, together.root.dataset.place], ['follow', '60']);
  assert.equal(one('.gle-live span').textContent, 'Live');
});

test('the slider brings each run to its last picture that is not beyond', async (t) => {
  const { hear, now, page, shown, slide, together } = both(t);
  hear(...events('a'), ...events('b'));
  await page.tick(2000);
  assert.deepEqual(shown(), ['3', '3']);
  await slide(30); // step 25.2
  assert.deepEqual([now(), shown(), together.root.dataset.mode], ['step 25 of 100', ['1', '2'], 'still']);
  await slide(10); // step 8.4
  assert.deepEqual([now(), shown()], ['step 8 of 100', ['1', '1']]);
  await slide(119);
  assert.deepEqual([now(), shown()], ['step 100 of 100', ['3', '3']]);
});

test('at the end each run shows its answer, a run that goes on its newest', async (t) => {
  const { hear, now, page, shown, slide } = both(t);
  hear(...events('a'), ...events('b'));
  await page.tick(2000);
  hear(end('a', 2));
  await page.tick(200);
  await slide(0);
  assert.deepEqual(shown(), ['1', '1']);
  await slide(120);
  assert.deepEqual(shown(), ['2', '3']);
  hear(end('b', 1));
  await page.tick(200);
  await slide(120);
  assert.deepEqual([now(), shown()], ['the results', ['2', '1']]);
  await slide(119);
  assert.deepEqual(shown(), ['3', '3']);
});

test('Live lets all runs go on that run', async (t) => {
  const { hear, page, shown, slide, one, now } = both(t);
  hear(...events('a').slice(0, 4), ...events('b').slice(0, 4));
  await page.tick(600);
  await slide(0);
  assert.deepEqual(shown(), ['1', '1']);
  page.fire(one('.gle-live'), 'click');
  await page.tick();
  assert.deepEqual(shown(), ['2', '2']);
  hear(events('a')[4]);
  await page.tick(300);
  assert.deepEqual([shown(), now()], [['3', '2'], 'step 100 of 100']);
});

test('keys work on the play head, wherever the focus is, once', async (t) => {
  const { hear, page, stage, slider, one, slide } = both(t);
  hear(...events('a'), ...events('b'));
  await page.tick(2000);
  await slide(60);
  page.fire(stage.views[1].root, 'keydown', { key: 'ArrowLeft' });
  assert.equal(slider.value, '59');
  page.fire(one('.gle-own'), 'keydown', { key: 'ArrowRight' });
  page.fire(slider, 'keydown', { key: 'ArrowRight' });
  assert.equal(slider.value, '61');
  page.fire(stage.views[0].root, 'keydown', { key: 'Home' });
  assert.equal(slider.value, '0');
});

test('a picture is waited for before the head moves on', async (t) => {
  const { hear, page, together } = both(t);
  page.serve = (address) => (address.endsWith('b/frames/2.png') ? undefined : { width: 32, height: 32 });
  hear(...events('a'), ...events('b'));
  await page.tick(600);
  together.ready(30);
  await page.tick();
  assert.equal(together.ready(30), false); // picture 1 of a is here, 2 of b is not
  together.ready(10);
  await page.tick();
  assert.equal(together.ready(10), true);
});

test('runs that were over before are played once, together, and rest on the results', async (t) => {
  const { hear, page, together, now, shown } = both(t);
  hear(...events('a'), ...events('b'), end('a', 2), end('b', 2));
  await page.tick(400);
  assert.equal(together.player.mode, 'play');
  assert.ok(together.player.place < 10);
  await page.tick(12000);
  assert.deepEqual([together.player.mode, now(), shown()], ['still', 'the results', ['2', '2']]);
});

for (const options of [{ calm: true }, { autoplay: false }]) {
  test(`they are not played for ${JSON.stringify(options)}`, async (t) => {
    const { hear, page, together, now } = both(t, options);
    hear(...events('a'), ...events('b'), end('a'), end('b'));
    await page.tick(400);
    assert.deepEqual([together.player.mode, now()], ['still', 'the results']);
  });
}

test('runs that were watched are not played', async (t) => {
  const { hear, page, together, now } = both(t);
  hear(...events('a'), ...events('b'));
  await page.tick(2000);
  hear(end('a'), end('b'));
  await page.tick(400);
  assert.deepEqual([together.player.mode, now(), together.player.place], ['still', 'the results', 120]);
});

test('it leaves nothing behind, also while it plays', async (t) => {
  const { hear, page, stage, host, together } = both(t);
  hear(...events('a'), ...events('b'), end('a'), end('b'));
  await page.tick(600);
  assert.equal(together.player.mode, 'play');
  stage.destroy();
  await page.tick(50);
  assert.deepEqual([page.open, page.listenersBelow(together.root)], [NOTHING, 0]);
  assert.deepEqual([host.querySelector('.gle-together'), host.classList.contains('gle-compare')], [null, false]);
});
