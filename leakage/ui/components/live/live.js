// The stage: one view per run, fed by one event stream; mounted by live.py behind the files in live/, which share its scope.
const BURST = 1500; // milliseconds: a run that ends this soon after its first frame was not watched, it is played as a time lapse
const PACE = 40; // milliseconds: of a comparison, so many for each of its runs, pass between two drawings
const HOLD = 200; // milliseconds: history arrives in one go, wait for it before the first picture is shown

class RunView {
  constructor(template, { base, autoplay, together = null }) {
    Object.assign(this, { base, autoplay, together, calm: matchMedia('(prefers-reduced-motion: reduce)').matches });
    this.root = template.content.firstElementChild.cloneNode(true);
    this.$ = (name) => this.root.querySelector(`.gle-${name}`);
    this.player = new Player(this.$('player'), {
      show: (place) => this.show(this.record.pictures[place]),
      ready: (place) => this.isReady(this.record.pictures[place].seq),
      settled: () => this.settle(),
    });
    this.curves = together ? NO_CURVES : new Curves(this.$('plot'), base, (step) => this.seekStep(step));
    this.root.addEventListener('keydown', (event) => (together ?? this).player.key(event));
    this.root.addEventListener('pointerover', (event) => this.pair(event));
    this.root.addEventListener('pointerleave', () => this.pair({}));
    this.ladder = new Ladder(this.$('ladder'), (seq) => this.player.seek(placeOf(this.record.pictures, seq)));
    layGauges(this.$('gauges'));
    drawStrip(this.$('ramp'), Array.from({ length: 64 }, (_, cell) => cell * 4));
  }

  /** Start over with another run. Tiles stay, dimmed, until the new pictures are there: no flash in between. */
  reset({ id, title = '', pictures = 1, ...told }) {
    Object.assign(this, { title, expected: pictures, told, spoken: '' });
    this.record = newRecord(id);
    this.sheets = new Sheets((seq) => `${this.base}/api/runs/${encodeURIComponent(id)}/frames/${seq}.png`);
    Object.assign(this, { shown: null, wanted: null, seen: new Set(), firstFrame: null, heardTo: 0 });
    this.root.classList.add('gle-waiting');
    this.root.dataset.run = id;
    for (const grid of [this.$('truth'), this.$('guess')]) if (!grid.childElementCount) layTiles(grid, this.expected, []);
    layPairs(this.root, this.together ? 0 : this.$('guess').childElementCount);
    if (!this.$('layers').childElementCount) drawLayers(this.$('layers'), Array.from({ length: 8 }, () => ({ name: '', strip: [] })));
    this.$('title').textContent = this.title;
    this.tellWhere();
    this.player.reset();
    this.ladder.reset();
    this.refresh();
  }

  receive(event) {
    take(this.record, event);
    if (event.kind === 'meta') this.introduce(this.record.meta);
    if (event.kind === 'frame') this.firstFrame ??= performance.now();
    if (event.kind === 'end') this.finish();
    this.soon();
  }

  /** Draw what has come, with the next animation frame; of many runs more seldom, so that clicks are answered in between. */
  soon() {
    this.next ??= setTimeout(() => requestAnimationFrame(() => this.refresh()), PACE * (this.together?.views.length ?? 0));
  }

  introduce({ pictures = [], batch = pictures.length || 1, received = {}, private: sheet }) {
    const names = pictures.map(({ title, class_name: name }) => ({ text: title || name || '', detail: title && batch > 1 ? name ?? '' : '', label: [title, batch > 1 ? '' : name].filter(Boolean).join(', class ') }));
    layTiles(this.$('truth'), batch, names);
    layTiles(this.$('guess'), batch, names.map(() => ({ text: '', label: 'not reconstructed yet' })));
    layPairs(this.root, this.together ? 0 : batch);
    if (sheet) loadImage(this.base + sheet).then((image) => drawSheet(image, this.$('truth')), () => {});
    drawLayers(this.$('layers'), received.layers ?? []);
    const singles = batch > 1 ? received.singles ?? [] : [];
    this.$('singles').hidden = !singles.length;
    drawSingles(this.$('single-rows'), singles);
    const amount = [isNumber(received.entries) ? `${whole(received.entries)} numbers` : '', weight(received.bytes)].filter(Boolean).join(', ');
    this.$('received').textContent = amount ? `${amount}:\nthis is all that is sent.` : 'This is all that is sent.';
    this.expected = batch;
    this.tellWhere();
    this.root.classList.remove('gle-waiting');
    this.together?.introduce(this.record.meta);
  }

  /** Where the pictures are, what travels, and what the guesses are made of. */
  tellWhere() {
    const { sent = 'the gradient', phones = 1, plain = true } = this.told, many = this.expected > 1, where = phones > 1 ? 'their phones' : 'the phone';
    const write = (zone, part, words) => { this.$(zone).querySelector(part).textContent = words; };
    write('private', 'h4', many ? 'The private pictures' : 'The private picture');
    write('private', '.gle-where', phones > 1 ? `on ${phones} phones` : 'on the phone');
    write('private', '.gle-foot', `${many ? 'They never leave' : 'It never leaves'} ${where}.\nOnly numbers do.`);
    write('network', '.gle-where', `over the network: ${sent}`);
    write('attacker', '.gle-where', `rebuilt from ${sent} alone`);
    write('network', '.gle-sum span', phones > 1 ? `mixed on ${phones} phones, then added up` : plain ? 'averaged on the phone' : 'mixed by the local steps');
  }

  /** The run is over: rest on the answer, or play it as a time lapse if nobody saw it happen. */
  finish() {
    this.unseen = this.firstFrame !== null && performance.now() - this.firstFrame < BURST;
    this.update();
    if (this.player.mode !== 'follow') return;
    if (this.unseen && this.autoplay && !this.calm && !this.together) this.player.play(0);
    else this.player.seek(this.player.answer);
    this.fetchAll();
  }

  update() {
    const { pictures, end } = this.record;
    this.player.update({ count: pictures.length, place: this.shown ? placeOf(pictures, this.shown.seq) : -1, answer: answerPlace(this.record), running: !end && !FINAL.has(this.record.state.status) });
  }

  /** Bring the page up to what is known; called once per animation frame at most, by `soon`. */
  refresh() {
    this.next = null;
    if (!this.root.isConnected) return; // destroyed meanwhile
    const { record, player } = this, newest = record.pictures[record.pictures.length - 1];
    const held = this.firstFrame !== null && performance.now() - this.firstFrame < HOLD;
    if (held) setTimeout(() => this.soon(), HOLD);
    else if (player.mode === 'follow' && player.running && newest && newest !== this.wanted && !(FINAL.has(record.state.status) && !record.end)) this.showNewest(newest);
    this.update();
    this.tell();
    this.curves.update(record);
    this.ladder.update(record);
    this.paint();
  }

  /** Follow the head without piling up requests on a slow line; calmly (once a second) for those who asked for less motion. */
  showNewest(frame) {
    if (this.sheets.busy > 2 || (this.calm && performance.now() - (this.shownAt ?? -Infinity) < 1000)) return;
    this.show(frame);
  }

  isReady(seq) {
    this.fetch(seq);
    return this.sheets.ready.has(seq);
  }

  /** A picture that is gone (thinned on the server meanwhile) leaves the list instead of leaving a hole in the film. */
  fetch(seq) {
    return this.sheets.fetch(seq).catch(() => {
      this.sheets.ready.set(seq, null);
      this.record.pictures = this.record.pictures.filter((frame) => frame.seq !== seq);
      this.update();
      return null;
    });
  }

  fetchAll() { this.record.pictures.forEach((frame) => this.fetch(frame.seq)); }

  async show(frame) {
    if (!frame) return;
    this.wanted = frame;
    const record = this.record, image = this.sheets.ready.get(frame.seq) ?? (await this.fetch(frame.seq));
    // Scrubbing outruns the network: only what is still wanted is drawn, save when following, where every picture counts.
    if (!image || this.record !== record || (this.wanted !== frame && (this.player.mode !== 'follow' || this.shown?.seq > frame.seq))) return;
    drawSheet(image, this.$('guess'));
    this.seen.add(frame.seq);
    Object.assign(this, { shown: frame, shownAt: performance.now() });
    this.update();
    this.paint();
  }

  seekStep(step) {
    const distances = this.record.pictures.map((frame) => Math.abs(frame.step - step));
    if (distances.length) this.player.seek(distances.indexOf(Math.min(...distances)));
  }

  settle() {
    this.curves.describe();
    if (!this.player.running || this.player.mode === 'play') this.fetchAll();
  }

  /** Everything that belongs to the frame shown: numbers, guesses, cursor, and the attributes that tests read. */
  paint() {
    const { record, player } = this, { meta, frames, end } = record;
    const frame = this.shown ?? frames[frames.length - 1], scores = { ...scoresOf(record, frame), loss: frame?.loss };
    tellVerdict(this.$('verdict'), record, player.mode === 'follow' || isAnswer(record, this.wanted) ? null : this.shown);
    fillGauges(this.$('gauges'), { scores, meta, first: frames[0]?.loss });
    if (this.shown) this.captionGuesses(frame, isAnswer(record, frame) ? end.scores?.psnr_each : null);
    this.curves.place(frame);
    this.ladder.mark(this.shown?.seq);
    const steps = meta?.steps, of = isNumber(steps) ? ` of ${whole(Math.max(steps, frame?.step ?? 0))}` : '';
    const extra = [duration(frame?.seconds), noteWords(frame?.note)].filter(Boolean).join(' · ');
    this.$('now').textContent = frame ? `step ${whole(frame.step)}${of}` : 'no pictures yet';
    this.$('now').title = extra;
    this.$('guess-foot').textContent = `${meta?.way ?? ''}\n${extra}`;
    player.$slider.setAttribute('aria-valuetext', frame ? `step ${whole(frame.step)}${of}, PSNR ${decibel(scores.psnr)}` : 'no pictures yet');
    const facts = { status: record.state.status ?? 'opening', step: frame?.step ?? '', psnr: isNumber(scores.psnr) ? scores.psnr.toFixed(2) : '', frames: this.seen.size, seq: this.shown?.seq ?? '', mode: player.mode };
    Object.assign(this.root.dataset, facts);
    if (this.root === this.root.parentElement?.querySelector('.gle-run')) Object.assign(this.root.parentElement.dataset, facts);
    this.together?.update();
  }

  captionGuesses(frame, each) {
    const { pictures = [], class_names: classes = [] } = this.record.meta ?? {};
    [...this.$('guess').children].forEach((tile, place) => {
      const guess = frame.labels?.[place], name = isNumber(guess) ? classes[guess] ?? `class ${guess}` : '';
      const mark = !name || this.record.meta?.labels_granted ? '' : guess === pictures[place]?.label ? 'right' : 'wrong';
      const label = `Reconstruction${pictures[place]?.title ? ` of ${pictures[place].title}` : ''}${name ? `, guessed class ${name} (${mark})` : ''}`;
      captionTile(tile, { text: name, mark, label, detail: isNumber(each?.[place]) ? decibel(each[place]) : '' });
    });
  }

  /** The status line speaks only when the state changes or a note comes, so that screen readers are not flooded. */
  tell() {
    const { state, note, meta, frames, end } = this.record, device = meta?.device;
    const time = end ? duration(frames[frames.length - 1]?.seconds) : isNumber(meta?.estimate) ? `about ${duration(meta.estimate)}` : '';
    this.$('facts').textContent = [meta?.attack, device, time].filter(Boolean).join(' · ');
    const words = [stateWords(state), FINAL.has(state.status) ? (state.status === 'done' && end?.note?.event) || '' : note].filter(Boolean).join('. ');
    if (words === this.spoken) return;
    this.spoken = words;
    this.$('status-text').textContent = words;
    if (FINAL.has(state.status)) this.curves.describe();
  }

  /** Pointing at a picture marks its twin on the other side. */
  pair({ target }) {
    const tile = target?.closest?.('.gle-tile'), place = tile ? [...tile.parentElement.children].indexOf(tile) : -1;
    for (const grid of [this.$('truth'), this.$('guess')]) [...grid.children].forEach((other, index) => other.classList.toggle('gle-twin', index === place && grid.childElementCount > 1));
  }

  destroy() {
    clearTimeout(this.next);
    this.player.destroy();
    this.curves.destroy();
    this.root.remove();
  }
}

class Stage {
  constructor(parent) {
    Object.assign(this, { parent, host: parent.querySelector('.gle-stage'), views: [] });
    this.look = () => this.watch();
    document.addEventListener('visibilitychange', this.look);
  }

  /** Called on every rerun whose data or theme changed; the same runs change nothing but the colours. */
  update(data, setStateValue) {
    this.setStateValue = setStateValue;
    this.host.dataset.dark = isDark(this.host);
    const key = JSON.stringify([data.base, (data.runs ?? []).map(({ id }) => id)]);
    if (key === this.key) return this.views.forEach((view) => view.curves.update(view.record));
    if (this.key) this.bringIntoView();
    else if (data.together && navigator.userActivation?.hasBeenActive) setTimeout(() => this.bringIntoView(), 400); // it came by a press, not by a link
    Object.assign(this, { key, data, heard: false });
    this.stream?.close();
    const runs = data.runs ?? [], template = this.host.querySelector('template');
    this.views.splice(runs.length).forEach((view) => view.destroy());
    if (data.together) this.together ??= new Together(this.host, template, this.views, { base: data.base ?? '', autoplay: data.autoplay !== false });
    while (this.views.length < runs.length) {
      this.views.push(new RunView(template, { base: data.base ?? '', autoplay: data.autoplay !== false, together: this.together }));
      this.host.append(this.views[this.views.length - 1].root);
    }
    this.host.classList.toggle('gle-several', runs.length > 1 && !data.together);
    this.together?.reset();
    this.views.forEach((view, place) => view.reset(runs[place]));
    const ids = runs.map(({ id }) => encodeURIComponent(id)).join(',');
    if (runs.length) this.stream = new Stream(() => `${data.base ?? ''}/api/runs/stream?ids=${ids}&since=${this.since()}`, (event, id) => this.hear(event, id));
    this.watch();
  }

  /** Whoever pressed Run further down the page wants to see what happens. */
  bringIntoView() {
    const { top } = this.host.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) this.host.scrollIntoView({ block: 'start', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  }

  /** Where to go on after a break: as early as the run that is furthest behind; what the others repeat is skipped. */
  since() {
    const open = this.views.filter(({ record }) => !record.end).map((view) => view.heardTo);
    return open.length ? Math.min(...open) : 0;
  }

  hear(event, id) {
    if (!this.heard && this.offline) this.setStateValue('offline', (this.offline = false));
    this.heard = true;
    const view = this.views.find(({ record }) => record.id === event.run);
    if (!view) return;
    view.heardTo = Math.max(view.heardTo, id);
    view.receive(event);
    if (this.views.every(({ record }) => record.end || ['failed', 'cancelled'].includes(record.state.status))) this.stream.close();
  }

  /** No event for a while, though somebody looks: tell Python once, which then shows its own slower view. */
  watch() {
    clearTimeout(this.alarm);
    if (this.heard || document.hidden || !this.views.length) return;
    this.alarm = setTimeout(() => { if (!this.heard && !this.offline) this.setStateValue('offline', (this.offline = true)); }, 1000 * (this.data.offline_after ?? 3));
  }

  destroy() {
    clearTimeout(this.alarm);
    document.removeEventListener('visibilitychange', this.look);
    this.stream?.close();
    this.together?.destroy();
    this.views.forEach((view) => view.destroy());
  }
}

function isDark(host) {
  const [red, green, blue] = colourOf(host, '--st-background-color');
  return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
}

export default function ({ data, parentElement, setStateValue }) {
  const stage = (parentElement.__gleStage ||= new Stage(parentElement));
  stage.update(data ?? {}, setStateValue);
  return () => { stage.destroy(); parentElement.__gleStage = null; }; // on every call: Streamlit keeps the newest only
}
