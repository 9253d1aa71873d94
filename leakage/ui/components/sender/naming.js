// What a chosen file is, by its name: the name that it gets on the server, or why it cannot be used.

/** What a file of arrays may be: the beginning of its name on the server, and what it is in words. @type {[string, string][]} */
export const KINDS = [
  ['before', 'Weights before the training'],
  ['after', 'Weights after the training'],
  ['difference', 'Difference: after minus before'],
  ['gradient', 'Gradient'],
];
const OTHERS = new Map([
  ['card.json', 'Card: what is known of the client'],
  ['update.zip', 'All files in one .zip'],
]);
const HINTS = /** @type {const} */ ([
  ['before', /before|global|old|initial/],
  ['after', /after|local|new|trained/],
  ['difference', /diff|delta/],
  ['gradient', /grad/],
]);
const ARRAYS = ['npz', 'safetensors'];
const CODE = ['pt', 'pth', 'pkl', 'pickle', 'ckpt', 'bin'];
const RUNS_CODE = 'Reading this kind of file can run code that is hidden in it. Save the tensors as .safetensors or .npz, and choose that.';
const OTHER_KIND = 'This is no file of an update: choose .npz, .safetensors, .zip or card.json.';

/**
 * The name on the server; "" where the visitor has to say what it is. `problem`: why the file cannot be used.
 * @param {string} name
 * @returns {{ target: string, problem: string }}
 */
export function targetOf(name) {
  const lower = name.toLowerCase();
  const ending = lower.includes('.') ? lower.slice(lower.lastIndexOf('.') + 1) : '';
  if (ending === 'zip') return { target: 'update.zip', problem: '' };
  if (ending === 'json') return { target: 'card.json', problem: '' };
  if (CODE.includes(ending)) return { target: '', problem: RUNS_CODE };
  if (!ARRAYS.includes(ending)) return { target: '', problem: OTHER_KIND };
  const roles = HINTS.filter(([, pattern]) => pattern.test(lower)).map(([role]) => role);
  return { target: roles.length === 1 ? `${roles[0]}.${ending}` : '', problem: '' };
}

/**
 * What a file on the server is, in words.
 * @param {string} target
 */
export function roleWords(target) {
  const role = target.slice(0, target.lastIndexOf('.'));
  return OTHERS.get(target) ?? KINDS.find(([kind]) => kind === role)?.[1] ?? target;
}

/**
 * A number of bytes as people say it.
 * @param {number} bytes
 */
export function readableSize(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 2 ** 20 ? `${(bytes / 1024).toFixed(0)} kB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
}
