// The sigmoid with its derivatives. Addresses are in bytes.
import { at, upper } from './vectors';

/** 1.5 * 2^52: its sum with a number has the nearest integer in its lowest bits. */
const SHIFT: f64 = 6755399441055744;

/** x times log2(e), with the nearest integer in the lowest bits. */
// @ts-ignore: decorator
@inline
function scaled(x: v128): v128 {
  return f64x2.add(f64x2.mul(x, f64x2.splat(1.4426950408889634)), f64x2.splat(SHIFT));
}

/** x - n ln(2), with ln(2) in two parts. */
// @ts-ignore: decorator
@inline
function reduced(x: v128, n: v128): v128 {
  return f64x2.sub(f64x2.sub(x, f64x2.mul(n, f64x2.splat(0.6931471803691238))), f64x2.mul(n, f64x2.splat(1.9082149292705877e-10)));
}

/** The next term of a series of r, from the last one to the first. */
// @ts-ignore: decorator
@inline
function term(coefficient: f64, total: v128, r: v128): v128 {
  return f64x2.add(f64x2.splat(coefficient), f64x2.mul(total, r));
}

/** Two float64 numbers times 2^n, with n in the lowest bits of `shifted`. */
// @ts-ignore: decorator
@inline
function timesPower(total: v128, shifted: v128): v128 {
  return f64x2.mul(total, i64x2.shl(i64x2.add(shifted, i64x2.splat(1023)), 52));
}

/** Store four float64 numbers as float32. */
// @ts-ignore: decorator
@inline
function storeRounded(to: usize, low: v128, high: v128): void {
  v128.store(to, v128.shuffle<f32>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 1, 4, 5));
}

/**
 * Fill value, derivative and curvature with s = 1 / (1 + exp(-z)), s (1 - s) and s (1 - s) (1 - 2 s), computed in float64, of whole arrays. exp(x) is
 * 2^n exp(r) with |r| <= ln(2) / 2, by 8 terms of the series of exp(r), which leave 2e-10 of it.
 */
export function sigmoid(z: usize, value: usize, derivative: usize, curvature: usize, count: i32): void {
  const one = f64x2.splat(1);
  const limit = f32x4.splat(700);
  for (let i = 0; i < count; i += 4) {
    const four = f32x4.pmax(f32x4.pmin(f32x4.neg(v128.load(at(z, i))), limit), f32x4.neg(limit));
    const x0 = f64x2.promote_low_f32x4(four);
    const x1 = f64x2.promote_low_f32x4(upper(four));
    const n0 = scaled(x0);
    const n1 = scaled(x1);
    const r0 = reduced(x0, f64x2.sub(n0, f64x2.splat(SHIFT)));
    const r1 = reduced(x1, f64x2.sub(n1, f64x2.splat(SHIFT)));
    let e0 = f64x2.splat(1 / 40320.0);
    let e1 = e0;
    e0 = term(1 / 5040.0, e0, r0);
    e1 = term(1 / 5040.0, e1, r1);
    e0 = term(1 / 720.0, e0, r0);
    e1 = term(1 / 720.0, e1, r1);
    e0 = term(1 / 120.0, e0, r0);
    e1 = term(1 / 120.0, e1, r1);
    e0 = term(1 / 24.0, e0, r0);
    e1 = term(1 / 24.0, e1, r1);
    e0 = term(1 / 6.0, e0, r0);
    e1 = term(1 / 6.0, e1, r1);
    e0 = term(0.5, e0, r0);
    e1 = term(0.5, e1, r1);
    e0 = term(1.0, e0, r0);
    e1 = term(1.0, e1, r1);
    e0 = term(1.0, e0, r0);
    e1 = term(1.0, e1, r1);
    const s0 = f64x2.div(one, f64x2.add(one, timesPower(e0, n0)));
    const s1 = f64x2.div(one, f64x2.add(one, timesPower(e1, n1)));
    const first0 = f64x2.mul(s0, f64x2.sub(one, s0));
    const first1 = f64x2.mul(s1, f64x2.sub(one, s1));
    storeRounded(at(value, i), s0, s1);
    storeRounded(at(derivative, i), first0, first1);
    const second0 = f64x2.mul(first0, f64x2.sub(one, f64x2.add(s0, s0)));
    const second1 = f64x2.mul(first1, f64x2.sub(one, f64x2.add(s1, s1)));
    storeRounded(at(curvature, i), second0, second1);
  }
}
