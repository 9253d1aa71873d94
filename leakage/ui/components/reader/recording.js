// Turns a recorded run from a file (columns, and the rows where a value changed) into the record that live runs use. No access to the page.
import { newRecord, take } from '../live/record.js';
import { isNumber } from '../live/words.js';

/**
 * @typedef {import('../live/record.js').RunRecord} RunRecord
 * @typedef {import('../live/record.js').Frame} Frame
 * @typedef {(number | null)[]} Column
 * @typedef {object} Recording `film` says which frames have pictures: one row each, below the row of the private ones
 * @property {string} title
 * @property {string | null} lab the settings as an address of the Lab
 * @property {Record<string, Column>} [columns]
 * @property {{ side: number, batch: number, places: number[] }} [film]
 * @property {[number, number[]][]} [labels]
 * @property {[number, Record<string, unknown>][]} [notes]
 * @property {[number, { word: string, why: string }][]} [verdicts]
 * @property {[number, Record<string, string>][]} [views] pictures that belong to a frame, beside its guess
 * @property {string[]} [messages] important notices
 * @property {string} [rule]
 * @property {any} [meta]
 * @property {any} [result]
 * @property {number} [seconds]
 */

/**
 * What holds at a place, of a list of changes.
 * @template Value
 * @param {[number, Value][]} changes
 * @param {number} place
 * @returns {Value | undefined}
 */
export function valueAt(changes, place) {
  let held;
  for (const [since, value] of changes) if (since <= place) held = value;
  return held;
}

/**
 * A number that was not measured is left out.
 * @param {Record<string, Column>} columns
 * @param {number} place
 */
function scoresAt(columns, place) {
  const measured = ['psnr', 'ssim', 'rank'].filter((name) => isNumber(columns[name]?.[place]));
  return Object.fromEntries(measured.map((name) => [name, columns[name][place]]));
}

/**
 * @param {string} id
 * @param {Recording} recording
 * @returns {RunRecord} its sequence numbers are places of the columns, counted from 1
 */
export function recordOf(id, { columns = {}, film, labels = [], notes = [], verdicts = [], views = [], rule = '', meta, result }) {
  const record = newRecord(id);
  const kept = new Set(film?.places);
  const hear = (/** @type {any} */ event) => take(record, event);
  hear({ kind: 'meta', ...meta });
  columns.step?.forEach((step, place) => {
    const verdict = valueAt(verdicts, place);
    hear({
      kind: 'frame',
      seq: place + 1,
      step,
      seconds: columns.seconds?.[place],
      loss: columns.loss?.[place],
      scores: scoresAt(columns, place),
      labels: valueAt(labels, place) ?? [],
      note: valueAt(notes, place) ?? {},
      verdict: verdict && { meaning: '', rule, ...verdict },
      views: views.find(([at]) => at === place)?.[1],
      picture: kept.has(place),
    });
  });
  if (result) hear({ kind: 'end', status: 'done', ...result, answer: result.answer + 1 });
  return record;
}

/**
 * The place among the kept pictures where a beat stops; -1: before the first.
 * @param {Frame[]} pictures
 * @param {string} stop
 */
export function stopPlace(pictures, stop) {
  if (stop === 'first') return -1;
  const bound = /^step (\d+)$/.exec(stop);
  if (!bound) return pictures.length - 1;
  const reached = pictures.filter(({ step }) => step <= Number(bound[1])).length;
  return Math.max(0, reached - 1);
}
