// The form for an attack on the visitor's own picture: what it shows follows what is chosen.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTIONS, USUAL } from '../../leakage/ui/components/own/own_choices.js';
import { OwnSettings } from '../../leakage/ui/components/own/own_settings.js';
import { openPage } from './page.js';

/**
 * @param {import('node:test').TestContext} t
 * @param {object} [begin]
 */
function open(t, begin = {}) {
  const page = openPage(t);
  let changes = 0;
  const form = new OwnSettings(begin, () => (changes += 1));
  page.document.body.append(form.root);
  const choose = (/** @type {HTMLSelectElement} */ box, /** @type {string} */ value) => {
    box.value = value;
    page.fire(box, 'change');
  };
  const slide = (/** @type {number} */ mark) => {
    form.amount.value = String(mark);
    page.fire(form.amount, 'input');
    return [form.values.amount, form.shown.textContent];
  };
  const seed = (/** @type {string} */ value) => {
    form.seed.value = value;
    page.fire(form.seed, 'change');
    return [form.values.seed, form.seed.value];
  };
  return { form, choose, slide, seed, changes: () => changes };
}

test('each control has a label of its own, also where two forms stand on a page', (t) => {
  const { form } = open(t);
  const other = new OwnSettings({}, () => {});
  const labels = [form, other].flatMap(({ root }) => [...root.querySelectorAll('label')]);
  assert.deepEqual(
    labels.slice(0, 6).map((label) => label.textContent),
    ['Protection', 'Strength', 'Attacker', 'Network', 'Attack', 'Seed'],
  );
  assert.equal(new Set(labels.map((label) => label.htmlFor)).size, 12);
  for (const label of labels) assert.equal(label.nextElementSibling?.id, label.htmlFor);
});

test('without a protection no amount and no attacker can be chosen, and they keep their places', (t) => {
  const { form, choose, changes } = open(t);
  const off = () => [form.amount.disabled, form.attacker.box.disabled];
  assert.deepEqual(off(), [true, true]);
  assert.equal(form.shown.textContent, '');
  choose(form.protection.box, 'pruning');
  assert.deepEqual(off(), [false, false]);
  assert.deepEqual([form.values.amount, form.shown.textContent], [0.9, '90 %']);
  choose(form.protection.box, 'int8');
  assert.deepEqual([...off(), form.values.amount], [true, false, 0]);
  choose(form.protection.box, 'sum');
  assert.deepEqual([...off(), form.values.amount], [false, true, 2]);
  assert.equal(changes(), 3);
  for (const control of [form.amount, form.attacker.box]) assert.equal(control.parentElement?.hidden, false);
});

test('each protection is said in a sentence, which belongs to the box', (t) => {
  const { form, choose } = open(t);
  assert.equal(form.means.textContent, 'The phone sends its numbers as they are.');
  assert.equal(form.protection.box.getAttribute('aria-describedby'), form.means.id);
  const sentences = PROTECTIONS.map(({ id }) => (choose(form.protection.box, id), form.means.textContent ?? ''));
  assert.equal(sentences[1], 'The phone adds random numbers to what it sends.');
  assert.equal(new Set(sentences).size, PROTECTIONS.length);
  for (const sentence of sentences) assert.match(sentence, /^The (phone|server) .+\.$/);
});

test('noise is turned logarithmically, with two digits', (t) => {
  const { form, choose, slide } = open(t);
  choose(form.protection.box, 'noise');
  assert.equal(form.amount.value, '500'); // 0.01 lies in the middle between 0.0001 and 1
  assert.deepEqual(slide(0), [0.0001, '0.0001']);
  assert.deepEqual(slide(250), [0.001, '0.001']);
  assert.deepEqual(slide(600), [0.025, '0.025']); // 10^(-4 + 4 * 0.6) = 0.0251
  assert.deepEqual(slide(1000), [1, '1']);
  assert.equal(form.amount.getAttribute('aria-valuetext'), '1');
});

test('a fraction is turned evenly, and phones are whole', (t) => {
  const { form, choose, slide } = open(t);
  choose(form.protection.box, 'pruning');
  assert.deepEqual(slide(0), [0, '0 %']);
  assert.deepEqual(slide(250), [0.25, '25 %']); // 0.2475 with two digits
  assert.deepEqual(slide(1000), [0.99, '99 %']);
  choose(form.protection.box, 'sum');
  assert.deepEqual(slide(500), [5, '5']);
  assert.deepEqual(slide(570), [5, '5']); // 5.42
  assert.equal(form.amount.value, '500'); // the slider goes to the whole number
  assert.deepEqual(slide(1000), [8, '8']);
});

test('another choice than the protection leaves the amount as it was turned', (t) => {
  const { form, choose, slide } = open(t);
  choose(form.protection.box, 'noise');
  slide(250);
  choose(form.attacker.box, 'ignores');
  assert.deepEqual([form.values.amount, form.values.adaptive], [0.001, false]);
});

test('an attack that does not fit a network cannot be chosen, and one that was chosen gives way', (t) => {
  const { form, choose } = open(t);
  const open_ = () => [...form.attack.box.options].filter(({ disabled }) => !disabled).map(({ value }) => value);
  assert.deepEqual(open_(), ['idlg', 'dlg', 'inverting_gradients']);
  choose(form.network.box, 'mlp');
  assert.deepEqual(open_(), ['linear_layer', 'inverting_gradients']);
  assert.deepEqual([form.values.attack, form.attack.box.value], ['linear_layer', 'linear_layer']);
  choose(form.network.box, 'lenet');
  assert.equal(form.values.attack, 'idlg');
  choose(form.attack.box, 'dlg');
  choose(form.network.box, 'mnist_cnn');
  assert.equal(form.values.attack, 'dlg'); // it fits
});

test('a seed is a whole number in its range; what is no number is the usual seed', (t) => {
  const { seed } = open(t);
  assert.deepEqual(seed('7'), [7, '7']);
  assert.deepEqual(seed('2.6'), [3, '3']);
  assert.deepEqual(seed('-5'), [0, '0']);
  assert.deepEqual(seed('99999999999'), [2147483647, '2147483647']);
  assert.deepEqual(seed(''), [1, '1']);
});

test('settings from outside show in the form', (t) => {
  const { form, changes } = open(t, { seed: 4 });
  assert.deepEqual(form.values, { ...USUAL, seed: 4 });
  form.use({ protection: 'clipping', amount: 0.1, adaptive: false, network: 'mlp', attack: 'inverting_gradients' });
  assert.equal(changes(), 1);
  assert.deepEqual(
    [form.protection.box.value, form.attacker.box.value, form.network.box.value, form.attack.box.value, form.seed.value],
    ['clipping', 'ignores', 'mlp', 'inverting_gradients', '4'],
  );
  assert.deepEqual([form.shown.textContent, form.amount.value], ['0.1', '750']);
});
