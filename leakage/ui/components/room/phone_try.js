// Below the result of a what-if on a phone: each choice goes to the class's plot, and, where the teacher allows it, is computed live.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { RoomError } from './room_api.js';
import { RoomLive } from './room_live.js';
import { tell } from './room_phrases.js';

export class PhoneTry {
  /**
   * @param {import('../reader/whatif.js').WhatIf} whatIf
   * @param {number} beat counted from 1
   * @param {import('./phone_room.js').PhoneRoom} room
   */
  constructor(whatIf, beat, room) {
    this.whatIf = whatIf;
    this.beat = beat;
    this.room = room;
    this.gone = false;
    this.asking = false;
    /** @type {RoomLive | null} */
    this.live = null;
    this.cell = whatIf.cell; // whose live run is shown
    this.root = element('div', 'gle-try-live');
    this.button = button('gle-quiet', '', () => this.press());
    this.error = element('p', 'gle-join-error');
    this.error.setAttribute('role', 'alert');
    this.told = element('p', 'gle-try-told');
    this.told.setAttribute('role', 'status');
    this.root.append(this.told, this.button, this.error);
    this.title = element('h4', 'gle-own-tries', tell('ownTries')); // of the plot of this phone
    whatIf.result.after(this.root, this.title);
    const own = room.answers.cell(beat);
    if (own !== undefined && whatIf.grid.cells[own]) whatIf.choose(own);
    whatIf.chosen = (cell) => {
      room.choose(beat, cell);
      this.error.textContent = '';
      this.update();
    };
    this.update();
  }

  /** The live run of the cell that is shown, if the class has one. */
  get run() {
    const { state } = this.room;
    return state?.beat === this.beat ? state.runs[this.whatIf.cell] : undefined;
  }

  /** Whether the class's plot has the cell that is shown as a dot of this phone: the server has taken it, and its result is recorded. */
  get dotted() {
    const { whatIf, room, beat } = this;
    return room.answers.counted(beat) === whatIf.cell && whatIf.grid.cells[whatIf.cell].answer !== null;
  }

  update() {
    const { room, run, beat } = this;
    if (this.cell !== this.whatIf.cell) this.leave();
    this.cell = this.whatIf.cell;
    const here = room.state?.beat === beat && !room.closed;
    const words = [here && room.state?.computing && tell('teacherComputes'), here && this.dotted && tell('dotInFront')]
      .filter(Boolean)
      .join(' ');
    if (this.told.textContent !== words) this.told.textContent = words;
    this.button.hidden = !here || Boolean(this.live) || !(run || room.state?.students);
    this.button.textContent = tell(run ? 'watchLive' : 'computeLive');
    this.button.setAttribute('aria-disabled', String(this.asking));
  }

  async press() {
    if (this.asking) return;
    const { room, beat, cell } = this;
    const { slot } = room.kept;
    this.asking = true;
    this.error.textContent = '';
    this.update();
    try {
      const run = this.run ?? (await room.api.live(room.code, { slot, beat, cell }));
      if (!this.gone && cell === this.cell) this.show(run);
    } catch (error) {
      this.error.textContent = /** @type {RoomError} */ (error).message;
    }
    this.asking = false;
    this.update();
  }

  /** @param {string} run */
  show(run) {
    const { room } = this;
    this.leave();
    const recorded = this.whatIf.grid.cells[this.cell].answer?.scores.psnr ?? null;
    this.live = new RoomLive(run, room.api.run(room.code, run, { slot: room.kept.slot }), { recorded });
    this.live.root.tabIndex = -1;
    this.root.append(this.live.root);
    this.live.root.focus(); // the button goes
  }

  leave() {
    this.live?.destroy();
    this.live = null;
  }

  destroy() {
    this.gone = true;
    this.leave();
    this.whatIf.chosen = () => {};
    this.root.remove();
    this.title.remove();
  }
}
