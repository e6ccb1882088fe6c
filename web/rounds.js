// Rounds side by side: each round a dot, the pooled figure with its interval a box behind them. In
// per cent of the pooled figure, so that 1 % is as visible at 100 ns as at 100 us.

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
  const put = (title, name, note, groups, fmt) => {
    if (!groups.some((g) => g.rounds.length > 0)) return;
    section.hidden = false;
    new Plot(grid, {
      title, name, note, height: 330, csv: () => roundRows(model, groups),
      build: (c) => roundsPlot(model, groups, c, fmt),
    });
  };
  put("Latency", "rounds-latency", "Each dot is a round: its p50, and its p99 where it has " +
    "enough samples. Boxes: the 95 % interval of all rounds together.", latency, fmtNs);
  put("Bandwidth", "rounds-bandwidth", "Each dot is a round. Boxes: the 95 % interval of all " +
    "rounds together.", rate("bandwidth"), fmtMBs);
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

function roundsPlot(model, groups, c, fmt) {
  const order = [...new Set(groups.map((g) => g.run.index))];
  const names = [...new Set(groups.map((g) => g.name))];
  const slot = 0.84 / names.length;
  const tracks = groups.flatMap((g) => {
    const aside = names.indexOf(g.name) - (names.length - 1) / 2;
    const middle = order.indexOf(g.run.index) + aside * slot;
    return roundTracks(model, g, middle, slot, c.palette[g.colour], fmt);
  });
  const all = tracks.flatMap((t) => t.points.flatMap((p) => [p.y, p.low, p.high]))
    .filter(Number.isFinite);
  const reach = Math.max(1, ...all.map(Math.abs)) * 1.15;
  return {
    tracks, legend: names.length > 1
      ? names.map((name) => groups.find((g) => g.name === name))
        .map((g) => ({ name: g.name, colour: c.palette[g.colour] }))
      : [],
    x: { min: -0.5, max: order.length - 0.5, splits: order.map((_, i) => i), grid: false,
      size: 56, tick: shortLabels(model, order) },
    y: { label: "difference to all rounds together", min: -reach, max: reach,
      tick: (v) => `${v > 0 ? "+" : ""}${trimmed(v.toFixed(2))} %` },
  };
}

function roundTracks(model, g, middle, slot, colour, fmt) {
  const usable = (v) => v > 0 && v < Infinity;
  if (!usable(g.pooled)) return [];
  const part = (v) => 100 * (v / g.pooled - 1);
  const name = `${model.label(g.run.index)}, ${g.name}`;
  const { low, high } = bounds(g.interval);
  const pooled = {
    x: middle, y: 0, low: part(low ?? g.pooled), high: part(high ?? g.pooled),
    text: `${fmt(g.pooled)} ${fmtInterval(g.interval, fmt)} over ${g.rounds.length} rounds`,
  };
  const step = (slot * 0.8) / Math.max(1, g.rounds.length);
  const points = g.rounds.map((v, i) => ({
    x: middle + (i - (g.rounds.length - 1) / 2) * step, y: part(v),
    text: `round ${i}: ${fmt(v)}, ${part(v) > 0 ? "+" : ""}${part(v).toFixed(2)} %`,
  })).filter((p) => Number.isFinite(p.y));
  return [
    { name, draw: "pooled", half: slot * 0.45, colour, points: [pooled] },
    ...(points.length ? [{ name, draw: "dots", colour, points }] : []),
  ];
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
