// The page of a phone: the code of a room to type, or the room itself. Nothing is remembered beyond the tab.
import { element } from '../dom.js';
import { say } from '../reader/phrases.js';
import { sourceOf } from '../reader/source.js';
import { codeIn, JoinPage } from './join.js';
import { PhoneLesson } from './phone_lesson.js';
import { PhoneRoom } from './phone_room.js';
import { RoomApi, RoomError } from './room_api.js';
import { mayReturn, readRoom, roomLeft } from './room_kept.js';
import { tell } from './room_phrases.js';

/**
 * @typedef {object} About what the page says of itself
 * @property {string} base what stands before every address
 * @property {string} data where the pictures of the lessons are
 * @property {string} own the address of the script that attacks the student's own picture
 * @property {string} code of the room; empty where the address has none
 */

export class Phone {
  /**
   * @param {HTMLElement} host
   * @param {HTMLElement} status holds texts for screen readers
   * @param {About} about
   */
  constructor(host, status, about) {
    this.host = host;
    this.status = status;
    this.about = about;
    this.api = new RoomApi(about.base);
    this.code = ''; // of the room that is entered
    /** @type {PhoneRoom | null} */
    this.room = null;
    /** @type {PhoneLesson | null} */
    this.view = null;
    /** @type {'joined' | 'nextLesson' | ''} what is said above a lesson when it comes */
    this.news = '';
    addEventListener('popstate', () => this.start(codeIn(/\/j\/.*$/.exec(location.pathname)?.[0] ?? '')));
  }

  /** @param {string} code empty: it is to be typed */
  start(code) {
    this.close();
    if (!code) return this.showJoin({ left: roomLeft() });
    this.note(tell('joining'));
    this.enter(code);
  }

  /** @param {import('./join.js').Joining} how */
  showJoin(how) {
    this.code = '';
    const page = new JoinPage(how, (typed) => this.enter(typed));
    this.host.replaceChildren(page.root);
    page.start.focus({ preventScroll: true });
  }

  /**
   * Ask whether this phone may join, and join.
   * @param {string} code
   */
  async enter(code) {
    this.code = code;
    const kept = readRoom(code);
    try {
      await this.api.me(code, { slot: kept.slot });
    } catch (error) {
      const { status, message } = /** @type {RoomError} */ (error);
      const returns = [0, 404].includes(status) && mayReturn(kept);
      if (this.code !== code) return;
      if (!returns) return this.showJoin(status === 404 && (kept.ended || kept.heard) ? { ended: true } : { code, sentence: message });
    }
    if (this.code !== code) return; // the page went on meanwhile
    const address = `${this.about.base}/j/${code}`;
    if (location.pathname !== address) history.pushState(null, '', address);
    this.note(say('loading'));
    this.news = kept.heard ? '' : 'joined';
    this.room = new PhoneRoom(code, this.api, kept, {
      changed: () => this.update(),
      refused: (sentence) => this.view?.refuse(sentence),
      gone: (sentence) => (this.view ? this.view.refuse(sentence) : this.showJoin({ code, sentence })),
    });
  }

  update() {
    const { room } = this;
    if (!room) return;
    if (this.view && room.state && this.view.lesson.id !== room.state.id) {
      this.drop();
      this.news = 'nextLesson';
    }
    if (!this.view && room.state && room.lesson) this.open(room, room.lesson);
    if (this.view) this.view.update();
    else this.note(room.closed ? tell('closed') : room.resting ? tell('resting') : say('loading'));
  }

  /** @param {string} words that stand where the lesson will be */
  note(words) {
    this.host.replaceChildren(element('p', 'gle-note', words));
  }

  /**
   * @param {PhoneRoom} room
   * @param {import('./room_state.js').RoomLesson} lesson
   */
  open(room, lesson) {
    const source = { ...sourceOf({ ...this.about, lessons: [] }), lab: (/** @type {unknown} */ _, words = '') => element('a', '', words) };
    const announce = (/** @type {string} */ words) => (this.status.textContent = words);
    const greeting = this.news && tell(this.news, { title: lesson.title });
    this.view = new PhoneLesson(room, lesson, { source, announce, greeting });
    document.title = tell('pageTitle', { title: lesson.title, code: room.code });
    this.host.replaceChildren(this.view.root);
  }

  drop() {
    this.view?.destroy();
    this.view = null;
  }

  close() {
    this.room?.destroy();
    this.drop();
    this.room = null;
  }
}
