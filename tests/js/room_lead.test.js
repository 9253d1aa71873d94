// Which page leads a room: the lesson that a class is taken to, a tab that was lost, and the tab that took the lead last.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROOM, teach } from './room_hall_setup.js';

const KEPT = { ...ROOM, lesson: '01-one', opened: 'o1', beat: 2, round: 3, revealed: true, students: true };
const OTHER = { ...KEPT, lesson: '02-two' };

test('the class is taken to this lesson: the same code and key, at the beat of the page', async (t) => {
  const { asked, click, hear, kept, led, one, press, texts, view } = teach(t, { kept: OTHER });
  assert.deepEqual(texts('.gle-room-offer > *'), ['Take the class to this lesson', 'End the room']);
  assert.equal(one('.gle-open-room').hidden, true);
  press('n');
  await click('.gle-room-take');
  assert.deepEqual(asked[0].body, { lesson: '01-one', beat: 2, code: 'KRT4P', key: 'k', students: true });
  await hear({ beat: 2, phones: 31 });
  assert.deepEqual([view.place, led()], [1, []]);
  assert.deepEqual([kept().lesson, kept().beat, kept().key], ['01-one', 2, 'k']);
  assert.equal(one('.gle-room-note').textContent, 'Room KRT4P is at this lesson now.');
  assert.deepEqual(texts('.gle-room-line'), ['192.168.1.5:8501/j KRT4P · 31 phones']);
  assert.deepEqual([one('.gle-room-offer'), one('.gle-open-room').textContent], [null, 'Room KRT4P']);
});

test('while presenting, a line and the key o offer the same', async (t) => {
  const { one, page, press, texts, asked } = teach(t, { kept: OTHER });
  press('f');
  assert.equal(one('.gle-room-waiting').textContent, 'Room KRT4P is open. Press o to take its phones along.');
  press('o');
  assert.deepEqual(texts('.gle-panel .gle-room-offer > *'), ['Take the class to this lesson', 'End the room']);
  page.fire(one('.gle-panel .gle-room-take'), 'click');
  await page.tick();
  assert.deepEqual([asked.length, one('.gle-room-waiting').textContent], [1, '']);
});

test('the room of another lesson is ended from here after a question', async (t) => {
  const { all, asked, kept, one, page, texts } = teach(t, { kept: OTHER });
  page.fire(one('.gle-room-end button'), 'click');
  assert.equal(one('.gle-room-sure').textContent, 'Really end room KRT4P?');
  page.fire(all('.gle-room-end button')[0], 'click');
  await page.tick();
  assert.deepEqual([asked[0].path, asked[0].body.act, kept()], ['/api/class/KRT4P/lead', 'close', null]);
  assert.deepEqual([texts('.gle-room-offer'), one('.gle-open-room').hidden], [[], false]);
});

test('a room that the server refuses to take along is forgotten, and why is said', async (t) => {
  const { click, kept, one, server } = teach(t, { kept: OTHER });
  server.answer = () => ({ status: 403, text: 'Only the teacher who opened this room may do that.' });
  await click('.gle-room-take');
  assert.equal(one('.gle-room-note').textContent, 'Only the teacher who opened this room may do that.');
  assert.deepEqual([kept(), one('.gle-open-room').hidden], [null, false]);
});

test('a new tab of the browser finds the room, and leads it where it is', async (t) => {
  const { asked, click, hear, kept, led, page, texts, view } = teach(t, { kept: KEPT, leader: 'another' });
  assert.deepEqual([page.sources.length, texts('.gle-room-take')], [0, ['Lead room KRT4P here']]);
  await click('.gle-room-take');
  await hear({ beat: 2, phones: 3 });
  assert.deepEqual([view.place, asked, led()], [1, [], []]);
  const { leader } = kept();
  assert.notEqual(leader, 'me'); // the tab before leads no more
  assert.equal(page.window.sessionStorage.getItem('gle-room-leader'), leader);
});

test('a tab whose room is led by another says so, leads no more and offers to', async (t) => {
  const { hear, kept, one, page, texts, view, led } = teach(t, { kept: KEPT });
  await hear({ beat: 2, phones: 3 });
  const other = JSON.stringify({ ...kept(), leader: 'another' });
  page.window.localStorage.setItem('gle-room', other);
  page.fire(page.window, 'storage');
  assert.equal(one('.gle-room-note').textContent, 'Another tab leads room KRT4P now.');
  assert.deepEqual([texts('.gle-room-take'), view.hall.counted, page.open.streams], [['Lead room KRT4P here'], false, 0]);
  view.go(2);
  await page.tick(60_000);
  assert.deepEqual([led(), page.window.localStorage.getItem('gle-room')], [[], other]);
  assert.equal(one('.gle-room-note').textContent, 'Another tab leads room KRT4P now.');
});

test('a room that another page has taken to another lesson is not called back', async (t) => {
  const { hear, led, one } = teach(t, { kept: KEPT });
  await hear({ id: '02-two', beat: 5, phones: 3 });
  assert.deepEqual([led(), one('.gle-room-note').textContent], [[], 'Another tab leads room KRT4P now.']);
});

test('after three hours nothing is offered', (t) => {
  const HOURS = 3 * 3600_000;
  const before = 1_700_000_000_000; // what a test's page says the time is
  assert.notEqual(teach(t, { kept: { ...OTHER, since: before - HOURS + 1 } }).one('.gle-room-take'), null);
  assert.equal(teach(t, { kept: { ...OTHER, since: before - HOURS } }).one('.gle-room-take'), null);
});

test('leaving the page asks first if phones are in its room', async (t) => {
  const { begin, hear, page, presenter } = teach(t);
  const asks = () => {
    const event = new page.window.Event('beforeunload', { cancelable: true });
    page.window.dispatchEvent(event);
    return event.defaultPrevented;
  };
  await begin();
  assert.equal(asks(), false);
  await hear({ phones: 1 });
  assert.equal(asks(), true);
  presenter.destroy();
  assert.equal(asks(), false);
});

test('in another network the room has other addresses: the dialog, the corner and the next visit show them', async (t) => {
  const { click, hear, kept, one, page, server, texts, opened } = teach(t, { kept: KEPT });
  await hear({ beat: 2 });
  opened.addresses = ['http://10.0.0.7:8501', 'http://172.20.10.2:8501'];
  await click('.gle-open-room');
  assert.match(one('.gle-room-where').textContent ?? '', /^10\.0\.0\.7/);
  assert.match(texts('.gle-room-line')[0] ?? '', /^10\.0\.0\.7/);
  const select = /** @type {HTMLSelectElement} */ (one('.gle-room-other select'));
  select.value = 'http://172.20.10.2:8501';
  page.fire(select, 'change');
  page.fire(page.window, 'online');
  await page.tick();
  assert.deepEqual(kept().addresses, ['http://172.20.10.2:8501', 'http://10.0.0.7:8501'], 'the chosen one stays the first');
  server.answer = () => ({ status: 500, text: '' });
  page.fire(page.window, 'online');
  await page.tick();
  assert.deepEqual(kept().addresses.length, 2, 'a server that does not answer changes nothing');
});

test('a lesson that the class is taken to has the addresses of now', async (t) => {
  const { click, opened, kept } = teach(t, { kept: OTHER });
  opened.addresses = ['http://172.20.10.2:8501'];
  await click('.gle-room-take');
  assert.deepEqual(kept().addresses, ['http://172.20.10.2:8501']);
});
