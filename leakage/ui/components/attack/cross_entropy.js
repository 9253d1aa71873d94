// The mean cross-entropy of a batch with class probabilities as labels (torch.nn.functional.cross_entropy), and its derivatives.

/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * Fill probabilities with softmax(logits), and gradient with dL/dlogits = (probabilities * sum(labels) - labels) / batch.
 * @param {Numbers} logits (batch, classes)
 * @param {ArrayLike<number>} labels (batch, classes)
 * @param {number} classes
 * @param {Numbers} probabilities (batch, classes)
 * @param {Numbers} gradient (batch, classes)
 * @returns {number} L, the mean over the batch of -sum(labels * log(probabilities))
 */
export function crossEntropy(logits, labels, classes, probabilities, gradient) {
  const batch = logits.length / classes;
  let loss = 0;
  for (let from = 0; from < logits.length; from += classes) {
    let largest = -Infinity;
    for (let c = from; c < from + classes; c++) largest = Math.max(largest, logits[c]);
    let total = 0; // of exp(logits - largest)
    let mass = 0; // of the labels
    for (let c = from; c < from + classes; c++) {
      total += Math.exp(logits[c] - largest);
      mass += labels[c];
    }
    const normalizer = largest + Math.log(total);
    for (let c = from; c < from + classes; c++) {
      probabilities[c] = Math.exp(logits[c] - largest) / total;
      gradient[c] = (probabilities[c] * mass - labels[c]) / batch;
      loss -= (labels[c] * (logits[c] - normalizer)) / batch;
    }
  }
  return loss;
}

/**
 * Let the logits move along a tangent. Fill gradientTangent with the derivative of dL/dlogits along it, and labelSlope with the derivative
 * of <dL/dlogits, tangent> by the labels.
 * @param {Numbers} tangent of the logits (batch, classes)
 * @param {ArrayLike<number>} labels (batch, classes)
 * @param {number} classes
 * @param {Numbers} probabilities (batch, classes), from crossEntropy
 * @param {Numbers} gradientTangent (batch, classes)
 * @param {Numbers} labelSlope (batch, classes)
 */
export function crossEntropyTangent(tangent, labels, classes, probabilities, gradientTangent, labelSlope) {
  const batch = tangent.length / classes;
  for (let from = 0; from < tangent.length; from += classes) {
    let mean = 0; // of the tangent, under the probabilities
    let mass = 0; // of the labels
    for (let c = from; c < from + classes; c++) {
      mean += probabilities[c] * tangent[c];
      mass += labels[c];
    }
    for (let c = from; c < from + classes; c++) {
      gradientTangent[c] = (mass * probabilities[c] * (tangent[c] - mean)) / batch;
      labelSlope[c] = (mean - tangent[c]) / batch;
    }
  }
}
