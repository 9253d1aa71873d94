// What a visitor may choose for their own picture: for the worker, for the Lab, and as a title.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ATTACKS as KNOWN_ATTACKS, checked } from '../../leakage/ui/components/attack/order.js';
import {
  ATTACKS,
  NETWORKS,
  PROTECTIONS,
  USUAL,
  amountWords,
  hasAttackers,
  labQueryOf,
  orderOf,
  sizeOf,
  titleOf,
} from '../../leakage/ui/components/own/own_choices.js';

/** @typedef {import('../../leakage/ui/components/own/own_choices.js').Values} Values */

/** @type {(more: Partial<Values>) => Values} */
const values = (more) => ({ ...USUAL, ...more });

/** A picture of one value, and of other phones pictures of other values. @param {Values} chosen */
function orderFor(chosen) {
  const { channels, side } = sizeOf(chosen);
  const plain = (/** @type {number} */ value) => new Float32Array(channels * side * side).fill(value);
  const others = Array.from({ length: 9 }, (_, place) => plain((place + 1) / 10));
  return { order: orderOf(chosen, plain(0), others), picture: plain(0), others };
}

test('the usual order: one picture of class 3 for LeNet, iDLG, no protection', () => {
  const { order, picture } = orderFor(USUAL);
  assert.deepEqual(order, {
    ...{ network: 'lenet', shape: [3, 32, 32], classes: 10, pictures: picture, phones: new Float32Array(0), labels: [3] },
    ...{ seed: 1, attack: 'idlg', adaptive: true, steps: 150, restarts: 3 },
  });
});

test('each protection as the worker reads it', () => {
  const made = PROTECTIONS.map(({ id, knob }) => {
    const { protection, rounds, labels } = orderFor(values({ protection: id, amount: knob?.start ?? 0 })).order;
    return [id, protection, rounds, labels.length];
  });
  assert.deepEqual(made, [
    ['none', undefined, undefined, 1],
    ['noise', [{ id: 'gaussian_noise', scale: 0.01 }], undefined, 1],
    ['averaged', [{ id: 'gaussian_noise', scale: 0.01 }], 16, 1],
    ['pruning', [{ id: 'pruning', fraction: 0.9 }], undefined, 1],
    ['int8', [{ id: 'low_precision', number: 'int8' }], undefined, 1],
    ['fp16', [{ id: 'low_precision', number: 'fp16' }], undefined, 1],
    [
      'clipping',
      [
        { id: 'clipping', bound: 1 },
        { id: 'gaussian_noise', scale: 0.01 },
      ],
      undefined,
      1,
    ],
    ['sum', undefined, undefined, 2],
  ]);
});

test('a sum has a picture of each other phone, each of another class', () => {
  const { order, others } = orderFor(values({ protection: 'sum', amount: 8 }));
  assert.deepEqual(order.labels, [3, 4, 5, 6, 7, 8, 9, 0]);
  assert.equal(order.phones?.length, 7 * 3072);
  for (let phone = 0; phone < 7; phone++) assert.equal(order.phones?.[phone * 3072], others[phone][0]);
});

test('the worker takes every choice, with the numbers that a visitor can turn to', () => {
  for (const { id: network } of NETWORKS) {
    for (const { id: attack } of ATTACKS.filter(({ networks }) => networks.includes(network))) {
      for (const { id: protection, knob } of PROTECTIONS) {
        for (const amount of knob ? [knob.from, knob.to] : [0]) {
          const task = checked(/** @type {any} */ (orderFor(values({ network, attack, protection, amount })).order));
          assert.deepEqual([task.network, task.attack], [network, attack]);
          assert.equal(task.phones, protection === 'sum' ? amount : 1);
        }
      }
    }
  }
  assert.deepEqual(ATTACKS.map(({ id }) => id).sort(), Object.keys(KNOWN_ATTACKS).sort());
});

test('the size of the picture follows the network', () => {
  const sizes = NETWORKS.map(({ id }) => orderFor(values({ network: id })).order.shape);
  assert.deepEqual(sizes, [
    [3, 32, 32],
    [3, 32, 32],
    [1, 28, 28],
  ]);
});

test('the address of the Lab names every setting, and the attacker where it does not know the protection', () => {
  const query = (/** @type {Partial<Values>} */ more) => Object.fromEntries(new URLSearchParams(labQueryOf(values(more))));
  assert.deepEqual(query({}), {
    ...{ v: '1', model: 'lenet', channels: '3', size: '32', attack: 'idlg', seed: '1', 'idlg.steps': '150', 'idlg.restarts': '3' },
  });
  const grey = query({
    network: 'mnist_cnn',
    attack: 'inverting_gradients',
    seed: 9,
    protection: 'noise',
    amount: 0.0001,
    adaptive: false,
  });
  assert.deepEqual(grey, {
    ...{ v: '1', model: 'mnist_cnn', channels: '1', size: '28', attack: 'inverting_gradients', seed: '9', adaptive: 'false' },
    ...{ 'inverting_gradients.steps': '1000', 'inverting_gradients.schedule': 'coarse first' },
    ...{ defense: 'gaussian_noise', 'gaussian_noise.scale': '0.0001' },
  });
  assert.equal(query({ protection: 'none', adaptive: false }).adaptive, undefined); // there is nothing to know
  assert.equal(query({ protection: 'sum', amount: 2, adaptive: false }).adaptive, undefined);
});

test('who knows and who ignores: only where the phone changes its numbers', () => {
  const having = PROTECTIONS.filter(({ id }) => hasAttackers(values({ protection: id }))).map(({ id }) => id);
  assert.deepEqual(having, ['noise', 'averaged', 'pruning', 'int8', 'fp16', 'clipping']);
});

test('a title tells attack, network, protection with its amount, attacker and seed', () => {
  const titles = PROTECTIONS.map(({ id, knob }) => titleOf(values({ protection: id, amount: knob?.start ?? 0 })));
  assert.deepEqual(titles, [
    'Guess and compare (iDLG) · Small network (LeNet) · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · Noise: 0.01 · Attacker knows it · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · Noise, in 16 rounds: 0.01 · Attacker knows it · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · Pruning: 90 % · Attacker knows it · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · 8 bits · Attacker knows it · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · 16 bits · Attacker knows it · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · Clipping and noise (DP-SGD): 0.01 · Attacker knows it · Seed 1',
    'Guess and compare (iDLG) · Small network (LeNet) · Added up with other phones: 2 · Seed 1',
  ]);
  const other = values({ network: 'mlp', attack: 'linear_layer', protection: 'noise', amount: 0.0003, adaptive: false, seed: 12 });
  assert.equal(
    titleOf(other),
    'Solve the first layer (bias attack) · Fully connected (MLP) · Noise: 0.0003 · Attacker does not know it · Seed 12',
  );
});

test('an amount has two digits, or is a percentage', () => {
  assert.equal(amountWords({ from: 0, to: 1, start: 0, unit: 'percent' }, 0.505), '51 %');
  assert.equal(amountWords({ from: 0, to: 1, start: 0 }, 0.012345), '0.012');
});

test('unknown settings, as of a newer page, are the first of each kind', () => {
  const strange = values({ protection: 'magic', network: 'none', attack: 'guess' });
  assert.equal(titleOf(strange), 'Guess and compare (iDLG) · Small network (LeNet) · Seed 1');
  assert.deepEqual(sizeOf(strange), NETWORKS[0]);
});
