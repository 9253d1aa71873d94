// What is known about one run so far: events in, plain data out. Knows no page.
import { isNumber } from './words.js';

/**
 * @typedef {import('./events.js').FrameEvent} FrameEvent
 * @typedef {import('./events.js').FrameScores} FrameScores
 * @typedef {import('./events.js').StateEvent} StateEvent
 * @typedef {import('./events.js').MetaEvent} MetaEvent
 * @typedef {import('./events.js').AttackEnd} AttackEnd
 * @typedef {import('./events.js').VerdictWords} VerdictWords
 * @typedef {StateEvent | import('./events.js').NoteEvent | import('./events.js').RestartEvent | MetaEvent | FrameEvent | import('./events.js').ThinnedEvent | AttackEnd} AttackEvent
 */

/**
 * A frame as it is kept. `seldom` are the scores that are measured twice a second only, as they were last.
 * @typedef {Omit<FrameEvent, 'seq' | 'scores'> & { seq: number, scores: FrameScores, seldom: FrameScores }} Frame
 */

/**
 * `frames` are all, for the curves; `pictures` are those among them that the server still has a picture of.
 * @typedef {object} RunRecord
 * @property {string} id
 * @property {Partial<StateEvent>} state
 * @property {MetaEvent | null} meta
 * @property {Frame[]} frames
 * @property {Frame[]} pictures
 * @property {string} note
 * @property {VerdictWords | null} verdict
 * @property {AttackEnd | null} end
 * @property {number} heard the highest number of an event so far
 */

/** The states that a run does not leave. */
export const FINAL = new Set(['done', 'cancelled', 'failed']);

/** @type {(record: Pick<RunRecord, 'state'>) => boolean} */
export const isFinal = ({ state }) => FINAL.has(state.status ?? '');

/** @type {(id: string) => RunRecord} */
export const newRecord = (id) => ({ id, state: {}, meta: null, frames: [], pictures: [], note: '', verdict: null, end: null, heard: 0 });

/**
 * Take one event in. The stream may repeat itself after a reconnect, so what is already known is skipped. Places in the queue have no
 * number: they always count.
 * @param {RunRecord} record
 * @param {AttackEvent} event
 */
export function take(record, event) {
  if (isNumber(event.seq)) {
    if (event.seq <= record.heard) return;
    record.heard = event.seq;
  }
  if (event.kind === 'state') record.state = event;
  else if (event.kind === 'meta') record.meta = event;
  else if (event.kind === 'restart') Object.assign(record, { ...newRecord(record.id), heard: record.heard, note: event.text });
  else if (event.kind === 'note') record.note = event.text ?? '';
  else if (event.kind === 'thinned') keepOnly(record, new Set(event.kept ?? []));
  else if (event.kind === 'frame') takeFrame(record, event);
  else if (event.kind === 'end') {
    record.end = event;
    record.verdict = event.verdict ?? record.verdict;
    record.state = { ...record.state, status: event.status ?? 'done' };
  }
}

/**
 * @param {RunRecord} record
 * @param {FrameEvent} event
 */
function takeFrame(record, event) {
  const last = record.frames[record.frames.length - 1];
  const seq = event.seq ?? 0;
  const scores = event.scores ?? {};
  const seldom = scores.ssim === undefined ? (last?.seldom ?? {}) : scores; // in between the last value stands
  const frame = { ...event, seq, scores, seldom };
  record.frames.push(frame);
  if (frame.picture) record.pictures.push(frame);
  record.verdict = frame.verdict ?? record.verdict;
  frame.verdict = record.verdict; // likewise
}

/**
 * @param {RunRecord} record
 * @param {Set<number>} kept
 */
function keepOnly(record, kept) {
  const newest = record.pictures[record.pictures.length - 1]?.seq;
  record.pictures = record.pictures.filter((frame) => kept.has(frame.seq) || frame.seq === newest);
}

/**
 * The place of the last picture that is not newer than `seq`.
 * @param {Frame[]} pictures
 * @param {number} seq
 */
export function placeOf(pictures, seq) {
  let place = pictures.length - 1;
  while (place > 0 && pictures[place].seq > seq) place -= 1;
  return place;
}

/**
 * The place of the attack's answer, or of the newest picture while there is none.
 * @param {RunRecord} record
 */
export function answerPlace(record) {
  return record.end && isNumber(record.end.answer) ? placeOf(record.pictures, record.end.answer) : record.pictures.length - 1;
}

/** @type {(record: RunRecord, frame: Frame | null | undefined) => boolean} */
export const isAnswer = (record, frame) => Boolean(record.end && frame && frame === record.pictures[answerPlace(record)]);

/**
 * The scores of a frame; those of the answer are measured more thoroughly at the end.
 * @param {RunRecord} record
 * @param {Frame | null | undefined} frame
 * @returns {FrameScores}
 */
export function scoresOf(record, frame) {
  const { ssim, rank, identified } = frame?.seldom ?? {};
  const scores = { ssim, rank, identified, ...frame?.scores };
  return isAnswer(record, frame) ? { ...scores, ...record.end?.scores } : scores;
}

/**
 * The place of the picture whose step is nearest, or -1 while there is none.
 * @param {Frame[]} pictures
 * @param {number} step
 */
export function nearestPlace(pictures, step) {
  const distances = pictures.map((frame) => Math.abs(frame.step - step));
  return distances.indexOf(Math.min(...distances));
}
