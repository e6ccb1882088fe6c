// Curves over load: how the answers of a server slow down as more is asked of it. Which runs are of
// which curve, and where it bends, is written into the section by src/report/html/load.rs.

const LOAD_QUANTILES = [[0.5, "p50"], [0.99, "p99"], [0.999, "p99.9"]];

function load(model) {
  const section = document.getElementById("load");
  if (!section) return;
  const curves = JSON.parse(section.dataset.curves);
  const grid = element("div", { className: "grid" });
  section.append(grid);
  const slo = model.record.plan.search?.slo ?? null;
  const bound = slo ? ` The level is the bound ${sloName(slo)}.` : "";
  const note = "p50 solid, p99 dashed, p99.9 dotted; bars: intervals of 95 %. " +
    `The diamond is the knee: the rate over the median response is highest there.${bound}`;
  const put = (title, name, more, x, label) => new Plot(grid, {
    title, name, note: `${note}${more}`, height: 360, csv: () => loadRows(model, curves),
    build: (c) => loadPlot(model, curves, slo, x, label, c),
  });
  put("Response against what was offered", "load-offered", "", "offered_rate", "offered");
  const closed = curves.some((k) => k.closed.length);
  put("Response against what was answered", "load-answered", closed
    ? " Hollow: closed loops, whose round trips wait for no schedule." : "",
  "message_rate", "answered");
}

const sloName = (slo) => `p${+(slo.quantile * 100).toFixed(6)} < ${axisNs(slo.below)}`;
const rateOf = (run, metric) => run.rates.find((r) => r.metric === metric)?.rate;
const usableLoad = (p) => p.x > 0 && p.y > 0 && p.y < Infinity;

function loadPlot(model, curves, slo, metric, label, c) {
  const run = (index) => model.record.runs.find((r) => r.index === index);
  const tracks = [];
  curves.forEach((curve, at) => {
    const colour = c.palette[at % c.palette.length];
    LOAD_QUANTILES.forEach(([p, name], k) => tracks.push({
      name: `${curve.name} ${name}`, draw: "line", colour, dash: DASHES[k], whisker: 0.35,
      points: curve.open.map((i) => loadPoint(model, run(i), metric, "response", p))
        .filter(usableLoad).sort((a, b) => a.offered - b.offered),
    }));
    const bend = curve.knee === null ? null
      : loadPoint(model, run(curve.knee), metric, "response", 0.5);
    tracks.push({ name: `${curve.name} knee`, draw: "hollow", single: true, shape: "diamond",
      colour, inside: c.back, size: 1.6, points: [bend].filter((b) => b && usableLoad(b)) });
    if (metric === "message_rate") {
      tracks.push(...loadClosed(model, curve, run, colour, c));
    }
  });
  return loadFrame(tracks.filter((t) => t.points.length), curves, run, slo, metric, label, c);
}

// Closed loops have no schedule: what they show is a round trip at the rate that it allows.
const loadClosed = (model, curve, run, colour, c) =>
  [[0.5, "p50", "circle"], [0.99, "p99", "square"]].map(([p, name, shape]) => ({
    name: `${curve.name} closed loop, rtt ${name}`, draw: "hollow", single: true, shape, colour,
    inside: c.back,
    points: curve.closed.map((i) => loadPoint(model, run(i), "message_rate", "rtt", p))
      .filter(usableLoad),
  }));

function loadPoint(model, run, metric, latency, p) {
  const summary = model.summary(run.index, latency);
  const q = summary?.quantiles.find((one) => one.p === p);
  const offered = rateOf(run, "offered_rate")?.value;
  const rates = [["offered", "offered_rate"], ["sent", "achieved_rate"],
    ["answered", "message_rate"]]
    .flatMap(([word, name]) => {
      const rate = rateOf(run, name);
      return rate ? [`${word} ${fmtRate(rate.value)}`] : [];
    });
  const clients = run.case.load?.clients;
  const bound = run.warnings.some((d) => d.kind === "generator_bound")
    ? ", the generator was the limit" : "";
  const value = q && q.value !== null ? valueOf(q.value) : NaN;
  return {
    x: rateOf(run, metric)?.value ?? NaN, y: value, offered, run: run.index,
    ...bounds(q?.interval ?? null),
    text: `${latency} ${fmtNs(value)} ${fmtInterval(q?.interval ?? null, fmtNs)}, ` +
      `${clients ? `${clients} clients, ` : ""}${rates.join(", ")}, ` +
      `n = ${fmtCount(summary?.count ?? 0)}${bound}`,
  };
}

// Axes that hold all points, the bound as a level, and where it is kept up to.
function loadFrame(tracks, curves, run, slo, metric, label, c) {
  const points = tracks.flatMap((t) => t.points);
  const [xmin, xmax] = logRange(points.map((p) => p.x), 1.15);
  const ys = [...points.map((p) => p.y), ...(slo ? [slo.below] : [])];
  const [ymin, ymax] = logRange(ys, 1.5);
  const levels = slo ? [{ name: sloName(slo), draw: "level", colour: c.text, dash: [9, 3, 2, 3],
    width: 1.25, points: [xmin, xmax].map((x) => ({ x, y: slo.below,
      text: `the bound ${sloName(slo)}` })) }] : [];
  curves.forEach((curve, at) => {
    const x = curve.highest === null ? NaN : rateOf(run(curve.highest), metric)?.value;
    if (!slo || !(x > 0)) return;
    levels.push({ name: `${curve.name} within the bound up to`, draw: "level", legend: false,
      colour: c.palette[at % c.palette.length], dash: [2, 3], width: 1.25,
      points: [ymin, slo.below].map((y) => ({ x, y,
        text: `${sloName(slo)} is kept up to ${fmtRate(x)} ${label}` })) });
  });
  const all = [...tracks, ...levels];
  return {
    tracks: all, legend: all.filter((t) => t.legend !== false),
    x: { label: `requests ${label} per second`, log: true, min: xmin, max: xmax,
      tick: axisPerSecond },
    y: { label: "latency", log: true, min: ymin, max: ymax, tick: axisNs, size: 74 },
    hint: "Hover or use the arrow keys to read exact values.",
    empty: "Nothing can be shown: n too small, or not measured.",
  };
}

function loadRows(model, curves) {
  const rows = [["curve", "run", "loop", "clients", "offered_per_s", "sent_per_s",
    "answered_per_s", "metric", "figure", "value_ns", "low_ns", "high_ns", "count"]];
  const value = (run, name) => rateOf(run, name)?.value ?? "";
  for (const curve of curves) {
    for (const [loop, metric] of [["open", "response"], ["closed", "rtt"]]) {
      for (const index of curve[loop]) {
        const run = model.record.runs.find((r) => r.index === index);
        const summary = model.summary(index, metric);
        for (const [p, name] of LOAD_QUANTILES) {
          const q = summary?.quantiles.find((one) => one.p === p);
          const { low, high } = bounds(q?.interval ?? null);
          rows.push([curve.name, index, loop, run.case.load.clients || "",
            value(run, "offered_rate"), value(run, "achieved_rate"), value(run, "message_rate"),
            metric, name, q && q.value !== null ? valueOf(q.value) : "n too small", low, high,
            summary?.count ?? 0]);
        }
      }
    }
  }
  return rows;
}
