// The form for an attack on the visitor's own picture: protection, attacker, network, attack and seed.
import { element } from '../dom.js';
import { ATTACKS, NETWORKS, PROTECTIONS, USUAL, amountWords, hasAttackers, protectionOf } from './own_choices.js';
import { tell } from './own_phrases.js';

const MARKS = 1000; // of a slider
const LARGEST_SEED = 2 ** 31 - 1;

/** @typedef {import('./own_choices.js').Values} Values */

export class OwnSettings {
  /**
   * @param {Partial<Values>} begin
   * @param {() => void} changed
   */
  constructor(begin, changed) {
    this.values = { ...USUAL, ...begin };
    this.changed = changed;
    this.root = element('div', 'gle-own-settings');
    this.protection = this.select('protection', PROTECTIONS);
    this.means = element('p', 'gle-own-means');
    this.means.id = `${this.protection.box.id}-means`;
    this.protection.box.setAttribute('aria-describedby', this.means.id);
    this.amount = element('input', '');
    Object.assign(this.amount, { type: 'range', min: '0', max: String(MARKS) });
    this.shown = element('output', '');
    const amountRow = labelled('amount', this.amount, this.shown);
    this.amount.addEventListener('input', () => this.turn());
    this.attacker = this.select('attacker', [
      { id: 'knows', words: tell('knows') },
      { id: 'ignores', words: tell('ignores') },
    ]);
    this.network = this.select('network', NETWORKS);
    this.attack = this.select('method', ATTACKS);
    this.seed = element('input', '');
    Object.assign(this.seed, { type: 'number', min: '0', max: String(LARGEST_SEED), step: '1' });
    this.seed.addEventListener('change', () => this.read());
    const more = element('details', 'gle-own-more');
    more.append(element('summary', '', tell('more')), this.network.row, this.attack.row, labelled('seed', this.seed));
    this.root.append(this.protection.row, this.means, amountRow, this.attacker.row, more);
    this.draw();
  }

  /**
   * @param {'protection' | 'attacker' | 'network' | 'method'} name
   * @param {import('./own_choices.js').Choice[]} choices
   */
  select(name, choices) {
    const box = element('select', '');
    for (const { id, words } of choices) {
      const option = element('option', '', words);
      option.value = id;
      box.append(option);
    }
    box.addEventListener('change', () => this.read());
    return { box, row: labelled(name, box) };
  }

  /**
   * Take over settings from outside.
   * @param {Partial<Values>} values
   */
  use(values) {
    Object.assign(this.values, values);
    this.draw();
    this.changed();
  }

  /** Take over what the boxes say. */
  read() {
    const { values } = this;
    const before = values.protection;
    const seed = Math.round(parseFloat(this.seed.value));
    Object.assign(values, {
      protection: this.protection.box.value,
      adaptive: this.attacker.box.value === 'knows',
      network: this.network.box.value,
      attack: this.attack.box.value,
      seed: Math.min(LARGEST_SEED, Math.max(0, Number.isFinite(seed) ? seed : USUAL.seed)),
    });
    if (values.protection !== before) values.amount = protectionOf(values).knob?.start ?? 0;
    const fitting = ATTACKS.filter(({ networks }) => networks.includes(values.network));
    if (!fitting.some(({ id }) => id === values.attack)) values.attack = fitting[0].id;
    this.draw();
    this.changed();
  }

  /** Take over the place of the slider. */
  turn() {
    const { knob } = protectionOf(this.values);
    if (!knob) return;
    const { from, to, logarithmic, unit } = knob;
    const share = Number(this.amount.value) / MARKS;
    const amount = logarithmic ? from * (to / from) ** share : from + share * (to - from);
    this.values.amount = unit === 'count' ? Math.round(amount) : Number(amount.toPrecision(2));
    this.draw();
    this.changed();
  }

  /** Show the values. What cannot be chosen stays where it is, so that nothing below it moves. */
  draw() {
    const { values } = this;
    const { id, knob } = protectionOf(values);
    this.means.textContent = tell(`${id}Means`);
    this.protection.box.value = values.protection;
    this.attacker.box.value = values.adaptive ? 'knows' : 'ignores';
    this.attacker.box.disabled = !hasAttackers(values);
    this.network.box.value = values.network;
    for (const option of this.attack.box.options) {
      option.disabled = !ATTACKS.find(({ id }) => id === option.value)?.networks.includes(values.network);
    }
    this.attack.box.value = values.attack;
    this.seed.value = String(values.seed);
    this.amount.disabled = !knob;
    this.amount.value = String(knob ? Math.round(MARKS * shareOf(knob, values.amount)) : 0);
    this.shown.textContent = knob ? amountWords(knob, values.amount) : '';
    this.amount.setAttribute('aria-valuetext', this.shown.textContent);
  }
}

/**
 * How far an amount lies on the way from a knob's smallest amount (0) to its largest (1).
 * @param {import('./own_choices.js').Knob} knob
 * @param {number} amount
 */
const shareOf = ({ from, to, logarithmic }, amount) =>
  logarithmic ? Math.log(amount / from) / Math.log(to / from) : (amount - from) / (to - from);

let fields = 0; // on this page, so that each has an id of its own

/**
 * A control with its label.
 * @param {import('./own_phrases.js').OwnPhrase} name
 * @param {HTMLElement} control
 * @param {...HTMLElement} more
 */
function labelled(name, control, ...more) {
  const row = element('div', 'gle-own-field');
  const label = element('label', '', tell(name));
  control.id = label.htmlFor = `gle-own-field-${(fields += 1)}`;
  row.append(label, control, ...more);
  return row;
}
