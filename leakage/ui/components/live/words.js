// Numbers and states as words. Everything tolerates null: no "NaN" and no "undefined" ever reaches the page.
const DASH = '–';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const fixed = (value, digits) => (isNumber(value) ? value.toFixed(digits).replace(/^-(?=[0.]+$)/, '') : DASH); // never -0.00
const whole = (value) => (isNumber(value) ? Math.round(value).toLocaleString('en') : DASH);

/** A few significant digits for numbers of any size: 3.21, 0.0123, 4.5·10⁻⁷. */
function short(value, digits = 3) {
  if (!isNumber(value)) return DASH;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1000) return whole(value);
  if (size >= 0.001) return Number(value.toPrecision(digits)).toString();
  const [front, power] = value.toExponential(1).split('e');
  return `${front}·10${superscript(Number(power))}`;
}

const superscript = (power) => [...String(power)].map((sign) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(sign)]).join('');

function weight(bytes) {
  if (!isNumber(bytes)) return '';
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${whole(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function duration(seconds) {
  if (!isNumber(seconds)) return '';
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

const decibel = (value) => (isNumber(value) ? `${value.toFixed(1)} dB` : DASH);

function stateWords({ status, position, wait, message } = {}) {
  const about = isNumber(wait) ? `, about ${duration(Math.max(1, Math.round(wait)))}` : '';
  if (status === 'queued') {
    const before = isNumber(position) ? position - 1 : 0; // 1 is the next
    return before < 1 ? `Waiting: yours is next${about}` : `Waiting: ${before} ${before === 1 ? 'run' : 'runs'} before yours${about}`;
  }
  if (status === 'failed') return 'The run stopped early';
  return { running: 'Attack running', done: 'Attack finished', cancelled: 'Stopped: this is the best picture so far' }[status] ?? message ?? 'Opening';
}

/** The words of a note such as {start: 2, rule: "sign"}: "start 2, rule sign". What has a place of its own on the page is left out. */
const ELSEWHERE = ['event', 'label certainty', 'equations', 'unknowns', 'rank', 'condition', 'residual', 'layer', 'explanations', 'distance of the picture', 'distance of the twin', 'start from the twin', 'end from the twin'];
const noteWords = (note) =>
  Object.entries(note ?? {}).filter(([name, value]) => !ELSEWHERE.includes(name) && value !== null && typeof value !== 'object').map(([name, value]) => `${name.replaceAll('_', ' ')} ${typeof value === 'number' ? short(value) : value}`).join(', ');

/** What the curves say, for those who hear the page. */
function curveWords(record) {
  const { frames, meta } = record;
  if (!frames.length) return 'Curves: no values yet';
  const first = frames[0], last = frames[frames.length - 1], grey = meta?.baselines?.grey?.psnr;
  return `Curves over ${whole(last.step)} steps: gradient distance from ${short(first.loss)} to ${short(last.loss)}, `
    + `PSNR from ${decibel(first.scores?.psnr)} to ${decibel(last.scores?.psnr)}${isNumber(grey) ? `; a grey picture scores ${decibel(grey)}` : ''}.`;
}
