// A convolution with square filters, one group and a padding of zeros, as torch.nn.Conv2d computes it.
import { addBiasGradient, startWith } from './bias.js';
import { layoutOfInput, layoutOfOutput } from './planes.js';

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./linear.js').Parameters} Parameters */

export class Convolution {
  /**
   * @param {Kernels} kernels
   * @param {number} batch
   * @param {[channels: number, height: number, width: number]} inputShape
   * @param {{ filters: number, size: number, stride: number, padding: number, bias: boolean }} layer
   */
  constructor(kernels, batch, inputShape, { filters, size, stride, padding, bias }) {
    const [channels, height, width] = inputShape;
    const [rows, columns] = [height, width].map((side) => Math.floor((side + 2 * padding - size) / stride) + 1);
    if (rows < 1 || columns < 1)
      throw new RangeError(`A filter of ${size} x ${size} does not fit in ${height} x ${width} pixels. Choose larger pictures.`);
    this.kernels = kernels;
    this.weightShape = [filters, channels, size, size];
    this.biasShape = bias ? [filters] : null;
    /** @type {[channels: number, height: number, width: number]} */
    this.outputShape = [filters, rows, columns];
    const pitch = 8 * Math.ceil(columns / 8);
    this.inputLayout = layoutOfInput(kernels, batch, inputShape, { size, stride, padding }, pitch);
    const [, taps, , inputSize] = this.inputLayout.planes;
    this.outputLayout = layoutOfOutput(kernels, batch, this.outputShape, taps, pitch);
    const [, , , outputSize] = this.outputLayout.planes;
    this.plane = rows * pitch; // numbers of an output plane
    /** @type {import('./kernels.js').Block} */
    this.block = [batch, rows, pitch, kernels.array((filters + 3) * (2 * taps + this.plane))];
    this.input = kernels.array(batch * inputSize); // the last one
    this.tangent = kernels.array(batch * inputSize); // of the input
    this.sum = kernels.array(batch * inputSize); // the gradient of the input
    this.output = kernels.array(batch * outputSize);
    this.incoming = kernels.array(batch * outputSize); // the gradient of the output
  }

  /**
   * Fill output with the convolution of the input, and keep the input.
   * @param {Numbers} input (batch, channels, height, width)
   * @param {Numbers} output (batch, filters, rows, columns)
   * @param {Parameters} weights
   */
  forward(input, output, { weight, bias }) {
    this.inputLayout.write(this.input, input);
    startWith(this.output, bias, this.plane);
    this.convolve(weight, this.input);
    this.outputLayout.read(output, this.output);
  }

  /**
   * Fill tangent with the derivative of the output while the parameters move along a direction and the input along its tangent.
   * @param {Numbers | null} inputTangent null where the input does not move
   * @param {Numbers} tangent (batch, filters, rows, columns)
   * @param {Parameters} weights
   * @param {Parameters} direction
   */
  forwardTangent(inputTangent, tangent, weights, direction) {
    startWith(this.output, direction.bias, this.plane);
    this.convolve(direction.weight, this.input);
    if (inputTangent) {
      this.inputLayout.write(this.tangent, inputTangent);
      this.convolve(weights.weight, this.tangent);
    }
    this.outputLayout.read(tangent, this.output);
  }

  /**
   * Add dL/dW and dL/db to the gradient.
   * @param {Numbers} outputGradient (batch, filters, rows, columns)
   * @param {Parameters} gradient
   */
  addWeightGradient(outputGradient, { weight, bias }) {
    this.outputLayout.write(this.incoming, outputGradient);
    this.kernels.addInnerProducts(weight, this.incoming, this.outputLayout.planes, this.input, this.inputLayout.planes, this.block);
    addBiasGradient(bias, outputGradient, this.outputShape[1] * this.outputShape[2]);
  }

  /**
   * Fill inputGradient with the sum of the transposed convolutions over pairs of an output's gradient and a weight.
   * @param {Numbers} inputGradient (batch, channels, height, width)
   * @param {[outputGradient: Numbers, weight: Numbers][]} pairs
   */
  backward(inputGradient, pairs) {
    this.sum.fill(0);
    for (const [outputGradient, weight] of pairs) {
      this.outputLayout.write(this.incoming, outputGradient);
      this.kernels.addCombinations(this.sum, this.inputLayout.planes, this.incoming, this.outputLayout.planes, weight, this.block);
    }
    this.inputLayout.read(inputGradient, this.sum);
  }

  /** @type {(weight: Numbers, input: Numbers) => void} add the convolution of an input to the output */
  convolve(weight, input) {
    this.kernels.addCombinations(this.output, this.outputLayout.planes, input, this.inputLayout.planes, weight, this.block);
  }
}
