// Figures against the size of the message, where a record has at least three sizes.

const SWEEP_LEAST = 3;

function sweep(model) {
  const section = document.getElementById("sweep");
  const grid = element("div", { className: "grid" });
  const latency = sweepGroups(model, (run) => {
    const summary = model.headline(run) && model.summary(run.index, model.headline(run));
    return [[0.5, "p50"], [0.99, "p99"]].flatMap(([p, name]) => {
      const q = summary?.quantiles.find((k) => k.p === p);
      return q ? [{ name, value: valueOf(q.value), interval: q.interval, n: summary.count }] : [];
    });
  });
  const rate = (metric) => sweepGroups(model, (run) => run.rates
    .filter((r) => r.metric === metric)
    .map(({ rate: r }) =>
      ({ name: "", value: r.value, interval: r.interval, n: r.rounds.length })));
  const put = (title, name, note, groups, label, fmt, tick) => {
    if (groups.length === 0) return;
    section.hidden = false;
    new Plot(grid, {
      title, name, note, csv: () => sweepRows(groups),
      build: (c) => sweepPlot(groups, c, label, fmt, tick),
    });
  };
  const note = "Bars: intervals of 95 %.";
  put("Latency against size", "sweep-latency", `p50 solid, p99 dashed. ${note}`, latency,
    "latency", fmtNs, axisNs);
  put("Bandwidth against size", "sweep-bandwidth", `MB/s = 10⁶ B/s of payload. ${note}`,
    rate("bandwidth"), "MB/s", fmtMBs, (v) => fmtCount(trimmed(significant(v / 1e6))));
  put("Message rate against size", "sweep-rate", note, rate("message_rate"), "", fmtRate,
    axisRate);
  section.append(grid);
}

// Points by transport, wait and figure, where there are enough sizes.
function sweepGroups(model, figures) {
  const groups = new Map();
  for (const run of model.record.runs) {
    for (const f of figures(run)) {
      const rate = scheduleRate(run);
      const pace = rate ? ` at ${axisRate(rate)}` : "";
      const who = `${run.case.transport} ${run.case.wait}${pace}`;
      const key = `${who} ${f.name}`;
      if (!groups.has(key)) groups.set(key, { who, figure: f.name, points: [] });
      groups.get(key).points.push({ size: run.case.size, run: run.index, ...f });
    }
  }
  const enough = (g) => new Set(g.points.map((p) => p.size)).size >= SWEEP_LEAST;
  return [...groups.values()].filter(enough).map((g) => {
    g.points.sort((a, b) => a.size - b.size);
    return g;
  });
}

function sweepPlot(groups, c, label, fmt, tick) {
  const who = [...new Set(groups.map((g) => g.who))];
  const usable = (p) => p.value > 0 && p.value < Infinity && p.size > 0;
  const tracks = groups.map((g) => ({
    name: `${g.who} ${g.figure}`, draw: "line",
    colour: c.palette[who.indexOf(g.who) % c.palette.length],
    dash: g.figure === "p99" ? DASHES[1] : [],
    points: g.points.filter(usable).map((p) => ({
      x: p.size, y: p.value, ...bounds(p.interval),
      text: `${fmtBytes(p.size)}: ${fmt(p.value)} ${fmtInterval(p.interval, fmt)}, n = ` +
        fmtCount(p.n),
    })),
  })).filter((t) => t.points.length);
  const xs = tracks.flatMap((t) => t.points.map((p) => p.x));
  const ys = tracks.flatMap((t) => t.points.map((p) => p.y));
  const sizes = [...new Set(xs)].sort((a, b) => a - b);
  const range = (v, k) => (v.length ? [Math.min(...v) / k, Math.max(...v) * k] : [1, 10]);
  const [xmin, xmax] = range(xs, 1.5);
  const [ymin, ymax] = range(ys, 1.4);
  return {
    tracks, legend: tracks,
    x: { label: "payload of a message", log: true, min: xmin, max: xmax, tick: fmtBytes,
      splits: sizes },
    y: { label, log: true, min: ymin, max: ymax, tick, size: 74 },
  };
}

function sweepRows(groups) {
  const rows = [["run", "transport_wait", "figure", "size_bytes", "value", "low", "high", "count"]];
  for (const g of groups) {
    for (const p of g.points) {
      const { low, high } = bounds(p.interval);
      rows.push([p.run, g.who, g.figure, p.size, p.value, low, high, p.n]);
    }
  }
  return rows;
}
