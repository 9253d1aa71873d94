// A lesson on the page: its beats in order, the exhibits beside the text, and dots, buttons and keys to go from beat to beat.
import { element } from '../dom.js';
import { button, dotsOf } from './dots.js';
import { Exhibits } from './exhibits.js';
import { Hall } from './hall.js';
import { keep } from './kept.js';
import { isTaken, nameOf } from './keys.js';
import { optionList, outcomeOf, raisedHands, voteActs } from './marking.js';
import { say } from './phrases.js';
import { titleOf } from './titles.js';
import { Walk, writeHash } from './walk.js';

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
 * @property {(words: string) => void} announce gives a text to screen readers
 * @property {(hash: string) => void} moved the address is to follow
 * @property {{ id: string, title: string } | null} next the lesson after this one
 * @property {Partial<import('./walk.js').Kept>} [kept]
 */

export class LessonView {
  /**
   * @param {LessonData} lesson
   * @param {Surroundings} around
   */
  constructor(lesson, around) {
    this.lesson = lesson;
    this.around = around;
    this.walk = new Walk(lesson.beats, around.kept);
    this.exhibits = new Exhibits(lesson, around.source);
    this.presenting = false;
    this.hall = /** @type {import('./hall.js').Votes} */ (new Hall());
    /** @type {(() => void)[]} called after every change, for the speaker's window */
    this.watchers = [];
    this.root = element('article', 'gle-lesson');
    this.root.dataset.lesson = lesson.id;
    this.head = element('header', 'gle-lesson-head');
    this.dots = element('nav', 'gle-dots');
    this.dots.setAttribute('aria-label', lesson.title);
    this.text = element('div', 'gle-text');
    this.bar = element('footer', 'gle-bar');
    this.back = button('gle-back', say('back'), () => this.step(-1));
    this.hint = element('p', 'gle-hint');
    this.next = button('gle-next', say('next'), () => this.step(1));
    this.lay();
  }

  lay() {
    const { lesson, root } = this;
    const title = element('div', 'gle-lesson-title');
    title.append(element('h1', '', lesson.title), element('p', 'gle-soft', say('minutes', { n: lesson.minutes })));
    this.head.append(title, this.dots);
    const beat = element('div', 'gle-beat');
    beat.append(this.text, this.exhibits.root);
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
    return titleOf(kind, place);
  }

  /**
   * Go to the beat before or after. After the last beat a reader goes to the next lesson; a presentation stays, and a link leads on. A vote
   * of phones is not passed before its answer is shown, unless a clicker turns the beats of a presentation.
   * @param {number} by
   */
  step(by) {
    const { walk } = this;
    if (by > 0 && this.veiled) return this.unveil();
    if (by > 0 && walk.place === walk.last) {
      const { next, moved } = this.around;
      return this.presenting ? undefined : moved(next ? `#${next.id}` : '#');
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
    if (before !== this.walk.place) document.documentElement.scrollTo({ top: 0 }); // a beat is read from its first word
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
    this.stage();
    this.walkway();
    const { text, kind } = walk.beat;
    const title = this.titleOf(kind, walk.place);
    around.announce(say('beatChanged', { title, at: walk.place + 1, n: lesson.beats.length, text }));
  }

  /** What stands beside the words; beside the answer to a question what answers it, if that is the beat after it. */
  stage() {
    const { walk, lesson } = this;
    const after = walk.beat.options && this.revealed && lesson.beats[walk.place + 1]?.kind === 'reveal';
    this.root.dataset.staged = String(this.exhibits.show(walk.place + (after ? 1 : 0)));
  }

  /** The words: what came of a guess, the text, and the options of a question. */
  write() {
    const { walk } = this;
    const { kind, text, options } = walk.beat;
    const focused = [...this.text.querySelectorAll('button')].indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const kindly = element('p', 'gle-kind', this.titleOf(kind, walk.place));
    const words = element('p', 'gle-words', text);
    /** @type {HTMLElement[]} */
    const parts = [kindly, words];
    if (walk.outcome) parts.unshift(outcomeOf(walk.outcome));
    if (this.presenting && walk.place === walk.last) parts.push(...this.wayOn());
    if (options) {
      const chosen = walk.guesses.get(walk.place);
      const { revealed, hall, voting } = this;
      const votes = voting ? hall.votesOf(walk.place) : [];
      const votesWords = (/** @type {number} */ count) => hall.votesWords(count);
      parts.push(optionList({ options, chosen, revealed, votes, votesWords, choose: (option) => this.choose(option) }));
      if (voting) parts.push(...raisedHands(hall.wordsOf(walk.place, revealed)));
      if (voting && !this.presenting) parts.push(voteActs({ revealed, reveal: () => this.unveil(), again: () => this.again() }));
    }
    this.text.replaceChildren(...parts);
    if (focused >= 0) this.text.querySelectorAll('button')[focused]?.focus();
  }

  /** The link to the next lesson, for a presentation, which has no buttons. */
  wayOn() {
    const { next } = this.around;
    if (!next) return [];
    const link = element('a', 'gle-way-on', say('nextLesson', { title: next.title }));
    link.href = writeHash(next.id, 0, true);
    return [link];
  }

  /** Whether a class votes on the questions: it sees the page, or answers on its phones. */
  get voting() {
    return this.presenting || this.hall.counted;
  }

  get opened() {
    return this.voting && this.hall.unveiled === this.walk.place;
  }

  get revealed() {
    return this.voting ? this.opened : this.walk.revealed();
  }

  /** Whether phones vote here and no presentation goes on: then the answer is the next step. */
  get veiled() {
    return this.hall.counted && !this.presenting && this.walk.beat.options !== undefined && !this.opened;
  }

  /** Show a hall which option is right, or hide it again. */
  unveil() {
    if (this.walk.beat.options) this.poll(() => (this.hall.unveiled = this.opened ? -1 : this.walk.place));
  }

  /** Hide the answer, and let the class vote on the question once more. */
  again() {
    const { walk, hall } = this;
    if (!walk.beat.options) return;
    walk.guesses.delete(walk.place);
    this.poll(() => hall.again(walk.place));
  }

  /**
   * Something that a hall says to the question here.
   * @param {() => void} change
   */
  poll(change) {
    change();
    this.write();
    this.stage();
    this.offerNext();
    this.tellWatchers();
  }

  /** Dots, and what the buttons say. */
  walkway() {
    const { walk, lesson } = this;
    const hash = (/** @type {number} */ place) => writeHash(lesson.id, place, this.presenting);
    this.dots.replaceChildren(...dotsOf(walk, (kind, place) => this.titleOf(kind, place), hash));
    this.back.setAttribute('aria-disabled', String(walk.place === 0));
    this.offerNext();
    this.tellWatchers();
  }

  offerNext() {
    const { walk } = this;
    const open = walk.beat.options && !walk.guesses.has(walk.place) && !walk.free;
    this.next.setAttribute('aria-disabled', String(Boolean(open)));
    this.next.textContent = this.nextWords();
  }

  nextWords() {
    const { walk, around } = this;
    if (this.veiled) return say('showAnswer');
    if (walk.place === walk.last) return around.next ? say('nextLesson', { title: around.next.title }) : say('finish');
    return walk.beat.options && !this.voting ? say('reveal') : say('next');
  }

  /**
   * Keys to walk with, unless what has the focus uses them itself. Answers whether the key was one of them.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (isTaken(event, this.presenting)) return false;
    const name = nameOf(event);
    if (name === 'choose' && this.walk.beat.options?.[Number(event.key) - 1]) this.choose(Number(event.key) - 1);
    else if (name === 'next') this.step(1);
    else if (name === 'back') this.step(-1);
    else if (name === 'play') this.exhibits.toggle();
    else return false;
    event.preventDefault();
    return true;
  }

  tellWatchers() {
    this.watchers.forEach((watch) => watch());
  }

  destroy() {
    this.exhibits.destroy();
    this.root.remove();
  }
}
