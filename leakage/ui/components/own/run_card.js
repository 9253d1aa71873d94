// One attack on the visitor's picture as a card: the picture, the numbers that are sent, the attacker's picture, and how near it is.
import { element } from '../dom.js';
import { drawStrip } from '../live/strips.js';
import { decibel, fixed, whole } from '../live/words.js';
import { decibels, squaredError } from './likeness.js';
import { LABEL } from './own_choices.js';
import { tell } from './own_phrases.js';

const CELLS = 64; // of the strip of each tensor

/** @typedef {import('./likeness.js').Likeness} Likeness */
/** @typedef {{ channels: number, side: number }} Size */

export class RunCard {
  /**
   * @param {string} title
   * @param {{ file: File | null, picture: Float32Array, size: Size }} read the picture, and the file that it was read from
   * @param {{ stop: () => void, tell: (words: string) => void }} how `tell`: for screen readers
   */
  constructor(title, { file, picture, size }, { stop, tell: announce }) {
    this.title = title;
    this.file = file;
    this.picture = picture;
    this.size = size;
    this.last = 0;
    this.closenessOfGrey = decibels(new Float32Array(picture.length).fill(0.5), picture); // in dB
    this.reached = -Infinity; // dB
    this.over = false;
    this.end = stop;
    this.announce = announce;
    /** @type {number[]} */
    this.labels = [];
    this.root = element('article', 'gle-own-run');
    this.root.setAttribute('aria-label', title);
    this.root.tabIndex = -1; // takes the focus from Stop, which goes
    this.truth = tile(tell('private'), size);
    this.guess = tile(tell('guess'), size);
    this.strips = element('div', 'gle-own-strips');
    this.strips.setAttribute('aria-hidden', 'true'); // the number above them says it
    this.count = element('b', '', ' ');
    const wire = element('div', 'gle-own-wire');
    wire.append(element('h4', '', tell('sent')), this.count, this.strips);
    const scene = element('div', 'gle-own-scene');
    scene.append(zone('private', tell('private'), this.truth), wire, zone('attacker', tell('guess'), this.guess));
    this.closeness = element('b', 'gle-own-big', ' ');
    this.word = element('span', 'gle-own-word');
    this.grey = element('small', '', ' ');
    const verdict = element('p', 'gle-own-verdict');
    verdict.append(this.word, this.closeness, this.grey);
    this.now = element('p', 'gle-own-now', tell('waiting'));
    this.notes = element('p', 'gle-own-notes');
    this.stop = element('button', 'gle-own-stop', tell('stop'));
    this.stop.type = 'button';
    this.stop.addEventListener('click', () => this.halt());
    const foot = element('div', 'gle-own-foot');
    foot.append(this.now, this.stop);
    this.old = element('p', 'gle-own-old');
    this.root.append(this.old, element('h3', '', title), scene, verdict, foot, this.notes);
    draw(this.truth, picture, size);
  }

  /**
   * The numbers that the phone sends, and the classes that the attacker reads from them.
   * @param {{ numbers: Float32Array, tensors: { from: number, to: number }[], count: number, labels: number[] }} sent
   */
  showSent({ numbers, tensors, count, labels }) {
    this.labels = labels;
    this.count.textContent = tell('numbers', { n: whole(count) });
    this.strips.replaceChildren(
      ...tensors.map(({ from, to }) => {
        const strip = element('canvas', 'gle-strip');
        drawStrip(strip, levelsOf(numbers.subarray(from, to)));
        return strip;
      }),
    );
    this.grey.textContent = tell('grey', { grey: fixed(this.closenessOfGrey, 1) });
  }

  /**
   * Say whether this run is of other settings, or of another file, than what is chosen now.
   * @param {string} title of a run with the settings that are chosen now
   * @param {File | null} file
   */
  compare(title, file) {
    this.old.textContent = this.file !== file ? tell('oldPicture') : this.title !== title ? tell('oldSettings') : '';
  }

  /**
   * The attacker's picture at a step.
   * @param {{ step: number, steps: number, rate: number, pictures: Float32Array }} frame `pictures`: of all phones, in any order
   */
  showFrame({ step, steps, rate, pictures }) {
    this.last = step;
    const guess = this.guessOf(pictures);
    draw(this.guess, guess, this.size);
    this.reached = decibels(guess, this.picture);
    this.closeness.textContent = decibel(this.reached);
    this.now.textContent = tell('step', { step: whole(step), steps: whole(steps), rate: whole(rate) });
  }

  /**
   * The reconstructed picture that is nearest to the visitor's. In a sum the attacker does not know which picture is whose.
   * @param {Float32Array} pictures (B, channels, side, side)
   */
  guessOf(pictures) {
    const { length } = this.picture;
    const guesses = Array.from({ length: pictures.length / length }, (_, place) => pictures.subarray(place * length, (place + 1) * length));
    const errors = guesses.map((guess) => squaredError(guess, this.picture));
    return guesses[errors.indexOf(Math.min(...errors))];
  }

  /**
   * The end of the attack.
   * @param {{ step: number, seconds: number, labelsRight: number, pictures: Float32Array }} end
   */
  showEnd({ step, seconds, pictures }) {
    const count = pictures.length / this.picture.length;
    if (count > 1) this.note(tell('nearest', { n: whole(count) }));
    const took = tell('took', { step: whole(step), unit: step === 1 ? 'step' : 'steps', seconds: fixed(seconds, 1) });
    this.rest(tell('ended', { took }));
  }

  /**
   * The class that the attacker read, beside the one that the phone gave; of a sum of several phones nothing is said.
   * @param {number} right how many labels are right
   */
  noteLabel(right) {
    const { labels } = this;
    if (labels.length === 1) this.note(tell('label', { own: LABEL, read: labels[0], right: tell(right ? 'right' : 'wrong') }));
  }

  /**
   * The verdict, by the line-up.
   * @param {ReturnType<Likeness['judge']>} verdict
   */
  showVerdict({ word, rank, size }) {
    this.word.textContent = tell(word);
    this.root.dataset.word = word;
    this.note(tell(`${word}Means`, { others: whole(size - 1) }));
    if (word !== 'hidden' && this.reached < this.closenessOfGrey) this.note(tell('unlike'));
    if (word === 'singled') return; // said
    const place = rank === null ? 'noPlace' : rank === 1 ? 'first' : 'lineup';
    this.note(tell(place, { rank: whole(Math.round(rank ?? 0)), size: whole(size) }));
    if (word === 'hidden' && rank === 1) this.note(tell('hardly'));
  }

  /** @param {string} words */
  note(words) {
    this.notes.append(`${words} `);
  }

  /** Stop the attack before its end. */
  halt() {
    if (this.over) return;
    this.end();
    this.rest(tell('stopped', { step: whole(this.last) }));
    this.announce(this.now.textContent ?? '');
  }

  /** @param {string} words */
  rest(words) {
    this.over = true;
    if (document.activeElement === this.stop) this.root.focus({ preventScroll: true });
    this.stop.hidden = true;
    this.now.textContent = words;
    this.root.dataset.over = 'true';
  }
}

/**
 * @param {string} kind
 * @param {string} title
 * @param {HTMLElement} picture
 */
function zone(kind, title, picture) {
  const made = element('div', `gle-own-zone gle-own-${kind}`);
  made.append(element('h4', '', title), picture);
  return made;
}

/**
 * @param {string} label
 * @param {Size} size
 */
export function tile(label, { side }) {
  const canvas = element('canvas', 'gle-own-tile');
  Object.assign(canvas, { width: side, height: side });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', label);
  return canvas;
}

/**
 * Draw a picture (channels, side, side) in [0, 1] on a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} picture
 * @param {Size} size
 */
export function draw(canvas, picture, { channels, side }) {
  const area = side * side;
  const brush = canvas.getContext('2d');
  if (!brush) return;
  const image = brush.createImageData(side, side);
  for (let i = 0; i < area; i++) {
    for (let channel = 0; channel < 3; channel++)
      image.data[4 * i + channel] = Math.round(255 * picture[i + area * Math.min(channel, channels - 1)]);
    image.data[4 * i + 3] = 255;
  }
  brush.putImageData(image, 0, 0);
}

/**
 * The sizes of a tensor's entries as a strip: each cell is the mean size of its entries, from 0 to 255 of the largest cell.
 * @param {Float32Array} entries
 */
export function levelsOf(entries) {
  const cells = Math.min(CELLS, entries.length);
  const means = Array.from({ length: cells }, (_, cell) => {
    const part = entries.subarray(Math.floor((cell * entries.length) / cells), Math.floor(((cell + 1) * entries.length) / cells));
    return part.reduce((sum, entry) => sum + Math.abs(entry), 0) / part.length;
  });
  const most = Math.max(...means) || 1;
  return means.map((mean) => Math.round((255 * mean) / most));
}
