// The entry of the worker: it lets the phones send, the server attack and the referee score, and reports to the page.
import { send } from './client.js';
import { Kernels } from './kernels.js';
import { Network } from './network.js';
import { checked } from './order.js';
import { PLANS } from './plans.js';
import { generator } from './random.js';
import { receive } from './received.js';
import { Referee } from './referee.js';
import { attack } from './server.js';
import { fastestKernels } from './simd.js';
import { drawWeights } from './weights.js';

/** @typedef {import('./order.js').Order} Order */
/** @typedef {import('./received.js').Snapshot} Snapshot */

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
 * @property {number} step over all starts
 * @property {number} steps the most over all starts
 * @property {number} start from 1
 * @property {number} loss
 * @property {Float32Array} pictures (batch, C, H, W), clamped to [0, 1]
 * @property {number} psnr mean over the pictures, in dB
 * @property {number} seconds of computing, without pauses
 * @property {number} rate steps a second
 * @property {number[]} labels of the guess
 * @property {number} labelsRight how many of them are right, whatever their order
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
 * @param {() => boolean} [due] whether the page wants a frame now; without one a step is neither copied nor scored
 * @returns {Generator<SentMessage | FrameMessage | null>} null for a step without a frame
 */
export function* play(order, due = () => true) {
  const { network, shape, classes, pictures, labels, phones, protections, adaptive, plain, rounds, seed, ...plannedAttack } =
    checked(order);
  const referee = new Referee(pictures, labels);
  const plan = PLANS[network](shape, classes);
  const first = new Network(new Kernels(), plan);
  drawWeights(first, plan, seed);
  const { weights, tensors, count } = first;
  const room = 4 * (PER_PIXEL * pictures.length + PER_WEIGHT * count);
  const kernels = plain ? new Kernels() : fastestKernels(room);
  const own = plain ? new Kernels() : fastestKernels(); // the phones', so that the server's memory holds no private picture
  const updates = send(own, { pictures, labels, phones }, { plan, classes, weights, protections, rounds, seed });
  const known = { kernels, plan, weights, tensors, classes, batch: labels.length, phones };
  const received = receive(known, updates, adaptive ? protections : []);
  const { steps, restarts = 1 } = plannedAttack.options;
  const server = attack(received, plannedAttack, generator(seed, 'attack'));
  yield {
    kind: 'sent',
    numbers: Float32Array.from(updates[rounds - 1]),
    tensors: tensors.map(({ name, from, to }) => ({ name, from, to })),
    labels: server.labels,
    count,
    fast: kernels.constructor !== Kernels,
    grey: referee.grey,
  };
  yield* frames(server.snapshots, referee, steps * restarts, due);
}

/**
 * A frame for each step of an attack at which one is due, and at the end one of the last step.
 * @param {Iterable<Snapshot>} snapshots
 * @param {Referee} referee
 * @param {number} steps the most over all starts
 * @param {() => boolean} due
 * @returns {Generator<FrameMessage | null>}
 */
function* frames(snapshots, referee, steps, due) {
  let [seconds, began] = [0, performance.now()];
  /** @type {(kind: FrameMessage['kind'], snapshot: Snapshot) => FrameMessage} */
  const scored = (kind, { step, start, loss, pictures, labels }) => {
    const clamped = Float32Array.from(pictures, (pixel) => Math.min(1, Math.max(0, pixel || 0))); // NaN becomes 0
    const scores = { psnr: referee.psnr(clamped), labelsRight: referee.labelsRight(labels) };
    return { kind, step, steps, start, loss, pictures: clamped, ...scores, labels, seconds, rate: seconds && step / seconds };
  };
  /** @type {Snapshot | null} */
  let last = null;
  for (const snapshot of snapshots) {
    seconds += (performance.now() - began) / 1000;
    last = snapshot;
    yield due() ? scored('frame', snapshot) : null;
    began = performance.now();
  }
  if (last) yield scored('end', last);
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
  /** @type {Generator<SentMessage | FrameMessage | null> | null} */
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
        else if (value) {
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
    if (typeof data === 'object' && data && 'pause' in data) paused = data.pause;
    else {
      playing = play(data, () => performance.now() - told >= BETWEEN);
      [paused, told] = [false, -Infinity];
    }
    resume();
  };
}

if (typeof document === 'undefined' && 'WorkerGlobalScope' in globalThis) serve(/** @type {Scope} */ (/** @type {unknown} */ (globalThis)));
