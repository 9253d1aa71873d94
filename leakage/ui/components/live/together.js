// Several runs as one: the private pictures once, and one play head for all. It moves along the steps of the attack where all runs have
// the same number of them, and else along the share of the way that each has gone.
const HEADS = 121; // places of the shared play head; at the last one every run shows its answer
const NO_CURVES = { update() {}, place() {}, describe() {}, destroy() {} };

/** Steps before every picture, over all starts of the attack together: never falling. */
function stepsOf(pictures) {
  let before = 0;
  return pictures.map(({ step = 0 }, place) => {
    if (place && step < pictures[place - 1].step) before += pictures[place - 1].step;
    return before + step;
  });
}

class Together {
  constructor(host, template, views, { base, autoplay }) {
    Object.assign(this, { host, views, base, autoplay, calm: matchMedia('(prefers-reduced-motion: reduce)').matches });
    this.root = element('div', 'gle-together');
    this.truth = element('div', 'gle-tiles');
    const bar = template.content.querySelector('.gle-player').cloneNode(true), told = element('div', 'gle-told'), own = element('div', 'gle-own');
    this.title = element('h4', '');
    told.append(this.title, element('p', 'gle-where', 'All arms below start from here.'), bar);
    own.append(this.truth);
    this.root.append(own, told);
    this.now = bar.querySelector('.gle-now');
    host.prepend(this.root);
    host.classList.add('gle-compare');
    this.player = new Player(bar, { show: (place) => this.show(place), ready: (place) => this.ready(place), settled: () => {} });
    this.root.addEventListener('keydown', (event) => this.player.key(event));
  }

  reset() {
    const count = this.views.length;
    Object.assign(this, { batch: 0, played: false });
    this.host.style.setProperty('--gle-across', count < 5 ? count : count < 7 ? 3 : 4);
    this.player.reset();
    this.lay(1, []);
  }

  /** The private pictures of the run that has most of them. */
  introduce({ pictures = [], batch = pictures.length || 1, private: sheet }) {
    if (batch <= this.batch) return;
    this.lay(batch, pictures.map(({ title, class_name: name }) => ({ text: title || name || '', label: [title, name].filter(Boolean).join(', class ') })));
    this.batch = batch;
    if (sheet) loadImage(this.base + sheet).then((image) => drawSheet(image, this.truth), () => {});
  }

  lay(batch, captions) {
    this.title.textContent = batch > 1 ? 'The private pictures, on the phone' : 'The private picture, on the phone';
    layTiles(this.truth, batch, captions);
    this.truth.style.setProperty('--gle-columns', Math.min(batch, 4));
  }

  /** What every run has to show, and how long its way is. */
  ways() {
    const views = this.views.filter(({ record }) => record), planned = views.map(({ record }) => record.meta?.steps).filter(isNumber);
    const ways = views.map((view) => {
      const { pictures, end, meta } = view.record, steps = stepsOf(pictures), last = steps[steps.length - 1] ?? 0;
      return { view, steps, last, length: Math.max(1, end ? last : Math.max(meta?.steps ?? 0, last)) };
    });
    this.same = planned.length > 0 && planned.every((steps) => steps === planned[0]);
    const longest = Math.max(...ways.map(({ length }) => length));
    return this.same ? ways.map((way) => ({ ...way, length: longest })) : ways;
  }

  /** The picture of a run at a place of the play head: the last one that is not beyond it. */
  at({ view, steps, length }, place) {
    if (place >= HEADS - 1) return Math.max(0, view.player.running ? steps.length - 1 : view.player.answer);
    const reached = (place / (HEADS - 2)) * length;
    let found = steps.length - 1;
    while (found > 0 && steps[found] > reached + 1e-9) found -= 1;
    return found;
  }

  show(place) {
    for (const way of this.ways()) {
      const { player } = way.view;
      if (this.player.mode === 'follow' && player.running) player.follow();
      else player.seek(this.at(way, place));
    }
    this.tell();
  }

  ready(place) {
    return this.ways().every((way) => !way.steps.length || way.view.isReady(way.view.record.pictures[this.at(way, place)].seq));
  }

  /** Called whenever a run has drawn something. */
  update() {
    const { player } = this, ways = this.ways(), running = ways.some(({ view }) => view.player.running);
    const count = ways.some(({ steps }) => steps.length) ? HEADS : 0;
    const furthest = Math.max(0, ...ways.map(({ last, length }) => last / length));
    const place = player.mode !== 'follow' ? player.place : running ? Math.round(furthest * (HEADS - 2)) : HEADS - 1;
    if (count && !running && !this.played) {
      this.played = true;
      if (this.autoplay && !this.calm && player.mode === 'follow' && ways.every(({ view, steps }) => view.unseen || !steps.length)) {
        player.update({ count, place, answer: HEADS - 1, running: true }); // or it would come to rest at once
        player.play(0);
      }
    }
    player.update({ count, place: player.mode === 'play' ? player.place : place, answer: count - 1, running });
    this.tell();
  }

  tell() {
    const { place, count, mode, running } = this.player, longest = Math.max(0, ...this.ways().map(({ length }) => length));
    const share = Math.min(1, Math.max(0, place) / (HEADS - 2));
    const words = !count ? 'no pictures yet' : !running && place >= HEADS - 1 ? 'the results' : this.same ? `step ${whole(share * longest)} of ${whole(longest)}` : `${Math.round(100 * share)} % of the way`;
    if (this.now.textContent !== words) this.now.textContent = words;
    this.player.$slider.setAttribute('aria-valuetext', words);
    Object.assign(this.root.dataset, { place, mode });
  }

  destroy() {
    this.player.destroy();
    this.root.remove();
  }
}
