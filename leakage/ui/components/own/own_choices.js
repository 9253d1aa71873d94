// What a visitor may choose for an attack on their own picture, and what a choice means for the worker, for the Lab, and as a title.
import { tell } from './own_phrases.js';

/**
 * @typedef {object} Choice
 * @property {string} id
 * @property {string} words
 * @typedef {object} Knob a number that a visitor turns
 * @property {number} from
 * @property {number} to
 * @property {number} start
 * @property {boolean} [logarithmic]
 * @property {'percent' | 'count'} [unit]
 * @typedef {Record<string, unknown> & { id: string }} Part a protection as the worker reads it
 * @typedef {object} Effect what a protection changes in an order to the worker
 * @property {Part[]} [protection]
 * @property {number} [rounds]
 * @property {number} [clients] phones in a sum, with this one
 * @typedef {Choice & { id: ProtectionId, knob?: Knob, effect: (amount: number) => Effect, lab: (amount: number) => Record<string, unknown> }} Protection
 *
 * @typedef {'none' | 'noise' | 'averaged' | 'pruning' | 'int8' | 'fp16' | 'clipping' | 'sum'} ProtectionId
 *
 * @typedef {object} Values
 * @property {string} protection
 * @property {number} amount
 * @property {boolean} adaptive
 * @property {string} network
 * @property {string} attack
 * @property {number} seed
 */

const CLASSES = 10;
export const LABEL = 3; // the class that the phone gives the picture; any class does
const ROUNDS = 16; // of the same picture, which the attacker averages
const BOUND = 1; // the largest norm of a clipped gradient
const NOISE = { from: 0.0001, to: 1, start: 0.01, logarithmic: true };

/** @type {(Choice & { channels: number, side: number })[]} */
export const NETWORKS = [
  { id: 'lenet', words: 'Small network (LeNet)', channels: 3, side: 32 },
  { id: 'mlp', words: 'Fully connected (MLP)', channels: 3, side: 32 },
  { id: 'mnist_cnn', words: 'MNIST-CNN, grey', channels: 1, side: 28 },
];

/** @type {(Choice & { networks: string[], fields: Record<string, unknown> })[]} fewer steps than in the Lab: a phone has a battery */
export const ATTACKS = [
  { id: 'idlg', words: 'Guess and compare (iDLG)', networks: ['lenet', 'mnist_cnn'], fields: { steps: 150, restarts: 3 } },
  { id: 'dlg', words: 'Guess and compare (DLG)', networks: ['lenet', 'mnist_cnn'], fields: { steps: 150, restarts: 3 } },
  { id: 'linear_layer', words: 'Solve the first layer (bias attack)', networks: ['mlp'], fields: {} },
  {
    ...{
      id: 'inverting_gradients',
      words: 'Guess and compare by direction (Inverting Gradients)',
      networks: ['lenet', 'mnist_cnn', 'mlp'],
    },
    fields: { steps: 1000, schedule: 'coarse first' },
  },
];

/** @type {Protection[]} */
export const PROTECTIONS = [
  { id: 'none', words: 'None', effect: () => ({}), lab: () => ({}) },
  {
    ...{ id: 'noise', words: 'Noise', knob: NOISE },
    effect: (scale) => ({ protection: [{ id: 'gaussian_noise', scale }] }),
    lab: (scale) => ({ defense: 'gaussian_noise', 'gaussian_noise.scale': scale }),
  },
  {
    ...{ id: 'averaged', words: `Noise, in ${ROUNDS} rounds`, knob: NOISE },
    effect: (scale) => ({ protection: [{ id: 'gaussian_noise', scale }], rounds: ROUNDS }),
    lab: (scale) => ({
      ...{ defense: 'gaussian_noise', 'gaussian_noise.scale': scale, 'fedsgd.rate': '1e-06' },
      ...{ rounds: ROUNDS, attacked_round: ROUNDS, counter: 'average the rounds' },
    }),
  },
  {
    ...{ id: 'pruning', words: 'Pruning', knob: { from: 0, to: 0.99, start: 0.9, unit: 'percent' } },
    effect: (fraction) => ({ protection: [{ id: 'pruning', fraction }] }),
    lab: (fraction) => ({ defense: 'pruning', 'pruning.fraction': fraction }),
  },
  .../** @type {{ id: 'int8' | 'fp16', words: string }[]} */ ([
    { id: 'int8', words: '8 bits' },
    { id: 'fp16', words: '16 bits' },
  ]).map(({ id, words }) => ({
    ...{ id, words },
    effect: () => ({ protection: [{ id: 'low_precision', number: id }] }),
    lab: () => ({ defense: 'low_precision', 'low_precision.number': id }),
  })),
  {
    ...{ id: 'clipping', words: 'Clipping and noise (DP-SGD)', knob: NOISE },
    effect: (multiplier) => ({
      protection: [
        { id: 'clipping', bound: BOUND },
        { id: 'gaussian_noise', scale: multiplier * BOUND },
      ],
    }),
    lab: (multiplier) => ({ defense: 'dp_sgd', 'dp_sgd.max_grad_norm': BOUND, 'dp_sgd.noise_multiplier': multiplier }),
  },
  {
    ...{ id: 'sum', words: 'Added up with other phones', knob: { from: 2, to: 8, start: 2, unit: 'count' } },
    effect: (clients) => ({ clients }),
    lab: (clients) => ({ aggregation: 'secure_aggregation', phones: clients, batch: clients }),
  },
];

/** @type {Values} */
export const USUAL = { protection: 'none', amount: 0, adaptive: true, network: 'lenet', attack: 'idlg', seed: 1 };

/**
 * @template {Choice} T
 * @param {T[]} choices
 * @param {string} id
 */
const pick = (choices, id) => choices.find((choice) => choice.id === id) ?? choices[0];

/** @type {(values: Values) => Protection} */
export const protectionOf = ({ protection }) => pick(PROTECTIONS, protection);

/** @type {(values: Values) => { channels: number, side: number }} the size of the pictures of a network */
export const sizeOf = ({ network }) => pick(NETWORKS, network);

/** Whether somebody can know or ignore the protection: of a sum there is nothing to ignore. @param {Values} values */
export const hasAttackers = (values) => Boolean(protectionOf(values).effect(1).protection);

/** The phones whose updates are added up. @param {Values} values */
export const clientsOf = (values) => protectionOf(values).effect(values.amount).clients ?? 1;

/**
 * The settings as the worker reads them.
 * @param {Values} values
 * @param {Float32Array} picture
 * @param {Float32Array[]} others pictures of other phones, for a sum
 * @returns {import('./attack_run.js').Order}
 */
export function orderOf(values, picture, others) {
  const { channels, side } = sizeOf(values);
  const { network, attack, seed, adaptive, amount } = values;
  const { clients = 1, ...effect } = protectionOf(values).effect(amount);
  const phones = new Float32Array((clients - 1) * picture.length);
  others.slice(0, clients - 1).forEach((other, place) => phones.set(other, place * picture.length));
  return {
    ...{ network, shape: [channels, side, side], classes: CLASSES, pictures: picture, phones, seed, attack, adaptive },
    labels: Array.from({ length: clients }, (_, place) => (LABEL + place) % CLASSES),
    ...pick(ATTACKS, attack).fields,
    ...effect,
  };
}

/**
 * The settings as the query of an address of the Lab. The picture is not part of it.
 * @param {Values} values
 */
export function labQueryOf(values) {
  const { network, attack, seed, adaptive, amount } = values;
  const { channels, side } = sizeOf(values);
  const fields = Object.entries(pick(ATTACKS, attack).fields).map(([name, value]) => [`${attack}.${name}`, value]);
  const settings = {
    ...{ v: 1, model: network, channels, size: side, attack, seed, ...Object.fromEntries(fields) },
    ...protectionOf(values).lab(amount),
  };
  const query = new URLSearchParams(Object.entries(settings).map(([name, value]) => [name, String(value)]));
  if (!adaptive && hasAttackers(values)) query.set('adaptive', 'false');
  return query.toString();
}

/**
 * The settings in a few words, as the title of a run.
 * @param {Values} values
 */
export function titleOf(values) {
  const { knob, words, id } = protectionOf(values);
  const parts = [pick(ATTACKS, values.attack).words, pick(NETWORKS, values.network).words];
  if (id !== 'none') parts.push(words + (knob ? `: ${amountWords(knob, values.amount)}` : ''));
  if (hasAttackers(values)) parts.push(`${tell('attacker')} ${tell(values.adaptive ? 'knows' : 'ignores')}`);
  return [...parts, `${tell('seed')} ${values.seed}`].join(' · ');
}

/**
 * An amount for a reader.
 * @param {Knob} knob
 * @param {number} amount
 */
export const amountWords = ({ unit }, amount) =>
  unit === 'percent' ? `${Math.round(100 * amount)} %` : String(Number(amount.toPrecision(2)));
