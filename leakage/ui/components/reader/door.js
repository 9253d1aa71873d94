// The front door: the question, the guess and the stories for a newcomer, a single line for a returning visitor. All content comes as data.
import { element } from '../dom.js';
import { Opening } from './opening.js';
import { OwnPlace } from './own.js';
import { say } from './phrases.js';
import { storyList } from './stories.js';

/**
 * @typedef {object} DoorData
 * @property {import('./opening.js').Film} film
 * @property {{ why: string, learn: string, teach: string, lab: string }} links `learn`: empty if the lessons stand below; `lab`: empty without a Lab
 * @property {string | null} [own] the address of the script that attacks the visitor's own picture
 * @property {import('./stories.js').Story[]} stories
 * @property {boolean} [small] draw a single line, for a returning visitor
 * @property {boolean} [needs_program] the Lab needs the program, and links to it say so
 */

const COVERED = 'gle-door-asks'; // on the whole page; assets/style.css covers what lies outside of the door

/**
 * @param {string} className
 * @param {string} href
 * @param {string} words
 */
function linkTo(className, href, words) {
  const link = element('a', className, words);
  link.href = href;
  return link;
}

/** Return whether this tab has seen the answer, so that a visitor that returns from a story need not guess again. Without storage: false. */
function wasAnswered() {
  try {
    return sessionStorage.getItem(COVERED) === 'answered';
  } catch {
    return false;
  }
}

function noteAnswered() {
  try {
    sessionStorage.setItem(COVERED, 'answered');
  } catch {
    // likewise
  }
}

export class Door {
  /**
   * @param {HTMLElement} host which it fills
   * @param {DoorData} data
   */
  constructor(host, data) {
    this.host = host;
    this.data = data;
    /** @type {OwnPlace | null} */
    this.ownPlace = null;
    this.opening = data.small
      ? null
      : new Opening(data.film, () => {
          noteAnswered();
          this.cover(host, false);
        });
    host.dataset.small = String(Boolean(data.small));
    host.replaceChildren(...(this.opening ? this.wide(this.opening) : this.line()));
    this.cover(host, !data.small && !wasAnswered());
  }

  /**
   * Until the question is answered, the pictures that show the answer are covered, here and in the rest of the page.
   * @param {HTMLElement} host
   * @param {boolean} on
   */
  cover(host, on) {
    host.dataset.covered = String(on);
    const list = /** @type {HTMLElement | null} */ (host.querySelector('.gle-stories'));
    if (list) list.inert = on;
    document.documentElement.classList.toggle(COVERED, on);
  }

  /** Continue without a guess: show the answer, and uncover the page. */
  goOn() {
    if (this.host.dataset.covered !== 'true') return;
    this.opening?.giveUp();
    noteAnswered();
    this.cover(this.host, false);
  }

  /**
   * All of it.
   * @param {Opening} opening
   */
  wide(opening) {
    const { links } = this.data;
    const actions = element('p', 'gle-door-actions');
    actions.append(
      linkTo('gle-door-why', links.why, say('learnWhy')),
      ...this.own(),
      linkTo('gle-door-teach', links.teach, say('doorTeach')),
    );
    opening.root.append(actions);
    const below = element('section', 'gle-door-below');
    below.append(element('h2', '', say('stories')), element('p', 'gle-door-covered', say('doorCovered')), this.stories());
    return [element('h1', '', say('doorQuestion')), opening.root, ...this.place(), below];
  }

  /** The button for the visitor's own picture. */
  own() {
    const { own, links, needs_program } = this.data;
    if (!own) return [];
    const needs = needs_program ? ` (${say('needsProgram')})` : '';
    this.ownPlace = new OwnPlace(own, (query, words) => linkTo('', `${links.lab}${query ? `?${query}` : ''}`, `${words}${needs}`));
    const button = element('button', 'gle-door-own');
    button.type = 'button';
    const words = element('span', '', `${say('tryOwn')} `); // one item of the button's flex row, which would drop the space between two
    words.append(element('span', '', say('tryOwnPicture')));
    button.append(words);
    button.addEventListener('click', () => {
      this.goOn();
      this.ownPlace?.open({});
    });
    return [button];
  }

  /** Where the visitor's own picture is attacked. */
  place() {
    return this.ownPlace ? [this.ownPlace.root] : [];
  }

  stories() {
    return storyList(this.data.stories, this.data.needs_program ? ` (${say('needsProgram')})` : '');
  }

  /** The question, and one line; the stories behind a fold. */
  line() {
    const { links } = this.data;
    const more = element('details', 'gle-door-fold');
    more.append(element('summary', '', say('stories')), this.stories());
    const line = element('nav', 'gle-door-line');
    line.setAttribute('aria-label', say('learn'));
    if (links.learn) line.append(linkTo('', links.learn, say('learn')));
    line.append(more, ...this.own(), linkTo('gle-door-teach', links.teach, say('doorTeach')));
    return [element('h1', '', say('doorQuestion')), line, ...this.place()];
  }

  destroy() {
    document.documentElement.classList.remove(COVERED);
    this.opening?.destroy();
    this.ownPlace?.destroy();
    this.host.replaceChildren();
  }
}
