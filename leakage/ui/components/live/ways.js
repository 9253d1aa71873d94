// How far several runs have come, on one scale: along the steps of the attack where all have the same number of them, and else along the
// share of the way that each has gone. Knows no page.
import { isNumber, whole } from './words.js';

export const HEADS = 121; // places of the shared play head; at the last one every run shows its answer

/**
 * @typedef {import('./record.js').RunRecord} RunRecord
 * @typedef {{ steps: number[], last: number, length: number }} Way the steps before every picture, the last of them, and all that are planned
 */

/**
 * Steps before every picture, over all starts of the attack together: never falling.
 * @param {{ step: number }[]} pictures
 */
export function stepsOf(pictures) {
  let before = 0;
  return pictures.map(({ step = 0 }, place) => {
    if (place && step < pictures[place - 1].step) before += pictures[place - 1].step;
    return before + step;
  });
}

/**
 * The ways of the runs, and whether all are planned to be equally long.
 * @param {Pick<RunRecord, 'pictures' | 'end' | 'meta'>[]} records
 * @returns {{ ways: Way[], same: boolean }}
 */
export function waysOf(records) {
  const ways = records.map(({ pictures, end, meta }) => {
    const steps = stepsOf(pictures);
    const last = steps[steps.length - 1] ?? 0;
    return { steps, last, length: Math.max(1, end ? last : Math.max(meta?.steps ?? 0, last)) };
  });
  const planned = records.map(({ meta }) => meta?.steps).filter(isNumber);
  const same = planned.length > 0 && planned.every((steps) => steps === planned[0]);
  const longest = Math.max(...ways.map(({ length }) => length));
  return { ways: same ? ways.map((way) => ({ ...way, length: longest })) : ways, same };
}

/**
 * The picture of a run at a place of the play head, before the last: the last picture that is not beyond it.
 * @param {Way} way
 * @param {number} place
 */
export function pictureAt({ steps, length }, place) {
  const reached = (place / (HEADS - 2)) * length;
  let found = steps.length - 1;
  while (found > 0 && steps[found] > reached + 1e-9) found -= 1;
  return found;
}

/**
 * The place of the play head where the run is that has come furthest.
 * @param {Way[]} ways
 */
export function furthestPlace(ways) {
  return Math.round(Math.max(0, ...ways.map(({ last, length }) => last / length)) * (HEADS - 2));
}

/**
 * Where the play head stands.
 * @param {{ place: number, count: number, running: boolean }} player
 * @param {{ ways: Way[], same: boolean }} all
 */
export function placeWords({ place, count, running }, { ways, same }) {
  if (!count) return 'no pictures yet';
  if (!running && place >= HEADS - 1) return 'the results';
  const share = Math.min(1, Math.max(0, place) / (HEADS - 2));
  const longest = Math.max(0, ...ways.map(({ length }) => length));
  return same ? `step ${whole(share * longest)} of ${whole(longest)}` : `${Math.round(100 * share)} % of the way`;
}
