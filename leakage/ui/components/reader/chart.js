// A chart as SVG in real pixels: it is drawn again when its container changes size, and describes itself in words for a screen reader.
import { element } from '../dom.js';
import { isNumber, short } from '../live/words.js';
import { scaleOf } from './scales.js';

const SVG = 'http://www.w3.org/2000/svg';
const MARKS = ['●', '■', '▲', '◆']; // distinguishable without colours
const LETTER = 0.58; // of the type's size: the width of a letter, about

/**
 * @typedef {[number, number | null]} Point
 * @typedef {{ title: string, points: Point[], mark?: string }} Series `mark`: another sign than that of its number
 * @typedef {object} Plot
 * @property {string} label what it shows, for a screen reader
 * @property {Series[]} series
 * @property {string} xTitle
 * @property {string} yTitle
 * @property {string[]} [categories] names of x = 0, 1, 2 ...; without them x is a number
 * @property {{ at: number, title: string } | null} [line] a level that all values are compared with
 * @property {boolean} [log]
 * @property {boolean} [dots] every point is a mark; else a line only
 * @property {boolean} [lines] points are joined
 * @property {number[]} [tones] colours of the series, by number
 * @property {{ title: string, mark: string, tone?: number }[]} [key] what the marks mean; without it, a mark for each series
 * @property {number} [height] pixels
 */

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function shape(name, attributes, text = '') {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

export class Chart {
  /**
   * @param {HTMLElement} host
   * @param {Plot} plot
   */
  constructor(host, plot) {
    this.host = host;
    this.plot = plot;
    this.count = Infinity; // points of each series that are shown
    this.root = element('div', 'gle-chart');
    this.area = shape('svg', { role: 'img', 'aria-label': plot.label });
    this.root.append(...this.heading(), this.area);
    host.append(this.root);
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.root);
    this.draw();
  }

  heading() {
    const { series, yTitle, dots } = this.plot;
    const head = element('p', 'gle-chart-head');
    head.append(element('span', '', yTitle));
    const each = series.map(({ title }, place) => ({ title, mark: dots ? this.mark(place) : '', tone: this.tone(place) }));
    for (const { title, mark, tone } of this.plot.key ?? (series.length > 1 ? each : [])) {
      const item = element('span', 'gle-key-item', title);
      if (tone !== undefined) item.dataset.tone = String(tone);
      if (mark) item.prepend(element('i', '', `${mark} `));
      head.append(item);
    }
    return [head];
  }

  /** @param {number} place */
  mark(place) {
    return this.plot.series[place].mark ?? MARKS[place % MARKS.length];
  }

  /** @param {number} place */
  tone(place) {
    return (this.plot.tones ?? [0, 1, 2, 3])[place] ?? 0;
  }

  draw() {
    const { plot, root, area } = this;
    const width = Math.max(160, root.clientWidth || 0);
    const size = parseFloat(getComputedStyle(root).fontSize) || 13;
    const height = plot.height ?? Math.max(200, 15 * size);
    const edge = { left: 3.6 * size, right: 1.4 * size, top: 0.8 * size, bottom: this.slanted(width, size) ? 6 * size : 2.9 * size };
    const all = plot.series.flatMap(({ points }) => points);
    const y = scaleOf([...all.map(([, value]) => value), plot.line?.at], { from: height - edge.bottom, to: edge.top, log: plot.log });
    const x = this.across(all, edge.left, width - edge.right);
    this.scales = { x, y, size };
    area.setAttribute('viewBox', `0 0 ${width} ${height}`);
    area.setAttribute('width', String(width));
    area.setAttribute('height', String(height));
    this.curves = plot.series.map((_, place) => shape('g', { class: 'gle-curve', 'data-tone': this.tone(place) }));
    area.replaceChildren(
      ...y.ticks.flatMap(({ value, text }) => [
        shape('line', { class: 'gle-grid', x1: edge.left, x2: width - edge.right, y1: y.at(value), y2: y.at(value) }),
        shape('text', { class: 'gle-tick-text', x: edge.left - 0.4 * size, y: y.at(value) + 0.35 * size, 'text-anchor': 'end' }, text),
      ]),
      ...this.bottom({ width, height, edge }),
      ...this.level(width - edge.right, edge.left),
      ...this.curves,
    );
    this.upTo(this.count);
  }

  /**
   * @param {number} width
   * @param {number} size of the type
   */
  slanted(width, size) {
    const { categories = [] } = this.plot;
    return (
      Math.max(...categories.map((name) => name.length), 0) * LETTER * size > (0.9 * (width - 4.4 * size)) / Math.max(1, categories.length)
    );
  }

  /**
   * @param {Point[]} points
   * @param {number} from
   * @param {number} to
   */
  across(points, from, to) {
    const { categories } = this.plot;
    if (!categories) return scaleOf([0, ...points.map(([value]) => value)], { from, to, count: 5 });
    const room = (to - from) / Math.max(1, categories.length);
    return {
      at: (/** @type {number} */ value) => from + room * (value + 0.5),
      ticks: categories.map((text, value) => ({ value, text })),
    };
  }

  /** @param {{ width: number, height: number, edge: { left: number, right: number, top: number, bottom: number } }} room */
  bottom({ width, height, edge }) {
    const { x, size } = /** @type {NonNullable<Chart['scales']>} */ (this.scales);
    const slant = this.slanted(width, size);
    const under = height - edge.bottom + 1.35 * size;
    return [
      ...x.ticks.map(({ value, text }) =>
        shape(
          'text',
          slant
            ? {
                class: 'gle-tick-text',
                'text-anchor': 'end',
                transform: `translate(${x.at(value) + 0.3 * size} ${under - 0.3 * size}) rotate(-38)`,
              }
            : { class: 'gle-tick-text', 'text-anchor': 'middle', x: x.at(value), y: under },
          text,
        ),
      ),
      shape(
        'text',
        { class: 'gle-axis', x: (edge.left + width - edge.right) / 2, y: height - 0.3 * size, 'text-anchor': 'middle' },
        this.plot.xTitle,
      ),
    ];
  }

  /**
   * @param {number} right
   * @param {number} left
   */
  level(right, left) {
    const { line, log } = this.plot;
    const { y, size } = /** @type {NonNullable<Chart['scales']>} */ (this.scales);
    if (!line || !isNumber(line.at) || (log && line.at <= 0)) return [];
    const at = y.at(line.at);
    const wide = LETTER * size * (line.title.length + 2);
    const begin = this.clearance(at, left, left + wide) > this.clearance(at, right - wide, right);
    const words = { class: 'gle-axis', x: begin ? left + 0.4 * size : right, y: at - 0.35 * size, 'text-anchor': begin ? 'start' : 'end' };
    return [shape('line', { class: 'gle-level', x1: left, x2: right, y1: at, y2: at }), shape('text', words, line.title)];
  }

  /**
   * How far all curves stay away from a height, between two places.
   * @param {number} height pixels
   * @param {number} from
   * @param {number} to
   */
  clearance(height, from, to) {
    const { x, y } = /** @type {NonNullable<Chart['scales']>} */ (this.scales);
    const near = this.plot.series.flatMap(({ points }) => points.filter(([across]) => x.at(across) >= from && x.at(across) <= to));
    const heights = near.map(([, value]) => value).filter((value) => isNumber(value) && (!this.plot.log || value > 0));
    return Math.min(...heights.map((value) => Math.abs(y.at(Number(value)) - height)));
  }

  /**
   * Show the first points only: a curve must not tell what the picture does not show yet.
   * @param {number} count
   */
  upTo(count) {
    this.count = count;
    if (!this.scales) return;
    const { x, y, size } = this.scales;
    const { series, dots = false, lines = true, log } = this.plot;
    series.forEach(({ points }, place) => {
      const drawn = points.slice(0, count).map(([across, up]) => (isNumber(up) && (!log || up > 0) ? [x.at(across), y.at(up)] : null));
      let path = '';
      drawn.forEach((spot, at) => {
        if (spot) path += `${at && drawn[at - 1] ? 'L' : 'M'}${spot[0].toFixed(1)} ${spot[1].toFixed(1)}`;
      });
      const last = drawn.filter((spot) => spot !== null).slice(-1);
      const marked = dots ? drawn.filter((spot) => spot !== null) : last;
      const mark = dots ? this.mark(place) : MARKS[0];
      this.curves?.[place].replaceChildren(
        ...(lines ? [shape('path', { d: path, fill: 'none' })] : []),
        ...marked.map(([left, top]) => shape('text', { x: left, y: top + 0.36 * size, 'text-anchor': 'middle' }, mark)),
      );
    });
  }

  destroy() {
    this.sizes.disconnect();
    this.root.remove();
  }
}

/**
 * One value for each of several long names, as bars below each other.
 * @param {Plot} plot
 * @param {string} unit
 */
export function barsOf({ label, series, categories = [], yTitle }, unit) {
  const list = element('ul', 'gle-bars');
  list.setAttribute('aria-label', label);
  const most = Math.max(...series[0].points.map(([, value]) => value ?? 0));
  series[0].points.forEach(([name, value]) => {
    const row = element('li', '');
    const bar = element('i', '');
    bar.style.width = `${(100 * (value ?? 0)) / (most || 1)}%`;
    const track = element('span', 'gle-bar-track');
    track.append(bar);
    row.append(element('span', '', categories[name]), track, element('b', '', `${short(value)} ${unit}`.trim()));
    list.append(row);
  });
  const box = element('div', '');
  box.append(element('p', 'gle-chart-head', yTitle), list);
  return box;
}

/**
 * The same as a table, folded away.
 * @param {string} summary
 * @param {string[]} heads
 * @param {(string | number | null)[][]} rows
 */
export function tableOf(summary, heads, rows) {
  const details = element('details', 'gle-numbers');
  const table = element('table', '');
  const line = (/** @type {'th' | 'td'} */ tag, /** @type {(string | number | null)[]} */ cells) => {
    const row = element('tr', '');
    row.append(
      ...cells.map((cell, place) => {
        const made = element(tag === 'td' && !place ? 'th' : tag, '', typeof cell === 'number' ? short(cell) : (cell ?? '–'));
        if (made.tagName === 'TH') made.setAttribute('scope', tag === 'th' ? 'col' : 'row');
        return made;
      }),
    );
    return row;
  };
  const [top, body] = [element('thead', ''), element('tbody', '')];
  top.append(line('th', heads));
  body.append(...rows.map((row) => line('td', row)));
  table.append(top, body);
  const wide = element('div', 'gle-wide');
  wide.tabIndex = 0;
  wide.setAttribute('role', 'region');
  wide.setAttribute('aria-label', summary);
  wide.append(table);
  details.append(element('summary', '', summary), wide);
  return details;
}
