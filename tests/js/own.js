// What the tests of "Try your own picture" put in place of a network and of a browser's worker: scripts and workers that do as a test says.

/**
 * The scripts that a page adds from now on; none of them is loaded.
 * @param {import('./page.js').Page} page
 */
export function scriptsOf(page) {
  /** @type {HTMLElement[]} */
  const scripts = [];
  page.replace(page.document.head, 'append', { value: (/** @type {HTMLElement} */ script) => scripts.push(script) });
  return scripts;
}

/**
 * Let the script for the visitor's own picture have brought a class that notes what is asked of it; returns all that are made.
 * @param {{ after: (end: () => void) => void }} test
 */
export function bringOwn(test) {
  /** @type {Own[]} */
  const made = [];
  class Own {
    /**
     * @param {unknown} _parts
     * @param {{ lab: import('../../leakage/ui/components/reader/source.js').Source['lab'], begin: object }} how
     */
    constructor(_parts, how) {
      this.how = how;
      this.root = document.createElement('section');
      this.input = document.createElement('input');
      this.root.append(this.input);
      /** @type {object[]} */
      this.used = [];
      this.gone = false;
      made.push(this);
    }

    /** @param {object} begin */
    use(begin) {
      this.used.push(begin);
    }

    destroy() {
      this.gone = true;
      this.root.remove();
    }
  }
  Object.assign(globalThis, { gleOwn: { OwnPicture: Own } });
  test.after(() => Reflect.deleteProperty(globalThis, 'gleOwn'));
  return made;
}

/** A browser's worker that does as a test says: it notes what it is sent, and a test lets it answer. */
export class FakeWorker {
  /** @type {FakeWorker[]} all that were started */
  static all = [];

  /** @param {string} address */
  constructor(address) {
    this.address = address;
    /** @type {any[]} */
    this.heard = [];
    this.ended = false;
    /** @type {((event: { data: object }) => void) | null} */
    this.onmessage = null;
    /** @type {((event: { message: string }) => void) | null} */
    this.onerror = null;
    FakeWorker.all.push(this);
  }

  /** @param {object} message */
  postMessage(message) {
    this.heard.push(message);
  }

  terminate() {
    this.ended = true;
  }

  /** @param {object} data */
  say(data) {
    this.onmessage?.({ data });
  }
}
