// Any plot that crates/figures/src/view/model describes as data: series, marks and axes.

const REFERENCE_DASHES = [[5, 4], [2, 3], [9, 3, 2, 3], [12, 4]];

// What a number of an axis looks like, by the unit of the axis.
const TICKS = {
  none: (v) => trimmed(significant(v)),
  time: axisNs,
  seconds: (v) => `${trimmed(v.toFixed(2))} s`,
  bytes: fmtBytes,
  count: (v) => (v < 1 && v > 0 ? "" : fmtCount(v)),
  bytes_per_second: (v) => fmtCount(trimmed(significant(v / 1e6))),
  messages_per_second: axisRate,
  per_second: axisPerSecond,
  share: (v) => `${trimmed(significant(100 * v))} %`,
  difference: (v) => `${v > 0 ? "+" : ""}${trimmed(v.toFixed(2))} %`,
  times: (v) => `${trimmed(significant(v))}×`,
  ppm: (v) => `${trimmed(v.toFixed(3))} ppm`,
};

// A factor is that of the unit which a reader has chosen.
const tickOf = ({ unit, factor }) =>
  (factor ? (v) => fmtCount(trimmed(significant(v * factor))) : TICKS[unit]);

// How each style of the model is drawn; `published` has dashes of its own.
const STYLES = {
  line: () => ({ draw: "line" }),
  path: () => ({ draw: "path" }),
  steps: () => ({ draw: "step" }),
  dots: () => ({ draw: "dots" }),
  bars: () => ({ draw: "bars" }),
  column: (c) => ({ draw: "column", edge: c.text }),
  box: () => ({ draw: "pooled" }),
  marks: () => ({ draw: "hollow", single: true }),
  peak: () => ({ draw: "hollow", single: true, size: 1.6 }),
  published: () => ({ draw: "hollow", width: 1.25, published: true }),
  published_points: () => ({ draw: "hollow", single: true, width: 1.25, published: true }),
  published_bars: () => ({ draw: "hollow", apart: true, width: 1.25, published: true }),
  published_upright: () =>
    ({ draw: "hollow", single: true, upright: true, width: 1.25, published: true }),
  published_level: () => ({ draw: "level", width: 1.25, published: true }),
};

// Bins of a decade of a histogram.
const HISTOGRAM_BINS = 20;

// The plots of every section that has any.
function figures(model) {
  for (const { id, plots: own, surfaces, data } of model.sections) {
    const holder = document.querySelector(`[data-plots="${CSS.escape(id)}"]`);
    const csv = (one) => () => [data[one.data].head, ...data[one.data].rows];
    drawSection(holder, () => {
      own.forEach((plot) => new Plot(holder, {
        title: plot.title, name: plot.id, note: plot.note, height: plot.height, csv: csv(plot),
        svg: () => ({ stored: plot.id }),
        build: (c) => builtPlot(model, plot, c),
      }));
      surfaces.forEach((one) => new Surface(holder, one, csv(one)));
    });
  }
}

function builtPlot(model, plot, c) {
  const curves = plot.series.map(({ curve }) => curve && model.curves
    .find((k) => k.run === curve.run && k.metric === curve.metric));
  const ends = curves.flatMap((k, i) => (k ? curveEnds(k, plot.series[i].curve.kind) : []));
  const given = plot.series.flatMap((s) => s.points);
  const room = ends.length ? 1.1 : plot.x.ticks ? 1.5 : 1.15;
  const x = axisOf(plot.x, [...given.map((p) => p.x), ...ends], room);
  const levels = plot.marks.filter((m) => m.x === undefined).map((m) => m.y);
  const y = axisOf(plot.y, [...given.map((p) => p.y), ...intervalEnds(given), ...levels], 1.4);
  const whisker = plot.series.length > 4 ? 0.35 : 1;
  const series = plot.series.map((s, i) => ({
    ...seriesTrack(s, c, whisker),
    ...(curves[i] ? curveTrack(curves[i], s.curve.kind, [x.min, x.max]) : {}),
  })).filter((t) => t.points.length);
  const tracks = [...series, ...plot.marks.map((m) => markTrack(m, x, y, c))];
  for (const t of tracks) {
    // What holds for all x is given once.
    if (t.draw === "level" && t.points.length === 1) {
      t.points = [x.min, x.max].map((at) => ({ ...t.points[0], x: at }));
    }
  }
  return {
    tracks, legend: tracks.filter((t) => t.legend), x,
    y: { ...y, size: 74 },
    hint: "Hover or use the arrow keys to read exact values.",
    empty: "Nothing can be shown: n too small, or not measured.",
  };
}

function axisOf(axis, values, room) {
  const [min, max] = axis.range ?? logRange(values, room);
  const named = axis.labels !== undefined;
  return {
    label: axis.label, log: axis.log, min, max, splits: axis.ticks,
    tick: named ? (v) => wrapped(axis.labels[axis.ticks.indexOf(v)] ?? "") : tickOf(axis),
    ...(axis.is_names ? { grid: false, ...(axis.label ? {} : { size: 56 }) } : {}),
  };
}

// A name on at most three lines.
function wrapped(name) {
  if (name.includes("\n")) return name;
  const lines = [""];
  for (const word of name.split(" ")) {
    const last = lines.length - 1;
    if (lines[last] === "" || lines[last].length + word.length < 9 || lines.length === 3) {
      lines[last] = `${lines[last]} ${word}`.trim();
    } else lines.push(word);
  }
  return lines.join("\n");
}

function seriesTrack(s, c, whisker) {
  const style = STYLES[s.style](c);
  const dashes = style.published ? REFERENCE_DASHES : DASHES;
  const n = c.palette.length;
  // Colours that are used up begin again with other dashes.
  const dash = s.dash + (s.dash === 0 ? Math.floor((s.colour ?? 0) / n) : 0);
  return {
    name: s.name, ...style, half: s.half, shape: s.shape, inside: c.back, whisker,
    colour: s.colour === null ? c.faint : c.palette[s.colour % n],
    dash: dashes[dash % dashes.length], title: s.source, legend: !s.hidden,
    // A point that reaches to another x is a level between the two.
    points: s.points.flatMap((p) => (p.to === undefined ? [p] : [p, { ...p, x: p.to }])),
  };
}

function curveEnds(curve, kind) {
  const finite = (v) => v > 0 && v < Infinity;
  const first = curve.values.find(finite) ?? 1;
  return [first, kind === "cdf" ? almostLast(curve) : curve.values.findLast(finite) ?? 1];
}

function curveTrack(curve, kind, [min, max]) {
  if (kind !== "histogram") return distributionPoints(curve, kind === "ccdf", [min, max]);
  const edge = (i) => 10 ** (i / HISTOGRAM_BINS);
  const bin = (v) => Math.floor(Math.log10(v) * HISTOGRAM_BINS);
  const points = [];
  for (let i = bin(min); i <= bin(max) + 1; i++) {
    const n = samplesUpTo(curve, edge(i + 1)) - samplesUpTo(curve, edge(i));
    points.push({ x: edge(i), y: Math.max(n, 0.5),
      text: `${fmtCount(n)} of ${fmtNs(edge(i))} to ${fmtNs(edge(i + 1))}` });
  }
  return { draw: "step", points };
}

// Samples no larger than a value, as the kept order statistics tell: right within 1 % of the
// samples on the nearer side of the median.
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

function markTrack(mark, x, y, c) {
  const own = mark.colour !== undefined;
  return {
    name: mark.name, draw: "level", legend: mark.name !== "", width: 1.25,
    colour: own ? c.palette[mark.colour % c.palette.length] : c.text,
    dash: own ? [2, 3] : [9, 3, 2, 3],
    points: mark.x === undefined
      ? [x.min, x.max].map((at) => ({ x: at, y: mark.y, text: mark.text }))
      : [y.min, mark.y].map((at) => ({ x: mark.x, y: at, text: mark.text })),
  };
}

// How far beyond all values an interval may end and still be whole: farther, it would press all
// values together.
const MAX_REACH = 100;

// The ends of intervals that their axis holds.
function intervalEnds(points) {
  const values = points.map((p) => p.y).filter((y) => y > 0 && y < Infinity);
  const [least, most] = [Math.min(...values) / MAX_REACH, Math.max(...values) * MAX_REACH];
  return points.flatMap((p) => [p.low, p.high]).filter((v) => v >= least && v <= most);
}

// An axis range that holds all of these with some room, however few there are.
function logRange(values, room) {
  const usable = values.filter((v) => v > 0 && v < Infinity);
  return usable.length ? [Math.min(...usable) / room, Math.max(...usable) * room] : [1, 10];
}
