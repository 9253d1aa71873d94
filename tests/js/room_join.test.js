// The page on which a code is typed: what is taken for a code, what is refused, and where it leads.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeIn } from '../../leakage/ui/components/room/join.js';
import { openPhone } from './class_server.js';
import { settle } from './page.js';

const ME = 'PUT /api/class/KRT4P/me';

test('a code is found in what was typed, and in a pasted address', () => {
  assert.deepEqual(['krt4p', ' KRT 4P\n', 'http://192.168.1.5:8501/j/krt4p', 'KRT4PX', 'k-r'].map(codeIn), [
    'KRT4P',
    'KRT4P',
    'KRT4P',
    'KRT4P',
    'KR',
  ]);
});

/** @param {ReturnType<typeof openPhone>} phone */
const fieldOf = ({ one }) => /** @type {HTMLInputElement} */ (one('input'));

test('typed letters become capitals; a code that is too short asks nobody', async (t) => {
  const phone = openPhone(t, { code: '' });
  const field = fieldOf(phone);
  field.value = 'krt4';
  phone.page.fire(field, 'input');
  assert.equal(field.value, 'KRT4');
  phone.page.fire(phone.one('form'), 'submit');
  assert.equal(phone.one('[role=alert]').textContent, 'A code has five letters or digits.');
  assert.deepEqual([phone.asked, field.getAttribute('aria-invalid')], [[], 'true']);
});

test('a code that is taken leads into the room, whose address can be reloaded', async (t) => {
  const phone = openPhone(t, { code: '' });
  fieldOf(phone).value = 'KRT4P';
  phone.page.fire(phone.one('form'), 'submit');
  assert.equal(phone.one('button').textContent, 'Joining …');
  await phone.lead(1);
  assert.deepEqual([phone.one('.gle-words').textContent, phone.page.window.location.pathname], ['An idea.', '/j/KRT4P']);
});

for (const [status, sentence] of /** @type {[number, string][]} */ ([
  [404, 'There is no room with this code.'],
  [403, 'The door of this room is locked.'],
  [429, 'Too many wrong codes.'],
])) {
  test(`refused with ${status}: the sentence of the server stands beside the code`, async (t) => {
    const phone = openPhone(t, { code: '' });
    phone.refuse[ME] = [status, sentence];
    fieldOf(phone).value = 'KRT4P';
    phone.page.fire(phone.one('form'), 'submit');
    await settle();
    await settle();
    assert.deepEqual([phone.one('[role=alert]').textContent, fieldOf(phone).value], [sentence, 'KRT4P']);
    assert.equal(phone.page.sources.length, 0);
  });
}

test('an error page is no sentence, and a server that is not reached is said', async (t) => {
  for (const [refused, words] of /** @type {[[number, string], RegExp][]} */ ([
    [[502, '<html>Bad gateway</html>'], /error 502/],
    [[0, ''], /cannot be reached/],
  ])) {
    const phone = openPhone(t, { code: '' });
    phone.refuse[ME] = refused;
    fieldOf(phone).value = 'KRT4P';
    phone.page.fire(phone.one('form'), 'submit');
    await settle();
    await settle();
    assert.match(phone.one('[role=alert]').textContent ?? '', words);
  }
});
