// Requests of many lengths: how much the load slows each length down, how long each takes, and the
// tail of the short ones. The axis of lengths is linear in the number of messages.

const RPC_TICKS = 10;

function rpc(model) {
  const section = document.getElementById("rpc");
  const runs = model.record.runs.filter((r) => r.case.rpc && r.lengths);
  if (!section) return;
  const grid = element("div", { className: "grid" });
  const put = (title, name, note, build) => {
    new Plot(grid, { title, name, note, height: 340, csv: () => rpcRows(runs), build });
  };
  // The axis of lengths is that of a workload: each has its own plots.
  const key = (r) => JSON.stringify(r.case.rpc.workload.steps);
  const workloads = [...new Set(runs.map(key))].map((own) => runs.filter((r) => key(r) === own));
  workloads.forEach((own, at) => {
    const of = workloads.length > 1 ? `, ${own[0].case.rpc.workload.name}` : "";
    rpcPlots(model, own, (title, name, note, build) => {
      put(title + of, at ? `${name}-${at + 1}` : name, note, build);
    });
  });
  const short = runs.filter((r) => r.lengths.short?.tail.length > 1);
  if (short.length) {
    const longest = Math.max(...short.map((r) => r.lengths.short.longest));
    put("Short requests: the fraction that took longer", "rpc-short",
      `The shortest tenth of all requests, up to ${fmtBytes(longest)}. Lost ones took longer ` +
      "than all. Both axes are logarithmic.", (c) => tailPlot(model, short, c));
  }
  section.prepend(grid);
  section.prepend(document.getElementById("h-rpc"));
}

const HELD = { unloaded_p50: "the median of unloaded requests of its length",
  unloaded_min: "the shortest of unloaded requests of its length",
  serialisation: "the shortest unloaded request and both messages on the link" };

// The plots of one workload, which all these runs have.
function rpcPlots(model, runs, put) {
  const loaded = runs.filter((r) => !r.case.rpc.unloaded);
  const some = loaded.find((r) => r.lengths.sizes.length > 1);
  if (!some) return;
  const base = (of, run) => {
    const by = run.case.rpc.slowdown;
    return of.unloaded[`${by.startsWith("unloaded_") ? by.slice("unloaded_".length) : by}_ns`];
  };
  if (loaded.some((r) => r.lengths.sizes.some((of) => base(of, r) > 0))) {
    const held = [...new Set(loaded.map((r) => HELD[r.case.rpc.slowdown]))].join(", or ");
    put("Slowdown against message size", "rpc-slowdown",
      `A request's time over ${held}. p50 solid, p99 dashed.`,
      (c) => rpcPlot(model, loaded, c,
        (of, ns, run) => (base(of, run) > 0 ? ns / base(of, run) : NaN),
        "slowdown", (v) => `${significant(v)}×`));
  }
  put("Time against message size", "rpc-time",
    `${some.lengths.metric === "rtt" ? "Round trips" : "Responses"}. p50 solid, p99 dashed.`,
    (c) => rpcPlot(model, runs, c, (of, ns) => ns, some.lengths.metric, fmtNs));
}

const rpcStyle = (model, runs, run, c) => {
  const at = runs.indexOf(run);
  return { colour: c.palette[at % c.palette.length], name: model.label(run.index) };
};

// A step for each length, as wide as its share of the requests.
function rpcPlot(model, runs, c, of, label, fmt) {
  const tracks = runs.flatMap((run) => [[0.5, "p50", []], [0.99, "p99", DASHES[1]]].map(
    ([p, name, dash]) => {
      const style = rpcStyle(model, runs, run, c);
      const shares = new Map(run.case.rpc.workload.steps);
      let before = 0;
      const points = run.lengths.sizes.flatMap((one) => {
        // By the workload, for unloaded requests too, of which each length is as frequent.
        const [from, to] = [before, shares.get(one.size) ?? one.share];
        before = to;
        const q = one.summary.quantiles.find((k) => k.p === p);
        const y = q?.value === null || q === undefined ? NaN : of(one, valueOf(q.value), run);
        if (!(y > 0 && y < Infinity)) return [];
        const text = `${fmtBytes(one.size)}: ${name} ${fmt(y)}, n = ` +
          `${fmtCount(one.summary.count)}${one.summary.lost ? `, ${one.summary.lost} lost` : ""}`;
        return [{ x: from, y, text }, { x: to, y, text }];
      });
      return { ...style, name: `${style.name} ${name}`, draw: "path", dash, points };
    })).filter((t) => t.points.length);
  const ys = tracks.flatMap((t) => t.points.map((p) => p.y));
  const [ymin, ymax] = logRange(ys, 1.3);
  const { steps } = runs[0].case.rpc.workload;
  return {
    tracks, legend: tracks,
    x: { label: "message size, by the fraction of messages that are no longer", min: 0, max: 1,
      splits: Array.from({ length: RPC_TICKS + 1 }, (_, i) => i / RPC_TICKS),
      tick: (share) => sizeAt(steps, share) },
    y: { label, log: true, min: ymin, max: ymax, tick: fmt, size: 74 },
    empty: "Nothing can be shown: n too small.",
  };
}

// The length that so many requests do not exceed.
function sizeAt(steps, share) {
  const [size] = steps.find(([, upTo]) => upTo >= share - 1e-9) ?? steps.at(-1);
  return fmtBytes(size);
}

function tailPlot(model, runs, c) {
  const tracks = runs.map((run) => {
    const { tail } = run.lengths.short;
    const { count } = model.summary(run.index, "short");
    return {
      ...rpcStyle(model, runs, run, c), draw: "path",
      points: tail.filter(([, above]) => above > 0).map(([ns, above]) => ({
        x: ns, y: above,
        text: `${significant(100 * above)} % took longer than ${fmtNs(ns)}, n = ` +
          fmtCount(count),
      })),
    };
  }).filter((t) => t.points.length);
  const [xmin, xmax] = logRange(tracks.flatMap((t) => t.points.map((p) => p.x)), 1.2);
  const [ymin] = logRange(tracks.flatMap((t) => t.points.map((p) => p.y)), 1.5);
  return {
    tracks, legend: tracks,
    x: { label: "time", log: true, min: xmin, max: xmax, tick: axisNs },
    y: { label: "took longer", log: true, min: ymin, max: 1, tick: (v) => `${significant(v)}` },
  };
}

function rpcRows(runs) {
  const rows = [["run", "label", "size_bytes", "reply_bytes", "share", "figure", "value_ns", "low",
    "high", "count", "lost", "unloaded_p50_ns", "unloaded_min_ns", "serialisation_ns"]];
  for (const run of runs) {
    for (const { size, reply, share, summary, unloaded: u } of run.lengths.sizes) {
      for (const q of summary.quantiles) {
        const { low, high } = bounds(q.interval);
        rows.push([run.index, run.label, size, reply, share, `p${+(q.p * 100).toFixed(6)}`,
          q.value === null ? "n too small" : valueOf(q.value), low, high, summary.count,
          summary.lost, u.p50_ns, u.min_ns, u.serialisation_ns]);
      }
    }
  }
  return rows;
}
