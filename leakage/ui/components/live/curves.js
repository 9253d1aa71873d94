// Two linked curves over the steps of the attack: PSNR above, gradient distance below, one cursor through both.
import { find } from '../dom.js';
import { figure } from './figure.js';
import { themeOf } from './theme.js';
import { clamp, curveWords, isNumber } from './words.js';

const REDRAW = 250; // milliseconds between two redraws: Plotly costs tens of milliseconds, the cursor is ours and costs none
const REST = 10; // times as long as a redraw took: the attack may need this core
const STILL = { displayModeBar: false, responsive: false, doubleClick: false, showTips: false };

/**
 * @typedef {import('./record.js').Frame} Frame
 * @typedef {import('./record.js').RunRecord} RunRecord
 * @typedef {{ _offset: number, _length: number, d2p(value: number): number, p2d(pixel: number): number }} Axis
 * @typedef {HTMLElement & { _fullLayout?: { xaxis?: Axis, yaxis: Axis, yaxis2: Axis } }} Area what Plotly makes of the element it draws in
 */

/** @returns {any} Plotly, once its script has run */
const plotlyHere = () => /** @type {any} */ (globalThis).Plotly;

/** @type {Promise<any> | null} */
let loading = null;

/**
 * Plotly, loaded once for all curves; a script that did not come is asked for again by the next who needs it.
 * @param {string} base
 * @returns {Promise<any>}
 */
function loadPlotly(base) {
  loading ??= new Promise((ready, failed) => {
    if (plotlyHere()) return ready(plotlyHere());
    const script = document.createElement('script');
    const fail = () => {
      loading = null;
      script.remove();
      failed(new Error('Plotly could not be loaded.'));
    };
    script.src = `${base}/api/plotly.min.js`;
    script.onload = () => (plotlyHere() ? ready(plotlyHere()) : fail());
    script.onerror = fail;
    document.head.append(script);
  });
  return loading;
}

export class Curves {
  /**
   * @param {HTMLElement} host
   * @param {string} base the prefix of our routes
   * @param {(step: number) => void} pick
   */
  constructor(host, base, pick) {
    this.host = host;
    this.base = base;
    this.pick = pick;
    this.area = /** @type {Area} */ (find(host, '.gle-curves'));
    this.cursor = find(host, '.gle-cursor');
    this.dots = { psnr: find(host, '.gle-dot-psnr'), loss: find(host, '.gle-dot-loss') };
    this.drawn = 0; // when, in milliseconds, and how long it took
    this.cost = 0;
    this.gone = false;
    /** @type {RunRecord | null} */
    this.record = null;
    /** @type {Frame | null | undefined} */
    this.frame = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(host);
    this.leaving = new AbortController();
    const early = { capture: true, signal: this.leaving.signal };
    host.addEventListener('pointerdown', (event) => this.scrub(event), early);
    host.addEventListener('pointermove', (event) => event.buttons & 1 && this.scrub(event), early);
  }

  /** @param {RunRecord} record */
  update(record) {
    this.record = record;
    const wait = () => {
      this.timer = undefined;
      this.draw();
    };
    this.timer ??= setTimeout(wait, Math.max(0, this.drawn + Math.max(REDRAW, REST * this.cost) - performance.now()));
  }

  async draw() {
    let plotly;
    try {
      plotly = await loadPlotly(this.base);
    } catch {
      this.host.classList.add('gle-no-curves');
      return;
    }
    if (this.gone || !this.record) return;
    this.drawn = performance.now();
    this.host.classList.remove('gle-no-curves');
    this.host.classList.toggle('gle-drawn', this.record.frames.length > 0);
    const { traces, layout } = figure(this.record, themeOf(this.host));
    await plotly.react(this.area, traces, layout, STILL);
    this.cost = performance.now() - this.drawn;
    this.place(this.frame);
  }

  resize() {
    if (this.gone || !this.area._fullLayout || !this.host.clientWidth) return;
    Promise.resolve(plotlyHere().Plots.resize(this.area)).then(
      () => this.place(this.frame),
      () => {},
    );
  }

  /**
   * Move the cursor to a frame without a redraw: the axes tell where it is.
   * @param {Frame | null | undefined} frame
   */
  place(frame) {
    this.frame = frame;
    const axes = this.area._fullLayout;
    const { xaxis } = axes ?? {};
    if (!axes || !xaxis || !frame || !isNumber(frame.step)) {
      for (const mark of [this.cursor, this.dots.psnr, this.dots.loss]) mark.hidden = true;
      return;
    }
    const x = xaxis._offset + xaxis.d2p(frame.step);
    this.cursor.hidden = false;
    this.cursor.style.transform = `translateX(${x.toFixed(1)}px)`;
    this.cursor.style.top = `${axes.yaxis._offset}px`;
    this.cursor.style.height = `${axes.yaxis2._offset + axes.yaxis2._length - axes.yaxis._offset}px`;
    placeDot(this.dots.psnr, x, axes.yaxis, frame.scores.psnr);
    placeDot(this.dots.loss, x, axes.yaxis2, isNumber(frame.loss) && frame.loss > 0 ? frame.loss : null);
  }

  /** @param {PointerEvent} event */
  scrub(event) {
    const axis = this.area._fullLayout?.xaxis;
    if (!axis || event.button > 0) return;
    const x = event.clientX - this.area.getBoundingClientRect().left - axis._offset;
    if (x > -12 && x < axis._length + 12) this.pick(axis.p2d(clamp(x, 0, axis._length)));
  }

  describe() {
    if (this.record) this.host.setAttribute('aria-label', curveWords(this.record));
  }

  destroy() {
    this.gone = true;
    clearTimeout(this.timer);
    this.sizes.disconnect();
    this.leaving.abort();
    plotlyHere()?.purge(this.area);
  }
}

/**
 * @param {HTMLElement} dot
 * @param {number} x
 * @param {Axis} axis
 * @param {number | null | undefined} value
 */
function placeDot(dot, x, axis, value) {
  dot.hidden = !isNumber(value);
  if (isNumber(value)) dot.style.transform = `translate(${x.toFixed(1)}px, ${(axis._offset + axis.d2p(value)).toFixed(1)}px)`;
}
