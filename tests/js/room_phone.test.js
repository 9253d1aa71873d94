// A phone in a room: it follows the class, answers, leafs back, and keeps its answers through interruptions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPhone, VOTE } from './class_server.js';
import { withViews } from '../../leakage/ui/components/room/room_state.js';
import { NOTHING, settle } from './page.js';

const KEPT = 'gle-room-KRT4P';
const BARS = [[1, 4, 8], [0, 11, 2]]; // prettier-ignore
/** @param {HTMLElement[]} options */
const pressed = (options) => options.map((option) => option.getAttribute('aria-pressed') === 'true').indexOf(true);

test('a phone joins, shows the beat of the class at once, also late, and every beat is announced once', async (t) => {
  const { asked, told, one, lead, page } = openPhone(t);
  await lead(3);
  assert.equal(one('.gle-words').textContent, 'That.');
  assert.equal(one('.gle-lesson-head').textContent, 'One3 of 5');
  await lead(3);
  assert.deepEqual(told, ['You are in. Your phone follows the screen. The answer, 3 of 5: That.']);
  assert.deepEqual(asked, ['PUT /api/class/KRT4P/me {"slot":"SLOT"}', 'GET /api/class/KRT4P/lesson?v=v3true&slot=SLOT']);
  assert.match(page.sources[0].url, /^\/api\/class\/KRT4P\/events\?slot=[0-9a-f]{24}$/);
  await lead(4);
  assert.deepEqual(told.slice(1), ['Try it, 4 of 5: Turn.']);
});

test('a guess is sent and may be changed; the count is all that is seen of the others', async (t) => {
  const { one, all, votes, lead } = openPhone(t);
  await lead(2);
  assert.equal(one('.gle-raised').textContent, '17 of 31 have answered.');
  all('.gle-option')[0].focus();
  all('.gle-option')[0].click();
  assert.equal(pressed(all('.gle-option')), 0);
  assert.equal(document.activeElement, all('.gle-option')[0]);
  await settle();
  all('.gle-option')[2].click();
  await settle();
  const slot = votes()[0].slot;
  assert.deepEqual(
    votes(),
    [0, 2].map((option) => ({ slot, beat: 2, option, round: 0 })),
  );
  assert.equal(one('.gle-votes'), null);
});

test('two presses while a request is under way: the second is sent after it', async (t) => {
  const { all, votes, lead } = openPhone(t);
  await lead(2);
  for (const option of [0, 1, 2]) all('.gle-option')[option].click();
  for (let turn = 0; turn < 4; turn += 1) await settle();
  assert.deepEqual(votes().map(({ option }) => option), [0, 2]); // prettier-ignore
});

test('the reveal shows bars, marks, and first what came of the own guess, and is announced once', async (t) => {
  const { told, one, all, lead } = openPhone(t);
  await lead(2);
  all('.gle-option')[2].click();
  await settle();
  const revealed = { vote: { ...VOTE, revealed: true, bars: [BARS[0]] } };
  await lead(2, true, revealed);
  await lead(2, true, { vote: { ...revealed.vote, bars: [[1, 5, 8]] } });
  assert.equal(one('.gle-text').firstElementChild?.textContent, '✗ You guessed C. The answer is B.C: those Nor this.B: that Because.');
  assert.deepEqual(all('.gle-vote b').map((words) => words.textContent), ['1 vote', '5 votes', '8 votes']); // prettier-ignore
  const marks = all('.gle-option em').map((mark) => mark.textContent);
  assert.deepEqual(marks, ['', '✓ The answer', 'Your guess · ✗ Not this']);
  assert.deepEqual(told.slice(1), ['The answer is shown. ✗ You guessed C. The answer is B.']);
});

test('between the reveal and the lesson that has its answer, the question only closes; a lesson that fails is asked for again', async (t) => {
  const { one, all, refuse, send, lead } = openPhone(t);
  await lead(2);
  refuse['GET /api/class/KRT4P/lesson'] = [0, ''];
  const state = { beat: 2, furthest: 2, lesson: 'v2true', vote: { ...VOTE, revealed: true, bars: [BARS[0]] } };
  await send(state);
  assert.equal(all('.gle-option')[0].getAttribute('aria-disabled'), 'true');
  assert.doesNotMatch(one('.gle-text').textContent ?? '', /not open/);
  delete refuse['GET /api/class/KRT4P/lesson'];
  await lead(2, true, { vote: state.vote });
  assert.equal(all('[data-mark=right]').length, 1);
});

test('of fewer than five votes no bars are shown, and that is said', async (t) => {
  const { one, lead } = openPhone(t);
  await lead(2, true, { vote: { ...VOTE, count: 3, revealed: true, bars: [null] } });
  assert.equal(one('.gle-votes'), null);
  assert.match(one('.gle-text').textContent ?? '', /Fewer than five voted/);
  assert.match(one('.gle-text').textContent ?? '', /You did not guess\./);
});

test('voting again: a choice of its own, and then the bars of both votes', async (t) => {
  const { told, one, all, votes, lead } = openPhone(t);
  await lead(2);
  all('.gle-option')[2].click();
  await settle();
  const again = { ...VOTE, round: 1, second: true, count: 0 };
  await lead(2, true, { vote: again }); // the answer was shown before, and is hidden now
  assert.equal(pressed(all('.gle-option')), -1);
  assert.match(one('.gle-text').textContent ?? '', /Talk to your neighbour, then vote again\.Your first guess: C/);
  assert.equal(told.at(-1), 'Vote again.');
  all('.gle-option')[1].click();
  await settle();
  assert.deepEqual(votes().map(({ round, option }) => [round, option]), [[0, 2], [1, 1]]); // prettier-ignore
  await lead(2, true, { vote: { ...again, revealed: true, bars: BARS } });
  assert.equal(one('.gle-outcome-head').textContent, '✓ You guessed right.');
  assert.deepEqual(all('.gle-vote').slice(0, 2).map((vote) => vote.textContent), ['before1', 'after0']); // prettier-ignore
});

test('a vote that comes too late is taken back, with the sentence of the server', async (t) => {
  const { one, all, refuse, lead } = openPhone(t);
  await lead(2);
  all('.gle-option')[1].click();
  await settle();
  refuse['PUT /api/class/KRT4P/me'] = [409, 'Too late.'];
  all('.gle-option')[0].click();
  await settle();
  await settle();
  assert.equal(pressed(all('.gle-option')), 1);
  assert.equal(one('.gle-hint').textContent, 'Too late.');
});

test('a student leafs back; the bar says where the class is and leads there; then the page follows again', async (t) => {
  const { page, one, all, lead } = openPhone(t);
  const [back, next, follow] = ['.gle-back', '.gle-back + .gle-back', '.gle-next'];
  await lead(3);
  assert.equal(one(follow).hidden, true);
  one(back).click();
  one(back).click();
  assert.equal(one('.gle-words').textContent, 'An idea.');
  assert.equal(one('.gle-hint').textContent, 'The class is at part 3.');
  await lead(4);
  assert.equal(one('.gle-hint').textContent, 'The class is at part 4.');
  one(next).click();
  assert.equal(one('.gle-words').textContent, 'What?');
  assert.deepEqual(all('.gle-option').map((option) => option.getAttribute('aria-disabled')), Array(3).fill('true')); // prettier-ignore
  one(follow).focus();
  page.fire(one(follow), 'click');
  assert.deepEqual([one('.gle-words').textContent, one(follow).hidden, one(next).hidden], ['Turn.', true, true]);
  assert.equal(document.activeElement, one('.gle-text'), 'the button has gone');
  await lead(5);
  assert.equal(one('.gle-words').textContent, 'Remember.');
});

test('what-ifs: only choices of the student become dots, and the last one is there again', async (t) => {
  const { page, one, all, votes, lead, send } = openPhone(t);
  await lead(4);
  assert.deepEqual(votes(), []);
  page.fire(all('.gle-value input')[0], 'click');
  await settle();
  page.fire(all('.gle-value input')[2], 'change');
  await settle();
  assert.deepEqual(votes().map(({ beat, cell }) => [beat, cell]), [[4, 0], [4, 2]]); // prettier-ignore
  assert.equal(one('.gle-whatif').dataset.cell, '2');
  one('.gle-back').click();
  one('.gle-next').click();
  assert.equal(one('.gle-whatif').dataset.cell, '2');
  await send({ beat: 3, furthest: 4, lesson: 'v4true' });
  assert.equal(one('.gle-words').textContent, 'That.');
  assert.equal(votes().length, 2);
});

test('computing live is offered while students may; the run is shown where it was asked for', async (t) => {
  const { page, asked, one, refuse, lead } = openPhone(t);
  await lead(4);
  const press = () => /** @type {HTMLButtonElement} */ (one('.gle-try-live button'));
  assert.equal(press().hidden, true);
  await lead(4, true, { students: true });
  assert.deepEqual([press().hidden, press().textContent], [false, 'Compute it live']);
  refuse['POST /api/class/KRT4P/live'] = [429, 'The class’s queue is full.'];
  press().click();
  await settle();
  await settle();
  assert.equal(one('.gle-try-live [role=alert]').textContent, 'The class’s queue is full.');
  delete refuse['POST /api/class/KRT4P/live'];
  press().click();
  for (let turn = 0; turn < 4; turn += 1) await settle();
  assert.equal(asked.at(-1), 'POST /api/class/KRT4P/live {"slot":"SLOT","beat":4,"cell":0}');
  assert.match(page.sources[1].url, /^\/api\/class\/KRT4P\/runs\/r9\/events\?slot=[0-9a-f]{24}&since=0$/);
  page.sources[1].send({ kind: 'state', status: 'queued', position: 3 });
  assert.equal(one('.gle-live [role=status]').textContent, 'Waiting: 2 runs before yours');
  await lead(5);
  assert.equal(page.sources[1].closed, true);
});

test('silence is said after 12 s; a vote given meanwhile is kept and sent when the room is back', async (t) => {
  const { page, one, all, refuse, votes, lead } = openPhone(t);
  await lead(2);
  await page.tick(12000);
  assert.equal(one('.gle-hint').textContent, 'No connection to the teacher’s computer. Your answers are kept, and this page tries again.');
  refuse['PUT /api/class/KRT4P/me'] = [0, ''];
  all('.gle-option')[1].click();
  await settle();
  assert.equal(pressed(all('.gle-option')), 1);
  delete refuse['PUT /api/class/KRT4P/me'];
  await page.tick(3500);
  await lead(2);
  assert.deepEqual([one('.gle-hint').textContent, votes().length, votes()[1].option], ['', 2, 1]);
});

test('a room that was opened again gets the answers of its beat again, of both rounds', async (t) => {
  const { page, all, votes, lead } = openPhone(t, { random: 0.5 });
  await lead(2);
  all('.gle-option')[2].click();
  await settle();
  const vote = { ...VOTE, round: 1, second: true };
  await lead(2, false, { vote });
  all('.gle-option')[1].click();
  await settle();
  await lead(2, false, { vote, opened: 'o2' });
  assert.equal(votes().length, 2);
  await page.tick(1499);
  assert.equal(votes().length, 2);
  await page.tick(1);
  assert.deepEqual(votes().slice(2).map(({ round, option }) => [round, option]), [[0, 2], [1, 1]]); // prettier-ignore
});

test('a reload keeps token, votes and place, and stores nothing beyond the tab', async (t) => {
  const first = openPhone(t);
  await first.lead(2);
  first.all('.gle-option')[2].click();
  await settle();
  first.one('.gle-back').click();
  const stored = first.page.window.sessionStorage.getItem(KEPT);
  assert.equal(first.page.window.localStorage.length, 0);
  first.phone.close();
  first.page.close();
  const { one, all, page, lead } = openPhone(t, { storage: { [KEPT]: stored } });
  await lead(2);
  assert.match(page.sources[0].url, new RegExp(`slot=${JSON.parse(stored).slot}$`));
  assert.equal(one('.gle-words').textContent, 'An idea.');
  one('.gle-next').click();
  assert.equal(pressed(all('.gle-option')), 2);
});

test('a room that was just here and is unknown now rests; after ten minutes it is gone', async (t) => {
  const { page, one, refuse, lead } = openPhone(t);
  await lead(2);
  refuse['PUT /api/class/KRT4P/me'] = [404, 'There is no room with this code.'];
  const fail = async () => {
    const source = page.sources[page.sources.length - 1];
    Object.assign(source, { readyState: 2 });
    source.fail();
    await settle();
    await settle();
  };
  await fail();
  assert.match(one('.gle-hint').textContent ?? '', /^No connection/);
  await page.tick(600_000);
  await fail();
  assert.equal(one('.gle-hint').textContent, 'The room is closed. Thank you.');
  assert.equal(one('.gle-words').textContent, 'What?');
  await page.tick(60_000);
  assert.deepEqual([page.open.streams, page.open.timers], [0, 0]);
});

test('a closed room says so, leaves its page readable, takes no vote, and leaves no answer behind', async (t) => {
  const { page, one, all, votes, lead, send } = openPhone(t);
  await lead(2);
  await send({ beat: 2, lesson: 'v2false', vote: VOTE, closed: true });
  assert.equal(one('.gle-hint').textContent, 'The room is closed. Thank you.');
  assert.equal(all('.gle-option')[0].getAttribute('aria-disabled'), 'true');
  all('.gle-option')[0].click();
  one('.gle-back').click();
  assert.deepEqual([votes(), one('.gle-words').textContent], [[], 'An idea.']);
  const { length } = page.window.sessionStorage;
  assert.deepEqual([length, page.window.sessionStorage.getItem(KEPT), page.open.streams], [1, '{"ended":true}', 0]);
});

test('a room that closes before its lesson came says so', async (t) => {
  const { one, send } = openPhone(t);
  await send({ closed: true });
  assert.equal(one('.gle-note').textContent, 'The room is closed. Thank you.');
});

test('a page that is left leaves nothing running', async (t) => {
  const { page, phone, lead } = openPhone(t);
  await lead(4);
  phone.close();
  assert.deepEqual({ ...page.open, listeners: [] }, NOTHING);
});

test('pictures beside a run come once; a phone that has them keeps them, and a latecomer has none', () => {
  const lesson = (/** @type {[number, Record<string, string>][]} */ views) => /** @type {any} */ ({ runs: { r17: { views } } });
  const first = lesson([[0, { conv1: 'data:,x' }]]);
  assert.deepEqual(withViews(lesson([]), withViews(first, null)), first);
  assert.equal(withViews(lesson([]), null).runs.r17.views, undefined);
});
