// "Try your own picture": the visitor chooses a picture, sees what a phone would send of it, and watches an attack on that, on this device.
// It is loaded when it is asked for, with the worker's text, the style and the line-up, by reader/own.js.
import { element, prefersCalm } from '../dom.js';
import { loadImage } from '../live/pictures.js';
import { AttackRun, WorkerError, addressOf } from './attack_run.js';
import { Likeness } from './likeness.js';
import { tell } from './own_phrases.js';
import { clientsOf, labQueryOf, orderOf, sizeOf, titleOf } from './own_choices.js';
import { OwnSettings } from './own_settings.js';
import { PictureFileError, numbersOf, readPicture } from './picture_file.js';
import { RunCard, draw, tile } from './run_card.js';

const KEPT = 2; // runs that stand side by side
const CALM = 1000; // milliseconds between two pictures where less motion was asked for
const LINED_UP = 32; // pixels of a side of the pictures of the line-up

/** @typedef {import('./own_choices.js').Values} Values */
/**
 * @typedef {object} OwnParts what comes with this script
 * @property {string} worker the text of the worker
 * @property {string} style
 * @property {string} lineup the address of the pictures of the line-up, one beside the other
 *
 * @typedef {object} OwnHow
 * @property {(query: string | null, words: string) => HTMLAnchorElement} lab a link to the Lab; without an address where a visitor may not
 *   go there: then the Lab is not named
 * @property {Partial<Values>} [begin] the settings at first
 */

export class OwnPicture {
  /**
   * @param {OwnParts} parts
   * @param {OwnHow} how
   */
  constructor(parts, { lab, begin = {} }) {
    this.lab = lab;
    this.parts = parts;
    this.worker = addressOf(parts.worker);
    /** @type {AttackRun | null} */
    this.run = null;
    /** @type {RunCard[]} the latest first */
    this.cards = [];
    /** @type {File | null} */
    this.file = null;
    /** @type {{ picture: Float32Array, size: { channels: number, side: number } } | null} as the phone trains on it */
    this.read = null;
    this.chosen = 0; // counts choices, so that a slow file does not replace a later one
    this.settings = new OwnSettings(begin, () => this.follow());
    this.size = sizeOf(this.settings.values);
    this.root = element('section', 'gle-own-picture');
    this.root.setAttribute('aria-label', tell('title'));
    this.input = element('input', '');
    Object.assign(this.input, { type: 'file', accept: 'image/*' });
    this.input.addEventListener('change', () => this.take(this.input.files?.[0] ?? null));
    this.button = element('span', '', tell('choose'));
    this.problem = element('p', 'gle-own-problem');
    this.problem.setAttribute('role', 'alert');
    this.preview = element('div', 'gle-own-preview');
    this.start = element('button', 'gle-own-start', tell('attack'));
    this.start.type = 'button';
    this.start.addEventListener('click', () => this.begin());
    this.runs = element('div', 'gle-own-runs');
    this.foot = element('p', 'gle-own-limits');
    this.told = element('p', 'gle-own-unseen');
    this.told.setAttribute('role', 'status');
    this.lay();
    this.follow();
  }

  /**
   * Take over other settings.
   * @param {Partial<Values>} values
   */
  use(values) {
    this.settings.use(values);
  }

  lay() {
    const style = element('style', '', this.parts.style);
    const choose = element('label', 'gle-own-choose');
    choose.append(this.input, this.button);
    this.controls = element('div', 'gle-own-controls');
    this.controls.append(this.start, this.settings.root); // on a phone what is below the settings is out of sight
    this.controls.hidden = true;
    this.root.append(
      ...[style, element('h2', '', tell('title')), element('p', 'gle-own-lead', tell('lead')), choose, this.problem],
      ...[this.preview, this.controls, this.runs, this.foot, this.told],
    );
  }

  /** Follow the settings: another network may need the picture in another size. */
  follow() {
    const { values } = this.settings;
    const size = sizeOf(values);
    const changed = !isSame(size, this.size);
    this.size = size;
    this.compare();
    const link = this.lab(labQueryOf(values), tell('lab'));
    this.foot.replaceChildren(tell('limits', { side: size.side }), ...(link.href ? [link, `. ${tell('same')}`] : []));
    if (changed && this.file) this.take(this.file);
  }

  /**
   * Read a file and show what the phone would train on.
   * @param {File | null} file
   */
  async take(file) {
    if (!file) return;
    const chosen = (this.chosen += 1);
    const { size } = this;
    this.start.disabled = true;
    try {
      const picture = await readPicture(file, size);
      if (chosen !== this.chosen) return;
      this.file = file;
      this.read = { picture, size };
    } catch (error) {
      if (chosen === this.chosen) this.refuse(error instanceof PictureFileError ? error.message : tell('unread', { why: String(error) }));
      return;
    } finally {
      if (chosen === this.chosen) this.start.disabled = !this.read || !isSame(this.read.size, this.size);
      this.input.value = ''; // the same file may be chosen again
    }
    this.problem.textContent = '';
    this.button.textContent = tell('another');
    this.compare();
    const canvas = tile(tell('private'), size);
    draw(canvas, this.read.picture, size);
    const words = element('p', '', `${tell('cut', { side: size.side })} `);
    words.append(element('strong', '', tell('privacy')));
    this.preview.replaceChildren(canvas, words);
    /** @type {HTMLElement} */ (this.controls).hidden = false;
  }

  /** Mark the runs that are of other settings, or of another picture, than what is chosen now. */
  compare() {
    const title = titleOf(this.settings.values);
    for (const card of this.cards) card.compare(title, this.file);
  }

  /** @param {string} words */
  refuse(words) {
    this.problem.textContent = words;
  }

  /** Attack the picture with the settings. */
  async begin() {
    if (!this.read) return;
    const { picture, size } = this.read;
    this.cards[0]?.halt();
    const values = { ...this.settings.values };
    const card = new RunCard(
      titleOf(values),
      { file: this.file, picture, size },
      {
        stop: () => this.run?.stop(),
        tell: (words) => (this.told.textContent = words),
      },
    );
    for (const { root } of this.cards.slice(KEPT - 1)) root.remove();
    this.cards = [card, ...this.cards].slice(0, KEPT);
    this.runs.prepend(card.root);
    this.compare();
    card.root.scrollIntoView({ behavior: prefersCalm() ? 'instant' : 'smooth', block: 'nearest' });
    this.start.textContent = tell('again');
    const others = await this.lineup(size);
    if (card.over) return; // stopped, or a later run has taken its place
    if (others.length < clientsOf(values) - 1) {
      this.fail(card, tell('noPhones'));
      return;
    }
    let shown = -Infinity;
    const pause = prefersCalm() ? CALM : 0;
    try {
      this.run = new AttackRun(
        () => new Worker(this.worker),
        orderOf(values, picture, others),
        (message) => {
          if (message.kind === 'sent') card.showSent(/** @type {any} */ (message));
          else if (message.kind === 'failed') this.fail(card, tell('failed', { why: message.message }));
          else if (message.kind === 'refused') this.fail(card, tell('noWorker', { why: message.message }));
          else if (message.kind === 'end' || performance.now() - shown >= pause) {
            shown = performance.now();
            card.showFrame(/** @type {any} */ (message));
          }
          if (message.kind === 'end') this.finish(card, /** @type {any} */ (message), others);
        },
      );
    } catch (error) {
      if (!(error instanceof WorkerError)) throw error;
      this.fail(card, tell('noWorker', { why: error.message }));
    }
  }

  /**
   * @param {RunCard} card
   * @param {string} words
   */
  fail(card, words) {
    card.rest(words);
    this.told.textContent = words;
  }

  /**
   * @param {RunCard} card
   * @param {Parameters<RunCard['showEnd']>[0]} end
   * @param {Float32Array[]} others
   */
  finish(card, end, others) {
    card.showEnd(end);
    if (others.length)
      card.showVerdict(
        new Likeness(card.picture, others, card.size).judge(card.guessOf(end.pictures), end.pictures.length / card.picture.length),
      );
    else card.note(tell('noLineup'));
    card.noteLabel(end.labelsRight);
    const { word, closeness, grey } = card;
    this.told.textContent = `${word.textContent && `${word.textContent}, `}${closeness.textContent} ${grey.textContent}`;
  }

  /**
   * The other pictures of the line-up; none where they cannot be loaded.
   * @param {{ channels: number, side: number }} size
   */
  async lineup(size) {
    try {
      return linedUp(await loadImage(this.parts.lineup), size);
    } catch {
      return [];
    }
  }

  destroy() {
    this.chosen += 1;
    this.cards[0]?.halt();
    URL.revokeObjectURL(this.worker);
    this.root.remove();
  }
}

/** @type {(one: { channels: number, side: number }, other: { channels: number, side: number }) => boolean} */
const isSame = (one, other) => one.side === other.side && one.channels === other.channels;

/**
 * The pictures of the line-up, which stand side by side in one picture.
 * @param {HTMLImageElement} sheet
 * @param {{ channels: number, side: number }} size
 */
function linedUp(sheet, { channels, side }) {
  const canvas = element('canvas', '');
  canvas.width = canvas.height = side;
  const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { willReadFrequently: true }));
  return Array.from({ length: Math.floor(sheet.naturalWidth / LINED_UP) }, (_, place) => {
    brush.drawImage(sheet, place * LINED_UP, 0, LINED_UP, LINED_UP, 0, 0, side, side);
    return numbersOf(brush.getImageData(0, 0, side, side), channels);
  });
}

const { gleOwn } = /** @type {any} */ (globalThis);
if (gleOwn) gleOwn.OwnPicture = OwnPicture;
