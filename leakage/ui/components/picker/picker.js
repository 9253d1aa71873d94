// The picker: a grid of pictures to put into the batch, in the order in which they are picked.

function make(tag, className, text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function makeButton(item) {
  const button = make('button', 'gle-pick'), image = make('img', '');
  button.type = 'button';
  button.dataset.id = item.id;
  button.title = [item.title, item.class_name].filter(Boolean).join(', ');
  Object.assign(image, { src: item.thumb, alt: item.alt ?? item.title ?? '', draggable: false });
  const badge = make('span', 'gle-pick-place');
  badge.setAttribute('aria-hidden', 'true'); // the place is part of the button's description instead
  button.append(image, make('span', 'gle-pick-title', item.title ?? item.id), badge);
  return button;
}

class Picker {
  constructor(parent) {
    Object.assign(this, { grid: parent.querySelector('.gle-picker-grid'), count: parent.querySelector('.gle-picker-count'), picked: [], sent: 0 });
    this.grid.addEventListener('click', (event) => this.toggle(event.target.closest('.gle-pick')?.dataset.id));
    this.grid.addEventListener('keydown', (event) => this.move(event));
    this.grid.addEventListener('focusin', (event) => this.rove(event.target));
  }

  get buttons() { return [...this.grid.children]; }

  /** Python says which click it has seen last; what it says is taken unless a newer click is still on its way. */
  update({ items = [], selected = [], click = 0, limit = Infinity }, send) {
    Object.assign(this, { send, limit: limit ?? Infinity });
    const key = JSON.stringify(items.map((item) => [item.id, item.title, item.thumb?.length]));
    if (key !== this.key) this.grid.replaceChildren(...items.map(makeButton));
    this.key = key;
    if (!(this.sent > click)) this.picked = [...selected];
    const known = new Set(items.map((item) => item.id));
    this.picked = this.picked.filter((id) => known.has(id));
    this.paint();
  }

  toggle(id) {
    if (!id) return;
    const picked = this.picked.includes(id) ? this.picked.filter((other) => other !== id) : [...this.picked, id];
    if (picked.length > this.limit) {
      if (this.limit > 1) return this.paint(`At most ${this.limit} pictures: take one out first.`);
      picked.splice(0, 1); // a limit of one works like a radio button
    }
    this.picked = picked;
    this.sent = Date.now() + Math.random(); // grows with every click and survives a remount, as a counter would not
    this.paint();
    this.send('selected', { ids: picked, click: this.sent });
  }

  /** Arrow keys walk the grid as it is laid out; Home and End go to its ends. */
  move(event) {
    const buttons = this.buttons, here = buttons.indexOf(event.target.closest('.gle-pick'));
    const across = getComputedStyle(this.grid).gridTemplateColumns.split(' ').length;
    const target = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - across, ArrowDown: here + across, Home: 0, End: buttons.length - 1 }[event.key];
    if (here < 0 || target === undefined) return;
    event.preventDefault();
    buttons[target]?.focus();
  }

  /** One tab stop for the whole grid: Tab leaves it, arrows walk in it. */
  rove(target) {
    this.buttons.forEach((button) => { button.tabIndex = button === target ? 0 : -1; });
  }

  paint(message = '') {
    const full = this.picked.length >= this.limit && this.limit > 1;
    this.buttons.forEach((button) => {
      const place = this.picked.indexOf(button.dataset.id), badge = button.lastElementChild;
      button.setAttribute('aria-pressed', String(place >= 0));
      button.setAttribute('aria-disabled', String(full && place < 0));
      button.setAttribute('aria-description', place >= 0 ? `number ${place + 1} in the batch` : '');
      if (place >= 0) badge.textContent = place + 1;
    });
    if (!this.buttons.some((button) => button.tabIndex === 0 && button.hasAttribute('tabindex'))) this.rove(this.grid.querySelector('[aria-pressed="true"]') ?? this.buttons[0]);
    const limit = Number.isFinite(this.limit) ? ` of at most ${this.limit}` : '';
    this.count.textContent = message || (this.picked.length ? `${this.picked.length}${limit} picked` : 'Pick at least one picture.');
  }
}

export default function ({ data, parentElement, setStateValue }) {
  const picker = (parentElement.__glePicker ||= new Picker(parentElement));
  picker.update(data ?? {}, setStateValue);
  return () => { parentElement.__glePicker = null; };
}
