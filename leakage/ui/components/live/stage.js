// The stage: one view per run, fed by one event stream.
import { find, prefersCalm } from '../dom.js';
import { Projector } from './projector.js';
import { Stream } from './stream.js';
import { isDark } from './theme.js';
import { Together } from './together.js';
import { RunView } from './view.js';

const ARRIVAL = 400; // milliseconds until the page below a pressed button has settled

/**
 * @typedef {import('./view.js').Shown} Shown
 * @typedef {{ runs?: Shown[], base?: string, autoplay?: boolean, together?: boolean, apart?: boolean, offline_after?: number }} Data what Python passes
 * @typedef {import('../stub.js').Send} Send
 */

export class Stage {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.host = find(parent, '.gle-stage');
    /** @type {RunView[]} */
    this.views = [];
    /** @type {Data} */
    this.data = {};
    this.key = '';
    this.heard = false;
    this.offline = false;
    /** @type {Send} */
    this.send = () => {};
    /** @type {Stream | null} */
    this.stream = null;
    /** @type {Together | null} */
    this.together = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.alarm = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.arrival = undefined;
    this.leaving = new AbortController();
    document.addEventListener('visibilitychange', () => this.watch(), { signal: this.leaving.signal });
    this.projector = new Projector(this.host, this.leaving.signal, () =>
      this.together ? [this.together.controls] : this.views.map(({ controls }) => controls),
    );
  }

  /**
   * Called on every rerun whose data or theme changed; the same runs change nothing but the colours.
   * @param {Data} data
   * @param {Send} send
   */
  update(data, send) {
    const { runs = [], base = '', together = false, apart = false } = data;
    this.send = send;
    this.host.dataset.dark = String(isDark(this.host));
    const key = JSON.stringify([base, runs.map(({ id }) => id)]);
    if (key === this.key) {
      this.views.forEach((view) => view.curves.update(view.record));
      return;
    }
    if (!apart) this.arrive(together); // else there is something to read above it
    Object.assign(this, { key, data, heard: false });
    this.stream?.close();
    this.lay(data);
    this.together?.reset();
    this.together?.expect(runs);
    this.views.forEach((view, place) => view.reset(runs[place]));
    const ids = runs.map(({ id }) => encodeURIComponent(id)).join(',');
    const address = () => `${base}/api/runs/stream?ids=${ids}&since=${this.since()}`;
    this.stream = runs.length ? new Stream(address, (event, seq) => this.hear(event, seq)) : null;
    this.watch();
  }

  /**
   * As many views as runs; those that are there stay.
   * @param {Data} data
   */
  lay({ runs = [], base = '', autoplay = true, together = false, apart = false }) {
    const template = /** @type {HTMLTemplateElement} */ (find(this.host, 'template'));
    this.views.splice(runs.length).forEach((view) => view.destroy());
    if (together) this.together ??= new Together(this.host, template, this.views, { base, autoplay, apart });
    while (this.views.length < runs.length) {
      const view = new RunView(template, { base, autoplay, together: this.together });
      this.views.push(view);
      this.host.append(view.root);
    }
    this.host.classList.toggle('gle-several', runs.length > 1 && !together);
    this.projector.tell();
  }

  /**
   * Whoever pressed Run further down the page wants to see what happens; who came by a link begins at the top.
   * @param {boolean} together
   */
  arrive(together) {
    if (this.key) this.bringIntoView();
    else if (together && navigator.userActivation?.hasBeenActive) this.arrival = setTimeout(() => this.bringIntoView(), ARRIVAL);
  }

  bringIntoView() {
    const { top } = this.host.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) this.host.scrollIntoView({ block: 'start', behavior: prefersCalm() ? 'auto' : 'smooth' });
  }

  /** Where to go on after a break: as early as the run that is furthest behind; what the others repeat is skipped. */
  since() {
    const open = this.views.filter(({ record }) => !record.end).map((view) => view.heardTo);
    return open.length ? Math.min(...open) : 0;
  }

  /**
   * @param {import('./record.js').AttackEvent} event
   * @param {number} seq
   */
  hear(event, seq) {
    if (!this.heard && this.offline) this.tellOffline(false);
    this.heard = true;
    const view = this.views.find(({ record }) => record.id === event.run);
    if (!view) return;
    view.heardTo = Math.max(view.heardTo, seq);
    view.receive(event);
    const over = this.views.every(({ record }) => record.end || ['failed', 'cancelled'].includes(record.state.status ?? ''));
    if (over) this.stream?.close();
  }

  /** No event for a while, though somebody looks: tell Python once, which then shows its own slower view. */
  watch() {
    clearTimeout(this.alarm);
    if (this.heard || document.hidden || !this.views.length) return;
    const silent = () => {
      if (!this.heard && !this.offline) this.tellOffline(true);
    };
    this.alarm = setTimeout(silent, 1000 * (this.data.offline_after ?? 3));
  }

  /** @param {boolean} offline */
  tellOffline(offline) {
    this.offline = offline;
    this.send('offline', offline);
  }

  destroy() {
    clearTimeout(this.alarm);
    clearTimeout(this.arrival);
    this.leaving.abort();
    this.stream?.close();
    this.together?.destroy();
    this.views.forEach((view) => view.destroy());
  }
}
