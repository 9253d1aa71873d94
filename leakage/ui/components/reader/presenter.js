// In front of a hall: one beat fills the screen; a clicker's keys walk, and a window for the speaker tells what the hall does not see.
import { element } from '../dom.js';
import { say } from './phrases.js';
import { SpeakerWindow } from './speaker.js';
import { writeHash } from './walk.js';

export class Presenter {
  /** @param {import('./lesson.js').LessonView} view */
  constructor(view) {
    this.view = view;
    /** @type {Map<number, number>} of the hall, or, while it is asked, the reader's own */
    this.guesses = new Map();
    this.black = element('div', 'gle-black');
    this.black.hidden = true;
    document.body.append(this.black);
    this.speaker = new SpeakerWindow(view, (event) => this.key(event) || view.key(event));
    this.lay();
  }

  lay() {
    const row = element('div', 'gle-present-row');
    const press = (/** @type {string} */ className, /** @type {string} */ words, /** @type {() => void} */ act) => {
      const made = element('button', className, words);
      made.type = 'button';
      made.addEventListener('click', act);
      return made;
    };
    const present = press('gle-quiet gle-present', say('present'), () => this.set(true, true));
    present.title = say('presentHelp');
    row.append(
      present,
      press('gle-quiet gle-only-present', say('speaker'), () => this.speaker.open()),
      press('gle-quiet gle-only-present', say('leave'), () => this.set(false, true)),
    );
    this.view.head.append(row);
  }

  get on() {
    return this.view.presenting;
  }

  /**
   * Begin or end to present. `told`: by a press, so that the address is to follow and the screen may be filled.
   * @param {boolean} on
   * @param {boolean} [pressed]
   */
  set(on, pressed = false) {
    if (on === this.on) return;
    const { view } = this;
    view.presenting = on;
    view.walk.free = on;
    [view.walk.guesses, this.guesses] = [this.guesses, view.walk.guesses]; // a hall's guesses are not the reader's
    document.documentElement.classList.toggle('gle-presenting', on);
    this.black.hidden = true;
    if (!on) this.speaker.close();
    if (pressed && on) document.documentElement.requestFullscreen?.().catch(() => {}); // some browsers refuse: the window is filled then
    if (!on && document.fullscreenElement) document.exitFullscreen().catch(() => {});
    if (!view.text.childElementCount) return;
    if (pressed) view.around.moved(writeHash(view.lesson.id, view.place, on));
    view.go(view.place); // outside, an open question holds again
  }

  /**
   * Keys that only a presentation has, and the one that begins it.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const { key } = event;
    const target = /** @type {Element | null} */ (event.target);
    if (event.altKey || event.ctrlKey || event.metaKey || target?.closest?.('input, select, textarea')) return false;
    const begins = key === 'f' || (key === 'F5' && this.on); // clickers send F5; a reader's F5 reloads
    if (begins) this.set(!this.on || key === 'F5', true);
    else if (!this.on) return false;
    else if (key === 'b' || key === '.') this.black.hidden = !this.black.hidden;
    else if (key === 's') this.speaker.open();
    else if (key === 'r') this.view.unveil();
    else if (key === 'Escape') this.set(false, true);
    else return false;
    event.preventDefault();
    return true;
  }

  destroy() {
    document.documentElement.classList.remove('gle-presenting');
    this.speaker.close();
    this.black.remove();
  }
}
