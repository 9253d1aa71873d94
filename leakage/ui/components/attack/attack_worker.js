// The entry of the worker: it lets the phones send, the server attack and the referee score, and reports to the page.
import { send } from './client.js';
import { descend } from './idlg.js';
import { invert } from './inverting_gradients.js';
import { Kernels } from './kernels.js';
import { readLabels } from './last_layer.js';
import { solve } from './linear_layer.js';
import { Network } from './network.js';
import { checked } from './order.js';
import { PLANS } from './plans.js';
import { generator } from './random.js';
import { receive } from './received.js';
import { Referee } from './referee.js';
import { fastestKernels } from './simd.js';
import { drawWeights } from './weights.js';

/** @typedef {import('./order.js').Order} Order */
/** @typedef {import('./received.js').Received} Received */
/** @typedef {import('./received.js').Snapshot} Snapshot */
/** @typedef {ReturnType<typeof checked>} CheckedOrder */

/**
 * @typedef {object} SentMessage
 * @property {'sent'} kind
 * @property {Float32Array} numbers what arrived in the last round, the mean over the phones, (n,)
 * @property {{ name: string, from: number, to: number }[]} tensors
 * @property {number[]} labels as the attacker reads them; [] where the attack searches them with the pictures
 * @property {number} count n
 * @property {boolean} fast whether WebAssembly computes
 * @property {number} grey PSNR of grey pictures in dB
 *
 * @typedef {object} FrameMessage
 * @property {'frame' | 'end'} kind
 * @property {number} step
 * @property {number} steps the most, over all starts
 * @property {number} start from 1
 * @property {number} loss
 * @property {Float32Array} pictures (batch, C, H, W), clamped to [0, 1]
 * @property {number} psnr mean over the pictures, in dB
 * @property {number} seconds of computing, without pauses
 * @property {number} rate steps a second
 * @property {number} [labelsRight] at the end
 *
 * @typedef {{ kind: 'failed', message: string }} FailedMessage
 * @typedef {SentMessage | FrameMessage | FailedMessage} Message
 */

const SLICE = 30; // milliseconds of computing between two looks at the page's messages
const [PER_PIXEL, PER_WEIGHT] = [1000, 5]; // the most numbers of a search that are kept for each pixel and each weight; 200 are L-BFGS's
const BETWEEN = 50; // milliseconds between two frames, at least

/**
 * Plays an attack to its end. Errors are thrown.
 * @param {Order} order
 * @returns {Generator<SentMessage | FrameMessage>}
 */
export function* play(order) {
  const task = checked(order);
  const referee = new Referee(task.pictures, task.labels);
  const received = receivedOf(task);
  const labels = task.attack === 'dlg' ? null : readLabels(received);
  const { tensors, update } = received;
  yield {
    ...{ kind: 'sent', numbers: Float32Array.from(update), tensors: tensors.map(({ name, from, to }) => ({ name, from, to })) },
    ...{ labels: labels ?? [], count: update.length, fast: received.kernels.constructor !== Kernels, grey: referee.grey },
  };
  const steps = task.options.steps * (task.options.restarts ?? 1);
  const attack = attackOf(task, received, labels);
  let [seconds, began] = [0, performance.now()];
  /** @type {FrameMessage | null} */
  let frame = null;
  for (const { step, start, loss, pictures, labels } of attack) {
    const shown = Float32Array.from(pictures, (pixel) => Math.min(1, Math.max(0, pixel || 0))); // NaN becomes 0
    seconds += (performance.now() - began) / 1000;
    frame = { kind: 'frame', step, steps, start, loss, pictures: shown, psnr: referee.psnr(shown), seconds, rate: step / seconds, labelsRight: referee.labelsRight(labels) }; // prettier-ignore
    yield frame;
    began = performance.now();
  }
  if (frame) yield { ...frame, kind: 'end' };
}

/**
 * What the server has after the phones have sent.
 * @param {CheckedOrder} task
 */
function receivedOf({ network, shape, classes, pictures, labels, phones, protections, rounds, seed, adaptive, plain }) {
  const plan = PLANS[network](shape, classes);
  const first = new Network(new Kernels(), plan);
  drawWeights(first, plan, seed);
  const { weights, tensors, count } = first;
  const room = 4 * (PER_PIXEL * pictures.length + PER_WEIGHT * count * (phones + 1));
  const makeKernels = () => (plain ? new Kernels() : fastestKernels(room));
  const task = { plan, classes, weights, protections, rounds, seed };
  const updates = send(makeKernels(), { pictures, labels, phones }, task);
  const known = { kernels: makeKernels(), plan, weights, tensors, classes, batch: labels.length, phones };
  return receive(known, updates, adaptive ? protections : []);
}

/**
 * @param {CheckedOrder} task
 * @param {Received} received
 * @param {number[] | null} labels
 * @returns {Generator<Snapshot>}
 */
function attackOf({ attack, options, schedule, seed }, received, labels) {
  const random = generator(seed, 'attack');
  if (!labels || attack === 'idlg') return descend(received, random, { labels, steps: options.steps, restarts: options.restarts });
  if (attack === 'linear_layer') return solve(received, { labels });
  return invert(received, random, { labels, schedule: schedule, steps: options.steps, step_size: options.step_size, tv_weight: options.tv_weight }); // prettier-ignore
}

/**
 * @typedef {object} Scope the worker's global scope, or one of a test
 * @property {(message: Message) => void} postMessage
 * @property {((event: { data: Order | { pause: boolean } }) => void) | null} onmessage
 */

/**
 * Answers orders in slices, so that a message of the page is heard between two of them. A new order replaces the one that is played.
 * @param {Scope} scope
 */
export function serve(scope) {
  /** @type {Generator<SentMessage | FrameMessage> | null} */
  let playing = null;
  let [paused, waiting, told] = [false, false, -Infinity];

  const resume = () => {
    if (waiting || paused || !playing) return;
    waiting = true;
    setTimeout(slice, 0);
  };

  function slice() {
    waiting = false;
    const until = performance.now() + SLICE;
    try {
      while (playing && !paused && performance.now() < until) {
        const { done, value } = playing.next();
        if (done) playing = null;
        else if (value.kind !== 'frame' || performance.now() - told >= BETWEEN) {
          if (value.kind === 'frame') told = performance.now();
          scope.postMessage(value);
        }
      }
    } catch (error) {
      playing = null;
      scope.postMessage({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
    }
    resume();
  }

  scope.onmessage = ({ data }) => {
    if ('pause' in data) paused = data.pause;
    else {
      playing = play(data);
      [paused, told] = [false, -Infinity];
    }
    resume();
  };
}

if (typeof document === 'undefined' && 'WorkerGlobalScope' in globalThis) serve(/** @type {Scope} */ (/** @type {unknown} */ (globalThis)));
