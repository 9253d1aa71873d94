// One run on the stage, as a visitor sees it: each picture with the numbers, the verdict and the words of its own step.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brushOf, NOTHING } from './page.js';
import { frame } from './recorded.js';
import { END, FRAMES, META_OF_R, RUNNING, show } from './viewing.js';

const AT = {
  1: { picture: '/1.png', now: 'step 10 of 40', psnr: '11.0 dB', loss: '1', guessed: 'guessed: cat' },
  2: { picture: '/2.png', now: 'step 20 of 40', psnr: '12.0 dB', loss: '0.5', guessed: 'guessed: person' },
  4: { picture: '/4.png', now: 'step 40 of 40', psnr: '14.0 dB', loss: '0.25', guessed: 'guessed: person' },
};

test('before anything is known the place is laid out, with the words of the page', async (t) => {
  const { host, view, one, text, on, page } = show(t, {
    run: { title: 'iDLG', pictures: 3, sent: 'the weights', phones: 1, plain: false },
  });
  await page.tick(20);
  assert.deepEqual(
    [text('title'), text('status-text'), text('facts'), text('now'), text('word')],
    ['iDLG', 'Opening', '', 'no pictures yet', 'result'],
  );
  assert.deepEqual([one('truth').childElementCount, one('guess').childElementCount, one('layers').childElementCount], [3, 3, 8]);
  assert.deepEqual([text('private h4'), text('attacker .gle-where')], ['The private pictures', 'rebuilt from the weights alone']);
  assert.deepEqual(on('truth'), ['/gle/api/runs/r/private.png']);
  assert.deepEqual([text('truth figcaption'), text('guess figcaption')], ['', 'waiting']);
  const { run, status, step, psnr, frames, seq, mode } = view.root.dataset;
  assert.deepEqual(
    { run, status, step, psnr, frames, seq, mode },
    { run: 'r', status: 'opening', step: '', psnr: '', frames: '0', seq: '', mode: 'follow' },
  );
  assert.equal(host.dataset.frames, '0');
  assert.deepEqual(brushOf(one('ramp')).pixels.slice(0, 4), [0, 34, 78, 255]);
  assert.equal(brushOf(one('ramp')).pixels.length, 4 * 64);
});

test('the first event brings the private picture, what is sent, and the facts', async (t) => {
  const { text, on, hear, page } = show(t);
  hear(META_OF_R);
  await page.tick(20);
  assert.deepEqual(on('truth'), ['/gle/api/runs/r/private.png']);
  assert.equal(text('guess figcaption'), '');
  assert.equal(text('truth figcaption'), 'Astronaut');
  assert.equal(text('received'), '15,826 numbers, 63 kB:\nthis is all that is sent.');
  assert.equal(text('facts'), 'iDLG (label first) · cpu, 2 cores');
  hear({ ...META_OF_R, estimate: 42 });
  await page.tick(20);
  assert.equal(text('facts'), 'iDLG (label first) · cpu, 2 cores · about 42 s');
});

test('the seconds that are left are counted down between what the server tells, by the pace of the run itself', async (t) => {
  const { text, hear, page } = show(t);
  hear({ kind: 'state', run: 'r', status: 'queued', position: 1, wait: 30 });
  await page.tick(20);
  assert.deepEqual([text('status-text'), text('facts')], ['Waiting: yours is next', 'begins in about 30 s']);
  await page.tick(12000);
  assert.deepEqual([text('status-text'), text('facts')], ['Waiting: yours is next', 'begins in about 18 s']); // nobody is told twice
  hear({ kind: 'state', run: 'r', status: 'queued', position: 1, wait: 95 });
  await page.tick(20);
  assert.equal(text('facts'), 'begins in about 2 min');
  hear(RUNNING, { ...META_OF_R, estimate: 500 }, frame(1, { step: 10, seconds: 20 }));
  await page.tick(300);
  assert.match(text('facts'), / · about 60 s left$/); // 30 steps of 2 s, whatever was estimated
  await page.tick(5000);
  assert.match(text('facts'), / · about 55 s left$/);
  hear(frame(2, { step: 20, seconds: 30 })); // others have left the machine
  await page.tick(300);
  assert.match(text('facts'), / · about 20 s left$/);
  hear(END);
  await page.tick(50);
  assert.match(text('facts'), / · 30 s$/);
});

test('the newest picture is followed, with all that belongs to it', async (t) => {
  const { view, one, text, hear, seen, page, host } = show(t);
  hear(RUNNING, META_OF_R, ...FRAMES.slice(0, 2));
  await page.tick(20);
  assert.deepEqual(page.asked, ['/gle/api/runs/r/private.png']); // history may still be arriving
  await page.tick(60);
  assert.deepEqual(page.asked.slice(1), ['/gle/api/runs/r/frames/2.png']); // no event has come for 30 ms
  await page.tick(190);
  const so = { verdict: 'v2', why: 'So far: why v2' };
  assert.deepEqual(seen(), { ...AT[2], ...so });
  assert.equal(text('status-text'), 'Attack running');
  assert.equal(text('guess-foot'), 'Guess, compare, improve.\n0.2 s · turn 2');
  assert.equal(one('now').title, '0.2 s · turn 2');
  assert.equal(one('slider').getAttribute('aria-valuetext'), 'step 20 of 40, PSNR 12.0 dB');
  const { status, step, psnr, frames, seq, mode } = view.root.dataset;
  assert.deepEqual(
    { status, step, psnr, frames, seq, mode },
    { status: 'running', step: '20', psnr: '12.00', frames: '1', seq: '2', mode: 'follow' },
  );
  assert.deepEqual([host.dataset.seq, host.dataset.step], ['2', '20']);
  hear(FRAMES[3]);
  await page.tick(20);
  assert.deepEqual(seen(), { ...AT[4], verdict: 'v4', why: 'So far: why v4' });
});

test('who looks back sees the numbers, the guess and the verdict of that step', async (t) => {
  const { one, view, hear, seen, page } = show(t);
  hear(RUNNING, META_OF_R, ...FRAMES);
  await page.tick(300);
  const slider = /** @type {HTMLInputElement} */ (one('slider'));
  slider.value = '0';
  page.fire(slider, 'input');
  await page.tick();
  assert.deepEqual(seen(), { ...AT[1], verdict: 'v1', why: 'At this step: why v1' });
  hear(frame(5));
  await page.tick(50);
  assert.deepEqual(seen(), { ...AT[1], verdict: 'v1', why: 'At this step: why v1' }); // it does not run away
  page.fire(view.root, 'keydown', { key: 'ArrowRight' });
  await page.tick();
  assert.deepEqual([seen().now, view.root.dataset.seq, view.root.dataset.mode], ['step 20 of 40', '2', 'still']);
});

test('a picture that comes late is not shown once another is wanted', async (t) => {
  const { view, hear, seen, page } = show(t);
  hear(RUNNING, META_OF_R, ...FRAMES);
  await page.tick(300);
  page.serve = () => undefined;
  view.player.seek(0);
  view.player.seek(1);
  await page.tick();
  page.awaited.get('/gle/api/runs/r/frames/2.png')?.({ width: 32, height: 32 });
  await page.tick();
  assert.equal(seen().picture, '/2.png');
  page.awaited.get('/gle/api/runs/r/frames/1.png')?.({ width: 32, height: 32 });
  await page.tick();
  assert.deepEqual(seen(), { ...AT[2], verdict: 'v2', why: 'At this step: why v2' });
});

test('a run that was watched rests on its answer, whose scores were measured once more', async (t) => {
  const { view, one, text, hear, seen, page } = show(t);
  hear(RUNNING, META_OF_R, ...FRAMES);
  await page.tick(2000);
  hear({ ...END, note: { event: 'The same picture came twice' } });
  await page.tick(50);
  assert.deepEqual(seen(), {
    ...{ picture: '/3.png', now: 'step 30 of 40', psnr: '33.3 dB', loss: '0.333', verdict: 'recognizable' },
    ...{ why: 'In the end: why recognizable', guessed: 'guessed: cat33.3 dB' },
  });
  assert.deepEqual([view.root.dataset.mode, view.root.dataset.psnr, view.root.dataset.status], ['still', '33.30', 'done']);
  assert.equal(text('status-text'), 'Attack finished. The same picture came twice');
  assert.equal(text('facts'), 'iDLG (label first) · cpu, 2 cores · 0.4 s');
  assert.deepEqual([...new Set(page.asked)].length, 5); // all pictures are here before somebody scrubs
  assert.equal(one('plot').getAttribute('aria-label'), 'Curves over 40 steps: gradient distance from 1 to 0.25, PSNR from 11.0 dB to 14.0 dB; a grey picture scores 10.9 dB.'); // prettier-ignore
});

test('a run that was over before is played once, and then rests on its answer', async (t) => {
  const { view, hear, seen, page } = show(t);
  hear(META_OF_R, ...FRAMES, END);
  await page.tick(20);
  assert.equal(view.root.dataset.mode, 'play');
  assert.deepEqual(seen(), { ...AT[1], verdict: 'v1', why: 'At this step: why v1' });
  assert.equal(new Set(page.asked).size, 5); // the others are on their way
  await page.tick(416);
  assert.equal(seen().picture, '/2.png');
  await page.tick(1600);
  assert.deepEqual([view.root.dataset.mode, seen().picture, seen().psnr], ['still', '/3.png', '33.3 dB']);
});

for (const options of [{ calm: true }, { autoplay: false }]) {
  test(`it is not played for ${JSON.stringify(options)}`, async (t) => {
    const { view, hear, seen, page } = show(t, options);
    hear(META_OF_R, ...FRAMES, END);
    await page.tick(20);
    assert.deepEqual([view.root.dataset.mode, seen().picture], ['still', '/3.png']);
  });
}

test('who asked for less motion sees a new picture once a second', async (t) => {
  const { hear, seen, page } = show(t, { calm: true });
  hear(RUNNING, META_OF_R, FRAMES[0]);
  await page.tick(300);
  hear(FRAMES[1]);
  await page.tick(500);
  assert.equal(seen().picture, '/1.png');
  await page.tick(500);
  hear(FRAMES[3]);
  await page.tick(50);
  assert.equal(seen().picture, '/4.png');
});

test('on a slow line at most three pictures are under way', async (t) => {
  const { hear, page } = show(t);
  page.serve = () => undefined;
  hear(RUNNING, META_OF_R);
  for (const seq of [1, 2, 3, 4, 5, 6]) {
    hear(frame(seq));
    await page.tick(300);
  }
  assert.deepEqual(page.asked.slice(1).map((address) => address.replace(/.*frames/, '')), ['/1.png', '/2.png', '/3.png']); // prettier-ignore
});

test('pictures of the run before do not come onto the page of the next', async (t) => {
  const { view, text, on, hear, page } = show(t);
  page.serve = () => undefined;
  view.reset({ id: 'r', title: 'One' });
  hear(RUNNING, META_OF_R, { ...FRAMES[0], views: { guess: 'data:,1' } });
  await page.tick(300);
  const late = [...page.awaited.values()];
  assert.equal(late.length, 2); // the private picture and the first guess
  page.serve = () => ({ width: 32, height: 32 });
  view.reset({ id: 'next one', title: 'Two' });
  await page.tick();
  assert.deepEqual([on('truth'), on('guess'), text('guess figcaption')], [['/gle/api/runs/next%20one/private.png'], [], 'waiting']);
  hear({ ...META_OF_R, private: '/api/runs/next/private.png' }, frame(9));
  await page.tick(300);
  late.forEach((arrive) => arrive({ width: 32, height: 32 }));
  await page.tick(50);
  assert.deepEqual(
    [on('truth'), on('guess')],
    [['/gle/api/runs/next%20one/private.png', '/gle/api/runs/next/private.png'], ['/gle/api/runs/next%20one/frames/9.png']],
  );
  assert.deepEqual([text('title'), text('view-cards'), view.root.dataset.run, view.root.dataset.frames], ['Two', '', 'next one', '1']);
});

test('a run that failed says so, and why; a note is told once it comes', async (t) => {
  const { one, text, hear, page } = show(t);
  hear(RUNNING, META_OF_R, FRAMES[0], { kind: 'note', run: 'r', text: 'The labels repeat' });
  await page.tick(20);
  assert.equal(text('status-text'), 'Attack running. The labels repeat');
  hear({ kind: 'state', run: 'r', status: 'failed', message: 'Out of memory.' });
  await page.tick(20);
  assert.match(one('plot').getAttribute('aria-label') ?? '', /^Curves over 10 steps/);
  assert.deepEqual([text('status-text'), text('word'), text('why')], ['Failed: Out of memory.', 'no result', 'Out of memory.']);
});

test('the curves and the view cards lead to their frame', async (t) => {
  const { view, one, hear, seen, page } = show(t);
  const withViews = { ...FRAMES[1], views: { guess: 'data:,2' } };
  hear(RUNNING, META_OF_R, FRAMES[0], withViews, ...FRAMES.slice(2));
  await page.tick(300);
  page.fire(one('view-card'), 'click');
  await page.tick();
  assert.deepEqual([seen().picture, one('view-card').getAttribute('aria-current')], ['/2.png', 'step']);
  /** @type {any} */ (view.curves).pick(11);
  await page.tick();
  assert.deepEqual(
    [seen().picture, one('view-card').getAttribute('aria-current'), one('view-card').className],
    ['/1.png', null, 'gle-view-card gle-later'],
  );
});

test('a card leads to its own frame where the server has thinned the pictures before it', async (t) => {
  const { one, hear, seen, page } = show(t);
  const withViews = { ...FRAMES[2], views: { guess: 'data:,3' } };
  hear(RUNNING, META_OF_R, FRAMES[0], FRAMES[1], withViews, ...FRAMES.slice(3));
  hear({ kind: 'thinned', run: 'r', kept: [FRAMES[0].seq, ...FRAMES.slice(2).map((frame) => frame.seq)] });
  await page.tick(300);
  page.fire(one('view-card'), 'click');
  await page.tick();
  assert.equal(seen().picture, `/${FRAMES[2].seq}.png`);
});

test('keys and the pointer are heard once, also after another run has come', async (t) => {
  const { view, one, hear, page } = show(t);
  for (const id of ['r', 's']) {
    view.reset({ id, pictures: 2 });
    hear({ ...META_OF_R, batch: 2 }, ...FRAMES);
    await page.tick(300);
  }
  page.fire(view.root, 'keydown', { key: 'Home' });
  page.fire(view.root, 'keydown', { key: 'ArrowRight' });
  await page.tick();
  assert.equal(view.root.dataset.seq, '2');
  page.fire(/** @type {Element} */ (one('guess').children[1].firstElementChild), 'pointerover');
  assert.deepEqual([...view.root.querySelectorAll('.gle-twin')], [one('truth').children[1], one('guess').children[1]]);
  page.fire(view.root, 'pointerleave');
  assert.equal(view.root.querySelectorAll('.gle-twin').length, 0);
});

test('many events are one drawing, and it leaves nothing behind', async (t) => {
  const { view, hear, page } = show(t);
  await page.tick(1000);
  hear(RUNNING, META_OF_R, ...FRAMES);
  assert.equal(page.open.timers, 1);
  view.destroy();
  assert.deepEqual([page.open, page.listenersBelow(view.root)], [NOTHING, 0]);
  await page.tick(1000);
  assert.deepEqual([view.root.isConnected, page.open, page.asked], [false, NOTHING, ['/gle/api/runs/r/private.png']]);
});

test('it may leave while it plays', async (t) => {
  const { view, hear, page, text } = show(t);
  hear(META_OF_R, ...FRAMES, END);
  await page.tick(450);
  assert.equal(view.player.mode, 'play');
  hear({ kind: 'state', run: 'r', status: 'failed' });
  await page.tick(1); // it is to be drawn with the next frame
  view.destroy();
  await page.tick(50);
  assert.deepEqual([page.open, text('status-text')], [NOTHING, 'Attack finished']);
});
