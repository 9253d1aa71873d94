// A lesson on a phone: the page follows the class from beat to beat, and a student may leaf back and return.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { Exhibits } from '../reader/exhibits.js';
import { say } from '../reader/phrases.js';
import { titleOf } from '../reader/titles.js';
import { countWords, outcome, questionAt, questionParts } from './phone_question.js';
import { PhoneTry } from './phone_try.js';
import { tell } from './room_phrases.js';

export class PhoneLesson {
  /**
   * @param {import('./phone_room.js').PhoneRoom} room with its state and its lesson
   * @param {import('./room_state.js').RoomLesson} lesson
   * @param {{ source: import('../reader/source.js').Source, announce: (words: string) => void, greeting: string }} around `greeting`
   *   stands above the first beat that is shown, and is announced with it; empty: none
   */
  constructor(room, lesson, { source, announce, greeting }) {
    this.room = room;
    this.lesson = lesson;
    this.announce = announce;
    this.place = -1; // what is shown, counted from 0
    this.wanted = room.kept.place; // the place that the student leafed to; null: that of the class
    this.drawn = ''; // what the words were written from
    this.told = ''; // the question whose answer was announced
    this.sentence = ''; // of the server, to what was done last
    this.exhibits = new Exhibits(lesson, source);
    /** @type {PhoneTry | null} */
    this.trying = null;
    this.exhibits.open((whatIf, place) => (this.trying = new PhoneTry(whatIf, place + 1, room)));
    this.root = element('article', 'gle-lesson');
    this.at = element('p', 'gle-soft');
    this.greeting = element('p', 'gle-greeting', greeting);
    this.text = element('div', 'gle-text');
    this.text.tabIndex = -1;
    this.count = element('p', 'gle-raised');
    this.hint = element('p', 'gle-hint');
    this.hint.setAttribute('role', 'status');
    this.back = button('gle-back', say('back'), () => this.go(this.place - 1));
    this.next = button('gle-back', say('next'), () => this.go(this.place + 1));
    this.follow = button('gle-next', tell('toClass'), () => this.go(this.there));
    this.lay();
  }

  lay() {
    const title = element('header', 'gle-lesson-head');
    title.append(element('h1', '', this.lesson.title), this.at);
    const beat = element('div', 'gle-beat');
    beat.append(this.text, this.exhibits.root);
    const bar = element('footer', 'gle-bar');
    bar.append(this.hint, this.back, this.next, this.follow);
    this.root.append(title, this.greeting, beat, bar);
  }

  /** Where the class is, counted from 0, as far as the lesson here goes. */
  get there() {
    return Math.min(this.room.state?.beat ?? 1, this.lesson.beats.length) - 1;
  }

  /**
   * Leaf to a place, at most to that of the class; there the page follows the class again.
   * @param {number} place
   */
  go(place) {
    const { there, room } = this;
    const to = Math.max(0, place);
    this.wanted = to === there ? null : Math.min(to, Math.max(there, this.place));
    room.kept.place = this.wanted;
    room.keep();
    this.update();
  }

  /** The state or the lesson is another. */
  update() {
    const { room } = this;
    if (room.lesson) this.lesson = this.exhibits.lesson = room.lesson;
    const last = this.lesson.beats.length - 1;
    const fresh = (room.state?.beat ?? 1) <= last + 1; // else the lesson that goes so far comes next
    const place = this.wanted === null ? (fresh || this.place < 0 ? this.there : this.place) : Math.min(this.wanted, last);
    this.show(place);
    this.trying?.update();
    this.tellBar();
    const words = countWords(room, this.place);
    if (this.count.textContent !== words) this.count.textContent = words;
  }

  /** @param {number} place */
  show(place) {
    const { lesson, root } = this;
    const question = questionAt(this.room, place);
    const before = questionAt(this.room, place - 1);
    const drawn = JSON.stringify([place, question, before]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const moved = place !== this.place;
    this.place = place;
    const beat = lesson.beats[place];
    root.dataset.kind = beat.kind;
    root.dataset.place = String(place + 1);
    this.write(question, before);
    const after = question?.revealed && lesson.beats[place + 1]?.kind === 'reveal';
    if (moved) this.trying = null;
    root.dataset.staged = String(this.exhibits.show(place + (after ? 1 : 0)));
    if (moved) this.arrive(beat);
    this.tellAnswer(question);
  }

  /**
   * The words of the beat, and its question. What has the focus keeps it.
   * @param {import('./phone_question.js').Question | null} question
   * @param {import('./phone_question.js').Question | null} before the question of the beat before
   */
  write(question, before) {
    const { kind, text } = this.lesson.beats[this.place];
    const within = this.text.contains(document.activeElement);
    const focused = [...this.text.querySelectorAll('.gle-option')].indexOf(/** @type {Element} */ (document.activeElement));
    const words = [element('p', 'gle-kind', titleOf(kind, this.place)), element('p', 'gle-words', text)];
    const parts = question ? questionParts(question, (option) => this.choose(option)) : [];
    this.text.replaceChildren(...outcome(question ?? before), ...words, ...parts, ...(question ? [this.count] : []));
    const option = /** @type {HTMLElement | undefined} */ (this.text.querySelectorAll('.gle-option')[focused]);
    if (within) (option ?? this.text).focus({ preventScroll: true });
  }

  /** @param {number} option */
  choose(option) {
    this.sentence = '';
    this.room.vote(option);
  }

  /**
   * A beat is read from its first word, and announced once.
   * @param {import('../reader/lesson.js').Beat} beat
   */
  arrive({ kind, text }) {
    const { place, lesson, greeting } = this;
    const first = !this.at.textContent;
    if (!first) greeting.textContent = '';
    this.sentence = '';
    this.told = '';
    this.at.textContent = say('beatsOf', { at: place + 1, n: lesson.all });
    document.documentElement.scrollTo({ top: 0 });
    const words = say('beatChanged', { title: titleOf(kind, place), at: place + 1, n: lesson.all, text });
    this.announce([greeting.textContent, words].filter(Boolean).join(' '));
  }

  /**
   * Announce once that the answer is shown, and once that the class votes again.
   * @param {import('./phone_question.js').Question | null} question
   */
  tellAnswer(question) {
    if (!question) return;
    const told = question.revealed ? 'revealed' : question.second ? 'voteAgain' : '';
    if (told && told !== this.told) {
      if (question.revealed) document.documentElement.scrollTo({ top: 0 }); // what came of the guess stands first
      const head = this.text.querySelector('.gle-outcome-head')?.textContent ?? '';
      this.announce([tell(told), head].filter(Boolean).join(' '));
    }
    this.told = told;
  }

  /**
   * A sentence of the server, until something else is done.
   * @param {string} sentence
   */
  refuse(sentence) {
    this.sentence = sentence;
    this.tellBar();
  }

  /** The bar at the lower edge: where the class is, how the room is, and the ways back and forth. */
  tellBar() {
    const { room, place, there } = this;
    const away = place !== there;
    const words = room.closed
      ? tell('closed')
      : room.resting
        ? tell('resting')
        : this.sentence || (away ? tell('classAt', { at: room.state?.beat ?? 1 }) : '');
    if (this.hint.textContent !== words) this.hint.textContent = words;
    const focused = document.activeElement;
    this.back.hidden = place <= 0;
    this.next.hidden = place >= there;
    this.follow.hidden = !away || room.closed;
    const left = /** @type {HTMLElement[]} */ ([this.back, this.next, this.follow]).find((one) => one === focused && one.hidden);
    if (left) this.text.focus({ preventScroll: true });
  }

  destroy() {
    this.exhibits.destroy();
    this.root.remove();
  }
}
