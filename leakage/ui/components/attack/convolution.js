// A convolution with square filters, one group and a padding of zeros, as torch.nn.Conv2d computes it. Unfolded patches turn it into a
// matrix product: output (filters, rows * columns) = W (filters, channels * size * size) patches + b.

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
      throw new RangeError(`A filter of ${size} x ${size} does not fit in ${height} x ${width} pixels with a padding of ${padding}.`);
    this.kernels = kernels;
    this.batch = batch;
    this.inputShape = inputShape;
    this.filters = filters;
    this.padding = padding;
    this.geometry = { channels, height: height + 2 * padding, width: width + 2 * padding, size, stride, rows, columns };
    this.weightShape = [filters, channels, size, size];
    this.biasShape = bias ? [filters] : null;
    /** @type {[channels: number, height: number, width: number]} */
    this.outputShape = [filters, rows, columns];
    this.fan = channels * size * size; // inputs of one output
    this.area = rows * columns;
    /** @type {Numbers[]} the unfolded patches of each picture of the last input, (fan, area) */
    this.patches = Array.from({ length: batch }, () => kernels.array(this.fan * this.area));
    this.spare = kernels.array(this.fan * this.area);
    this.padded = kernels.array(channels * this.geometry.height * this.geometry.width); // its border stays 0
    this.folded = kernels.array(this.padded.length);
  }

  /**
   * Fill output with the convolution of the input, and keep the input's patches.
   * @param {Numbers} input (batch, channels, height, width)
   * @param {Numbers} output (batch, filters, rows, columns)
   * @param {Parameters} weights
   */
  forward(input, output, { weight, bias }) {
    this.start(output, bias);
    for (let b = 0; b < this.batch; b++) {
      this.unfold(this.patches[b], input, b);
      this.kernels.gemm(this.itemOf(output, b), weight, this.patches[b], this.filters, this.fan, this.area);
    }
  }

  /**
   * Fill tangent with the derivative of the output while the parameters move along a direction and the input along its tangent.
   * @param {Numbers | null} inputTangent null where the input does not move
   * @param {Numbers} tangent (batch, filters, rows, columns)
   * @param {Parameters} weights
   * @param {Parameters} direction
   */
  forwardTangent(inputTangent, tangent, weights, direction) {
    this.start(tangent, direction.bias);
    for (let b = 0; b < this.batch; b++) {
      const out = this.itemOf(tangent, b);
      this.kernels.gemm(out, direction.weight, this.patches[b], this.filters, this.fan, this.area);
      if (!inputTangent) continue;
      this.unfold(this.spare, inputTangent, b);
      this.kernels.gemm(out, weights.weight, this.spare, this.filters, this.fan, this.area);
    }
  }

  /**
   * Add dL/dW and dL/db to the gradient.
   * @param {Numbers} outputGradient (batch, filters, rows, columns)
   * @param {Parameters} gradient
   */
  addWeightGradient(outputGradient, { weight, bias }) {
    for (let b = 0; b < this.batch; b++) {
      const incoming = this.itemOf(outputGradient, b);
      this.kernels.gemmNT(weight, incoming, this.patches[b], this.filters, this.fan, this.area);
      if (!bias) continue;
      for (let f = 0; f < this.filters; f++) {
        let sum = 0;
        for (let i = f * this.area; i < (f + 1) * this.area; i++) sum += incoming[i];
        bias[f] += sum;
      }
    }
  }

  /**
   * Fill inputGradient with the sum of the transposed convolutions over pairs of an output's gradient and a weight.
   * @param {Numbers} inputGradient (batch, channels, height, width)
   * @param {[outputGradient: Numbers, weight: Numbers][]} pairs
   */
  backward(inputGradient, pairs) {
    for (let b = 0; b < this.batch; b++) {
      this.spare.fill(0);
      for (const [outputGradient, weight] of pairs)
        this.kernels.gemmTN(this.spare, weight, this.itemOf(outputGradient, b), this.filters, this.fan, this.area);
      this.folded.fill(0);
      this.kernels.fold(this.folded, this.spare, this.geometry);
      this.eachPixel(b, (pixel, inside) => (inputGradient[pixel] = this.folded[inside]));
    }
  }

  /** @type {(patches: Numbers, input: Numbers, b: number) => void} fill patches with those of picture b */
  unfold(patches, input, b) {
    this.eachPixel(b, (pixel, inside) => (this.padded[inside] = input[pixel]));
    this.kernels.unfold(patches, this.padded, this.geometry);
  }

  /**
   * Call `visit` with the index of every pixel of picture b, and with its index in the padded picture.
   * @param {number} b
   * @param {(pixel: number, inside: number) => void} visit
   */
  eachPixel(b, visit) {
    const [channels, height, width] = this.inputShape;
    let pixel = b * channels * height * width;
    for (let channel = 0; channel < channels; channel++)
      for (let row = 0; row < height; row++) {
        const from = (channel * this.geometry.height + row + this.padding) * this.geometry.width + this.padding;
        for (let inside = from; inside < from + width; inside++) visit(pixel++, inside);
      }
  }

  /** @type {(output: Numbers, b: number) => Numbers} the part of an output that belongs to picture b, (filters, rows * columns) */
  itemOf(output, b) {
    const count = this.filters * this.area;
    return /** @type {Numbers} */ (output.subarray(b * count, (b + 1) * count));
  }

  /** @type {(output: Numbers, bias: Numbers | null) => void} fill output with the bias, or with zeros */
  start(output, bias) {
    output.fill(0);
    if (!bias) return;
    for (let from = 0, f = 0; from < output.length; from += this.area, f = (f + 1) % this.filters)
      output.fill(bias[f], from, from + this.area);
  }
}
