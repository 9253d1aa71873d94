// Starts the page of a phone.
import { find } from '../dom.js';
import { codeIn } from './join.js';
import { Phone } from './phone_page.js';

const about = document.getElementById('about');
if (about) {
  const given = /** @type {import('./phone_page.js').About} */ (JSON.parse(about.textContent ?? '{}'));
  new Phone(find(document, 'main'), find(document, '.gle-unseen'), given).start(codeIn(given.code));
}
