// Numbers and states as words. Everything tolerates null: no "NaN" and no "undefined" ever reaches the page.
export const DASH = '–';
// The words that stand for a verdict and name nothing seen, as leakage/spec/words.py has them:
export const NOT_SHOWN = 'not shown by this attack';
export const CUT_SHORT = 'stopped: no verdict';
export const INAPPLICABLE = 'does not apply';
export const REFUSED = 'refused';

/** @type {(value: unknown) => value is number} */
export const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** @type {(value: number, low: number, high: number) => number} */
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** @type {(value: unknown, digits: number) => string} */
export const fixed = (value, digits) => (isNumber(value) ? value.toFixed(digits).replace(/^-(?=[0.]+$)/, '') : DASH); // never -0.00

/** @type {(value: unknown) => string} */
export const whole = (value) => (isNumber(value) ? Math.round(value).toLocaleString('en') : DASH);

/**
 * A few significant digits for numbers of any size: 3.21, 0.0123, 4.5·10⁻⁷.
 * @param {unknown} value
 */
export function short(value, digits = 3) {
  if (!isNumber(value)) return DASH;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 999.5) return whole(value);
  if (size >= 0.001) return Number(value.toPrecision(digits)).toString();
  const [front, power] = value.toExponential(1).split('e');
  return `${front}·10${superscript(Number(power))}`;
}

/** @type {(power: number) => string} */
export const superscript = (power) => [...String(power)].map((sign) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(sign)]).join('');

/** @param {unknown} bytes */
export function weight(bytes) {
  if (!isNumber(bytes)) return '';
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${whole(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {unknown} seconds */
export function duration(seconds) {
  if (!isNumber(seconds)) return '';
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

/** @type {(value: unknown) => string} */
export const decibel = (value) => (isNumber(value) ? `${fixed(value, 1)} dB` : DASH);

/** @type {Record<string, string | undefined>} */
const STATES = { running: 'Attack running', done: 'Attack finished' };

/**
 * How a run stands; of one that has ended, how.
 * @param {Partial<import('./events.js').StateEvent>} [state]
 * @param {import('./events.js').Ending | null} [ending]
 */
export function stateWords({ status = '', position, message } = {}, ending = null) {
  if (ending) return ending.words;
  if (status === 'queued') {
    const before = isNumber(position) ? position - 1 : 0; // 1 is the next
    return before < 1 ? 'Waiting: yours is next' : `Waiting: ${before} ${before === 1 ? 'run' : 'runs'} before yours`;
  }
  if (status === 'failed' || status === 'cancelled')
    return [status === 'failed' ? 'Failed' : 'Stopped', message].filter(Boolean).join(': ');
  return STATES[status] ?? (message || 'Opening');
}

/**
 * That an attack found the picture sooner than it might have searched; empty of any other run.
 * @param {Pick<import('./record.js').RunRecord, 'end' | 'meta' | 'verdict'>} record
 */
export function solvedWords({ end, meta, verdict }) {
  const step = end?.step;
  const steps = meta?.steps;
  const early = isNumber(step) && isNumber(steps) && step > 0 && step < steps;
  const found = end?.ending?.how === 'answer' && verdict?.word === 'recognizable';
  return found && early ? `Solved after ${whole(step)} of ${whole(steps)} steps` : '';
}

// What of a note has a place of its own on the page.
const ELSEWHERE = new Set([
  ...[
    'event',
    'label rule',
    'label certainty',
    'equations',
    'unknowns',
    'rank',
    'condition',
    'residual',
    'layer',
    'explanations',
    'derivatives by',
  ],
  ...['distance of the picture', 'distance of the twin', 'start from the twin', 'end from the twin'],
]);

/** @type {Record<string, string | undefined>} */
const CALLED = { start: 'try' };

/**
 * The words of a note such as {start: 2, rule: "sign"}: "try 2, rule sign".
 * @param {{ [name: string]: unknown } | null | undefined} note
 */
export function noteWords(note) {
  const told = Object.entries(note ?? {}).filter(([name, value]) => !ELSEWHERE.has(name) && value !== null && typeof value !== 'object');
  return told
    .map(([name, value]) => `${CALLED[name] ?? name.replaceAll('_', ' ')} ${typeof value === 'number' ? short(value) : value}`)
    .join(', ');
}

/**
 * What the curves say, for those who hear the page.
 * @param {Pick<import('./record.js').RunRecord, 'frames' | 'meta'>} record
 */
export function curveWords({ frames, meta }) {
  if (!frames.length) return 'Curves: no values yet';
  const first = frames[0];
  const last = frames[frames.length - 1];
  const grey = meta?.baselines?.grey?.psnr;
  return (
    `Curves over ${whole(last.step)} steps: gradient distance from ${short(first.loss)} to ${short(last.loss)}, ` +
    `PSNR from ${decibel(first.scores?.psnr)} to ${decibel(last.scores?.psnr)}${isNumber(grey) ? `; a grey picture scores ${decibel(grey)}` : ''}.`
  );
}
