// Gauges and the verdict: plain words first, the number large, and what pictures that know nothing would have scored.
const PSNR_TOP = 60, DECADES = 6;

const GAUGES = [
  { id: 'rank', title: 'Could it be picked out of a line-up of 100?', term: '', unit: '', read: (scores) => scores.rank,
    text: (value, meta) => (isNumber(value) ? `${meta?.batch > 1 ? 'median rank' : 'rank'} ${Number(value.toFixed(1))} of ${meta?.lineup?.size ?? 100}` : DASH), fill: (value, first, meta) => standing(value, meta),
    marks: (meta, first, scores) => [{ name: 'chance', at: 0.5, text: `rank ${((meta?.lineup?.size ?? 100) + 1) / 2}` }, ...pickedOut(meta, scores)] },
  { id: 'psnr', title: 'How close is the stolen picture', term: 'PSNR', unit: 'dB', read: (scores) => scores.psnr, text: (value) => fixed(value, 1),
    fill: (value) => value / PSNR_TOP, marks: (meta) => baselineMarks(meta, 'psnr', 1) },
  { id: 'ssim', title: 'How alike are the shapes', term: 'SSIM', unit: '', read: (scores) => scores.ssim, text: (value) => fixed(value, 2),
    fill: (value) => value, marks: (meta) => baselineMarks(meta, 'ssim', 2) },
  { id: 'lpips', title: 'How different it looks', term: 'LPIPS', unit: '', read: (scores) => scores.lpips, text: (value, meta) => (meta?.lpips && !meta.lpips.net ? 'off' : fixed(value, 2)),
    hint: (meta) => meta?.lpips?.words ?? '', detail: (meta) => (meta?.lpips?.net ? `, ${meta.lpips.net}` : ''), fill: (value) => 1 - value, marks: (meta) => (meta?.lpips && !meta.lpips.net ? [{ name: 'why, and how to get it: in the table below', text: '' }] : baselineMarks(meta, 'lpips', 2)) },
  { id: 'label', title: 'Are the classes guessed', term: 'labels', unit: '', read: (scores) => scores.label_accuracy,
    text: (value, meta) => (meta?.labels_granted ? 'given' : isNumber(value) ? `${Math.round(value * (meta?.batch ?? 1))} of ${meta?.batch ?? 1}` : DASH), fill: (value) => value,
    marks: (meta) => (meta?.class_names?.length ? [{ name: 'blind guess', at: 1 / meta.class_names.length, text: `${Math.round(100 / meta.class_names.length)} %` }] : []) },
  { id: 'loss', title: 'Does its gradient match', term: 'distance', unit: '', read: (scores) => scores.loss, text: (value) => short(value),
    fill: (value, first, meta) => (value > 0 ? Math.log10(Math.min(first, nothing(meta) ?? Infinity) / value) / DECADES : 1),
    marks: (meta, first) => [['start', first], ['no gradient at all', nothing(meta)]].flatMap(([name, value]) => (isNumber(value) ? [{ name, text: short(value) }] : [])) },
];

/** Where distances are squared: that of a gradient of zeros, which a small update makes small too. */
function nothing(meta) {
  return /squared/.test(meta?.loss_name ?? '') && isNumber(meta?.received?.norm) ? meta.received.norm ** 2 : null;
}

function baselineMarks(meta, name, digits) {
  return [['grey', 'grey'], ['mean', 'mean picture'], ['same_class', 'same class']].flatMap(([id, words], rank) => {
    const value = meta?.baselines?.[id]?.[name];
    return isNumber(value) ? [{ name: words, at: GAUGES.find((gauge) => gauge.id === name).fill(value), text: fixed(value, digits), rank }] : [];
  });
}

/** Full at rank 1, empty at the last rank, half at chance. */
function standing(rank, meta) {
  const size = meta?.lineup?.size ?? 100;
  return size > 1 ? (size - rank) / (size - 1) : 0;
}

function pickedOut(meta, scores) {
  const batch = meta?.batch ?? 1;
  return batch > 1 && isNumber(scores?.identified) ? [{ name: 'picked out', text: `${Math.round(scores.identified * batch)} of ${batch}` }] : [];
}

function layGauges(host) {
  host.replaceChildren(...GAUGES.map(({ id, title }) => {
    const gauge = element('div', `gle-gauge gle-gauge-${id}`), head = element('p', 'gle-gauge-head'), name = element('span', 'gle-gauge-name', `${title} `);
    name.append(element('small'));
    head.append(name, element('b', 'gle-value', DASH));
    const bar = element('div', 'gle-bar');
    bar.append(element('i', 'gle-fill'));
    gauge.append(head, bar, element('p', 'gle-marks'));
    return gauge;
  }));
}

function fillGauges(host, { scores, meta, first }) {
  GAUGES.forEach((gauge, place) => {
    const [head, bar, legend] = host.children[place].children, value = gauge.read(scores), number = head.lastElementChild;
    const text = gauge.text(value, meta), level = isNumber(value) ? clamp(gauge.fill(value, first, meta), 0, 1) : 0, hint = gauge.hint?.(meta) ?? '';
    if (head.title !== hint) head.title = hint;
    const words = `${gauge.term}${gauge.detail?.(meta) ?? ''}`, term = words && (host.closest('.gle-compare') ? words : `(${words})`), small = head.firstElementChild.lastElementChild;
    if (small.textContent !== term) small.textContent = term;
    if (number.dataset.text !== text) {
      number.dataset.text = number.textContent = text;
      if (gauge.unit && text !== DASH) number.append(element('small', '', ` ${gauge.unit}`));
      bar.firstElementChild.style.transform = `scaleX(${Number.isFinite(level) ? level.toFixed(4) : 0})`;
    }
    markGauge(bar, legend, gauge.marks(meta, first, scores));
  });
}

function markGauge(bar, legend, marks) {
  const key = JSON.stringify(marks);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  bar.querySelectorAll('.gle-tick').forEach((tick) => tick.remove());
  legend.replaceChildren(...marks.map(({ name, at, text, rank = 0 }) => {
    const entry = element('span', '', `${name} `);
    if (isNumber(at)) { // else it is a word beside the bar
      const tick = element('i', 'gle-tick');
      entry.dataset.rank = tick.dataset.rank = rank;
      tick.style.left = `${(100 * clamp(at, 0, 1)).toFixed(2)}%`;
      bar.append(tick);
    }
    entry.append(element('b', '', text));
    return entry;
  }));
}

/** The verdict on the run, or, where somebody looks back, on the frame they see. */
function tellVerdict(host, record, seen = null) {
  const { end, state, frames } = record, part = (name) => host.querySelector(name), back = seen && !isAnswer(record, seen);
  const unready = (back ? seen : !end && frames[frames.length - 1])?.note?.layer; // on its way from layer to layer it has no picture yet
  const verdict = unready ? null : back ? seen.verdict : record.verdict, over = end && !back;
  const when = back ? 'At this step: ' : end ? 'In the end: ' : 'So far: ', failed = state.status === 'failed', waiting = state.status === 'queued' || !state.status;
  const words = {
    word: failed ? 'no result' : verdict?.word ?? (over ? 'no verdict' : 'verdict'),
    why: failed ? state.message ?? 'The worker gave no reason. Try again with the same settings.'
      : verdict ? when + (verdict.why ?? '') : over ? '' : back ? 'No picture to judge yet at this step.' : waiting ? 'Comes when the attack has run.' : 'Comes when the attack is over.',
    meaning: failed ? '' : verdict ? verdict.meaning ?? '' : over ? 'The run ended before there was a picture to judge.' : 'It asks whether the stolen picture could be picked out of a line-up, and whether it is better than pictures that know nothing.', rule: failed ? '' : verdict?.rule ?? '',
  };
  const key = JSON.stringify(words);
  if (host.dataset.key === key) return;
  Object.assign(host.dataset, { key, word: failed ? 'failed' : verdict?.word ?? '' });
  part('.gle-word').textContent = words.word;
  part('.gle-why').textContent = words.why;
  part('.gle-meaning').textContent = words.meaning;
  part('.gle-rule').hidden = !words.rule;
  part('.gle-rule p').textContent = words.rule;
}
