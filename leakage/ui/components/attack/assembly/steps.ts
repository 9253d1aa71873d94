// A step of Adam on the sign of the gradient. Addresses are in bytes.
import { at, multiplyAdd } from './vectors';

/** Move the unknowns z against the sign of their gradient, as ../kernels.js, all of them whole arrays. */
export function signedStep(z: usize, gradient: usize, mean: usize, square: usize, rate: f32, root: f32, count: i32): void {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  for (let i = 0; i < count; i += 4) {
    const g = v128.load(at(gradient, i));
    const sign = f32x4.sub(v128.and(f32x4.gt(g, zero), one), v128.and(f32x4.lt(g, zero), one));
    const before = v128.load(at(mean, i));
    const m = multiplyAdd(before, f32x4.splat(0.1), f32x4.sub(sign, before));
    const s = multiplyAdd(f32x4.mul(f32x4.splat(0.999), v128.load(at(square, i))), f32x4.splat(0.001), f32x4.mul(sign, sign));
    const size = multiplyAdd(f32x4.splat(1e-8), f32x4.sqrt(s), f32x4.splat(root));
    const moved = f32x4.sub(v128.load(at(z, i)), f32x4.div(f32x4.mul(f32x4.splat(rate), m), size));
    v128.store(at(mean, i), m);
    v128.store(at(square, i), s);
    v128.store(at(z, i), f32x4.min(one, f32x4.max(zero, moved)));
  }
}
