// The end of a room: a button, and after its press the question whether it is meant. No request: what ends the room is given.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { word } from './hall_phrases.js';

export class EndRoom {
  /**
   * @param {{ question: () => string, end: () => void }} how `question`: asked again at each update
   */
  constructor({ question, end }) {
    this.question = question;
    this.root = element('span', 'gle-room-end');
    this.press = button('gle-quiet', word('end'), () => this.ask());
    this.words = element('span', 'gle-room-sure');
    this.yes = button('gle-quiet', word('endIt'), end);
    this.no = button('gle-quiet', word('keepIt'), () => this.rest());
    this.root.append(this.press);
  }

  ask() {
    this.root.replaceChildren(this.words, this.yes, this.no);
    this.update();
    this.no.focus();
  }

  rest() {
    this.root.replaceChildren(this.press);
    this.press.focus();
  }

  /** The question, as the room is now. */
  update() {
    const words = this.question();
    if (this.words.textContent !== words) this.words.textContent = words;
  }
}
