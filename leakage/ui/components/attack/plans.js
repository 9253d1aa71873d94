// The networks that the page can attack: the models of leakage/models with the same ids, options and defaults.

/** @typedef {[channels: number, height: number, width: number]} PictureShape */
/** @typedef {'relu' | 'leaky_relu' | 'sigmoid' | 'tanh'} ActivationName */

/**
 * How torch draws the weights: U(-0.5, 0.5) for all, or as torch.nn draws each layer.
 * @typedef {'wide_uniform' | 'default'} Initialisation
 */

/**
 * @typedef {{ kind: 'conv', name: string, filters: number, size: number, stride: number, padding: number, bias: boolean }} ConvLayer
 * @typedef {{ kind: 'linear', name: string, units: number, bias: boolean }} LinearLayer it flattens its input
 * @typedef {{ kind: 'activation', activation: ActivationName }} ActivationLayer
 * @typedef {ConvLayer | LinearLayer | ActivationLayer} Layer
 */

/**
 * A network from the picture to the logits. `name` of a layer is its name in torch's state_dict.
 * @typedef {{ shape: PictureShape, layers: Layer[], initialisation: Initialisation }} Plan
 */

/** @typedef {{ activation?: ActivationName, bias?: boolean, initialisation?: Initialisation }} LeNetOptions */

/**
 * LeNet as Zhu et al. 2019 changed it (leakage/models/lenet.py).
 * @param {PictureShape} shape
 * @param {number} classes
 * @param {LeNetOptions} [options]
 * @returns {Plan}
 */
function lenet(shape, classes, { activation = 'sigmoid', bias = true, initialisation = 'wide_uniform' } = {}) {
  const layers = [2, 2, 1].flatMap((stride, index) => [
    conv(`conv${index + 1}`, 12, { stride, padding: 2, bias }),
    activationLayer(activation),
  ]);
  return { shape, layers: [...layers, linear('linear', classes, bias)], initialisation };
}

/**
 * LeNet*, the preset of LeNet (Zhu and Blaschko 2021, table 2).
 * @param {PictureShape} shape
 * @param {number} classes
 * @param {LeNetOptions} [options]
 */
const lenetStar = (shape, classes, options) =>
  lenet(shape, classes, { activation: 'leaky_relu', bias: false, initialisation: 'default', ...options });

/**
 * A fully connected network (leakage/models/mlp.py).
 * @param {PictureShape} shape
 * @param {number} classes
 * @param {{ width?: number, depth?: number, activation?: ActivationName }} [options]
 * @returns {Plan}
 */
function mlp(shape, classes, { width = 256, depth = 2, activation = 'relu' } = {}) {
  const layers = Array.from({ length: depth }, (_, index) => [linear(`linear${index + 1}`, width, true), activationLayer(activation)]);
  return { shape, layers: [...layers.flat(), linear('linear', classes, true)], initialisation: 'default' };
}

/**
 * The network for handwritten digits that GLAUS attacks (leakage/models/mnist_cnn.py).
 * @param {PictureShape} shape
 * @param {number} classes
 * @param {{ activation?: ActivationName, initialisation?: Initialisation }} [options]
 * @returns {Plan}
 */
function mnistCnn(shape, classes, { activation = 'sigmoid', initialisation = 'wide_uniform' } = {}) {
  const layers = [10, 20, 10].flatMap((filters, index) => [
    conv(`conv${index + 1}`, filters, { stride: 1, padding: 0, bias: true }),
    activationLayer(activation),
  ]);
  return { shape, layers: [...layers, linear('linear', classes, true)], initialisation };
}

/** @type {(name: string, filters: number, rest: { stride: number, padding: number, bias: boolean }) => Layer} filters of 5 x 5 */
const conv = (name, filters, rest) => ({ kind: 'conv', name, filters, size: 5, ...rest });

/** @type {(name: string, units: number, bias: boolean) => Layer} */
const linear = (name, units, bias) => ({ kind: 'linear', name, units, bias });

/** @type {(activation: ActivationName) => Layer} */
const activationLayer = (activation) => ({ kind: 'activation', activation });

export const PLANS = { lenet, lenet_star: lenetStar, mlp, mnist_cnn: mnistCnn };
