// What is sent and what stays: Python draws the picture, this only puts it in its place.
import { find } from '../dom.js';

/**
 * @param {HTMLElement} parent
 * @returns {import('../stub.js').Component}
 */
export function mount(parent) {
  const host = find(parent, '.gle-sent');
  let shown = '';
  return {
    /** @param {{ picture?: string }} data */
    update({ picture = '' }) {
      if (picture !== shown) host.innerHTML = shown = picture;
    },
    destroy() {},
  };
}
