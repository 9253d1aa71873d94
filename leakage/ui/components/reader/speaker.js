// The speaker's window: an empty window that the page itself draws into, so that both agree without messages, also in a folder.
import { element } from '../dom.js';
import { button } from './dots.js';
import { capsOf, PRESENTING, READING } from './keys.js';
import { say } from './phrases.js';
import { letter } from './walk.js';

const STYLE = `:root { color-scheme: dark; } body { margin: 0; padding: 24px; font: 20px/1.4 system-ui, sans-serif; background: #0d1117; color: #e3e9f0; }
h1 { font-size: 20px; margin: 0 0 8px; } h2 { font-size: 16px; margin: 20px 0 4px; color: #9fb0c3; } p { margin: 0; max-width: 70ch; }
.clock { font-size: 44px; font-variant-numeric: tabular-nums; } .row { display: flex; gap: 4px 24px; align-items: baseline; flex-wrap: wrap; }
.keys { display: flex; gap: 8px; flex-wrap: wrap; margin: 16px 0; } .keys kbd { font: inherit; font-weight: 700; margin-right: 6px; }
button { font: 16px/1.3 system-ui, sans-serif; min-height: 44px; padding: 6px 14px; border: 1px solid #5a6a7c; border-radius: 8px; background: #18202a; color: inherit; cursor: pointer; }
main { max-width: 1100px; }
button:focus-visible { outline: 3px solid #7cc4f2; outline-offset: 2px; } [hidden] { display: none !important; }`;

const NAME = 'gle-speaker';
const SIZE = 'width=900,height=760';

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
   * @param {import('./presenter.js').Presenter} presenter
   */
  constructor(view, presenter) {
    this.view = view;
    this.presenter = presenter;
    /** @type {Window | null} */
    this.window = null;
    this.began = 0;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.timer = undefined;
    this.now = element('section', '');
    this.keys = element('section', 'keys');
    this.voting = element('section', 'keys');
    this.notes = element('section', '');
    this.told = element('section', '');
    this.clock = element('span', 'clock');
    this.pace = element('span', '');
    this.lay();
    view.watchers.push(() => this.draw());
  }

  /** A button for every key that changes what the hall sees; they stay, so that none loses the focus. */
  lay() {
    const { view, presenter } = this;
    const press = (/** @type {string} */ cap, /** @type {string} */ words, /** @type {() => void} */ act, host = this.keys) => {
      const made = button('', '', act);
      made.append(element('kbd', '', cap), words);
      host.append(made);
      return made;
    };
    press(capsOf(READING.back)[0], say('back'), () => view.step(-1));
    press(capsOf(READING.next)[0], say('next'), () => view.step(1));
    press(capsOf(READING.play)[0], say('keyPlay'), () => view.exhibits.toggle());
    const { raise, speaker, ...others } = PRESENTING;
    for (const [name, key] of Object.entries(others)) if (presenter.acts[name]) press(capsOf(key)[0], say(key.does), presenter.acts[name]);
    press(capsOf(READING.help)[0], say('keys'), presenter.acts.help);
    const kinds = /** @type {const} */ ([
      ['', 'chooseOption', (/** @type {number} */ option) => view.choose(option)],
      ['⇧', 'raiseOption', (/** @type {number} */ option) => presenter.raise(option)],
    ]);
    this.options = kinds.flatMap(([shift, words, act]) =>
      [0, 1, 2, 3].map((option) => ({
        option,
        raises: shift !== '',
        made: press(`${shift}${option + 1}`, say(words, { letter: letter(option) }), () => act(option), this.voting),
      })),
    );
  }

  /** Open it, or find it again by its name after a reload. */
  open() {
    this.window = findWindow();
    if (!this.window) return;
    const { document: page } = this.window;
    page.documentElement.lang = document.documentElement.lang;
    const style = page.createElement('style');
    style.textContent = STYLE;
    page.head.replaceChildren(style);
    page.title = say('speaker'); // an element of the head
    const main = page.createElement('main');
    main.append(this.now, this.notes, this.told, this.keys, this.voting);
    page.body.replaceChildren(main);
    this.window.onkeydown = (event) => this.presenter.key(event) || this.view.key(event);
    this.began ||= Date.now();
    clearInterval(this.timer);
    this.timer = setInterval(() => this.tick(), 1000);
    this.draw();
  }

  draw() {
    if (!this.window || this.window.closed) return;
    const { lesson, walk } = this.view;
    const { beats } = lesson;
    const { options = [] } = walk.beat;
    const next = beats[walk.place + 1];
    const row = element('div', 'row');
    row.append(this.clock, this.pace);
    const { counted } = this.view.hall;
    for (const { option, raises, made } of this.options ?? []) made.hidden = option >= options.length || (raises && counted);
    this.voting.hidden = !options.length;
    this.now.replaceChildren(
      element('h1', '', `${lesson.title}, ${say('beatsOf', { at: walk.place + 1, n: beats.length })}`),
      element('p', '', walk.beat.text),
      row,
    );
    const parts = next ? [element('h2', '', say('next')), element('p', '', next.text)] : [];
    if (options.length) {
      const line = (/** @type {import('./walk.js').Option} */ { right, text, why }, /** @type {number} */ place) =>
        element('p', '', `${right ? '✓ ' : ''}${letter(place)}: ${text} ${why}`);
      parts.unshift(element('h2', '', say('rightAnswer')), ...options.map(line), ...this.guesses());
    }
    const notes = [walk.beat.note, walk.beat.hall_note].map((words) => element('p', '', words ?? ''));
    this.notes.replaceChildren(element('h2', '', say('notes')), ...notes); // first: they are read at a glance, the keys are known
    this.told.replaceChildren(...parts);
    this.tick();
  }

  /** What the hall chose, and, before it sees them itself, how many hands each option has. */
  guesses() {
    const { walk, hall } = this.view;
    const chosen = walk.guesses.get(walk.place);
    const lines = hall
      .votesOf(walk.place)
      .map((hands) => hands.map((n, option) => say('votesOf', { letter: letter(option), n })).join('  ·  '));
    if (hall.counted) lines.unshift(hall.wordsOf(walk.place, false));
    if (chosen !== undefined) lines.unshift(say('hallChose', { letter: letter(chosen) }));
    return lines.length ? [element('h2', '', say('guesses')), ...lines.map((line) => element('p', '', line))] : [];
  }

  /** The time, and whether the lesson is where its minutes say it should be. */
  tick() {
    const { lesson, walk } = this.view;
    const minutes = (Date.now() - this.began) / 60_000;
    const planned = lesson.beats.map(({ hall = lesson.minutes / lesson.beats.length }) => hall);
    const sum = (/** @type {number[]} */ many) => many.reduce((all, one) => all + one, 0);
    const due = sum(planned.slice(0, walk.place));
    this.clock.textContent = `${Math.floor(minutes)}:${String(Math.floor((minutes * 60) % 60)).padStart(2, '0')}`;
    this.pace.textContent = say('pace', { due: Math.round(due), all: Math.round(sum(planned)) });
  }

  close() {
    clearInterval(this.timer);
    this.window?.close();
    this.window = null;
  }
}
