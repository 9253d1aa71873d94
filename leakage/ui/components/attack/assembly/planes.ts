// The products of a convolution: sums and inner products of planes (rows, columns) that lie in arrays with a table of places. Addresses and
// table entries are in bytes, counts (i32) in numbers. ../kernels.js says what the tables hold; `packed` is room for copies. Planes are taken
// four or two at a time. A table ends with three entries of 0. So the last group reads plane 0 where it has no plane, and drops the result.
import { at, increase, multiplyAdd } from './vectors';

/** Where plane i begins. */
// @ts-ignore: decorator
@inline
function place(table: usize, i: i32): usize {
  return load<u32>(table + (<usize>i << 3));
}

/** Where the weights of plane i begin. */
// @ts-ignore: decorator
@inline
function weights(table: usize, i: i32): usize {
  return load<u32>(table + (<usize>i << 3), 4);
}

/** The distance from plane i to the next one. */
// @ts-ignore: decorator
@inline
function gap(table: usize, i: i32): usize {
  return place(table, i + 1) - place(table, i);
}

/**
 * Add sums of planes, each times a weight, to the planes of out. Eight columns of four planes stay in registers. `packed` holds 20 bytes for
 * each source plane: its weights for four planes of out, and the distance to the next source plane.
 */
export function addCombinations(
  out: usize, outTable: usize, outCount: i32, outPitch: i32, outSize: i32,
  source: usize, table: usize, count: i32, pitch: i32, size: i32,
  weight: usize, batch: i32, rows: i32, columns: i32, packed: usize,
): void {
  let x = packed;
  for (let i = 0; i < outCount; i += 4)
    for (let k = 0; k < count; k++, x += 20) {
      for (let r = 0; r < 4; r++) store<f32>(at(x, r), load<f32>(weight + weights(outTable, i + r) + weights(table, k)));
      store<u32>(x, gap(table, k), 16);
    }
  for (; batch; batch--, out = at(out, outSize), source = at(source, size)) {
    x = packed;
    for (let i = 0; i < outCount; i += 4) {
      const first = x;
      const end = first + <usize>count * 20;
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column += 8) {
          let s00 = f32x4.splat(0);
          let s01 = s00;
          let s10 = s00;
          let s11 = s00;
          let s20 = s00;
          let s21 = s00;
          let s30 = s00;
          let s31 = s00;
          let from = at(source, row * pitch + column); // in the first plane
          for (x = first; x < end; x += 20) {
            const b0 = v128.load(from);
            const b1 = v128.load(from, 16);
            let w = v128.load32_splat(x);
            s00 = multiplyAdd(s00, w, b0);
            s01 = multiplyAdd(s01, w, b1);
            w = v128.load32_splat(x, 4);
            s10 = multiplyAdd(s10, w, b0);
            s11 = multiplyAdd(s11, w, b1);
            w = v128.load32_splat(x, 8);
            s20 = multiplyAdd(s20, w, b0);
            s21 = multiplyAdd(s21, w, b1);
            w = v128.load32_splat(x, 12);
            s30 = multiplyAdd(s30, w, b0);
            s31 = multiplyAdd(s31, w, b1);
            from += load<u32>(x, 16);
          }
          const to = at(out, row * outPitch + column);
          addEight(to + place(outTable, i), s00, s01);
          if (i + 1 < outCount) addEight(to + place(outTable, i + 1), s10, s11);
          if (i + 2 < outCount) addEight(to + place(outTable, i + 2), s20, s21);
          if (i + 3 < outCount) addEight(to + place(outTable, i + 3), s30, s31);
        }
    }
  }
}

// @ts-ignore: decorator
@inline
function addEight(to: usize, low: v128, high: v128): void {
  v128.store(to, f32x4.add(v128.load(to), low));
  v128.store(to, f32x4.add(v128.load(to, 16), high), 16);
}

/**
 * Add the inner products of planes to the weights of each pair. The sums of four planes with two others stay in registers. `packed` holds the
 * source planes of one picture in groups of four: four columns of the first plane, the same columns of the second, ...
 */
export function addInnerProducts(
  weight: usize,
  source: usize, table: usize, count: i32, pitch: i32, size: i32,
  other: usize, otherTable: usize, otherCount: i32, otherPitch: i32, otherSize: i32,
  batch: i32, rows: i32, columns: i32, packed: usize,
): void {
  for (; batch; batch--, source = at(source, size), other = at(other, otherSize)) {
    let x = packed;
    for (let i = 0; i < count; i += 4)
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column += 4)
          for (let r = 0; r < 4; r++, x += 16) v128.store(x, v128.load(at(source, row * pitch + column) + place(table, i + r)));
    for (let k = 0; k < otherCount; k += 2) {
      x = packed;
      for (let i = 0; i < count; i += 4) {
        let line0 = other + place(otherTable, k);
        let line1 = other + place(otherTable, k + 1);
        let s00 = f32x4.splat(0);
        let s01 = s00;
        let s10 = s00;
        let s11 = s00;
        let s20 = s00;
        let s21 = s00;
        let s30 = s00;
        let s31 = s00;
        for (let row = 0; row < rows; row++, line0 = at(line0, otherPitch), line1 = at(line1, otherPitch)) {
          let b0 = line0;
          let b1 = line1;
          for (const end = x + (<usize>columns << 4); x < end; x += 64, b0 += 16, b1 += 16) {
            const y0 = v128.load(b0);
            const y1 = v128.load(b1);
            let w = v128.load(x);
            s00 = multiplyAdd(s00, w, y0);
            s01 = multiplyAdd(s01, w, y1);
            w = v128.load(x, 16);
            s10 = multiplyAdd(s10, w, y0);
            s11 = multiplyAdd(s11, w, y1);
            w = v128.load(x, 32);
            s20 = multiplyAdd(s20, w, y0);
            s21 = multiplyAdd(s21, w, y1);
            w = v128.load(x, 48);
            s30 = multiplyAdd(s30, w, y0);
            s31 = multiplyAdd(s31, w, y1);
          }
        }
        addFour(weight + weights(otherTable, k), table, i, count, sums(s00, s10, s20, s30));
        if (k + 1 < otherCount) addFour(weight + weights(otherTable, k + 1), table, i, count, sums(s01, s11, s21, s31));
      }
    }
  }
}

/** The sums of four times four numbers. */
// @ts-ignore: decorator
@inline
function sums(a: v128, b: v128, c: v128, d: v128): v128 {
  const left = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
  const right = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<f32>(left, right, 0, 1, 4, 5), v128.shuffle<f32>(left, right, 2, 3, 6, 7));
}

/** Add four numbers to the weights of four planes from plane i on. */
function addFour(to: usize, table: usize, i: i32, count: i32, numbers: v128): void {
  increase(to + weights(table, i), f32x4.extract_lane(numbers, 0));
  if (i + 1 < count) increase(to + weights(table, i + 1), f32x4.extract_lane(numbers, 1));
  if (i + 2 < count) increase(to + weights(table, i + 2), f32x4.extract_lane(numbers, 2));
  if (i + 3 < count) increase(to + weights(table, i + 3), f32x4.extract_lane(numbers, 3));
}

/** Copy planes of rows between two arrays, as ../kernels.js. */
export function copyRows(
  out: usize, outFirst: i32, outPlane: i32, outRow: i32, outColumn: i32,
  source: usize, first: i32, plane: i32, row: i32, column: i32, planes: i32, rows: i32, columns: i32,
): void {
  const together = outColumn == 1 && column == 1;
  for (let p = 0; p < planes; p++)
    for (let r = 0; r < rows; r++) {
      let to = at(out, outFirst + p * outPlane + r * outRow);
      let from = at(source, first + p * plane + r * row);
      let left = columns;
      if (together) for (; left >= 4; left -= 4, to += 16, from += 16) v128.store(to, v128.load(from));
      for (; left; left--, to = at(to, outColumn), from = at(from, column)) store<f32>(to, load<f32>(from));
    }
}
