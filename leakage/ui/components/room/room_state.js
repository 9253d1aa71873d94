// What a room is, as the server sends it: the types of its state and of its lesson, and the token of a phone. No access to the page.

/**
 * The votes on the question of the room's beat.
 * @typedef {object} VoteState
 * @property {number} round the number of this vote on the question; after `clear` it is another, too
 * @property {boolean} second whether the class votes again: the round before is the first vote
 * @property {number} count phones that voted in this round
 * @property {boolean} revealed
 * @property {(number[] | null)[] | null} bars of the first and the second vote, how many phones chose each option; null: hidden, or
 *   fewer than five voted
 *
 * @typedef {object} RoomState every message of the room's stream is a whole state
 * @property {string} opened another value after the room was opened again
 * @property {string} lesson the version of the lesson: another value when guests may see more of it, or less
 * @property {string} id of the lesson
 * @property {number} beat of the room, counted from 1
 * @property {number} furthest the furthest beat that the room has come to, counted from 1
 * @property {number} phones that joined
 * @property {boolean} locked no more phones may join
 * @property {boolean} students whether they may compute live
 * @property {boolean} closed only in the last message
 * @property {VoteState | null} vote at a question
 * @property {Record<string, number> | null} dots at a beat to try: the cell of the grid (counted from 0) -> the phones that chose it
 * @property {number} cleared how often the choices at this beat were forgotten
 * @property {Record<string, string>} runs at a beat to try: the cell of the grid -> its live run
 * @property {boolean} computing the teacher computes one of these runs now
 *
 * The lesson as far as the room has come. Options of a question that is not revealed have a text only.
 * @typedef {import('../reader/lesson.js').LessonData & { all: number }} RoomLesson `all`: how many beats the whole lesson has
 *
 * @typedef {{ slot: string } | { key: string }} Who a phone, or the teacher's page
 */

const SLOT = 12; // bytes

/** A random token of a phone: 24 hexadecimal digits. */
export const newSlot = () => [...crypto.getRandomValues(new Uint8Array(SLOT))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * Whether the options of a question say which of them is right.
 * @param {import('../reader/walk.js').Option[]} options
 */
export const isAnswered = (options) => options.some(({ right }) => right);

/**
 * A lesson with the pictures beside its runs that an earlier version brought: they come only with the beat that shows a run.
 * @param {RoomLesson} lesson
 * @param {RoomLesson | null} before
 */
export function withViews(lesson, before) {
  for (const [name, run] of Object.entries(lesson.runs)) if (!run.views?.length) run.views = before?.runs[name]?.views;
  return lesson;
}
