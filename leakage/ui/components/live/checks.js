// What the phone checked of the model that it received, beside the private pictures; and the stage of a run that the phone refused.
import { childrenOf, element, find } from '../dom.js';
import { captionTile } from './pictures.js';
import { isNumber, short } from './words.js';

/** @typedef {import('./events.js').CheckFacts} CheckFacts */

/**
 * Of each check the reading that tells most: of the first round in which it tripped, else that with the largest number.
 * @param {CheckFacts[]} readings
 */
export function telling(readings) {
  /** @type {Map<string, CheckFacts>} */
  const most = new Map();
  for (const reading of readings) {
    const known = most.get(reading.check);
    const more = known && !known.tripped && (reading.tripped || (reading.number ?? -Infinity) > (known.number ?? -Infinity));
    if (!known || more) most.set(reading.check, reading);
  }
  return [...most.values()];
}

/**
 * The number of a check, its threshold, and whether it tripped, in words.
 * @param {CheckFacts} reading
 */
export function checkWords({ number, threshold, tripped, round }) {
  const value = isNumber(number) ? short(number) : tripped ? 'infinite' : 'not defined here';
  if (!isNumber(number) && !tripped) return value;
  return `${value} (threshold ${short(threshold)}): ${tripped ? `tripped in round ${round}` : 'did not trip'}`;
}

/**
 * Bring the private pictures' side up to what the checks found. Of a run that the phone refused the other places stay empty.
 * @param {HTMLElement} root of one run
 * @param {Pick<import('./record.js').RunRecord, 'meta' | 'end'>} record
 */
export function tellChecks(root, { meta, end }) {
  const refused = end?.ending?.how === 'refused';
  const found = telling((refused ? end?.ending?.checks : meta?.checks) ?? []);
  const host = find(root, '.gle-checks');
  const key = JSON.stringify([refused, found]);
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  host.hidden = !found.length;
  find(host, 'ul').replaceChildren(...found.map(line));
  root.toggleAttribute('data-refused', refused);
  if (!refused) return;
  find(root, '.gle-network .gle-where').textContent = 'over the network';
  find(root, '.gle-attacker .gle-where').textContent = '';
  const foot = find(root, '.gle-private .gle-foot');
  foot.textContent = foot.textContent.split('\n')[0]; // that numbers leave the phone does not hold
  const round = found.find(({ tripped }) => tripped)?.round ?? 1;
  find(root, '.gle-received').textContent = round === 1 ? 'Nothing was sent.' : `Nothing was sent from round ${round} on.`;
  childrenOf(find(root, '.gle-guess')).forEach((tile) => captionTile(tile, { text: 'nothing sent', label: 'nothing was sent' }));
}

/** @param {CheckFacts} reading */
function line(reading) {
  const item = element('li', '');
  item.dataset.tripped = String(reading.tripped);
  item.append(element('b', '', reading.title), ` ${checkWords(reading)}`);
  if (reading.measures) item.append(element('small', '', `It measures ${reading.measures}.`));
  return item;
}
