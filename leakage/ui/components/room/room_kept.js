// What a phone remembers of a room while its tab is open: its token, its answers and its place. A browser without storage is not an error.
import { newSlot } from './room_state.js';

/**
 * An answer of this phone: an option of a question, or a cell of a grid; `counted`: as the server has taken it last.
 * @typedef {{ value: number, counted: number | null }} Answer
 * @typedef {object} Kept
 * @property {string} slot
 * @property {string} opened see RoomState.opened
 * @property {string} lesson the lesson that answers and place belong to: see RoomState.id
 * @property {number} heard when the last state came, in milliseconds of Date.now(); 0: never
 * @property {boolean} ended the room has ended: nothing else of it is kept
 * @property {Record<string, Answer>} answers by `keyOf` or `cellKey`
 * @property {Record<string, number>} cleared by beat: RoomState.cleared as it was heard last
 * @property {number | null} place the beat that the student leafed to, counted from 0; null: that of the class
 */

const NAME = 'gle-room-'; // and the code
const REOPENED_WITHIN = 600_000; // milliseconds in which a teacher may open an unknown room again

/** @type {(code: string) => string} */
const nameOf = (code) => `${NAME}${code}`;

/**
 * Whether a room that the server does not know may be opened again soon: this phone was in it a short time ago.
 * @param {Kept} kept
 */
export const mayReturn = ({ heard, ended }) => !ended && heard > 0 && Date.now() - heard < REOPENED_WITHIN;

/**
 * The answer to a question in one of its rounds. Beats count from 1.
 * @type {(beat: number, round: number) => string}
 */
export const keyOf = (beat, round) => `${beat}/${round}`;

/** @type {(beat: number) => string} */
export const cellKey = (beat) => `${beat}/cell`;

/**
 * @param {string} code
 * @returns {Kept}
 */
export function readRoom(code) {
  const fresh = { slot: newSlot(), opened: '', lesson: '', heard: 0, ended: false, answers: {}, cleared: {}, place: null };
  try {
    const found = JSON.parse(sessionStorage.getItem(nameOf(code)) ?? 'null');
    return found?.ended || /^[0-9a-f]{24}$/.test(found?.slot) ? { ...fresh, ...found } : fresh;
  } catch {
    return fresh;
  }
}

/**
 * @param {string} code
 * @param {Kept | { ended: true }} kept
 */
export function keepRoom(code, kept) {
  try {
    sessionStorage.setItem(nameOf(code), JSON.stringify(kept));
  } catch {
    // a private window, or a full one: the room goes on without
  }
}

/** @type {(code: string) => void} */
export const noteEnd = (code) => keepRoom(code, { ended: true });

/** The code of the room that this phone was in last and that has not ended; empty if there is none. */
export function roomLeft() {
  try {
    const rooms = Object.keys(sessionStorage)
      .filter((name) => name.startsWith(NAME))
      .map((name) => ({ code: name.slice(NAME.length), ...JSON.parse(sessionStorage.getItem(name) ?? 'null') }))
      .filter(({ heard, ended }) => heard > 0 && !ended);
    return rooms.sort((one, other) => other.heard - one.heard)[0]?.code ?? '';
  } catch {
    return '';
  }
}
