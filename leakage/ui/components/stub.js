// All that Streamlit itself runs of a component: it imports the component's modules from our routes and hands every rerun on to them.
// Streamlit runs this text from a blob, which can import nothing but absolute addresses. components/__init__.py fills in the two below.
const FOLDER = '__FOLDER__';
const NAMES = '__NAMES__'.split(' '); // the component first, then whatever it imports: all are asked for at once
const SENTENCE = 'This part of the page could not be loaded. It tries again by itself; if that does not help, reload the page.';
const PAUSES = [500, 15000]; // milliseconds before the first new attempt, and at most

/**
 * @typedef {(name: string, value: unknown) => void} Send
 * @typedef {{ update(data: object, send: Send): void, destroy(): void }} Component What a component's `mount` returns.
 * @typedef {{ data?: [object], parentElement: HTMLElement, setStateValue: Send }} Call What Streamlit passes on every rerun.
 */

/** A component's place on the page: loads the component, then keeps it up to date until it leaves. */
class Place {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.parent = parent;
    this.folder = FOLDER;
    this.calls = 0;
    this.gone = false;
    /** @type {Call | null} */
    this.call = null;
    /** @type {Component | null} */
    this.component = null;
    /** @type {HTMLElement | null} */
    this.sentence = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.load(0);
  }

  /** @param {number} failures so far */
  async load(failures) {
    // Until 2026 browsers remembered that an address had failed, also that of a module further down (whatwg/html 10327): every attempt
    // gets a folder of its own.
    const folder = failures ? `${FOLDER}~${failures}` : FOLDER;
    let modules;
    try {
      modules = await Promise.all(NAMES.map((name) => import(new URL(`${folder}/${name}`, location.origin).href)));
    } catch {
      this.retry(failures);
      return;
    }
    this.sentence?.remove();
    if (this.gone) return;
    this.component = modules[0].mount(this.parent);
    this.update();
  }

  /** @param {number} failures */
  retry(failures) {
    if (this.gone) return;
    if (!this.sentence) {
      this.sentence = document.createElement('p');
      this.sentence.className = 'gle-unloaded';
      this.sentence.setAttribute('role', 'status');
      this.sentence.textContent = SENTENCE;
      this.parent.append(this.sentence);
    }
    this.timer = setTimeout(() => this.load(failures + 1), Math.min(PAUSES[1], PAUSES[0] * 2 ** failures));
  }

  update() {
    if (this.call) this.component?.update(this.call.data?.[0] ?? {}, this.call.setStateValue);
  }

  destroy() {
    this.gone = true;
    clearTimeout(this.timer);
    this.sentence?.remove();
    this.component?.destroy();
  }
}

/**
 * The place on an element. One of another version is ended first: the page has outlived an update of the server.
 * @param {HTMLElement & { glePlace?: Place | null }} parent
 * @returns {Place}
 */
function placeOn(parent) {
  if (parent.glePlace?.folder === FOLDER) return parent.glePlace;
  parent.glePlace?.destroy();
  return (parent.glePlace = new Place(parent));
}

/**
 * Called on every rerun whose data or theme changed. Streamlit calls what the newest call returned when the component leaves the page,
 * and what an older one returned when that was overtaken: only the newest may end the component.
 * @param {Call & { parentElement: { glePlace?: Place | null } }} call
 * @returns {() => void}
 */
export default function (call) {
  const { parentElement } = call;
  const place = placeOn(parentElement);
  place.call = call;
  const number = (place.calls += 1);
  place.update();
  return () => {
    if (number !== place.calls || parentElement.glePlace !== place) return;
    parentElement.glePlace = null;
    place.destroy();
  };
}
