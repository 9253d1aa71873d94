// A recorded run on the page: private pictures, what was sent, and the reconstructions as a film that plays up to the stop of its beat.
import { element, prefersCalm } from '../dom.js';
import { drawSheet, layTiles, loadImage } from '../live/pictures.js';
import { ViewCards } from '../live/view_cards.js';
import { Player } from '../live/player.js';
import { placeOf, scoresOf } from '../live/record.js';
import { drawLayers } from '../live/strips.js';
import { verdictWords } from '../live/verdict.js';
import { decibel, duration, isNumber, whole } from '../live/words.js';
import { captionGuesses, layBoth } from '../live/zones.js';
import { Chart } from './chart.js';
import { say } from './phrases.js';
import { recordOf, stopPlace } from './recording.js';

const CURVE = 150; // pixels
const HASTE = 300; // milliseconds
const CARD_PAUSE = 1500; // milliseconds for which a view card is read

/**
 * @typedef {import('./recording.js').Recording} Recording
 * @typedef {object} Showing
 * @property {string} id of the run
 * @property {Recording} run
 * @property {string} film the address of its pictures
 * @property {import('./source.js').Source['lab']} lab a link to the Lab
 * @property {string} stop "first", "step N" or "answer", perhaps ", labels hidden"
 * @property {number} [from] the picture that the film goes on from
 * @property {boolean} [curves]
 * @property {boolean} [answers] a question: the view cards are shown at their end, with the card that decides
 */

export class Screen {
  /** @param {Showing} showing */
  constructor({ id, run, film, lab, stop, from = 0, curves = true, answers = false }) {
    this.run = run;
    this.calm = prefersCalm();
    this.answers = answers;
    this.hidden = stop.endsWith('labels hidden');
    this.early = stop.startsWith('step '); // how it ends is a question still
    this.record = recordOf(id, run);
    this.halt = stopPlace(this.record.pictures, stop.split(',')[0]);
    this.from = Math.min(Math.max(0, from), this.halt);
    this.gone = false;
    /** @type {HTMLImageElement | null} */
    this.image = null;
    this.root = element('section', 'gle-screen');
    Object.assign(this.root.dataset, { run: id, frames: '0' });
    /** @type {Set<number>} */
    this.seen = new Set();
    this.root.setAttribute('aria-label', run.title);
    this.player = new Player({
      show: (place) => this.show(place),
      ready: () => this.image !== null,
      settled: () => {},
      changed: () => this.paint(),
    });
    /** @type {Chart[]} */
    this.charts = [];
    this.lay(lab, curves);
    if (run.film) this.open(film);
  }

  /**
   * @param {Showing['lab']} lab
   * @param {boolean} curves
   */
  lay(lab, curves) {
    const { root, run, record } = this;
    const head = element('h3', 'gle-screen-title', run.title);
    if (!run.film || !record.meta) {
      const missing = element('p', 'gle-note', `${say('notRecorded')} `);
      if (run.lab) missing.append(lab(run.lab, say('computeLab')));
      root.append(head, missing);
      return;
    }
    const { meta } = record;
    const many = meta.batch > 1;
    const truth = zone('private', say(many ? 'privateMany' : 'private'), say(many ? 'privateManyWhere' : 'privateWhere'));
    const wire = zone('wire', say('wire'), sentWords(meta.received));
    const guess = zone('attacker', say('attacker'), say('attackerWhere'));
    const grids = { truth: element('div', 'gle-tiles'), guess: element('div', 'gle-tiles') };
    truth.append(grids.truth);
    guess.append(grids.guess);
    const layers = element('div', 'gle-layers');
    layers.setAttribute('aria-hidden', 'true'); // the number above them says it
    drawLayers(layers, (meta.received?.layers ?? []).slice(0, 8));
    wire.append(layers);
    layBoth(grids, meta.pictures ?? [], meta.batch);
    this.truth = grids.truth;
    this.guess = grids.guess;
    const scene = element('div', 'gle-scene');
    scene.dataset.many = String(many);
    scene.append(truth, wire, guess);
    this.verdict = element('p', 'gle-verdict');
    root.append(head, scene, this.verdict);
    const moves = new Set(record.pictures.slice(0, this.halt + 1).map(({ step }) => step)).size > 1;
    if (moves) root.append(this.controls());
    if (record.frames.some(({ views }) => views)) root.append(this.cards());
    else if (moves && curves) root.append(this.measures());
    root.append(...(run.messages ?? []).map((words) => element('p', 'gle-note gle-message', words)));
    const foot = element('p', 'gle-foot', say('recordedIn', { time: duration(run.seconds ?? 0) }));
    if (run.lab) foot.append(' · ', lab(run.lab, say('openLab')));
    root.append(foot);
    if (this.halt < 0)
      layTiles(
        grids.guess,
        meta.batch,
        Array.from({ length: meta.batch }, () => ({ text: '?', label: say('nothingYet') })),
      );
  }

  controls() {
    const row = element('div', 'gle-player');
    this.button = element('button', 'gle-play', '▶');
    this.button.setAttribute('aria-label', say('play')); // before its film has come, too
    this.button.type = 'button';
    this.button.addEventListener('click', () => this.toggle());
    this.slider = element('input', 'gle-slider');
    Object.assign(this.slider, { type: 'range', min: '0', max: String(this.halt), value: '0' });
    this.slider.setAttribute('aria-label', say('stepOfAttack'));
    this.slider.addEventListener('input', () => this.player.seek(Number(this.slider?.value)));
    this.now = element('span', 'gle-now');
    row.append(this.button, this.slider, this.now);
    return row;
  }

  /** A card for each layer that the attack has solved, up to the stop; only some attacks report layers. */
  cards() {
    const host = element('div', 'gle-view-cards');
    const { pictures, frames } = this.record;
    this.viewCards = new ViewCards(host, (seq) => this.player.seek(placeOf(pictures, seq)));
    this.player.pause = CARD_PAUSE;
    const last = pictures[Math.max(0, this.halt)].seq;
    this.viewCards.update({ frames: this.halt < 0 ? [] : frames.filter(({ seq }) => seq <= last) });
    return host;
  }

  /** Curves of all frames up to the halt, drawn as far as the picture on the page. */
  measures() {
    const host = element('div', 'gle-curves');
    const { frames, pictures, meta } = this.record;
    const upTo = pictures[this.halt].seq;
    const steps = frames.filter(({ seq }) => seq <= upTo);
    const grey = meta?.baselines?.grey?.psnr;
    const common = { xTitle: say('stepOfAttack'), height: CURVE };
    /** @type {[string, (frame: import('./recording.js').Frame) => number | null, object][]} */
    const both = [
      [
        say('closeness'),
        ({ scores }) => scores.psnr ?? null,
        { tones: [0], line: isNumber(grey) ? { at: grey, title: say('greyLine') } : null },
      ],
      [say('distance'), ({ loss }) => (isNumber(loss) && loss > 0 ? loss : null), { tones: [1], log: true }],
    ];
    this.charts = both.map(([yTitle, read, more]) => {
      /** @type {import('./chart.js').Point[]} */
      const points = steps.map((frame) => [frame.step, read(frame)]);
      return new Chart(host, { ...common, ...more, label: `${say('curvesOf')}: ${yTitle}`, yTitle, series: [{ title: yTitle, points }] });
    });
    return host;
  }

  /** @param {string} address of the film */
  async open(address) {
    this.image = await loadFilm(address, this.root);
    if (!this.image || this.gone) return;
    if (this.truth) drawSheet(this.image, this.truth, this.row(0));
    this.player.update({ count: this.halt + 1, place: Math.max(0, this.from), answer: this.halt, running: false });
    if (this.halt < 0) this.tell();
    else if (this.halt === 0 || this.calm || (this.viewCards && this.answers)) this.player.seek(this.halt);
    else this.begin();
  }

  /** Play; what the film begins with has been on the page before, or is noise: it stands for a moment only. */
  begin() {
    this.player.play(this.from);
    this.player.last -= HASTE;
  }

  /** Play or pause; with reduced motion show the next of three pictures instead: first, middle, last. */
  toggle() {
    const { player, halt, calm } = this;
    if (calm) player.seek([0, Math.round(halt / 2), halt].find((place) => place > player.place) ?? 0);
    else player.toggle();
  }

  /** @param {number} number of a row of the film; the private pictures are the first */
  row(number) {
    const height = this.run.film?.side ?? 0;
    return { top: number * height, height };
  }

  /** @param {number} place */
  show(place) {
    if (!this.image || !this.guess) return;
    drawSheet(this.image, this.guess, this.row(place + 1));
    this.seen.add(place);
    this.tell();
  }

  /** What belongs to the picture on the page: verdict, closeness, labels, and how far the curves go. */
  tell() {
    const { record, guess, player } = this;
    const frame = this.halt < 0 ? null : record.pictures[Math.max(0, player.place)];
    const scores = scoresOf(record, frame);
    const { word, mark } = this.early ? { word: say('notJudged'), mark: '' } : verdictWords(record, frame);
    if (frame && guess) {
      captionGuesses(guess, { labels: this.hidden ? [] : frame.labels, each: null, meta: record.meta });
      const psnr = decibel(scores.psnr);
      guess.querySelectorAll('canvas').forEach((canvas, tile) => {
        const title = record.meta?.pictures?.[tile]?.title;
        const of = title && (record.meta?.batch ?? 1) > 1 ? say('reconstructionOf', { title }) : '';
        canvas.setAttribute('aria-label', say('reconstruction', { of, psnr, word }));
      });
    }
    const grey = record.meta?.baselines?.grey?.psnr;
    if (this.verdict && frame) {
      this.verdict.dataset.word = mark;
      const big = element('b', 'gle-big', decibel(scores.psnr));
      const beside = isNumber(grey) ? say('greyScores', { grey: decibel(grey) }) : '';
      this.verdict.replaceChildren(big, element('span', 'gle-word', word), element('small', '', beside));
    }
    if (frame) for (const chart of this.charts) chart.upTo(record.frames.findIndex(({ seq }) => seq === frame.seq) + 1);
    if (frame) this.viewCards?.mark(frame.seq);
    const all = record.meta?.steps;
    if (this.now && frame) {
      this.now.textContent = isNumber(all)
        ? say('stepOf', { n: whole(frame.step), all: whole(Math.max(all, frame.step)) })
        : say('step', { n: whole(frame.step) });
      this.slider?.setAttribute('aria-valuetext', `${this.now.textContent}, ${decibel(scores.psnr)}`);
    }
    Object.assign(this.root.dataset, {
      frames: String(this.seen.size),
      step: String(frame?.step ?? ''),
      psnr: scores.psnr?.toFixed(2) ?? '',
    });
  }

  /** Everything that the player moves. */
  paint() {
    const { mode, place, answer } = this.player;
    this.root.dataset.mode = mode;
    if (this.slider) this.slider.value = String(Math.max(0, place));
    if (!this.button) return;
    const playing = mode === 'play';
    this.button.dataset.playing = String(playing);
    this.button.textContent = playing ? '❚❚' : place >= answer && place > 0 ? '↻' : '▶';
    this.button.setAttribute('aria-label', say(playing ? 'pause' : place >= answer && place > 0 ? 'playAgain' : 'play'));
  }

  destroy() {
    this.gone = true;
    this.player.destroy();
    this.viewCards?.destroy();
    this.charts.forEach((chart) => chart.destroy());
    this.root.remove();
  }
}

/**
 * How many numbers were sent. Zeros need not be: then of how many.
 * @param {import('../live/events.js').ReceivedUpdate | undefined} received
 */
function sentWords(received) {
  const { entries = 0, layers = [] } = received ?? {};
  const all = layers.reduce((sum, { shape = [] }) => sum + shape.reduce((product, side) => product * side, 1), 0);
  return entries < all ? say('numbersOf', { n: whole(entries), all: whole(all) }) : say('numbers', { n: whole(entries) });
}

/**
 * @param {string} name
 * @param {string} title
 * @param {string} where
 */
function zone(name, title, where) {
  const made = element('div', `gle-zone gle-${name}`);
  made.append(element('h4', '', title), element('p', 'gle-where', where));
  return made;
}

/**
 * The picture of an address; null, and a note on the page, where it does not come.
 * @param {string} address
 * @param {HTMLElement} root
 */
export async function loadFilm(address, root) {
  try {
    return await loadImage(address);
  } catch {
    root.append(element('p', 'gle-note', say('failed')));
    return null;
  }
}
