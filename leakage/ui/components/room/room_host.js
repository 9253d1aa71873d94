// A room on the teacher's page: the button that opens it or what is offered of an open one, its dialog, the line for late comers, and the
// lesson that it leads and counts for.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { Hall } from '../reader/hall.js';
import { ClassRoom, sentenceOf } from './class_room.js';
import { ClassTries } from './class_tries.js';
import { word } from './hall_phrases.js';
import { RoomApi } from './room_api.js';
import { addressOf, RoomDialog } from './room_dialog.js';
import { roomOffer } from './room_offer.js';
import { isLed, keepRoom, readRoom, takeLead, wasLed, withAddresses } from './room_store.js';

const NOTE = 15_000; // milliseconds that a note stands

export class RoomHost {
  /**
   * @param {import('../reader/lesson.js').LessonView} view
   * @param {import('../reader/presenter.js').Presenter} presenter
   * @param {string} base the prefix of all addresses
   */
  constructor(view, presenter, base) {
    this.view = view;
    this.presenter = presenter;
    this.base = base;
    this.api = new RoomApi(base);
    /** @type {ClassRoom | null} */
    this.room = null;
    /** @type {RoomDialog | null} */
    this.dialog = null;
    /** @type {ClassTries | null} */
    this.tries = null;
    this.opening = false;
    this.gone = false;
    this.shown = '';
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.button = button('gle-quiet gle-open-room', word('open'), () => this.show());
    this.line = element('p', 'gle-room-line');
    this.note = element('p', 'gle-room-note');
    this.note.setAttribute('role', 'status');
    this.waiting = element('p', 'gle-room-waiting');
    this.offer = element('span', 'gle-room-offers');
    this.line.hidden = true;
    view.head.append(this.line, this.note, this.waiting);
    view.watchers.push(() => this.follow());
    this.stored = () => (this.room && !isLed(this.room.kept) ? this.room.yield() : this.name());
    this.leaving = (/** @type {Event} */ event) => this.room?.phones && event.preventDefault();
    window.addEventListener('storage', this.stored);
    this.online = () => void this.refresh();
    window.addEventListener('beforeunload', this.leaving);
    window.addEventListener('online', this.online);
    const kept = readRoom();
    if (kept?.lesson === view.lesson.id && wasLed(kept)) this.begin(kept);
    this.name();
  }

  /** The open room of this browser that this page does not lead. */
  get other() {
    return this.room ? null : readRoom();
  }

  name() {
    const { room, other } = this;
    this.button.textContent = room ? word('show', { code: room.kept.code }) : word('open');
    this.button.title = word('openHelp');
    this.button.hidden = other !== null;
    this.offer.replaceChildren(...(other ? [this.offerOf(other)] : []));
    this.waiting.textContent = other ? word('waiting', { code: other.code }) : '';
  }

  /** @param {import('./room_store.js').Kept} other */
  offerOf(other) {
    return roomOffer(other, { lesson: this.view.lesson.id, take: () => this.take(other), end: () => this.endOther(other) });
  }

  /** The dialog; without a room it opens one, or asks what is to become of the one that is open. */
  async show() {
    const { other } = this;
    if (other) {
      const words = word(other.lesson === this.view.lesson.id ? 'leadHereHelp' : 'takeHereHelp', { code: other.code });
      return this.showPanel(word('title', { code: other.code }), element('p', '', words), this.offerOf(other));
    }
    if (this.room) void this.refresh();
    else if (!(await this.open())) return;
    this.showRoom();
  }

  showRoom() {
    const { room, presenter, base } = this;
    if (!room) return;
    this.dialog?.destroy();
    this.dialog = new RoomDialog(room, { base, present: presenter.on ? null : () => presenter.set(true, true) });
    this.showPanel(word('title', { code: room.kept.code }), this.dialog.root);
    this.dialog.focus();
  }

  /** Learn the addresses of the room again: the computer may be in another network now, such as a phone's hotspot. */
  async refresh() {
    const { room } = this;
    const before = room?.at;
    await room?.openAgain();
    if (this.room === room && room?.at !== before && this.isShown) this.showRoom();
  }

  get isShown() {
    return Boolean(this.dialog?.root.isConnected && this.presenter.panel.root.open);
  }

  /**
   * @param {string} title
   * @param {HTMLElement[]} parts
   */
  showPanel(title, ...parts) {
    this.presenter.panel.show('room', title, parts, word('back'));
  }

  /** Answers whether there is a room now. */
  async open() {
    if (this.opening) return false;
    this.opening = true;
    this.showPanel(word('open'), element('p', '', word('opening')));
    const { lesson, place } = this.view;
    try {
      const opened = await this.api.open({ lesson: lesson.id, beat: place + 1 });
      const kept = { ...opened, lesson: lesson.id, since: Date.now() };
      keepRoom(kept);
      if (!this.gone) this.begin(kept);
    } catch (error) {
      if (!this.gone) this.showPanel(word('open'), alarm(sentenceOf(error)));
    }
    this.opening = false;
    return this.room !== null;
  }

  /**
   * Lead an open room from this page; from another lesson its class comes to this one.
   * @param {import('./room_store.js').Kept} other
   */
  async take(other) {
    const { lesson, place } = this.view;
    this.presenter.panel.close();
    if (other.lesson === lesson.id) return this.begin(other);
    const { code, key, students, since, addresses } = other;
    const opened = await this.ask(() => this.api.open({ lesson: lesson.id, beat: place + 1, code, key, students }));
    if (!opened || this.gone || this.room) return;
    this.begin(withAddresses({ ...opened, addresses, since, students, lesson: lesson.id }, opened));
    this.tell(word('taken', { code }));
  }

  /** @param {import('./room_store.js').Kept} other */
  async endOther({ code, key }) {
    this.presenter.panel.close();
    if (!(await this.ask(() => this.api.lead(code, { key, act: 'close' }).then(() => true)))) return;
    keepRoom(null);
    this.name();
    this.tell(word('ended'));
  }

  /**
   * Ask the server about the room that this page does not lead. A room that the server refuses is forgotten.
   * @template Answer
   * @param {() => Promise<Answer>} request
   * @returns {Promise<Answer | null>}
   */
  async ask(request) {
    try {
      return await request();
    } catch (error) {
      const { status } = /** @type {import('./room_api.js').RoomError} */ (error);
      if (status >= 400 && status < 500) keepRoom(null);
      this.name();
      this.tell(sentenceOf(error));
      return null;
    }
  }

  /** @param {import('./room_store.js').Kept} kept */
  begin(kept) {
    const { view } = this;
    const room = new ClassRoom(this.api, takeLead(kept), view.place, {
      changed: () => this.update(),
      went: (place) => view.go(place),
      told: (words) => this.tell(words),
      ended: (words, stays) => this.end(words, stays),
    });
    this.room = room;
    this.tell('');
    view.hall = room;
    view.walk.free = true; // the teacher may pass an open question
    view.exhibits.open((whatIf, place) => (this.tries = new ClassTries(whatIf, place, room)));
    this.update();
    this.name();
  }

  /** The class goes where the page goes; called after the page has drawn itself. */
  follow() {
    if (this.room?.lead(this.view.place)) this.update();
    else this.shown = this.votes;
  }

  /** All that the page shows of the votes here, as a text. */
  get votes() {
    const { room, view } = this;
    if (!room) return '';
    const revealed = room.unveiled === view.place;
    return JSON.stringify([view.place, revealed, room.votesOf(view.place), room.wordsOf(view.place, revealed)]);
  }

  /** What the room knows now. */
  update() {
    const { room, view } = this;
    if (!room) return;
    this.dialog?.update();
    this.tries?.update();
    this.drawLine();
    const changed = this.votes !== this.shown;
    this.shown = this.votes;
    if (changed && view.text.childElementCount && view.walk.beat.options) view.poll(() => {});
  }

  /** Address, code and phones in a corner, for those who come late. */
  drawLine() {
    const { room } = this;
    this.line.hidden = !room;
    if (!room) return;
    const locked = room.state?.locked;
    const address = room.at && addressOf(room.at, this.base).replace(/^https?:\/\//, '');
    const code = element('span', '', locked ? room.crowd : ` · ${room.crowd}`);
    if (!locked) code.prepend(element('b', '', room.kept.code));
    this.line.replaceChildren(element('span', '', locked ? word('locked') : address), ' ', code);
    if (room.silent) this.tell(word('gone'), 0);
    else if (this.note.textContent === word('gone')) this.tell('');
  }

  /**
   * A note in the line, and in the dialog; `for` 0: until another one comes.
   * @param {string} words
   * @param {number} [milliseconds]
   */
  tell(words, milliseconds = NOTE) {
    clearTimeout(this.timer);
    if (this.note.textContent !== words) this.note.textContent = words;
    this.dialog?.say(words);
    if (words && milliseconds) this.timer = setTimeout(() => this.tell(''), milliseconds);
  }

  /**
   * @param {string} words
   * @param {boolean} [stays]
   */
  end(words, stays = false) {
    const { view, presenter } = this;
    const open = this.isShown;
    this.leave();
    this.tell(words, stays ? 0 : NOTE);
    view.hall = new Hall();
    view.walk.free = presenter.on;
    view.exhibits.open(null);
    this.name();
    if (open) this.showPanel(word('open'), element('p', '', words));
    view.around.announce(words);
    if (view.text.childElementCount) view.poll(() => {});
  }

  /** The page goes; the room stays open. */
  leave() {
    clearTimeout(this.timer);
    this.dialog?.destroy();
    this.room?.destroy();
    this.dialog = this.tries = this.room = null;
    this.line.hidden = true;
  }

  destroy() {
    this.gone = true;
    window.removeEventListener('storage', this.stored);
    window.removeEventListener('beforeunload', this.leaving);
    window.removeEventListener('online', this.online);
    this.leave();
    this.line.remove();
    this.note.remove();
    this.waiting.remove();
  }
}

/** @param {string} words */
function alarm(words) {
  const note = element('p', 'gle-note', words);
  note.setAttribute('role', 'alert');
  return note;
}
