// A live run of a room: the private pictures, the newest reconstruction, its closeness, its step, and the state of the run.
import { element } from '../dom.js';
import { drawSheet, layTiles, loadImage } from '../live/pictures.js';
import { answerPlace, isFinal, newRecord, scoresOf, take } from '../live/record.js';
import { Stream } from '../live/stream.js';
import { verdictWords } from '../live/verdict.js';
import { decibel, isNumber, stateWords, whole } from '../live/words.js';
import { say } from '../reader/phrases.js';
import { tell } from './room_phrases.js';

/**
 * @typedef {import('../live/record.js').Frame} Frame
 * @typedef {{ events: string, truth: string, frame: (seq: number) => string }} LiveAddresses see RoomApi.run
 */

export class RoomLive {
  /**
   * @param {string} id of the run
   * @param {LiveAddresses} addresses
   * @param {{ recorded?: number | null, ended?: () => void }} [more] the closeness (PSNR, in dB) that the recorded run of the same settings
   *   and seed ended with; and what is called when the run has ended
   */
  constructor(id, addresses, { recorded = null, ended = () => {} } = {}) {
    this.addresses = addresses;
    this.recorded = recorded;
    this.ended = ended;
    this.record = newRecord(id);
    this.gone = false;
    this.loading = false;
    /** @type {Frame | null} the frame whose picture is on the page */
    this.shown = null;
    this.root = element('section', 'gle-live');
    this.root.setAttribute('aria-label', tell('live'));
    this.state = element('p', 'gle-kind');
    this.state.setAttribute('role', 'status');
    this.truth = element('div', 'gle-tiles');
    this.guess = element('div', 'gle-tiles');
    this.scene = element('div', 'gle-scene gle-pair');
    this.verdict = element('p', 'gle-verdict');
    this.note = element('p', 'gle-note');
    this.rounding = element('p', 'gle-foot', tell('rounding'));
    this.lay();
    this.stream = new Stream(
      () => `${addresses.events}&since=${this.record.heard}`,
      (event) => this.receive(event),
    );
  }

  lay() {
    const zones = /** @type {const} */ ([
      ['private', this.truth],
      ['attacker', this.guess],
    ]);
    for (const [name, tiles] of zones) {
      const zone = element('div', `gle-zone gle-${name}`);
      zone.append(element('h4', '', say(name)), tiles);
      this.scene.append(zone);
    }
    this.scene.hidden = true;
    this.note.hidden = this.rounding.hidden = true;
    this.state.textContent = stateWords({});
    this.verdict.append(element('b', 'gle-big', tell('starting')), element('small', '', '\u00a0')); // as high as with numbers
    this.root.append(this.state, this.scene, this.verdict, this.rounding, this.note);
  }

  /** @param {import('../live/record.js').AttackEvent} event */
  receive(event) {
    const { record } = this;
    take(record, event);
    if (event.kind === 'meta') this.begin();
    const words = stateWords(record.state, record.end?.ending);
    if (this.state.textContent !== words) this.state.textContent = words;
    if (isFinal(record) && this.shown) this.tell(this.shown); // the end has its own word
    this.follow();
    if (!isFinal(record)) return;
    this.stream.close();
    if (!record.pictures.length) this.verdict.replaceChildren(); // a run that failed at its start
    this.ended();
  }

  get isOver() {
    return isFinal(this.record);
  }

  /** The private pictures, and as many empty tiles for the reconstructions. */
  begin() {
    const { meta } = this.record;
    if (!meta) return;
    const names = meta.pictures.map(({ class_name: name }) => name);
    layTiles(
      this.truth,
      meta.batch,
      names.map((text) => ({ text, label: `${say('private')}: ${text}` })),
    );
    layTiles(this.guess, meta.batch, []);
    this.scene.hidden = false;
    this.draw(this.addresses.truth, this.truth);
  }

  /** Show the newest picture, at the end the answer; one picture is loaded at a time. */
  async follow() {
    const { record, guess } = this;
    const frame = record.pictures[answerPlace(record)];
    if (!frame || frame === this.shown || this.loading) return;
    this.loading = true;
    const came = await this.draw(this.addresses.frame(frame.seq), guess);
    this.loading = false;
    if (this.gone) return;
    this.shown = frame;
    if (came) this.tell(frame);
    this.follow();
  }

  /**
   * Answers whether the picture came. A frame that is thinned out meanwhile is followed by a newer one.
   * @param {string} address
   * @param {HTMLElement} tiles
   */
  async draw(address, tiles) {
    try {
      const image = await loadImage(address);
      if (!this.gone) drawSheet(image, tiles);
      return true;
    } catch {
      this.note.textContent = tell('liveGone');
      this.note.hidden = !isFinal(this.record);
      return false;
    }
  }

  /** @param {Frame} frame */
  tell(frame) {
    const { record } = this;
    const names = record.meta?.class_names ?? [];
    const closeness = scoresOf(record, frame).psnr;
    const psnr = decibel(closeness);
    const { word, mark } = verdictWords(record, frame);
    const labels = frame.labels ?? [];
    layTiles(
      this.guess,
      record.meta?.batch ?? 1,
      labels.map((label) => ({ text: names[label] ?? '', label: say('reconstruction', { of: '', psnr, word }) })),
    );
    const all = record.meta?.steps;
    const step = isNumber(all)
      ? say('stepOf', { n: whole(frame.step), all: whole(Math.max(all, frame.step)) })
      : say('step', { n: whole(frame.step) });
    this.verdict.dataset.word = mark;
    this.verdict.replaceChildren(element('b', 'gle-big', psnr), element('span', 'gle-word', word), element('small', '', step));
    Object.assign(this.root.dataset, { step: String(frame.step), psnr });
    this.rounding.hidden = !isFinal(record) || !isNearly(closeness, this.recorded);
  }

  destroy() {
    this.gone = true;
    this.stream.close();
    this.root.remove();
  }
}

/**
 * Whether two results differ only in the last digits that are shown.
 * @param {number | null | undefined} one in dB
 * @param {number | null} other in dB
 */
const isNearly = (one, other) => isNumber(one) && isNumber(other) && Math.abs(one - other) < 1 && decibel(one) !== decibel(other);
