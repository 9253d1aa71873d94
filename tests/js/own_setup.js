// "Try your own picture" on a page, for the tests of it: a photo of known pixels, and a worker that does as a test says.
import { element } from '../../leakage/ui/components/dom.js';
import { OwnPicture } from '../../leakage/ui/components/own/own_picture.js';
import { link } from '../../leakage/ui/components/reader/source.js';
import { FakeWorker } from './own.js';
import { openPage } from './page.js';

export const LINEUP = 'data:lineup';
export const AREA = 32 * 32;
export const PARTS = { worker: 'worker();', style: '.gle-own-picture {}', lineup: LINEUP };
export const photo = new File(['photo'], 'photo.jpg', { type: 'image/jpeg' });
/** Bytes without order. @param {number} state */
const bytes = (state) => Array.from({ length: 4 * AREA }, () => (state = (state * 48271) % 2147483647) % 256);
export const PIXELS = bytes(1);
export const TRUTH = Float32Array.from({ length: 3 * AREA }, (_, i) => PIXELS[4 * (i % AREA) + Math.floor(i / AREA)] / 255);
export const GREY = TRUTH.map(() => 0.5);

/**
 * "Try your own picture" on a page, in a browser that decodes every file to PIXELS.
 * @param {import('node:test').TestContext} t
 * @param {{ calm?: boolean, begin?: object, lineup?: boolean, worker?: unknown, guest?: boolean }} [how] `guest`: may not go to the Lab
 */
export function openOwn(t, { calm = false, begin = {}, lineup = true, worker = FakeWorker, guest = false } = {}) {
  const page = openPage(t, { calm });
  FakeWorker.all = [];
  page.replace(globalThis, 'Worker', { value: worker });
  page.serve = (address) => {
    if (address === LINEUP) return lineup ? { width: 3 * 32, height: 32, pixels: bytes(2) } : null;
    return { width: 640, height: 480, pixels: PIXELS };
  };
  const own = new OwnPicture(PARTS, { lab: (query, words) => (guest ? element('a', '', words) : link(`/?${query}`, words)), begin });
  page.document.body.append(own.root);
  const one = (/** @type {string} */ name) => /** @type {HTMLElement} */ (own.root.querySelector(name));
  const cards = () => /** @type {HTMLElement[]} */ ([...own.root.querySelectorAll('.gle-own-run')]);
  const said = (/** @type {string} */ name, card = cards()[0]) => card.querySelector(name)?.textContent ?? '';
  const told = () => one('.gle-own-unseen').textContent;
  /** @param {File} file */
  async function choose(file) {
    Object.defineProperty(own.input, 'files', { value: [file], configurable: true });
    page.fire(own.input, 'change');
    await page.tick();
  }
  async function start() {
    one('.gle-own-start').click();
    await page.tick();
    return FakeWorker.all[FakeWorker.all.length - 1];
  }
  return { page, own, one, cards, said, told, choose, start };
}
