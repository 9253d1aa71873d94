// The ladder: what an attack works out on its way, a card for every frame that carries pictures beside the guess (layers, candidates).

class Ladder {
  /** `host` scrolls sideways; `seek(seq)` shows the frame of a card. */
  constructor(host, seek) {
    Object.assign(this, { host, seek });
    this.reset();
  }

  reset() {
    Object.assign(this, { cards: new Map(), heard: 0 });
    this.host.replaceChildren();
  }

  /** Add what is new. A layer comes once; an answer that is given again takes the place of the first. */
  update(record) {
    const fresh = record.frames.filter((frame) => frame.views && !(frame.seq <= this.heard));
    if (!fresh.length) return;
    this.heard = fresh[fresh.length - 1].seq;
    for (const frame of fresh) {
      const key = `${frame.step}:${frame.note?.layer ?? ''}`, old = this.cards.get(key), card = rung(frame);
      card.onclick = () => this.seek(frame.seq);
      if (old) old.replaceWith(card);
      else this.host.append(card);
      this.cards.set(key, card);
    }
  }

  /** The card of the frame that is shown stands out; those after it wait. */
  mark(seq) {
    if (!isNumber(seq)) return;
    for (const card of this.cards.values()) {
      const now = Number(card.dataset.seq) === seq;
      if (now && card.getAttribute('aria-current') !== 'step') this.host.scrollTo({ left: card.offsetLeft - this.host.offsetLeft - (this.host.clientWidth - card.clientWidth) / 2 });
      if (now) card.setAttribute('aria-current', 'step');
      else card.removeAttribute('aria-current');
      card.classList.toggle('gle-later', Number(card.dataset.seq) > seq);
    }
  }
}

/** One card: a title, the pictures, and how well they were determined. */
function rung({ seq, views, note = {} }) {
  const card = element('button', 'gle-rung'), pictures = element('span', 'gle-views'), names = Object.keys(views);
  card.type = 'button';
  card.dataset.seq = seq;
  card.append(element('b', '', note.layer ? `what enters ${note.layer}` : names.length > 1 ? `the candidates${note.way ? `: ${note.way} is chosen` : ''}` : names[0]), pictures);
  for (const name of names) {
    const figure = element('span', 'gle-view'), image = element('img', '');
    Object.assign(image, { src: views[name], alt: name });
    figure.append(image);
    if (names.length > 1) figure.append(element('small', '', note.layer ? name.split(', ').slice(1).join(', ') : name));
    pictures.append(figure);
  }
  card.append(...measured(note).map((words) => (typeof words === 'string' ? element('small', 'gle-rung-line', words) : words)));
  return card;
}

/** The lines of a card: of a layer what its equations determine, of candidates how far their gradients are from the one received. */
function measured(note) {
  if (isNumber(note.rank) && isNumber(note.unknowns)) {
    const bar = element('i', 'gle-rank'), fill = element('i', '');
    fill.style.width = `${(100 * note.rank) / note.unknowns}%`;
    bar.append(fill);
    const all = note.rank >= note.unknowns, condition = isNumber(note.condition) ? `condition ${short(note.condition, 2)}` : 'no unique solution';
    bar.title = 'Condition: how much an error in the equations grows in their solution. Misfit: how far the equations are from holding.';
    return [bar, `${all ? 'all' : `${whole(note.rank)} of`} ${whole(note.unknowns)} unknowns`, `from ${whole(note.equations)} equations`, condition, `misfit ${short(note.residual, 2)}`];
  }
  if (note.layer) return ['fully connected:', 'read from its gradient'];
  const same = [['the picture', note['distance of the picture']], ['its twin', note['distance of the twin']]].filter(([, value]) => isNumber(value));
  if (!same.length) return [];
  const percent = (value) => `${short(100 * value, 2)} %`, [start, end] = [note['start from the twin'], note['end from the twin']];
  const search = isNumber(end) ? [`DLG began ${percent(start)} away from the twin`, `and ended ${percent(end)} away`] : [];
  return ['Both send the same gradient; relative distance', ...same.map(([name, value]) => `of ${name} ${short(value, 2)}`), ...search];
}
