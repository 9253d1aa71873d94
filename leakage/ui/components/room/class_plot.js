// The choices of a class as dots: closeness (PSNR) over a setting, one dot for each phone, the median of each column, and the grey line.
import { element } from '../dom.js';
import { decibel, isNumber } from '../live/words.js';
import { Chart, tableOf } from '../reader/chart.js';
import { button } from '../reader/dots.js';
import { say } from '../reader/phrases.js';
import { placesOf } from '../reader/whatif.js';
import { BAND, choicesOf, classAxes, heapsOf, jitter, medianOf, placesWithMedian } from './class_choices.js';
import { phones, word } from './hall_phrases.js';

const HIT = 0.95; // half the height of a dot, in units of the type's size
const SMALLEST = 24; // pixels: the least width and height of a button (WCAG 2.5.8)
const FULL = ['●', '■', '▲', '◆', '★']; // distinguishable without colours
const HOLLOW = ['○', '□', '△', '◇', '☆'];

/**
 * @typedef {import('./class_choices.js').Choice} Choice
 * @typedef {import('./class_choices.js').Spot} Spot
 * @typedef {import('./class_choices.js').Heap} Heap
 * @typedef {import('../reader/whatif.js').Grid} Grid
 */

export class ClassPlot {
  /**
   * @param {Grid} grid
   * @param {Record<string, string>} names other names of the knobs
   * @param {(cell: number) => void} press
   */
  constructor(grid, names, press) {
    this.grid = grid;
    this.names = names;
    this.press = press;
    this.axes = classAxes(grid);
    /** @type {Choice[]} */
    this.choices = [];
    /** @type {Chart | null} */
    this.chart = null;
    /** @type {Map<string, HTMLButtonElement>} by column and rank: they stay, so that none loses the focus */
    this.buttons = new Map();
    /** @type {Spot[]} */
    this.spots = [];
    this.current = -1; // the cell that is shown
    this.root = element('div', 'gle-class-plot');
    this.layer = element('div', 'gle-class-layer');
    this.numbers = tableOf(word('tableOf'), [], []);
    /** @type {ResizeObserver | null} */
    this.sizes = null;
    this.root.append(this.layer);
  }

  /** @param {Record<string, number>} dots cell -> phones */
  update(dots) {
    this.choices = choicesOf(this.grid, dots);
    this.spots = [];
    this.chart?.destroy();
    this.sizes?.disconnect();
    this.chart = null;
    if (this.choices.length) this.draw();
    this.lay();
    this.count();
  }

  /** How many values the colour has: each has its part of a column. */
  get groups() {
    return this.valuesOf(this.axes.colour).length;
  }

  /**
   * The names of the values of a knob; of none, one without a name.
   * @param {number} knob
   */
  valuesOf(knob) {
    return knob < 0 ? [''] : this.grid.knobs[knob].values.map(({ label }) => label);
  }

  /** A series for each colour and sign. Where signs have a meaning of their own, colours are full and hollow, too. */
  get series() {
    const { axes, choices } = this;
    const own = axes.sign >= 0;
    return this.valuesOf(axes.colour).flatMap((title, group) =>
      this.valuesOf(axes.sign).map((_, sign) => ({
        title,
        tone: group,
        mark: own ? (group ? HOLLOW : FULL)[sign] : FULL[group],
        points: choices
          .filter((choice) => choice.group === group && choice.sign === sign)
          .flatMap(({ count, column, psnr }) =>
            jitter(count, group, this.groups).map((aside) => /** @type {import('../reader/chart.js').Point} */ ([column + aside, psnr])),
          ),
      })),
    );
  }

  /** What the colours and the signs mean. */
  get key() {
    const { colour, sign } = this.axes;
    const signs = sign < 0 ? [] : this.valuesOf(sign).map((title, at) => ({ title, mark: FULL[at] }));
    const mark = (/** @type {number} */ tone) => (sign < 0 ? FULL[tone] : (tone ? HOLLOW : FULL).slice(0, 2).join(''));
    const tones = colour < 0 ? [] : this.valuesOf(colour).map((title, tone) => ({ title, tone, mark: mark(tone) }));
    return [...tones, ...signs];
  }

  draw() {
    const { grid, axes, choices, series, key } = this;
    const knob = grid.knobs[axes.x];
    const numeric = knob.values.some(({ number }) => isNumber(number));
    const greys = choices.map(({ cell, count }) => ({ count, psnr: Number(grid.cells[cell].answer?.scores.grey ?? NaN) }));
    const grey = medianOf(/** @type {Choice[]} */ (greys.filter(({ psnr }) => isNumber(psnr)))); // pictures differ a little
    this.chart = new Chart(this.root, {
      ...{ label: `${word('choices')}: ${say('closeness')}`, yTitle: say('closeness'), lines: false, dots: true },
      ...{ series, key, tones: series.map(({ tone }) => tone) },
      xTitle: numeric ? (this.names[knob.name] ?? knob.name) : '', // names need the room, and say what they are
      categories: knob.values.map(({ label }) => label.split(',')[0]),
      line: isNumber(grey) ? { at: grey, title: say('greyLine') } : null,
    });
    this.sizes = new ResizeObserver(() => this.lay()); // younger than the chart's own observer, which therefore draws first
    this.sizes.observe(this.chart.root);
  }

  /** What can be pressed, the medians, and a ring around the choice that is shown, over the chart. */
  lay() {
    this.layer.querySelectorAll('i').forEach((old) => old.remove());
    const { scales } = this.chart ?? {};
    const before = this.buttons;
    this.buttons = new Map();
    if (this.chart && scales) {
      const { x, y, size } = scales;
      const band = ((x.at(1) - x.at(0)) * BAND) / this.groups;
      this.spots = this.choices.map((choice) => ({
        ...choice,
        left: x.at(choice.column) + band * (choice.group - this.groups / 2),
        top: y.at(choice.psnr),
        band,
      }));
      this.layer.style.height = `${this.chart.area.getAttribute('height')}px`;
      for (const heap of heapsOf(this.spots, Math.max(HIT * size, SMALLEST / 2))) this.layButton(heap, before);
      this.layMedians();
    }
    for (const [name, made] of before) if (!this.buttons.has(name)) made.remove();
    this.mark(this.current);
  }

  /**
   * One button for all choices of a column that lie too close to be pressed one by one.
   * @param {Heap} heap
   * @param {Map<string, HTMLButtonElement>} before
   */
  layButton({ name, spots, half }, before) {
    const made = before.get(name) ?? button('gle-class-dot', '', () => {});
    made.onclick = (event) => this.press(this.pressed(spots, event));
    const words = spots.map((spot) => this.wordsOf(spot)).join('; ');
    made.setAttribute('aria-label', words);
    made.title = words;
    const { left, band, group, top } = spots[0];
    const from = left - band * group;
    place(made, { left: from, top: top - half, width: band * this.groups, height: spots[spots.length - 1].top - top + 2 * half });
    const order = this.buttons.size;
    if (this.layer.children[order] !== made) this.layer.insertBefore(made, this.layer.children[order] ?? null);
    this.buttons.set(name, made);
  }

  /**
   * The choice nearest to where the mouse pressed; a press of a key goes from one to the next.
   * @param {Spot[]} spots
   * @param {MouseEvent} event
   */
  pressed(spots, { detail, clientX, clientY }) {
    const at = spots.findIndex(({ cell }) => cell === this.current);
    if (!detail) return spots[(at + 1) % spots.length].cell;
    const { left, top } = this.layer.getBoundingClientRect();
    const away = spots.map((spot) => Math.hypot(spot.left + spot.band / 2 - (clientX - left), spot.top - (clientY - top)));
    return spots[away.indexOf(Math.min(...away))].cell;
  }

  get places() {
    return placesWithMedian(this.choices);
  }

  layMedians() {
    const { y } = /** @type {NonNullable<Chart['scales']>} */ (this.chart?.scales);
    for (const of of this.places) {
      const { left, band, group } = /** @type {Spot} */ (this.spots.find(({ cell }) => cell === of[0].cell));
      const tick = element('i', 'gle-median');
      tick.dataset.tone = String(group);
      place(tick, { left, top: y.at(medianOf(of)), width: band });
      this.layer.append(tick);
    }
  }

  /** @param {Choice} choice */
  wordsOf({ cell, count, psnr }) {
    const verdict = this.grid.cells[cell].answer?.word ?? '';
    return word('dots', { values: this.labelsOf(cell).join(', '), psnr: decibel(psnr), word: verdict, phones: phones(count) });
  }

  /**
   * Show which choice has its pictures on the page.
   * @param {number} cell
   */
  mark(cell) {
    this.current = cell;
    this.layer.querySelector('.gle-class-ring')?.remove();
    const spot = this.spots.find((other) => other.cell === cell);
    const { size } = this.chart?.scales ?? {};
    if (!spot || !size || !this.choices.length) return;
    const ring = element('i', 'gle-class-ring');
    place(ring, { left: spot.left, top: spot.top - HIT * size, width: spot.band, height: 2 * HIT * size });
    this.layer.append(ring);
  }

  /** @param {number} cell */
  labelsOf(cell) {
    return placesOf(this.grid.knobs, cell).map((value, knob) => this.grid.knobs[knob].values[value].label);
  }

  /** The table below the chart; it stays folded or open. */
  count() {
    const heads = [...this.grid.knobs.map(({ name }) => this.names[name] ?? name), word('phonesHead'), say('psnr'), say('answer')];
    const rows = this.choices.map(({ cell, count, psnr }) => [
      ...this.labelsOf(cell),
      count,
      decibel(psnr),
      this.grid.cells[cell].answer?.word ?? null,
    ]);
    const fresh = tableOf(word('tableOf'), heads, rows);
    this.numbers.lastElementChild?.replaceWith(/** @type {Element} */ (fresh.lastElementChild));
    this.numbers.hidden = !rows.length;
  }

  destroy() {
    this.chart?.destroy();
    this.sizes?.disconnect();
    this.root.remove();
  }
}

/**
 * @param {HTMLElement} made
 * @param {Record<string, number>} where pixels
 */
function place(made, where) {
  for (const [name, value] of Object.entries(where)) made.style.setProperty(name, `${value.toFixed(1)}px`);
}
