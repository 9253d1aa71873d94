// Which guessed labels are right: an update says which classes are in a batch, not which picture has which. Knows no page.

/**
 * Whether each guessed label is one of the true ones, each of which counts once: those in their own place first. As the score counts them.
 * @param {(number | undefined)[]} guessed
 * @param {(number | null | undefined)[]} truth
 * @returns {boolean[]}
 */
export function labelsRight(guessed, truth) {
  /** @type {(number | null | undefined)[]} */
  const left = truth.filter((label, place) => guessed[place] !== label);
  return guessed.map((label, place) => {
    if (label === undefined) return false;
    if (label === truth[place]) return true;
    const found = left.indexOf(label);
    if (found >= 0) left.splice(found, 1);
    return found >= 0;
  });
}
