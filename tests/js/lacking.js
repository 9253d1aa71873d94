// What browsers have and happy-dom lacks, as far as the components use it: a stream, a canvas that remembers, and Plotly.

/** An EventSource that sends what a test tells it to. */
export class Source {
  /** @param {string} url */
  constructor(url) {
    this.url = url;
    this.closed = false;
    /** @type {((message: { data: string, lastEventId: string }) => void) | null} */
    this.onmessage = null;
    /** @type {(() => void) | null} */
    this.onerror = null;
  }

  /**
   * @param {object} event
   * @param {number | string} [id] the event's number in the stream
   */
  send(event, id = '') {
    if (!this.closed) this.onmessage?.({ data: JSON.stringify(event), lastEventId: String(id) });
  }

  fail() {
    if (!this.closed) this.onerror?.();
  }

  close() {
    this.closed = true;
  }
}

/** What is painted on a canvas: `drawn` are the calls of drawImage with the size of the canvas then, `pixels` its image data. */
export class Brush {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.fillStyle = '#000';
    /** @type {{ source: string, cut: number[], size: number[] }[]} */
    this.drawn = [];
    /** @type {number[]} */
    this.pixels = [];
  }

  /**
   * @param {HTMLImageElement} image
   * @param {number[]} cut
   */
  drawImage(image, ...cut) {
    this.drawn.push({ source: image.getAttribute('src') ?? '', cut, size: [this.canvas.width, this.canvas.height] });
    const pixels = /** @type {any} */ (image).getContext?.('2d').pixels ?? /** @type {any} */ (image).pixels;
    if (pixels) this.pixels = pixels;
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  createImageData(width, height) {
    return { width, height, data: new Uint8ClampedArray(4 * width * height) };
  }

  /** @param {{ data: Uint8ClampedArray }} image */
  putImageData({ data }) {
    this.pixels = [...data];
  }

  fillRect() {
    this.pixels = [...rgb(this.fillStyle), 255];
  }

  /** What was painted, again and again until it fills the rectangle; painted pixels are not scaled. */
  getImageData(_left = 0, _top = 0, width = 1, height = 1) {
    return { width, height, data: new Uint8ClampedArray(4 * width * height).map((_, place) => this.pixels[place % this.pixels.length]) };
  }
}

/** @param {string} colour `rgb(1, 2, 3)`, `#123` or `#010203` */
function rgb(colour) {
  const hex = colour.startsWith('#') ? colour.slice(1) : '';
  if (hex.length === 3) return [...hex].map((digit) => parseInt(digit + digit, 16));
  if (hex) return [0, 2, 4].map((start) => parseInt(hex.slice(start, start + 2), 16));
  return (colour.match(/\d+/g) ?? []).slice(0, 3).map(Number);
}

/** Plotly, as far as the curves use it: `calls` tells what was asked of it. One per process, because curves.js keeps what it loaded. */
export const plotly = {
  /** @type {{ name: string, host: HTMLElement, traces?: any, layout?: any }[]} */
  calls: [],
  /** @type {(host: HTMLElement, traces: any, layout: any) => Promise<void>} */
  async react(host, traces, layout) {
    plotly.calls.push({ name: 'react', host, traces, layout });
  },
  /** @param {HTMLElement} host */
  purge(host) {
    plotly.calls.push({ name: 'purge', host });
  },
  Plots: {
    /** @param {HTMLElement} host */
    async resize(host) {
      plotly.calls.push({ name: 'resize', host });
    },
  },
};
