// The labels of a batch, read from the gradient of the last layer: the rules of leakage/engine/labels.py without rehearsals.
// dL/db_c = mean over the batch of p_c - [y = c] is negative for the class of a single picture alone.

/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * The label of one picture: the class of the most negative entry of the last bias's gradient (Zhao et al. 2020, section 3).
 * @param {ArrayLike<number>} rows (classes,)
 */
export function labelOfRows(rows) {
  let label = 0;
  for (let c = 1; c < rows.length; c++) if (rows[c] < rows[label]) label = c;
  return label;
}

/**
 * Numbers (classes,) with the signs of dL/db, without a bias and whatever the signs of the features h: row c of the weight's gradient is
 * (p_c - [y = c]) h. The true class's row points against all others and is the longest.
 * @param {Numbers} weightGradient (classes, features)
 * @param {number} classes
 */
export function rowsWithoutBias(weightGradient, classes) {
  const features = weightGradient.length / classes;
  /** @type {(row: number, other: number) => number} */
  const product = (row, other) => {
    let sum = 0;
    for (let i = 0; i < features; i++) sum += weightGradient[row * features + i] * weightGradient[other * features + i];
    return sum;
  };
  let [longest, most] = [0, -1];
  for (let c = 0; c < classes; c++) if (product(c, c) > most) [longest, most] = [c, product(c, c)];
  return Float64Array.from({ length: classes }, (_, c) => -product(c, longest));
}

/**
 * The sums of the rows of the last weight's gradient (classes,), which stand for dL/db in a batch without a bias (Wainakh et al. 2022).
 * @param {Numbers} weightGradient (classes, features)
 * @param {number} classes
 */
export function sumsOfRows(weightGradient, classes) {
  const features = weightGradient.length / classes;
  const sums = new Float64Array(classes);
  for (let i = 0; i < weightGradient.length; i++) sums[Math.floor(i / features)] += weightGradient[i];
  return sums;
}

/**
 * The sorted labels of a batch by greedy subtraction from a row for each class. Every occurrence of a class adds about m = (sum of the
 * negative rows) / B to its row. Take every class with a negative row once and subtract m from its row; then take the smallest row until
 * there are B labels (Wainakh et al. 2022, algorithm 1; "bias-corrected" in leakage/engine/labels.py).
 * @param {ArrayLike<number>} rows (classes,)
 * @param {number} batch B
 */
export function labelCounts(rows, batch) {
  const left = Float64Array.from(rows);
  const impact = left.reduce((sum, row) => sum + Math.min(row, 0), 0) / batch;
  const negative = [...left.keys()].filter((c) => left[c] < 0).sort((a, b) => left[a] - left[b]);
  const chosen = negative.slice(0, batch);
  for (const c of chosen) left[c] -= impact;
  while (chosen.length < batch) {
    const c = labelOfRows(left);
    chosen.push(c);
    left[c] -= impact;
  }
  return chosen.sort((a, b) => a - b);
}

/**
 * The labels with the counts n_c >= 0 nearest to `wanted`, sorted: the largest remainder method.
 * @param {ArrayLike<number>} wanted the estimated counts (classes,)
 * @param {number} batch B
 */
export function nearestCounts(wanted, batch) {
  const left = Float64Array.from(wanted, (count) => -count);
  const chosen = Array.from({ length: batch }, () => {
    const c = labelOfRows(left);
    left[c] += 1;
    return c;
  });
  return chosen.sort((a, b) => a - b);
}

/**
 * The labels as probabilities of the classes, (B, classes).
 * @param {number[]} labels
 * @param {number} classes
 */
export function oneHot(labels, classes) {
  const y = new Float64Array(labels.length * classes);
  labels.forEach((label, b) => (y[b * classes + label] = 1));
  return y;
}
