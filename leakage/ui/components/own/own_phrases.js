// All texts of "Try your own picture", as data. A translation is another table with the same names.

export const OWN_PHRASES = {
  title: 'Your own picture',
  lead:
    'Some apps learn from your pictures on your phone: the phone keeps the picture, and sends only numbers to a server (federated ' +
    'learning). Choose a picture. This page computes the numbers that a phone would send, and shows what a server can rebuild from them. ' +
    'Here the picture and the numbers stay on this device.',
  choose: 'Choose or take a picture',
  another: 'Another picture',
  cut: 'The phone trains on the middle of your picture, in {side} x {side} pixels.',
  privacy: 'It never left this device: no picture and no number is uploaded or stored.',
  attack: 'Attack it',
  again: 'Attack it again',
  stop: 'Stop',
  stopped: 'Stopped at step {step}.',
  protection: 'Protection',
  amount: 'Strength',
  attacker: 'Attacker',
  knows: 'knows it',
  ignores: 'does not know it',
  noneMeans: 'The phone sends its numbers as they are.',
  noiseMeans: 'The phone adds random numbers to what it sends.',
  averagedMeans: 'The phone sends its numbers 16 times. Their mean has a quarter of the noise.',
  pruningMeans: 'The phone keeps its largest numbers, and sends zeros for the others.',
  int8Means: 'The phone rounds each number to 8 bits: at most 255 different values in a layer.',
  fp16Means: 'The phone rounds each number to 16 bits: about three digits.',
  clippingMeans: 'The phone scales its numbers down if they are large, and adds random ones.',
  sumMeans: 'The server sees only the sum of the numbers of several phones.',
  more: 'Network, attack, seed',
  network: 'Network',
  method: 'Attack',
  seed: 'Seed',
  private: 'Your picture',
  sent: 'What is sent',
  numbers: '{n} numbers',
  guess: 'What the attacker sees',
  waiting: 'The network gets its random weights …',
  step: 'step {step} of {steps} at most, {rate} steps a second',
  took: '{step} {unit} in {seconds} s',
  ended: 'finished after {took}',
  grey: 'close to your picture (more is closer; from 40 on they look alike). A plain grey picture has {grey} dB.',
  label:
    'To train, a phone gives each picture a class, such as “cat”. Yours got class number {own}; the attacker read number {read}: {right}.',
  right: 'right',
  wrong: 'wrong',
  first: 'Of {size} pictures, yours is the nearest to the attacker’s picture.',
  lineup: 'If {size} pictures are sorted by their nearness to the attacker’s picture, yours is number {rank}.',
  hardly: 'But the attacker’s picture is hardly nearer to yours than one that shows nothing.',
  nearest: 'The attacker has {n} pictures; the one nearest to yours is shown. The other phones have photographs of the gallery.',
  noPhones: 'The pictures of the other phones could not be loaded. Choose another protection, or reload the page.',
  unread: 'The picture could not be read ({why}). Choose another one.',
  noPlace: 'No place among {size} pictures counts: a picture that shows nothing comes first too, such as plain grey.',
  recognizable: 'recognizable',
  recognizableMeans: 'The people who run the server can see what is in your picture.',
  singled: 'singled out',
  singledMeans:
    'By its pixels or its patterns the attacker’s picture is nearer to yours than to any of {others} other pictures: the server can tell ' +
    'which one is yours.',
  unlike:
    'Pixel by pixel plain grey is closer to yours, so by eye you may not recognize it. But grey tells no picture from another, and this guess does.',
  partly: 'partly',
  partlyMeans: 'Shapes and colours of your picture leak.',
  hidden: 'not shown by this attack',
  hiddenMeans: 'Another attack, another seed or another picture may show more.',
  oldSettings: 'Made with the settings before',
  oldPicture: 'Made from the picture before',
  limits: 'This is an untrained small network at {side} x {side} pixels. ',
  lab: 'Open these settings in the Lab, which also has larger and trained networks',
  same: 'Your picture does not go along: the Lab has pictures to choose from. Method and seed are the same there; rounding differs, so the result may, too.',
  noWorker: 'This browser does not let the page compute in the background ({why}). The lessons play recordings of such attacks.',
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
