// Gaps that a spinning loop saw on each measuring CPU, by their length.

function noise(model) {
  const section = document.getElementById("noise");
  const cpus = model.record.noise.filter((n) => n.histogram.length > 0);
  if (cpus.length === 0) return;
  section.hidden = false;
  const lengths = [...new Set(cpus.flatMap((n) => n.histogram.map((b) => b[0])))]
    .sort((a, b) => a - b);
  new Plot(section, {
    title: "Gaps by length", name: "noise", height: 240,
    note: "A tail in this range may be the machine's and not the transport's.",
    csv: () => [["cpu", "length_from_ns", "gaps", "observed_ns"],
      ...cpus.flatMap((n) => n.histogram.map(([from, k]) => [n.cpu, from, k, n.observed_ns]))],
    build: (c) => noisePlot(cpus, lengths, c),
  });
}

function noisePlot(cpus, lengths, c) {
  const width = 0.8 / cpus.length;
  const most = Math.max(1, ...cpus.flatMap((n) => n.histogram.map((b) => b[1])));
  const tracks = cpus.map((n, i) => ({
    name: `CPU ${n.cpu}`, draw: "bars", half: width * 0.46,
    colour: c.palette[i % c.palette.length],
    points: n.histogram.map(([from, k]) => ({
      x: lengths.indexOf(from) + (i - (cpus.length - 1) / 2) * width, y: Math.max(k, 0.5),
      text: `${fmtCount(k)} gaps of ${fmtNs(from)} to ${fmtNs(2 * from)}`,
    })).filter((p) => p.y > 0.5),
  })).filter((t) => t.points.length);
  return {
    tracks, legend: tracks,
    x: { label: "length from", min: -0.5, max: lengths.length - 0.5, grid: false,
      splits: lengths.map((_, i) => i), tick: (v) => axisNs(lengths[v]) },
    y: { label: "gaps", log: true, min: 0.5, max: most * 1.5,
      tick: (v) => (v < 1 ? "" : fmtCount(v)) },
  };
}
