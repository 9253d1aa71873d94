// Activations, entry by entry, with their first and second derivatives.

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * Fill value, derivative and curvature with f(z), f'(z) and f''(z). A curvature that is always 0 stays as it is.
 * @typedef {(z: Numbers, value: Numbers, derivative: Numbers, curvature: Numbers, kernels: Kernels) => void} Activation
 */

const NEGATIVE_SLOPE = 0.2; // of LeakyReLU, as in leakage/models/_parts.py

/** @type {Activation} */
const sigmoid = (z, value, derivative, curvature, kernels) => kernels.sigmoid(z, value, derivative, curvature);

/** @type {Activation} */
function tanh(z, value, derivative, curvature) {
  for (let i = 0; i < z.length; i++) {
    const t = Math.tanh(z[i]);
    const first = 1 - t * t;
    value[i] = t;
    derivative[i] = first;
    curvature[i] = -2 * t * first;
  }
}

/** @type {(negativeSlope: number) => Activation} */
const piecewiseLinear = (negativeSlope) => (z, value, derivative) => {
  for (let i = 0; i < z.length; i++) {
    const first = z[i] > 0 ? 1 : negativeSlope;
    value[i] = first * z[i];
    derivative[i] = first;
  }
};

/** @type {Activation} */
export function identity(z, value, derivative) {
  value.set(z);
  derivative.fill(1);
}

/** The activations under their names in leakage/models/_parts.py. The derivative of ReLU and LeakyReLU at 0 is that of negative inputs. */
export const ACTIVATIONS = { sigmoid, tanh, relu: piecewiseLinear(0), leaky_relu: piecewiseLinear(NEGATIVE_SLOPE) };
