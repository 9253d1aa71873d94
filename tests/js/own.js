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
