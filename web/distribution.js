// CDF and CCDF of the chosen runs, from exact order statistics.

function distribution(model) {
  const section = document.getElementById("distribution");
  if (section === null || model.curves.length === 0) return;
  section.hidden = false;
  const metrics = [...new Set(model.curves.map((c) => c.metric))];
  const state = { metric: metrics[0], off: new Set() };
  const shown = () => model.curves.filter((c) => c.metric === state.metric);
  shown().slice(8).forEach((c) => state.off.add(c.run));
  const chosen = () => shown().filter((c) => !state.off.has(c.run));
  const both = [];
  const redraw = () => both.forEach((p) => p.rebuild());
  if (metrics.length > 1) section.append(metricChoice(metrics, state, () => { list(); redraw(); }));
  const choice = element("fieldset", { className: "choice" });
  section.append(choice);
  const list = () => runChoice(choice, shown(), state, model, redraw);
  list();
  onTheme(list);
  const grid = element("div", { className: "grid" });
  section.append(grid);
  const csv = () => distributionRows(model, chosen());
  const svg = (kind) => () =>
    ({ stored: `${kind}-${state.metric}`, runs: new Set(chosen().map((c) => c.run)) });
  both.push(
    new Plot(grid, {
      title: "Tail (CCDF)", name: "ccdf", csv, svg: svg("ccdf"), height: 360,
      note: "Share of messages at least this slow. Bars: 95 % intervals of the quantiles. A line " +
        "that is flat up to the edge has lost messages.",
      build: (c) => distributionPlot(model, chosen(), c, true),
    }),
    new Plot(grid, {
      title: "Cumulative (CDF)", name: "cdf", csv, svg: svg("cdf"), height: 360,
      note: "Cumulative share of messages, up to p99.9; the other plot shows the tail.",
      build: (c) => distributionPlot(model, chosen(), c, false),
    }),
  );
}

function metricChoice(metrics, state, changed) {
  const options = metrics.map((m) => element("option", { textContent: m }));
  const select = element("select", {}, ...options);
  select.addEventListener("change", () => { state.metric = select.value; changed(); });
  return element("label", { className: "metric" }, "Metric ", select);
}

function runChoice(choice, curves, state, model, redraw) {
  const c = colours();
  const boxes = curves.map((curve) => {
    const box = element("input", { type: "checkbox", checked: !state.off.has(curve.run) });
    box.dataset.run = curve.run;
    box.addEventListener("change", () => {
      if (box.checked) state.off.delete(curve.run);
      else state.off.add(curve.run);
      redraw();
    });
    const style = model.style(curve.run, c);
    return element("label", {}, box, legendItem({ ...style, name: model.label(curve.run) }));
  });
  const all = element("button", { type: "button", textContent: "all" });
  const none = element("button", { type: "button", textContent: "none" });
  const set = (on) => () => {
    curves.forEach((k) => (on ? state.off.delete(k.run) : state.off.add(k.run)));
    boxes.forEach((b) => { b.firstChild.checked = on; });
    redraw();
  };
  all.addEventListener("click", set(true));
  none.addEventListener("click", set(false));
  choice.replaceChildren(element("legend", { textContent: "Runs" }), ...boxes, all, none);
}

// The shares of a kept rank: at least so slow, and no slower.
const tailShare = (curve, i) => (curve.count - curve.ranks[i] + 1) / curve.count;
const headShare = (curve, i) => curve.ranks[i] / curve.count;

// The largest finite sample up to p99.9.
const almostLast = (curve) => curve.values.findLast((v, i) =>
  v < Infinity && (curve.ranks[i] <= 0.999 * curve.count || i === 0)) ?? 1;

// What is drawn of a curve between two latencies.
function distributionPoints(curve, tail, [lowest, highest]) {
  const points = [];
  for (let i = 0; i < curve.values.length && curve.values[i] <= highest; i++) {
    const share = tail ? tailShare(curve, i) : headShare(curve, i);
    const below = headShare(curve, i);
    points.push({
      x: Math.max(curve.values[i], lowest), y: share,
      get text() {
        const rank = `rank ${fmtCount(curve.ranks[i])} of ${fmtCount(curve.count)}`;
        return `${fmtNs(curve.values[i])} at ${fmtShare(below)} (${rank})`;
      },
    });
  }
  return { draw: "step", points, after: tail, edge: !tail || curve.lost > 0, curve };
}

function distributionPlot(model, curves, c, tail) {
  const positive = (v) => v > 0 && v < Infinity;
  const all = curves.flatMap((k) => [
    k.values.find(positive) ?? 1, k.values.findLast(positive) ?? 1,
  ]);
  const error = model.record.instrument.error_ns;
  const least = Math.min(...all, positive(error) ? error : Infinity);
  // The body would be a few upright lines beside a tail of decades: the CDF ends at p99.9.
  const last = tail ? Math.max(...all) * 1.25 : Math.max(...curves.map(almostLast)) * 1.1;
  const [min, max] = all.length ? [least * 0.85, last] : [1, 1e6];
  const tracks = curves.map((k) => ({
    name: model.label(k.run), ...model.style(k.run, c), ...distributionPoints(k, tail, [min, max]),
  })).filter((t) => t.points.length);
  const most = Math.max(10, ...curves.map((k) => k.count));
  const y = tail
    ? { label: "share at least this slow", log: true, min: 0.7 / most, max: 1.15, size: 74,
        tick: tailTick, splits: tailSplits(most) }
    : { label: "cumulative share", min: 0, max: 1.02, tick: (v) => `${Math.round(v * 100)} %`,
        splits: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1] };
  return {
    tracks, y, x: { label: "latency", log: true, min, max, tick: axisNs },
    under: (u, ctx) => {
      floors(model, u, ctx, c);
      if (tail) tracks.forEach((t) => quantileBars(model, u, ctx, t));
    },
    hint: "Hover or use the arrow keys to read exact values.",
  };
}

function tailSplits(most) {
  const out = [1, 0.5];
  for (let k = 1; 10 ** k <= most * 1.4; k++) out.push(Number(`1e-${k}`));
  return out.reverse();
}

function tailTick(v) {
  const nines = Math.round(-Math.log10(v));
  if (Math.abs(v * 10 ** nines - 1) > 1e-6) return Math.abs(v - 0.5) < 1e-9 ? "p50" : "";
  if (nines <= 0) return "all";
  const p = nines < 2 ? "90" : `99${nines > 2 ? "." : ""}${"9".repeat(nines - 2)}`;
  return nines < 6 ? `p${p}` : `1 in 10${"⁰¹²³⁴⁵⁶⁷⁸⁹"[nines] ?? ""}`;
}

// What the instrument cannot see below, and the longest pause of a CPU that did nothing.
function floors(model, u, ctx, c) {
  const { instrument, noise } = model.record;
  const longest = Math.max(0, ...noise.map((n) => n.longest_ns));
  const edge = u.valToPos(instrument.error_ns, "x", true);
  ctx.fillStyle = c.line;
  ctx.globalAlpha = 0.6;
  ctx.fillRect(u.bbox.left, u.bbox.top, edge - u.bbox.left, u.bbox.height);
  ctx.globalAlpha = 1;
  upright(u, ctx, c, instrument.error_ns, `instrument error ${axisNs(instrument.error_ns)}`);
  if (longest > 0) upright(u, ctx, c, longest, `longest noise gap ${axisNs(longest)}`);
}

function upright(u, ctx, c, ns, text) {
  const x = Math.round(u.valToPos(ns, "x", true));
  if (!Number.isFinite(x)) return;
  ctx.strokeStyle = c.faint;
  ctx.lineWidth = uPlot.pxRatio;
  ctx.setLineDash([3 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
  ctx.beginPath();
  ctx.moveTo(x, u.bbox.top);
  ctx.lineTo(x, u.bbox.top + u.bbox.height);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.save();
  ctx.translate(x - 4 * uPlot.pxRatio, u.bbox.top + 6 * uPlot.pxRatio);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = c.faint;
  ctx.font = FONT.replace("11px", `${11 * uPlot.pxRatio}px`);
  if (x - u.bbox.left < 18 * uPlot.pxRatio) ctx.translate(0, 20 * uPlot.pxRatio);
  ctx.fillText(text, 0, 0);
  ctx.restore();
}

// The intervals of p50, p99, p99.9 and so on, at their shares.
function quantileBars(model, u, ctx, track) {
  const { run, metric } = track.curve;
  const summary = model.summary(run, metric);
  for (const q of summary?.quantiles ?? []) {
    if (q.p < 0.5 || q.interval === null) continue;
    const y = u.valToPos(1 - q.p, "y", true);
    const low = u.valToPos(Math.max(valueOf(q.interval.low), u.scales.x.min / 10), "x", true);
    const high = u.valToPos(Math.min(valueOf(q.interval.high), u.scales.x.max * 10), "x", true);
    const cap = 4 * uPlot.pxRatio;
    ctx.strokeStyle = track.colour;
    ctx.lineWidth = uPlot.pxRatio;
    ctx.beginPath();
    for (const x of [low, high]) {
      ctx.moveTo(x, y - cap);
      ctx.lineTo(x, y + cap);
    }
    ctx.moveTo(low, y);
    ctx.lineTo(high, y);
    ctx.stroke();
  }
}

function distributionRows(model, curves) {
  const rows = [["run", "label", "metric", "count", "lost", "rank", "latency_ns"]];
  for (const k of curves) {
    for (let i = 0; i < k.ranks.length; i++) {
      rows.push([k.run, model.label(k.run), k.metric, k.count, k.lost, k.ranks[i], k.values[i]]);
    }
  }
  return rows;
}
