// What the page hears of an order: its messages, and a sentence where the order does not fit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { play, serve } from '../../leakage/ui/components/attack/attack_worker.js';
import { Kernels } from '../../leakage/ui/components/attack/kernels.js';
import { Network } from '../../leakage/ui/components/attack/network.js';
import { assign } from '../../leakage/ui/components/attack/pairing.js';
import { PLANS } from '../../leakage/ui/components/attack/plans.js';
import { receive } from '../../leakage/ui/components/attack/received.js';
import { Referee } from '../../leakage/ui/components/attack/referee.js';
import { send } from '../../leakage/ui/components/attack/client.js';
import { numbersOf } from './network_checks.js';

/** @typedef {import('../../leakage/ui/components/attack/order.js').Order} Order */
/** @typedef {import('../../leakage/ui/components/attack/attack_worker.js').Message} Message */
/** @typedef {import('../../leakage/ui/components/attack/attack_worker.js').SentMessage} SentMessage */
/** @typedef {import('../../leakage/ui/components/attack/attack_worker.js').FrameMessage} FrameMessage */

/** @type {[number, number, number]} */
const SHAPE = [3, 8, 8];
const SIZE = 192;

/** @type {(count: number, seed?: number) => Float32Array} */
const picturesOf = (count, seed = 1) => Float32Array.from(numbersOf(count * SIZE, seed), (number) => (number + 1) / 2);

/** @type {(more?: Partial<Order>) => Order} */
const orderOf = (more = {}) => ({
  ...{ network: 'lenet', shape: SHAPE, classes: 10, pictures: picturesOf(1), labels: [4], seed: 1, attack: 'idlg' },
  ...more,
});

/** @param {Partial<Order>} [more] */
function played(more) {
  const [sent, ...frames] = play(orderOf(more));
  return { sent: /** @type {SentMessage} */ (sent), frames: /** @type {FrameMessage[]} */ (frames) };
}

test('first comes what was sent, then a frame for each step, then the end', () => {
  const { sent, frames } = played();
  assert.deepEqual([sent.kind, sent.labels, sent.fast], ['sent', [4], true]);
  assert.equal(sent.numbers.length, sent.count);
  assert.deepEqual(sent.tensors[0], { name: 'conv1.weight', from: 0, to: 900 });
  const end = frames[frames.length - 1];
  assert.deepEqual([frames.filter(({ kind }) => kind === 'end').length, end.kind, end.steps], [1, 'end', 8 * 300]);
  frames.slice(0, 4).forEach(({ kind, step }, i) => assert.deepEqual([kind, step], ['frame', i + 1]));
  assert.ok(end.psnr > 40 && end.labelsRight === 1, `${end.psnr} dB`);
  assert.ok(end.pictures.every((pixel) => pixel >= 0 && pixel <= 1));
  assert.ok(Math.abs(end.rate - end.step / end.seconds) < 1e-9);
});

test('every attack ends on every network that it fits', () => {
  for (const network of /** @type {const} */ (['lenet', 'lenet_star', 'mlp']))
    for (const attack of /** @type {const} */ (['idlg', 'dlg', 'inverting_gradients']))
      assert.equal(played({ network, attack, steps: 2 }).frames.at(-1)?.kind, 'end');
  const large = { shape: /** @type {[number, number, number]} */ ([1, 14, 13]), pictures: new Float32Array(182).fill(0.25) };
  assert.equal(played({ ...large, network: 'mnist_cnn', steps: 2 }).frames.at(-1)?.kind, 'end');
});

test('a fully connected layer is read off exactly, of one picture and of several phones', () => {
  const read = { network: /** @type {const} */ ('mlp'), attack: /** @type {const} */ ('linear_layer') };
  assert.ok(played(read).frames[0].psnr > 90);
  const { sent, frames } = played({ ...read, labels: [4, 7, 1], phones: picturesOf(2, 2) });
  assert.deepEqual([sent.labels, frames[0].labelsRight], [[1, 4, 7], 3]);
  assert.ok(frames[0].psnr > 90, `${frames[0].psnr} dB`);
});

test('the server gets the mean of several phones, and of a batch', () => {
  const one = played({ steps: 1 }).sent.numbers;
  const other = played({ steps: 1, pictures: picturesOf(1, 2), labels: [7] }).sent.numbers;
  const both = played({ steps: 1, labels: [4, 7], phones: picturesOf(1, 2) }).sent.numbers;
  both.forEach((entry, i) => assert.ok(Math.abs(entry - (one[i] + other[i]) / 2) < 1e-6));
  const pictures = new Float32Array([...picturesOf(1), ...picturesOf(1, 2)]);
  const batch = played({ steps: 1, pictures, labels: [4, 7] }).sent.numbers;
  both.forEach((entry, i) => assert.ok(Math.abs(entry - batch[i]) < 1e-6));
});

test('the mean of 16 rounds has a quarter of the noise', () => {
  const clean = played({ steps: 1 }).sent.numbers;
  const [updates, known] = [roundsOf(16), { ...network(), batch: 1, phones: 1 }];
  const { update } = receive(known, updates, [{ id: 'gaussian_noise', scale: 0.1 }]);
  const deviation = (/** @type {ArrayLike<number>} */ numbers) =>
    Math.sqrt(clean.reduce((sum, entry, i) => sum + (numbers[i] - entry) ** 2, 0) / clean.length);
  assert.ok(Math.abs(deviation(updates[0]) - 0.1) < 0.005, `${deviation(updates[0])}`);
  assert.ok(Math.abs(deviation(update) - 0.025) < 0.00125, `${deviation(update)}`);
  assert.equal(receive(known, updates, []).update, updates[15]); // a naive attacker takes the last round
});

/** What the server has before anything arrives. */
function network() {
  const plan = PLANS.lenet(SHAPE, 10);
  const kernels = new Kernels();
  const { weights, tensors } = new Network(kernels, plan);
  return { kernels, plan, weights, tensors, classes: 10 };
}

/** @param {number} rounds with noise of 0.1, at weights of 0 */
function roundsOf(rounds) {
  const { plan, weights } = network();
  const clean = played({ steps: 1 }).sent.numbers;
  const task = { plan, classes: 10, weights, rounds, seed: 1, protections: [{ id: /** @type {const} */ ('gaussian_noise'), scale: 0.1 }] };
  const zero = { pictures: picturesOf(1), labels: [4], phones: 1 };
  const offset = send(new Kernels(), zero, { ...task, rounds: 1, protections: [] })[0];
  return send(new Kernels(), zero, task).map((update) => update.map((entry, i) => entry - offset[i] + clean[i]));
}

test('only an adaptive attacker finds the picture behind a clipped gradient', () => {
  const protection = { id: /** @type {const} */ ('clipping'), bound: 1 }; // the gradient is 5 long
  const [adaptive, naive] = [true, false].map((adaptive) => played({ protection, adaptive, restarts: 1 }).frames.at(-1));
  assert.ok(Number(adaptive?.psnr) > 40 && Number(naive?.psnr) < 10, `${adaptive?.psnr} and ${naive?.psnr} dB`);
});

test('an order that does not fit fails with what was wrong, what is expected and what to do', () => {
  /** @type {[Partial<Record<keyof Order, unknown>>, string][]} */
  const wrong = [
    [{ network: 'vgg' }, 'network must be one of lenet, lenet_star, mlp, mnist_cnn, not "vgg". Choose one of them.'],
    [{ attack: 'ggl' }, 'attack must be one of idlg, dlg, inverting_gradients, linear_layer, not "ggl". Choose one of them.'],
    [{ steps: 0 }, 'steps must lie in [1, 2000], not 0. Choose a number in this range.'],
    [{ labels: [10] }, 'Each label must lie in [0, 9], not 10. Choose a number in this range.'],
    [{ labels: [1, 2] }, 'labels must be a list of 1, one for each picture, not [1,2]. Give each picture a class.'],
    [
      { pictures: new Float32Array(5) },
      'pictures must be a Float32Array of 3 x 8 x 8 = 192 numbers a picture, not 5 numbers. Change pictures.',
    ],
    [{ pictures: picturesOf(1).fill(255) }, 'pictures must lie in [0, 1]. Divide bytes by 255.'],
    [
      { pictures: picturesOf(9), labels: new Array(9).fill(0) },
      'The number of pictures of all phones must lie in [1, 8], not 9. Choose a number in this range.',
    ],
    [{ shape: [3, 0, 8] }, 'Each number of shape must lie in [1, 1000], not 0. Choose a number in this range.'],
    [{ attack: 'linear_layer' }, 'linear_layer needs a network whose first layer is fully connected, not "lenet". Choose mlp.'],
    [{ network: 'mnist_cnn' }, 'A filter of 5 x 5 does not fit in 4 x 4 pixels. Choose larger pictures.'],
    [
      { protection: { id: 'soteria' } },
      'protection must be one of gaussian_noise, pruning, low_precision, clipping, not "soteria". Choose one of them.',
    ],
    [{ protection: { id: 'gaussian_noise', scale: -1 } }, 'scale must lie in [0, 10], not -1. Choose a number in this range.'],
    [{ protection: { id: 'pruning', share: 0.9 } }, 'A field of pruning must be one of fraction, scope, not "share". Choose one of them.'],
  ];
  for (const [more, message] of wrong)
    assert.throws(() => [...play(orderOf(/** @type {Partial<Order>} */ (more)))], { message }, JSON.stringify(more));
});

test('the worker answers in slices, hears a pause, and tells of errors', async () => {
  /** @type {Message[]} */
  const heard = [];
  const scope = { postMessage: (/** @type {Message} */ message) => heard.push(message), onmessage: /** @type {any} */ (null) };
  const until = async (/** @type {() => boolean} */ condition) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  serve(scope);
  scope.onmessage({ data: orderOf({ attack: 'inverting_gradients', steps: 24000 }) });
  await until(() => heard.length > 3);
  scope.onmessage({ data: { pause: true } });
  const frames = heard.length;
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal(heard.length, frames);
  scope.onmessage({ data: { pause: false } });
  await until(() => heard.length > frames);
  assert.deepEqual(new Set(heard.slice(1).map(({ kind }) => kind)), new Set(['frame']));
  scope.onmessage({ data: orderOf({ steps: 1, restarts: 1 }) }); // replaces the order before
  await until(() => heard.at(-1)?.kind === 'end');
  scope.onmessage({ data: orderOf({ seed: -1 }) });
  await until(() => heard.at(-1)?.kind === 'failed');
  assert.deepEqual(heard.at(-1), { kind: 'failed', message: 'seed must lie in [0, 2147483647], not -1. Choose a number in this range.' });
});

test('the referee pairs each picture with the guess that fits it', () => {
  const pictures = Float32Array.of(0, 0, 1, 1, 0.5, 0.5); // three pictures of two numbers
  const referee = new Referee(pictures, [2, 2, 5]);
  const guess = Float32Array.of(0.6, 0.6, 0.1, 0.1, 0.9, 0.9); // each is 0.1 away from a picture: 20 dB
  assert.ok(Math.abs(referee.psnr(guess) - 20) < 1e-4);
  assert.equal(referee.psnr(pictures), 100);
  assert.ok(Math.abs(referee.grey - (100 + 2 * 6.0206) / 3) < 1e-3); // 0.5 away twice: 6.02 dB each
  assert.equal(referee.labelsRight([2, 5, 5]), 2);
});

test('the assignment has the least total cost of all', () => {
  const costs = Array.from({ length: 5 }, (_, row) => [...numbersOf(5, row + 1)]);
  /** @type {(row: number, free: number[]) => number} */
  const least = (row, free) => {
    const rest = (/** @type {number} */ column) => free.filter((other) => other !== column);
    return row === 5 ? 0 : Math.min(...free.map((column) => costs[row][column] + least(row + 1, rest(column))));
  };
  const total = assign(costs).reduce((sum, column, row) => sum + costs[row][column], 0);
  assert.equal(new Set(assign(costs)).size, 5);
  assert.ok(Math.abs(total - least(0, [0, 1, 2, 3, 4])) < 1e-12);
});

test('nothing that the server has leads to a private picture', () => {
  const { plan, weights, tensors, classes } = network();
  const own = { pictures: picturesOf(2), labels: [4, 7], phones: 2 };
  const updates = send(new Kernels(), own, { plan, classes, weights, protections: [], rounds: 1, seed: 1 });
  const received = receive({ kernels: new Kernels(), plan, weights, tensors, classes, batch: 2, phones: 2 }, updates, []);
  assert.equal(leadsTo(received, own.pictures), false);
  assert.equal(leadsTo({ received, hidden: [{ deep: own.pictures.slice() }] }, own.pictures), true);
});

/**
 * Whether an array with the first entries of the pictures can be reached from a value.
 * @param {unknown} value
 * @param {Float32Array} pictures
 * @param {Set<unknown>} [visited]
 * @returns {boolean}
 */
function leadsTo(value, pictures, visited = new Set()) {
  if (typeof value !== 'object' || !value || visited.has(value)) return false;
  visited.add(value);
  if (ArrayBuffer.isView(value)) {
    const numbers = new Float32Array(value.buffer, 0, Math.floor(value.buffer.byteLength / 4));
    return numbers.some((number, at) => number === pictures[0] && pictures.subarray(0, 8).every((pixel, i) => numbers[at + i] === pixel));
  }
  return Object.values(value).some((part) => leadsTo(part, pictures, visited));
}
