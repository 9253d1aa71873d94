// The theme's colours as numbers: Plotly knows no color-mix(), but whatever a theme writes, a canvas can paint.
import { element } from '../dom.js';

/**
 * A CSS variable as [red, green, blue].
 * @param {HTMLElement} host
 * @param {string} name
 * @returns {number[]}
 */
export function colourOf(host, name) {
  const context = element('canvas', '').getContext('2d', { willReadFrequently: true });
  if (!context) return [255, 255, 255];
  const probe = host.appendChild(element('i', ''));
  probe.style.color = `var(${name}, #fff)`;
  context.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

/**
 * @typedef {ReturnType<typeof themeOf>} Theme
 * @param {HTMLElement} host
 */
export function themeOf(host) {
  const read = (/** @type {string} */ name) => `rgb(${colourOf(host, `--${name}`).join(',')})`;
  return {
    font: getComputedStyle(host).fontFamily,
    text: read('gle-text'),
    soft: read('gle-soft'),
    line: read('gle-line'),
    paper: read('st-background-color'),
    psnr: read('gle-warm'),
    loss: read('gle-cool'),
    warm: read('gle-warm-ink'),
    cool: read('gle-cool-ink'),
  };
}

/** @param {HTMLElement} host */
export function isDark(host) {
  const [red, green, blue] = colourOf(host, '--st-background-color');
  return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
}
