// The three places of a run: the private pictures, what is sent, and the attacker's guesses, in words and tiles.
import { childrenOf, find } from '../dom.js';
import { labelsRight } from './labels.js';
import { captionTile, layTiles } from './pictures.js';
import { drawLayers, drawSingles } from './strips.js';
import { CUT_SHORT, decibel, isNumber, NOT_SHOWN, weight, whole } from './words.js';

/** @type {Record<string, string | undefined>} */
const NOTHING = { [NOT_SHOWN]: 'not shown', [CUT_SHORT]: 'no verdict' }; // below a tile there is room for that

/**
 * @typedef {import('./events.js').MetaEvent} MetaEvent
 * @typedef {import('./events.js').PrivatePicture} PrivatePicture
 * @typedef {{ sent?: string, phones?: number, plain?: boolean, receiver?: string }} Told what the page says of the client
 */

/**
 * Where the pictures are, what travels and to whom, and what the guesses are made of.
 * @param {HTMLElement} root
 * @param {Told} told
 * @param {number} batch
 */
export function tellWhere(root, { sent = 'the gradient', phones = 1, plain = true, receiver = 'the server' }, batch) {
  const many = batch > 1;
  const where = phones > 1 ? 'their phones' : 'the phone';
  const mixed = phones > 1 ? `mixed on ${phones} phones, then added up` : plain ? 'averaged on the phone' : 'mixed by the local steps';
  const words = {
    '.gle-private h4': many ? 'The private pictures' : 'The private picture',
    '.gle-private .gle-where': phones > 1 ? `on ${phones} phones` : 'on the phone',
    '.gle-private .gle-foot': `${many ? 'They never leave' : 'It never leaves'} ${where}.\nOnly numbers do.`,
    '.gle-network h4': `What ${receiver} receives`,
    '.gle-network .gle-where': `over the network: ${sent}`,
    '.gle-attacker .gle-where': `rebuilt from ${sent} alone`,
    '.gle-network .gle-sum span': mixed,
  };
  for (const [selector, text] of Object.entries(words)) find(root, selector).textContent = text;
}

/**
 * Tiles for the private pictures and for the guesses, before either is there.
 * @param {{ truth: HTMLElement, guess: HTMLElement }} grids
 * @param {PrivatePicture[]} pictures
 * @param {number} batch
 */
export function layBoth({ truth, guess }, pictures, batch) {
  const captions = pictures.map(({ title, class_name: name }) => ({
    text: title || name || '',
    detail: title && batch > 1 ? (name ?? '') : '',
    label: [title, title && batch > 1 ? '' : name].filter(Boolean).join(', class '),
  }));
  const unknown = pictures.map(() => ({ text: '', label: 'not reconstructed yet' }));
  layTiles(truth, batch, captions);
  layTiles(guess, batch, unknown);
}

/**
 * What arrives: the strips of the layers, and how many numbers they stand for.
 * @param {HTMLElement} root
 * @param {Partial<import('./events.js').ReceivedUpdate>} received
 * @param {number} batch
 */
export function tellReceived(root, { layers = [], singles = [], entries, bytes }, batch) {
  drawLayers(find(root, '.gle-layers'), layers);
  const each = batch > 1 ? singles : [];
  find(root, '.gle-singles').hidden = !each.length;
  drawSingles(find(root, '.gle-single-rows'), each);
  const amount = [isNumber(entries) ? `${whole(entries)} numbers` : '', weight(bytes)].filter(Boolean).join(', ');
  find(root, '.gle-received').textContent = amount ? `${amount}:\nthis is all that is sent.` : 'This is all that is sent.';
}

/**
 * Below every guess its class, whether that is a class of the batch, and, at the answer, how close it is.
 * @param {HTMLElement} grid
 * @param {{ labels?: number[], each?: (number | null)[] | null, words?: string[], meta: MetaEvent | null }} guessed words: of the
 *     verdict, for each picture
 */
export function captionGuesses(grid, { labels, each, words = [], meta }) {
  const right = labelsRight(
    labels ?? [],
    (meta?.pictures ?? []).map((picture) => picture.label),
  );
  childrenOf(grid).forEach((tile, place) => {
    const guess = labels?.[place];
    const picture = meta?.pictures?.[place];
    const known = isNumber(guess) ? meta?.class_names?.[guess] : '';
    const name = known ?? `class ${guess}`;
    const mark = !name || meta?.labels_granted ? '' : right[place] ? 'right' : 'wrong';
    const of = `class ${known ?? guess}`;
    const told = !name ? '' : mark ? `, guessed ${of} (${mark})` : `, given ${of}`;
    const label = `Reconstruction${picture?.title ? ` of ${picture.title}` : ''}${told}`;
    const closeness = each?.[place];
    const word = grid.childElementCount > 1 ? (words[place] ?? '') : ''; // alone, the verdict says it
    tile.dataset.word = word;
    captionTile(tile, {
      text: name && mark && grid.childElementCount === 1 ? `guessed: ${name}` : name, // small tiles have room for the class alone
      mark,
      label,
      detail: [isNumber(closeness) ? decibel(closeness) : '', NOTHING[word] ?? word].filter(Boolean).join(', '),
    });
  });
}

/**
 * Mark the picture that is pointed at and its twin on the other side.
 * @param {HTMLElement[]} grids
 * @param {EventTarget | null} target
 */
export function markTwins(grids, target) {
  const tile = /** @type {Element | null} */ (target)?.closest?.('.gle-tile') ?? null;
  const place = tile?.parentElement ? [...tile.parentElement.children].indexOf(tile) : -1;
  for (const grid of grids) {
    const several = grid.childElementCount > 1;
    childrenOf(grid).forEach((other, index) => other.classList.toggle('gle-twin', index === place && several));
  }
}
