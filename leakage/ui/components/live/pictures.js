// Contact sheets and tiles: a sheet holds all pictures of a batch in one row; every tile is a canvas in native pixels.

/** Decoded sheets by sequence number, so that showing one is a copy between canvases and never flickers. */
class Sheets {
  constructor(address) {
    Object.assign(this, { address, waiting: new Map(), ready: new Map() });
  }

  fetch(seq) {
    if (!this.waiting.has(seq)) this.waiting.set(seq, loadImage(this.address(seq)).then((image) => { this.ready.set(seq, image); return image; }));
    return this.waiting.get(seq);
  }

  get busy() { return this.waiting.size - this.ready.size; }
}

async function loadImage(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

function columnsFor(count) {
  if (count <= 1) return 1;
  if (count <= 4) return 2;
  if (count <= 9) return 3;
  return count <= 16 ? 4 : Math.min(8, Math.ceil(Math.sqrt(count)));
}

/** Make `count` empty tiles; an unchanged grid is kept as it is, so that nothing jumps when a run follows another. */
function layTiles(grid, count, captions) {
  grid.style.setProperty('--gle-columns', columnsFor(count));
  grid.classList.toggle('gle-single', count === 1);
  grid.classList.toggle('gle-many', count > 9);
  grid.classList.toggle('gle-crowd', count > 36);
  if (grid.childElementCount !== count) {
    grid.replaceChildren(...Array.from({ length: count }, () => {
      const tile = document.createElement('figure'), canvas = document.createElement('canvas'), caption = document.createElement('figcaption');
      tile.className = 'gle-tile gle-empty';
      canvas.width = canvas.height = 32;
      canvas.setAttribute('role', 'img');
      tile.append(canvas, caption);
      return tile;
    }));
  }
  [...grid.children].forEach((tile, place) => captionTile(tile, captions[place] ?? {}));
}

const PAIRS_FROM = 5; // pictures: each private one stands above its guess, so that nobody has to look for its twin

/** Where the pairs of `count` pictures stand: columns and rows on a narrow and on a wide screen, for the style sheet. */
function layPairs(root, count) {
  const scene = root.querySelector('.gle-scene'), columns = { narrow: count > 36 ? 10 : count > 16 ? 6 : 4, wide: count > 36 ? 16 : count > 16 ? 11 : 8 };
  root.classList.toggle('gle-paired', count >= PAIRS_FROM);
  for (const [width, across] of Object.entries(columns)) {
    scene.style.setProperty(`--gle-${width}`, across);
    scene.style.setProperty(`--gle-${width}-rows`, 2 * Math.ceil(count / across));
    for (const grid of scene.querySelectorAll('.gle-tiles')) [...grid.children].forEach((tile, place) => tile.style.setProperty(`--gle-${width}-row`, 2 * Math.floor(place / across)));
  }
}

/** `text` stands under the tile, `mark` is right or wrong (a sign and a colour), `label` is what a screen reader says. */
function captionTile(tile, { text = '', mark = '', label = text, detail = '' }) {
  const [canvas, caption] = tile.children;
  if (caption.dataset.text === text + mark + detail) return;
  caption.dataset.text = text + mark + detail;
  caption.dataset.mark = mark;
  const words = document.createElement('span'), number = document.createElement('small');
  words.textContent = text;
  number.textContent = detail;
  caption.replaceChildren(words, number);
  canvas.setAttribute('aria-label', label);
  tile.title = [label, detail].filter(Boolean).join(', ');
}

function drawSheet(image, grid) {
  const count = grid.childElementCount, width = Math.round(image.naturalWidth / count), height = image.naturalHeight;
  [...grid.children].forEach((tile, place) => {
    const canvas = tile.firstElementChild;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    canvas.getContext('2d').drawImage(image, place * width, 0, width, height, 0, 0, width, height);
    tile.classList.remove('gle-empty');
  });
}
