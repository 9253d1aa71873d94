// The dialog of a room: code, QR and address for the phones, how many have joined, and what the teacher may do with the room.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { largeAddress } from '../reader/panel.js';
import { say } from '../reader/phrases.js';
import { word } from './hall_phrases.js';
import { EndRoom } from './room_end.js';

const ALONE = 20_000; // milliseconds without a phone, after which the dialog says why

export class RoomDialog {
  /**
   * @param {import('./class_room.js').ClassRoom} room
   * @param {{ base: string, present: (() => void) | null }} how `base`: the prefix of all addresses; `present`: begin a presentation
   */
  constructor(room, { base, present }) {
    this.room = room;
    this.base = base;
    this.late = false;
    this.root = element('div', 'gle-room');
    this.code = element('p', 'gle-room-code', room.kept.code);
    this.code.tabIndex = -1;
    this.shut = element('p', 'gle-room-shut', word('locked'));
    this.shut.tabIndex = -1;
    this.qr = element('img', 'gle-room-qr');
    this.where = element('div', 'gle-room-where');
    /** @type {HTMLElement[]} what a locked room does not show */
    this.invitation = [];
    this.joined = element('p', 'gle-room-joined');
    this.joined.setAttribute('role', 'status');
    this.help = element('p', 'gle-note', word('none'));
    this.note = element('p', 'gle-note');
    this.note.setAttribute('role', 'alert');
    this.say('');
    this.lock = button('gle-quiet', word('lock'), () => void room.post({ act: room.state?.locked ? 'unlock' : 'lock' }));
    this.end = new EndRoom({ question: () => word('endSure', { phones: this.room.crowd }), end: () => void room.close() });
    this.students = element('input', '');
    this.students.type = 'checkbox';
    this.students.addEventListener('change', () => void room.post({ act: this.students.checked ? 'students' : 'teacher' }));
    this.lay(present);
    this.timer = setTimeout(() => this.wait(), ALONE);
    this.go();
    this.update();
  }

  /** @param {(() => void) | null} present */
  lay(present) {
    const { kept } = this.room;
    const side = element('div', 'gle-room-side');
    if (kept.local) this.invitation.push(element('p', 'gle-note', word('local')), commandLine(kept.command));
    else if (!this.room.at) this.invitation.push(element('p', 'gle-note', word('noAddress')));
    else this.invitation.push(element('p', '', word('byAddress')), this.where);
    if (!kept.local && kept.addresses.length > 1) this.invitation.push(this.choice());
    if (this.room.at) this.invitation.push(element('p', '', word('byCode')));
    this.invitation.push(this.code);
    side.append(...this.invitation, this.shut, this.joined);
    const top = element('div', 'gle-room-top');
    if (this.room.at) top.append(this.qr);
    this.invitation.push(this.qr);
    top.append(side);
    const clear = button('gle-quiet', word('clear'), () => this.forget());
    clear.title = word('clearHelp');
    const label = element('label', 'gle-room-check');
    label.append(this.students, word('students'));
    const acts = element('div', 'gle-room-acts');
    acts.append(
      ...(present ? [button('gle-quiet gle-room-present', say('present'), present)] : []),
      this.lock,
      clear,
      label,
      this.end.root,
    );
    this.root.append(top, this.help, this.note, acts, element('p', 'gle-soft', word('keepTab')));
  }

  /** The other addresses of this computer: which one phones reach, only the teacher can know. */
  choice() {
    const label = element('label', 'gle-room-other', word('another'));
    const select = element('select', '');
    for (const address of this.room.kept.addresses) {
      const option = element('option', '', address.replace(/^https?:\/\//, ''));
      option.value = address;
      select.append(option);
    }
    select.addEventListener('change', () => {
      this.room.use(select.value);
      this.go();
    });
    label.append(select);
    return label;
  }

  /** The phones' page below the chosen address. */
  get address() {
    return addressOf(this.room.at, this.base);
  }

  go() {
    if (!this.room.at) return;
    const [words] = largeAddress(new URL(this.address));
    this.where.replaceChildren(words);
    this.qr.src = this.room.api.qr(this.room.kept.code, this.room.at);
    this.qr.alt = word('qr', { address: `${this.address}/${this.room.kept.code}` });
  }

  wait() {
    this.late = true;
    this.update();
  }

  /** What the room knows now. */
  update() {
    const { state, phones: count } = this.room;
    const words = count === 0 ? word('joinedNone') : count === 1 ? word('joinedOne') : word('joined', { n: count });
    if (this.joined.textContent !== words) this.joined.textContent = words;
    const locked = state?.locked ?? false;
    this.shut.hidden = !locked;
    for (const part of this.invitation) part.hidden = locked;
    this.help.hidden = !this.late || locked || count > 0 || state === null || this.room.kept.local;
    this.lock.textContent = word(locked ? 'unlock' : 'lock');
    this.students.checked = state?.students ?? false;
    this.end.update();
  }

  /** No button has the focus first, so that none is pressed by mistake. */
  focus() {
    (this.shut.hidden ? this.code : this.shut).focus();
  }

  async forget() {
    if (await this.room.post({ act: 'clear' })) this.say(word('forgotten'));
  }

  /** @param {string} words */
  say(words) {
    this.note.textContent = words;
    this.note.hidden = !words;
  }

  destroy() {
    clearTimeout(this.timer);
    this.root.remove();
  }
}

/**
 * The address that phones open.
 * @param {string} at scheme and host of the server
 * @param {string} base
 */
export const addressOf = (at, base) => `${at}${base}/j`;

/** @param {string} command */
function commandLine(command) {
  const line = element('p', '');
  line.append(element('code', 'gle-room-command', command));
  return line;
}
