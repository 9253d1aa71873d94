// The gauges: plain words first, the number large, and what pictures that know nothing would have scored.
import { childrenOf, element } from '../dom.js';
import { clamp, DASH, fixed, isNumber, short } from './words.js';

const PSNR_TOP = 60; // dB that fill the bar
const DECADES = 6; // of the gradient distance below that of the start

/**
 * @typedef {import('./events.js').MetaEvent} MetaEvent
 * @typedef {Omit<import('./events.js').FrameScores, 'loss'> & { loss?: number | null }} Scores
 * @typedef {{ name: string, text: string, at?: number, rank?: number }} Mark what stands below the bar, and, with `at`, as a tick in it
 * @typedef {object} Gauge
 * @property {string} id
 * @property {string} title
 * @property {string} term
 * @property {string} [unit]
 * @property {(scores: Scores) => number | null | undefined} read
 * @property {(value: unknown, meta: MetaEvent | null) => string} text
 * @property {(value: number, first: unknown, meta: MetaEvent | null) => number} fill
 * @property {(meta: MetaEvent | null, first: unknown, scores: Scores) => Mark[]} marks
 * @property {(meta: MetaEvent | null) => string} [hint]
 * @property {(meta: MetaEvent | null) => string} [detail]
 */

/** @param {MetaEvent | null} meta */
const crowd = (meta) => meta?.lineup?.size ?? 100;

/** @param {MetaEvent | null} meta */
const lpipsOff = (meta) => Boolean(meta?.lpips && !meta.lpips.net);

/** Whole per cents, and of less than one the first digit. @param {number} value */
const percent = (value) => (value < 1 ? Number(value.toPrecision(1)) : Math.round(value));

/** @type {Gauge[]} */
export const GAUGES = [
  {
    id: 'rank',
    title: 'Could it be picked out of a line-up of 100?',
    term: '',
    read: (scores) => scores.rank,
    text: (value, meta) =>
      isNumber(value) ? `${(meta?.batch ?? 1) > 1 ? 'median rank' : 'rank'} ${Number(value.toFixed(1))} of ${crowd(meta)}` : DASH,
    fill: (value, _first, meta) => standing(value, meta),
    marks: (meta, _first, scores) => [
      { name: 'random', at: 0.5, text: `rank ${(crowd(meta) + 1) / 2}` },
      ...pickedOut(meta, scores),
      ...baselineRanks(meta),
    ],
  },
  {
    id: 'psnr',
    title: 'How close is the stolen picture',
    term: 'PSNR',
    unit: 'dB',
    read: (scores) => scores.psnr,
    text: (value) => fixed(value, 1),
    fill: (value) => value / PSNR_TOP,
    marks: (meta) => baselineMarks(meta, 'psnr', 1, (value) => value / PSNR_TOP),
  },
  {
    id: 'ssim',
    title: 'How alike are the shapes',
    term: 'SSIM',
    read: (scores) => scores.ssim,
    text: (value) => fixed(value, 2),
    fill: (value) => value,
    marks: (meta) => baselineMarks(meta, 'ssim', 2, (value) => value),
  },
  {
    id: 'lpips',
    title: 'How different it looks',
    term: 'LPIPS',
    read: (scores) => scores.lpips,
    text: (value, meta) => (lpipsOff(meta) ? 'off' : fixed(value, 2)),
    hint: (meta) => meta?.lpips?.words ?? '',
    detail: (meta) => (meta?.lpips?.net ? `, ${meta.lpips.net}` : ''),
    fill: (value) => 1 - value,
    marks: (meta) =>
      lpipsOff(meta)
        ? [{ name: 'why, and how to get it: in the table below', text: '' }]
        : baselineMarks(meta, 'lpips', 2, (value) => 1 - value),
  },
  {
    id: 'label',
    title: 'Are the classes guessed',
    term: 'labels',
    read: (scores) => scores.label_accuracy,
    text: (value, meta) => {
      if (meta?.labels_granted) return 'given';
      return isNumber(value) ? `${Math.round(value * (meta?.batch ?? 1))} of ${meta?.batch ?? 1}` : DASH;
    },
    fill: (value) => value,
    marks: (meta) => {
      const classes = meta?.classes ?? meta?.class_names?.length;
      return classes ? [{ name: 'blind guess', at: 1 / classes, text: `${percent(100 / classes)} %` }] : [];
    },
  },
  {
    id: 'loss',
    title: 'Does its gradient match',
    term: 'distance',
    read: (scores) => scores.loss,
    text: (value) => short(value),
    fill: (value, first, meta) => matched(value, first, meta),
    marks: (meta, first) => {
      const known = /** @type {[string, unknown][]} */ ([
        ['start', first],
        ['no gradient at all', distanceOfZeros(meta)],
      ]);
      return known.filter(([, value]) => isNumber(value)).map(([name, value]) => ({ name, text: short(value) }));
    },
  },
];

/**
 * How much smaller than at the start the distance is, in decades: full at six of them, empty where the start is not known.
 * @param {number} value
 * @param {unknown} first
 * @param {MetaEvent | null} meta
 */
function matched(value, first, meta) {
  if (!(value > 0)) return 1;
  return isNumber(first) ? Math.log10(Math.min(first, distanceOfZeros(meta) ?? Infinity) / value) / DECADES : 0;
}

/**
 * Where distances are squared: that of a gradient of zeros. It is 1 where distances are relative; else a small update makes it small too.
 * @param {MetaEvent | null} meta
 */
function distanceOfZeros(meta) {
  const norm = meta?.received?.norm;
  const name = meta?.loss_name ?? '';
  if (/relative/.test(name)) return 1;
  return /squared/.test(name) && isNumber(norm) ? norm ** 2 : null;
}

/**
 * @param {MetaEvent | null} meta
 * @param {'psnr' | 'ssim' | 'lpips'} score
 * @param {number} digits
 * @param {(value: number) => number} fill
 * @returns {Mark[]}
 */
function baselineMarks(meta, score, digits, fill) {
  const names = [
    ['grey', 'grey'],
    ['mean', 'mean picture'],
    ['same_class', 'same class'],
  ];
  return names.flatMap(([id, name], rank) => {
    const value = meta?.baselines?.[id]?.[score];
    return isNumber(value) ? [{ name, at: fill(value), text: fixed(value, digits), rank }] : [];
  });
}

/**
 * Where two pictures land in the line-up that know of the private one its colour, or all but its details.
 * @param {MetaEvent | null} meta
 * @returns {Mark[]}
 */
function baselineRanks(meta) {
  const names = [
    ['mean_colour', 'mean colour'],
    ['blurred', 'out of focus'],
  ];
  return names.flatMap(([id, name]) => {
    const rank = meta?.baselines?.[id]?.rank;
    return isNumber(rank) ? [{ name, at: standing(rank, meta), text: `rank ${Number(rank.toFixed(1))}` }] : [];
  });
}

/**
 * Full at rank 1, empty at the last rank, half where ranks are random.
 * @param {number} rank
 * @param {MetaEvent | null} meta
 */
function standing(rank, meta) {
  const size = crowd(meta);
  return size > 1 ? (size - rank) / (size - 1) : 0;
}

/**
 * @param {MetaEvent | null} meta
 * @param {Scores} scores
 * @returns {Mark[]}
 */
function pickedOut(meta, scores) {
  const batch = meta?.batch ?? 1;
  return batch > 1 && isNumber(scores.identified)
    ? [{ name: 'picked out', text: `${Math.round(scores.identified * batch)} of ${batch}` }]
    : [];
}

/** @param {HTMLElement} host */
export function layGauges(host) {
  const gauges = GAUGES.map(({ id, title }) => {
    const gauge = element('div', `gle-gauge gle-gauge-${id}`);
    const head = element('p', 'gle-gauge-head');
    const name = element('span', 'gle-gauge-name', `${title} `);
    name.append(element('small', ''));
    head.append(name, element('b', 'gle-value', DASH));
    const bar = element('div', 'gle-bar');
    bar.append(element('i', 'gle-fill'));
    gauge.append(head, bar, element('p', 'gle-marks'));
    return gauge;
  });
  host.replaceChildren(...gauges);
}

/**
 * @param {HTMLElement} host
 * @param {{ scores: Scores, meta: MetaEvent | null, first: unknown }} told `first`: the gradient distance at the start
 */
export function fillGauges(host, { scores, meta, first }) {
  const compact = host.closest('.gle-compare') !== null;
  GAUGES.forEach((gauge, place) => {
    const [head, bar, legend] = childrenOf(host.children[place]);
    const [name, number] = childrenOf(head);
    const value = gauge.read(scores);
    const text = gauge.text(value, meta);
    const hint = gauge.hint?.(meta) ?? '';
    if (head.title !== hint) head.title = hint;
    const words = `${gauge.term}${gauge.detail?.(meta) ?? ''}`;
    const [small] = childrenOf(name);
    const term = words && (compact ? words : `(${words})`);
    if (small.textContent !== term) small.textContent = term;
    if (number.dataset.text !== text) {
      number.dataset.text = number.textContent = text;
      if (gauge.unit && text !== DASH) number.append(element('small', '', ` ${gauge.unit}`));
    }
    const level = isNumber(value) ? clamp(gauge.fill(value, first, meta), 0, 1) : 0;
    const full = Number.isFinite(level) ? level.toFixed(4) : '0';
    if (bar.dataset.full !== full) {
      bar.dataset.full = full; // not with the text: it may stay as it is while the bar does not
      childrenOf(bar)[0].style.transform = `scaleX(${full})`;
    }
    markGauge(bar, legend, gauge.marks(meta, first, scores));
  });
}

/**
 * @param {HTMLElement} bar
 * @param {HTMLElement} legend
 * @param {Mark[]} marks
 */
function markGauge(bar, legend, marks) {
  const key = JSON.stringify(marks);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  bar.querySelectorAll('.gle-tick').forEach((tick) => tick.remove());
  const entries = marks.map(({ name, at, text, rank = 0 }) => {
    const entry = element('span', '', `${name} `);
    if (isNumber(at)) {
      // else it is a word beside the bar
      const tick = element('i', 'gle-tick');
      entry.dataset.rank = tick.dataset.rank = String(rank);
      tick.style.left = `${(100 * clamp(at, 0, 1)).toFixed(2)}%`;
      bar.append(tick);
    }
    entry.append(element('b', '', text));
    return entry;
  });
  legend.replaceChildren(...entries);
}
