// The graphs of a study. What was published is hollow and dashed, in the colour of the series that
// it stands beside; ours is solid.

// Histograms: bins of a decade. Counts are read between two kept order statistics, which is right
// within 1 % of the samples on the nearer side of the median.
const HISTOGRAM_BINS = 20;
const REFERENCE_DASHES = [[5, 4], [2, 3], [9, 3, 2, 3], [12, 4]];
const SHAPES = ["circle", "square", "diamond", "triangle"];

function study(model) {
  const told = model.record.plan.study;
  if (!told) return;
  told.graphs.forEach((graph, i) => {
    const place = document.getElementById(`graph-${i}`);
    const build = { cdf: cdfGraph, histogram: histogramGraph, bars: barsGraph }[graph.kind]
      ?? againstGraph;
    const holder = element("div", {});
    place.prepend(holder);
    if (graph.kind === "surface") {
      place.classList.add("wide");
      surfaceGraph(model, told, graph, i, holder);
      return;
    }
    const plot = new Plot(holder, {
      title: graph.title, name: `study-${i}`, note: graphNote(graph), height: 340,
      csv: () => studyRows(model, told, graph), build: (c) => build(model, told, graph, c),
    });
    plot.figure.classList.add("study");
  });
}

// What a graph can stand against, and where a run stands there.
const scheduleRate = (run) => Object.values(run.case.schedule ?? {})[0]?.rate;
const AXES = {
  "against-size": { label: "payload of a message", tick: fmtBytes, of: (run) => run.case.size },
  "against-values": { label: "values of a sample", tick: fmtCount,
    of: (run) => run.case.stream?.values },
  "against-rate": { label: "messages offered per second", tick: axisPerSecond, words: axisRate,
    of: scheduleRate },
  "against-answered": { label: "messages answered per second", tick: axisPerSecond,
    words: axisRate, of: (run) => rateOf(run, "message_rate")?.value },
  "against-clients": { label: "clients", tick: fmtCount, of: (run) => run.case.load?.clients },
};

const LATENCIES = ["rtt", "half_rtt", "one_way", "response", "service", "transfer", "lateness",
  "jitter", "post", "complete", "short"];
const isRate = (metric) => !LATENCIES.includes(metric);

// The formats of a metric, as Scale in src/report/study.rs has them.
function graphScale(graph) {
  const { metric } = graph;
  if (!isRate(metric)) return { fmt: fmtNs, tick: axisNs, label: "" };
  if (metric === "bandwidth" || metric === "ceiling") {
    return { fmt: fmtMBs, tick: (v) => fmtCount(trimmed(significant(v / 1e6))), label: "MB/s" };
  }
  if (metric.endsWith("_rate")) return { fmt: fmtRate, tick: axisRate, label: "" };
  if (metric === "slowdown") {
    const fmt = (v) => `${trimmed(significant(v))}×`;
    return { fmt, tick: fmt, label: "" };
  }
  if (metric === "missed") {
    const fmt = (v) => `${trimmed(significant(100 * v))} %`;
    return { fmt, tick: onAxis(fmt), label: "" };
  }
  if (metric.endsWith("_time") || metric.startsWith("cpu_")) {
    const of = metric.startsWith("cpu_") ? "a message" : "a read";
    return { fmt: (v) => `${fmtNs(v)} ${of}`, tick: axisNs, label: of };
  }
  const of = metric.endsWith("_per_poll") ? "a poll" : "a read";
  return { fmt: (v) => `${significant(v)} ${of}`, tick: (v) => trimmed(significant(v)),
    label: of };
}

const graphQuantile = (graph) => `p${+(graph.quantile * 100).toFixed(6)}`;
const graphMetrics = (graph) => [graph.metric, ...(graph.also ?? [])];
const hasDeciles = (graph) =>
  graph.kind in AXES && graph.spread === "deciles" && !isRate(graph.metric);

function graphNote(graph) {
  const what = isRate(graph.metric) || graph.kind === "cdf" || graph.kind === "histogram"
    ? graphMetrics(graph).join(", ") : `${graphMetrics(graph).join(", ")} ${graphQuantile(graph)}`;
  const bars = hasDeciles(graph) ? " Bars: from p10 to p90 of the messages."
    : graph.kind === "cdf" || graph.kind === "surface" ? ""
      : graph.kind === "histogram" ? " Messages a bin, 20 bins a decade."
        : " Bars: intervals of 95 %.";
  const published = references(graph).length ? " Hollow and dashed: published." : "";
  return `${what}.${bars}${published}`;
}

// What was measured for the sake of others is not drawn.
const prepares = ({ rpc: of }) => Boolean(of && (of.unloaded || of.loads?.length));

// The runs of a series that a graph shows, along its axis or by size.
function seriesRuns(model, told, graph, name) {
  const cases = told.series.find((s) => s.name === name)?.cases ?? [];
  return model.record.runs
    .filter((r) => cases.includes(r.index) && !prepares(r.case))
    .filter((r) => graph.size === null || graph.size === r.case.size)
    .sort((a, b) => (AXES[graph.kind] ? AXES[graph.kind].of(a) - AXES[graph.kind].of(b) : 0) ||
      a.case.size - b.case.size);
}

// The figure of a run: value, interval, spread, count.
function graphFigure(model, graph, metric, run) {
  if (isRate(metric)) {
    const found = rateOf(run, metric);
    return found && { value: found.value, interval: found.interval, ...bounds(found.interval),
      n: found.rounds.length, of: "rounds" };
  }
  const summary = model.summary(run.index, metric);
  const at = (p) => summary?.quantiles.find((q) => q.p === p);
  const q = at(graph.quantile);
  if (!q || q.value === null) return undefined;
  const spread = hasDeciles(graph)
    ? { low: valueOf(at(0.1)?.value), high: valueOf(at(0.9)?.value) } : bounds(q.interval);
  return { value: valueOf(q.value), interval: q.interval, ...spread, n: summary.count, of: "" };
}

const usableFigure = (f) => f && f.value > 0 && f.value < Infinity;
const seriesColour = (graph, name, c) => {
  const at = graph.series.indexOf(name);
  return at < 0 ? c.faint : c.palette[at % c.palette.length];
};
const seriesDash = (graph, name, c) =>
  DASHES[Math.floor(graph.series.indexOf(name) / c.palette.length) % DASHES.length];

// A published median beside another quantile of ours would mislead.
const references = (graph) => graph.references
  .filter((r) => isRate(graph.metric) || (r.quantile ?? 0.5) === graph.quantile);

// How a reference is drawn: the colour of its series, and a shape and dashes of its own among
// those that stand beside the same series.
function referenceStyle(graph, reference, c) {
  const beside = references(graph).filter((r) => r.beside === reference.beside);
  const at = Math.max(0, beside.indexOf(reference));
  return { colour: seriesColour(graph, reference.beside, c), name: reference.name,
    dash: REFERENCE_DASHES[at % 4], shape: SHAPES[at % 4], inside: c.back, width: 1.25,
    title: `${reference.source}. Measured on: ${reference.system}` };
}

function figureText(graph, run, f, fmt) {
  const n = f.of ? `${fmtCount(f.n)} ${f.of}` : `n = ${fmtCount(f.n)}`;
  const spread = hasDeciles(graph) ? `, p10 ${fmt(f.low)}, p90 ${fmt(f.high)}` : "";
  const figure = `${fmt(f.value)} ${fmtInterval(f.interval, fmt)}`;
  const axis = AXES[graph.kind];
  const words = { "against-values": fmtValues, "against-clients": (n) => `${fmtCount(n)} clients` };
  const at = axis ? (words[graph.kind] ?? axis.words ?? axis.tick)(axis.of(run))
    : fmtBytes(run.case.size);
  return `${at}: ${figure}${spread}, ${n}`;
}

const publishedText = (reference, p, fmt) =>
  `${p.size === null ? "all sizes" : fmtBytes(p.size)}: ${fmt(p.value)}, ${reference.source}`;

// An axis range that holds all of these with some room, whatever few there are.
function logRange(values, room) {
  const usable = values.filter((v) => v > 0 && v < Infinity);
  return usable.length ? [Math.min(...usable) / room, Math.max(...usable) * room] : [1, 10];
}

// Our tracks first, then the published ones, in the legend too.
function studyPlot(ours, published, rest) {
  const tracks = [...ours, ...published].filter((t) => t.points.length);
  return { tracks, legend: tracks.filter((t) => t.legend !== false), ...rest,
    hint: "Hover or use the arrow keys to read exact values.",
    empty: "Nothing can be shown: n too small, or not measured." };
}

// The tracks of ours: a colour for each series, dashes for each metric; of one series a colour for
// each metric.
function againstTracks(model, told, graph, c, usable) {
  const axis = AXES[graph.kind];
  const { fmt } = graphScale(graph);
  const metrics = graphMetrics(graph);
  const several = metrics.length > 1;
  return graph.series.flatMap((name) => {
    const curves = curvesOf(graph, seriesRuns(model, told, graph, name));
    const byLine = graph.series.length === 1 && (several || curves.length > 1);
    return curves.flatMap((curve, j) => metrics.map((metric, k) => {
      const number = j * metrics.length + k;
      const words = [byLine ? "" : name, curve.name, several ? metric : ""];
      return {
        name: words.filter((word) => word).join(", "), draw: "line",
        colour: byLine ? c.palette[number % c.palette.length] : seriesColour(graph, name, c),
        dash: byLine ? DASHES[Math.floor(number / c.palette.length) % DASHES.length]
          : number > 0 ? DASHES[number % DASHES.length] : seriesDash(graph, name, c),
        points: curve.runs
          .map((run) => ({ run, f: graphFigure(model, graph, metric, run) }))
          .filter(({ run, f }) => usable(f) && axis.of(run) > 0)
          .map(({ run, f }) => ({ x: axis.of(run), y: f.value, low: f.low, high: f.high,
            text: figureText(graph, run, f, fmt) })),
      };
    }));
  });
}

// The runs of a series as curves: those that differ in nothing but where they stand on the axis. A
// size says nothing beside the number of values that it is made of.
function curvesOf(graph, runs) {
  const others = Object.entries({
    "against-size": (run) => (run.case.stream ? undefined : fmtBytes(run.case.size)),
    "against-values": (run) => run.case.stream && fmtValues(run.case.stream.values),
    "against-rate": (run) => scheduleRate(run) && `${axisRate(scheduleRate(run))}`,
    "against-clients": (run) => run.case.load?.clients && `${run.case.load.clients} clients`,
  }).filter(([kind]) => kind !== graph.kind &&
    !(kind === "against-rate" && graph.kind === "against-answered") &&
    !(kind === "against-size" && graph.kind === "against-values"));
  const differing = others.filter(([, of]) => new Set(runs.map(of)).size > 1);
  const curves = new Map();
  for (const run of runs) {
    const name = differing.map(([, of]) => of(run)).filter((word) => word).join(" ");
    if (!curves.has(name)) curves.set(name, { name, runs: [] });
    curves.get(name).runs.push(run);
  }
  return [...curves.values()];
}

function againstGraph(model, told, graph, c) {
  const axis = AXES[graph.kind];
  const { fmt, tick, label } = graphScale(graph);
  // Shares, costs and counts may be 0, and say more from there.
  const linear = isRate(graph.metric) && graph.kind !== "against-size";
  const usable = linear ? (f) => f && f.value >= 0 && f.value < Infinity : usableFigure;
  const ours = againstTracks(model, told, graph, c, usable);
  const bySize = graph.kind === "against-size";
  const sized = bySize
    ? references(graph).flatMap((r) => r.points.filter((p) => p.size !== null)) : [];
  const at = [...new Set([...ours.flatMap((t) => t.points.map((p) => p.x)),
    ...sized.map((p) => p.size)])].sort((a, b) => a - b);
  const [xmin, xmax] = logRange(at, 1.5);
  const published = references(graph).map((r) => {
    const level = r.points.find((p) => p.size === null);
    const points = level
      ? [xmin, xmax].map((x) => ({ x, y: level.value, text: publishedText(r, level, fmt) }))
      : bySize ? r.points.map((p) => ({ x: p.size, y: p.value, text: publishedText(r, p, fmt) }))
        : [];
    const style = referenceStyle(graph, r, c);
    return level ? { ...style, shape: undefined, draw: "level", points }
      : { ...style, draw: "hollow", points };
  });
  const all = [...ours, ...published].flatMap((t) => t.points.map((p) => p.y));
  const within = linear ? 2 : hasDeciles(graph) ? 10 : 1;
  const ends = ours.flatMap((t) => t.points.flatMap((p) =>
    [Math.min(p.high ?? p.y, within * p.y), Math.max(p.low ?? p.y, p.y / within)]));
  const [ymin, ymax] = linear ? [0, (Math.max(0, ...all, ...ends) || 1) * 1.1]
    : logRange([...all, ...ends], 1.4);
  return studyPlot(ours, published, {
    x: { label: axis.label, log: true, min: xmin, max: xmax, tick: axis.tick,
      ...(graph.kind === "against-answered" ? {} : { splits: at }) },
    y: { label, log: !linear, min: ymin, max: ymax, tick, size: 74 },
  });
}

function barsGraph(model, told, graph, c) {
  const { fmt, tick, label } = graphScale(graph);
  const slots = graph.series.flatMap((name) =>
    seriesRuns(model, told, graph, name).map((run) => ({ name, run })));
  const several = new Set(slots.map((s) => s.run.case.size)).size > 1;
  const half = 0.28;
  const ours = slots.map(({ name, run }, x) => {
    const f = graphFigure(model, graph, graph.metric, run);
    const points = f && f.value >= 0 && f.value < Infinity
      ? [{ x, y: f.value, low: f.low, high: f.high, text: figureText(graph, run, f, fmt) }] : [];
    return { name, draw: "column", half, colour: seriesColour(graph, name, c), edge: c.text, points,
      legend: false };
  });
  const published = references(graph).map((r) => ({
    ...referenceStyle(graph, r, c), draw: "hollow", apart: true, half: half * 1.5,
    points: slots.flatMap(({ name, run }, x) => {
      if (r.beside !== null && r.beside !== name) return [];
      const p = r.points.find((q) => q.size === null || q.size === run.case.size);
      return p ? [{ x, y: p.value, text: publishedText(r, p, fmt) }] : [];
    }),
  }));
  const values = [...ours, ...published].flatMap((t) => t.points.map((p) => p.y));
  const highs = ours.flatMap((t) => t.points.map((p) => Math.min(p.high ?? p.y, 2 * p.y)));
  const most = Math.max(0, ...values, ...highs);
  const name = (s) => (several ? `${s.name} ${fmtBytes(s.run.case.size)}` : s.name);
  return studyPlot(ours, published, {
    x: { min: -0.6, max: Math.max(1, slots.length) - 0.4, splits: slots.map((_, i) => i),
      grid: false, size: 56,
      tick: (v) => (slots.length > 16 ? `#${v}` : slots[v] ? wrapped(name(slots[v])) : "") },
    y: { label, min: 0, max: (most || 1) * 1.12, tick, size: 74 },
  });
}

// A name on at most three lines.
function wrapped(name) {
  const lines = [""];
  for (const word of name.split(" ")) {
    const last = lines.length - 1;
    if (lines[last] === "" || lines[last].length + word.length < 9 || lines.length === 3) {
      lines[last] = `${lines[last]} ${word}`.trim();
    } else lines.push(word);
  }
  return lines.join("\n");
}

// The curves of a graph with the series that each belongs to.
function seriesCurves(model, told, graph) {
  return graph.series.flatMap((name) => seriesRuns(model, told, graph, name).flatMap((run) => {
    const found = model.curves.find((k) => k.run === run.index && k.metric === graph.metric);
    return found ? [{ name, run, curve: found }] : [];
  }));
}

function curveStyle(graph, told, all, { name, run }, c) {
  const same = all.filter((other) => other.name === name);
  const at = same.findIndex((other) => other.run === run);
  return {
    name: same.length > 1 ? `${name} ${fmtBytes(run.case.size)}` : name,
    colour: seriesColour(graph, name, c),
    dash: same.length > 1 ? DASHES[at % DASHES.length] : seriesDash(graph, name, c),
  };
}

// The published figures of messages as long as those whose curves are drawn.
function besideCurves(graph, reference, all) {
  const sizes = all.filter(({ name }) => [null, name].includes(reference.beside))
    .map(({ run }) => run.case.size);
  return reference.points.filter((p) => p.size === null || sizes.includes(p.size));
}

function cdfGraph(model, told, graph, c) {
  const all = seriesCurves(model, told, graph);
  const published = references(graph).map((r) => ({
    ...referenceStyle(graph, r, c), draw: "hollow", single: true,
    points: besideCurves(graph, r, all)
      .map((p) => ({ x: p.value, y: 0.5, text: publishedText(r, p, fmtNs) })),
  }));
  const positive = (v) => v > 0 && v < Infinity;
  const values = [...all.flatMap(({ curve }) => [curve.values.find(positive) ?? 1,
    almostLast(curve)]), ...published.flatMap((t) => t.points.map((p) => p.x))];
  const [min, max] = logRange(values, 1.1);
  const ours = all.map((one) => ({
    ...distributionTrack(model, one.curve, c, false, [min, max]),
    ...curveStyle(graph, told, all, one, c),
  }));
  return studyPlot(ours, published, {
    x: { label: "latency", log: true, min, max, tick: axisNs },
    y: { label: "share no slower", min: 0, max: 1.02, tick: (v) => `${Math.round(v * 100)} %`,
      splits: [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1] },
  });
}

// Samples no larger than a value, as the kept order statistics tell.
function samplesUpTo(curve, value) {
  let [low, high] = [0, curve.values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve.values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  const [before, after] = [curve.values[low - 1], curve.values[low] ?? Infinity];
  const rank = curve.ranks[low - 1];
  if (!(before > 0) || after === Infinity) return rank;
  // Between two that are kept: spread evenly over the logarithm, so that no bin narrower than their
  // distance looks empty beside one that looks full.
  const share = Math.log(value / before) / Math.log(after / before);
  return rank + Math.floor(share * (curve.ranks[low] - 1 - rank));
}

function histogramGraph(model, told, graph, c) {
  const all = seriesCurves(model, told, graph);
  const finite = (v) => v > 0 && v < Infinity;
  const marks = references(graph)
    .flatMap((r) => besideCurves(graph, r, all).map((p) => p.value));
  const ends = all.flatMap(({ curve }) =>
    [curve.values.find(finite) ?? 1, curve.values.findLast(finite) ?? 1]);
  const [min, max] = logRange([...ends, ...marks], 1.1);
  const bin = (v) => Math.floor(Math.log10(v) * HISTOGRAM_BINS);
  const edge = (i) => 10 ** (i / HISTOGRAM_BINS);
  const most = Math.max(10, ...all.map(({ curve }) => curve.count));
  const ours = all.map((one) => {
    const points = [];
    for (let i = bin(min); i <= bin(max) + 1; i++) {
      const n = samplesUpTo(one.curve, edge(i + 1)) - samplesUpTo(one.curve, edge(i));
      points.push({ x: edge(i), y: Math.max(n, 0.5),
        text: `${fmtCount(n)} of ${fmtNs(edge(i))} to ${fmtNs(edge(i + 1))}` });
    }
    return { draw: "step", points, ...curveStyle(graph, told, all, one, c) };
  });
  const published = references(graph).map((r) => ({
    ...referenceStyle(graph, r, c), draw: "hollow", single: true, upright: true,
    points: besideCurves(graph, r, all)
      .map((p) => ({ x: p.value, y: most, text: publishedText(r, p, fmtNs) })),
  }));
  return studyPlot(ours, published, {
    x: { label: "latency", log: true, min, max, tick: axisNs },
    y: { label: "messages", log: true, min: 0.6, max: most * 2, tick: fmtCount, size: 74 },
  });
}

function studyRows(model, told, graph) {
  const rows = [["graph", "series", "run", "size_bytes", "offered_per_s", "values", "clients",
    "metric", "figure", "value", "low", "high", "published", "source"]];
  for (const name of graph.series) {
    for (const run of seriesRuns(model, told, graph, name)) {
      for (const metric of graphMetrics(graph)) {
        const f = graphFigure(model, graph, metric, run) ?? {};
        const { low, high } = bounds(f.interval);
        const figure = isRate(metric) ? "rate" : graphQuantile(graph);
        const own = [graph.title, name, run.index, run.case.size, scheduleRate(run) ?? "",
          run.case.stream?.values ?? "", run.case.load?.clients || "", metric, figure,
          f.value ?? "", low, high];
        rows.push([...own, "", ""]);
        for (const r of metric === graph.metric ? references(graph) : []) {
          const p = r.points.find((q) => q.size === null || q.size === run.case.size);
          if (p && (r.beside === null || r.beside === name)) rows.push([...own, p.value, r.source]);
        }
      }
    }
  }
  return rows;
}
