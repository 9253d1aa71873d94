// The museum of papers: shows the rows of one verdict, or one paper, as the address says; and plays the recorded run of a row.
import { element, find } from '../dom.js';
import { FigureBox } from '../reader/figures.js';
import { Screen } from '../reader/screen.js';
import { sourceOf } from '../reader/source.js';

const ALL = 'all';

export class Museum {
  /**
   * @param {Document} page which has all rows already
   * @param {import('../reader/source.js').About} about
   */
  constructor(page, about) {
    this.page = page;
    this.source = sourceOf(about);
    this.note = find(page, '.gle-filter-note');
    this.filters = /** @type {HTMLAnchorElement[]} */ ([...page.querySelectorAll('a[data-filter]')]);
    /** @type {Screen | null} */
    this.screen = null;
    this.dialog = this.makeDialog();
    for (const button of page.querySelectorAll('button[data-run]')) {
      const press = /** @type {HTMLButtonElement} */ (button);
      press.hidden = false;
      press.addEventListener('click', () => this.play(press.dataset.run ?? ''));
    }
    for (const place of /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll('[data-figure]')))
      place.append(new FigureBox(JSON.parse(place.dataset.figure ?? '')).root);
    addEventListener('hashchange', () => this.follow());
    this.follow();
  }

  /** Show what the address names: the rows of a verdict, a paper, a row, or all with a note where there is no such thing. */
  follow() {
    const name = nameIn(location.hash) || ALL;
    const filter = this.filters.find(({ dataset }) => dataset.filter === name);
    const known = filter || name === 'papers' || this.page.getElementById(name);
    this.note.hidden = Boolean(known);
    this.note.textContent = known ? '' : `There is no paper and no verdict called "${name}". All rows are shown.`;
    this.show(filter && name !== ALL ? name : '');
    for (const link of this.filters) link.setAttribute('aria-current', String(link.dataset.filter === (filter ? name : ALL)));
    if (known && !filter) this.page.getElementById(name)?.scrollIntoView();
  }

  /**
   * Show the rows of a verdict, and those that show the cause of one of them.
   * @param {string} verdict empty: all
   */
  show(verdict) {
    const { page } = this;
    const parts = /** @type {HTMLElement[]} */ ([...page.querySelectorAll('.gle-paper tbody tr, .gle-missing')]);
    const causes = new Set(parts.map(({ dataset }) => dataset.verdict === verdict && dataset.cause));
    const fits = (/** @type {HTMLElement} */ part) => !verdict || part.dataset.verdict === verdict || causes.has(part.id);
    for (const part of parts) part.hidden = !fits(part);
    const empty = (/** @type {Element} */ box) =>
      ![...box.querySelectorAll('tbody tr, .gle-missing')].some((part) => fits(/** @type {HTMLElement} */ (part)));
    for (const table of page.querySelectorAll('.gle-table')) /** @type {HTMLElement} */ (table).hidden = empty(table);
    for (const paper of page.querySelectorAll('.gle-paper')) /** @type {HTMLElement} */ (paper).hidden = Boolean(verdict) && empty(paper);
    for (const errata of page.querySelectorAll('.gle-errata')) /** @type {HTMLElement} */ (errata).hidden = Boolean(verdict);
  }

  makeDialog() {
    const dialog = element('dialog', 'gle-run-dialog');
    dialog.setAttribute('aria-label', 'A recorded run');
    dialog.addEventListener('close', () => this.closeRun());
    this.page.body.append(dialog);
    return dialog;
  }

  /** @param {string} name of a recorded run */
  async play(name) {
    const close = element('button', 'gle-quiet', 'Close');
    close.type = 'button';
    close.addEventListener('click', () => this.dialog.close());
    const place = element('div', 'gle-run-place');
    const head = element('p', 'gle-run-head', 'A recorded run');
    head.append(close);
    this.dialog.replaceChildren(head, place);
    this.dialog.showModal();
    try {
      const run = await this.source.record(name);
      if (!place.isConnected || !this.dialog.open) return;
      this.screen = new Screen({ id: name, run, film: this.source.picture('runs', name), lab: this.source.lab, stop: 'answer' });
      place.append(this.screen.root);
    } catch {
      place.append(element('p', 'gle-note', 'The recorded run did not arrive. Close this and try again.'));
    }
  }

  closeRun() {
    this.screen?.destroy();
    this.screen = null;
    this.dialog.replaceChildren();
  }
}

/**
 * What the address names; a part of it that no browser can decode is taken as it is.
 * @param {string} hash
 */
function nameIn(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

const about = document.getElementById('about');
if (about && document.querySelector('.gle-museum')) new Museum(document, JSON.parse(about.textContent ?? '{}'));
