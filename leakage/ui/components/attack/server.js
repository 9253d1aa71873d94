// The server, which attacks with what it received and nothing else.
import { descend } from './idlg.js';
import { invert } from './inverting_gradients.js';
import { readLabels } from './last_layer.js';
import { solve } from './linear_layer.js';

/** @typedef {import('./received.js').Received} Received */
/** @typedef {import('./received.js').Snapshot} Snapshot */

/**
 * @typedef {object} PlannedAttack
 * @property {import('./order.js').AttackId} attack
 * @property {Record<string, number>} options the attack's numbers, by name
 * @property {'steps' | 'coarse first'} schedule of Inverting Gradients
 */

/**
 * The labels that the server reads from what it received, [] where the attack searches them with the pictures; and the attack's snapshots.
 * @param {Received} received
 * @param {PlannedAttack} planned
 * @param {import('./random.js').Generator} random draws the first guesses: the server's own numbers, not those of the phone's noise
 * @returns {{ labels: number[], snapshots: Generator<Snapshot> }}
 */
export function attack(received, { attack, options, schedule }, random) {
  const { steps, restarts, step_size, tv_weight } = options;
  if (attack === 'dlg') return { labels: [], snapshots: descend(received, random, { labels: null, steps, restarts }) };
  const labels = readLabels(received);
  if (attack === 'idlg') return { labels, snapshots: descend(received, random, { labels, steps, restarts }) };
  if (attack === 'linear_layer') return { labels, snapshots: solve(received, { labels }) };
  return { labels, snapshots: invert(received, random, { labels, steps, step_size, tv_weight, schedule }) };
}
