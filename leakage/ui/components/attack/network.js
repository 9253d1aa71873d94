// A network whose gradient can be differentiated again. With g(x) = dL/dw and a direction v in the space of the weights,
//   d<g(x), v>/dx = d/de [dL/dx at the weights w + e v] at e = 0
// (Pearlmutter 1994, section 3). So a second forward and backward pass that carry the tangent along v give it.
import { ACTIVATIONS, identity } from './activations.js';
import { Convolution } from './convolution.js';
import { crossEntropy, crossEntropyTangent } from './cross_entropy.js';
import { Linear } from './linear.js';

/** @typedef {import('./kernels.js').Kernels} Kernels */
/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./linear.js').Parameters} Parameters */
/** @typedef {import('./plans.js').Plan} Plan */

/**
 * A parameter in the flat arrays: entries [from, to), stored as torch stores a tensor of this shape.
 * @typedef {{ name: string, from: number, to: number, shape: number[] }} Tensor
 */

/**
 * A layer with its activation, and what flows through both. All arrays but the first three have the shape of the layer's output.
 * @typedef {object} Stage
 * @property {Convolution | Linear} layer
 * @property {import('./activations.js').Activation} activation
 * @property {Parameters} weights
 * @property {Parameters} gradient
 * @property {Parameters} direction
 * @property {Numbers} z the layer's output
 * @property {Numbers} value the activation's output
 * @property {Numbers} derivative of the activation at z
 * @property {Numbers} curvature the second derivative of the activation at z
 * @property {Numbers} zGradient dL/dz
 * @property {Numbers} valueGradient dL/dvalue
 * @property {Numbers} zTangent the derivative of z along the direction; in the same way the following three
 * @property {Numbers} valueTangent
 * @property {Numbers} zGradientTangent
 * @property {Numbers} valueGradientTangent
 */

export class Network {
  /**
   * @param {Kernels} kernels
   * @param {Plan} plan
   * @param {number} [batch] the number of pictures
   */
  constructor(kernels, plan, batch = 1) {
    const { shape } = plan;
    const layers = namedLayers(kernels, plan, batch);
    this.kernels = kernels;
    this.batch = batch;
    this.shape = shape;
    this.classes = product(layers[layers.length - 1].layer.outputShape);
    this.tensors = tensorsOf(layers);
    this.count = this.tensors[this.tensors.length - 1].to;
    this.weights = kernels.array(this.count);
    this.gradient = kernels.array(this.count);
    this.direction = kernels.array(this.count);
    this.probabilities = kernels.array(batch * this.classes);
    this.pictureSlope = kernels.array(batch * product(shape));
    this.labelSlope = kernels.array(batch * this.classes);
    /** @type {ArrayLike<number>} the last labels, (batch, classes) */
    this.labels = [];
    /** @type {Stage[]} */
    this.stages = layers.map(({ layer, name, activation }) => {
      const size = batch * product(layer.outputShape);
      return {
        layer,
        activation,
        weights: this.parametersOf(name, this.weights),
        gradient: this.parametersOf(name, this.gradient),
        direction: this.parametersOf(name, this.direction),
        z: kernels.array(size),
        value: kernels.array(size),
        derivative: kernels.array(size),
        curvature: kernels.array(size),
        zGradient: kernels.array(size),
        valueGradient: kernels.array(size),
        zTangent: kernels.array(size),
        valueTangent: kernels.array(size),
        zGradientTangent: kernels.array(size),
        valueGradientTangent: kernels.array(size),
      };
    });
  }

  /**
   * Fill the `value` of each stage.
   * @param {Numbers} x the pictures (batch, channels, height, width), an array of the kernels
   * @returns {Numbers} the logits (batch, classes)
   */
  predict(x) {
    let input = x;
    for (const { layer, activation, weights, z, value, derivative, curvature } of this.stages) {
      layer.forward(input, z, weights);
      activation(z, value, derivative, curvature, this.kernels);
      input = value;
    }
    return input;
  }

  /**
   * Compute the mean cross-entropy of a batch and fill `gradient` with its derivative by the weights.
   * @param {Numbers} x the pictures (batch, channels, height, width), an array of the kernels
   * @param {ArrayLike<number>} y the class probabilities of the labels (batch, classes)
   * @returns {number} the mean cross-entropy
   */
  differentiate(x, y) {
    const { stages, classes } = this;
    const logits = this.predict(x);
    this.labels = y;
    const loss = crossEntropy(logits, y, classes, this.probabilities, stages[stages.length - 1].valueGradient);
    this.gradient.fill(0);
    for (let index = stages.length - 1; index >= 0; index--) {
      const { layer, weights, gradient, derivative, zGradient, valueGradient } = stages[index];
      this.kernels.multiply(zGradient, valueGradient, derivative);
      layer.addWeightGradient(zGradient, gradient);
      if (index) layer.backward(stages[index - 1].valueGradient, [[zGradient, weights.weight]]);
    }
    return loss;
  }

  /**
   * Fill `pictureSlope` with d<gradient, direction>/dx and `labelSlope` with d<gradient, direction>/dy, both at x and y of the last call of
   * `differentiate`. Between the two calls neither x nor y nor the weights may change.
   */
  differentiateAgain() {
    const { stages, classes } = this;
    /** @type {Numbers | null} */
    let inputTangent = null;
    for (const { layer, weights, direction, derivative, zTangent, valueTangent } of stages) {
      layer.forwardTangent(inputTangent, zTangent, weights, direction);
      this.kernels.multiply(valueTangent, derivative, zTangent);
      inputTangent = valueTangent;
    }
    const { valueTangent, valueGradientTangent } = stages[stages.length - 1];
    crossEntropyTangent(valueTangent, this.labels, classes, this.probabilities, valueGradientTangent, this.labelSlope);
    // dL/dz = dL/dvalue * f'(z), so its tangent follows the product rule.
    for (let index = stages.length - 1; index >= 0; index--) {
      const { layer, weights, direction, derivative, curvature, valueGradient, zGradient, zTangent } = stages[index];
      const { zGradientTangent, valueGradientTangent } = stages[index];
      this.kernels.productRule(zGradientTangent, valueGradientTangent, derivative, valueGradient, curvature, zTangent);
      layer.backward(index ? stages[index - 1].valueGradientTangent : this.pictureSlope, [
        [zGradient, direction.weight],
        [zGradientTangent, weights.weight],
      ]);
    }
  }

  /** @type {(name: string, numbers: Numbers) => Parameters} the part of a flat array that belongs to a layer */
  parametersOf(name, numbers) {
    const [weight, bias] = ['weight', 'bias'].map((part) => {
      const tensor = this.tensors.find((each) => each.name === `${name}.${part}`);
      return tensor ? /** @type {Numbers} */ (numbers.subarray(tensor.from, tensor.to)) : null;
    });
    return { weight: /** @type {Numbers} */ (weight), bias };
  }
}

/** @typedef {{ name: string, layer: Convolution | Linear, activation: Stage['activation'] }} NamedLayer */

/** @type {(kernels: Kernels, plan: Plan, batch: number) => NamedLayer[]} */
function namedLayers(kernels, { shape, layers }, batch) {
  /** @type {NamedLayer[]} */
  const named = [];
  let inputShape = shape;
  for (const spec of layers) {
    if (spec.kind === 'activation') {
      named[named.length - 1].activation = ACTIVATIONS[spec.activation];
      continue;
    }
    const layer =
      spec.kind === 'conv' ? new Convolution(kernels, batch, inputShape, spec) : new Linear(kernels, batch, product(inputShape), spec);
    named.push({ name: spec.name, layer, activation: identity });
    inputShape = layer.outputShape;
  }
  return named;
}

/** @type {(layers: NamedLayer[]) => Tensor[]} the parameters in the order of torch's state_dict */
function tensorsOf(layers) {
  let from = 0;
  return layers.flatMap(({ name, layer }) =>
    Object.entries({ weight: layer.weightShape, bias: layer.biasShape }).flatMap(([part, shape]) =>
      shape ? [{ name: `${name}.${part}`, from, to: (from += product(shape)), shape }] : [],
    ),
  );
}

/** @type {(sides: number[]) => number} */
const product = (sides) => sides.reduce((result, side) => result * side);
