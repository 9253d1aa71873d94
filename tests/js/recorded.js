// Events as the server sends them: those of the recorded run, and small ones whose values can be worked out by hand.
import { readFileSync } from 'node:fs';

/**
 * @typedef {import('../../leakage/ui/components/live/events.js').FrameEvent} FrameEvent
 * @typedef {import('../../leakage/ui/components/live/events.js').MetaEvent} MetaEvent
 * @typedef {import('../../leakage/ui/components/live/events.js').AttackEnd} AttackEnd
 * @typedef {import('../../leakage/ui/components/live/events.js').VerdictWords} VerdictWords
 */

/**
 * The recorded run: iDLG on one picture, planned for 300 steps, found after 198; the frames have the numbers 4 to 100.
 * @returns {{ id: string, meta: MetaEvent, frames: FrameEvent[], end: AttackEnd }}
 */
export function recorded() {
  const { run, events } = JSON.parse(readFileSync(new URL('../recorded.json', import.meta.url), 'utf8'));
  const [meta, ...frames] = events;
  const sent = frames.map((/** @type {{ png: string }} */ { png, ...frame }) => ({ ...frame, picture: png.length > 0 }));
  return { id: run.id, meta, frames: sent, end: { ...run.result, kind: 'end', run: run.id, seq: 101, status: 'done' } };
}

/**
 * A frame with a picture: number 7 is that of step 7, after 0.7 seconds.
 * @param {number} seq
 * @param {Partial<FrameEvent>} [more]
 * @returns {FrameEvent}
 */
export const frame = (seq, more = {}) => ({ kind: 'frame', run: 'r', seq, step: seq, seconds: seq / 10, loss: 1, picture: true, ...more });

/**
 * @param {string} word
 * @returns {VerdictWords}
 */
export const verdict = (word) => ({ word, why: `why ${word}`, meaning: `meaning ${word}`, rule: `rule ${word}` });
