// Every word of the reader and of rooms is data: a phrase, or of a lesson. No other module there holds prose, and no phrase is left over.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import ts from 'typescript';
import { PHRASES, say } from '../../leakage/ui/components/reader/phrases.js';
import { ROOM_PHRASES, tell } from '../../leakage/ui/components/room/room_phrases.js';

const FOLDERS = ['reader', 'room'].map((name) => new URL(`../../leakage/ui/components/${name}/`, import.meta.url));
const BLANK = '□'; // where a template has a value
const IN_A_ROW = /(\p{L}[,;:.!?]?|[\d□]) \p{L}|\p{L}[,;:.!?]? □/u; // two words, of which one may be a number or a value
const CAPITAL = /^\p{Lu}\p{L}+$/u;
const NO_TEXT = [/<[^>]*>/g, /[^{}]*\{[^{}]*:[^{}]*\}/g, /gle-[\w-]*/g]; // tags, CSS, names of classes
// What is heard or compared, but never shown:
const KEYS = /^(Arrow(Left|Right)|Page(Up|Down)|Escape|Arrow)$/; // what a browser calls a key
// The end of a lesson's "stop", the name of a tag, the letters of the options, the methods of HTTP:
const DATA = ['labels hidden', 'TH', 'ABCD', 'GET', 'PUT', 'POST'];
const UNSEEN = ['Error', 'closest', 'querySelector', 'querySelectorAll', 'matchMedia']; // messages for the console, selectors, questions to the browser

/**
 * The literals of a module, with blanks for the values of templates.
 * @param {ts.Node} node
 * @returns {{ text: string, node: ts.Node }[]}
 */
function literals(node) {
  if (ts.isImportDeclaration(node)) return [];
  /** @type {{ text: string, node: ts.Node }[]} */
  const within = [];
  ts.forEachChild(node, (child) => void within.push(...literals(child)));
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) within.push({ text: node.text, node });
  if (ts.isTemplateExpression(node)) {
    within.push({ text: node.head.text + node.templateSpans.map(({ literal }) => BLANK + literal.text).join(''), node });
  }
  return within;
}

/** @param {ts.Node} node */
function isUnseen({ parent }) {
  const called = ts.isCallExpression(parent) || ts.isNewExpression(parent) ? parent.expression : null;
  const name = called && (ts.isPropertyAccessExpression(called) ? called.name.text : called.getText());
  return UNSEEN.includes(name ?? '');
}

/**
 * Whether it is the text of an element that is made there.
 * @param {ts.Node} node
 */
const isText = (node) =>
  ts.isCallExpression(node.parent) && node.parent.expression.getText() === 'element' && node.parent.arguments[2] === node;

/**
 * What a module says in its own words.
 * @param {string} code
 */
function proseOf(code) {
  const file = ts.createSourceFile('module.js', code, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  return literals(file)
    .filter(({ text, node }) => !DATA.includes(text) && !KEYS.test(text) && !isUnseen(node))
    .filter(({ text, node }) => {
      const told = NO_TEXT.reduce((rest, what) => rest.replace(what, ''), text);
      return IN_A_ROW.test(told) || CAPITAL.test(told) || (isText(node) && /\p{L}/u.test(told));
    })
    .map(({ text }) => text);
}

const codes = FOLDERS.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.js') && !name.endsWith('phrases.js'))
    .map((name) => ({ name, code: readFileSync(new URL(name, folder), 'utf8') })),
);

test('no module of the reader or of rooms but their phrases holds prose', () => {
  for (const { name, code } of codes) assert.deepEqual(proseOf(code), [], name);
});

test('prose would be found: in quotes, in a template, as one word, as the text of an element', () => {
  assert.deepEqual(proseOf("f('Guess first.')"), ['Guess first.']);
  assert.deepEqual(proseOf('f(`step ${n}`, `${n} steps`, `${a}, ${b}`)'), ['step □', '□ steps']);
  assert.deepEqual(proseOf("f('Play')"), ['Play']);
  assert.deepEqual(proseOf("element('b', 'gle-one gle-two', 'ready')"), ['ready']);
  assert.deepEqual(proseOf("element('b', 'gle-one gle-two', say('ready')); one.closest('a, button')"), []);
});

test('every phrase is named somewhere', () => {
  const all = codes.map(({ code }) => code).join('\n');
  for (const name of Object.keys({ ...PHRASES, ...ROOM_PHRASES })) assert.ok(all.includes(`'${name}'`), name);
  assert.equal(say('beatsOf', { at: 2, n: 7 }), '2 of 7');
  assert.equal(tell('answered', { n: 2, all: 7 }), '2 of 7 have answered.');
});
