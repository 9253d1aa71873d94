// The sender: files of a recorded update are chosen or dropped here, and go one after the other to the server's own route.
import { element, find } from '../dom.js';
import { KINDS, readableSize, roleWords, targetOf } from './naming.js';
import { transfer } from './transfer.js';

/**
 * @typedef {{ address?: string, files?: Record<string, number>, closed?: boolean, most?: number }} Data
 * @typedef {import('../stub.js').Send} Send
 * @typedef {{ file: File | null, target: string, ending: string, size: number, state: 'unnamed' | 'waiting' | 'sending' | 'here' | 'failed',
 *   problem: string, done: number, abort: (() => void) | null, row: HTMLElement | null }} Entry
 */

/**
 * @param {string} value
 * @param {string} words
 */
function option(value, words) {
  const made = element('option', '', words);
  made.value = value;
  return made;
}

export class Sender {
  /**
   * @param {HTMLElement} parent
   * @param {typeof transfer} send how a file is sent
   */
  constructor(parent, send = transfer) {
    this.transfer = send;
    this.drop = find(parent, '.gle-drop');
    this.input = /** @type {HTMLInputElement} */ (find(parent, 'input'));
    this.list = find(parent, '.gle-sender-list');
    this.words = find(parent, '.gle-sender-words');
    this.hint = find(parent, '.gle-drop-hint');
    /** @type {Entry[]} */
    this.entries = [];
    this.address = '';
    this.closed = false;
    this.most = 200;
    /** @type {Send} */
    this.tell = () => {};
    this.leaving = new AbortController();
    const { signal } = this.leaving;
    this.input.addEventListener('change', () => this.choose(), { signal });
    for (const [name, over] of /** @type {const} */ ([
      ['dragover', true],
      ['dragleave', false],
      ['drop', false],
    ])) {
      this.drop.addEventListener(name, () => this.drop.toggleAttribute('data-over', over), { signal });
    }
  }

  /**
   * Python says which files have arrived; what is on its way here is known to this side alone.
   * @param {Data} data
   * @param {Send} send
   */
  update({ address = '', files = {}, closed = false, most = 200 }, send) {
    this.tell = send;
    if (address !== this.address) {
      for (const entry of this.entries) entry.abort?.();
      this.entries = [];
    }
    Object.assign(this, { address, closed, most });
    this.entries = this.entries.filter((entry) => entry.state !== 'here' || entry.target in files);
    for (const [target, size] of Object.entries(files)) {
      const known = this.entries.find((entry) => entry.target === target && entry.state !== 'failed');
      if (!known) this.entries.push(this.entry(null, target, size, 'here'));
      else if (known.state === 'here') known.size = size;
    }
    this.hint.textContent = `or drop them here: at most ${most} MB each`;
    this.drop.hidden = closed;
    this.input.disabled = !address; // until then nobody listens
    this.paint();
  }

  /**
   * @param {File | null} file
   * @param {string} target
   * @param {number} size
   * @param {Entry['state']} state
   * @param {string} [problem]
   * @returns {Entry}
   */
  entry(file, target, size, state, problem = '') {
    const ending = file ? (file.name.split('.').pop() ?? '').toLowerCase() : '';
    return { file, target, ending, size, state, problem, done: 0, abort: null, row: null };
  }

  /** Takes the files that the visitor has chosen. */
  choose() {
    for (const file of this.input.files ?? []) this.add(file);
    this.input.value = ''; // so that the same file can be chosen again
    this.paint();
    this.sendNext();
  }

  /** @param {File} file */
  add(file) {
    const { target, problem } = targetOf(file.name);
    const large = file.size > this.most * 2 ** 20 ? `This file has ${readableSize(file.size)}; a file may have ${this.most} MB.` : '';
    if (problem || large) this.entries.push(this.entry(file, '', file.size, 'failed', problem || large));
    else if (!target) this.entries.push(this.entry(file, '', file.size, 'unnamed'));
    else this.queue(this.entry(file, target, file.size, 'waiting'));
  }

  /** @param {Entry} entry */
  queue(entry) {
    for (const other of this.entries) if (other !== entry && other.target === entry.target) other.abort?.();
    this.entries = [...this.entries.filter((other) => other !== entry && other.target !== entry.target), entry];
  }

  async sendNext() {
    if (this.entries.some((entry) => entry.state === 'sending')) return;
    const entry = this.entries.find(({ state }) => state === 'waiting');
    if (!entry?.file) return;
    entry.state = 'sending';
    const sending = this.transfer(`${this.address}/${entry.target}`, entry.file, (done) => {
      entry.done = done;
      this.paintRow(entry);
    });
    entry.abort = sending.abort;
    this.paint();
    const problem = await sending.problem;
    entry.abort = null;
    if (this.leaving.signal.aborted) return;
    entry.state = problem ? 'failed' : 'here';
    entry.problem = problem;
    this.paint();
    if (!problem) this.report();
    this.sendNext();
  }

  /** Python looks at the files again. */
  report() {
    this.tell('changed', Date.now() + Math.random());
  }

  /** @param {Entry} entry */
  async remove(entry) {
    entry.abort?.();
    const { state, target } = entry;
    this.entries = this.entries.filter((other) => other !== entry);
    this.paint();
    if (state !== 'here') return;
    const problem = await this.transfer(`${this.address}/${target}`, null, () => {}).problem;
    if (problem) this.words.textContent = problem;
    this.report();
  }

  paint() {
    this.list.replaceChildren(...this.entries.map((entry) => this.makeRow(entry)));
    for (const entry of this.entries) this.paintRow(entry);
    const sending = this.entries.filter(({ state }) => state === 'sending' || state === 'waiting').length;
    this.words.textContent = sending ? `Sending ${sending === 1 ? 'a file' : `${sending} files`}. Keep this page open.` : '';
  }

  /** @param {Entry} entry */
  makeRow(entry) {
    const row = element('li', 'gle-file');
    const name = element('span', 'gle-file-name');
    name.append(element('b', '', entry.target ? roleWords(entry.target) : (entry.file?.name ?? '')));
    if (entry.target && entry.file && entry.file.name !== entry.target) name.append(' ', element('small', '', entry.file.name));
    const remove = element('button', 'gle-file-remove', '×');
    remove.type = 'button';
    remove.title = entry.state === 'sending' ? 'Stop sending this file' : 'Remove this file';
    remove.setAttribute('aria-label', `${remove.title}: ${entry.target || entry.file?.name}`);
    remove.hidden = this.closed;
    remove.addEventListener('click', () => this.remove(entry));
    const role = element('select', 'gle-file-role');
    role.setAttribute('aria-label', `What is ${entry.file?.name}?`);
    for (const [kind, words] of [['', 'What is in this file?'], ...KINDS]) role.append(option(kind, words));
    role.hidden = entry.state !== 'unnamed';
    role.addEventListener('change', () => this.name(entry, role.value));
    const bar = element('progress', '');
    bar.max = 1;
    row.append(name, element('span', 'gle-file-size'), remove, role, bar, element('span', 'gle-file-problem'));
    entry.row = row;
    return row;
  }

  /**
   * @param {Entry} entry
   * @param {string} role
   */
  name(entry, role) {
    if (!role) return;
    Object.assign(entry, { target: `${role}.${entry.ending}`, state: 'waiting' });
    this.queue(entry);
    this.paint();
    this.sendNext();
  }

  /** @param {Entry} entry */
  paintRow(entry) {
    if (!entry.row) return;
    const bar = /** @type {HTMLProgressElement} */ (find(entry.row, 'progress'));
    const share = entry.size ? entry.done / entry.size : 1;
    bar.hidden = entry.state !== 'sending' && entry.state !== 'waiting';
    bar.value = share;
    const size = readableSize(entry.size);
    find(entry.row, '.gle-file-size').textContent =
      entry.state === 'sending' ? `${Math.floor(100 * share)} % of ${size}` : entry.state === 'here' ? `${size} ✓` : size;
    const problem = find(entry.row, '.gle-file-problem');
    problem.hidden = !entry.problem;
    problem.textContent = entry.problem;
  }

  destroy() {
    this.leaving.abort();
    for (const entry of this.entries) entry.abort?.();
  }
}

/**
 * @param {HTMLElement} parent
 * @returns {import('../stub.js').Component}
 */
export const mount = (parent) => new Sender(parent);
