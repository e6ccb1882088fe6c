// Rounds side by side: each round a dot, the pooled figure with its interval a box behind them.

function rounds(model) {
  const section = document.getElementById("rounds");
  const grid = element("div", { className: "grid" });
  const latency = latencyGroups(model);
  const rate = (metric) => model.record.runs
    .map((run) => ({ run, figure: run.rates.find((r) => r.metric === metric) }))
    .filter((g) => g.figure)
    .map(({ run, figure: { rate: r } }) => ({
      run, name: metric, pooled: r.value, interval: r.interval, rounds: r.rounds, colour: 0,
    }));
  const put = (title, name, note, groups, label, fmt, tick) => {
    if (!groups.some((g) => g.rounds.length > 0)) return;
    section.hidden = false;
    new Plot(grid, {
      title, name, note, height: 330, csv: () => roundRows(model, groups),
      build: (c) => roundsPlot(model, groups, c, label, fmt, tick),
    });
  };
  put("Latency", "rounds-latency", "A dot is a round: its p50, and its p99 where it has enough " +
    "samples. Boxes: all rounds together, with the interval of 95 %.",
    latency, "latency", fmtNs, axisNs);
  put("Bandwidth", "rounds-bandwidth", "A dot is a round. Boxes: all rounds together, with the " +
    "interval of 95 %.", rate("bandwidth"), "MB/s", fmtMBs, (v) => trimmed(significant(v / 1e6)));
  section.append(grid);
}

function latencyGroups(model) {
  const groups = [];
  for (const run of model.record.runs) {
    const metric = model.headline(run);
    const summary = metric && model.summary(run.index, metric);
    if (!summary) continue;
    [[0.5, 0], [0.99, 1]].forEach(([p, colour]) => {
      const at = summary.quantiles.findIndex((q) => q.p === p);
      if (at < 0) return;
      const q = summary.quantiles[at];
      groups.push({
        run, name: `p${p * 100}`, pooled: valueOf(q.value), interval: q.interval, colour,
        rounds: summary.rounds.map((r) => valueOf(r.quantiles[at])),
      });
    });
  }
  return groups;
}

function roundsPlot(model, groups, c, label, fmt, tick) {
  const order = [...new Set(groups.map((g) => g.run.index))];
  const names = [...new Set(groups.map((g) => g.name))];
  const tracks = [];
  const usable = (v) => v > 0 && v < Infinity;
  for (const g of groups) {
    const x = order.indexOf(g.run.index);
    const colour = c.palette[g.colour];
    const who = `${model.label(g.run.index)}, ${g.name}`;
    const width = 0.7 / Math.max(1, g.rounds.length);
    if (usable(g.pooled)) {
      tracks.push({ name: who, draw: "pooled", half: 0.42, colour, points: [{
        x, y: g.pooled, ...bounds(g.interval),
        text: `${fmt(g.pooled)} ${fmtInterval(g.interval, fmt)} over ${g.rounds.length} rounds`,
      }] });
    }
    const points = g.rounds.map((y, i) => ({
      x: x + (i - (g.rounds.length - 1) / 2) * width, y, text: `round ${i}: ${fmt(y)}`,
    })).filter((p) => usable(p.y));
    if (points.length) tracks.push({ name: who, draw: "dots", colour, points });
  }
  const all = tracks.flatMap((t) => t.points.map((p) => p.y));
  const [min, max] = all.length ? [Math.min(...all) * 0.8, Math.max(...all) * 1.25] : [1, 10];
  return {
    tracks, legend: names.length > 1
      ? names.map((name) => ({ name, colour: c.palette[groups.find((g) => g.name === name).colour] }))
      : [],
    x: { min: -0.5, max: order.length - 0.5, splits: order.map((_, i) => i), grid: false,
      size: 56, tick: shortLabels(model, order) },
    y: { label, log: true, min, max, tick },
  };
}

// What tells the runs apart, a line each; where there is no room, the number of the run.
function shortLabels(model, order) {
  const cases = order.map((index) => model.record.runs.find((r) => r.index === index)?.case ?? {});
  const varies = (key) => new Set(cases.map((k) => k[key])).size > 1;
  const keys = ["transport", "wait", "size"].filter((key) => key === "transport" || varies(key));
  const word = (k, key) => (key === "size" ? fmtBytes(k.size) : k[key]);
  return (v) => (order.length > 12 ? `#${order[v]}`
    : keys.map((key) => word(cases[v], key)).join("\n"));
}

function bounds(interval) {
  return interval ? { low: valueOf(interval.low), high: valueOf(interval.high) } : {};
}

function roundRows(model, groups) {
  const rows = [["run", "label", "figure", "round", "value", "low", "high"]];
  for (const g of groups) {
    const put = (round, value, low, high) =>
      rows.push([g.run.index, model.label(g.run.index), g.name, round, value, low, high]);
    const { low, high } = bounds(g.interval);
    put("all", g.pooled, low, high);
    g.rounds.forEach((v, i) => put(i, Number.isNaN(v) ? "" : v));
  }
  return rows;
}
