// The page on which a student types the code of a room.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { tell } from './room_phrases.js';

const LENGTH = 5; // letters and digits of a code

/**
 * The code in what was typed or pasted, which may be the whole address of a room.
 * @param {string} text
 */
export const codeIn = (text) =>
  text
    .replace(/^.*\/j\//s, '')
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, '')
    .slice(0, LENGTH);

/**
 * @typedef {object} Joining what the page says before a code is typed
 * @property {string} [code] in the field
 * @property {string} [sentence] why that code was refused
 * @property {string} [left] the room that this phone was in
 * @property {boolean} [ended] that room has ended
 */

export class JoinPage {
  /**
   * @param {Joining} how
   * @param {(code: string) => void} enter
   */
  constructor({ code = '', sentence = '', left = '', ended = false }, enter) {
    this.enter = enter;
    this.root = element('form', 'gle-join');
    this.root.noValidate = true;
    const label = element('label', '', tell('joinCode'));
    label.htmlFor = 'gle-code';
    this.input = element('input', 'gle-code');
    Object.assign(this.input, { id: 'gle-code', type: 'text', autocomplete: 'off', spellcheck: false, value: code });
    for (const [name, value] of Object.entries({ autocapitalize: 'characters', autocorrect: 'off', enterkeyhint: 'go' }))
      this.input.setAttribute(name, value);
    this.input.setAttribute('aria-describedby', 'gle-code-error');
    this.error = element('p', 'gle-join-error');
    this.error.id = 'gle-code-error';
    this.error.setAttribute('role', 'alert');
    this.button = element('button', 'gle-join-button', tell('join'));
    this.button.type = 'submit';
    this.input.addEventListener('input', () => this.tidy());
    this.root.addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit();
    });
    /** @type {HTMLElement} what has the focus first */
    this.start = this.input;
    this.root.append(element('h1', '', tell('joinTitle')));
    if (left || ended) this.root.append(this.before(left));
    this.root.append(label, this.input, this.error, this.button);
    this.root.append(element('p', 'gle-soft', tell('joinHelp')));
    this.refuse(sentence);
  }

  /**
   * What came of the room that this phone was in, and the way back.
   * @param {string} left its code; empty: it has ended
   */
  before(left) {
    const box = element('div', 'gle-join-before');
    const words = element('p', '', left ? tell('left', { code: left }) : tell('ended'));
    box.append(words);
    if (left) {
      words.id = 'gle-left';
      this.start = button('gle-join-button', tell('goBackIn'), () => this.enter(left));
      this.start.setAttribute('aria-describedby', words.id);
      box.append(this.start);
    } else {
      words.tabIndex = -1;
      this.start = words;
    }
    return box;
  }

  /** Capital letters, and nothing that is part of no code; the cursor stays. */
  tidy() {
    const { input } = this;
    const tidied = codeIn(input.value);
    if (tidied !== input.value) {
      const before = codeIn(input.value.slice(0, input.selectionStart ?? LENGTH)).length;
      input.value = tidied;
      input.setSelectionRange(before, before);
    }
    this.refuse('');
  }

  submit() {
    const code = codeIn(this.input.value);
    if (code.length === LENGTH) {
      this.wait(true);
      this.enter(code);
    } else {
      this.refuse(tell('joinShort'));
      this.input.focus();
    }
  }

  /** @param {string} sentence why; empty: nothing is wrong */
  refuse(sentence) {
    this.wait(false);
    this.error.textContent = sentence;
    this.input.setAttribute('aria-invalid', String(Boolean(sentence)));
  }

  /** @param {boolean} waiting for the server */
  wait(waiting) {
    this.button.textContent = tell(waiting ? 'joining' : 'join');
    this.button.setAttribute('aria-disabled', String(waiting));
  }
}
