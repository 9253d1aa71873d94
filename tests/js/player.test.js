// The player: which picture is shown, and when the next one comes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Player } from '../../leakage/ui/components/live/player.js';
import { openPage } from './page.js';

/**
 * A player of `count` pictures that writes down what it calls; `ready` can be set to let pictures wait.
 * @param {{ count?: number, place?: number, answer?: number, running?: boolean }} [now]
 */
function playerOf({ count = 5, place = 0, answer = count - 1, running = false } = {}) {
  /** @type {{ shown: number[], asked: number[], settled: number, changed: number, ready: boolean }} */
  const log = { shown: [], asked: [], settled: 0, changed: 0, ready: true };
  const player = new Player({
    show: (at) => log.shown.push(at),
    ready: (at) => (log.asked.push(at), log.ready),
    settled: () => (log.settled += 1),
    changed: () => (log.changed += 1),
  });
  if (count) player.update({ count, place, answer, running });
  Object.assign(log, { changed: 0 });
  return { player, log };
}

/** @param {Player} player */
const stand = ({ mode, place }) => [mode, place];

test('a new player follows, and has no pictures', () => {
  const { player, log } = playerOf({ count: 0 });
  const { count, place, answer, running, mode, speed } = player;
  assert.deepEqual(
    { count, place, answer, running, mode, speed },
    { count: 0, place: -1, answer: -1, running: true, mode: 'follow', speed: 1 },
  );
  for (const move of [() => player.seek(0), () => player.follow(), () => player.home(), () => player.end(), () => player.toggle()]) move();
  assert.deepEqual(log, { shown: [], asked: [], settled: 0, changed: 0, ready: true });
  assert.deepEqual(stand(player), ['follow', -1]);
});

test('without a hook for changes it works too', () => {
  const player = new Player({ show: () => {}, ready: () => true, settled: () => {} });
  player.update({ count: 2, place: 0, answer: 1, running: true });
  player.seek(1);
  assert.deepEqual(stand(player), ['still', 1]);
});

test('a seek stays within the pictures, shows one and comes to rest', () => {
  const { player, log } = playerOf();
  [3, -1, 4, 5, 99, -99].forEach((place) => player.seek(place));
  assert.deepEqual(log.shown, [3, 0, 4, 4, 4, 0]);
  assert.deepEqual([log.settled, log.changed], [6, 6]);
  assert.deepEqual(stand(player), ['still', 0]);
});

test('back, forward, home and end move by one, or to a border', () => {
  const { player, log } = playerOf({ place: 2 });
  for (const move of ['forward', 'forward', 'forward', 'back', 'home', 'back', 'forward', 'end']) /** @type {any} */ (player)[move]();
  assert.deepEqual(log.shown, [3, 4, 4, 3, 0, 0, 1, 4]);
  assert.equal(player.mode, 'still');
});

test('end and result follow a run that goes on; afterwards one is the last picture, the other the answer', () => {
  const { player, log } = playerOf({ answer: 2, running: true });
  player.end();
  assert.deepEqual(stand(player), ['follow', 4]);
  player.home();
  player.result();
  assert.deepEqual(stand(player), ['follow', 4]);
  assert.equal(log.settled, 1, 'only at home: who follows does not rest');
  player.update({ count: 5, place: 4, answer: 2, running: false });
  assert.equal(player.mode, 'follow', 'the answer has not been shown yet');
  player.result();
  assert.deepEqual(stand(player), ['still', 2]);
  player.end();
  assert.deepEqual(stand(player), ['still', 4]);
});

test('news: who follows rests when a run is over and its answer is shown, not before', () => {
  const follower = () => playerOf({ count: 3, place: 2, running: true }).player;
  const news = { count: 4, place: 3, answer: 3, running: false };
  const modes = [news, { ...news, running: true }, { ...news, place: 2 }, { ...news, place: 1, answer: 1 }].map((now) => {
    const player = follower();
    player.update(now);
    return player.mode;
  });
  assert.deepEqual(modes, ['still', 'follow', 'follow', 'still']);
  const { player, log } = playerOf({ count: 3, place: 1 });
  player.seek(1);
  player.update({ count: 4, place: 1, answer: 3, running: true });
  assert.deepEqual([player.mode, player.place, player.count, player.answer, player.running], ['still', 1, 4, 3, true]);
  assert.deepEqual([log.shown, log.changed], [[1], 2], 'news alone shows nothing');
});

test('news of fewer pictures: the place is never beyond them', () => {
  const { player } = playerOf({ count: 9, place: 8 });
  player.update({ count: 4, place: 8, answer: 3, running: false });
  assert.equal(player.place, 3);
  player.update({ count: 0, place: 8, answer: -1, running: false });
  assert.equal(player.place, -1);
});

test('a reset forgets the run but not the speed', () => {
  const { player, log } = playerOf();
  player.seek(3);
  player.speed = 2;
  player.reset();
  assert.deepEqual([player.count, player.place, player.answer, player.running, player.mode, player.speed], [0, -1, -1, true, 'follow', 2]);
  assert.equal(log.changed, 2);
});

test('a time lapse of five pictures shows one every 400 ms and ends at the answer', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf({ answer: 2 });
  player.play(0);
  assert.deepEqual([stand(player), log.settled], [['play', 0], 0]);
  await page.tick(399);
  assert.deepEqual(log.shown, [0]);
  await page.tick(1);
  assert.deepEqual(log.shown, [0, 1]);
  await page.tick(1200);
  assert.deepEqual(log.shown, [0, 1, 2, 3, 4]);
  assert.equal(player.mode, 'play', 'the last picture stands for as long as every other');
  await page.tick(399);
  assert.equal(player.mode, 'play');
  await page.tick(1);
  assert.deepEqual(log.shown, [0, 1, 2, 3, 4, 2]);
  assert.deepEqual(stand(player), ['still', 2]);
  assert.equal(page.jobs.size, 0);
});

test('pictures that are read stand for as long as is said', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf();
  player.pause = 1500;
  player.play(0);
  await page.tick(1499);
  assert.deepEqual(log.shown, [0]);
  await page.tick(17); // the next animation frame
  assert.deepEqual(log.shown, [0, 1]);
});

test('a time lapse of a run that goes on ends by following it', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf({ count: 3, running: true });
  player.play(1);
  await page.tick(800);
  assert.deepEqual(
    [log.shown, stand(player)],
    [
      [1, 2, 2],
      ['follow', 2],
    ],
  );
  assert.equal(log.settled, 2, 'after the step, and at the end');
});

test('a time lapse lasts 8 seconds, at 33 to 400 ms a picture and normal speed', (t) => {
  openPage(t);
  /** @type {[number, number, number][]} count, speed, and milliseconds per picture */
  const paces = [[2, 1, 400], [20, 1, 400], [40, 1, 200], [80, 1, 100], [200, 1, 40], [400, 1, 33], [40, 2, 100], [40, 0.25, 800], [400, 4, 8.25]]; // prettier-ignore
  for (const [count, speed, pause] of paces) {
    const { player } = playerOf({ count });
    Object.assign(player, { speed, mode: 'play', last: 1000 });
    player.tick(1000 + pause - 0.01);
    assert.equal(player.place, 0, `${count} pictures, before`);
    player.tick(1000 + pause);
    assert.equal(player.place, 1, `${count} pictures`);
    assert.equal(player.last, 1000 + pause);
  }
});

test('what an animation frame rounds off is not lost', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf({ count: 80 }); // 100 ms each; animation frames come at multiples of 16 ms
  player.play(0);
  await page.tick(1007);
  assert.equal(log.shown.length, 10, 'the tenth step is due at 1000, seen at 1008');
  await page.tick(1);
  assert.deepEqual(log.shown, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('a late animation frame skips pictures, at most two', (t) => {
  openPage(t);
  const { player, log } = playerOf({ count: 20 }); // 400 ms each
  player.play(0);
  player.tick(800);
  player.tick(8000);
  assert.deepEqual(log.shown, [0, 2, 5]);
  player.tick(8399);
  assert.deepEqual(log.shown, [0, 2, 5], 'what was missed is not made up for');
  player.tick(8400);
  assert.deepEqual(log.shown, [0, 2, 5, 6]);
  player.tick(1e5);
  player.tick(2e5);
  player.tick(3e5);
  player.tick(4e5);
  player.tick(5e5);
  assert.deepEqual(log.shown, [0, 2, 5, 6, 9, 12, 15, 18, 19], 'the last is not jumped over');
});

test('a picture that has not come yet is asked for and waited for', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf();
  log.ready = false;
  player.play(0);
  await page.tick(416);
  assert.deepEqual([log.shown, log.asked], [[0], [1, 1]]);
  log.ready = true;
  await page.tick(16);
  assert.deepEqual([log.shown, player.place], [[0, 1], 1]);
});

test('toggle plays from here, from the start at the end or at the answer, and pauses where it is', async (t) => {
  const page = openPage(t);
  const from = (/** @type {Parameters<typeof playerOf>[0]} */ now) => {
    const { player } = playerOf(now);
    player.toggle();
    assert.equal(player.mode, 'play');
    return player.place;
  };
  assert.equal(from({ place: 1 }), 1);
  assert.equal(from({ place: 3 }), 3);
  assert.equal(from({ place: 4 }), 0);
  assert.equal(from({ place: 4, running: true }), 0);
  assert.equal(from({ place: 4, answer: 2 }), 0);
  assert.equal(from({ place: 2, answer: 2 }), 0);
  assert.equal(from({ place: 2, answer: 2, running: true }), 2);
  const { player, log } = playerOf();
  player.toggle();
  await page.tick(800);
  player.toggle();
  assert.deepEqual(
    [stand(player), log.shown],
    [
      ['still', 2],
      [0, 1, 2, 2],
    ],
  );
  await page.tick(2000);
  assert.deepEqual(log.shown, [0, 1, 2, 2], 'paused');
});

test('one picture is not played', (t) => {
  const page = openPage(t);
  const { player, log } = playerOf({ count: 1 });
  player.toggle();
  player.play(0);
  assert.deepEqual([log.shown, page.jobs.size, player.mode], [[], 0, 'still']);
  const two = playerOf({ count: 2 });
  two.player.play(0);
  assert.deepEqual([two.log.shown, two.player.mode], [[0], 'play']);
});

test('playing again starts one clock, not a second', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf();
  player.play(0);
  await page.tick(208);
  player.play(0);
  assert.equal(page.open.frames, 1);
  await page.tick(392);
  assert.deepEqual(log.shown, [0, 0], '400 ms from the second press on');
  await page.tick(8);
  assert.deepEqual(log.shown, [0, 0, 1]);
});

test('a seek stops the time lapse; so does the end of the player', async (t) => {
  const page = openPage(t);
  const { player, log } = playerOf();
  player.play(0);
  player.seek(3);
  await page.tick(3000);
  assert.deepEqual([log.shown, stand(player), page.open.frames], [[0, 3], ['still', 3], 0]);
  player.play(0);
  player.destroy();
  assert.deepEqual([page.open.frames, player.mode], [0, 'still']);
  player.tick(9e5);
  assert.deepEqual([log.shown, page.open.frames], [[0, 3, 0], 0]);
});
