// Presentation to a class: a beat fills the screen, a clicker's keys go from beat to beat, and a window for the speaker shows notes.
import { element } from '../dom.js';
import { RoomHost } from '../room/room_host.js';
import { Awake } from './awake.js';
import { button } from './dots.js';
import { isTaken, nameOf, optionOf } from './keys.js';
import { beatList, keyList, largeAddress, Panel } from './panel.js';
import { say } from './phrases.js';
import { RestingPointer } from './pointer.js';
import { SpeakerWindow } from './speaker.js';
import { writeHash } from './walk.js';

const CUE = 3000; // milliseconds
const OPEN_ROOM = ['reveal', 'again', 'room']; // keys that work outside a presentation, too, while a room is open

/** Whether the page fills the screen, by its own wish or by the browser's key for it. */
const isFilled = () => Boolean(document.fullscreenElement) || matchMedia('(display-mode: fullscreen)').matches;

export class Presenter {
  /**
   * @param {import('./lesson.js').LessonView} view
   * @param {string | null} [rooms] where a class may follow on its phones: the prefix of the server's addresses
   */
  constructor(view, rooms = null) {
    this.view = view;
    this.awake = new Awake();
    this.pointer = new RestingPointer();
    /** @type {Map<number, number>} of the hall, or, while it is asked, the reader's own */
    this.guesses = new Map();
    this.black = element('div', 'gle-black');
    this.black.hidden = true;
    this.cue = element('p', 'gle-cue');
    this.cue.hidden = true;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.cued = undefined;
    document.body.append(this.black, this.cue);
    this.panel = new Panel();
    this.host = rooms === null ? null : new RoomHost(view, this, rooms);
    /** @type {Record<string, () => void>} what the keys do that walk no further */
    this.acts = {
      reveal: () => view.unveil(),
      again: () => view.again(),
      black: () => (this.black.hidden = !this.black.hidden),
      speaker: () => this.speaker.open(),
      jump: () => this.panel.show('jump', say('keyJump'), [beatList(view, (place) => this.jump(place))]),
      address: () => this.panel.show('address', say('keyAddress'), largeAddress(this.address)),
      help: () => this.panel.show('help', say('keys'), [keyList(this.acts)]),
      leave: () => this.set(false, true),
    };
    if (this.host) this.acts.room = () => void this.host?.show();
    this.speaker = new SpeakerWindow(view, this);
    this.lay();
  }

  lay() {
    const row = element('div', 'gle-present-row');
    const present = button('gle-quiet gle-present', say('present'), () => this.set(true, true));
    present.title = say('presentHelp');
    row.append(
      present,
      ...(this.host ? [this.host.button, this.host.offer] : []),
      button('gle-quiet gle-only-present', say('speaker'), () => this.speaker.open()),
      button('gle-quiet gle-only-present', say('leave'), () => this.set(false, true)),
    );
    this.view.head.append(row);
  }

  get on() {
    return this.view.presenting;
  }

  /** Where others find this lesson, from its beginning. */
  get address() {
    return new URL(`#${this.view.lesson.id}`, location.href);
  }

  /**
   * Begin or end a presentation. `pressed`: the user asked for it, so the address follows and the page may fill the screen.
   * @param {boolean} on
   * @param {boolean} [pressed]
   */
  set(on, pressed = false) {
    if (on === this.on) return;
    const { view } = this;
    view.presenting = on;
    view.walk.free = on || Boolean(this.host?.room);
    this.awake.set(on);
    this.pointer.set(on);
    [view.walk.guesses, this.guesses] = [this.guesses, view.walk.guesses]; // a hall's guesses are not the reader's
    document.documentElement.classList.toggle('gle-presenting', on);
    this.black.hidden = true;
    this.hint(on);
    this.panel.close();
    if (!on) this.speaker.close();
    if (pressed && on) this.fill();
    if (!on && document.fullscreenElement) document.exitFullscreen().catch(() => {});
    if (!view.text.childElementCount) return;
    if (pressed) view.around.moved(writeHash(view.lesson.id, view.place, on));
    view.go(view.place); // outside, an open question holds again
  }

  /**
   * What the first keys do, for a moment.
   * @param {boolean} on
   */
  hint(on) {
    clearTimeout(this.cued);
    this.cue.hidden = !on;
    this.cue.textContent = say(this.host?.room ? 'cueRoom' : 'cue');
    if (on) this.cued = setTimeout(() => (this.cue.hidden = true), CUE);
  }

  fill() {
    document.documentElement.requestFullscreen?.().catch(() => {}); // some browsers refuse: the window is filled then
  }

  /** @param {number} place */
  jump(place) {
    this.panel.close();
    this.view.go(place);
  }

  /**
   * One more hand.
   * @param {number} option
   */
  raise(option) {
    const { walk, hall } = this.view;
    const { options = [] } = walk.beat;
    if (option < options.length) this.view.poll(() => hall.raise(walk.place, option, options.length));
  }

  /**
   * Keys that only a presentation has, and those that begin it or tell of it.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (this.panel.root.open) return this.keyOver(event);
    const name = nameOf(event);
    if (isTaken(event, this.on)) return false;
    if (name === 'fill' && event.key === 'F5') {
      if (!this.on) return false; // a reader's F5 reloads; clickers send it to begin
      this.fill();
    } else if (name === 'fill' && this.on && !isFilled()) this.fill();
    else if (name === 'fill') this.set(!this.on, true);
    else if (name === 'help') this.acts.help();
    else if (!this.on && !(this.host?.room && OPEN_ROOM.includes(name))) return false;
    else if (name === 'raise') this.raise(optionOf(event));
    else if (this.acts[name]) this.acts[name]();
    else return false;
    event.preventDefault();
    return true;
  }

  /**
   * Keys while a dialog is open: those that close it, a clicker's, and digits where there is a beat to choose. All others are its own.
   * @param {KeyboardEvent} event
   */
  keyOver(event) {
    const name = nameOf(event);
    const beat = this.panel.shows === 'jump' ? Number(event.key) - 1 : -1;
    if (name === 'leave' || name === this.panel.shows) this.panel.close();
    else if (beat >= 0 && beat < this.view.lesson.beats.length) this.jump(beat);
    else if (event.key === 'PageDown' || event.key === 'PageUp') {
      this.panel.close();
      this.view.key(event);
    } else return true;
    event.preventDefault();
    return true;
  }

  destroy() {
    document.documentElement.classList.remove('gle-presenting');
    this.awake.set(false);
    this.pointer.set(false);
    this.host?.destroy();
    this.speaker.close();
    this.hint(false);
    this.black.remove();
    this.cue.remove();
    this.panel.destroy();
  }
}
