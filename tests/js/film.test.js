// The pictures of one run: which are loaded, which one is wanted, and which is on the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Film, HOLD, QUIET } from '../../leakage/ui/components/live/film.js';
import { openPage, settle } from './page.js';
import { frame, recorded } from './recorded.js';

/**
 * A film of a run `r`, and how often it said that a picture is gone.
 * @param {import('node:test').TestContext} test
 * @param {number[]} numbers of its frames
 */
function filmOf(test, ...numbers) {
  const page = openPage(test);
  const told = { changed: 0 };
  const film = new Film('/base', 'r', () => (told.changed += 1));
  numbers.forEach((seq) => film.receive(frame(seq)));
  const [first, second, third] = film.record.pictures;
  return { page, film, told, first, second, third };
}

/** @type {(film: Film) => number[]} */
const pictures = (film) => film.record.pictures.map(({ seq }) => seq);

test('a new film has nothing to show', (t) => {
  const { film } = filmOf(t);
  assert.equal(film.record.id, 'r');
  assert.deepEqual(film.extent, { count: 0, place: -1, answer: -1, running: true });
  assert.deepEqual(
    [film.next, film.arriving, film.missed, film.shown, film.wanted, film.shownAt],
    [null, false, false, null, null, -Infinity],
  );
});

test('the extent tells the player how many, which, the answer, and whether it goes on', (t) => {
  const { film, second } = filmOf(t, 4, 6, 9);
  assert.deepEqual(film.extent, { count: 3, place: -1, answer: 2, running: true });
  film.mark(second);
  assert.deepEqual(film.extent, { count: 3, place: 1, answer: 2, running: true });
  film.receive({ kind: 'end', answer: 6 });
  assert.deepEqual(film.extent, { count: 3, place: 1, answer: 1, running: false });
});

test('the extent of the recorded run', (t) => {
  openPage(t);
  const { id, meta, frames, end } = recorded();
  const film = new Film('', id, () => {});
  for (const event of [meta, ...frames, end]) film.receive(event);
  film.mark(film.record.pictures[0]);
  assert.deepEqual(film.extent, { count: 97, place: 0, answer: 96, running: false });
});

test('a run that stopped is over, with an end or without', (t) => {
  const { film } = filmOf(t, 4);
  film.receive({ kind: 'state', status: 'running' });
  assert.equal(film.extent.running, true);
  film.receive({ kind: 'state', status: 'failed' });
  assert.equal(film.extent.running, false);
  const over = filmOf(t, 4).film;
  over.receive({ kind: 'end', answer: 4 });
  over.receive({ kind: 'state', status: 'queued', position: 1 }); // was on its way when the run began
  assert.equal(over.extent.running, false);
});

test('when a thinned picture is on the page, its place is that of the one before', (t) => {
  const { film, second } = filmOf(t, 4, 6, 9);
  film.mark(second);
  film.receive({ kind: 'thinned', kept: [4] });
  assert.deepEqual(film.extent, { count: 2, place: 0, answer: 1, running: true });
});

test('the next to follow with is the newest, once', (t) => {
  const { film, third } = filmOf(t, 4, 6, 9);
  const next = () => film.next?.seq;
  assert.equal(next(), 9);
  film.wanted = third;
  assert.equal(next(), undefined);
  film.receive(frame(10, { picture: false }));
  assert.equal(next(), undefined, 'no picture, nothing to show');
  film.receive(frame(11));
  assert.equal(next(), 11);
});

test('when the state says done, the end is waited for; then the last picture comes', (t) => {
  const { film, third } = filmOf(t, 4, 6, 9);
  film.receive({ kind: 'state', status: 'done' });
  assert.equal(film.next, null);
  film.receive({ kind: 'end', answer: 9 });
  assert.equal(film.next, third);
});

test('history is arriving for at most 200 ms, and a run that ends within 1.5 seconds was missed', async (t) => {
  const { page, film } = filmOf(t);
  assert.equal(HOLD, 200);
  await page.tick(5000);
  film.receive({ kind: 'state', status: 'running' });
  assert.deepEqual([film.arriving, film.missed, film.firstFrame], [false, false, null], 'the clock starts with a frame');
  film.receive(frame(1));
  assert.equal(film.firstFrame, 5000);
  for (const passed of [25, 50, 75, 100, 125, 150, 175, 199]) {
    await page.tick(5000 + passed - page.now);
    film.receive(frame(passed));
    assert.deepEqual([film.arriving, film.missed], [true, true]);
  }
  await page.tick(1);
  assert.deepEqual([film.arriving, film.missed], [false, true], 'counted from the first frame');
  await page.tick(1299);
  assert.equal(film.missed, true);
  await page.tick(1);
  assert.equal(film.missed, false);
});

test('a picture is loaded once, from the address of its frame, and is ready when it has come', async (t) => {
  const { page, film, told } = filmOf(t, 4, 6);
  page.serve = () => undefined;
  assert.equal(film.isReady(6), false);
  assert.equal(film.isReady(6), false);
  assert.deepEqual(page.asked, ['/base/api/runs/r/frames/6.png']);
  assert.equal(film.sheets.busy, 1);
  page.awaited.get('/base/api/runs/r/frames/6.png')?.({ width: 32, height: 32 });
  await settle();
  assert.deepEqual([film.isReady(6), film.sheets.busy, told.changed], [true, 0, 0]);
  const image = await film.fetch(6);
  assert.equal(image?.getAttribute('src'), '/base/api/runs/r/frames/6.png');
  film.fetchAll();
  assert.deepEqual(page.asked, ['/base/api/runs/r/frames/6.png', '/base/api/runs/r/frames/4.png']);
});

test('an identifier is written as part of an address', (t) => {
  const page = openPage(t);
  new Film('', 'a/b?c', () => {}).fetch(1);
  assert.deepEqual(page.asked, ['/api/runs/a%2Fb%3Fc/frames/1.png']);
});

test('a picture that is gone leaves the film, not the curves, and is not asked for again', async (t) => {
  const { page, film, told } = filmOf(t, 4, 6, 9);
  page.serve = (address) => (address.endsWith('/6.png') ? null : { width: 32, height: 32 });
  assert.equal(await film.fetch(6), null);
  assert.deepEqual([pictures(film), told.changed, film.record.frames.length], [[4, 9], 1, 3]);
  assert.deepEqual([film.isReady(6), film.sheets.ready.get(6)], [true, null]);
  film.fetchAll();
  await settle();
  assert.deepEqual(page.asked, [6, 4, 9].map((seq) => `/base/api/runs/r/frames/${seq}.png`)); // prettier-ignore
  assert.equal(film.sheets.busy, 0);
});

test('what has come is shown if it is still wanted, or if who follows sees nothing newer', (t) => {
  const { film, first, second, third } = filmOf(t, 4, 6, 9);
  film.wanted = third;
  assert.deepEqual([film.isWanted(third, false), film.isWanted(second, false)], [true, false]);
  assert.equal(film.isWanted(second, true), true, 'nothing is on the page yet');
  film.mark(second);
  const following = [first, second, third].map((at) => film.isWanted(at, true));
  assert.deepEqual(following, [false, true, true]);
  film.wanted = first;
  assert.equal(film.isWanted(first, true), true, 'asked for, although older');
});

test('what is on the page is marked with the time, and every picture seen counts once', async (t) => {
  const { page, film, first, second } = filmOf(t, 4, 6);
  await page.tick(300);
  film.mark(first);
  assert.deepEqual([film.shown, film.shownAt, [...film.seen]], [first, 300, [4]]);
  await page.tick(50);
  film.mark(second);
  film.mark(first);
  assert.deepEqual([film.shown, film.shownAt, [...film.seen]], [first, 350, [4, 6]]);
});

test('history has arrived when no event has come for 30 ms', async (t) => {
  const { page, film } = filmOf(t);
  assert.equal(QUIET, 30);
  film.receive(frame(1));
  await page.tick(QUIET - 1);
  assert.equal(film.arriving, true);
  await page.tick(1);
  assert.equal(film.arriving, false);
});
