// What the teacher's browser keeps of its open room. Every tab finds it; the tab that took it last leads it, also after a reload.
import { newSlot } from './room_state.js';

const KEY = 'gle-room'; // in localStorage: the room
const LEADER = 'gle-room-leader'; // in sessionStorage: which leader of a room this tab is
const LONGEST = 3 * 3600_000; // milliseconds: the server closes a room after three hours

/**
 * @typedef {object} Kept
 * @property {string} code
 * @property {string} key
 * @property {string} lesson
 * @property {string[]} addresses under which phones reach the server, the best first
 * @property {boolean} local phones cannot reach the server
 * @property {string} command that mends it
 * @property {number} since when the room was opened, in milliseconds of Date.now()
 * @property {string} [leader] a random name of the page that leads the room
 * @property {string} [opened] see RoomState.opened
 * @property {number} [beat] counted from 1; this and the rest: as the room was last
 * @property {number} [round]
 * @property {boolean} [second]
 * @property {boolean} [revealed]
 * @property {boolean} [students]
 */

/** @returns {Kept | null} */
export function readRoom() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? 'null');
    const whole = found?.code && found.key && found.lesson && Array.isArray(found.addresses);
    return whole && Date.now() - found.since < LONGEST ? found : null;
  } catch {
    return null;
  }
}

/** @param {Kept | null} kept null: there is no room any more */
export function keepRoom(kept) {
  try {
    if (kept) localStorage.setItem(KEY, JSON.stringify(kept));
    else localStorage.removeItem(KEY);
  } catch {
    // a browser without storage: the room lasts as long as the page
  }
}

/**
 * A room with the addresses that the server has now: it may be in another network. The one that the teacher chose stays the first.
 * @param {Kept} kept
 * @param {Pick<Kept, 'addresses' | 'local' | 'command'>} now
 * @returns {Kept}
 */
export function withAddresses(kept, { addresses, local, command }) {
  const rank = (/** @type {string} */ address) => (address === kept.addresses[0] ? 0 : 1);
  return { ...kept, addresses: addresses.sort((one, other) => rank(one) - rank(other)), local, command };
}

/**
 * From now on this page leads the room, and no other.
 * @param {Kept} kept
 * @returns {Kept}
 */
export function takeLead(kept) {
  const led = { ...kept, leader: newSlot() };
  keepRoom(led);
  try {
    sessionStorage.setItem(LEADER, led.leader);
  } catch {
    // likewise
  }
  return led;
}

/**
 * Whether this tab led the room last: the page was loaded again, or came back to the lesson.
 * @param {Kept} kept
 */
export function wasLed({ leader }) {
  try {
    return leader !== undefined && sessionStorage.getItem(LEADER) === leader;
  } catch {
    return false;
  }
}

/**
 * Whether no other page has taken the lead of a room.
 * @param {Kept} kept
 */
export function isLed({ leader }) {
  const found = readRoom();
  return !found || found.leader === leader;
}
