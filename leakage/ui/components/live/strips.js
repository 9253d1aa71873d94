// The gradient as horizontal strips: 64 cells each, coloured by size with cividis (perceptually uniform, safe for colour-blind eyes).
const CIVIDIS = ['00224e', '123570', '3b496c', '575d6d', '707173', '8a8678', 'a59c74', 'c3b369', 'e1cc55', 'fee838']
  .map((hex) => [0, 2, 4].map((start) => parseInt(hex.slice(start, start + 2), 16)));
const LAYERS_SHOWN = 10, SINGLES_SHOWN = 8;

function shade(level) { // 0..255 -> [r, g, b]
  const place = clamp(level / 255, 0, 1) * (CIVIDIS.length - 1), low = Math.min(Math.floor(place), CIVIDIS.length - 2);
  return CIVIDIS[low].map((value, channel) => value + (CIVIDIS[low + 1][channel] - value) * (place - low));
}

function drawStrip(canvas, levels) {
  canvas.width = Math.max(1, levels.length);
  canvas.height = 1;
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, 1);
  levels.forEach((level, cell) => image.data.set([...shade(level), 255], 4 * cell));
  context.putImageData(image, 0, 0);
}

function element(tag, className, text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function stripRow(layer) {
  const row = element('div', 'gle-layer'), canvas = element('canvas', 'gle-strip');
  drawStrip(canvas, layer.strip ?? []);
  if (layer.name) row.title = `${layer.name}: ${(layer.shape ?? []).join(' × ') || 'a number'}, length ${short(layer.norm)}`;
  row.append(element('span', 'gle-layer-name', layer.name.replace(/\.weight$/, '').replace(/\.bias$/, ' bias')), canvas, element('span', 'gle-layer-norm', layer.name ? short(layer.norm, 2) : ''));
  return row;
}

function drawLayers(host, layers) {
  const rows = layers.map(stripRow), rest = rows.splice(layers.length > LAYERS_SHOWN ? LAYERS_SHOWN - 1 : LAYERS_SHOWN);
  host.replaceChildren(...rows);
  if (!rest.length) return;
  const more = element('details', 'gle-more');
  more.append(element('summary', '', `${rest.length} more layers`), ...rest);
  host.append(more);
}

/** The gradients of the single pictures: thin, dimmed rows with plus signs that lead into the one sum. */
function drawSingles(host, singles) {
  host.replaceChildren(...singles.slice(0, SINGLES_SHOWN).map((levels, place) => {
    const row = element('div', 'gle-single-row'), canvas = element('canvas', 'gle-strip');
    drawStrip(canvas, levels);
    row.append(element('span', '', place ? '+' : ''), canvas);
    return row;
  }));
  if (singles.length > SINGLES_SHOWN) host.append(element('p', 'gle-small', `+ ${singles.length - SINGLES_SHOWN} more`));
}
