// The report as a reader has it: one file, opened from disk in a browser without a network.
//
//   cargo build --release --example sample_report && cd tests/web && npm ci && npm test
//
// CHROMIUM names another browser than /usr/bin/chromium, SAMPLE_REPORT another example binary.

import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
const example = process.env.SAMPLE_REPORT ?? join(root, "target/release/examples/sample_report");
const dir = mkdtempSync(join(tmpdir(), "wiregauge-report-"));
let browser;

// Renders the example's record once a kind.
const made = new Map();
function report(kind, samples = "1000000") {
  const key = `${kind}-${samples}`;
  if (!made.has(key)) {
    const path = join(dir, `${key}.html`);
    execFileSync(example, [path, kind, samples]);
    made.set(key, { path, record: JSON.parse(readFileSync(`${path}.json`, "utf8")) });
  }
  return made.get(key);
}

// Opens it and fails on anything that the page complains of or asks the network for.
async function open(t, kind, options = {}, samples = undefined) {
  const { path, record } = report(kind, samples);
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (m) => complaints.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => complaints.push(String(e.stack)));
  page.on("request", (r) => requests.push(r.url()));
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, [], "the console stays empty");
    const own = pathToFileURL(path).href;
    const foreign = requests.filter((u) => u !== own && !u.startsWith("blob:"));
    assert.deepEqual(foreign, [], "nothing is fetched");
  });
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector("html[data-ready]");
  return { page, record };
}

async function downloaded(page, press) {
  const [download] = await Promise.all([page.waitForEvent("download"), press()]);
  return readFileSync(await download.path(), "utf8");
}

// RFC 4180, and nothing more lenient.
function parseCsv(text) {
  const rows = [];
  let at = 0;
  while (at < text.length) {
    const row = [];
    for (;;) {
      const quoted = /"((?:[^"]|"")*)"/y;
      const plain = /[^",\r\n]*/y;
      quoted.lastIndex = plain.lastIndex = at;
      const q = quoted.exec(text);
      const m = q ?? plain.exec(text);
      row.push(q ? q[1].replaceAll('""', '"') : m[0]);
      at += m[0].length;
      if (text[at] !== ",") break;
      at++;
    }
    assert.equal(text.slice(at, at + 2), "\r\n", `line end after ${rows.length} rows`);
    at += 2;
    rows.push(row);
  }
  const [head, ...body] = rows;
  for (const row of body) assert.equal(row.length, head.length);
  return body.map((row) => Object.fromEntries(row.map((v, i) => [head[i], v])));
}

const value = (v) => (v === "inf" ? Infinity : v);
const csvNumber = (v) => (v === "inf" ? Infinity : Number(v));
const figure = (run, metric) => run.figures.find((f) => f.metric === metric).summary;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});

after(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

test("a million samples fit in 3 MB and are interactive within a second", async (t) => {
  for (const kind of ["survey", "sweep"]) {
    const { page } = await open(t, kind);
    const bytes = statSync(report(kind).path).size;
    const ready = Number(await page.getAttribute("html", "data-ready"));
    t.diagnostic(`${kind}: ${bytes} B, interactive after ${ready} ms`);
    assert.ok(bytes <= 3e6, `${bytes} B`);
    assert.ok(ready < 1000, `${ready} ms`);
  }
});

test("the tables carry the exact figures of the record", async (t) => {
  for (const kind of ["survey", "sweep"]) {
    const { page, record } = await open(t, kind);
    const cell = (run, k) => page.locator(`tr[data-run="${run.index}"] td[data-k="${k}"]`);
    for (const run of record.runs.filter((r) => r.case.pattern === "latency")) {
      const s = figure(run, "half_rtt");
      for (const [k, p] of [["p50", 0.5], ["p99", 0.99], ["p99.9", 0.999]]) {
        const q = s.quantiles.find((x) => x.p === p);
        const shown = cell(run, k);
        assert.equal(Number(await shown.locator("data").getAttribute("value")), q.value);
        const text = Number(await shown.locator("data").textContent());
        assert.ok(Math.abs(text * 1e3 - q.value) <= Math.max(0.0006 * q.value, 0.05), `${text}`);
        const interval = shown.locator(".ci");
        assert.equal(Number(await interval.getAttribute("data-low")), q.interval.low);
        assert.equal(Number(await interval.getAttribute("data-high")), q.interval.high);
      }
      assert.equal(Number(await cell(run, "max").locator("data").getAttribute("value")), s.max);
      assert.equal(Number(await cell(run, "n").locator("data").getAttribute("value")), s.count);
    }
  }
});

test("a survey folds the runs of a transport and wait into a row", async (t) => {
  const { page, record } = await open(t, "survey");
  const pairs = new Set(record.runs.map((r) => `${r.case.transport} ${r.case.wait}`));
  assert.equal(await page.locator("#main-table tbody tr").count(), pairs.size);
  const row = page.locator('#main-table tr[data-run="0"]');
  const rate = (run, metric) => run.rates.find((r) => r.metric === metric).rate.value;
  const shown = async (k) =>
    Number(await row.locator(`[data-k="${k}"] data`).getAttribute("value"));
  assert.equal(await shown("rate"), rate(record.runs[1], "message_rate"));
  assert.equal(await shown("MB/s"), rate(record.runs[2], "bandwidth"));
  const gbps = Number(await row.locator('[data-k="Gb/s"] data').textContent());
  assert.ok(Math.abs(gbps / (rate(record.runs[2], "bandwidth") * 8e-9) - 1) < 1e-3);
});

// Whether a canvas has pixels of this colour.
function painted(page, selector, rgb) {
  return page.evaluate(([sel, [r, g, b]]) => {
    const canvas = document.querySelector(sel);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) {
      n += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12;
    }
    return n;
  }, [selector, rgb]);
}

test("every chosen run is drawn and every other is not", async (t) => {
  const { page } = await open(t, "survey");
  for (const plot of ["#plot-cdf canvas", "#plot-ccdf canvas"]) {
    assert.ok((await painted(page, plot, [0, 114, 178])) > 100, `${plot} shows run 0`);
  }
  await page.locator('.choice input[data-run="0"]').uncheck();
  assert.equal(await painted(page, "#plot-ccdf canvas", [0, 114, 178]), 0);
  await page.locator(".choice button", { hasText: "none" }).click();
  assert.match(await page.locator("#plot-ccdf output").textContent(), /nothing is selected/i);
  await page.locator(".choice button", { hasText: "all" }).click();
  assert.ok((await painted(page, "#plot-cdf canvas", [0, 114, 178])) > 100);
});

test("a stall of 5 ms is in the table, the curves, the density and the rounds", async (t) => {
  const { page, record } = await open(t, "survey");
  const run = record.runs.find((r) => r.case.transport === "tcp" && r.figures.length > 0);
  const { max } = figure(run, "half_rtt");
  assert.ok(Math.abs(max - 5e6) < 1);
  const cell = page.locator(`tr[data-run="${run.index}"] td[data-k="max"] data`);
  assert.equal(await cell.textContent(), "5000");
  const points = parseCsv(await downloaded(page, () => page.click('[data-csv="ccdf"]')))
    .filter((r) => r.run === String(run.index));
  assert.equal(Number(points.at(-1).latency_ns), max);
  assert.equal(points.at(-1).rank, points.at(-1).count);
  await page.selectOption("#density-run", String(run.index));
  const cells = parseCsv(await downloaded(page, () => page.click('[data-csv="density"]')));
  assert.ok(cells.some((c) => Number(c.low_ns) <= max * 1.0001 && Number(c.high_ns) >= max));
  const sum = cells.reduce((n, c) => n + Number(c.count), 0);
  assert.equal(sum, figure(run, "half_rtt").count, "every sample is in one cell");
  await page.focus("#plot-ccdf .plot");
  const labels = await page.locator(".choice label").allTextContents();
  const downs = labels.findIndex((l) => l.trim() === run.label);
  for (let i = 0; i < downs; i++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  assert.match(await page.locator("#plot-ccdf output").textContent(), /^tcp busy.*5\.000 ms/);
});

test("every download reads back as the record, strictly", async (t) => {
  const { page, record } = await open(t, "sweep");
  const json = JSON.parse(await downloaded(page, () => page.click("#download-record")));
  assert.deepEqual(json, record);
  const results = parseCsv(await downloaded(page, () => page.click('[data-csv="results"]')));
  for (const run of record.runs) {
    for (const { metric, summary } of run.figures) {
      for (const q of summary.quantiles) {
        const name = `p${+(q.p * 100).toFixed(6)}`;
        const row = results.find((r) => r.run === String(run.index) && r.metric === metric &&
          r.figure === name);
        assert.equal(Number(row.count), summary.count);
        if (q.value === null) {
          assert.equal(row.value, "n too small");
          continue;
        }
        assert.equal(csvNumber(row.value), value(q.value));
        assert.equal(csvNumber(row.low), value(q.interval.low));
        assert.equal(csvNumber(row.high), value(q.interval.high));
      }
    }
  }
});

test("every plot has its data as a file", async (t) => {
  const { page } = await open(t, "sweep");
  const buttons = page.locator("[data-csv]");
  const names = await buttons.evaluateAll((all) => all.map((b) => b.dataset.csv));
  assert.deepEqual(names, ["results", "ccdf", "cdf", "density", "rounds-latency",
    "rounds-bandwidth", "sweep-latency", "sweep-bandwidth", "sweep-rate", "noise"]);
  for (const [i, name] of names.entries()) {
    // Chromium drops the eleventh download that a page starts within a few seconds.
    if (i === 5) await page.reload();
    const rows = parseCsv(await downloaded(page, () => page.click(`[data-csv="${name}"]`)));
    assert.ok(rows.length > 0, name);
    assert.equal(await page.locator(`figure#plot-${name}, #results`).count() > 0, true);
  }
});

test("curves of the page are the order statistics of the samples", async (t) => {
  const { page, record } = await open(t, "survey");
  const points = parseCsv(await downloaded(page, () => page.click('[data-csv="cdf"]')));
  for (const run of record.runs.filter((r) => r.figures.length > 0)) {
    const own = points.filter((p) => p.run === String(run.index));
    const { quantiles, count, min } = figure(run, "half_rtt");
    assert.equal(Number(own[0].latency_ns), min);
    assert.equal(own.length, new Set(own.map((p) => p.rank)).size);
    for (const q of quantiles) {
      const rank = Math.ceil(q.p * count);
      const below = own.findLast((p) => Number(p.rank) <= rank);
      const above = own.find((p) => Number(p.rank) >= rank);
      assert.ok(Number(below.latency_ns) <= q.value && q.value <= Number(above.latency_ns));
    }
  }
});

test("plots are worked by keys alone and say what they show", async (t) => {
  const { page } = await open(t, "sweep");
  const reached = new Set();
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      return { what: e.closest("figure")?.id ?? e.id, ring: style.outlineStyle !== "none" };
    });
    if (at.what) reached.add(at.what);
    assert.ok(at.ring || at.what === "", `${at.what} shows its focus`);
  }
  const figures = await page.locator("figure").evaluateAll((all) => all.map((f) => f.id));
  for (const id of [...figures, "theme", "download-record", "density-run"]) {
    assert.ok(reached.has(id), `${id} is reached`);
  }
  for (const id of figures) {
    const target = id === "plot-density" ? `#${id} canvas` : `#${id} .plot`;
    await page.focus(target);
    const output = page.locator(`#${id} output`);
    const before = await output.textContent();
    await page.keyboard.press("End");
    const there = await output.textContent();
    assert.notEqual(there, before, `${id} answers`);
    assert.match(there, /\d/);
    assert.equal(await output.getAttribute("aria-live"), "polite");
  }
});

test("hovering reads the nearest point", async (t) => {
  const { page } = await open(t, "survey");
  await page.locator("#plot-ccdf .u-over").scrollIntoViewIfNeeded();
  const box = await page.locator("#plot-ccdf .u-over").boundingBox();
  for (let x = 0.1; x < 0.9; x += 0.05) {
    await page.mouse.move(box.x + box.width * x, box.y + box.height * 0.5);
  }
  assert.match(await page.locator("#plot-ccdf output").textContent(), /(ns|us|ms) at .*rank/);
});

test("the theme follows the system and the button", async (t) => {
  const back = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const { page } = await open(t, "survey", { colorScheme: "dark" });
  const dark = await back(page);
  assert.ok((await painted(page, "#plot-cdf canvas", [86, 180, 233])) > 100, "light blue on dark");
  await page.click("#theme");
  assert.equal(await page.textContent("#theme"), "Theme: light");
  assert.notEqual(await back(page), dark);
  assert.ok((await painted(page, "#plot-cdf canvas", [0, 114, 178])) > 100, "dark blue on light");
  await page.click("#theme");
  assert.equal(await back(page), dark);
});

test("a narrow page does not scroll sideways", async (t) => {
  const seen = [["sweep", 360], ["sweep", 700], ["survey", 1280], ["hostile", 360], ["study", 360],
    ["load", 360], ["surface", 360], ["rpc", 360]];
  for (const [kind, width] of seen) {
    const { page } = await open(t, kind, { viewport: { width, height: 800 } });
    const over = await page.evaluate(() =>
      document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `${kind}: ${over} px over at ${width}`);
  }
});

test("a hostile record stays text; loss and too few samples are said", async (t) => {
  const { page, record } = await open(t, "hostile");
  assert.match(await page.title(), /<\/script><img src=x/);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 3);
  assert.match(await page.locator("header").textContent(), /INCOMPLETE/);
  assert.match(await page.locator("#faults").textContent(), /stalled for 5 s/);
  const first = page.locator('tr[data-run="0"]');
  assert.equal(await first.locator('td[data-k="p99"]').textContent(), "n too small");
  assert.equal(await first.locator('td[data-k="p99.9"]').textContent(), "n too small");
  const lossy = record.runs[3];
  const row = page.locator('tr[data-run="3"]');
  assert.equal(await row.locator('td[data-k="p99.9"] data').textContent(), "∞");
  assert.equal(await row.locator('td[data-k="max"] data').textContent(), "∞");
  const lost = figure(lossy, "half_rtt").lost;
  assert.ok(lost > 100);
  assert.equal(Number(await row.locator('td[data-k="lost"] data').getAttribute("value")), lost);
  await page.selectOption("#density-run", "3");
  const cells = parseCsv(await downloaded(page, () => page.click('[data-csv="density"]')));
  const infinite = cells.filter((c) => c.low_ns === "inf");
  assert.equal(infinite.reduce((n, c) => n + Number(c.count), 0), lost);
  const points = parseCsv(await downloaded(page, () => page.click('[data-csv="ccdf"]')));
  assert.equal(points.at(-1).latency_ns, "inf");
  assert.equal(points.at(-1).label, lossy.label);
  const json = await downloaded(page, () => page.click("#download-record"));
  assert.deepEqual(JSON.parse(json), record);
});

test("a study draws each graph, and what was published beside it", async (t) => {
  const { page, record } = await open(t, "study");
  const { graphs } = record.plan.study;
  assert.equal(await page.locator("#study figure").count(), graphs.length);
  assert.match(await page.textContent("#h-study"), /never measured/);
  const legend = await page.locator("#plot-study-0 .legend").textContent();
  assert.match(legend, /shm.*tcp.*○Nobody 1900, tcp/);
  const title = await page.locator("#plot-study-0 .legend span").last().getAttribute("title");
  assert.match(title, /A made-up book.*Measured on: two made-up hosts/);
  assert.match(await page.textContent("#graph-0"), /table 2 is not drawn/);
  for (let i = 0; i < graphs.length; i++) {
    const blue = await painted(page, `#plot-study-${i} canvas`, [0, 114, 178]);
    assert.ok(blue > 20 || graphs[i].kind === "bars", `graph ${i}: ${blue} pixels of its series`);
  }
});

test("the keys read ours and what was published to the last digit", async (t) => {
  const { page, record } = await open(t, "study");
  const said = () => page.locator("#plot-study-0 output").textContent();
  await page.locator("#plot-study-0 .plot").focus();
  await page.keyboard.press("End");
  const last = record.runs[record.plan.study.series[0].cases.at(-1)];
  const p50 = figure(last, "half_rtt").quantiles.find((q) => q.p === 0.5);
  assert.match(await said(), new RegExp(`^shm: 128 KiB: ${(p50.value / 1e3).toFixed(3)} us`));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Home");
  assert.match(await said(), /^Nobody 1900, tcp: 8 B: 2\.600 us, N\. Nobody, A made-up book/);
});

test("the tables of a study carry the exact figures and the published ones", async (t) => {
  const { page, record } = await open(t, "study");
  const rows = parseCsv(await downloaded(page, () => page.click('[data-csv="study-1"]')));
  const run = record.runs[record.plan.study.series[1].cases[1]];
  const own = rows.filter((r) => Number(r.run) === run.index);
  assert.deepEqual(own.map((r) => r.published), ["", "2600"]);
  const p50 = figure(run, "half_rtt").quantiles.find((q) => q.p === 0.5).value;
  assert.equal(Number(own[0].value), p50);
  await page.click("#graph-1 summary >> nth=0");
  const row = page.locator(`#graph-1 tr[data-run="${run.index}"]`);
  assert.equal(Number(await row.locator('[data-k="ours"] data').getAttribute("value")), p50);
  assert.equal(await row.locator('[data-k="published"] data').getAttribute("value"), "2600");
  assert.equal(await row.locator("td").nth(3).textContent(), (p50 / 2600).toFixed(3));
});

test("a curve over load has its knee, the bound, and closed loops as such", async (t) => {
  const { page, record } = await open(t, "load");
  const told = await page.locator("#load li").allTextContents();
  assert.equal(told.filter((line) => line.startsWith("knee: ")).length, 2);
  assert.equal(told.filter((line) => line.startsWith("slo: ")).length, 2);
  const legend = (name) => page.locator(`#plot-load-${name} .legend`).textContent();
  assert.match(await legend("offered"), /tcp busy p50.*tcp busy p99.9.*◇tcp busy knee.*p99 < 50/);
  assert.doesNotMatch(await legend("offered"), /closed/);
  assert.match(await legend("answered"), /○tcp busy closed loop, rtt p50/);
  const rows = parseCsv(await downloaded(page, () => page.click('[data-csv="load-answered"]')));
  assert.equal(rows.length, 3 * record.runs.length);
  for (const run of record.runs) {
    const closed = run.case.load.clients > 0;
    const metric = closed ? "rtt" : "response";
    const own = rows.filter((r) => Number(r.run) === run.index);
    assert.ok(own.every((r) => r.loop === (closed ? "closed" : "open") && r.metric === metric));
    const q = figure(run, metric).quantiles.find((k) => k.p === 0.99);
    const row = own.find((r) => r.figure === "p99");
    assert.equal(Number(row.value_ns), q.value);
    assert.equal(Number(row.high_ns), q.interval.high);
    const answered = run.rates.find((r) => r.metric === "message_rate").rate.value;
    assert.equal(Number(row.answered_per_s), answered);
  }
  const curves = JSON.parse(await page.locator("#load").getAttribute("data-curves"));
  const knee = record.runs.find((r) => r.index === curves[0].knee);
  assert.ok(knee.case.schedule.poisson.rate > 0);
  const blue = await painted(page, "#plot-load-offered canvas", [0, 114, 178]);
  assert.ok(blue > 200, `${blue} pixels of the first curve`);
  await page.locator("#plot-load-offered .plot").focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowDown");
  const said = await page.locator("#plot-load-offered output").textContent();
  assert.match(said, /: response .* offered .* sent .* answered .* n = /);
});

test("requests of many lengths have slowdowns, times and the tail of the short ones", async (t) => {
  const { page, record } = await open(t, "rpc");
  const loaded = record.runs.find((r) => !r.case.rpc.unloaded);
  for (const name of ["slowdown", "time", "short"]) {
    assert.ok(await page.locator(`#plot-rpc-${name} canvas`).isVisible(), name);
  }
  // What is unloaded has no slowdown.
  const slowed = await page.locator("#plot-rpc-slowdown .legend").textContent();
  assert.match(slowed, /w3 at 20000\/s p50/);
  assert.doesNotMatch(slowed, /unloaded/);
  assert.match(await page.locator("#plot-rpc-time .legend").textContent(), /unloaded/);
  const rows = parseCsv(await downloaded(page, () => page.click('[data-csv="rpc-slowdown"]')));
  const own = rows.filter((r) => Number(r.run) === loaded.index && r.figure === "p50");
  assert.equal(own.length, loaded.lengths.sizes.length);
  const of = loaded.lengths.sizes[3];
  const row = own.find((r) => Number(r.size_bytes) === of.size);
  assert.equal(Number(row.value_ns), of.summary.quantiles.find((k) => k.p === 0.5).value);
  assert.equal(Number(row.unloaded_p50_ns), of.unloaded.p50_ns);
  assert.ok(await painted(page, "#plot-rpc-slowdown canvas", [0, 114, 178]) > 100);
  await page.locator("#plot-rpc-slowdown .plot").focus();
  await page.keyboard.press("ArrowRight");
  const said = await page.locator("#plot-rpc-slowdown output").textContent();
  assert.match(said, /p50 .*×, n = /);
  // The table needs no script.
  await page.locator("#rpc summary").first().click();
  const cells = await page.locator("#rpc tbody tr").first().locator("td").allTextContents();
  assert.equal(cells.length, 11);
});

test("a surface is a map and a view, and marks what missed more than a tenth", async (t) => {
  const { page, record } = await open(t, "surface");
  const red = [179, 38, 30];
  for (const part of ["map", "view"]) {
    const n = await painted(page, `#plot-study-0 canvas.${part}`, red);
    assert.ok(n > 20, `${part}: ${n} pixels of what is wrong`);
  }
  const missed = (run) => run.rates.find((r) => r.metric === "missed").rate.value;
  const many = record.runs.filter((r) => missed(r) > 0.1);
  assert.ok(many.length > 0 && many.length < record.runs.length);
  assert.equal(await page.locator("#graph-0 td .bad").count(), many.length);
  const rows = parseCsv(await downloaded(page, () => page.click('[data-csv="study-0"]')));
  assert.equal(rows.length, record.runs.length);
  for (const run of record.runs) {
    const row = rows.find((r) => Number(r.run) === run.index);
    assert.equal(Number(row.offered_per_s), run.case.schedule.periodic.rate);
    assert.equal(Number(row.values), run.case.stream.values);
    const p50 = figure(run, "one_way").quantiles.find((q) => q.p === 0.5);
    assert.equal(Number(row.value), p50.value);
  }
  const said = () => page.locator("#plot-study-0 output").textContent();
  await page.locator("#plot-study-0 .plot").focus();
  await page.keyboard.press("End");
  const last = record.runs.at(-1);
  const percent = (100 * missed(last)).toFixed(2);
  assert.match(await said(), new RegExp(`100\\.0 k msg/s, 64 values: .*, ${percent} % of the`));
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowDown");
  assert.match(await said(), /10\.00 k msg\/s, 8 values: .* ns/);
  const view = () => page.locator("#plot-study-0 canvas.view").evaluate((k) => k.toDataURL());
  const before = await view();
  await page.keyboard.press("Shift+ArrowLeft");
  assert.notEqual(await view(), before, "it turns");
  await page.locator("#plot-study-0 canvas.map").hover({ position: { x: 80, y: 20 } });
  assert.match(await said(), /100\.0 msg\/s, 64 values/);
});

test("shares begin at 0 and stand along their axis", async (t) => {
  const { page, record } = await open(t, "surface");
  await page.locator("#plot-study-1 .plot").focus();
  await page.keyboard.press("Home");
  const said = await page.locator("#plot-study-1 output").textContent();
  assert.match(said, /^1 value: 100 msg\/s: 0 % \[0 %, 0 %\], 5 rounds/);
  assert.match(await page.textContent("#plot-study-1 .legend"), /1 value.*8 values.*64 values/);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("End");
  const last = await page.locator("#plot-study-1 output").textContent();
  const most = Math.max(...record.runs.map((r) =>
    r.rates.find((k) => k.metric === "missed").rate.value));
  assert.ok(last.startsWith(`64 values: 100 k msg/s: ${100 * most} % `), last);
});

test("clocks show their offset with its bound and their drift over the time", async (t) => {
  const { page, record } = await open(t, "clocks");
  assert.equal(await page.locator("#clocks table").count(), 2);
  assert.equal(await page.locator("#clocks canvas").count(), 2);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("#plot-clock-offset .bar button").first().click(),
  ]);
  const rows = parseCsv(readFileSync(await download.path(), "utf8"));
  assert.equal(rows.length, 2 * record.clocks[0].points.length);
  assert.equal(Number(rows[7].offset_ns), record.clocks[0].points[7].offset_ns);
  // The line through both ends is taken off: a drift of 12.5 us a second is not what is seen.
  await page.locator("#plot-clock-offset .plot").focus();
  await page.keyboard.press("End");
  const said = await page.locator("#plot-clock-offset output").textContent();
  assert.match(said, /node07: after 100\.0 s: .* us ± .*, 0\.0000 ns off the line/);
});
