// The figure of a beat: values of a result file as a chart, or as bars if their names are long, with a table of the numbers.
import { element } from '../dom.js';
import { short } from '../live/words.js';
import { barsOf, Chart, tableOf } from './chart.js';
import { say } from './phrases.js';

const LONG = 12; // letters of a name on an axis

/**
 * @typedef {object} Figure
 * @property {string} x_title
 * @property {string[]} y_titles
 * @property {string} y_unit
 * @property {[string | number, number[]][]} points
 * @property {number | null} line
 * @property {string} line_title
 * @property {string} file
 * @property {boolean} [joined] false: the values stand side by side, and no line joins them
 */

export class FigureBox {
  /** @param {Figure} figure */
  constructor(figure) {
    this.root = element('section', 'gle-figure');
    const plot = plotOf(figure);
    const long = plot.lines && plot.series.length === 1 && plot.categories?.some((name) => name.length > LONG);
    this.chart = long ? null : new Chart(this.root, plot);
    if (long) this.root.append(barsOf(plot, figure.y_unit));
    const rows = figure.points.map(([x, values]) => [String(x), ...values]);
    this.root.append(
      tableOf(say('asNumbers'), [figure.x_title, ...figure.y_titles], rows),
      element('p', 'gle-foot', say('drawnFrom', { file: figure.file })),
    );
  }

  destroy() {
    this.chart?.destroy();
    this.root.remove();
  }
}

/**
 * A figure as a chart: what is on its lower axis are names, one for each value; several values of a name are dots without a line.
 * @param {Figure} figure
 * @returns {import('./chart.js').Plot}
 */
export function plotOf({ x_title: xTitle, y_titles: titles, y_unit: unit, points, line, line_title: lineTitle, joined = true }) {
  const names = [...new Set(points.map(([x]) => x))];
  const categories = names.map((name) => (typeof name === 'number' ? short(name).replace(/^1\.0·/, '') : name));
  const positive = points.flatMap(([, all]) => all).filter((value) => value > 0);
  const log = positive.length > 1 && Math.max(...positive) / Math.min(...positive) > 100;
  const yTitle = titles.length > 1 ? unit : unit ? `${titles[0]} (${unit})` : titles[0];
  return {
    label: `${yTitle}; ${xTitle}: ${categories.join(', ')}`,
    series: titles.map((title, place) => ({ title, points: points.map(([x, all]) => [names.indexOf(x), all[place]]) })),
    ...{ categories, xTitle, yTitle, log, dots: true, lines: joined && names.length === points.length },
    line: line === null ? null : { at: line, title: lineTitle },
    height: 320,
  };
}
