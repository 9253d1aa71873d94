// A phone in a room: what it says of the room, and where it goes when the class, or its student, goes elsewhere.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lessonOf, openPhone, STATE, VOTE } from './class_server.js';
import { settle } from './page.js';

const KEPT = 'gle-room-KRT4P';
const RUN = {
  ...{ title: 'A run', lab: null, labels: [[0, [0]]], verdicts: [[0, { word: 'not shown by this attack', why: '' }]], seconds: 2 },
  columns: { step: [1, 10, 20], seconds: [0, 1, 2], loss: [4, 3, 2], psnr: [5, 6, 30] },
  film: { side: 32, batch: 1, places: [0, 1, 2] },
  meta: {
    ...{ batch: 1, size: 32, steps: 20, class_names: ['cat'], pictures: [{ title: 'Cat', class_name: 'cat', label: 0 }] },
    ...{ baselines: { grey: { psnr: 11 } }, received: { entries: 9, bytes: 4, layers: [] } },
  },
  result: { answer: 2, scores: { psnr: 30 }, verdict: { word: 'recognizable', why: '' }, labels: [0] },
};
/** @param {HTMLElement[]} options */
const pressed = (options) => options.map((option) => option.getAttribute('aria-pressed') === 'true').indexOf(true);

test('the class goes to another lesson: nothing of the old one stays, no answer of it is sent, and it is announced once', async (t) => {
  const { page, server, asked, told, one, all, refuse, votes, lead, send } = openPhone(t);
  await lead(2, true, { vote: { ...VOTE, revealed: true, bars: [[1, 4, 8]] } });
  await lead(2, false);
  refuse['PUT /api/class/KRT4P/me'] = [0, ''];
  all('.gle-option')[1].click(); // waits: the server is not reached
  await settle();
  one('.gle-back').click();
  const other = { ...lessonOf(2, false), id: '07-two', title: 'Two' };
  const state = { id: '07-two', lesson: 'w2', beat: 2, furthest: 2, vote: VOTE };
  refuse['GET /api/class/KRT4P/lesson'] = [0, ''];
  await send(state);
  assert.deepEqual([page.document.querySelector('main')?.textContent, one('.gle-lesson')], ['Opening the lesson …', null]);
  await page.tick(4000);
  const sent = votes().length;
  for (const name of Object.keys(refuse)) delete refuse[name];
  const before = told.length;
  server.lesson = other;
  await send(state);
  await send(state);
  assert.deepEqual([one('.gle-lesson-head').textContent, one('.gle-greeting').textContent], ['Two2 of 5', 'The next lesson: Two.']);
  assert.deepEqual(told.slice(before), ['The next lesson: Two. Guess, 2 of 5: What?']);
  assert.deepEqual([pressed(all('.gle-option')), all('.gle-vote').length, votes().length], [-1, 0, sent]);
  assert.match(asked.at(-1) ?? '', /lesson\?v=w2/);
  const { lesson, answers, place } = JSON.parse(page.window.sessionStorage.getItem(KEPT));
  assert.deepEqual([lesson, answers, place], ['07-two', {}, null]);
  server.lesson = { ...other, ...lessonOf(3, true), id: '07-two' };
  await send({ ...state, lesson: 'w3', beat: 3, furthest: 3, vote: null });
  assert.deepEqual([one('.gle-words').textContent, one('.gle-greeting').textContent], ['That.', '']);
});

test('a phone that was away while the class changed its lesson brings nothing of the old one', async (t) => {
  const answers = { '2/0': { value: 1, counted: null } };
  const stored = JSON.stringify({ slot: 'a'.repeat(24), opened: 'o1', lesson: '07-two', heard: 1, answers, place: 0 });
  const { one, all, votes, lead } = openPhone(t, { storage: { [KEPT]: stored } });
  await lead(2);
  assert.deepEqual([one('.gle-words').textContent, pressed(all('.gle-option')), votes()], ['What?', -1, []]);
});

test('who has joined is told so until the first change of the beat, and not again after a reload', async (t) => {
  const first = openPhone(t);
  await first.lead(1);
  assert.equal(first.one('.gle-greeting').textContent, 'You are in. Your phone follows the screen.');
  await first.lead(2);
  assert.equal(first.one('.gle-greeting').textContent, '');
  const stored = first.page.window.sessionStorage.getItem(KEPT);
  first.phone.close();
  first.page.close();
  const { told, one, lead } = openPhone(t, { storage: { [KEPT]: stored } });
  await lead(2);
  assert.deepEqual([told, one('.gle-greeting').textContent], [['Guess, 2 of 5: What?'], '']);
});

test('a choice that the server has taken is a dot in front, and only then is said to be; the plot here is of this phone', async (t) => {
  const { page, one, all, refuse, lead, send, votes } = openPhone(t);
  await lead(4);
  const said = () => one('.gle-try-told').textContent;
  assert.equal(said(), '');
  refuse['PUT /api/class/KRT4P/me'] = [0, ''];
  page.fire(all('.gle-value input')[1], 'change');
  await settle();
  await settle();
  assert.equal(said(), '', 'the server was not reached');
  delete refuse['PUT /api/class/KRT4P/me'];
  await page.tick(3500);
  await lead(4);
  assert.equal(said(), 'Your dot is on the screen in front.');
  const sent = votes().length;
  assert.equal(one('.gle-plot').previousElementSibling?.textContent, 'Your own tries');
  await lead(4, true, { cleared: 1 });
  assert.equal(said(), '', 'the teacher has forgotten the choices');
  await send({ ...STATE, opened: 'o2', beat: 4, furthest: 4, lesson: 'v4true', dots: {} });
  await page.tick(4000);
  assert.equal(votes().length, sent, 'after a restart of the server it is not sent again');
  await lead(5);
  assert.equal(one('.gle-own-tries'), null);
});

test('with the answer the film that halted before the question goes on to its end, and can be played again', async (t) => {
  const { page, server, one, send } = openPhone(t);
  const part = { ...RUN, columns: { step: [1, 10] }, film: { ...RUN.film, places: [0, 1] }, result: null };
  const beatsOf = (/** @type {number} */ furthest, /** @type {boolean} */ answered) => {
    const { beats, ...rest } = lessonOf(furthest, answered);
    const runs = { r01: answered ? RUN : part };
    const stops = ['step 10', undefined, 'answer'];
    return /** @type {any} */ ({
      ...rest,
      runs,
      beats: beats.map((beat, at) => (stops[at] ? { ...beat, runs: ['r01'], stop: stops[at] } : beat)),
    });
  };
  server.lesson = beatsOf(2, false);
  await send({ beat: 2, furthest: 2, lesson: 'v2', vote: VOTE });
  await page.tick();
  assert.deepEqual([one('.gle-screen').dataset.step, one('.gle-now').textContent], ['10', 'step 10 of 20']);
  server.lesson = beatsOf(3, true); // the answer brings the beat that follows
  await send({ beat: 2, furthest: 2, lesson: 'v3', vote: { ...VOTE, revealed: true } });
  await page.tick();
  assert.deepEqual([one('.gle-words').textContent, one('.gle-screen').dataset.step], ['What?', '20']);
  assert.equal(one('.gle-play').getAttribute('aria-label'), 'Play again');
  assert.equal(one('.gle-next').hidden, true, 'the class is here');
});

test('the browser’s Back leads out of the room, which is named there, and one press leads in again', async (t) => {
  const { page, one, all, lead } = openPhone(t);
  await lead(2);
  all('.gle-option')[2].click();
  await settle();
  page.window.history.replaceState(null, '', '/j');
  page.fire(page.window, 'popstate');
  assert.equal(one('.gle-join-before p').textContent, 'You left room KRT4P.');
  assert.deepEqual([document.activeElement?.textContent, page.open.streams], ['Go back in', 0]);
  one('.gle-join-before button').click();
  await lead(2);
  assert.deepEqual([pressed(all('.gle-option')), page.window.location.pathname], [2, '/j/KRT4P']);
  assert.equal(one('.gle-greeting').textContent, '', 'it was in this room before');
});

test('a phone that was in no room, or in one that has ended, is offered no way back', (t) => {
  const ended = { [KEPT]: '{"ended":true}', 'gle-door-asks': 'answered' };
  for (const storage of [{}, ended]) assert.equal(openPhone(t, { code: '', storage }).one('.gle-join-before'), null);
});

for (const [who, kept, words, error] of /** @type {[string, object | null, string | undefined, string][]} */ ([
  ['was in it when it ended', { ended: true }, 'This room has ended. Thank you.', ''],
  ['was in it long ago', { slot: 'a'.repeat(24), heard: 1 }, 'This room has ended. Thank you.', ''],
  ['was never in it', null, undefined, 'There is no room.'],
])) {
  test(`a phone that ${who} opens the address of a room that the server does not know`, async (t) => {
    /** @type {Record<string, string>} */
    const storage = kept ? { [KEPT]: JSON.stringify(kept) } : {};
    const { one, refuse, phone } = openPhone(t, { code: '', storage });
    refuse['PUT /api/class/KRT4P/me'] = [404, 'There is no room.'];
    phone.start('KRT4P');
    await settle();
    await settle();
    assert.deepEqual([one('.gle-join-before')?.textContent, one('[role=alert]').textContent], [words, error]);
    assert.equal(one('input').getAttribute('aria-invalid'), String(Boolean(error)));
  });
}

test('while the teacher computes one live, phones at that beat say so', async (t) => {
  const { one, lead } = openPhone(t);
  const said = async (/** @type {boolean} */ computing) => {
    await lead(4, true, { computing, runs: { 1: 'r9' } });
    return one('.gle-try-told').textContent;
  };
  assert.deepEqual([await said(true), await said(false)], ['Your teacher computes a choice live on the screen.', '']);
});
