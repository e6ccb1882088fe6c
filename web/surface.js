// A figure over two axes, as crates/figures/src/view/model describes it: a map of colours, and the
// same as a surface in three dimensions. Both axes are logarithmic; so is the figure, where it says
// so. What is wrong with a point stands at it in the colour of what is wrong.

const TURN = Math.PI / 24;
const SURFACE_KEYS = "Arrow keys: left and right move along, up and down across; with Shift they " +
  "turn the view. Dragging the view turns it too.";

class Surface {
  constructor(parent, spec, csv) {
    this.spec = spec;
    this.points = spec.points;
    const sorted = (key) => [...new Set(this.points.map((p) => p[key]))].sort((a, b) => a - b);
    [this.xs, this.ys] = [sorted("x"), sorted("y")];
    [this.x, this.y, this.short] = [spec.x, spec.y, spec.z].map(tickOf);
    this.at = null;
    this.turn = { around: -Math.PI / 5, up: Math.PI / 6 };
    const canvas = (name) => element("canvas", { className: name });
    [this.map, this.view] = [canvas("map"), canvas("view")];
    this.frame = element("div", {
      className: "plot surface", tabIndex: 0, role: "group", "aria-roledescription": "plot",
      "aria-label": `${spec.title}. ${SURFACE_KEYS}`,
    }, this.map, this.view);
    this.readout = element("output", { className: "readout", "aria-live": "polite",
      textContent: "Hover or use the arrow keys to read exact values." });
    parent.append(element("figure", { id: `plot-${spec.id}`, className: "wide" },
      element("figcaption", {}, element("h3", { textContent: spec.title }),
        element("p", { textContent: spec.note })),
      this.frame,
      element("div", { className: "bar" }, this.readout,
        element("div", { className: "buttons" }, csvButton(spec.id, csv),
          vectorButton(spec.id, () => ({ stored: spec.id }))))));
    this.map.addEventListener("pointermove", (e) => this.hover(e));
    this.view.addEventListener("pointermove", (e) => this.drag(e));
    this.view.addEventListener("pointerdown", (e) => this.view.setPointerCapture(e.pointerId));
    this.frame.addEventListener("keydown", (e) => this.key(e));
    plots.push(this);
    new ResizeObserver(() => this.rebuild()).observe(this.frame);
  }

  point(x, y) {
    return this.points.find((p) => p.x === x && p.y === y);
  }

  // 0 to 1 between the least and the greatest figure.
  height(value) {
    const { log } = this.spec.z;
    const scale = log ? Math.log : (v) => v;
    const usable = this.points.map((p) => p.z).filter((v) => v !== null && (v > 0 || !log));
    const [low, high] = [Math.min(...usable), Math.max(...usable)].map(scale);
    if (value === null || (log && value <= 0)) return NaN;
    return high > low ? (scale(value) - low) / (high - low) : 0.5;
  }

  // Between the page's ground and a colour that what is wrong stands out from; the stronger, the
  // larger.
  colour(height, c) {
    return `color-mix(in srgb, ${c.palette[0]} ${Math.round(8 + 57 * height)}%, ${c.back})`;
  }

  rebuild() {
    this.c = colours();
    for (const canvas of [this.map, this.view]) {
      const ratio = devicePixelRatio || 1;
      canvas.width = canvas.clientWidth * ratio;
      canvas.height = canvas.clientHeight * ratio;
      const ctx = canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.font = FONT;
      if (canvas.clientWidth === 0) continue;
      if (canvas === this.map) this.drawMap(ctx, canvas.clientWidth, canvas.clientHeight);
      else this.drawView(ctx, canvas.clientWidth, canvas.clientHeight);
    }
  }

  cell(w, h) {
    const [left, bottom] = [58, 46];
    const wide = (w - left - 8) / this.xs.length;
    const high = (h - bottom - 8) / this.ys.length;
    return { left, wide, high, x: (i) => left + i * wide,
      y: (k) => 8 + (this.ys.length - 1 - k) * high, floor: h - bottom };
  }

  drawMap(ctx, w, h) {
    const { c } = this;
    const g = this.cell(w, h);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    this.xs.forEach((left, i) => this.ys.forEach((up, k) => {
      const p = this.point(left, up);
      const height = p ? this.height(p.z) : NaN;
      ctx.fillStyle = Number.isNaN(height) ? c.back : this.colour(height, c);
      ctx.fillRect(g.x(i), g.y(k), g.wide - 1, g.high - 1);
      const many = Boolean(p?.flag);
      const [x, y] = [g.x(i) + g.wide / 2, g.y(k) + g.high / 2];
      ctx.fillStyle = c.text;
      const shown = p && p.z !== null ? this.short(p.z) : "–";
      if (g.high > 16) ctx.fillText(shown, x, many && g.high > 30 ? y - 7 : y, g.wide - 4);
      if (many) this.mark(ctx, g, i, k, p, y);
      if (p && this.at === p) {
        ctx.strokeStyle = c.text;
        ctx.lineWidth = 2;
        ctx.strokeRect(g.x(i) + 1, g.y(k) + 1, g.wide - 3, g.high - 3);
      }
    }));
    ctx.fillStyle = c.faint;
    this.xs.forEach((one, i) =>
      ctx.fillText(this.x(one), g.x(i) + g.wide / 2, g.floor + 10, g.wide));
    ctx.fillText(this.spec.x.label, g.left + (g.wide * this.xs.length) / 2, g.floor + 30);
    ctx.textAlign = "right";
    this.ys.forEach((one, k) => ctx.fillText(this.y(one), g.left - 6,
      g.y(k) + g.high / 2));
    ctx.save();
    ctx.translate(12, g.floor / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.fillText(this.spec.y.label, 0, 0);
    ctx.restore();
  }

  // What is wrong with a point, framed.
  mark(ctx, g, i, k, p, y) {
    ctx.strokeStyle = ctx.fillStyle = this.c.bad;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(g.x(i) + 1.5, g.y(k) + 1.5, g.wide - 4, g.high - 4);
    if (g.high <= 30) return;
    const text = p.flag;
    const [x, wide] = [g.x(i) + g.wide / 2, Math.min(ctx.measureText(text).width, g.wide - 10)];
    ctx.fillStyle = this.c.back;
    ctx.fillRect(x - wide / 2 - 2, y + 1, wide + 4, 14);
    ctx.fillStyle = this.c.bad;
    ctx.fillText(text, x, y + 8, wide);
  }

  // From the cube of 0 to 1 to the canvas.
  projection(w, h) {
    const place = (all, v) => (all.length > 1
      ? Math.log(v / all[0]) / Math.log(all[all.length - 1] / all[0]) : 0.5);
    const { around, up } = this.turn;
    const scale = Math.min(w / 1.75, h / 1.5);
    return (left, back, height) => {
      const [x, z] = [place(this.xs, left) - 0.5, place(this.ys, back) - 0.5];
      const [a, b] = [x * Math.cos(around) - z * Math.sin(around),
        x * Math.sin(around) + z * Math.cos(around)];
      const y = (height - 0.5) * 0.75;
      return { x: w / 2 + a * scale, depth: b * Math.cos(up) - y * Math.sin(up),
        y: h / 2 - (y * Math.cos(up) + b * Math.sin(up)) * scale };
    };
  }

  drawView(ctx, w, h) {
    const to = this.projection(w, h);
    this.drawFloor(ctx, to);
    const quads = [];
    for (let i = 1; i < this.xs.length; i++) {
      for (let k = 1; k < this.ys.length; k++) {
        const corners = [[i - 1, k - 1], [i, k - 1], [i, k], [i - 1, k]]
          .map(([a, b]) => this.point(this.xs[a], this.ys[b]));
        const heights = corners.map((p) => (p ? this.height(p.z) : NaN));
        if (heights.some(Number.isNaN)) continue;
        const at = corners.map((p, n) => to(p.x, p.y, heights[n]));
        const mean = (all) => all.reduce((a, b) => a + b, 0) / 4;
        quads.push({ at, depth: mean(at.map((p) => p.depth)), height: mean(heights) });
      }
    }
    quads.sort((a, b) => b.depth - a.depth);
    for (const quad of quads) {
      ctx.beginPath();
      for (const p of quad.at) ctx.lineTo(p.x, p.y);
      ctx.closePath();
      ctx.fillStyle = this.colour(quad.height, this.c);
      ctx.fill();
      ctx.strokeStyle = this.c.edge;
      ctx.lineWidth = 1;
      ctx.stroke();
    }
    this.drawPoints(ctx, to);
  }

  // The ground with its names, and the height's ends on the corner that is furthest left.
  drawFloor(ctx, to) {
    const { c, xs, ys } = this;
    const [r0, r1, v0, v1] = [xs[0], xs.at(-1), ys[0], ys.at(-1)];
    const line = (...ends) => {
      ctx.beginPath();
      for (const p of ends) ctx.lineTo(p.x, p.y);
      ctx.stroke();
    };
    ctx.strokeStyle = c.line;
    ctx.lineWidth = 1;
    for (const x of xs) line(to(x, v0, 0), to(x, v1, 0));
    for (const v of ys) line(to(r0, v, 0), to(r1, v, 0));
    const corners = [[r0, v0], [r1, v0], [r1, v1], [r0, v1]];
    const left = corners.reduce((a, b) => (to(...a, 0).x <= to(...b, 0).x ? a : b));
    line(to(...left, 0), to(...left, 1));
    ctx.fillStyle = c.faint;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const usable = this.points.map((p) => p.z).filter((v) => !Number.isNaN(this.height(v)));
    if (usable.length) {
      for (const v of new Set([Math.min(...usable), Math.max(...usable)])) {
        const p = to(...left, this.height(v));
        ctx.fillText(this.short(v), p.x - 5, p.y);
      }
    }
    ctx.textAlign = "center";
    // Names stand at the edges that are nearest.
    const near = (a, b) => (to(...a, 0).depth <= to(...b, 0).depth ? a : b);
    const v = near([r0, v0], [r0, v1])[1];
    const r = near([r0, v0], [r1, v0])[0];
    let last = { x: -Infinity, y: 0 };
    // From the largest, whose place is the corner; those that would touch are left out.
    for (const x of [...xs].reverse()) {
      const p = to(x, v, 0);
      if (Math.abs(p.x - last.x) < 44 && Math.abs(p.y - last.y) < 14) continue;
      ctx.fillText(this.x(x), p.x, p.y + 14);
      last = p;
    }
    for (const one of ys) {
      const p = to(r, one, 0);
      const away = p.x > to(r === r0 ? r1 : r0, one, 0).x ? 1 : -1;
      ctx.fillText(this.y(one), p.x + 16 * away, p.y + 2);
    }
    const middle = to(r, Math.sqrt(v0 * v1), 0);
    const away = middle.x > to(r === r0 ? r1 : r0, Math.sqrt(v0 * v1), 0).x ? 1 : -1;
    ctx.textAlign = away > 0 ? "left" : "right";
    ctx.fillText(this.spec.y.label, middle.x + 34 * away, middle.y + 18);
  }

  drawPoints(ctx, to) {
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    for (const p of this.points) {
      const height = this.height(p.z);
      if (Number.isNaN(height)) continue;
      const many = p.flag !== undefined;
      const here = p === this.at;
      const at = to(p.x, p.y, height);
      ctx.fillStyle = many ? this.c.bad : this.c.text;
      disc(ctx, at.x, at.y, here ? 5 : many ? 3 : 1.5);
      if (many) ctx.fillText(p.flag, at.x, at.y - 4);
    }
  }

  choose(point) {
    if (!point) return;
    this.at = point;
    this.readout.textContent = point.text;
    this.rebuild();
  }

  hover(e) {
    const box = this.map.getBoundingClientRect();
    const g = this.cell(this.map.clientWidth, this.map.clientHeight);
    const i = Math.floor((e.clientX - box.left - g.left) / g.wide);
    const k = this.ys.length - 1 - Math.floor((e.clientY - box.top - 8) / g.high);
    this.readout.setAttribute("aria-live", "off");
    this.choose(this.point(this.xs[i], this.ys[k]));
  }

  drag(e) {
    if (!e.buttons) return;
    this.rotate(e.movementX / 120, e.movementY / 120);
  }

  rotate(around, up) {
    this.turn.around += around;
    this.turn.up = Math.min(Math.PI / 2, Math.max(0.05, this.turn.up + up));
    this.rebuild();
  }

  key(e) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
      Home: [-99, -99], End: [99, 99] };
    if (!(e.key in steps) || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    const [i, k] = steps[e.key];
    if (e.shiftKey) {
      this.rotate(i * TURN, k * TURN);
      return;
    }
    // The first arrow shows the first point; Home and End go to the corners from anywhere.
    const next = (all, now, step) => {
      const to = now === undefined ? Math.sign(step) * (Math.abs(step) - 1)
        : all.indexOf(now) + step;
      return all[Math.min(all.length - 1, Math.max(0, to))];
    };
    this.readout.setAttribute("aria-live", "polite");
    this.choose(this.point(next(this.xs, this.at?.x, i),
      next(this.ys, this.at?.y, k)));
  }
}
