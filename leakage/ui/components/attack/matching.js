// The objective of gradient matching: the distance of a guess's gradient, as the phone would send it, with its derivatives.
import { Network } from './network.js';

/** @typedef {import('./kernels.js').Numbers} Numbers */
/** @typedef {import('./received.js').Received} Received */
/** @typedef {import('./distances.js').Distance} Distance */

export class Matching {
  /**
   * @param {Received} received
   * @param {Distance} distance to what was received
   */
  constructor({ kernels, plan, weights, classes, batch, phones, imitations }, distance) {
    this.distance = distance;
    this.imitations = imitations;
    this.classes = classes;
    this.size = plan.shape.reduce((product, side) => product * side); // numbers of a picture
    // The mean over the phones can be imitated at once, unless a phone's protection is not linear.
    const parts = imitations.every(({ linear }) => linear) ? 1 : phones;
    this.networks = Array.from({ length: parts }, () => new Network(kernels, plan, batch / parts));
    for (const network of this.networks) network.weights.set(weights);
    const [first] = this.networks;
    this.x = this.networks.map((network) => kernels.array(network.batch * this.size));
    const alone = parts === 1;
    this.mean = alone ? first.gradient : first.gradient.slice();
    this.derivative = alone ? first.direction : first.direction.slice();
    /** @type {Numbers[][]} for each network the input of each imitation */
    this.inputs = this.networks.map(() => imitations.map(() => first.gradient.slice()));
    this.pictureGradient = kernels.array(batch * this.size);
    this.labelGradient = kernels.array(batch * classes);
  }

  /**
   * The distance of pictures; `differentiate` fills its derivatives next.
   * @param {Numbers} pictures (batch, C, H, W)
   * @param {ArrayLike<number> & { slice(from: number, to: number): ArrayLike<number> }} y probabilities of the classes, (batch, classes)
   */
  evaluate(pictures, y) {
    const { networks, imitations, inputs, mean } = this;
    if (networks.length > 1) mean.fill(0);
    networks.forEach((network, index) => {
      const x = this.x[index];
      x.set(pictures.subarray(index * x.length, (index + 1) * x.length));
      const labels = network.batch * this.classes;
      network.differentiate(x, y.slice(index * labels, (index + 1) * labels));
      imitations.forEach((imitation, number) => {
        inputs[index][number].set(network.gradient);
        imitation.apply(network.gradient);
      });
      if (networks.length > 1) for (let i = 0; i < mean.length; i++) mean[i] += network.gradient[i] / networks.length;
    });
    return this.distance(mean, this.derivative);
  }

  /** Fills `pictureGradient` and `labelGradient`, the derivatives at the last `evaluate`; at most once after it. */
  differentiate() {
    const { networks, imitations, inputs, derivative } = this;
    networks.forEach((network, index) => {
      if (networks.length > 1) for (let i = 0; i < derivative.length; i++) network.direction[i] = derivative[i] / networks.length;
      for (let number = imitations.length - 1; number >= 0; number--) imitations[number].pullBack(inputs[index][number], network.direction);
      network.differentiateAgain();
      this.pictureGradient.set(network.pictureSlope, index * network.pictureSlope.length);
      this.labelGradient.set(network.labelSlope, index * network.labelSlope.length);
    });
  }
}
