// The curves as data for Plotly: PSNR above, gradient distance below, over the steps of the attack. Knows no page.
import { isNumber, superscript } from './words.js';

/**
 * @typedef {import('./record.js').Frame} Frame
 * @typedef {import('./record.js').RunRecord} RunRecord
 * @typedef {import('./theme.js').Theme} Theme
 */

/**
 * Values over steps; where the steps start again (another start of the attack) the line is interrupted.
 * @param {Frame[]} frames
 * @param {(frame: Frame) => number | null} read
 */
export function series(frames, read) {
  /** @type {number[]} */
  const x = [];
  /** @type {(number | null)[]} */
  const y = [];
  frames.forEach((frame, place) => {
    if (place && frame.step < frames[place - 1].step) {
      x.push(frame.step);
      y.push(null);
    }
    x.push(frame.step);
    y.push(read(frame));
  });
  return { x, y };
}

/**
 * Whole multiples of `step` around all values, so that the axis moves seldom.
 * @param {unknown[]} values
 * @param {number} step
 * @returns {[number, number]}
 */
export function range(values, step) {
  const known = values.filter(isNumber);
  if (!known.length) return [0, step];
  const low = Math.floor((Math.min(...known) - 0.15 * step) / step) * step;
  return [low, Math.ceil((Math.max(...known) + 0.15 * step) / step) * step];
}

/**
 * Ticks in our own type: Plotly sets powers larger than other numbers.
 * @param {[number, number]} decades
 */
export function powers([low, high]) {
  const stride = Math.max(1, Math.ceil((high - low) / 4));
  const ticks = [];
  for (let power = low; power <= high; power += stride) ticks.push(power);
  const text = (/** @type {number} */ power) =>
    Math.abs(power) < 3 ? String(Number((10 ** power).toFixed(2))) : `10${superscript(power)}`;
  return { tickvals: ticks.map((power) => 10 ** power), ticktext: ticks.map(text) };
}

/**
 * Traces and layout of both curves.
 * @param {Pick<RunRecord, 'frames' | 'meta' | 'end'>} record
 * @param {Theme} theme
 */
export function figure({ frames, meta, end }, theme) {
  const psnr = series(frames, (frame) => frame.scores.psnr ?? null);
  const loss = series(frames, (frame) => (isNumber(frame.loss) && frame.loss > 0 ? frame.loss : null));
  const grey = meta?.baselines?.grey?.psnr;
  const last = Math.max(1, ...frames.map((frame) => frame.step ?? 0));
  const decades = range(loss.y.filter(isNumber).map(Math.log10), 1);
  return {
    traces: [
      { ...line(psnr, theme.psnr), hovertemplate: 'step %{x}: PSNR %{y:.1f} dB<extra></extra>' },
      { ...line(loss, theme.loss), yaxis: 'y2', hovertemplate: 'step %{x}: %{y:.3g}<extra></extra>' },
    ],
    layout: {
      ...frameOf(theme),
      ...axes(theme, { last: end ? last : Math.max(last, meta?.steps ?? 0), closeness: range([...psnr.y, grey], 5), decades }),
      annotations: [
        heading('closeness to the private pictures (PSNR, dB)', 1.01, theme.warm),
        heading(meta?.loss_name ? `${meta.loss_name} (logarithmic)` : 'gradient distance (logarithmic)', 0.43, theme.cool),
        ...(isNumber(grey) ? [greyWords(grey, theme)] : []),
      ],
      shapes: isNumber(grey) ? [greyLine(grey, theme)] : [],
    },
  };
}

/**
 * @param {{ x: number[], y: (number | null)[] }} values
 * @param {string} color
 */
const line = (values, color) => ({ ...values, type: 'scatter', mode: 'lines', line: { color, width: 2 }, connectgaps: false });

/** @param {Theme} theme */
const frameOf = (theme) => ({
  uirevision: 'keep',
  showlegend: false,
  autosize: true,
  dragmode: false,
  hovermode: 'closest',
  hoverdistance: 12,
  margin: { l: 40, r: 16, t: 22, b: 38 },
  paper_bgcolor: 'rgba(0,0,0,0)',
  plot_bgcolor: 'rgba(0,0,0,0)',
  font: { family: theme.font, size: 12, color: theme.text },
  hoverlabel: { bgcolor: theme.paper, bordercolor: theme.line, font: { color: theme.text, size: 12, family: theme.font } },
});

/**
 * @param {Theme} theme
 * @param {{ last: number, closeness: [number, number], decades: [number, number] }} ranges
 */
function axes(theme, { last, closeness, decades }) {
  const font = { size: 11, color: theme.soft };
  const axis = { gridcolor: theme.line, zeroline: false, fixedrange: true, tickfont: font, ticks: '', automargin: false };
  const title = { text: 'step of the attack', font, standoff: 6 };
  return {
    xaxis: { ...axis, anchor: 'y2', range: [0, last], showgrid: false, nticks: 7, ticklabelstandoff: 4, title },
    yaxis: { ...axis, domain: [0.58, 1], range: closeness, nticks: 5 },
    yaxis2: { ...axis, domain: [0, 0.42], type: 'log', range: decades, ...powers(decades) },
  };
}

/**
 * @param {string} text
 * @param {number} y
 * @param {string} color
 */
function heading(text, y, color) {
  return { text, x: 0, xref: 'paper', xanchor: 'left', y, yref: 'paper', yanchor: 'bottom', showarrow: false, font: { size: 12, color } };
}

/**
 * @param {number} y
 * @param {Theme} theme
 */
function greyWords(y, theme) {
  const font = { size: 11, color: theme.soft };
  return { text: 'grey picture', x: 1, xref: 'paper', xanchor: 'right', y, yref: 'y', yanchor: 'bottom', showarrow: false, font };
}

/**
 * @param {number} y
 * @param {Theme} theme
 */
function greyLine(y, theme) {
  return { type: 'line', xref: 'paper', x0: 0, x1: 1, yref: 'y', y0: y, y1: y, line: { color: theme.soft, width: 1.2, dash: 'dash' } };
}
