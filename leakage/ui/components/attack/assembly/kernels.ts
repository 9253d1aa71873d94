// The arithmetic of ../kernels.js in AssemblyScript, with four float32 numbers at once. Addresses and steps (usize) are in bytes, counts
// (i32) in numbers. scripts/build_kernels.sh compiles this file.

// @ts-ignore: decorator
@inline
function at(base: usize, index: i32): usize {
  return base + (<usize>index << 2);
}

/** total + x * y, for each of four numbers. */
// @ts-ignore: decorator
@inline
function multiplyAdd(total: v128, x: v128, y: v128): v128 {
  return f32x4.add(total, f32x4.mul(x, y));
}

/** The sum of four numbers. */
// @ts-ignore: decorator
@inline
function sum(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

// @ts-ignore: decorator
@inline
function increase(address: usize, value: f32): void {
  store<f32>(address, load<f32>(address) + value);
}

/**
 * Add the product a b to out: out (n, m), b (k, m). The entry of a in row r and column c lies r * down + c * right numbers after the first.
 * Four rows and eight columns of out stay in registers; addRow computes the rows that remain, addCorner the columns that remain.
 */
export function addProduct(out: usize, a: usize, down: i32, right: i32, b: usize, n: i32, k: i32, m: i32): void {
  const step: usize = <usize>right << 2;
  const line: usize = <usize>m << 2;
  const wide = m & ~7;
  let row = 0;
  for (; row + 4 <= n; row += 4) {
    const a0 = at(a, row * down);
    const a1 = at(a0, down);
    const a2 = at(a1, down);
    const a3 = at(a2, down);
    const out0 = at(out, row * m);
    const out1 = out0 + line;
    const out2 = out1 + line;
    const out3 = out2 + line;
    for (let i: usize = 0, end: usize = <usize>wide << 2; i < end; i += 32) {
      let s00 = v128.load(out0 + i);
      let s01 = v128.load(out0 + i, 16);
      let s10 = v128.load(out1 + i);
      let s11 = v128.load(out1 + i, 16);
      let s20 = v128.load(out2 + i);
      let s21 = v128.load(out2 + i, 16);
      let s30 = v128.load(out3 + i);
      let s31 = v128.load(out3 + i, 16);
      let from = b + i;
      let offset: usize = 0;
      for (let c = 0; c < k; c++) {
        const b0 = v128.load(from);
        const b1 = v128.load(from, 16);
        let w = v128.load32_splat(a0 + offset);
        s00 = multiplyAdd(s00, w, b0);
        s01 = multiplyAdd(s01, w, b1);
        w = v128.load32_splat(a1 + offset);
        s10 = multiplyAdd(s10, w, b0);
        s11 = multiplyAdd(s11, w, b1);
        w = v128.load32_splat(a2 + offset);
        s20 = multiplyAdd(s20, w, b0);
        s21 = multiplyAdd(s21, w, b1);
        w = v128.load32_splat(a3 + offset);
        s30 = multiplyAdd(s30, w, b0);
        s31 = multiplyAdd(s31, w, b1);
        from += line;
        offset += step;
      }
      v128.store(out0 + i, s00);
      v128.store(out0 + i, s01, 16);
      v128.store(out1 + i, s10);
      v128.store(out1 + i, s11, 16);
      v128.store(out2 + i, s20);
      v128.store(out2 + i, s21, 16);
      v128.store(out3 + i, s30);
      v128.store(out3 + i, s31, 16);
    }
    for (let r = 0; r < 4; r++) addCorner(at(out0, r * m), at(a0, r * down), step, b, k, m, wide);
  }
  for (; row < n; row++) addRow(at(out, row * m), at(a, row * down), step, b, k, m);
}

/** Add the product a b to the columns from `first` of one row, out (m). */
function addCorner(out: usize, a: usize, step: usize, b: usize, k: i32, m: i32, first: i32): void {
  for (let i = first; i < m; i++) {
    let total = load<f32>(at(out, i));
    for (let c = 0; c < k; c++) total += load<f32>(a + <usize>c * step) * load<f32>(at(b, c * m + i));
    store<f32>(at(out, i), total);
  }
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

/** Add the product of a and b transposed to out: out (n, k), a (n, m), b (k, m). Four rows and two columns stay in registers. */
export function gemmNT(out: usize, a: usize, b: usize, n: i32, k: i32, m: i32): void {
  const line: usize = <usize>m << 2;
  const wide = m & ~3;
  let row = 0;
  for (; row + 4 <= n; row += 4) {
    const a0 = at(a, row * m);
    const a1 = a0 + line;
    const a2 = a1 + line;
    const a3 = a2 + line;
    const out0 = at(out, row * k);
    const out1 = at(out0, k);
    const out2 = at(out1, k);
    const out3 = at(out2, k);
    let column = 0;
    for (; column + 2 <= k; column += 2) {
      const b0 = at(b, column * m);
      const b1 = b0 + line;
      let s00 = f32x4.splat(0);
      let s01 = s00;
      let s10 = s00;
      let s11 = s00;
      let s20 = s00;
      let s21 = s00;
      let s30 = s00;
      let s31 = s00;
      for (let i: usize = 0, end: usize = <usize>wide << 2; i < end; i += 16) {
        const y0 = v128.load(b0 + i);
        const y1 = v128.load(b1 + i);
        let x = v128.load(a0 + i);
        s00 = multiplyAdd(s00, x, y0);
        s01 = multiplyAdd(s01, x, y1);
        x = v128.load(a1 + i);
        s10 = multiplyAdd(s10, x, y0);
        s11 = multiplyAdd(s11, x, y1);
        x = v128.load(a2 + i);
        s20 = multiplyAdd(s20, x, y0);
        s21 = multiplyAdd(s21, x, y1);
        x = v128.load(a3 + i);
        s30 = multiplyAdd(s30, x, y0);
        s31 = multiplyAdd(s31, x, y1);
      }
      increase(at(out0, column), sum(s00) + dotFrom(a0, b0, wide, m));
      increase(at(out0, column + 1), sum(s01) + dotFrom(a0, b1, wide, m));
      increase(at(out1, column), sum(s10) + dotFrom(a1, b0, wide, m));
      increase(at(out1, column + 1), sum(s11) + dotFrom(a1, b1, wide, m));
      increase(at(out2, column), sum(s20) + dotFrom(a2, b0, wide, m));
      increase(at(out2, column + 1), sum(s21) + dotFrom(a2, b1, wide, m));
      increase(at(out3, column), sum(s30) + dotFrom(a3, b0, wide, m));
      increase(at(out3, column + 1), sum(s31) + dotFrom(a3, b1, wide, m));
    }
    for (; column < k; column++)
      for (let r = 0; r < 4; r++) increase(at(out0, r * k + column), dot(at(a0, r * m), at(b, column * m), m));
  }
  for (; row < n; row++)
    for (let column = 0; column < k; column++) increase(at(out, row * k + column), dot(at(a, row * m), at(b, column * m), m));
}

/** The inner product of the numbers from `first` on. */
function dotFrom(a: usize, b: usize, first: i32, count: i32): f32 {
  let total: f32 = 0;
  for (let i = first; i < count; i++) total += load<f32>(at(a, i)) * load<f32>(at(b, i));
  return total;
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
  return sum(f32x4.add(f32x4.add(s0, s1), f32x4.add(s2, s3))) + dotFrom(a, b, i, count);
}

/** Add scale * a to out. */
export function add(out: usize, scale: f32, a: usize, count: i32): void {
  const w = f32x4.splat(scale);
  let i = 0;
  for (; i + 4 <= count; i += 4) v128.store(at(out, i), multiplyAdd(v128.load(at(out, i)), w, v128.load(at(a, i))));
  for (; i < count; i++) increase(at(out, i), scale * load<f32>(at(a, i)));
}

/** Copy every patch of a padded picture (channels, height, width) into a column of patches (channels * size * size, rows * columns). */
export function unfold(
  patches: usize, picture: usize, channels: i32, height: i32, width: i32, size: i32, stride: i32, rows: i32, columns: i32,
): void {
  const step: usize = <usize>stride << 2;
  let to = patches;
  for (let channel = 0; channel < channels; channel++)
    for (let down = 0; down < size; down++)
      for (let right = 0; right < size; right++)
        for (let row = 0; row < rows; row++) {
          let from = at(picture, (channel * height + row * stride + down) * width + right);
          let column = 0;
          if (stride == 1) for (; column + 4 <= columns; column += 4, from += 16, to += 16) v128.store(to, v128.load(from));
          for (; column < columns; column++, from += step, to += 4) store<f32>(to, load<f32>(from));
        }
}

/** Add every column of patches (channels * size * size, rows * columns) to its patch of a padded picture (channels, height, width). */
export function fold(
  picture: usize, patches: usize, channels: i32, height: i32, width: i32, size: i32, stride: i32, rows: i32, columns: i32,
): void {
  const step: usize = <usize>stride << 2;
  let from = patches;
  for (let channel = 0; channel < channels; channel++)
    for (let down = 0; down < size; down++)
      for (let right = 0; right < size; right++)
        for (let row = 0; row < rows; row++) {
          let to = at(picture, (channel * height + row * stride + down) * width + right);
          let column = 0;
          if (stride == 1)
            for (; column + 4 <= columns; column += 4, from += 16, to += 16) v128.store(to, f32x4.add(v128.load(to), v128.load(from)));
          for (; column < columns; column++, from += 4, to += step) increase(to, load<f32>(from));
        }
}
