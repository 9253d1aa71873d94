// The stub that Streamlit runs: it loads a component's modules from our routes, hands reruns on, and tries again where that failed.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openPage, settle } from './page.js';

const STUB = readFileSync(new URL('../../leakage/ui/components/stub.js', import.meta.url), 'utf8');
const SENTENCE = 'This part of the page could not be loaded. It tries again by itself; if that does not help, reload the page.';
const NAMES = ['live/live.js', 'dom.js'];
const send = () => {};

/** Modules that tell what happens to them: the component, and one that is only imported. @type {{ [name: string]: string }} */
const GOOD = {
  'live/live.js': `globalThis.told.push('loaded ' + import.meta.url);
    export const mount = (parent) => {
      globalThis.told.push('mount ' + parent.id);
      return {
        update: (data, send) => globalThis.told.push(['update', data, send]),
        destroy: () => globalThis.told.push('destroy ' + parent.id),
      };
    };`,
  'dom.js': `globalThis.told.push('loaded ' + import.meta.url);
    export const mount = () => globalThis.told.push('mounted the wrong module');`,
};
const BAD = {
  'live/live.js': GOOD['live/live.js'],
  'dom.js': "globalThis.told.push('failed ' + import.meta.url); throw new Error('as planned');",
};

/**
 * A server in a folder on the disk, and a page whose origin is the disk.
 * @param {import('node:test').TestContext} t
 */
function serve(t) {
  const page = openPage(t);
  const folder = mkdtempSync(join(tmpdir(), 'stub-'));
  t.after(() => rmSync(folder, { recursive: true }));
  /** @type {any[]} */
  const told = [];
  page.replace(globalThis, 'told', { value: told });
  page.replace(globalThis, 'location', { value: { origin: 'file://', href: 'http://localhost:8501/lab' } });
  const parent = page.document.createElement('div');
  parent.id = 'stage';
  page.document.body.append(parent);
  return {
    ...{ page, told, parent },
    /** @param {string} version @param {{ [name: string]: string }} files */
    put(version, files) {
      for (const [name, text] of Object.entries(files)) {
        const path = join(folder, version, name);
        mkdirSync(join(path, '..'), { recursive: true });
        writeFileSync(path, text);
      }
    },
    /** The script that Python makes for this version. @param {string} version @returns {Promise<(call: object) => () => void>} */
    async script(version) {
      const path = join(folder, `stub-${version}.mjs`);
      writeFileSync(path, STUB.replaceAll('__FOLDER__', join(folder, version)).replaceAll('__NAMES__', NAMES.join(' ')));
      return (await import(pathToFileURL(path).href)).default;
    },
    /** @param {string} version @param {string} name */
    address: (version, name) => pathToFileURL(join(folder, version, name)).href,
    sentences: () => [...parent.querySelectorAll('p')],
  };
}

/** Wait for modules from the disk, which may be slow: up to 20 seconds. @param {() => unknown} come */
async function until(come) {
  const end = process.uptime() + 20;
  while (!come() && process.uptime() < end) await settle();
  assert.ok(come(), `${come} did not come`);
}

/** @param {any[]} told */
const updates = (told) => told.filter(([what]) => what === 'update');

test('every module is asked for from our folder, the first is mounted on the element and told the data', async (t) => {
  const { put, script, told, parent, address } = serve(t);
  put('v1', GOOD);
  const run = await script('v1');
  run({ data: [{ runs: [1] }], parentElement: parent, setStateValue: send });
  await until(() => updates(told).length);
  assert.deepEqual(told.slice(0, 2).sort(), [`loaded ${address('v1', 'dom.js')}`, `loaded ${address('v1', 'live/live.js')}`]);
  assert.deepEqual(told.slice(2), ['mount stage', ['update', { runs: [1] }, send]]);
  assert.equal(updates(told)[0][2], send);
});

test('a rerun updates the same component, and only the cleanup of the newest call ends it', async (t) => {
  const { put, script, told, parent } = serve(t);
  put('v1', GOOD);
  const run = await script('v1');
  const first = run({ data: [{ turn: 1 }], parentElement: parent, setStateValue: send });
  await until(() => updates(told).length);
  const second = run({ parentElement: parent, setStateValue: send });
  assert.deepEqual(
    updates(told).map(([, data]) => data),
    [{ turn: 1 }, {}],
  );
  first();
  assert.ok(!told.includes('destroy stage'));
  second();
  second();
  assert.equal(told.filter((what) => what === 'destroy stage').length, 1);
  run({ data: [{ turn: 3 }], parentElement: parent, setStateValue: send });
  await until(() => updates(told).length === 3);
  assert.equal(told.filter((what) => what === 'mount stage').length, 2);
});

test('calls that come while it loads are not lost: the component is told the newest, once', async (t) => {
  const { put, script, told, parent } = serve(t);
  put('v1', GOOD);
  const run = await script('v1');
  run({ data: [{ turn: 1 }], parentElement: parent, setStateValue: send });
  run({ data: [{ turn: 2 }], parentElement: parent, setStateValue: send });
  await until(() => updates(told).length);
  await settle();
  assert.deepEqual(updates(told), [['update', { turn: 2 }, send]]);
  assert.equal(told.filter((what) => what === 'mount stage').length, 1);
});

test('after a failure a sentence stands there, and attempts follow with growing pauses, each in a folder of its own', async (t) => {
  const { page, put, script, told, parent, sentences, address } = serve(t);
  const failed = () => told.filter((what) => String(what).startsWith('failed'));
  const PAUSES = [500, 1000, 2000, 4000, 8000, 15000, 15000];
  for (const version of ['v1', ...PAUSES.slice(1).map((_, place) => `v1~${place + 1}`)]) put(version, BAD);
  put('v1~7', GOOD);
  const run = await script('v1');
  run({ data: [{ turn: 1 }], parentElement: parent, setStateValue: send });
  for (const [place, pause] of PAUSES.entries()) {
    await until(() => failed().length === place + 1 && page.open.timers === 1);
    assert.equal(failed()[place], `failed ${address(place ? `v1~${place}` : 'v1', 'dom.js')}`);
    assert.deepEqual(
      sentences().map((sentence) => sentence.outerHTML),
      [`<p class="gle-unloaded" role="status">${SENTENCE}</p>`],
    );
    await page.tick(pause - 1);
    assert.equal(page.open.timers, 1);
    await page.tick(1);
    assert.equal(page.open.timers, 0);
  }
  await until(() => updates(told).length);
  assert.deepEqual(sentences(), []);
  assert.deepEqual(told.slice(-2), ['mount stage', ['update', { turn: 1 }, send]]);
});

test('a component that leaves while it waits for an attempt takes its sentence and its timer along', async (t) => {
  const { page, script, parent, sentences } = serve(t);
  const run = await script('missing');
  const end = run({ parentElement: parent, setStateValue: send });
  await until(() => sentences().length);
  end();
  assert.deepEqual(sentences(), []);
  assert.equal(page.open.timers, 0);
});

test('a component that leaves while it loads is never mounted, nor asked for again', async (t) => {
  const { page, put, script, told, parent, sentences } = serve(t);
  put('v1', GOOD);
  const run = await script('v1');
  run({ parentElement: parent, setStateValue: send })();
  await until(() => told.length === 2);
  const missing = await script('missing');
  missing({ parentElement: parent, setStateValue: send })();
  for (let turn = 0; turn < 50; turn += 1) await settle();
  assert.ok(!told.includes('mount stage'));
  assert.deepEqual([sentences().length, page.open.timers], [0, 0]);
});

test('a component of another version is ended before the new one is mounted, and its old cleanup ends nothing', async (t) => {
  const { put, script, told, parent } = serve(t);
  put('v1', GOOD);
  put('v2', GOOD);
  const old = await script('v1');
  const end = old({ data: [{ version: 1 }], parentElement: parent, setStateValue: send });
  await until(() => updates(told).length);
  const run = await script('v2');
  run({ data: [{ version: 2 }], parentElement: parent, setStateValue: send });
  await until(() => updates(told).length === 2);
  end();
  assert.deepEqual(
    told.filter((what) => !String(what).startsWith('loaded')),
    ['mount stage', ['update', { version: 1 }, send], 'destroy stage', 'mount stage', ['update', { version: 2 }, send]],
  );
});
