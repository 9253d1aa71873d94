// What is known about one run so far: events in, plain data out. Knows no page.
const FINAL = new Set(['done', 'cancelled', 'failed']);

const newRecord = (id) => ({ id, state: {}, meta: null, frames: [], pictures: [], note: '', verdict: null, end: null });

/**
 * Take one event in. The stream may repeat itself after a reconnect, so what is already known is skipped.
 * @param {import('./events').RunEvent} event
 */
function take(record, event) {
  const last = record.frames[record.frames.length - 1];
  if (event.kind === 'state') record.state = event;
  else if (event.kind === 'meta') record.meta = event;
  else if (event.kind === 'note') record.note = event.text ?? '';
  else if (event.kind === 'thinned') keepOnly(record, new Set(event.kept ?? []));
  else if (event.kind === 'frame' && !(last && event.seq <= last.seq)) {
    const frame = { ...event, scores: event.scores ?? {} };
    frame.seldom = frame.scores.ssim === undefined ? last?.seldom ?? {} : frame.scores; // measured twice a second only: in between the last value stands
    record.frames.push(frame);
    if (frame.picture) record.pictures.push(frame);
    record.verdict = frame.verdict ?? record.verdict;
    frame.verdict = record.verdict; // likewise
  } else if (event.kind === 'end') {
    record.end = event;
    record.verdict = event.verdict ?? record.verdict;
    record.state = { ...record.state, status: event.status ?? 'done', message: event.message ?? record.state.message };
  }
}

function keepOnly(record, kept) {
  const newest = record.pictures[record.pictures.length - 1]?.seq;
  record.pictures = record.pictures.filter((frame) => kept.has(frame.seq) || frame.seq === newest);
}

/** The place of the last picture that is not newer than `seq`. */
function placeOf(pictures, seq) {
  let place = pictures.length - 1;
  while (place > 0 && pictures[place].seq > seq) place -= 1;
  return place;
}

const answerPlace = (record) => (isNumber(record.end?.answer) ? placeOf(record.pictures, record.end.answer) : record.pictures.length - 1);
const isAnswer = (record, frame) => Boolean(record.end && frame && frame === record.pictures[answerPlace(record)]);

/** The scores of a frame; those of the answer are measured more thoroughly at the end. */
function scoresOf(record, frame) {
  const { ssim, rank, identified } = frame?.seldom ?? {}, scores = { ssim, rank, identified, ...frame?.scores };
  return isAnswer(record, frame) ? { ...scores, ...record.end.scores } : scores;
}
