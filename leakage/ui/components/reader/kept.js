// What the browser stores of the lessons: the last beat and the guesses, nothing else. A browser without storage is not an error.

const KEY = 'gle-learn';

/** @typedef {import('./walk.js').Kept} Kept */

/** @returns {Record<string, Partial<Kept> | undefined>} by the id of the lesson */
export function readKept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return found && typeof found === 'object' && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

/**
 * @param {string} lesson
 * @param {Kept} kept
 */
export function keep(lesson, kept) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...readKept(), [lesson]: kept }));
  } catch {
    // a private window, or a full one: the lesson goes on without
  }
}

export function forget() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // likewise
  }
}
