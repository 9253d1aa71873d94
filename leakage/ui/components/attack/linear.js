// A linear layer: output = input W^T + b, with W (units, features) as in torch.nn.Linear.
import { addBiasGradient, startWith } from './bias.js';

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */

/**
 * The parameters of a layer, or what belongs to each of them: their gradient, or a direction.
 * @typedef {{ weight: Numbers, bias: Numbers | null }} Parameters
 */

export class Linear {
  /**
   * @param {Kernels} kernels
   * @param {number} batch
   * @param {number} features of the input
   * @param {{ units: number, bias: boolean }} layer
   */
  constructor(kernels, batch, features, { units, bias }) {
    this.kernels = kernels;
    this.batch = batch;
    this.features = features;
    this.units = units;
    this.weightShape = [units, features];
    this.biasShape = bias ? [units] : null;
    /** @type {[channels: number, height: number, width: number]} */
    this.outputShape = [units, 1, 1];
    /** @type {Numbers} the last input, (batch, features) */
    this.input = kernels.array(0);
  }

  /**
   * Fill output with W input + b. The input must stay as it is until the derivatives are computed.
   * @param {Numbers} input (batch, features)
   * @param {Numbers} output (batch, units)
   * @param {Parameters} weights
   */
  forward(input, output, { weight, bias }) {
    this.input = input;
    startWith(output, bias, 1);
    this.kernels.gemmNT(output, input, weight, this.batch, this.units, this.features);
  }

  /**
   * Fill tangent with the derivative of the output while the parameters move along a direction and the input along its tangent.
   * @param {Numbers | null} inputTangent null where the input does not move
   * @param {Numbers} tangent (batch, units)
   * @param {Parameters} weights
   * @param {Parameters} direction
   */
  forwardTangent(inputTangent, tangent, weights, direction) {
    startWith(tangent, direction.bias, 1);
    this.kernels.gemmNT(tangent, this.input, direction.weight, this.batch, this.units, this.features);
    if (inputTangent) this.kernels.gemmNT(tangent, inputTangent, weights.weight, this.batch, this.units, this.features);
  }

  /**
   * Add dL/dW and dL/db to the gradient.
   * @param {Numbers} outputGradient (batch, units)
   * @param {Parameters} gradient
   */
  addWeightGradient(outputGradient, { weight, bias }) {
    this.kernels.gemmTN(weight, outputGradient, this.input, this.batch, this.units, this.features);
    addBiasGradient(bias, outputGradient, 1);
  }

  /**
   * Fill inputGradient with the sum of outputGradient W over pairs of them.
   * @param {Numbers} inputGradient (batch, features)
   * @param {[outputGradient: Numbers, weight: Numbers][]} pairs
   */
  backward(inputGradient, pairs) {
    inputGradient.fill(0);
    for (const [outputGradient, weight] of pairs)
      this.kernels.gemm(inputGradient, outputGradient, weight, this.batch, this.units, this.features);
  }
}
