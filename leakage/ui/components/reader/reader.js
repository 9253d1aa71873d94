// The page Learn: shows the index or the lesson that the address names, and handles the browser's history and the keys.
import { element, find } from '../dom.js';
import { Door } from './door.js';
import { readKept } from './kept.js';
import { LessonView } from './lesson.js';
import { say } from './phrases.js';
import { Presenter } from './presenter.js';
import { Shelf } from './shelf.js';
import { sourceOf } from './source.js';
import { readHash } from './walk.js';

export class Reader {
  /**
   * @param {HTMLElement} host
   * @param {HTMLElement} status holds texts for screen readers
   * @param {import('./source.js').About} about
   */
  constructor(host, status, about) {
    this.host = host;
    this.status = status;
    this.about = about;
    this.source = sourceOf(about);
    /** @type {LessonView | null} */
    this.view = null;
    /** @type {Presenter | null} */
    this.presenter = null;
    /** @type {Door | null} */
    this.door = null;
    this.asked = ''; // the lesson that is being opened
    /** @type {Map<string, Promise<import('./lesson.js').LessonData>>} */
    this.lessons = new Map();
    addEventListener('hashchange', () => this.follow());
    document.addEventListener('keydown', (event) => this.key(event));
  }

  /** Show what the address says. */
  async follow() {
    const { hash } = location;
    const wanted = readHash(hash);
    const entry = this.about.lessons.find(({ id }) => id === wanted?.lesson);
    this.asked = entry?.id ?? '';
    if (!wanted || !entry) {
      this.showShelf(location.hash.length > 1 ? say('unknown') : '');
      return;
    }
    if (this.view?.lesson.id !== entry.id && !(await this.open(entry))) return;
    if (!this.view || location.hash !== hash) return; // the address went on meanwhile
    this.presenter?.set(wanted.present);
    const place = wanted.place ?? this.view.walk.place;
    if (place !== this.view.walk.place || !this.view.text.childElementCount) this.view.go(place);
  }

  /** @param {string} note */
  showShelf(note) {
    this.close();
    document.title = say('pageTitle', { title: say('lessons') });
    this.host.replaceChildren(...this.frontDoor(), new Shelf(this.about.lessons, this.source, note, this.about.door ? 'h2' : 'h1').root);
    scrollTo(0, 0);
  }

  /** The front door above the lessons, if there is one; a single line if the visitor has begun a lesson. */
  frontDoor() {
    const { door } = this.about;
    if (!door) return [];
    const host = element('section', 'gle-door');
    this.door = new Door(host, { ...door, small: Object.keys(readKept()).length > 0 });
    return [host];
  }

  /**
   * Fetch a lesson whole and put it on the page. Answers whether it is still what the address says.
   * @param {import('./shelf.js').Entry} entry
   */
  async open(entry) {
    const { source } = this;
    const { lessons } = this.about;
    if (!this.lessons.has(entry.id)) {
      if (!this.view) this.host.replaceChildren(element('p', 'gle-note', say('loading')));
      this.lessons.set(entry.id, source.lesson(entry.id));
    }
    let lesson;
    try {
      lesson = await this.lessons.get(entry.id);
    } catch {
      this.lessons.delete(entry.id); // the next look asks again
      if (this.asked === entry.id) {
        this.close();
        this.host.replaceChildren(element('p', 'gle-note', say('failed')));
      }
      return false;
    }
    if (this.asked !== entry.id || !lesson) return false;
    this.close();
    this.view = new LessonView(lesson, {
      source,
      announce: (words) => (this.status.textContent = words),
      moved: (hash) => this.move(hash),
      next: lessons[lessons.indexOf(entry) + 1] ?? null,
      kept: readKept()[entry.id],
    });
    this.presenter = new Presenter(this.view, this.about.rooms ? this.about.base : null);
    document.title = say('pageTitle', { title: lesson.title });
    this.host.replaceChildren(this.view.root);
    scrollTo(0, 0);
    return true;
  }

  /**
   * Within a lesson every beat is a step of the browser's history.
   * @param {string} hash
   */
  move(hash) {
    const here = readHash(location.hash);
    const there = readHash(hash);
    if (here && there && here.lesson === there.lesson) {
      if (location.hash !== hash) history[here.place === null ? 'replaceState' : 'pushState'](null, '', hash);
    } else location.hash = hash;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.view) return;
    if (!this.presenter?.key(event)) this.view.key(event);
  }

  close() {
    this.presenter?.destroy();
    this.view?.destroy();
    this.door?.destroy();
    this.view = null;
    this.presenter = null;
    this.door = null;
  }
}

const about = document.getElementById('about');
if (about) {
  const reader = new Reader(find(document, 'main'), find(document, '.gle-unseen'), JSON.parse(about.textContent ?? '{}'));
  reader.follow();
}
