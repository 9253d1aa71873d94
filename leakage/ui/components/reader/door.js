// The front door: the question, the guess and the stories for a newcomer, a single line for a returning visitor. All content comes as data.
import { element } from '../dom.js';
import { Opening } from './opening.js';
import { say } from './phrases.js';
import { storyList } from './stories.js';

/**
 * @typedef {object} DoorData
 * @property {import('./opening.js').Film} film
 * @property {{ why: string, learn: string, teach: string, own?: string | null }} links `learn`: empty if the lessons stand below; `own`: the address where visitors try their own picture
 * @property {import('./stories.js').Story[]} stories
 * @property {boolean} [small] draw a single line, for a returning visitor
 * @property {boolean} [needs_program] the Lab and own pictures need the program, and their links say so
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
   * @param {() => void} [tryOwn] goes there in place of the address `links.own`
   */
  constructor(host, data, tryOwn) {
    this.host = host;
    this.data = data;
    this.tryOwn = tryOwn;
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
    return [element('h1', '', say('doorQuestion')), opening.root, below];
  }

  own() {
    const { own } = this.data.links;
    if (!own) return [];
    const link = linkTo('gle-door-own', own, say('tryOwn'));
    if (this.data.needs_program) link.append(' ', element('small', '', say('ownNeeds')));
    link.addEventListener('click', (event) => {
      if (!this.tryOwn) return;
      event.preventDefault();
      this.goOn();
      this.tryOwn();
    });
    return [link];
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
    line.append(more, linkTo('gle-door-teach', links.teach, say('doorTeach')));
    return [element('h1', '', say('doorQuestion')), line];
  }

  destroy() {
    document.documentElement.classList.remove(COVERED);
    this.opening?.destroy();
  }
}
