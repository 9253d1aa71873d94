// A page for the tests of the components: happy-dom with our real HTML, and in a few lines each what it lacks. Time stands still until
// `tick`, pictures come as `serve` says, streams send what a test sends; whatever is still open can be counted, so that nothing leaks.
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { Window } from 'happy-dom';
import { Brush, plotly, Source } from './lacking.js';

const ROOT = new URL('../../', import.meta.url);
const COMPONENTS = new URL('leakage/ui/components/', ROOT);
const FRAME = 16; // milliseconds between two animation frames
const START = 1_700_000_000_000; // what Date.now() says when a page opens

/** @typedef {{ width: number, height: number, pixels?: number[] }} Size `pixels`: RGBA, what a canvas takes over */

export class Page {
  /** @param {{ calm?: boolean, width?: number, height?: number }} [visitor] `calm`: asked for less motion */
  constructor({ calm = false, width = 1200, height = 800 } = {}) {
    const window = new Window({ url: 'http://localhost:8501/lab', width, height });
    this.window = /** @type {any} */ (window);
    this.document = /** @type {Document} */ (/** @type {unknown} */ (window.document));
    this.calm = calm;
    this.now = 0;
    /** @type {Map<number, { at: number, frame: boolean, action: (now: number) => void }>} timers and animation frames to come */
    this.jobs = new Map();
    this.numbers = 0;
    /** @type {Source[]} every stream that was ever opened */
    this.sources = [];
    /** @type {string[]} the addresses of the pictures asked for with `new Image()` */
    this.asked = [];
    /** @type {Map<string, (size: Size | null) => void>} the pictures that have not come yet */
    this.awaited = new Map();
    /** @type {(address: string) => Size | null | undefined} null: there is no such picture; undefined: it has not come yet */
    this.serve = () => ({ width: 32, height: 32 });
    /** @type {Set<Set<Element>>} what each ResizeObserver watches */
    this.observers = new Set();
    /** @type {Set<{ target: EventTarget, type: string, listener: unknown }>} */
    this.listeners = new Set();
    /** @type {{ element: Element, options: any }[]} calls of scrollIntoView and scrollTo */
    this.scrolled = [];
    /** @type {(() => void)[]} */
    this.undo = [];
    this.hidden = false;
    plotly.calls = [];
    this.install();
  }

  /**
   * @param {any} owner
   * @param {string} name
   * @param {PropertyDescriptor} what
   */
  replace(owner, name, what) {
    const old = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(owner, name, { configurable: true, ...what });
    this.undo.push(() => (old ? Object.defineProperty(owner, name, old) : delete owner[name]));
  }

  install() {
    const page = this;
    const { window } = page;
    const later = (/** @type {(now: number) => void} */ action, pause = 0, frame = false) => {
      page.jobs.set((page.numbers += 1), { at: page.now + Math.max(0, pause), frame, action });
      return page.numbers;
    };
    const drop = (/** @type {number} */ number) => page.jobs.delete(number);
    const globals = {
      ...{ window, document: window.document, location: window.location, navigator: window.navigator, Plotly: plotly },
      getComputedStyle: (/** @type {any} */ element) => window.getComputedStyle(element),
      matchMedia: (/** @type {string} */ query) => ({ matches: page.calm && query === '(prefers-reduced-motion: reduce)' }),
      performance: { now: () => page.now },
      setTimeout: (/** @type {() => void} */ action, /** @type {number} */ pause) => later(action, pause),
      clearTimeout: drop,
      requestAnimationFrame: (/** @type {(now: number) => void} */ action) => later(action, FRAME, true),
      cancelAnimationFrame: drop,
      innerHeight: window.innerHeight,
      EventSource: function (/** @type {string} */ url) {
        page.sources.push(new Source(url));
        return page.sources[page.sources.length - 1];
      },
      Image: function () {
        return page.picture();
      },
      ResizeObserver: class {
        /** @param {() => void} changed */
        constructor(changed) {
          this.watched = Object.assign(new Set(), { changed });
          page.observers.add(this.watched);
        }
        /** @param {Element} element */
        observe(element) {
          this.watched.add(element);
        }
        disconnect() {
          page.observers.delete(this.watched);
        }
      },
    };
    for (const [name, value] of Object.entries(globals)) page.replace(globalThis, name, { value, writable: true });
    page.replace(Date, 'now', { value: () => START + page.now });
    page.replace(window.document, 'hidden', { get: () => page.hidden });
    const brushes = new WeakMap();
    const getContext = /** @this {HTMLCanvasElement} */ function () {
      if (!brushes.has(this)) brushes.set(this, new Brush(this));
      return brushes.get(this);
    };
    page.replace(window.HTMLCanvasElement.prototype, 'getContext', { value: getContext });
    for (const name of ['scrollIntoView', 'scrollTo']) {
      const scroll = /** @this {Element} */ function (/** @type {any} */ options) {
        page.scrolled.push({ element: this, options });
      };
      page.replace(window.Element.prototype, name, { value: scroll });
    }
    let prototype = /** @type {any} */ (window.document);
    while (!Object.hasOwn(prototype, 'addEventListener')) prototype = Object.getPrototypeOf(prototype);
    page.countListeners(prototype);
  }

  /** @param {any} prototype of all that has listeners */
  countListeners(prototype) {
    const { listeners } = this;
    const { addEventListener, removeEventListener } = prototype;
    const add = /** @this {any} */ function (/** @type {string} */ type, /** @type {unknown} */ listener, /** @type {any} */ options) {
      const entry = { target: this, type, listener };
      listeners.add(entry);
      if (options?.signal) setMaxListeners(0, options.signal);
      options?.signal?.addEventListener('abort', () => listeners.delete(entry));
      return addEventListener.call(this, type, listener, options);
    };
    const remove = /** @this {any} */ function (/** @type {string} */ type, /** @type {unknown} */ listener) {
      for (const entry of listeners) {
        if (entry.target === this && entry.type === type && entry.listener === listener) listeners.delete(entry);
      }
      return removeEventListener.call(this, type, listener);
    };
    this.replace(prototype, 'addEventListener', { value: add, writable: true });
    this.replace(prototype, 'removeEventListener', { value: remove, writable: true });
  }

  /** A picture as `new Image()` makes it: it comes when it is decoded, as large as `serve` says. */
  picture() {
    const image = this.document.createElement('img');
    let size = { width: 0, height: 0 };
    let coming = Promise.resolve();
    const fetch = (/** @type {string} */ address) => {
      this.asked.push(address);
      return new Promise((ready, failed) => {
        const arrive = (/** @type {Size | null} */ served) => {
          this.awaited.delete(address);
          size = served ?? size;
          if (served?.pixels) Object.assign(image, { pixels: served.pixels });
          if (served) ready(undefined);
          else failed(new Error(`There is no ${address}.`));
        };
        const served = this.serve(address);
        if (served === undefined) this.awaited.set(address, arrive);
        else arrive(served);
      });
    };
    const src = (/** @type {string} */ address) => {
      image.setAttribute('src', address);
      coming = /** @type {Promise<any>} */ (fetch(address));
      const fire = (/** @type {string} */ kind) => () => void image.dispatchEvent(new this.window.Event(kind));
      coming.then(fire('load'), fire('error'));
    };
    Object.defineProperties(image, {
      src: { get: () => image.getAttribute('src') ?? '', set: src },
      decode: { value: () => coming },
      naturalWidth: { get: () => size.width },
      naturalHeight: { get: () => size.height },
    });
    return image;
  }

  /**
   * A component's HTML on the page, as Streamlit puts it there before it runs the script.
   * @param {string} name such as `live`
   * @returns {HTMLElement}
   */
  component(name) {
    const parent = this.document.createElement('div');
    parent.innerHTML = readFileSync(new URL(`${name}/${name}.html`, COMPONENTS), 'utf8');
    this.document.body.append(parent);
    return parent;
  }

  /** Let everything happen that is due within the next milliseconds, in order. */
  async tick(milliseconds = 0) {
    const until = this.now + milliseconds;
    await settle();
    for (;;) {
      const due = [...this.jobs].filter(([, { at }]) => at <= until).sort(([, one], [, other]) => one.at - other.at);
      if (!due.length) break;
      const [number, { at, action }] = due[0];
      this.jobs.delete(number);
      this.now = Math.max(this.now, at);
      action(this.now);
      await settle();
    }
    this.now = until;
  }

  /**
   * @param {EventTarget} target
   * @param {string} type
   * @param {object} [init] fields of the event
   */
  fire(target, type, init = {}) {
    const event = new this.window.Event(type, { bubbles: true, cancelable: true });
    for (const [name, value] of Object.entries(init)) Object.defineProperty(event, name, { value });
    target.dispatchEvent(event);
    return /** @type {Event} */ (event);
  }

  /** Another tab comes to the front, or ours comes back. @param {boolean} hidden */
  hide(hidden) {
    this.hidden = hidden;
    this.fire(this.document, 'visibilitychange');
  }

  /** Sizes are other than before. */
  resize() {
    for (const watched of this.observers) /** @type {any} */ (watched).changed();
  }

  /**
   * Where an element lies, since happy-dom lays nothing out.
   * @param {Element} element
   * @param {{ [name: string]: number }} where such as { top: 100, clientWidth: 200 }
   */
  lay(element, where) {
    for (const [name, value] of Object.entries(where)) Object.defineProperty(element, name, { value, configurable: true });
    element.getBoundingClientRect = () => /** @type {DOMRect} */ ({ left: 0, top: 0, ...where });
  }

  /** What a component that has gone must not leave behind. Listeners on elements that have left the page went with them. */
  get open() {
    const jobs = [...this.jobs.values()];
    const here = [...this.listeners].filter(({ target }) => /** @type {any} */ (target).isConnected ?? true);
    return {
      streams: this.sources.filter(({ closed }) => !closed).length,
      timers: jobs.filter(({ frame }) => !frame).length,
      frames: jobs.filter(({ frame }) => frame).length,
      observers: this.observers.size,
      listeners: here.map(({ type }) => type).sort(),
    };
  }

  /** How many listeners there are on the elements below `root`. @param {Element} root */
  listenersBelow(root) {
    return [...this.listeners].filter(({ target }) => target !== root && root.contains(/** @type {Node} */ (target))).length;
  }

  close() {
    for (const back of this.undo.splice(0).reverse()) back();
    this.window.happyDOM.abort();
  }
}

export const NOTHING = { streams: 0, timers: 0, frames: 0, observers: 0, listeners: [] };

/** Whatever is promised and can come at once has come. */
export const settle = () => new Promise((done) => void setImmediate(done));

/**
 * The brush of a canvas, with all that was painted.
 * @param {Element | null} canvas
 * @returns {Brush}
 */
export const brushOf = (canvas) => /** @type {any} */ (canvas).getContext('2d');

/**
 * A page for one test, which takes it down again.
 * @param {{ after: (end: () => void) => void }} test
 * @param {ConstructorParameters<typeof Page>[0]} [visitor]
 */
export function openPage(test, visitor) {
  const page = new Page(visitor);
  test.after(() => page.close());
  return page;
}
