// Two linked curves over the steps of the attack: PSNR above, gradient distance below, one cursor through both.
const REDRAW = 250; // milliseconds between two redraws: Plotly costs tens of milliseconds, the cursor is ours and costs none

const loadPlotly = (base) => (window.__glePlotly ||= new Promise((ready, failed) => {
  const script = document.createElement('script');
  script.src = `${base}/api/plotly.min.js`;
  script.onload = () => (window.Plotly ? ready(window.Plotly) : script.onerror());
  script.onerror = () => { window.__glePlotly = null; failed(new Error('Plotly could not be loaded')); };
  document.head.append(script);
}));

class Curves {
  constructor(host, base, pick) {
    Object.assign(this, { host, base, pick, area: host.querySelector('.gle-curves'), cursor: host.querySelector('.gle-cursor'), drawn: 0 });
    this.dots = { psnr: host.querySelector('.gle-dot-psnr'), loss: host.querySelector('.gle-dot-loss') };
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(host);
    host.addEventListener('pointerdown', (event) => this.scrub(event), true);
    host.addEventListener('pointermove', (event) => event.buttons & 1 && this.scrub(event), true);
  }

  update(record) {
    this.record = record;
    this.timer ??= setTimeout(() => { this.timer = null; this.draw(); }, Math.max(0, this.drawn + REDRAW - performance.now()));
  }

  async draw() {
    let plotly;
    try { plotly = await loadPlotly(this.base); } catch { this.host.classList.add('gle-no-curves'); return; }
    if (this.gone || !this.record) return;
    this.drawn = performance.now();
    this.host.classList.toggle('gle-drawn', this.record.frames.length > 0);
    const { traces, layout } = figure(this.record, themeOf(this.host));
    await plotly.react(this.area, traces, layout, { displayModeBar: false, responsive: false, doubleClick: false, showTips: false });
    this.place(this.frame);
  }

  resize() {
    if (!this.gone && this.area._fullLayout && this.host.clientWidth) Promise.resolve(window.Plotly.Plots.resize(this.area)).then(() => this.place(this.frame), () => {});
  }

  /** Move the cursor to a frame without a redraw: the axes tell where it is. */
  place(frame) {
    this.frame = frame;
    const axes = this.area._fullLayout, shown = Boolean(axes?.xaxis && frame && isNumber(frame.step));
    this.cursor.hidden = !shown;
    const x = shown ? axes.xaxis._offset + axes.xaxis.d2p(frame.step) : 0;
    if (shown) {
      this.cursor.style.transform = `translateX(${x.toFixed(1)}px)`;
      this.cursor.style.top = `${axes.yaxis._offset}px`;
      this.cursor.style.height = `${axes.yaxis2._offset + axes.yaxis2._length - axes.yaxis._offset}px`;
    }
    const dot = (host, axis, value) => {
      host.hidden = !(shown && isNumber(value));
      if (!host.hidden) host.style.transform = `translate(${x.toFixed(1)}px, ${(axis._offset + axis.d2p(value)).toFixed(1)}px)`;
    };
    dot(this.dots.psnr, axes?.yaxis, frame?.scores?.psnr);
    dot(this.dots.loss, axes?.yaxis2, frame?.loss > 0 ? frame.loss : null);
  }

  scrub(event) {
    const axis = this.area._fullLayout?.xaxis;
    if (!axis || event.button > 0) return;
    const x = event.clientX - this.area.getBoundingClientRect().left - axis._offset;
    if (x > -12 && x < axis._length + 12) this.pick(axis.p2d(clamp(x, 0, axis._length)));
  }

  describe() {
    if (this.record) this.host.setAttribute('aria-label', curveWords(this.record));
  }

  destroy() {
    this.gone = true;
    clearTimeout(this.timer);
    this.sizes.disconnect();
    window.Plotly?.purge(this.area);
  }
}

function themeOf(host) {
  const read = (name) => `rgb(${colourOf(host, `--${name}`).join(',')})`;
  return { font: getComputedStyle(host).fontFamily, text: read('gle-text'), soft: read('gle-soft'), line: read('gle-line'), paper: read('st-background-color'), psnr: read('gle-warm'), loss: read('gle-cool'), warm: read('gle-warm-ink'), cool: read('gle-cool-ink') };
}

/** A CSS variable as [red, green, blue]: Plotly knows no color-mix(), but whatever the theme writes, a canvas can paint. */
function colourOf(host, name) {
  const probe = host.appendChild(document.createElement('i')), context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  probe.style.color = `var(${name}, #fff)`;
  context.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

/** Values over steps; where the steps start again (another start of the attack) the line is interrupted. */
function series(frames, read) {
  const x = [], y = [];
  frames.forEach((frame, place) => {
    if (place && frame.step < frames[place - 1].step) { x.push(frame.step); y.push(null); }
    x.push(frame.step);
    y.push(read(frame));
  });
  return { x, y };
}

function range(values, step) { // whole multiples of `step` around all values, so that the axis moves seldom
  const known = values.filter(isNumber);
  if (!known.length) return [0, step];
  return [Math.floor((Math.min(...known) - 0.15 * step) / step) * step, Math.ceil((Math.max(...known) + 0.15 * step) / step) * step];
}

function powers([low, high]) { // ticks in our own type: Plotly sets powers larger than other numbers
  const stride = Math.max(1, Math.ceil((high - low) / 4)), ticks = [];
  for (let power = low; power <= high; power += stride) ticks.push(power);
  return { tickvals: ticks.map((power) => 10 ** power), ticktext: ticks.map((power) => (Math.abs(power) < 3 ? String(Number((10 ** power).toFixed(2))) : `10${superscript(power)}`)) };
}

function figure({ frames, meta, end }, theme) {
  const psnr = series(frames, (frame) => frame.scores.psnr ?? null), loss = series(frames, (frame) => (frame.loss > 0 ? frame.loss : null));
  const grey = meta?.baselines?.grey?.psnr, last = Math.max(1, ...frames.map((frame) => frame.step ?? 0));
  const decades = range(loss.y.filter(isNumber).map(Math.log10), 1), closeness = range([...psnr.y, grey], 5);
  const axis = { gridcolor: theme.line, zeroline: false, fixedrange: true, tickfont: { size: 11, color: theme.soft }, ticks: '', automargin: false };
  const title = (text, y, color) => ({ text, x: 0, xref: 'paper', xanchor: 'left', y, yref: 'paper', yanchor: 'bottom', showarrow: false, font: { size: 12, color } });
  const line = (values, color, extra) => ({ ...values, type: 'scatter', mode: 'lines', line: { color, width: 2 }, connectgaps: false, ...extra });
  return {
    traces: [
      line(psnr, theme.psnr, { hovertemplate: 'step %{x}: PSNR %{y:.1f} dB<extra></extra>' }),
      line(loss, theme.loss, { yaxis: 'y2', hovertemplate: 'step %{x}: %{y:.3g}<extra></extra>' }),
    ],
    layout: {
      uirevision: 'keep', showlegend: false, autosize: true, dragmode: false, hovermode: 'closest', hoverdistance: 12, margin: { l: 40, r: 16, t: 22, b: 38 },
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { family: theme.font, size: 12, color: theme.text },
      hoverlabel: { bgcolor: theme.paper, bordercolor: theme.line, font: { color: theme.text, size: 12, family: theme.font } },
      xaxis: { ...axis, anchor: 'y2', range: [0, end ? last : Math.max(last, meta?.steps ?? 0)], showgrid: false, nticks: 7, ticklabelstandoff: 4, title: { text: 'step of the attack', font: { size: 11, color: theme.soft }, standoff: 6 } },
      yaxis: { ...axis, domain: [0.58, 1], range: closeness, nticks: 5 },
      yaxis2: { ...axis, domain: [0, 0.42], type: 'log', range: decades, ...powers(decades) },
      annotations: [title('closeness to the private pictures (PSNR, dB)', 1.01, theme.warm), title(meta?.loss_name ? `${meta.loss_name} (logarithmic)` : 'gradient distance (logarithmic)', 0.43, theme.cool),
        ...(isNumber(grey) ? [{ text: 'grey picture', x: 1, xref: 'paper', xanchor: 'right', y: grey, yref: 'y', yanchor: 'bottom', showarrow: false, font: { size: 11, color: theme.soft } }] : [])],
      shapes: isNumber(grey) ? [{ type: 'line', xref: 'paper', x0: 0, x1: 1, yref: 'y', y0: grey, y1: grey, line: { color: theme.soft, width: 1.2, dash: 'dash' } }] : [],
    },
  };
}
