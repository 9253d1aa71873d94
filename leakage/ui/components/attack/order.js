// The order of an attack as the page sends it, checked and completed.
import { PLANS } from './plans.js';
import { DEFAULTS } from './protections.js';

/** @typedef {import('./protections.js').Protection} Protection */
/** @typedef {keyof typeof ATTACKS} AttackId */

/**
 * @typedef {object} Order
 * @property {keyof typeof PLANS} network
 * @property {[channels: number, height: number, width: number]} shape of a picture
 * @property {number} classes
 * @property {Float32Array} pictures of this phone, (B, C, H, W) in [0, 1]
 * @property {number[]} labels of the pictures, and then of the other phones' pictures
 * @property {number} seed of all random numbers
 * @property {AttackId} attack
 * @property {number} [steps] the most steps, of each start where there are several
 * @property {number} [restarts] the most starts of iDLG and DLG
 * @property {number} [step_size] of Inverting Gradients
 * @property {number} [tv_weight] of Inverting Gradients
 * @property {'steps' | 'coarse first'} [schedule] of Inverting Gradients
 * @property {Partial<Protection> | Partial<Protection>[]} [protection] one, or several in the order in which they act
 * @property {boolean} [adaptive] whether the attacker knows the protections; true unless it is said otherwise
 * @property {number} [rounds] in which the phone sends the same pictures at the same weights
 * @property {Float32Array} [phones] the other phones' pictures, (m B, C, H, W); the server gets the mean over all phones
 * @property {boolean} [plain] without WebAssembly
 */

/** The numbers of each attack: their defaults, and the least and the most (as leakage/attacks has them). */
export const ATTACKS = {
  idlg: { steps: [300, 1, 2000], restarts: [8, 1, 16] },
  dlg: { steps: [300, 1, 2000], restarts: [8, 1, 16] },
  inverting_gradients: { steps: [4800, 1, 24000], step_size: [0.1, 0.0001, 10], tv_weight: [0.001, 0, 10] },
  linear_layer: { steps: [1, 1, 1] },
};

const SCHEDULES = ['steps', 'coarse first'];
const MOST = { side: 1000, batch: 8, rounds: 64, seed: 2 ** 31 - 1 };

/** @type {Record<string, Record<string, readonly (number | string)[]>>} range of a number as [least, most], or the texts of a choice */
const FIELDS = {
  gaussian_noise: { scale: [0, 10] },
  pruning: { fraction: [0, 0.999], scope: ['each tensor', 'whole gradient', 'random'] },
  low_precision: { number: ['int8', 'fp16', 'bf16'], rounding: ['nearest', 'stochastic'] },
  clipping: { bound: [1e-6, 1e6], scope: ['whole gradient', 'each layer'] },
};

/**
 * The order with its defaults.
 * @param {Order} order
 * @throws {Error} where a part does not fit, with a sentence for the page
 */
export function checked(order) {
  const { network, shape, classes, pictures, labels, seed, attack, phones = new Float32Array(0), rounds = 1, schedule = 'steps' } = order;
  oneOf('network', network, Object.keys(PLANS));
  oneOf('attack', attack, Object.keys(ATTACKS));
  shape.forEach((side) => whole('Each number of shape', side, 1, MOST.side));
  whole('classes', classes, 2, 1000);
  whole('seed', seed, 0, MOST.seed);
  whole('rounds', rounds, 1, MOST.rounds);
  const size = shape[0] * shape[1] * shape[2];
  const batch = wholePictures('pictures', pictures, shape, size);
  const others = wholePictures('phones', phones, shape, size);
  if (others % batch) throw new Error(`phones must hold ${batch} pictures for each phone, not ${others} in all. Change pictures.`);
  whole('The number of pictures of all phones', batch + others, 1, MOST.batch);
  if (!Array.isArray(labels) || labels.length !== batch + others)
    throw new Error(`labels must be a list of ${batch + others}, one for each picture, not ${show(labels)}. Give each picture a class.`);
  labels.forEach((label) => whole('Each label', label, 0, classes - 1));
  if (attack === 'linear_layer' && network !== 'mlp')
    throw new Error(`linear_layer needs a network whose first layer is fully connected, not ${show(network)}. Choose mlp.`);
  oneOf('schedule', schedule, SCHEDULES);
  const given = order.protection === undefined ? [] : Array.isArray(order.protection) ? order.protection : [order.protection];
  return {
    ...{ network, shape, classes, labels, seed, attack, rounds, schedule, options: optionsOf(order) },
    ...{ pictures: joined(pictures, phones), phones: 1 + others / batch, protections: given.map(protectionOf) },
    ...{ adaptive: order.adaptive ?? true, plain: order.plain ?? false },
  };
}

/**
 * The numbers of the attack, by name.
 * @param {Order} order
 */
function optionsOf(order) {
  /** @type {Record<string, number>} */
  const options = {};
  for (const [name, [usual, least, most]] of Object.entries(ATTACKS[order.attack])) {
    const value = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (order))[name] ?? usual;
    if (name === 'steps' || name === 'restarts') whole(name, value, least, most);
    else within(name, value, least, most);
    options[name] = Number(value);
  }
  return options;
}

/**
 * @param {Partial<Protection>} given
 * @returns {Protection}
 */
function protectionOf(given) {
  oneOf('protection', given.id, Object.keys(DEFAULTS));
  const fields = FIELDS[/** @type {Protection['id']} */ (given.id)];
  for (const [name, value] of Object.entries(given)) {
    if (name === 'id') continue;
    oneOf(`A field of ${given.id}`, name, Object.keys(fields));
    const [first, second] = fields[name];
    if (typeof first === 'number') within(name, value, first, Number(second));
    else oneOf(name, value, /** @type {string[]} */ (fields[name]));
  }
  return /** @type {Protection} */ ({ ...DEFAULTS[/** @type {Protection['id']} */ (given.id)], ...given });
}

/**
 * The number of pictures in an array.
 * @param {string} name
 * @param {Float32Array} pictures
 * @param {number[]} shape
 * @param {number} size
 */
function wholePictures(name, pictures, shape, size) {
  const picture = `${shape.join(' x ')} = ${size} numbers a picture`;
  if (!(pictures instanceof Float32Array && pictures.length % size === 0))
    throw new Error(`${name} must be a Float32Array of ${picture}, not ${show(pictures)}. Change pictures.`);
  if (!pictures.every((pixel) => pixel >= 0 && pixel <= 1)) throw new Error(`${name} must lie in [0, 1]. Divide bytes by 255.`);
  return pictures.length / size;
}

/** @type {(name: string, value: unknown, known: string[]) => void} */
function oneOf(name, value, known) {
  if (!known.includes(/** @type {string} */ (value)))
    throw new Error(`${name} must be one of ${known.join(', ')}, not ${show(value)}. Choose one of them.`);
}

/** @type {(name: string, value: unknown, least: number, most: number) => void} */
function within(name, value, least, most) {
  if (!(typeof value === 'number' && value >= least && value <= most))
    throw new Error(`${name} must lie in [${least}, ${most}], not ${show(value)}. Choose a number in this range.`);
}

/** @type {(name: string, value: unknown, least: number, most: number) => void} */
function whole(name, value, least, most) {
  within(name, value, least, most);
  if (!Number.isInteger(value)) throw new Error(`${name} must be a whole number, not ${show(value)}. Choose one.`);
}

/** @type {(one: Float32Array, other: Float32Array) => Float32Array} */
function joined(one, other) {
  const both = new Float32Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/** @param {unknown} value */
const show = (value) =>
  ArrayBuffer.isView(value) ? `${/** @type {Float32Array} */ (value).length} numbers` : (JSON.stringify(value) ?? String(value));
