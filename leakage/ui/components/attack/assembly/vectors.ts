// Sums and products of arrays of float32 numbers, four numbers at once. Addresses are in bytes, counts (i32) in numbers. Arrays that are
// whole begin and end where a multiple of four numbers does, so that the last four may go beyond the count.

// @ts-ignore: decorator
@inline
export function at(base: usize, index: i32): usize {
  return base + (<usize>index << 2);
}

/** total + x * y, for each of four numbers. */
// @ts-ignore: decorator
@inline
export function multiplyAdd(total: v128, x: v128, y: v128): v128 {
  return f32x4.add(total, f32x4.mul(x, y));
}

/** The sum of four numbers. */
// @ts-ignore: decorator
@inline
export function sum(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

// @ts-ignore: decorator
@inline
export function increase(address: usize, value: f32): void {
  store<f32>(address, load<f32>(address) + value);
}

export function dot(a: usize, b: usize, count: i32): f32 {
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let s2 = s0;
  let s3 = s0;
  let i = 0;
  for (; i + 16 <= count; i += 16) {
    const x = at(a, i);
    const y = at(b, i);
    s0 = multiplyAdd(s0, v128.load(x), v128.load(y));
    s1 = multiplyAdd(s1, v128.load(x, 16), v128.load(y, 16));
    s2 = multiplyAdd(s2, v128.load(x, 32), v128.load(y, 32));
    s3 = multiplyAdd(s3, v128.load(x, 48), v128.load(y, 48));
  }
  let total = sum(f32x4.add(f32x4.add(s0, s1), f32x4.add(s2, s3)));
  for (; i < count; i++) total += load<f32>(at(a, i)) * load<f32>(at(b, i));
  return total;
}

/** Add scale * a to out. */
export function add(out: usize, scale: f32, a: usize, count: i32): void {
  const w = f32x4.splat(scale);
  let i = 0;
  for (; i + 4 <= count; i += 4) v128.store(at(out, i), multiplyAdd(v128.load(at(out, i)), w, v128.load(at(a, i))));
  for (; i < count; i++) increase(at(out, i), scale * load<f32>(at(a, i)));
}

/** The third and fourth number, in the places of the first two. */
// @ts-ignore: decorator
@inline
export function upper(v: v128): v128 {
  return v128.shuffle<f32>(v, v, 2, 3, 2, 3);
}

/** The inner product, summed in float64. */
export function exactDot(a: usize, b: usize, count: i32): f64 {
  let s0 = f64x2.splat(0);
  let s1 = s0;
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    const x = v128.load(at(a, i));
    const y = v128.load(at(b, i));
    s0 = f64x2.add(s0, f64x2.mul(f64x2.promote_low_f32x4(x), f64x2.promote_low_f32x4(y)));
    s1 = f64x2.add(s1, f64x2.mul(f64x2.promote_low_f32x4(upper(x)), f64x2.promote_low_f32x4(upper(y))));
  }
  s0 = f64x2.add(s0, s1);
  let total = f64x2.extract_lane(s0, 0) + f64x2.extract_lane(s0, 1);
  for (; i < count; i++) total += <f64>load<f32>(at(a, i)) * <f64>load<f32>(at(b, i));
  return total;
}

/** Add scale * a to out, and return the inner product of out and b, summed in float32. */
export function addAndDot(out: usize, scale: f32, a: usize, b: usize, count: i32): f32 {
  const w = f32x4.splat(scale);
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let s2 = s0;
  let s3 = s0;
  let i = 0;
  for (; i + 16 <= count; i += 16) {
    const to = at(out, i);
    const x = at(a, i);
    const y = at(b, i);
    const o0 = multiplyAdd(v128.load(to), w, v128.load(x));
    const o1 = multiplyAdd(v128.load(to, 16), w, v128.load(x, 16));
    const o2 = multiplyAdd(v128.load(to, 32), w, v128.load(x, 32));
    const o3 = multiplyAdd(v128.load(to, 48), w, v128.load(x, 48));
    v128.store(to, o0);
    v128.store(to, o1, 16);
    v128.store(to, o2, 32);
    v128.store(to, o3, 48);
    s0 = multiplyAdd(s0, o0, v128.load(y));
    s1 = multiplyAdd(s1, o1, v128.load(y, 16));
    s2 = multiplyAdd(s2, o2, v128.load(y, 32));
    s3 = multiplyAdd(s3, o3, v128.load(y, 48));
  }
  let rest: f32 = 0;
  for (; i < count; i++) {
    increase(at(out, i), scale * load<f32>(at(a, i)));
    rest += load<f32>(at(out, i)) * load<f32>(at(b, i));
  }
  return sum(f32x4.add(f32x4.add(s0, s1), f32x4.add(s2, s3))) + rest;
}

/** out = a * b, entry by entry, of whole arrays. */
export function multiply(out: usize, a: usize, b: usize, count: i32): void {
  for (let i = 0; i < count; i += 4) v128.store(at(out, i), f32x4.mul(v128.load(at(a, i)), v128.load(at(b, i))));
}

/** out = a * b + c * d * e, entry by entry, of whole arrays. */
export function productRule(out: usize, a: usize, b: usize, c: usize, d: usize, e: usize, count: i32): void {
  for (let i = 0; i < count; i += 4) {
    const product = f32x4.mul(v128.load(at(c, i)), v128.load(at(d, i)));
    v128.store(at(out, i), multiplyAdd(f32x4.mul(v128.load(at(a, i)), v128.load(at(b, i))), product, v128.load(at(e, i))));
  }
}

/** out = p * a + q * b, entry by entry, of whole arrays. */
export function combine(out: usize, p: f32, a: usize, q: f32, b: usize, count: i32): void {
  const left = f32x4.splat(p);
  const right = f32x4.splat(q);
  for (let i = 0; i < count; i += 4)
    v128.store(at(out, i), multiplyAdd(f32x4.mul(left, v128.load(at(a, i))), right, v128.load(at(b, i))));
}
