// Other hosts' clocks against this one's over the time: the offset with its bound, and the drift.

function clocks(model) {
  const { hosts = [], clocks: all = [] } = model.record;
  const histories = all.map((h) => ({ ...h, name: hosts[h.host]?.name ?? `host ${h.host}` }));
  const section = document.getElementById("clocks");
  if (histories.length === 0 || !section) return;
  const grid = element("div", { className: "grid" });
  section.append(grid);
  new Plot(grid, {
    title: "Offset over time", name: "clock-offset", height: 320,
    note: "Less the straight line from the first to the last: what is left when each clock runs " +
      "at its own rate. Dashed: the truth lies between.",
    csv: () => clockRows(histories),
    build: (c) => offsetPlot(histories, c),
  });
  new Plot(grid, {
    title: "Drift by what was known then", name: "clock-drift", height: 320,
    note: "What the other clock gains. Bars: what it may be wrong by.",
    csv: () => clockRows(histories),
    build: (c) => driftPlot(histories, c),
  });
}

// The offset of a point less the line through the first and the last.
function aboveLine(points) {
  const [a, b] = [points[0], points.at(-1)];
  const rate = (b.offset_ns - a.offset_ns) / Math.max(b.after_s - a.after_s, 1e-9);
  return points.map((p) => p.offset_ns - a.offset_ns - rate * (p.after_s - a.after_s));
}

function offsetPlot(histories, c) {
  const tracks = histories.flatMap((history, i) => {
    const colour = c.palette[i % c.palette.length];
    const { name } = history;
    const left = aboveLine(history.points);
    const track = (draw, of, what) => ({
      name: `${name}${what}`, draw, colour,
      points: history.points.map((p, k) => ({
        x: p.after_s, y: of(left[k], p.bound_ns),
        text: `after ${significant(p.after_s)} s: ${significant(p.offset_ns / 1e3)} us ` +
          `± ${fmtNs(p.bound_ns)}, ${fmtNs(left[k])} off the line`,
      })),
    });
    return [
      track("path", (y) => y, ""),
      { ...track("path", (y, b) => y + b, ", at most"), dash: DASHES[1] },
      { ...track("path", (y, b) => y - b, ", at least"), dash: DASHES[1] },
    ];
  });
  const all = tracks.flatMap((t) => t.points.map((p) => p.y)).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const room = 0.08 * Math.max(high - low, 1);
  return {
    tracks, legend: tracks.filter((_, i) => i % 3 === 0),
    x: clockAxis(histories), y: { label: "offset less its line", min: low - room,
      max: high + room, tick: axisNs },
  };
}

function driftPlot(histories, c) {
  const tracks = histories.map((history, i) => ({
    name: history.name, draw: "line", colour: c.palette[i % c.palette.length],
    points: history.known.map((p) => ({
      x: p.after_s, y: p.drift_ppm, low: p.drift_ppm - p.drift_bound_ppm,
      high: p.drift_ppm + p.drift_bound_ppm,
      text: `after ${significant(p.after_s)} s: ${p.drift_ppm.toFixed(4)} ppm ` +
        `± ${p.drift_bound_ppm.toFixed(4)}`,
    })),
  }));
  const all = tracks.flatMap((t) => t.points.flatMap((p) => [p.low, p.high]));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = 0.08 * Math.max(high - low, 1e-3);
  return {
    tracks, legend: tracks, x: clockAxis(histories),
    y: { label: "drift", min: low - room, max: high + room,
      tick: (v) => `${trimmed(v.toFixed(3))} ppm` },
  };
}

function clockAxis(histories) {
  const last = Math.max(...histories.map((h) => h.points.at(-1).after_s));
  return { label: "after", min: 0, max: last * 1.02, tick: (v) => `${trimmed(v.toFixed(2))} s` };
}

function clockRows(histories) {
  const rows = [["host", "after_s", "offset_ns", "bound_ns", "drift_ppm", "drift_bound_ppm"]];
  for (const { name, points } of histories) {
    for (const p of points) {
      rows.push([name, p.after_s, p.offset_ns, p.bound_ns, p.drift_ppm, p.drift_bound_ppm]);
    }
  }
  return rows;
}
