// Several runs as one: the private pictures once, or those of each run by themselves, and one play head for all.
import { element, find, prefersCalm } from '../dom.js';
import { Controls } from './controls.js';
import { drawSheet, layTiles, loadImage, privateOf } from './pictures.js';
import { furthestPlace, HEADS, pictureAt, placeWords, waysOf } from './ways.js';

/**
 * @typedef {import('./view.js').RunView} RunView
 * @typedef {import('./ways.js').Way} Way
 * @typedef {import('./events.js').MetaEvent} MetaEvent
 */

const APART = 'Of each run: above the private pictures, below what the attacker makes of the update.';
const BESIDE = 4; // so many runs have room for the private pictures beside them, as large as their guesses

export class Together {
  /**
   * @param {HTMLElement} host
   * @param {HTMLTemplateElement} template
   * @param {RunView[]} views all runs of the stage; the array is the stage's own
   * @param {{ base: string, autoplay: boolean, apart?: boolean }} options apart: every run has private pictures of its own
   */
  constructor(host, template, views, { base, autoplay, apart = false }) {
    this.host = host;
    this.views = views;
    this.base = base;
    this.autoplay = autoplay;
    this.calm = prefersCalm();
    this.batch = 0;
    this.sheet = ''; // the address of the private pictures
    this.played = false;
    this.root = element('div', 'gle-together');
    this.truth = element('div', 'gle-tiles');
    this.title = element('h4', '');
    const bar = /** @type {HTMLElement} */ (find(template.content, '.gle-player').cloneNode(true));
    const told = element('div', 'gle-told');
    const own = element('div', 'gle-own');
    (apart ? told : own).append(this.title, element('p', 'gle-where', apart ? APART : 'All variants start from here.'));
    told.append(bar);
    own.append(this.truth);
    this.root.append(...(apart ? [told] : [own, told]));
    this.apart = apart;
    host.prepend(this.root);
    host.classList.add('gle-compare');
    host.classList.toggle('gle-apart', apart);
    const show = (/** @type {number} */ place) => this.show(place);
    this.controls = new Controls(bar, { show, ready: (place) => this.ready(place), settled: () => {} });
    this.player = this.controls.player;
    this.root.addEventListener('keydown', (event) => this.controls.key(event)); // goes with the element
  }

  reset() {
    const count = this.views.length;
    this.batch = 0;
    this.sheet = '';
    this.played = false;
    const beside = !this.apart && count <= BESIDE;
    this.host.classList.toggle('gle-beside', beside);
    this.host.style.setProperty('--gle-across', String(this.apart ? 1 : beside ? count + 1 : count < 7 ? 3 : 4));
    this.player.reset();
    this.lay(1, []);
  }

  /**
   * The private pictures of runs that may still wait: of the one that has most.
   * @param {{ id: string, pictures?: number }[]} runs
   */
  expect(runs) {
    if (this.apart || !runs.length) return;
    const most = runs.reduce((one, other) => ((other.pictures ?? 1) > (one.pictures ?? 1) ? other : one));
    this.lay(most.pictures ?? 1, []);
    this.unveil(privateOf(most.id));
  }

  /** @param {string} sheet the address of the private pictures */
  unveil(sheet) {
    this.sheet = sheet;
    loadImage(this.base + sheet).then(
      (image) => sheet === this.sheet && drawSheet(image, this.truth), // else others are shown by now
      () => {},
    );
  }

  /**
   * The private pictures of the run that has most of them.
   * @param {MetaEvent} meta
   */
  introduce({ pictures = [], batch = pictures.length || 1, private: sheet }) {
    if (batch <= this.batch) return;
    const captions = pictures.map(({ title, class_name: name }) => ({
      text: title || name || '',
      label: [title, name].filter(Boolean).join(', class '),
    }));
    this.lay(batch, captions);
    this.batch = batch;
    if (sheet) this.unveil(sheet);
  }

  /**
   * @param {number} batch
   * @param {import('./pictures.js').Caption[]} captions
   */
  lay(batch, captions) {
    const where = this.apart ? '' : ', on the phone';
    this.title.textContent = batch > 1 || this.apart ? `The private pictures${where}` : `The private picture${where}`;
    layTiles(this.truth, batch, captions);
    this.truth.style.setProperty('--gle-columns', String(Math.min(batch, 4)));
  }

  /** The way of every run. */
  ways() {
    return waysOf(this.views.map(({ record }) => record));
  }

  /**
   * The picture that a run shows at a place of the play head.
   * @param {RunView} view
   * @param {Way} way
   * @param {number} place
   */
  at({ player }, way, place) {
    if (place < HEADS - 1) return pictureAt(way, place);
    return Math.max(0, player.running ? way.steps.length - 1 : player.answer);
  }

  /** @param {number} place */
  show(place) {
    this.ways().ways.forEach((way, number) => {
      const view = this.views[number];
      if (this.player.mode === 'follow' && view.player.running) view.player.follow();
      else view.player.seek(this.at(view, way, place));
    });
    this.tell();
  }

  /** @param {number} place */
  ready(place) {
    return this.ways().ways.every((way, number) => {
      const view = this.views[number];
      return !way.steps.length || view.isReady(this.at(view, way, place));
    });
  }

  /** Called whenever a run has drawn something. */
  update() {
    const { player, views } = this;
    const { ways } = this.ways();
    const running = views.some((view) => view.player.running);
    const count = ways.some(({ steps }) => steps.length) ? HEADS : 0;
    const head = running ? furthestPlace(ways) : HEADS - 1;
    const place = player.mode === 'follow' ? head : player.place;
    if (count && !running && !this.played) {
      this.played = true;
      const unseen = ways.every(({ steps }, number) => views[number].unseen || !steps.length);
      if (this.autoplay && !this.calm && player.mode === 'follow' && unseen) {
        player.update({ count, place, answer: HEADS - 1, running: true }); // or it would come to rest at once
        player.play(0);
      }
    }
    player.update({ count, place: player.mode === 'play' ? player.place : place, answer: count - 1, running });
    this.tell();
  }

  tell() {
    const words = placeWords(this.player, this.ways());
    if (this.controls.now.textContent !== words) this.controls.now.textContent = words;
    this.controls.say(words);
    Object.assign(this.root.dataset, { place: this.player.place, mode: this.player.mode });
  }

  destroy() {
    this.controls.destroy();
    this.root.remove();
    this.host.classList.remove('gle-compare', 'gle-apart', 'gle-beside');
  }
}
