// The front door: for a newcomer the question, the guess and the stories; for whoever has been here one line. It is told everything as data.
import { element } from '../dom.js';
import { Opening } from './opening.js';
import { say } from './phrases.js';
import { storyList } from './stories.js';

/**
 * @typedef {object} DoorData
 * @property {import('./opening.js').Film} film
 * @property {{ why: string, learn: string, teach: string, own?: string | null }} links `learn`: nothing where its lessons stand below; `own`: where somebody tries their own picture
 * @property {import('./stories.js').Story[]} stories
 * @property {boolean} [small] for whoever has been here before
 * @property {boolean} [needs_program] the Lab and one's own picture do: they are told apart from what plays here
 */

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

export class Door {
  /**
   * @param {HTMLElement} host which it fills
   * @param {DoorData} data
   * @param {() => void} [tryOwn] goes there in place of the address `links.own`
   */
  constructor(host, data, tryOwn) {
    this.data = data;
    this.tryOwn = tryOwn;
    this.opening = data.small ? null : new Opening(data.film);
    host.dataset.small = String(Boolean(data.small));
    host.replaceChildren(...(this.opening ? this.wide(this.opening) : this.line()));
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
    below.append(element('h2', '', say('stories')), this.stories());
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
    this.opening?.destroy();
  }
}
