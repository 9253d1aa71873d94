// All texts of "Try your own picture", as data. A translation is another table with the same names.

export const OWN_PHRASES = {
  title: 'Your own picture',
  lead:
    'Choose a picture. This page trains a small network on it for one step, as a phone would in federated learning. ' +
    'Then it attacks the numbers that the phone would send. The picture stays on this device.',
  choose: 'Choose or take a picture',
  another: 'Another picture',
  cut: 'The middle of your picture, in {side} x {side} pixels: this the phone trains on.',
  privacy: 'It never left this device: no picture and no number is uploaded or stored.',
  attack: 'Attack it',
  again: 'Attack it again',
  stop: 'Stop',
  stopped: 'Stopped at step {step}.',
  protection: 'Protection',
  amount: 'How much',
  attacker: 'Attacker',
  knows: 'knows the protection',
  ignores: 'ignores it',
  more: 'Network, attack, seed',
  network: 'Network',
  method: 'Attack',
  seed: 'Seed',
  private: 'Your picture',
  sent: 'What is sent',
  numbers: '{n} numbers',
  guess: 'What the attacker sees',
  waiting: 'The network is being drawn …',
  step: 'step {step} of {steps} at most, {rate} steps a second',
  took: '{step} {unit} in {seconds} s',
  ended: 'finished after {took}',
  grey: 'A grey picture scores {grey} dB.',
  label: 'Class read from the numbers: {read}. It is {right}.',
  right: 'right',
  wrong: 'wrong',
  lineup: 'Among {size} pictures, yours is number {rank} by its nearness to the attacker’s picture.',
  hardly: 'But that picture is hardly nearer to yours than one that shows nothing.',
  noPlace: 'No place among {size} pictures counts: a picture that shows nothing comes first too, such as plain grey.',
  recognizable: 'recognizable',
  singled: 'singled out',
  partly: 'partly',
  hidden: 'not shown by this attack',
  limits: 'This is an untrained small network at {side} x {side} pixels. ',
  lab: 'The Lab has larger and trained networks',
  same: 'Same method and same seed as in the Lab; rounding may end elsewhere.',
  noWorker: 'This browser does not let the page compute in the background ({why}). The recording on this page shows the same attack.',
  failed: 'The attack ended with an error: {why}',
  noLineup: 'The pictures for the line-up could not be loaded, so no word is said about recognizing yours.',
};

/** @typedef {keyof typeof OWN_PHRASES} OwnPhrase */

/**
 * A phrase with its blanks filled.
 * @param {OwnPhrase} name
 * @param {Record<string, string | number>} [blanks]
 */
export const tell = (name, blanks = {}) => OWN_PHRASES[name].replace(/\{(\w+)\}/g, (_, blank) => String(blanks[blank] ?? ''));
