// The view cards: what an attack works out on its way, a card for every frame that carries pictures beside the guess (layers, candidates).
import { element } from '../dom.js';
import { isNumber, short, whole } from './words.js';

/**
 * @typedef {import('./record.js').Frame} Frame
 * @typedef {{ [name: string]: unknown }} Note
 */

export class ViewCards {
  /**
   * @param {HTMLElement} host scrolls sideways
   * @param {(seq: number) => void} seek shows the frame of a card
   */
  constructor(host, seek) {
    this.host = host;
    this.seek = seek;
    /** @type {Map<string, HTMLElement>} */
    this.cards = new Map();
    this.heard = -1;
    this.leaving = new AbortController();
    const card = (/** @type {Event} */ event) =>
      /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.gle-view-card'));
    const press = (/** @type {Event} */ event) => {
      const seq = card(event)?.dataset.seq;
      if (seq !== undefined) this.seek(Number(seq));
    };
    host.addEventListener('click', press, { signal: this.leaving.signal });
  }

  reset() {
    this.cards = new Map();
    this.heard = -1;
    this.host.replaceChildren();
  }

  /**
   * Add what is new. A layer comes once; an answer that is given again takes the place of the first.
   * @param {{ frames: Frame[] }} record
   */
  update({ frames }) {
    for (const frame of frames) {
      if (!frame.views || frame.seq <= this.heard) continue;
      this.heard = frame.seq;
      const key = `${frame.step}:${frame.note?.layer ?? ''}`;
      const old = this.cards.get(key);
      const card = cardOf(frame, frame.views);
      if (old) old.replaceWith(card);
      else this.host.append(card);
      this.cards.set(key, card);
    }
  }

  /**
   * The card of the frame that is shown stands out; those after it wait. Beside the answer the layer with too few equations is in view.
   * @param {number | undefined} seq
   */
  mark(seq) {
    if (!isNumber(seq)) return;
    const cards = [...this.cards.values()];
    const { seq: end, layer } = cards.at(-1)?.dataset ?? {};
    const short = !layer && Number(end) <= seq ? cards.find(({ dataset }) => dataset.short) : undefined;
    for (const card of cards) {
      const now = Number(card.dataset.seq) === seq;
      if (now && card.getAttribute('aria-current') !== 'step') {
        const { offsetLeft, clientWidth } = short ?? card;
        this.host.scrollTo({ left: offsetLeft - this.host.offsetLeft - (this.host.clientWidth - clientWidth) / 2 });
      }
      card.classList.toggle('gle-decisive', card === short);
      if (now) card.setAttribute('aria-current', 'step');
      else card.removeAttribute('aria-current');
      card.classList.toggle('gle-later', Number(card.dataset.seq) > seq);
    }
  }

  destroy() {
    this.leaving.abort();
  }
}

/**
 * One card: a title, the pictures, and how well they were determined.
 * @param {Frame} frame
 * @param {{ [name: string]: string }} views
 */
function cardOf({ seq, note = {} }, views) {
  const names = Object.keys(views);
  const chosen = note.way ? `: ${note.way} is chosen` : '';
  const title = note.layer ? `what enters ${note.layer}` : names.length > 1 ? `the candidates${chosen}` : names[0];
  const card = element('button', 'gle-view-card');
  const pictures = element('span', 'gle-views');
  card.type = 'button';
  Object.assign(card.dataset, { seq: String(seq), layer: String(note.layer ?? '') });
  card.append(element('b', '', title), pictures);
  for (const name of names) {
    const figure = element('span', 'gle-view');
    const image = element('img', '');
    Object.assign(image, { src: views[name], alt: name });
    figure.append(image);
    if (names.length > 1) figure.append(element('small', '', note.layer ? name.split(', ').slice(1).join(', ') : name));
    pictures.append(figure);
  }
  const { share, lines } = measured(note);
  if (isNumber(share)) card.append(rankBar(share));
  if (isNumber(share) && share < 1) card.dataset.short = 'true'; // too few equations
  card.append(...lines.map((words) => element('small', 'gle-view-card-line', words)));
  return card;
}

/** @param {number} share */
function rankBar(share) {
  const bar = element('i', 'gle-rank');
  const fill = element('i', '');
  fill.style.width = `${100 * share}%`;
  bar.append(fill);
  bar.title = 'Condition: how much an error in the equations grows in their solution. Misfit: how far the equations are from holding.';
  return bar;
}

/**
 * The lines of a card: of a layer what its equations determine, of candidates how far their gradients are from the one received.
 * @param {Note} note
 * @returns {{ share?: number, lines: string[] }} `share`: of the unknowns that are determined
 */
export function measured(note) {
  const { rank, unknowns, equations, condition, residual, layer } = note;
  if (isNumber(rank) && isNumber(unknowns)) {
    const determined = rank >= unknowns ? 'all' : `${whole(rank)} of`;
    const known = isNumber(condition) ? `condition ${short(condition, 2)}` : 'no unique solution';
    const lines = [
      `${determined} ${whole(unknowns)} unknowns`,
      `from ${whole(equations)} equations`,
      known,
      `misfit ${short(residual, 2)}`,
    ];
    return { share: rank / unknowns, lines };
  }
  if (layer) return { lines: ['fully connected:', 'read from its gradient'] };
  const candidates = /** @type {[string, unknown][]} */ ([
    ['the picture', note['distance of the picture']],
    ['its twin', note['distance of the twin']],
  ]);
  const same = candidates.filter(([, value]) => isNumber(value)).map(([name, value]) => `of ${name} ${short(value, 2)}`);
  if (!same.length) return { lines: [] };
  const percent = (/** @type {unknown} */ value) => `${short(isNumber(value) ? 100 * value : null, 2)} %`;
  const [start, end] = [note['start from the twin'], note['end from the twin']];
  const search = isNumber(end) ? [`DLG began ${percent(start)} away from the twin`, `and ended ${percent(end)} away`] : [];
  return { lines: ['Both send the same gradient; relative distance', ...same, ...search] };
}
