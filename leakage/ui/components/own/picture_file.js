// A picture file of the visitor as numbers: upright, its middle square, on white, reduced to a few pixels. The file is read on this device.

const MOST = 150e6; // pixels that a phone can decode
const LEAST = 8; // pixels of a side

/** A file that cannot be used; the message says why, and what to do. */
export class PictureFileError extends Error {}

/**
 * Read a picture file as numbers in [0, 1], (channels, side, side).
 * @param {Blob & { name?: string }} file
 * @param {{ side: number, channels: number }} size
 * @returns {Promise<Float32Array>}
 * @throws {PictureFileError}
 */
export async function readPicture(file, { side, channels }) {
  const address = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = address;
    await loaded(image).catch(() => Promise.reject(new PictureFileError(refusal(file))));
    const { naturalWidth: width, naturalHeight: height } = image;
    if (Math.min(width, height) < LEAST)
      throw new PictureFileError(`The picture has ${width} x ${height} pixels. Choose one with at least ${LEAST} on each side.`);
    if (width * height > MOST)
      throw new PictureFileError(`The picture has ${width} x ${height} pixels, more than this page can read. Choose a smaller one.`);
    await image.decode().catch(() => Promise.reject(new PictureFileError(refusal(file))));
    return numbersOf(reduce(image, width, height, side), channels);
  } finally {
    URL.revokeObjectURL(address);
  }
}

/**
 * Wait until the size of a picture is known; its pixels need not be decoded yet.
 * @param {HTMLImageElement} image
 */
const loaded = (image) =>
  new Promise((ready, failed) => {
    image.addEventListener('load', ready, { once: true });
    image.addEventListener('error', failed, { once: true });
  });

/** @param {Blob & { name?: string }} file */
function refusal(file) {
  if (/heic|heif/i.test(`${file.type} ${file.name ?? ''}`))
    return 'This browser cannot read HEIC pictures. Save the picture as JPEG, or take one with the camera here.';
  return 'This browser cannot read the file as a picture. Choose a JPEG, PNG, WebP or GIF file.';
}

/**
 * The middle square of a picture, on white. Halved again and again, since one large step would skip most of its pixels.
 * @param {CanvasImageSource} image
 * @param {number} width
 * @param {number} height
 * @param {number} side
 * @returns {ImageData}
 */
function reduce(image, width, height, side) {
  let from = image;
  let size = Math.min(width, height);
  let [left, top] = [(width - size) / 2, (height - size) / 2];
  for (;;) {
    const next = Math.max(side, size > 2 * side ? Math.ceil(size / 2) : side);
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = next;
    const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { willReadFrequently: true }));
    brush.imageSmoothingQuality = 'high';
    brush.fillStyle = '#fff';
    brush.fillRect(0, 0, next, next);
    brush.drawImage(from, left, top, size, size, 0, 0, next, next);
    if (next === side) return brush.getImageData(0, 0, side, side);
    [from, size, left, top] = [canvas, next, 0, 0];
  }
}

/**
 * @param {{ data: ArrayLike<number>, width: number, height: number }} image RGBA
 * @param {number} channels 3: colour; 1: the luminance of ITU-R BT.601
 * @returns {Float32Array} (channels, height, width) in [0, 1]
 */
export function numbersOf({ data, width, height }, channels) {
  const area = width * height;
  const out = new Float32Array(channels * area);
  for (let i = 0; i < area; i++) {
    const [red, green, blue] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
    if (channels === 1) out[i] = (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
    else [out[i], out[area + i], out[2 * area + i]] = [red / 255, green / 255, blue / 255];
  }
  return out;
}
