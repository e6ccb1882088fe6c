// What the page knows, and the sections that draw it.

function makeModel() {
  // The page of several records has none of its own.
  const record = document.getElementById("record") ? readJson("record") : { runs: [] };
  const samples = readJson("samples");
  const sections = document.getElementById("plots") ? readJson("plots") : [];
  const curves = samples.curves.map(decodeCurve);
  const byIndex = new Map(record.runs.map((run) => [run.index, run]));
  const summary = (index, metric) =>
    byIndex.get(index)?.figures.find((f) => f.metric === metric)?.summary;
  const order = [
    "response", "one_way", "half_rtt", "rtt", "service", "lateness", "complete", "post",
  ];
  const headline = (run) => order.find((m) => run.figures.some((f) => f.metric === m));
  const drawn = [...new Set(curves.map((k) => k.run))];
  return {
    record, sections, curves, densities: samples.densities, binsPerDecade: samples.bins_per_decade,
    summary, headline,
    label: (index) => byIndex.get(index)?.label ?? `run ${index}`,
    style: runStyles(drawn, byIndex),
  };
}

// Colour for the transport and dashes for the wait, where that tells all runs apart; else colours
// in turn, with other dashes each time they are used up.
function runStyles(drawn, byIndex) {
  const of = (index) => byIndex.get(index)?.case ?? {};
  const transports = [...new Set(drawn.map((i) => of(i).transport))];
  const pairs = new Set(drawn.map((i) => `${of(i).transport} ${of(i).wait}`));
  const byName = pairs.size === drawn.length && transports.length > 1;
  const waits = ["busy", "block", "adaptive"];
  return (index, c) => {
    const at = byName ? transports.indexOf(of(index).transport) : drawn.indexOf(index);
    const n = c.palette.length;
    const dash = byName ? waits.indexOf(of(index).wait) : Math.floor(Math.max(at, 0) / n);
    return { colour: c.palette[Math.max(at, 0) % n], dash: DASHES[Math.max(dash, 0) % 4] };
  };
}

// The main table with the exact values that its cells carry.
function resultRows(model) {
  const rows = [["run", "label", "pattern", "transport", "wait", "size_bytes", "metric", "figure",
    "value", "unit", "low", "high", "count", "effective_n"]];
  for (const run of model.record.runs) {
    const { pattern, transport, wait, size } = run.case;
    const own = [run.index, run.label, pattern, transport, wait, size];
    const put = (...rest) => rows.push([...own, ...rest]);
    for (const { metric, unit, summary: s } of run.figures) {
      for (const q of s.quantiles) {
        const { low, high } = bounds(q.interval);
        const value = q.value === null ? "n too small" : valueOf(q.value);
        put(metric, `p${+(q.p * 100).toFixed(6)}`, value, unit, low, high, s.count, q.effective_n);
      }
      put(metric, "min", valueOf(s.min), unit, "", "", s.count, "");
      put(metric, "max", valueOf(s.max), unit, "", "", s.count, "");
      put(metric, "lost", s.lost, "messages", "", "", s.count, "");
    }
    for (const { metric, unit, rate } of run.rates) {
      const { low, high } = bounds(rate.interval);
      put(metric, "rate", rate.value, unit, low, high, rate.rounds.length, "");
    }
  }
  return rows;
}

function bounds(interval) {
  return interval ? { low: valueOf(interval.low), high: valueOf(interval.high) } : {};
}

// A record that one section cannot draw is no reason to lose the others.
function drawSection(section, draw) {
  try {
    draw();
  } catch (e) {
    console.error(e);
    section.hidden = false;
    const text = `Cannot be drawn: ${e.message}`;
    section.append(element("p", { className: "bad", textContent: text }));
  }
}

function start() {
  startTheme();
  const model = makeModel();
  onTheme(() => plots.forEach((p) => p.rebuild()));
  figures(model);
  for (const draw of [distribution, density]) {
    drawSection(document.getElementById(draw.name), () => draw(model));
  }
  const results = document.querySelector('[data-csv="results"]');
  results?.addEventListener("click", () =>
    save("results.csv", "text/csv", csvText(resultRows(model))));
  document.getElementById("download-record")?.addEventListener("click", () =>
    save("record.json", "application/json", document.getElementById("record").textContent));
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
