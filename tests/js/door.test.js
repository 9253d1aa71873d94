// The front door: noise that halts and asks, the answer after a press, a lock that opens at the end; one line for who knows it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mount } from '../../leakage/ui/components/front/front.js';
import { Door } from '../../leakage/ui/components/reader/door.js';
import { bringOwn, scriptsOf } from './own.js';
import { NOTHING, brushOf, openPage } from './page.js';

const STEPS = [1, 5, 10, 20, 40, 80];
const story = (/** @type {number} */ number) => ({
  title: `Story ${number}`,
  line: 'What happens.',
  href: `/learn#0${number}-x/2`,
  lab: number % 2 ? `/?v=1&seed=${number}` : null,
  thumbnail: `/data/stories/r0${number}.webp`,
});
const DATA = {
  film: { address: '/data/runs/r02.webp', side: 32, steps: STEPS, halt: 3, entries: 15826, layers: [], seconds: 23.3 },
  links: { why: '/learn#01-x/1', learn: '/learn', teach: '/learn/worksheets/01-x-plan.html', lab: '/' },
  own: '/api/own/own.0.js',
  stories: [1, 2, 3].map(story),
};

/**
 * @param {import('node:test').TestContext} t
 * @param {{ calm?: boolean, serve?: (address: string) => { width: number, height: number } | null | undefined, data?: object }} [how]
 */
async function open(t, { calm = false, serve = () => ({ width: 32, height: 32 * (STEPS.length + 1) }), data = {} } = {}) {
  const page = openPage(t, { calm });
  page.serve = serve;
  const host = /** @type {HTMLElement} */ (page.component('front').querySelector('.gle-door'));
  const door = new Door(host, { ...DATA, ...data });
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (host.querySelector(name));
  const phase = () => one('.gle-opening').dataset.phase;
  const place = () => Number(one('.gle-opening').dataset.place);
  const options = () => [.../** @type {NodeListOf<HTMLElement>} */ (host.querySelectorAll('.gle-option'))];
  await page.tick();
  return { page, host, door, one, phase, place, options };
}

test('noise moves, halts at the step of the question, and asks with three answers', async (t) => {
  const { page, one, phase, place, options } = await open(t);
  assert.equal(phase(), 'opening');
  assert.equal(place(), 0);
  await page.tick(400);
  assert.ok(place() > 0);
  assert.equal(phase(), 'opening');
  await page.tick(1600);
  assert.equal(phase(), 'asked');
  assert.equal(STEPS[place()], 20);
  assert.equal(one('h2').textContent, 'What will it become?');
  assert.equal(one('.gle-door-server small').textContent, 'step 20');
  assert.equal(options().length, 3);
  assert.ok(options().every((option) => option.getAttribute('aria-pressed') === 'false'));
  await page.tick(3000);
  assert.equal(STEPS[place()], 20); // it stands
});

test('after a press it plays on to the end, and says which answer was right', async (t) => {
  const { page, one, phase, place, options } = await open(t);
  await page.tick(2000);
  options()[0].click(); // a wrong one
  assert.equal(phase(), 'going');
  assert.equal(place(), 3);
  await page.tick(3000);
  assert.equal(phase(), 'open');
  assert.equal(STEPS[place()], 80);
  assert.equal(one('h2').textContent, 'It never left the phone.');
  assert.match(options()[0].textContent ?? '', /Your guess · ✗ Not this/);
  assert.match(options()[1].textContent ?? '', /The picture on the phone.*✓ The answer/);
  const drawn = brushOf(one('.gle-door-phone canvas')).drawn;
  assert.equal(drawn.at(-1)?.source, '/data/runs/r02.webp');
});

test('a second press, or one that comes too late, changes nothing', async (t) => {
  const { page, options } = await open(t);
  await page.tick(2000);
  options()[1].click();
  options()[2].click();
  await page.tick(3000);
  options()[2].click();
  assert.match(options()[1].textContent ?? '', /Your guess · ✓ The answer/);
  assert.doesNotMatch(options()[2].textContent ?? '', /guess/);
});

test('without a press it waits, and what shows the answer stays covered until it is seen', async (t) => {
  const { page, host, one, phase, place, options } = await open(t);
  const covered = () => [
    host.dataset.covered,
    one('.gle-stories').inert,
    page.document.documentElement.classList.contains('gle-door-asks'),
  ];
  await page.tick(2000);
  await page.tick(600_000);
  assert.equal(phase(), 'asked');
  assert.equal(STEPS[place()], 20);
  assert.deepEqual(covered(), ['true', true, true]);
  options()[1].click();
  assert.deepEqual(covered(), ['true', true, true]); // the film still plays
  await page.tick(3000);
  assert.equal(phase(), 'open');
  assert.deepEqual(covered(), ['false', false, false]);
});

test('who does not want to guess has it shown', async (t) => {
  const { page, one, phase, options } = await open(t);
  await page.tick(2000);
  one('.gle-door-skip').click();
  await page.tick(3000);
  assert.equal(phase(), 'open');
  assert.doesNotMatch(
    options()
      .map(({ textContent }) => textContent)
      .join(' '),
    /Your guess/,
  );
});

test('who asked for less motion sees no film: the question at once and for as long as wanted, then the end', async (t) => {
  const { page, one, phase, place, options } = await open(t, { calm: true });
  assert.equal(phase(), 'asked');
  assert.equal(STEPS[place()], 20);
  assert.equal(brushOf(one('.gle-door-server canvas')).drawn.length, 1);
  await page.tick(60_000);
  assert.equal(phase(), 'asked');
  options()[1].click();
  assert.equal(phase(), 'open');
  assert.equal(brushOf(one('.gle-door-server canvas')).drawn.length, 2);
});

test('a film that does not come is said, and the ways on are there', async (t) => {
  const { one, phase } = await open(t, { serve: () => null });
  assert.equal(phase(), 'missing');
  assert.equal(one('h2').textContent, 'The recording could not be loaded.');
  assert.equal(one('.gle-door-why').getAttribute('href'), '/learn#01-x/1');
});

test('stories lead to their beats, and those that the Lab has settings for to the Lab', async (t) => {
  const { host } = await open(t);
  const hrefs = (/** @type {string} */ name) => [...host.querySelectorAll(name)].map((link) => link.getAttribute('href'));
  assert.deepEqual(
    hrefs('.gle-story-link'),
    DATA.stories.map(({ href }) => href),
  );
  assert.deepEqual(hrefs('.gle-story-lab'), ['/?v=1&seed=1', '/?v=1&seed=3']);
  assert.equal(host.querySelector('.gle-story-lab')?.getAttribute('aria-label'), 'Open in the Lab: Story 1');
});

test('whoever has been here sees a line, the stories behind a fold, and nothing moves', async (t) => {
  const { page, host, one } = await open(t, { data: { small: true } });
  assert.equal(host.querySelector('.gle-opening'), null);
  assert.deepEqual(page.asked, []);
  assert.equal(one('details').hasAttribute('open'), false);
  assert.equal(host.querySelectorAll('.gle-story').length, 3);
  assert.deepEqual(
    [...host.querySelectorAll('nav > a')].map(({ textContent }) => textContent),
    ['Learn', 'Teach with this'],
  );
  assert.deepEqual(
    [...host.querySelectorAll('nav > button')].map(({ textContent }) => textContent),
    ['Try your own picture'],
  );
  assert.deepEqual(page.open, { ...NOTHING, listeners: ['click'] }); // on that button
});

test('where there is nothing to try, no button says so', async (t) => {
  const { host } = await open(t, { data: { own: null } });
  assert.equal(host.querySelector('.gle-door-own'), null);
});

test('in the Lab, a rerun with the same data keeps the film, and other data draw another door', (t) => {
  const page = openPage(t);
  page.serve = () => ({ width: 32, height: 224 });
  const parent = page.component('front');
  const front = mount(parent);
  const data = { ...DATA, small: false, settings: '.settings' };
  front.update(data, () => {});
  const opening = parent.querySelector('.gle-opening');
  front.update({ ...data }, () => {});
  assert.equal(parent.querySelector('.gle-opening'), opening);
  front.update({ ...data, small: true }, () => {});
  assert.equal(parent.querySelector('.gle-opening'), null);
  front.destroy();
  assert.deepEqual(page.open, NOTHING);
});

test('who goes on without a guess, by "Try your own" or by a setting, finds nothing covered', async (t) => {
  for (const goes of ['.gle-door-own', '.menu']) {
    const page = openPage(t);
    page.serve = () => ({ width: 32, height: 224 });
    const parent = page.component('front');
    const column = page.document.body.appendChild(page.document.createElement('div'));
    column.className = 'stColumn';
    column.innerHTML = '<div class="settings"></div><button class="menu">Model</button>';
    const front = mount(parent);
    page.replace(page.document.head, 'append', { value: () => {} }); // the script does not come
    front.update({ ...DATA, small: false, settings: '.settings' }, () => {});
    const root = page.document.documentElement;
    const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (page.document.querySelector(name));
    const covered = () => [root.classList.contains('gle-door-asks'), one('.gle-door').dataset.covered];
    await page.tick(100); // before the question
    assert.deepEqual(covered(), [true, 'true']);
    page.fire(one(goes), 'pointerdown');
    if (goes === '.gle-door-own') one(goes).click();
    assert.deepEqual(covered(), [false, 'false']);
    for (let n = 0; n < 8; n += 1) await page.tick(1000);
    assert.equal(one('.gle-opening').dataset.phase, 'open'); // and it is not asked
    front.destroy();
    assert.deepEqual(page.open, NOTHING);
    page.window.sessionStorage.clear();
    column.remove();
  }
});

test('"Try your own picture" loads a script once, and opens what it brings below the film', async (t) => {
  const { page, host, door, one } = await open(t, { data: { own: '/api/own/own.door.js' } });
  const scripts = scriptsOf(page);
  const made = bringOwn(t);
  one('.gle-door-own').click();
  assert.deepEqual(
    scripts.map((script) => script.getAttribute('src')),
    ['/api/own/own.door.js'],
  );
  page.fire(scripts[0], 'load');
  await page.tick();
  one('.gle-door-own').click();
  await page.tick();
  assert.equal(scripts.length, 1);
  assert.equal(made.length, 1);
  assert.deepEqual(made[0].used, [{}]);
  assert.equal(one('.gle-opening').nextElementSibling?.firstElementChild, made[0].root);
  assert.equal(page.scrolled.at(-1)?.element, made[0].root);
  assert.equal(page.document.activeElement, made[0].input);
  const link = made[0].how.lab('v=1&seed=2', 'The Lab');
  assert.deepEqual([link.getAttribute('href'), link.textContent], ['/?v=1&seed=2', 'The Lab']);
  door.destroy();
  assert.equal(made[0].gone, true);
  assert.equal(host.querySelector('.gle-own-place'), null);
});

test('where the program is missing, what needs it says so, and the line leads to no other page', async (t) => {
  const { links } = DATA;
  const { page, host, one } = await open(t, {
    data: { needs_program: true, own: 'own.folder.js', links: { ...links, lab: 'program.html' } },
  });
  const [scripts, made] = [scriptsOf(page), bringOwn(t)];
  one('.gle-door-own').click();
  page.fire(scripts[0], 'load');
  await page.tick();
  const link = made[0].how.lab('v=1', 'The Lab');
  assert.deepEqual([link.getAttribute('href'), link.textContent], ['program.html?v=1', 'The Lab (needs the program: two commands)']);
  assert.match(host.querySelector('.gle-story-lab')?.getAttribute('aria-label') ?? '', /^Open in the Lab: Story 1 \(needs the program/);
  new Door(host, { ...DATA, small: true, links: { ...links, learn: '' } });
  assert.deepEqual(
    [...host.querySelectorAll('.gle-door-line > a')].map((one) => one.textContent),
    ['Teach with this'],
  );
});
