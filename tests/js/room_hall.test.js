// The teacher's side of a room: it is opened, led and closed, its votes are counted, and it is found again after a reload and a restart.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOTHING } from './page.js';
import { ROOM, teach, vote } from './room_hall_setup.js';

const KEPT = { ...ROOM, lesson: '01-one', opened: 'o1', beat: 2, round: 3, revealed: true, students: true };

test('a page without rooms has no button and no key for them', async (t) => {
  const { page, view, one, press } = teach(t);
  const { Presenter } = await import('../../leakage/ui/components/reader/presenter.js');
  one('.gle-present-row').remove();
  const plain = new Presenter(view);
  assert.equal(one('.gle-open-room'), null);
  plain.set(true);
  plain.acts.help();
  assert.equal(
    [...plain.panel.root.querySelectorAll('kbd')].some(({ textContent }) => textContent === 'o'),
    false,
  );
  plain.panel.close();
  press('?');
  assert.equal(page.document.querySelectorAll('.gle-panel kbd').length > 0, true);
});

test('the button opens a room at the beat of the page and shows code, QR and address', async (t) => {
  const { asked, open, one, press, texts, kept, view } = teach(t);
  press('n');
  await open();
  assert.deepEqual(asked[0], { method: 'POST', path: '/api/class', body: { lesson: '01-one', beat: 2 } });
  assert.equal(one('.gle-room-code').textContent, 'KRT4P');
  assert.equal(one('.gle-room .gle-address').textContent, '192.168.1.5:8501/j');
  assert.equal(one('.gle-room-qr').getAttribute('src'), '/api/class/KRT4P/qr.svg?at=http%3A%2F%2F192.168.1.5%3A8501');
  assert.equal(one('.gle-room-qr').getAttribute('alt'), 'QR code of the address http://192.168.1.5:8501/j/KRT4P');
  assert.equal(one('.gle-open-room').textContent, 'Room KRT4P');
  assert.deepEqual(texts('.gle-room-line'), ['192.168.1.5:8501/j KRT4P · 0 phones']);
  assert.equal(kept().key, 'k');
  assert.equal(view.walk.free, true);
});

test('another address changes the QR, the address and the line, and stays the first', async (t) => {
  const { page, open, one, kept } = teach(t);
  await open();
  const select = /** @type {HTMLSelectElement} */ (one('.gle-room-other select'));
  select.value = 'http://10.0.0.7:8501';
  page.fire(select, 'change');
  assert.match(one('.gle-room-qr').getAttribute('src') ?? '', /10\.0\.0\.7/);
  assert.equal(one('.gle-room .gle-address').textContent, '10.0.0.7:8501/j');
  assert.match(one('.gle-room-line').textContent ?? '', /^10\.0\.0\.7:8501\/j/);
  assert.deepEqual(kept().addresses, ['http://10.0.0.7:8501', 'http://192.168.1.5:8501']);
});

test('a server that phones cannot reach gets the command that mends it, and no QR', async (t) => {
  const { open, one } = teach(t, { opened: { local: true, addresses: [] } });
  await open();
  assert.equal(one('.gle-room-qr'), null);
  assert.match(one('.gle-room-side').textContent ?? '', /listens on this computer only.*make class/s);
  assert.equal(one('.gle-room-command').textContent, 'make class');
});

test('phones that join are counted; after 20 seconds without one the dialog says why', async (t) => {
  const { page, open, one, hear } = teach(t);
  await open();
  const help = () => one('.gle-room > .gle-note');
  assert.equal(one('.gle-room-joined').textContent, 'No phone has joined yet.');
  for (let second = 0; second < 19; second += 3) {
    await page.tick(3000);
    await hear({});
    if (second < 15) assert.equal(help().hidden, true);
  }
  assert.equal(help().hidden, false);
  assert.match(help().textContent ?? '', /eduroam.*hotspot.*Shift and a digit/s);
  await hear({ phones: 1 });
  assert.deepEqual([help().hidden, one('.gle-room-joined').textContent], [true, '1 phone has joined.']);
  await hear({ phones: 31 });
  assert.equal(one('.gle-room-joined').textContent, '31 phones have joined.');
});

test('the buttons of the dialog lock and unlock, clear, and let students compute', async (t) => {
  const { page, open, all, one, hear, led } = teach(t);
  await open();
  const named = (/** @type {string} */ words) => /** @type {HTMLElement} */ (all('.gle-room-acts button').find((each) => each.textContent === words)); // prettier-ignore
  page.fire(named('Lock the door'), 'click');
  await hear({ locked: true });
  page.fire(named('Unlock the door'), 'click');
  page.fire(named('Forget these answers'), 'click');
  const box = /** @type {HTMLInputElement} */ (one('.gle-room-check input'));
  box.checked = true;
  page.fire(box, 'change');
  await hear({ students: true });
  box.checked = false;
  page.fire(box, 'change');
  await page.tick();
  assert.deepEqual(led().map(({ act }) => act), ['lock', 'unlock', 'clear', 'students', 'teacher']); // prettier-ignore
  assert.equal(one('.gle-room > [role=alert]').textContent, 'Forgotten.');
});

test('the room is ended after a question, and then hands are counted again', async (t) => {
  const { open, all, hear, led, kept, view, page, one, texts } = teach(t);
  await open();
  await hear({ phones: 31 });
  const press = (/** @type {string} */ words) => {
    const found = all('.gle-room-end button').find((each) => each.textContent === words);
    page.fire(/** @type {HTMLElement} */ (found), 'click');
  };
  press('End the room');
  assert.deepEqual(texts('.gle-room-end > *'), ['Really end it for 31 phones?', 'End it', 'Keep it']);
  press('Keep it');
  assert.deepEqual([texts('.gle-room-end > *'), led()], [['End the room'], []]);
  press('End the room');
  await hear({ phones: 3 });
  assert.equal(one('.gle-room-sure').textContent, 'Really end it for 3 phones?');
  press('End it');
  await page.tick();
  assert.deepEqual(led(), [{ act: 'close' }]);
  assert.deepEqual([kept(), view.hall.counted, one('.gle-room-line').hidden], [null, false, true]);
  assert.match(texts('.gle-panel')[0] ?? '', /The room has ended\./);
  assert.equal(page.open.streams, 0);
});

test('the page leads the room, presenting or not, and a state that is older does not lead the page', async (t) => {
  const { begin, page, press, hear, led, view } = teach(t);
  await begin();
  press('n');
  await hear({ beat: 2, vote: vote() });
  press('f');
  press('n');
  await page.tick();
  await hear({ beat: 2, vote: vote() }); // sent before the server heard of beat 3
  assert.equal(view.place, 2);
  assert.deepEqual(led().slice(0, 2), [{ beat: 2 }, { beat: 3 }]);
  assert.deepEqual(led().at(-1), { beat: 3 }); // and once more, since the server may not have heard
  await hear({ beat: 3, dots: {} });
  assert.equal(led().length, 3);
});

test('the hall sees how many have answered, and bars with the answer; Shift and a digit add no hand', async (t) => {
  const { begin, press, hear, one, texts, led, presenter } = teach(t);
  await begin();
  press('f');
  press('n');
  const bars = [[10, 5, 2]];
  await hear({ beat: 2, phones: 31, vote: vote({ count: 17, bars }) });
  assert.equal(one('.gle-raised').textContent, '17 of 31 have answered.');
  assert.equal(one('.gle-votes'), null);
  press('!', { shiftKey: true, code: 'Digit1' });
  assert.equal(one('.gle-raised').textContent, '17 of 31 have answered.');
  press('r');
  assert.deepEqual(texts('.gle-vote'), ['10 votes', '5 votes', '2 votes']); // at once, before the server's answer
  await hear({ beat: 2, phones: 31, vote: vote({ count: 17, bars, revealed: false }) }); // sent before it heard
  assert.deepEqual(texts('.gle-option em'), ['', '✓ The answer', '']);
  await hear({ beat: 2, phones: 31, vote: vote({ count: 17, bars, revealed: true }) });
  assert.equal(one('.gle-raised'), null);
  press('r');
  assert.equal(one('.gle-votes'), null);
  await hear({ beat: 2, phones: 31, vote: vote({ count: 17, bars }) });
  assert.deepEqual(led().slice(1), [{ act: 'reveal' }, { act: 'hide' }]);
  assert.equal(presenter.host?.room?.votesOf(1)[0][0], 10); // the speaker's window has them before
});

test('of fewer than five votes only the number is shown', async (t) => {
  const { begin, press, hear, one } = teach(t);
  await begin();
  press('f');
  press('n');
  await hear({ beat: 2, phones: 6, vote: vote({ count: 4, revealed: true, bars: [null] }) });
  assert.equal(one('.gle-raised').textContent, '4 of 6 have answered. Fewer than five voted: only the number is shown.');
  assert.equal(one('.gle-votes'), null);
});

test('v begins the second vote, whose bars stand beside the first', async (t) => {
  const { begin, press, hear, one, texts, led } = teach(t);
  await begin();
  press('f');
  press('n');
  await hear({ beat: 2, phones: 9, vote: vote({ count: 8, revealed: true, bars: [[5, 2, 1]] }) });
  press('v');
  assert.equal(one('.gle-raised').textContent, 'Talk to your neighbour, then vote again. 0 of 9 have answered.');
  await hear({ beat: 2, phones: 9, vote: vote({ round: 1, second: true, count: 9, bars: [[5, 2, 1], [0, 8, 1]] }) }); // prettier-ignore
  assert.equal(one('.gle-votes'), null);
  press('r');
  assert.deepEqual(texts('.gle-votes'), ['before5after0', 'before2after8', 'before1after1']);
  await hear({ beat: 2, phones: 9, vote: vote({ round: 1, second: true, count: 9, revealed: true, bars: [[5, 2, 1], [0, 8, 1]] }) }); // prettier-ignore
  assert.deepEqual(led().slice(1), [{ act: 'again' }, { act: 'reveal' }]);
});

test('what the server refuses is said, and the page shows again what is so', async (t) => {
  const { begin, press, hear, one, server, page } = teach(t);
  await begin();
  press('f');
  press('n');
  await hear({ beat: 2, phones: 9, vote: vote({ count: 8, bars: [[5, 2, 1]] }) });
  server.answer = () => ({ status: 422, text: 'Beat 2 asks no question.' });
  press('r');
  assert.notEqual(one('.gle-votes'), null);
  await page.tick();
  assert.equal(one('.gle-votes'), null);
  assert.equal(one('.gle-room-note').textContent, 'Beat 2 asks no question.');
});

test('a server that is silent for 12 seconds is missed until it is heard again', async (t) => {
  const { begin, hear, one, page } = teach(t);
  await begin();
  await page.tick(11_999);
  assert.equal(one('.gle-room-note').textContent, '');
  await page.tick(1);
  assert.equal(one('.gle-room-note').textContent, 'The server does not answer. Trying again …');
  await page.tick(2000);
  await hear({});
  assert.equal(one('.gle-room-note').textContent, '');
});

test('a room that cannot be opened says why', async (t) => {
  const { click, one, server, kept } = teach(t);
  server.answer = () => ({ status: 429, text: 'There are 20 rooms open on this server already.' });
  await click('.gle-open-room');
  assert.equal(one('.gle-panel [role=alert]').textContent, 'There are 20 rooms open on this server already.');
  assert.equal(kept(), null);
});

test('a reload finds the room again and goes where it is', async (t) => {
  const { hear, view, led, asked, one, page } = teach(t, { kept: KEPT });
  assert.deepEqual(asked, []);
  assert.match(page.sources[0].url, /^\/api\/class\/KRT4P\/events\?key=k$/);
  await hear({ beat: 2, phones: 3, vote: vote({ round: 3 }) });
  assert.deepEqual([view.place, led(), one('.gle-open-room').textContent], [1, [], 'Room KRT4P']);
});

test('after a restart of the server the same room is opened again, and the page says what is gone', async (t) => {
  const { page, hear, asked, one } = teach(t, { kept: KEPT });
  await hear({ beat: 2, phones: 9, students: true, vote: vote({ round: 3, second: true, revealed: true, bars: [[5, 2, 1]] }) });
  Object.assign(page.sources[0], { readyState: 2 });
  page.sources[0].fail();
  await page.tick();
  const votes = { round: 3, second: true, revealed: true };
  assert.deepEqual(asked[0].body, { lesson: '01-one', beat: 2, code: 'KRT4P', key: 'k', students: true, ...votes });
  await page.tick(2000);
  assert.equal(page.sources.length, 2);
  await hear({ opened: 'o2', beat: 2, phones: 8, vote: vote({ round: 3, revealed: true, bars: [[5, 2, 1]] }) });
  assert.equal(one('.gle-room-note').textContent, 'The server was started again: votes, dots and live runs of other parts are gone.');
});

test('a room that another key holds is given up, in words', async (t) => {
  const { page, said, server, kept, view } = teach(t, { kept: KEPT });
  server.answer = () => ({ status: 403, text: 'Only the teacher who opened this room may do that.' });
  Object.assign(page.sources[0], { readyState: 2 });
  page.sources[0].fail();
  await page.tick();
  assert.equal(said.at(-1), 'Only the teacher who opened this room may do that.');
  assert.deepEqual([kept(), view.hall.counted], [null, false]);
});

test('a press while the server has just been started again opens the room first', async (t) => {
  const { view, hear, asked, server, page } = teach(t, { kept: KEPT });
  await hear({ beat: 2, vote: vote() });
  let known = false;
  server.answer = ({ path }) => {
    if (path === '/api/class') known = true;
    return known ? undefined : { status: 404, text: 'There is no room with this code.' };
  };
  view.go(2);
  await page.tick();
  assert.deepEqual(asked.map(({ path, body }) => [path.split('/').at(-1), body.beat]), [['lead', 3], ['class', 3], ['lead', 3]]); // prettier-ignore
});

test('leaving the lesson leaves the room open and nothing on the page', async (t) => {
  const { open, presenter, view, page, led, kept } = teach(t);
  await open();
  presenter.destroy();
  view.destroy();
  assert.equal(kept().code, 'KRT4P');
  assert.deepEqual(led(), []);
  await page.tick(20_000);
  assert.deepEqual(page.open.streams, NOTHING.streams);
  assert.equal(page.document.querySelectorAll('.gle-panel, .gle-room-line').length, 0);
});

test('the speaker sees the votes before the hall, and no button that adds a hand', async (t) => {
  const { open, press, hear, page } = teach(t);
  const other = new page.window.constructor({ url: 'about:blank' });
  page.replace(page.window, 'open', { value: () => other });
  page.replace(globalThis, 'open', { value: () => other });
  page.replace(globalThis, 'setInterval', { value: () => 0 });
  page.replace(globalThis, 'clearInterval', { value: () => {} });
  await open();
  press('o');
  press('f');
  press('n');
  press('s');
  await hear({ beat: 2, phones: 31, vote: vote({ count: 17, bars: [[10, 5, 2]] }) });
  assert.match(other.document.body.textContent, /Guesses17 of 31 have answered\.A: 10 {2}· {2}B: 5 {2}· {2}C: 2/);
  const caps = [...other.document.querySelectorAll('button:not([hidden]) kbd')].map(({ textContent }) => textContent);
  assert.deepEqual([caps.includes('1'), caps.includes('o'), caps.includes('⇧1')], [true, true, false]);
});
