// One lesson on the page: its beats one after the other, the stage beside the words, dots and buttons to walk, keys to walk without them.
import { element } from '../dom.js';
import { afterwards } from './afterwards.js';
import { FigureBox } from './figures.js';
import { button, dotsOf } from './dots.js';
import { keep } from './kept.js';
import { optionList, outcomeOf } from './marking.js';
import { say } from './phrases.js';
import { Screen } from './screen.js';
import { Walk, writeHash } from './walk.js';
import { WhatIf } from './whatif.js';

/**
 * @typedef {import('./walk.js').Step & { runs?: string[], stop?: string, grid?: string, words?: Record<string, string>, figure?: import('./figures.js').Figure }} Beat
 * @typedef {object} LessonData
 * @property {string} id
 * @property {string} title
 * @property {number} minutes
 * @property {Beat[]} beats
 * @property {string} caveat
 * @property {string[]} source
 * @property {string} notes
 * @property {Record<string, import('./recording.js').Recording>} runs
 * @property {Record<string, import('./whatif.js').Grid>} grids
 * @typedef {object} Surroundings
 * @property {import('./source.js').Source} source
 * @property {(words: string) => void} announce says it to those who hear the page
 * @property {(hash: string) => void} moved the address is to follow
 * @property {{ id: string, title: string } | null} next the lesson after this one
 * @property {Partial<import('./walk.js').Kept>} [kept]
 */

const TITLES = /** @type {const} */ ({
  text: 'idea',
  play: 'watch',
  guess: 'guess',
  reveal: 'answer',
  try: 'try',
  figure: 'figure',
  takeaway: 'takeaway',
});

export class LessonView {
  /**
   * @param {LessonData} lesson
   * @param {Surroundings} around
   */
  constructor(lesson, around) {
    this.lesson = lesson;
    this.around = around;
    this.walk = new Walk(lesson.beats, around.kept);
    /** @type {{ destroy(): void }[]} what is on the stage */
    this.parts = [];
    this.staged = -2; // the beat whose runs, grid or figure are on the stage
    this.presenting = false;
    /** @type {(() => void)[]} who wants to know of every change: the speaker's view */
    this.watchers = [];
    this.root = element('article', 'gle-lesson');
    this.root.dataset.lesson = lesson.id;
    this.head = element('header', 'gle-lesson-head');
    this.dots = element('nav', 'gle-dots');
    this.dots.setAttribute('aria-label', lesson.title);
    this.text = element('div', 'gle-text');
    this.stage = element('div', 'gle-stage-side');
    this.bar = element('footer', 'gle-bar');
    this.back = button('gle-back', say('back'), () => this.step(-1));
    this.hint = element('p', 'gle-hint');
    this.next = button('gle-next', say('next'), () => this.step(1));
    this.unveiled = -1; // the question whose answer a hall sees
    this.lay();
  }

  lay() {
    const { lesson, root } = this;
    const title = element('div', 'gle-lesson-title');
    title.append(element('h1', '', lesson.title), element('p', 'gle-soft', say('minutes', { n: lesson.minutes })));
    this.head.append(title, this.dots);
    const beat = element('div', 'gle-beat');
    beat.append(this.text, this.stage);
    this.bar.append(this.back, this.hint, this.next);
    root.append(this.head, beat, this.bar);
  }

  get place() {
    return this.walk.place;
  }

  /**
   * @param {string} kind
   * @param {number} place
   */
  titleOf(kind, place) {
    return say(kind === 'text' && place ? 'background' : TITLES[/** @type {keyof typeof TITLES} */ (kind)]);
  }

  /** @param {number} by */
  step(by) {
    const { walk } = this;
    if (by > 0 && walk.place === walk.last) {
      const { next, moved } = this.around;
      return moved(next ? (this.presenting ? writeHash(next.id, 0, true) : `#${next.id}`) : '#');
    }
    this.go(walk.place + by);
  }

  /**
   * Go to a beat, or as far as the first open question, and say so.
   * @param {number} place
   */
  go(place) {
    const before = this.walk.place;
    const reached = this.walk.go(place);
    if (!reached && place < this.lesson.beats.length && place > 0) this.tellHeld(before === this.walk.place ? 'guessFirst' : 'held');
    else this.hint.textContent = '';
    if (reached || before !== this.walk.place || !this.text.childElementCount) this.show();
  }

  /** @param {'guessFirst' | 'held'} why */
  tellHeld(why) {
    this.hint.textContent = say(why);
    this.around.announce(say(why));
  }

  /** @param {number} option */
  choose(option) {
    if (!this.walk.choose(option)) return;
    this.hint.textContent = '';
    this.remember();
    this.write();
    this.walkway();
    const { text } = this.walk.beat.options?.[option] ?? { text: '' };
    this.around.announce(`${say('yourGuess')}: ${text}`);
  }

  remember() {
    if (!this.presenting) keep(this.lesson.id, this.walk.kept);
  }

  /** The beat of this place, all of it. */
  show() {
    const { lesson, walk, around } = this;
    this.remember();
    around.moved(writeHash(lesson.id, walk.place, this.presenting));
    this.root.dataset.kind = walk.beat.kind;
    this.root.dataset.place = String(walk.place + 1);
    this.write();
    this.setStage();
    this.walkway();
    const { text, kind } = walk.beat;
    const title = this.titleOf(kind, walk.place);
    around.announce(say('beatChanged', { title, at: walk.place + 1, n: lesson.beats.length, text }));
  }

  /** The words: what came of a guess, the text, and the options of a question. */
  write() {
    const { walk } = this;
    const { kind, text, options } = walk.beat;
    const focused = document.activeElement?.classList.contains('gle-option')
      ? [...this.text.querySelectorAll('.gle-option')].indexOf(document.activeElement)
      : -1;
    const kindly = element('p', 'gle-kind', this.titleOf(kind, walk.place));
    const words = element('p', 'gle-words', text);
    /** @type {HTMLElement[]} */
    const parts = [kindly, words];
    if (walk.outcome) parts.unshift(outcomeOf(walk.outcome));
    if (options) {
      const chosen = walk.guesses.get(walk.place);
      const revealed = walk.revealed() && !this.presenting;
      parts.push(optionList({ options, chosen, revealed: revealed || this.opened, choose: (option) => this.choose(option) }));
    }
    this.text.replaceChildren(...parts);
    if (focused >= 0) /** @type {HTMLElement | undefined} */ (this.text.querySelectorAll('.gle-option')[focused])?.focus();
  }

  get opened() {
    return this.presenting && this.unveiled === this.walk.place;
  }

  /** Show a hall which option is right, or hide it again. */
  unveil() {
    if (!this.walk.beat.options) return;
    this.unveiled = this.opened ? -1 : this.walk.place;
    this.write();
    this.tellWatchers();
  }

  /** Dots, and what the buttons say. */
  walkway() {
    const { walk, lesson } = this;
    const hash = (/** @type {number} */ place) => writeHash(lesson.id, place, this.presenting);
    this.dots.replaceChildren(...dotsOf(walk, (kind, place) => this.titleOf(kind, place), hash));
    this.back.setAttribute('aria-disabled', String(walk.place === 0));
    const open = walk.beat.options && !walk.guesses.has(walk.place) && !walk.free;
    this.next.setAttribute('aria-disabled', String(Boolean(open)));
    this.next.textContent = this.nextWords();
    this.tellWatchers();
  }

  nextWords() {
    const { walk, around } = this;
    if (walk.place === walk.last) return around.next ? say('nextLesson', { title: around.next.title }) : say('finish');
    return walk.beat.options ? say('reveal') : say('next');
  }

  /** The beat that says what is on the stage: this one, or, for words and questions, the latest that showed something. */
  get source() {
    const { beats } = this.lesson;
    const shows = (/** @type {Beat} */ { runs, grid, figure, kind }) => runs?.length || grid || figure || kind === 'takeaway';
    for (let place = this.walk.place; place >= 0; place -= 1) if (shows(beats[place])) return place;
    return -1;
  }

  setStage() {
    const { source } = this;
    if (source === this.staged) return;
    const before = this.parts.find((part) => part instanceof Screen);
    const from = before instanceof Screen ? { id: before.record.id, place: before.player.place } : null;
    this.parts.forEach((part) => part.destroy());
    this.parts = [];
    this.stage.replaceChildren();
    this.staged = source;
    this.root.dataset.staged = String(source >= 0);
    if (source < 0) return;
    const beat = this.lesson.beats[source];
    for (const id of beat.runs ?? []) this.addScreen(id, beat, from?.id === id ? from.place : 0);
    if (beat.grid) this.addGrid(beat.grid, beat.words ?? {});
    if (beat.figure) this.add(new FigureBox(beat.figure));
    if (beat.kind === 'takeaway') this.stage.append(afterwards(this.lesson, this.around.source));
    this.stage.dataset.screens = String(beat.runs?.length ?? 0);
  }

  /** @param {{ root: HTMLElement, destroy(): void }} part */
  add(part) {
    this.parts.push(part);
    this.stage.append(part.root);
  }

  /**
   * @param {string} id
   * @param {Beat} beat
   * @param {number} from where the film goes on
   */
  addScreen(id, beat, from) {
    const { source } = this.around;
    const showing = { id, run: this.lesson.runs[id], film: source.picture('runs', id), lab: source.lab, stop: beat.stop ?? 'answer' };
    this.add(new Screen({ ...showing, from, curves: !beat.figure && (beat.runs?.length ?? 0) < 2 }));
  }

  /**
   * @param {string} name
   * @param {Record<string, string>} words
   */
  addGrid(name, words) {
    const { source } = this.around;
    this.add(new WhatIf(this.lesson.grids[name], { film: source.picture('grids', name), lab: source.lab, words }));
  }

  /** Play or stop what is on the stage. */
  toggle() {
    for (const part of this.parts) if (part instanceof Screen) part.player.toggle();
  }

  /**
   * Keys to walk with, unless what has the focus uses them itself. Answers whether the key was one of them.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const target = /** @type {Element | null} */ (event.target);
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    if (target?.closest?.('input, select, textarea, .gle-wide') && event.key !== 'Escape') return false;
    if (event.key === ' ' && target?.closest?.('a, button, summary')) return false;
    const option = '1234'.indexOf(event.key);
    if (option >= 0 && this.walk.beat.options?.[option]) this.choose(option);
    else if (['ArrowRight', 'PageDown', 'n', ' '].includes(event.key)) this.step(1);
    else if (['ArrowLeft', 'PageUp', 'p'].includes(event.key)) this.step(-1);
    else if (event.key === 'k') this.toggle();
    else return false;
    event.preventDefault();
    return true;
  }

  tellWatchers() {
    this.watchers.forEach((watch) => watch());
  }

  destroy() {
    this.parts.forEach((part) => part.destroy());
    this.root.remove();
  }
}
