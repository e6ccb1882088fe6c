// Time x latency: every sample of a run is a count in a cell, the largest of each column a tick.

const PADDING = { left: 66, right: 14, top: 14, bottom: 40 };

function density(model) {
  const section = document.getElementById("density");
  const runs = [...new Set(model.densities.map((d) => d.run))];
  if (runs.length === 0) return;
  section.hidden = false;
  const view = new Density(section, model, runs);
  onTheme(() => view.draw());
}

class Density {
  constructor(section, model, runs) {
    this.model = model;
    this.select = element("select", { id: "density-run" }, ...runs.map((run) =>
      element("option", { value: run, textContent: model.label(run) })));
    this.canvas = element("canvas", {
      tabIndex: 0, role: "group", "aria-roledescription": "plot", className: "density",
      "aria-label": "Latency over time. Left and right move over time, up and down between the " +
        "cells of a column.",
    });
    this.readout = element("output", { className: "readout", "aria-live": "polite" });
    section.append(
      element("label", { className: "metric" }, "Run ", this.select),
      element("figure", { id: "plot-density" },
        element("figcaption", {}, element("p", { textContent:
          "Rounds one after the other, each from its own start. The stronger the colour, the " +
          "more messages (logarithmic); the dots are the largest of each column." })),
        this.canvas,
        element("div", { className: "bar" }, this.readout,
          element("div", { className: "buttons" }, csvButton("density", () => this.rows()),
            vectorButton("density", () => ({ stored: `density-${this.select.value}` }))))),
    );
    this.select.addEventListener("change", () => { this.load(); this.draw(); });
    this.canvas.addEventListener("pointermove", (e) => this.hover(e));
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.load();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // The columns of all rounds in one row, with what is needed to place them.
  load() {
    const run = Number(this.select.value);
    this.rounds = this.model.densities.filter((d) => d.run === run).map(decodeDensity);
    this.columns = this.rounds.flatMap((d, i) => d.columns.map((column, k) => ({
      ...column, round: d.round, first: k === 0 && i > 0, max: d.max[k],
      from: (k * (d.end_ns - d.start_ns)) / d.columns.length,
      to: ((k + 1) * (d.end_ns - d.start_ns)) / d.columns.length,
    })));
    const rows = this.columns.flatMap((c) => c.cells.map((cell) => cell[0]));
    this.top = Math.max(...rows, 1) + 6;
    this.bottom = Math.min(...rows, this.top - 1) - 3;
    this.most = Math.max(1, ...this.columns.flatMap((c) => c.cells.map((cell) => cell[1])));
    this.at = null;
    this.readout.textContent = "Hover or use the arrow keys to read the counts.";
  }

  ns(row) {
    return 10 ** (row / this.model.binsPerDecade);
  }

  place() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const wide = w - PADDING.left - PADDING.right;
    const high = h - PADDING.top - PADDING.bottom;
    return {
      ratio, w, h, wide, high,
      x: (column) => PADDING.left + (column * wide) / this.columns.length,
      y: (row) => PADDING.top + ((this.top - row) * high) / (this.top - this.bottom),
      row: (ns) => Math.log10(ns) * this.model.binsPerDecade,
    };
  }

  draw() {
    const p = this.place();
    if (p.w === 0 || this.columns.length === 0) return;
    this.canvas.width = p.w * p.ratio;
    this.canvas.height = p.h * p.ratio;
    const ctx = this.canvas.getContext("2d");
    ctx.scale(p.ratio, p.ratio);
    const c = colours();
    this.axes(ctx, c, p);
    const shade = (n) => 0.2 + 0.8 * (Math.log1p(n) / Math.log1p(this.most));
    const [r, g, b] = c.dark ? [120, 190, 255] : [0, 70, 140];
    const cellWidth = p.wide / this.columns.length;
    const cellHeight = Math.max(1, p.high / (this.top - this.bottom));
    this.columns.forEach((column, i) => {
      for (const [row, n] of column.cells) {
        ctx.fillStyle = `rgba(${r},${g},${b},${shade(n)})`;
        ctx.fillRect(p.x(i), p.y(row + 1), cellWidth + 0.3, cellHeight + 0.3);
      }
    });
    ctx.fillStyle = c.accent;
    this.columns.forEach((column, i) => {
      const x = p.x(i + 0.5);
      if (column.max > 0) disc(ctx, x, p.y(p.row(column.max)), 1.5);
      if (column.lost > 0) ctx.fillRect(x - 1, PADDING.top - 10, 2, 7);
    });
    this.largest(ctx, c, p);
    this.cursor(ctx, c, p);
  }

  axes(ctx, c, p) {
    ctx.font = FONT;
    ctx.lineWidth = 1;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const decades = (this.top - this.bottom) / this.model.binsPerDecade;
    const steps = decades > 2.5 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
    for (let k = 0; k < 12; k++) {
      for (const m of steps) {
        const y = p.y(p.row(m * 10 ** k));
        if (y < PADDING.top || y > p.h - PADDING.bottom) continue;
        ctx.strokeStyle = c.line;
        ctx.beginPath();
        ctx.moveTo(PADDING.left, y);
        ctx.lineTo(p.w - PADDING.right, y);
        ctx.stroke();
        ctx.fillStyle = c.faint;
        ctx.fillText(axisNs(m * 10 ** k), PADDING.left - 6, y);
      }
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    let first = 0;
    for (const d of this.rounds) {
      const [a, b] = [p.x(first), p.x(first + d.columns.length)];
      first += d.columns.length;
      ctx.strokeStyle = c.edge;
      ctx.strokeRect(Math.round(a) + 0.5, PADDING.top + 0.5, b - a, p.high);
      ctx.fillStyle = c.faint;
      ctx.fillText(`round ${d.round}`, (a + b) / 2, p.h - PADDING.bottom + 6);
      ctx.fillText(axisNs(d.end_ns - d.start_ns), (a + b) / 2, p.h - PADDING.bottom + 20);
    }
    if (this.columns.some((k) => k.lost > 0)) {
      ctx.textAlign = "right";
      ctx.fillText("lost ∞", PADDING.left - 6, PADDING.top - 12);
    }
  }

  largest(ctx, c, p) {
    const max = Math.max(...this.columns.map((k) => k.max));
    const i = this.columns.findIndex((k) => k.max === max);
    if (!(max > 0)) return;
    const [x, y] = [p.x(i + 0.5), p.y(p.row(max))];
    ctx.strokeStyle = c.accent;
    ctx.beginPath();
    ctx.arc(x, y, 4.5, 0, 7);
    ctx.stroke();
    ctx.fillStyle = c.text;
    ctx.textBaseline = "middle";
    ctx.textAlign = x > p.w * 0.7 ? "right" : "left";
    ctx.fillText(`largest ${fmtNs(max)}`, x + (x > p.w * 0.7 ? -9 : 9), y);
  }

  cursor(ctx, c, p) {
    if (this.at === null) return;
    ctx.strokeStyle = c.text;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(p.x(this.at.column + 0.5), PADDING.top);
    ctx.lineTo(p.x(this.at.column + 0.5), p.h - PADDING.bottom);
    ctx.stroke();
    ctx.setLineDash([]);
    if (this.at.row !== null) {
      const y = p.y(this.at.row + 0.5);
      ctx.strokeRect(p.x(this.at.column) - 3, y - 4, p.wide / this.columns.length + 6, 8);
    }
  }

  hover(e) {
    const p = this.place();
    const box = this.canvas.getBoundingClientRect();
    const along = (e.clientX - box.left - PADDING.left) / p.wide;
    const column = Math.floor(along * this.columns.length);
    if (column < 0 || column >= this.columns.length) return;
    const share = (e.clientY - box.top - PADDING.top) / p.high;
    const row = Math.floor(this.top - share * (this.top - this.bottom));
    const cells = this.columns[column].cells.map((cell) => cell[0]);
    const near = cells.filter((r) => Math.abs(r - row) <= 3);
    near.sort((a, b) => Math.abs(a - row) - Math.abs(b - row));
    this.readout.setAttribute("aria-live", "off");
    this.at = { column, row: near[0] ?? null };
    this.show();
  }

  key(e) {
    const at = this.at ?? { column: 0, row: null };
    const last = this.columns.length - 1;
    const cells = () => this.columns[at.column].cells.map((cell) => cell[0]);
    const move = (n) => { at.column = Math.min(Math.max(at.column + n, 0), last); at.row = null; };
    const step = e.shiftKey ? 10 : 1;
    if (e.key === "ArrowLeft") move(-step);
    else if (e.key === "ArrowRight") move(this.at === null ? 0 : step);
    else if (e.key === "Home") move(-last);
    else if (e.key === "End") move(last);
    else if (e.key === "ArrowUp") {
      at.row = cells().find((r) => r > (at.row ?? -1)) ?? cells().at(-1) ?? null;
    } else if (e.key === "ArrowDown") {
      at.row = cells().findLast((r) => r < (at.row ?? Infinity)) ?? cells()[0] ?? null;
    } else return;
    e.preventDefault();
    this.readout.setAttribute("aria-live", "polite");
    this.at = at;
    this.show();
  }

  show() {
    const k = this.columns[this.at.column];
    const n = k.cells.reduce((sum, cell) => sum + cell[1], 0);
    let text = `round ${k.round}, ${fmtNs(k.from)} to ${fmtNs(k.to)}: ${fmtCount(n)} messages, ` +
      `largest ${fmtNs(k.max)}${k.lost ? `, ${fmtCount(k.lost)} lost` : ""}`;
    const cell = k.cells.find((m) => m[0] === this.at.row);
    if (cell) {
      const [low, high] = [cell[0], cell[0] + 1].map((row) => fmtNs(this.ns(row)));
      text += `; ${fmtCount(cell[1])} of ${low} to ${high}`;
    }
    this.readout.textContent = text;
    this.draw();
  }

  rows() {
    const run = Number(this.select.value);
    const rows = [["run", "label", "round", "from_ns", "to_ns", "low_ns", "high_ns", "count"]];
    const label = this.model.label(run);
    for (const k of this.columns) {
      const put = (low, high, n) => rows.push([run, label, k.round, k.from, k.to, low, high, n]);
      for (const [row, n] of k.cells) put(this.ns(row), this.ns(row + 1), n);
      if (k.lost > 0) put(Infinity, Infinity, k.lost);
    }
    return rows;
  }
}

function disc(ctx, x, y, radius) {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 7);
  ctx.fill();
}
