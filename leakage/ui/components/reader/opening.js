// The first ten seconds: noise moves, stops, and the page asks what it will become; then the film plays to its end, and the phone's lock opens.
import { element, prefersCalm } from '../dom.js';
import { drawSheet, loadImage } from '../live/pictures.js';
import { Player } from '../live/player.js';
import { drawLayers } from '../live/strips.js';
import { duration, whole } from '../live/words.js';
import { optionList } from './marking.js';
import { say } from './phrases.js';

const HASTE = 190; // milliseconds: what the film begins with is noise, or has been on the page before, and stands for a moment only
const SPEED = 2; // two seconds before the question, and two after it
const LOCK =
  '<svg viewBox="0 0 48 56" aria-hidden="true"><path class="gle-shackle" d="M12 26V17a12 12 0 0 1 24 0v9"/>' +
  '<rect x="5" y="25" width="38" height="28" rx="5"/><circle cx="24" cy="37" r="3.4"/><path class="gle-hole" d="M24 39v6"/></svg>';

/**
 * @typedef {object} Film what is known of the recorded run; its picture has a row for the private one, then one for every step
 * @property {string} address
 * @property {number} side of a picture, in pixels
 * @property {number[]} steps
 * @property {number} halt the place among the steps where it asks
 * @property {number} entries numbers that were sent
 * @property {import('../live/strips.js').Layer[]} layers of what was sent
 * @property {number} seconds that it took to compute
 * @typedef {'opening' | 'asked' | 'going' | 'open' | 'missing'} Phase
 */

export class Opening {
  /**
   * @param {Film} film
   * @param {() => void} [answered] the film has come to its end: what it ends with may be seen elsewhere too
   */
  constructor(film, answered = () => {}) {
    this.film = film;
    this.answered = answered;
    this.calm = prefersCalm();
    this.gone = false;
    /** @type {HTMLImageElement | null} */
    this.image = null;
    /** @type {number | undefined} */
    this.chosen = undefined;
    this.unasked = false; // the visitor continued before the question appeared, so it is not asked
    this.options = [
      { text: say('doorBlur'), right: false, why: '' },
      { text: say('doorSame'), right: true, why: '' },
      { text: say('doorNoise'), right: false, why: '' },
    ];
    this.player = new Player({
      show: (place) => this.show(place),
      ready: () => this.image !== null,
      settled: () => this.rest(),
    });
    this.player.speed = SPEED;
    this.root = element('section', 'gle-opening');
    this.truth = element('div', 'gle-door-tile');
    this.guess = element('div', 'gle-door-tile');
    this.now = element('small', '');
    this.headline = element('h2', '', say('doorAsk'));
    this.headline.setAttribute('aria-live', 'polite');
    this.answers = element('div', 'gle-door-answers');
    this.foot = element('p', 'gle-door-foot');
    this.skip = element('button', 'gle-door-skip', say('doorSkip'));
    this.skip.type = 'button';
    this.skip.addEventListener('click', () => this.giveUp());
    this.lay();
    this.turn('opening');
    this.open();
  }

  lay() {
    const { film, root } = this;
    const locked = element('div', 'gle-door-locked');
    const lock = element('i', 'gle-lock');
    lock.innerHTML = LOCK;
    locked.append(this.truth, lock);
    this.truth.append(canvasOf(film.side, say('private')));
    this.guess.append(canvasOf(film.side, say('attacker')));
    const wire = element('div', 'gle-door-wire');
    const layers = element('div', 'gle-layers');
    layers.setAttribute('aria-hidden', 'true'); // the number above them says it
    drawLayers(layers, film.layers);
    wire.append(element('h3', '', say('doorWire')), element('b', '', say('numbers', { n: whole(film.entries) })), layers);
    const scene = element('div', 'gle-door-scene');
    scene.append(
      box('phone', say('doorPhone'), locked, element('small', '', say('private'))),
      wire,
      box('server', say('doorServer'), this.guess, this.now),
    );
    const ask = element('div', 'gle-door-ask');
    ask.append(this.headline, this.answers, this.foot);
    root.append(scene, ask);
  }

  get last() {
    return this.film.steps.length - 1;
  }

  /** @param {Phase} phase */
  turn(phase) {
    this.root.dataset.phase = phase;
    this.phase = phase;
    const revealed = phase === 'open';
    this.headline.textContent = say(revealed ? 'doorOpen' : phase === 'missing' ? 'doorMissing' : 'doorAsk');
    this.foot.replaceChildren(revealed ? say('recordedIn', { time: duration(this.film.seconds) }) : phase === 'asked' ? this.skip : '');
    if (revealed || phase === 'missing') this.answered();
    const focused = this.answers.contains(document.activeElement);
    const { options, chosen } = this;
    this.answers.replaceChildren(optionList({ options, chosen, revealed, choose: (option) => this.choose(option) }));
    if (focused) this.answers.querySelectorAll('button')[chosen ?? 0]?.focus();
  }

  async open() {
    try {
      this.image = await loadImage(this.film.address);
    } catch {
      if (!this.gone) this.turn('missing');
      return;
    }
    if (this.gone) return;
    drawSheet(this.image, this.truth, this.row(0));
    this.go(0, this.film.halt);
  }

  /**
   * Play from one place to another; at once where less motion was asked for.
   * @param {number} from
   * @param {number} to
   */
  go(from, to) {
    this.player.update({ count: to + 1, place: from, answer: to, running: false });
    if (this.calm || from === to) this.player.seek(to);
    else {
      this.player.play(from);
      this.player.last -= HASTE;
    }
  }

  /** @param {number} number of a row of the film; the private picture is the first */
  row(number) {
    const { side } = this.film;
    return { top: number * side, height: side };
  }

  /** @param {number} place */
  show(place) {
    if (!this.image) return;
    drawSheet(this.image, this.guess, this.row(place + 1));
    this.now.textContent = say('step', { n: whole(this.film.steps[place]) });
    this.root.dataset.place = String(place);
  }

  /** Handle that the film has stopped: at the question, which waits without a time limit, or at its end. */
  rest() {
    if (this.player.mode !== 'still') return;
    if (this.phase === 'opening') this.unasked ? this.goOn() : this.turn('asked');
    else if (this.phase === 'going') this.turn('open');
  }

  /** @param {number} option */
  choose(option) {
    if (this.phase !== 'asked') return;
    this.chosen = option;
    this.goOn();
  }

  /** No guess is made: it plays to its end. */
  giveUp() {
    this.unasked = true;
    if (this.phase === 'asked') this.goOn();
  }

  goOn() {
    this.turn('going');
    this.go(this.film.halt, this.last);
  }

  destroy() {
    this.gone = true;
    this.player.destroy();
    this.root.remove();
  }
}

/**
 * @param {number} side
 * @param {string} label
 */
function canvasOf(side, label) {
  const tile = element('figure', '');
  const canvas = element('canvas', '');
  Object.assign(canvas, { width: side, height: side });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', label);
  tile.append(canvas);
  return tile;
}

/**
 * @param {string} name
 * @param {string} title
 * @param {HTMLElement[]} parts
 */
function box(name, title, ...parts) {
  const made = element('div', `gle-door-box gle-door-${name}`);
  made.append(element('h3', '', title), ...parts);
  return made;
}
