// The pointer of a presentation: it hides while the mouse rests, so that it points at no option.

const REST = 2000; // milliseconds

export class RestingPointer {
  constructor() {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.at = '';
    this.moved = (/** @type {MouseEvent} */ event) => this.move(event);
  }

  /** @param {boolean} on */
  set(on) {
    document[on ? 'addEventListener' : 'removeEventListener']('mousemove', /** @type {EventListener} */ (this.moved));
    this.show();
    if (on) this.wait();
  }

  /**
   * Browsers send this event, too, when only the page below the pointer changes.
   * @param {MouseEvent} event
   */
  move({ screenX, screenY }) {
    const at = `${screenX} ${screenY}`;
    if (at === this.at) return;
    this.at = at;
    this.show();
    this.wait();
  }

  show() {
    clearTimeout(this.timer);
    document.documentElement.classList.remove('gle-pointer-rests');
  }

  wait() {
    this.timer = setTimeout(() => document.documentElement.classList.add('gle-pointer-rests'), REST);
  }
}
