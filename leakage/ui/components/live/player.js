// The player: which of the kept pictures is shown, and when the next one comes.
const LAPSE = 8000; // milliseconds a finished run plays for
const FASTEST = 33, SLOWEST = 400; // milliseconds per picture at normal speed

class Player {
  /** `host` holds the controls; `show(place)` draws, `ready(place)` says whether it can be drawn at once (and asks for it if not). */
  constructor(host, { show, ready, settled }) {
    Object.assign(this, { show, ready, settled, speed: 1 });
    for (const name of ['play', 'back', 'forward', 'slider', 'answer', 'now', 'speed', 'live']) this[`$${name}`] = host.querySelector(`.gle-${name}`);
    this.$play.onclick = () => this.toggle();
    this.$back.onclick = () => this.seek(this.place - 1);
    this.$forward.onclick = () => this.seek(this.place + 1);
    this.$slider.oninput = () => this.seek(Number(this.$slider.value));
    this.$speed.onchange = () => { this.speed = Number(this.$speed.value); };
    this.$live.onclick = () => (this.running ? this.follow() : this.seek(this.answer));
    this.reset();
  }

  /** mode: "follow" the newest picture, "play" a time lapse, or stand "still". */
  reset() {
    Object.assign(this, { count: 0, place: -1, answer: -1, running: true, mode: 'follow' });
    this.paint();
  }

  /** There are `count` pictures now; the one shown stands at `place`. */
  update({ count, place, answer, running }) {
    Object.assign(this, { count, answer, running, place: Math.min(place, count - 1) });
    if (!running && this.mode === 'follow' && place === answer) this.mode = 'still';
    this.paint();
  }

  seek(place, mode = 'still') {
    if (!this.count) return;
    const wasPlaying = this.mode === 'play';
    this.mode = mode;
    this.place = clamp(place, 0, this.count - 1);
    this.show(this.place);
    this.paint();
    if (mode === 'still' || wasPlaying) this.settled();
  }

  follow() { this.seek(this.count - 1, 'follow'); }

  toggle() {
    if (this.mode === 'play') return this.seek(this.place);
    this.play(this.place >= this.count - 1 || (!this.running && this.place === this.answer) ? 0 : this.place);
  }

  play(from) {
    if (this.count < 2) return;
    this.seek(from, 'play');
    this.last = performance.now();
    cancelAnimationFrame(this.timer);
    this.timer = requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    if (this.mode !== 'play') return;
    const pause = clamp(LAPSE / this.count, FASTEST, SLOWEST) / this.speed, steps = Math.floor((now - this.last) / pause);
    const next = Math.min(this.place + clamp(steps, 0, 3), this.count - 1);
    if (steps > 0 && next === this.place) return this.finish();
    if (steps > 0 && this.ready(next)) {
      this.last = Math.max(this.last + steps * pause, now - pause); // what an animation frame rounds off is not lost
      this.seek(next, 'play');
    }
    this.timer = requestAnimationFrame((later) => this.tick(later));
  }

  finish() {
    if (this.running) this.follow();
    else this.seek(this.answer);
  }

  key(event) {
    const move = { ' ': () => this.toggle(), ArrowLeft: () => this.seek(this.place - 1), ArrowRight: () => this.seek(this.place + 1), Home: () => this.seek(0), End: () => (this.running ? this.follow() : this.seek(this.count - 1)) }[event.key];
    const own = event.target.matches('select, summary, button') && (event.key === ' ' || event.target.matches('select'));
    if (!move || own || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move();
  }

  paint() {
    const { count, place, mode } = this, playing = mode === 'play', top = Math.max(0, count - 1);
    if (this.$slider.max !== String(top)) this.$slider.max = top; // max first: a value beyond it would be cut
    this.$slider.value = Math.max(0, place);
    this.$slider.style.setProperty('--gle-part', count > 1 ? Math.max(0, place) / top : 0);
    for (const control of [this.$slider, this.$play, this.$back, this.$forward]) control.disabled = count < 2 && control !== this.$slider ? true : !count;
    this.$play.classList.toggle('gle-playing', playing);
    this.$play.setAttribute('aria-label', playing ? 'Pause' : 'Play');
    this.$live.querySelector('span').textContent = this.running ? 'Live' : 'Result';
    this.$live.disabled = !count;
    this.$live.setAttribute('aria-pressed', String(this.running ? mode === 'follow' : mode === 'still' && place === this.answer));
    this.$live.classList.toggle('gle-onair', this.running);
    this.$answer.hidden = this.running || count < 2 || this.answer === top;
    this.$answer.style.setProperty('--gle-part', count > 1 ? this.answer / top : 0);
  }

  destroy() {
    cancelAnimationFrame(this.timer);
    this.mode = 'still';
  }
}
