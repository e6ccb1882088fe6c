// One plot: uPlot gives scales, axes, grid and zoom; what is drawn are tracks of exact points.
//
// A track is { name, colour, dash, draw, points: [{ x, y, text }] }. The same points are what the
// pointer finds and what the arrow keys walk along, so that all that is seen can be read out.

const plots = [];
const KEYS = "Arrow keys: left and right move along, up and down change the line, Home and End " +
  "go to its ends, Escape leaves. Drag to zoom, double-click to undo.";

class Plot {
  // spec: { title, note, name, csv, svg, height, build(colours) } where build gives
  // { tracks, x, y, under?(u, ctx), legend? }, and x and y are { label, log, min, max, tick }.
  constructor(parent, spec) {
    this.spec = spec;
    this.frame = element("div", {
      className: "plot", tabIndex: 0, role: "group", "aria-roledescription": "plot",
      "aria-label": `${spec.title}. ${KEYS}`,
    });
    this.readout = element("output", { className: "readout", "aria-live": "polite" });
    this.legend = element("div", { className: "legend" });
    const bar = element("div", { className: "bar" }, this.readout);
    const drawn = () => picture(spec.title, this.built.legend ?? [], this.u.ctx.canvas, this.c);
    const buttons = [pictureButton(spec.name, drawn)];
    if (spec.svg) buttons.unshift(vectorButton(spec.name, spec.svg));
    if (spec.csv) buttons.unshift(csvButton(spec.name, spec.csv));
    bar.append(element("div", { className: "buttons" }, ...buttons));
    this.figure = element("figure", { id: `plot-${spec.name}` },
      element("figcaption", {}, element("h3", { textContent: spec.title }),
        element("p", { textContent: spec.note ?? "" })),
      this.legend, this.frame, bar);
    parent.append(this.figure);
    this.frame.addEventListener("keydown", (e) => this.key(e));
    this.frame.addEventListener("pointermove", (e) => this.hover(e));
    this.frame.addEventListener("pointerleave", () => this.leave());
    this.at = null;
    plots.push(this);
    this.rebuild();
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  rebuild() {
    this.u?.destroy();
    this.c = colours();
    this.built = this.spec.build(this.c);
    const { x, y, tracks } = this.built;
    const axis = (a, side) => ({
      scale: side, stroke: this.c.faint, label: a.label, labelSize: 20, labelFont: FONT,
      font: FONT, gap: 4, size: a.size ?? (side === "x" ? 30 : 62),
      grid: { stroke: this.c.line, width: 1, show: a.grid !== false },
      ticks: { stroke: this.c.line, width: 1, size: 4, show: a.grid !== false },
      ...(a.splits ? { splits: () => a.splits } : a.log ? { splits: logSplits } : {}),
      values: (u, splits) => (side === "x" ? apart(u, splits, a.tick) : splits.map(a.tick)),
      filter: (u, splits) => splits,
    });
    const scale = (a) => ({ time: false, distr: a.log ? 3 : 1, range: (u, lo, hi) => [lo, hi] });
    const options = {
      ...this.size(), padding: [8, 30, 0, 0], legend: { show: false },
      cursor: { points: { show: false }, drag: { x: true, y: true, uni: 20 } },
      scales: { x: scale(x), y: scale(y) }, axes: [axis(x, "x"), axis(y, "y")],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(u) => this.draw(u)], setScale: [() => this.mark()] },
    };
    this.u = new uPlot(options, [[x.min, x.max], [y.min, y.max]], this.frame);
    this.ring = element("div", { className: "ring", hidden: true });
    this.u.over.append(this.ring);
    this.legend.replaceChildren(...(this.built.legend ?? []).map((l) => legendItem(l)));
    this.at = null;
    const { empty, hint } = this.built;
    this.say(tracks.length === 0 ? empty ?? "Nothing is selected." : hint ?? "");
  }

  size() {
    return { width: Math.max(240, this.frame.clientWidth), height: this.spec.height ?? 320 };
  }

  resize() {
    const { width, height } = this.size();
    if (width !== this.u.width || height !== this.u.height) this.u.setSize({ width, height });
    this.mark();
  }

  draw(u) {
    const ctx = u.ctx;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    this.built.under?.(u, ctx);
    for (const t of this.built.tracks) DRAW[t.draw](u, ctx, t);
    ctx.restore();
  }

  say(text) {
    this.readout.textContent = text;
  }

  point() {
    return this.at && this.built.tracks[this.at.track]?.points[this.at.point];
  }

  // Shows the point under the cursor, in words and as a ring.
  show() {
    const p = this.point();
    if (!p) return;
    const track = this.built.tracks[this.at.track];
    this.say(track.name ? `${track.name}: ${p.text}` : p.text);
    this.mark();
  }

  mark() {
    const p = this.point();
    if (this.ring === undefined || this.u === undefined) return;
    this.ring.hidden = !p;
    if (!p) return;
    this.ring.style.left = `${this.u.valToPos(p.x, "x")}px`;
    this.ring.style.top = `${this.u.valToPos(p.y, "y")}px`;
  }

  leave() {
    this.at = null;
    this.mark();
  }

  key(e) {
    const { tracks } = this.built;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -25, PageDown: 25 };
    if (tracks.length === 0 || e.ctrlKey || e.altKey || e.metaKey) return;
    if (e.key === "Escape") {
      this.leave();
      this.say("");
      return;
    }
    const at = this.at ?? { track: 0, point: -1 };
    const last = (t) => tracks[t].points.length - 1;
    if (e.key in steps) at.point += steps[e.key] * (e.shiftKey ? 10 : 1);
    else if (e.key === "Home") at.point = 0;
    else if (e.key === "End") at.point = last(at.track);
    else if (e.key === "ArrowUp" || e.key === "ArrowDown") {
      const share = at.point / Math.max(1, last(at.track));
      const n = tracks.length;
      at.track = (at.track + (e.key === "ArrowUp" ? n - 1 : 1)) % n;
      at.point = Math.round(share * last(at.track));
    } else return;
    e.preventDefault();
    at.point = Math.min(Math.max(at.point, 0), last(at.track));
    this.at = at;
    this.readout.setAttribute("aria-live", "polite");
    this.show();
  }

  hover(e) {
    const box = this.u.over.getBoundingClientRect();
    const [px, py] = [e.clientX - box.left, e.clientY - box.top];
    let best = 40 * 40;
    let at = null;
    this.built.tracks.forEach((t, track) => t.points.forEach((p, point) => {
      const dx = this.u.valToPos(p.x, "x") - px;
      const dy = this.u.valToPos(p.y, "y") - py;
      if (dx * dx + dy * dy < best) {
        best = dx * dx + dy * dy;
        at = { track, point };
      }
    }));
    // A moving pointer must not make a screen reader talk without end.
    this.readout.setAttribute("aria-live", "off");
    this.at = at;
    if (at) this.show();
    else this.mark();
  }
}

// The labels of an x axis without those that would touch the one before.
function apart(u, splits, tick) {
  let last = -Infinity;
  return splits.map((v) => {
    const text = tick(v);
    const width = 7 * Math.max(...text.split("\n").map((line) => line.length));
    const at = u.valToPos(v, "x");
    if (at - width / 2 < last) return "";
    last = at + width / 2;
    return text;
  });
}

// Ticks of a logarithmic axis, as many as their labels leave room for: 1, 2, 5 in each decade (or
// finer), whole decades, or every so many of them.
function logSplits(u, axis, min, max) {
  const [room, label] = axis === 0 ? [u.bbox.width, 58] : [u.bbox.height, 26];
  const decade = room / uPlot.pxRatio / Math.log10(max / min);
  if (decade > 30 * label) return linearSplits(min, max);
  const steps = decade > 11 * label ? [1, 1.5, 2, 3, 4, 5, 6, 8] : decade > 3.3 * label ? [1, 2, 5]
    : [1];
  const every = Math.max(1, Math.ceil(label / decade));
  const out = [];
  for (let k = Math.floor(Math.log10(min)); k <= Math.log10(max); k += every) {
    for (const m of steps) {
      const v = Number(`${m}e${k}`);
      if (v >= min && v <= max) out.push(v);
    }
  }
  return out;
}

function linearSplits(min, max) {
  const raw = (max - min) / 5;
  const decade = 10 ** Math.floor(Math.log10(raw));
  const step = decade * ([1, 2, 5, 10].find((m) => m * decade >= raw) ?? 10);
  const out = [];
  for (let i = Math.ceil(min / step); i * step <= max; i++) {
    out.push(Number((i * step).toPrecision(12)));
  }
  return out;
}

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";

// The marks of `hollow` as characters, for the legend.
const GLYPHS = { circle: "○", square: "□", diamond: "◇", triangle: "△" };

function legendItem(l) {
  const line = element("i", { className: "swatch" });
  line.style.borderTopColor = l.colour;
  line.style.borderTopStyle = l.dash?.length ? (l.dash[0] > 4 ? "dashed" : "dotted") : "solid";
  const glyph = l.shape ? [element("b", { textContent: GLYPHS[l.shape] })] : [];
  if (glyph.length) glyph[0].style.color = l.colour;
  return element("span", { title: l.title ?? "" }, line, ...glyph, l.name);
}

function stroke(u, ctx, t) {
  ctx.strokeStyle = t.colour;
  ctx.lineWidth = (t.width ?? 1.75) * uPlot.pxRatio;
  ctx.setLineDash((t.dash ?? []).map((d) => d * uPlot.pxRatio));
  ctx.lineJoin = "round";
}

const DRAW = {
  // From point to point.
  line(u, ctx, t) {
    stroke(u, ctx, t);
    ctx.beginPath();
    for (const p of t.points) ctx.lineTo(u.valToPos(p.x, "x", true), u.valToPos(p.y, "y", true));
    ctx.stroke();
    ctx.setLineDash([]);
    DRAW.dots(u, ctx, { ...t, radius: 2.5 });
  },
  // Level between points. The step of a share "at least" is just after its point (`after`), that
  // of a share "no more" at the next one. With `edge` the last level runs on to the edge.
  step(u, ctx, t) {
    stroke(u, ctx, t);
    ctx.beginPath();
    let last = null;
    for (const p of t.points) {
      const [x, y] = [u.valToPos(p.x, "x", true), u.valToPos(p.y, "y", true)];
      if (last !== null) ctx.lineTo(t.after ? last.x : x, t.after ? y : last.y);
      ctx.lineTo(x, y);
      last = { x, y };
    }
    if (t.edge && last !== null) ctx.lineTo(u.bbox.left + u.bbox.width, last.y);
    ctx.stroke();
    ctx.setLineDash([]);
  },
  // Each with its interval, where it has one.
  dots(u, ctx, t) {
    ctx.fillStyle = t.colour;
    for (const p of t.points) {
      if (p.low !== undefined) whisker(u, ctx, t, p);
      ctx.beginPath();
      const [x, y] = [u.valToPos(p.x, "x", true), u.valToPos(p.y, "y", true)];
      ctx.arc(x, y, (t.radius ?? 3) * uPlot.pxRatio, 0, 7);
      ctx.fill();
    }
  },
  // A bar from the bottom of the plot, `half` wide on each side.
  bars(u, ctx, t) {
    ctx.fillStyle = t.colour;
    for (const p of t.points) {
      if (!(p.y > 0)) continue;
      const [a, b] = [p.x - t.half, p.x + t.half].map((x) => u.valToPos(x, "x", true));
      const y = Math.min(u.valToPos(p.y, "y", true), u.bbox.top + u.bbox.height - uPlot.pxRatio);
      ctx.fillRect(a, y, b - a, u.bbox.top + u.bbox.height - y);
    }
  },
  // A bar with its interval.
  column(u, ctx, t) {
    ctx.globalAlpha = 0.45;
    DRAW.bars(u, ctx, t);
    ctx.globalAlpha = 1;
    for (const p of t.points) {
      if (p.low !== undefined) whisker(u, ctx, { ...t, colour: t.edge ?? t.colour }, p);
    }
  },
  // A level that holds for all x.
  level(u, ctx, t) {
    DRAW.path(u, ctx, t);
  },
  path(u, ctx, t) {
    stroke(u, ctx, t);
    ctx.beginPath();
    for (const p of t.points) ctx.lineTo(u.valToPos(p.x, "x", true), u.valToPos(p.y, "y", true));
    ctx.stroke();
    ctx.setLineDash([]);
  },
  // What others have published: hollow marks, joined by dashes unless each stands for itself
  // (`apart`: with a level as wide as its bar; `single`; `upright`: with a line down to the axis).
  hollow(u, ctx, t) {
    if (t.apart) {
      for (const p of t.points) {
        const ends = [{ ...p, x: p.x - t.half }, { ...p, x: p.x + t.half }];
        DRAW.path(u, ctx, { ...t, points: ends });
      }
    } else if (t.upright) {
      for (const p of t.points) {
        DRAW.path(u, ctx, { ...t, points: [p, { ...p, y: u.scales.y.min }] });
      }
    } else if (!t.single) DRAW.path(u, ctx, t);
    for (const p of t.points) {
      mark(ctx, t, u.valToPos(p.x, "x", true), u.valToPos(p.y, "y", true));
    }
  },
  // A pooled figure with its interval as a box that spans its rounds.
  pooled(u, ctx, t) {
    for (const p of t.points) {
      const [a, b] = [p.x - t.half, p.x + t.half].map((x) => u.valToPos(x, "x", true));
      const inside = (v) => Math.min(Math.max(v, u.scales.y.min), u.scales.y.max);
      const low = u.valToPos(inside(p.low ?? p.y), "y", true);
      const high = u.valToPos(inside(p.high ?? p.y), "y", true);
      ctx.globalAlpha = 0.22;
      ctx.fillStyle = t.colour;
      ctx.fillRect(a, high, b - a, Math.max(low - high, uPlot.pxRatio));
      ctx.globalAlpha = 1;
      ctx.fillRect(a, u.valToPos(p.y, "y", true) - uPlot.pxRatio / 2, b - a, uPlot.pxRatio);
    }
  },
};

// A hollow mark: its inside is the page, so that a line behind it does not fill it.
function mark(ctx, t, x, y) {
  const r = 4 * (t.size ?? 1) * uPlot.pxRatio;
  const corners = {
    square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
    triangle: [[0, -1.2], [1.2, 1], [-1.2, 1]],
  }[t.shape];
  ctx.beginPath();
  if (corners) for (const [dx, dy] of corners) ctx.lineTo(x + dx * r, y + dy * r);
  else ctx.arc(x, y, r, 0, 7);
  ctx.closePath();
  ctx.fillStyle = t.inside;
  ctx.fill();
  ctx.strokeStyle = t.colour;
  ctx.lineWidth = 1.5 * uPlot.pxRatio;
  ctx.stroke();
}

// The interval of a point, upright.
function whisker(u, ctx, t, p) {
  const x = u.valToPos(p.x, "x", true);
  const low = u.valToPos(Math.max(p.low, u.scales.y.min / 10), "y", true);
  const high = u.valToPos(Math.min(p.high, u.scales.y.max * 10), "y", true);
  const cap = 4 * uPlot.pxRatio;
  ctx.beginPath();
  for (const y of [low, high]) {
    ctx.moveTo(x - cap, y);
    ctx.lineTo(x + cap, y);
  }
  ctx.moveTo(x, low);
  ctx.lineTo(x, high);
  ctx.strokeStyle = t.colour;
  ctx.lineWidth = uPlot.pxRatio;
  ctx.globalAlpha = t.whisker ?? 1;
  ctx.stroke();
  ctx.globalAlpha = 1;
}
