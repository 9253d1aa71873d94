// Matrix products for few rows, as linear layers need them. Addresses and steps (usize) are in bytes, counts (i32) in numbers.
import { add, at, dot, increase, multiplyAdd } from './vectors';

/** Add the product a b to out: out (n, m), b (k, m). The entry of a in row r and column c lies r * down + c * right numbers after the first. */
export function addProduct(out: usize, a: usize, down: i32, right: i32, b: usize, n: i32, k: i32, m: i32): void {
  for (let row = 0; row < n; row++) addRow(at(out, row * m), at(a, row * down), <usize>right << 2, b, k, m);
}

/** Add the product a b to one row, out (m). It reads four rows of b at once, from left to right. */
function addRow(out: usize, a: usize, step: usize, b: usize, k: i32, m: i32): void {
  const line: usize = <usize>m << 2;
  let c = 0;
  for (; c + 4 <= k; c += 4) {
    const from = a + <usize>c * step;
    const w0 = v128.load32_splat(from);
    const w1 = v128.load32_splat(from + step);
    const w2 = v128.load32_splat(from + 2 * step);
    const w3 = v128.load32_splat(from + 3 * step);
    const b0 = at(b, c * m);
    const b1 = b0 + line;
    const b2 = b1 + line;
    const b3 = b2 + line;
    let i: usize = 0;
    for (; i + 16 <= line; i += 16) {
      const low = multiplyAdd(f32x4.mul(w0, v128.load(b0 + i)), w1, v128.load(b1 + i));
      const high = multiplyAdd(f32x4.mul(w2, v128.load(b2 + i)), w3, v128.load(b3 + i));
      v128.store(out + i, f32x4.add(v128.load(out + i), f32x4.add(low, high)));
    }
    for (; i < line; i += 4) {
      const low = load<f32>(from) * load<f32>(b0 + i) + load<f32>(from + step) * load<f32>(b1 + i);
      const high = load<f32>(from + 2 * step) * load<f32>(b2 + i) + load<f32>(from + 3 * step) * load<f32>(b3 + i);
      increase(out + i, low + high);
    }
  }
  for (; c < k; c++) add(out, load<f32>(a + <usize>c * step), at(b, c * m), m);
}

/** Add the product of a and b transposed to out: out (n, k), a (n, m), b (k, m). */
export function gemmNT(out: usize, a: usize, b: usize, n: i32, k: i32, m: i32): void {
  for (let row = 0; row < n; row++)
    for (let column = 0; column < k; column++) increase(at(out, row * k + column), dot(at(a, row * m), at(b, column * m), m));
}
