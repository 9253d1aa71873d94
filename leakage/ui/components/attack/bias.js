// The bias of a layer: one number for each unit, or for each filter and all the places of its plane.

/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * Fill an output with the bias, or with zeros.
 * @param {Numbers} output (batch, units, area)
 * @param {Numbers | null} bias (units,)
 * @param {number} area the numbers of a plane
 */
export function startWith(output, bias, area) {
  for (let at = 0, p = 0; at < output.length; p++) output.fill(bias ? bias[p % bias.length] : 0, at, (at += area));
}

/**
 * Add dL/db to the gradient.
 * @param {Numbers | null} bias the gradient (units,), or null where the layer has no bias
 * @param {Numbers} outputGradient (batch, units, area)
 * @param {number} area the numbers of a plane
 */
export function addBiasGradient(bias, outputGradient, area) {
  for (let at = 0, p = 0; bias && at < outputGradient.length; p++) {
    let sum = 0;
    for (const end = at + area; at < end; at++) sum += outputGradient[at];
    bias[p % bias.length] += sum;
  }
}
