// A grid of what-ifs: settings to choose, each with its recorded result; for a choice without a result, a link to the Lab.
import { element } from '../dom.js';
import { labelsRight } from '../live/labels.js';
import { drawSheet, layTiles } from '../live/pictures.js';
import { decibel, isNumber } from '../live/words.js';
import { Chart, tableOf } from './chart.js';
import { button } from './dots.js';
import { OwnPlace } from './own.js';
import { say } from './phrases.js';
import { loadFilm } from './screen.js';

/**
 * @typedef {{ label: string, number: number | null }} Value
 * @typedef {{ name: string, values: Value[] }} Knob
 * @typedef {object} Answer what is recorded of a choice: rows of the film, of which the first `batch` pictures count
 * @property {number} private
 * @property {number} answer
 * @property {number} batch
 * @property {Record<string, number | null>} scores
 * @property {number[]} labels
 * @property {number[]} truth
 * @property {string} word
 * @property {string} why
 * @typedef {object} Grid
 * @property {string} title
 * @property {Knob[]} knobs
 * @property {{ x: string, y: string, colour: string } | null} plot
 * @property {{ lab: string | null, own?: object | null, answer: Answer | null }[]} cells the last knob turns fastest; `own`: the settings
 *   for the visitor's own picture
 * @property {{ side: number, batch: number } | null} film
 * @property {string[]} class_names
 */

/**
 * Which cell a choice of values is.
 * @param {Knob[]} knobs
 * @param {number[]} choice
 */
export const cellOf = (knobs, choice) => knobs.reduce((cell, { values }, place) => cell * values.length + choice[place], 0);

/**
 * Return the setting along which results are plotted: named by the grid, else the first with numbers as values, else none.
 * @param {Grid} grid
 */
export function axisOf({ knobs, plot }) {
  const named = plot ? knobs.findIndex(({ name }) => name === plot.x) : -1;
  return named >= 0 ? named : knobs.findIndex(({ values }) => values.every(({ number }) => isNumber(number)));
}

export class WhatIf {
  /**
   * @param {Grid} grid
   * @param {{ film: string, lab: import('./source.js').Source['lab'], own?: string, words?: Record<string, string> }} how
   */
  constructor(grid, { film, lab, own = '', words = {} }) {
    this.grid = grid;
    this.lab = lab;
    this.words = words;
    this.choice = grid.knobs.map(() => 0);
    /** @type {Set<number>} cells that were looked at */
    this.tried = new Set();
    /** @type {(cell: number) => void} called after each choice that a visitor makes */
    this.chosen = () => {};
    this.gone = false;
    /** @type {HTMLImageElement | null} */
    this.image = null;
    /** @type {Chart | null} */
    this.chart = null;
    this.root = element('section', 'gle-whatif');
    this.root.setAttribute('aria-label', grid.title);
    this.result = element('div', 'gle-result');
    this.result.setAttribute('role', 'status');
    this.plot = element('div', 'gle-plot');
    this.root.append(element('h3', 'gle-screen-title', grid.title), this.knobs(), this.result, this.plot);
    this.here = element('p', 'gle-own-here');
    this.root.append(this.here);
    if (grid.cells.some(({ answer }) => answer)) this.root.append(this.table());
    this.own = own ? new OwnPlace(own, lab) : null;
    if (this.own) this.root.append(this.own.root);
    this.turn(0, 0);
    if (grid.film) this.open(film);
  }

  knobs() {
    const box = element('div', 'gle-knobs');
    this.grid.knobs.forEach(({ name, values }, knob) => {
      const field = element('fieldset', 'gle-knob');
      field.append(element('legend', '', this.words[name] ?? name));
      const row = element('div', 'gle-values');
      values.forEach(({ label }, value) => {
        const choice = element('label', 'gle-value');
        const input = element('input', '');
        Object.assign(input, { type: 'radio', name: `knob-${knob}`, checked: value === 0 });
        input.addEventListener('change', () => {
          this.turn(knob, value);
          this.chosen(this.cell);
        });
        input.addEventListener('click', () => {
          if (this.choice[knob] === value) this.chosen(this.cell); // a change comes after its click
        });
        choice.append(input, element('span', '', label));
        row.append(choice);
      });
      field.append(row);
      box.append(field);
    });
    return box;
  }

  /** @param {string} address */
  async open(address) {
    this.image = await loadFilm(address, this.root);
    if (this.image && !this.gone) this.draw();
  }

  /**
   * @param {number} knob
   * @param {number} value
   */
  turn(knob, value) {
    this.choice[knob] = value;
    const cell = cellOf(this.grid.knobs, this.choice);
    const { answer, lab } = this.grid.cells[cell];
    this.tried.add(cell);
    Object.assign(this.root.dataset, { cell: String(cell), recorded: String(answer !== null) });
    if (answer) this.tell(answer, lab);
    else this.missing(lab);
    this.offerOwn();
    this.draw();
    this.plotTried();
  }

  /** The cell that is shown. */
  get cell() {
    return cellOf(this.grid.knobs, this.choice);
  }

  /**
   * Show a cell that was chosen elsewhere; the knobs follow.
   * @param {number} cell
   */
  choose(cell) {
    const inputs = [...this.root.querySelectorAll('.gle-values')].map((row) => row.querySelectorAll('input'));
    this.choice = placesOf(this.grid.knobs, cell);
    this.choice.forEach((value, knob) => (inputs[knob][value].checked = true));
    this.turn(0, this.choice[0]);
  }

  /** Offer to compute this choice with the visitor's own picture, where a page can. */
  offerOwn() {
    const { own } = this.grid.cells[cellOf(this.grid.knobs, this.choice)];
    if (!this.own || own === undefined) return;
    this.here.replaceChildren(own ? button('gle-quiet', say('tryOwnHere'), () => this.own?.open(own)) : say('ownCannot'));
  }

  /** @param {string | null} lab */
  missing(lab) {
    const words = element('p', 'gle-note', `${say('tryMissing')} `);
    if (lab) words.append(`${say('tryLab')} `, this.lab(lab, say('computeLab')));
    this.result.replaceChildren(words);
    this.truth = this.guess = undefined;
  }

  /**
   * @param {Answer} answer
   * @param {string | null} lab
   */
  tell({ batch, scores, labels, truth, word }, lab) {
    const names = this.grid.class_names;
    const named = labelsRight(labels, truth);
    this.truth = element('div', 'gle-tiles');
    this.guess = element('div', 'gle-tiles');
    layTiles(
      this.truth,
      batch,
      truth.map((label) => ({ text: names[label], label: `${say('private')}: ${names[label]}` })),
    );
    const psnr = decibel(scores.psnr);
    layTiles(
      this.guess,
      batch,
      truth.map((_label, place) => ({
        text: isNumber(labels[place]) ? (names[labels[place]] ?? '') : '',
        mark: named[place] ? 'right' : 'wrong',
        label: say('reconstruction', { of: '', psnr, word }),
      })),
    );
    const scene = element('div', 'gle-scene gle-pair');
    const [left, right] = [element('div', 'gle-zone gle-private'), element('div', 'gle-zone gle-attacker')];
    left.append(element('h4', '', say(batch > 1 ? 'privateMany' : 'private')), this.truth);
    right.append(element('h4', '', say('attacker')), this.guess);
    scene.append(left, right);
    const verdict = element('p', 'gle-verdict');
    verdict.dataset.word = word;
    const beside = isNumber(scores.grey) ? say('greyScores', { grey: decibel(scores.grey) }) : '';
    verdict.append(element('b', 'gle-big', psnr), element('span', 'gle-word', word), element('small', '', beside));
    const foot = element('p', 'gle-foot', say('tryAnswer'));
    if (lab) foot.append(' · ', this.lab(lab, say('openLab')));
    this.result.replaceChildren(scene, verdict, foot);
  }

  draw() {
    const { answer } = this.grid.cells[cellOf(this.grid.knobs, this.choice)];
    const { film } = this.grid;
    if (!answer || !film || !this.image || !this.truth || !this.guess) return;
    const part = { width: film.side * answer.batch, height: film.side };
    drawSheet(this.image, this.truth, { top: answer.private * film.side, ...part });
    drawSheet(this.image, this.guess, { top: answer.answer * film.side, ...part });
  }

  /** A dot for every choice that was looked at, over the knob that has numbers; one series for each value of the knob that gives the colour. */
  plotTried() {
    const { knobs, plot, cells } = this.grid;
    const axis = axisOf(this.grid);
    const known = [...this.tried].filter((cell) => cells[cell].answer);
    if (axis < 0 || known.length < 2) return;
    const colour = plot ? knobs.findIndex(({ name }) => name === plot.colour) : -1;
    const groups = colour < 0 ? [say('tried')] : knobs[colour].values.map(({ label }) => label);
    const series = groups.map((title, group) => ({
      title,
      points: known
        .map((cell) => ({ cell, place: placesOf(knobs, cell) }))
        .filter(({ place }) => colour < 0 || place[colour] === group)
        .map(({ cell, place }) => /** @type {import('./chart.js').Point} */ ([place[axis], cells[cell].answer?.scores.psnr ?? null])),
    }));
    const grey = cells[known[0]].answer?.scores.grey;
    const name = this.words[knobs[axis].name] ?? knobs[axis].name;
    this.chart?.destroy();
    this.chart = new Chart(this.plot, {
      ...{ label: `${say('tried')}: ${say('closeness')}`, series, xTitle: name, yTitle: say('closeness'), lines: false, dots: true },
      categories: knobs[axis].values.map(({ label }) => label),
      line: isNumber(grey) ? { at: grey, title: say('greyLine') } : null,
    });
  }

  /** A table of every choice with its result: the content of the plot as text. */
  table() {
    const { knobs, cells } = this.grid;
    const rows = cells.map(({ answer }, cell) => {
      const labels = placesOf(knobs, cell).map((value, knob) => knobs[knob].values[value].label);
      return [...labels, answer ? decibel(answer.scores.psnr) : null, answer?.word ?? null];
    });
    return tableOf(say('choices'), [...knobs.map(({ name }) => this.words[name] ?? name), say('psnr'), say('answer')], rows);
  }

  destroy() {
    this.gone = true;
    this.chart?.destroy();
    this.own?.destroy();
    this.root.remove();
  }
}

/**
 * The place of the value of each knob in a cell.
 * @param {Knob[]} knobs
 * @param {number} cell
 * @returns {number[]}
 */
export function placesOf(knobs, cell) {
  return knobs
    .reduceRight((/** @type {number[]} */ places, { values }) => {
      places.unshift(cell % values.length);
      cell = Math.floor(cell / values.length);
      return places;
    }, [])
    .slice(0, knobs.length);
}
