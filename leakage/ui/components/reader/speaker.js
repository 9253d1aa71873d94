// The speaker's window: a blank child that the page itself draws into, so that both show the same without messages, also from a folder.
import { element } from '../dom.js';
import { say } from './phrases.js';
import { letter } from './walk.js';

const STYLE = `:root { color-scheme: dark; } body { margin: 0; padding: 24px; font: 20px/1.4 system-ui, sans-serif; background: #0d1117; color: #e3e9f0; }
h1 { font-size: 20px; margin: 0 0 8px; } h2 { font-size: 16px; margin: 20px 0 4px; color: #9fb0c3; } p { margin: 0; max-width: 70ch; }
.clock { font-size: 44px; font-variant-numeric: tabular-nums; } .row { display: flex; gap: 24px; align-items: baseline; flex-wrap: wrap; }
button { font: inherit; padding: 10px 18px; border: 1px solid #33404f; border-radius: 8px; background: #18202a; color: inherit; cursor: pointer; }`;

const NAME = 'gle-speaker';
const SIZE = 'width=900,height=700';

/** The window of that name, or a new one. A page from a disk is, once reloaded, a stranger to the window that it opened: another comes. */
function findWindow() {
  const found = open('', NAME, SIZE);
  try {
    if (found?.document) return found;
  } catch {
    found?.close();
  }
  const fresh = open('', '_blank', SIZE);
  if (fresh) fresh.name = NAME;
  return fresh;
}

export class SpeakerWindow {
  /**
   * @param {import('./lesson.js').LessonView} view
   * @param {(event: KeyboardEvent) => void} key
   */
  constructor(view, key) {
    this.view = view;
    this.key = key;
    /** @type {Window | null} */
    this.window = null;
    this.began = 0;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.timer = undefined;
    view.watchers.push(() => this.draw());
  }

  /** Open it, or find it again by its name after a reload. */
  open() {
    this.window = findWindow();
    if (!this.window) return;
    const { document: page } = this.window;
    page.title = say('speaker');
    const style = page.createElement('style');
    style.textContent = STYLE;
    page.head.replaceChildren(style);
    this.window.onkeydown = (event) => this.key(event);
    this.began ||= Date.now();
    clearInterval(this.timer);
    this.timer = setInterval(() => this.tick(), 1000);
    this.draw();
  }

  draw() {
    if (!this.window || this.window.closed) return;
    const { lesson, walk } = this.view;
    const { beats } = lesson;
    const next = beats[walk.place + 1];
    const right = walk.beat.options?.findIndex((option) => option.right) ?? -1;
    const row = element('div', 'row');
    this.clock = element('span', 'clock');
    this.pace = element('span', '');
    row.append(this.clock, this.pace);
    const buttons = element('div', 'row');
    const press = (/** @type {string} */ words, /** @type {() => void} */ act) => {
      const made = element('button', '', words);
      made.addEventListener('click', act);
      buttons.append(made);
    };
    press(`← ${say('back')}`, () => this.view.step(-1));
    press(`${say('next')} →`, () => this.view.step(1));
    press(`r ${say('answer')}`, () => this.view.unveil());
    press(`k ${say('play')}`, () => this.view.toggle());
    const parts = [
      element('h1', '', `${lesson.title}, ${say('beatsOf', { at: walk.place + 1, n: beats.length })}`),
      element('p', '', walk.beat.text),
      row,
      buttons,
      element('h2', '', say('notes')),
      element('p', '', lesson.notes),
    ];
    if (right >= 0)
      parts.push(element('h2', '', say('rightAnswer')), element('p', '', `${letter(right)}: ${walk.beat.options?.[right].text}`));
    if (next) parts.push(element('h2', '', say('next')), element('p', '', next.text));
    this.window.document.body.replaceChildren(...parts);
    this.tick();
  }

  /** The time, and whether the lesson is where its minutes say it should be. */
  tick() {
    if (!this.clock || !this.pace) return;
    const { lesson, walk } = this.view;
    const minutes = (Date.now() - this.began) / 60_000;
    const due = (lesson.minutes * walk.place) / lesson.beats.length;
    this.clock.textContent = `${Math.floor(minutes)}:${String(Math.floor((minutes * 60) % 60)).padStart(2, '0')}`;
    this.pace.textContent = say('pace', { due: Math.round(due), all: lesson.minutes });
  }

  close() {
    clearInterval(this.timer);
    this.window?.close();
    this.window = null;
  }
}
