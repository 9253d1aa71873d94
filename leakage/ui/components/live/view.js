// One run on the stage: it keeps what is known of the run, and brings the page up to it.
import { find, prefersCalm } from '../dom.js';
import { tellChecks } from './checks.js';
import { Controls } from './controls.js';
import { Curves } from './curves.js';
import { Film, QUIET } from './film.js';
import { fillGauges, layGauges } from './gauges.js';
import { ViewCards } from './view_cards.js';
import { Countdown } from './pace.js';
import { drawSheet, layPairs, layTiles, loadImage, privateOf } from './pictures.js';
import { isAnswer, isFinal, nearestPlace, placeOf, scoresOf } from './record.js';
import { drawEmptyLayers, drawStrip } from './strips.js';
import { tellVerdict } from './verdict.js';
import { decibel, duration, isNumber, noteWords, solvedWords, stateWords, whole } from './words.js';
import { captionGuesses, layBoth, markTwins, tellReceived, tellWhere } from './zones.js';

const WAITING = { text: 'waiting', label: 'not reconstructed yet' };
const RAMP = Array.from({ length: 64 }, (_, cell) => cell * 4);
const PACE = 40; // milliseconds: of a comparison, so many for each of its runs, pass between two drawings
const NO_CURVES = { update() {}, place() {}, describe() {}, destroy() {} };

/**
 * @typedef {import('./record.js').Frame} Frame
 * @typedef {import('./zones.js').Told & { id: string, title?: string, pictures?: number }} Shown what Python says of a run
 * @typedef {{ base: string, autoplay: boolean, together?: import('./together.js').Together | null }} Options
 */

export class RunView {
  /**
   * @param {HTMLTemplateElement} template
   * @param {Options} options
   */
  constructor(template, { base, autoplay, together = null }) {
    this.base = base;
    this.autoplay = autoplay;
    this.together = together;
    this.calm = prefersCalm();
    this.root = /** @type {HTMLElement} */ (/** @type {Element} */ (template.content.firstElementChild).cloneNode(true));
    this.truth = this.part('truth');
    this.guess = this.part('guess');
    this.controls = new Controls(this.part('player'), {
      show: (place) => this.show(this.record.pictures[place]),
      ready: (place) => this.isReady(place),
      settled: () => this.settle(),
    });
    this.player = this.controls.player;
    this.curves = together ? NO_CURVES : new Curves(this.part('plot'), base, (step) => this.seekStep(step));
    this.countdown = new Countdown((time) => {
      const { meta } = this.record;
      this.part('facts').textContent = [meta?.attack, meta?.device, time].filter(Boolean).join(' · ');
    });
    this.viewCards = new ViewCards(this.part('view-cards'), (seq) => this.player.seek(placeOf(this.record.pictures, seq)));
    // These listeners go with the element that they are on.
    this.root.addEventListener('keydown', (event) => (together ?? this).controls.key(event));
    this.root.addEventListener('pointerover', (event) => markTwins([this.truth, this.guess], event.target));
    this.root.addEventListener('pointerleave', () => markTwins([this.truth, this.guess], null));
    layGauges(this.part('gauges'));
    drawStrip(/** @type {HTMLCanvasElement} */ (this.part('ramp')), RAMP);
    /** @type {Set<ReturnType<typeof setTimeout>>} */
    this.timers = new Set();
    this.waiting = false; // for the next drawing
    this.unseen = false; // the run was over before anybody could watch
    this.heardTo = 0;
    this.expected = 1; // pictures
    this.spoken = '';
    this.unveiled = ''; // the address of the private pictures that are on the page, or on their way
    /** @type {import('./zones.js').Told} */
    this.told = {};
    this.film = this.newFilm('');
  }

  get record() {
    return this.film.record;
  }

  /** @param {string} id */
  newFilm(id) {
    /** @type {Film} */
    const film = new Film(this.base, id, () => film === this.film && this.update());
    return film;
  }

  /** @param {string} name */
  part(name) {
    return find(this.root, `.gle-${name}`);
  }

  /**
   * Start over with another run: its private pictures as soon as they are asked for, and nothing of the run before.
   * @param {Shown} run
   */
  reset({ id, title = '', pictures = 1, ...told }) {
    Object.assign(this, { told, expected: pictures, spoken: '', unseen: false, heardTo: 0 });
    this.film = this.newFilm(id);
    this.root.dataset.run = id;
    for (const grid of [this.truth, this.guess]) {
      grid.replaceChildren();
      layTiles(grid, this.expected, grid === this.guess ? Array(this.expected).fill(WAITING) : []);
    }
    layPairs(this.root, this.together ? 0 : this.expected);
    tellReceived(this.root, {}, this.expected);
    drawEmptyLayers(this.part('layers'));
    this.unveil(privateOf(id));
    this.part('title').textContent = title;
    tellWhere(this.root, this.told, this.expected);
    this.player.reset();
    this.viewCards.reset();
    this.refresh();
  }

  /** @param {import('./record.js').AttackEvent} event */
  receive(event) {
    this.countdown.hear();
    this.film.receive(event);
    if (event.kind === 'meta') this.introduce(event);
    if (event.kind === 'end') this.finish();
    this.soon();
  }

  /**
   * @param {() => void} action
   * @param {number} pause milliseconds
   */
  after(pause, action) {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      action();
    }, pause);
    this.timers.add(timer);
  }

  /** Draw what has come, with the next animation frame; of many runs more seldom, so that clicks are answered in between. */
  soon() {
    if (this.waiting) return;
    this.waiting = true;
    this.after(PACE * (this.together?.views.length ?? 0), () => requestAnimationFrame(() => this.refresh()));
  }

  /** @param {import('./events.js').MetaEvent} meta */
  introduce(meta) {
    const { pictures = [], batch = pictures.length || 1, received = {}, private: sheet } = meta;
    layBoth(this, pictures, batch);
    layPairs(this.root, this.together ? 0 : batch);
    if (sheet && (sheet !== this.unveiled || batch !== this.expected)) this.unveil(sheet);
    tellReceived(this.root, received, batch);
    this.expected = batch;
    tellWhere(this.root, this.told, batch);
    this.together?.introduce(meta);
  }

  /** @param {string} sheet the address of the private pictures, which a run that waits has too */
  unveil(sheet) {
    const { film } = this;
    this.unveiled = sheet;
    loadImage(this.base + sheet).then(
      (image) => film === this.film && drawSheet(image, this.truth), // else another run is shown by now
      () => film === this.film && (this.unveiled = ''),
    );
  }

  /** The run is over: rest on the answer, or play it as a time lapse if nobody saw it happen. */
  finish() {
    this.unseen = this.film.missed;
    this.update();
    if (this.player.mode !== 'follow') return;
    if (this.unseen && this.autoplay && !this.calm && !this.together) this.player.play(0);
    else this.player.seek(this.player.answer);
    this.film.fetchAll();
  }

  update() {
    this.player.update(this.film.extent);
  }

  /** Bring the page up to what is known; called once per animation frame at most, by `soon`. */
  refresh() {
    this.waiting = false;
    if (!this.root.isConnected) return; // destroyed meanwhile
    const { record, film, player } = this;
    if (film.arriving) this.after(QUIET, () => this.soon());
    else if (player.mode === 'follow' && player.running && film.next) this.showNewest(film.next);
    this.update();
    this.tell();
    tellChecks(this.root, record);
    this.curves.update(record);
    this.viewCards.update(record);
    this.paint();
  }

  /**
   * Follow the head without piling up requests on a slow line; calmly (once a second) for those who asked for less motion.
   * @param {Frame} frame
   */
  showNewest(frame) {
    const { sheets, shownAt } = this.film;
    if (sheets.busy <= 2 && (!this.calm || performance.now() - shownAt >= 1000)) this.show(frame);
  }

  /**
   * Put a picture on the page: at once where it is here, and else when it has come, unless something else is wanted by then.
   * @param {Frame | undefined} frame
   */
  show(frame) {
    if (!frame) return;
    const { film } = this;
    film.wanted = frame;
    const image = film.sheets.ready.get(frame.seq);
    if (image) {
      this.draw(frame, image);
      return;
    }
    film.fetch(frame.seq).then((loaded) => {
      const here = film === this.film && this.root.isConnected;
      if (loaded && here && film.isWanted(frame, this.player.mode === 'follow')) this.draw(frame, loaded);
    });
  }

  /**
   * @param {Frame} frame
   * @param {HTMLImageElement} image
   */
  draw(frame, image) {
    drawSheet(image, this.guess);
    this.film.mark(frame);
    this.update();
    this.paint();
  }

  /** @param {number} step */
  seekStep(step) {
    const place = nearestPlace(this.record.pictures, step);
    if (place >= 0) this.player.seek(place);
  }

  /** @param {number} place */
  isReady(place) {
    return this.film.isReady(this.record.pictures[place].seq);
  }

  settle() {
    this.curves.describe();
    if (!this.player.running || this.player.mode === 'play') this.film.fetchAll();
  }

  /** Everything that belongs to the frame shown: numbers, guesses, cursor, and the attributes that tests read. */
  paint() {
    const { record, player, film } = this;
    const { shown } = film;
    const { meta, frames, end } = record;
    const frame = shown ?? frames[frames.length - 1];
    const scores = { ...scoresOf(record, frame), loss: frame?.loss };
    tellVerdict(this.part('verdict'), record, player.mode === 'follow' || isAnswer(record, film.wanted) ? null : shown);
    fillGauges(this.part('gauges'), { scores, meta, first: frames[0]?.loss });
    const answer = isAnswer(record, frame) ? end : null;
    if (shown) captionGuesses(this.guess, { labels: frame.labels, each: answer?.scores?.psnr_each, words: answer?.verdict?.each, meta });
    this.curves.place(frame);
    this.viewCards.mark(shown?.seq);
    const of = isNumber(meta?.steps) ? ` of ${whole(Math.max(meta.steps, frame?.step ?? 0))}` : '';
    const extra = [duration(frame?.seconds), noteWords(frame?.note)].filter(Boolean).join(' · ');
    const now = frame ? `step ${whole(frame.step)}${of}` : isFinal(record) ? 'no picture' : 'no pictures yet';
    this.controls.now.textContent = now;
    this.controls.now.title = extra;
    this.part('guess-foot').textContent = `${meta?.way ?? ''}\n${extra}`;
    this.controls.say(frame ? `${now}, PSNR ${decibel(scores.psnr)}` : now);
    const facts = {
      status: record.state.status ?? 'opening',
      step: frame?.step ?? '',
      psnr: isNumber(scores.psnr) ? scores.psnr.toFixed(2) : '',
      frames: film.seen.size,
      seq: shown?.seq ?? '',
      mode: player.mode,
    };
    Object.assign(this.root.dataset, facts);
    const host = this.root.parentElement;
    if (host && this.root === host.querySelector('.gle-run')) Object.assign(host.dataset, facts);
    this.together?.update();
  }

  /** The status line speaks only when the state changes or a note comes, so that screen readers are not flooded. */
  tell() {
    const { state, note, end } = this.record;
    const over = isFinal(this.record);
    this.countdown.tell(this.record);
    const last = over ? state.status === 'done' && end?.note?.event : note;
    const words = [solvedWords(this.record) || stateWords(state, end?.ending), last].filter(Boolean).join('. ');
    if (words === this.spoken) return;
    this.spoken = words;
    this.part('status-text').textContent = words;
    if (over) this.curves.describe();
  }

  destroy() {
    this.timers.forEach(clearTimeout);
    this.countdown.destroy();
    this.controls.destroy();
    this.viewCards.destroy();
    this.curves.destroy();
    this.root.remove();
  }
}
