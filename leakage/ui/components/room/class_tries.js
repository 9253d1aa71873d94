// Draws a plot below a grid of what-ifs. Each phone of the class is a dot in it, and the teacher may compute a cell live.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { ClassPlot } from './class_plot.js';
import { sentenceOf } from './class_room.js';
import { phones, word } from './hall_phrases.js';
import { RoomLive } from './room_live.js';
import { tell } from './room_phrases.js';

export class ClassTries {
  /**
   * @param {import('../reader/whatif.js').WhatIf} whatIf
   * @param {number} place of the beat, counted from 0
   * @param {import('./class_room.js').ClassRoom} room
   */
  constructor(whatIf, place, room) {
    this.whatIf = whatIf;
    this.place = place;
    this.room = room;
    this.drawn = '';
    this.asking = false;
    /** @type {RoomLive | null} */
    this.live = null;
    this.root = element('section', 'gle-class');
    this.root.setAttribute('aria-label', word('choices'));
    this.plot = new ClassPlot(whatIf.grid, whatIf.words, (cell) => this.show(cell));
    this.head = element('h3', 'gle-screen-title', word('choices'));
    this.told = element('p', 'gle-class-told');
    this.compute = button('gle-quiet gle-compute', '', () => this.start());
    this.note = element('p', 'gle-note');
    this.note.setAttribute('role', 'alert');
    this.root.append(this.head, this.plot.root, this.told, this.plot.numbers, this.compute, this.note);
    whatIf.chosen = () => this.turn();
    this.update();
    this.turn();
  }

  /** What the room knows now. */
  update() {
    const { dots, runs } = this.room.triesOf(this.place);
    const told = JSON.stringify(dots);
    if (told !== this.drawn) this.draw(dots);
    this.drawn = told;
    this.offer(runs);
  }

  /** @param {Record<string, number>} dots */
  draw(dots) {
    this.plot.update(dots);
    this.plot.mark(this.whatIf.cell);
    const sum = (/** @type {number[]} */ many) => many.reduce((all, one) => all + one, 0);
    const shown = sum(this.plot.choices.map(({ count }) => count));
    const others = sum(Object.values(dots)) - shown;
    const words = [
      shown ? word('chosenBy', { phones: phones(shown) }) : others ? '' : word('choicesNone'),
      this.plot.places.length ? word('medians') : '',
      others ? word('notRecorded', { phones: phones(others) }) : '',
    ];
    this.told.textContent = words.filter(Boolean).join(' ');
  }

  /**
   * The pictures of a choice, large.
   * @param {number} cell
   */
  show(cell) {
    this.whatIf.choose(cell);
    this.turn();
  }

  /** Another cell is shown: a live run of the one before makes room. */
  turn() {
    this.live?.destroy();
    this.live = null;
    this.note.hidden = true;
    this.whatIf.root.dataset.live = 'false';
    this.plot.mark(this.whatIf.cell);
    this.offer(this.room.triesOf(this.place).runs);
  }

  /** @param {Record<string, string>} runs cell -> run */
  offer(runs) {
    const here = this.room.place === this.place;
    this.compute.hidden = (this.live !== null && !this.live.isOver) || (!here && !runs[this.whatIf.cell]);
    this.compute.textContent = runs[this.whatIf.cell] ? tell('watchLive') : word(this.asking ? 'computing' : 'computeOne');
  }

  /** Show the live run of this cell; where there is none, ask for it. */
  async start() {
    if (this.asking) return;
    const { cell } = this.whatIf;
    const { runs } = this.room.triesOf(this.place);
    this.note.hidden = true;
    this.asking = true;
    this.offer(runs);
    try {
      const run = runs[cell] ?? (await this.room.live(cell));
      if (cell === this.whatIf.cell && this.root.isConnected) this.watch(run);
    } catch (error) {
      this.note.textContent = sentenceOf(error);
      this.note.hidden = false;
    }
    this.asking = false;
    this.offer(this.room.triesOf(this.place).runs);
  }

  /** @param {string} run */
  watch(run) {
    const { api, kept } = this.room;
    this.live?.destroy();
    const ended = () => this.offer(this.room.triesOf(this.place).runs);
    this.live = new RoomLive(run, api.run(kept.code, run, { key: kept.key }), { ended });
    this.whatIf.result.after(this.live.root);
    this.whatIf.root.dataset.live = 'true'; // in a hall the live run replaces the recorded result
  }

  destroy() {
    this.whatIf.chosen = () => {};
    this.live?.destroy();
    this.plot.destroy();
    this.root.remove();
  }
}
