// The stage as a component of the page.
import { Stage } from './stage.js';

/**
 * @param {HTMLElement} parent
 * @returns {import('../stub.js').Component}
 */
export const mount = (parent) => new Stage(parent);
