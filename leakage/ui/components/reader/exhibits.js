// The exhibits beside the text of a lesson: recorded runs, a grid of what-ifs, a figure, or, at the end, the sources.
import { element } from '../dom.js';
import { afterwards } from './afterwards.js';
import { FigureBox } from './figures.js';
import { Screen } from './screen.js';
import { WhatIf } from './whatif.js';

/** @typedef {import('./lesson.js').Beat} Beat */

export class Exhibits {
  /**
   * @param {import('./lesson.js').LessonData} lesson
   * @param {import('./source.js').Source} source
   */
  constructor(lesson, source) {
    this.lesson = lesson;
    this.from = source;
    this.root = element('div', 'gle-stage-side');
    /** @type {{ destroy(): void }[]} */
    this.parts = [];
    this.staged = -2; // the beat whose runs, grid or figure are here
    /** @type {((whatIf: WhatIf, place: number) => { root: HTMLElement, destroy(): void }) | null} what a class shows below a grid */
    this.beside = null;
  }

  /**
   * The beat that says what stands beside this one: itself, or, for words and questions, the latest that showed something.
   * @param {number} from
   */
  sourceOf(from) {
    const shows = (/** @type {Beat} */ { runs, grid, figure, kind }) => runs?.length || grid || figure || kind === 'takeaway';
    for (let place = from; place >= 0; place -= 1) if (shows(this.lesson.beats[place])) return place;
    return -1;
  }

  /**
   * Show what belongs to a beat; what is there already stays. Answers whether there is anything.
   * @param {number} place
   */
  show(place) {
    const source = this.sourceOf(place);
    if (source !== this.staged) this.change(source);
    return source >= 0;
  }

  /**
   * Let a class show something below each grid, or, with null, no longer.
   * @param {Exhibits['beside']} beside
   */
  open(beside) {
    this.beside = beside;
    if (this.lesson.beats[this.staged]?.grid) this.change(this.staged);
  }

  /** @param {number} source */
  change(source) {
    const before = this.parts.find((part) => part instanceof Screen);
    const from = before instanceof Screen ? { id: before.record.id, place: before.player.place } : null;
    this.parts.forEach((part) => part.destroy());
    this.parts = [];
    this.root.replaceChildren();
    this.staged = source;
    if (source < 0) return;
    const beat = this.lesson.beats[source];
    for (const id of beat.runs ?? []) this.addScreen(id, beat, from?.id === id ? from.place : 0);
    if (beat.grid) this.addGrid(beat.grid, beat.words ?? {});
    if (beat.figure) this.add(new FigureBox(beat.figure));
    if (beat.kind === 'takeaway') this.root.append(afterwards(this.lesson, this.from));
    this.root.dataset.screens = String(beat.runs?.length ?? 0);
  }

  /** @param {{ root: HTMLElement, destroy(): void }} part */
  add(part) {
    this.parts.push(part);
    if (!part.root.parentElement) this.root.append(part.root); // else it stands within another part
  }

  /**
   * @param {string} id
   * @param {Beat} beat
   * @param {number} from where the film goes on
   */
  addScreen(id, beat, from) {
    const { picture, lab } = this.from;
    const showing = { id, run: this.lesson.runs[id], film: picture('runs', id), lab, stop: beat.stop ?? 'answer' };
    this.add(new Screen({ ...showing, from, curves: !beat.figure && (beat.runs?.length ?? 0) < 2, answers: beat.kind === 'reveal' }));
  }

  /**
   * @param {string} name
   * @param {Record<string, string>} words
   */
  addGrid(name, words) {
    const { picture, lab, own } = this.from;
    const whatIf = new WhatIf(this.lesson.grids[name], { film: picture('grids', name), lab, own, words });
    this.add(whatIf);
    if (this.beside) this.add(this.beside(whatIf, this.staged));
  }

  /** Play or stop the runs. */
  toggle() {
    for (const part of this.parts) if (part instanceof Screen) part.toggle();
  }

  destroy() {
    this.parts.forEach((part) => part.destroy());
    this.root.remove();
  }
}
