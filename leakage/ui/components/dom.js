// The little that every component needs of the page: elements made, and elements found.

/**
 * A new element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} className
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, className, text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/**
 * The first element that matches. Raises where there is none: the component's HTML and its script do not belong together.
 * @param {ParentNode} host
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function find(host, selector) {
  const found = /** @type {HTMLElement | null} */ (host.querySelector(selector));
  if (!found) throw new Error(`The component's HTML has no ${selector}.`);
  return found;
}

/**
 * The elements in `host`, as an array.
 * @param {Element} host
 * @returns {HTMLElement[]}
 */
export const childrenOf = (host) => /** @type {HTMLElement[]} */ ([...host.children]);

/** Whether the visitor asked for less motion. */
export const prefersCalm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
