// The sections that only some records have: curves over load, requests of many lengths, surfaces,
// clocks.

import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { downloaded, figure, open, painted, parseCsv, value } from "./support.mjs";

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
    const closed = run.case.spec.clients > 0;
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
  const drawn = JSON.parse(await page.locator("#plots").textContent());
  const { series } = drawn.flatMap((s) => s.plots).find((p) => p.id === "load-offered");
  const [{ x }] = series.find((s) => s.style === "peak").points;
  const knee = record.runs.find((r) =>
    r.rates.some((k) => k.metric === "offered_rate" && k.rate.value === x));
  assert.ok(knee.case.schedule.poisson.rate > 0);
  const blue = await painted(page, "#plot-load-offered canvas", [0, 114, 178]);
  assert.ok(blue > 200, `${blue} pixels of the first curve`);
  await page.locator("#plot-load-offered .plot").focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowDown");
  const said = await page.locator("#plot-load-offered output").textContent();
  assert.match(said, /: response .* offered .* sent .* answered .* n = /);
});

test("what was missed and what was offered stand in tables", async (t) => {
  const { page, record } = await open(t, "surface");
  const heads = await page.locator("#stream-table thead th").allTextContents();
  const at = heads.indexOf("missed");
  const missed = await page.locator(`#stream-table tbody td:nth-child(${at + 1}) data`)
    .evaluateAll((all) => all.map((one) => one.getAttribute("value")));
  const streams = record.runs.filter((r) => r.case.pattern === "stream");
  const own = streams.map((r) => `${r.counts.missed_steps}`);
  assert.deepEqual(missed, own);
  const load = await open(t, "load");
  const points = load.page.locator("#results table").first().locator("tbody tr");
  const runs = load.record.runs.filter((r) => r.case.pattern === "load" && !r.case.spec.probe);
  assert.equal(await points.count(), runs.length);
});

test("requests of many lengths have slowdowns, times and the tail of the short ones", async (t) => {
  const { page, record } = await open(t, "rpc");
  const loaded = record.runs.find((r) => !r.case.spec.unloaded);
  for (const name of ["slowdown", "time", "short"]) {
    assert.ok(await page.locator(`#plot-rpc-${name} canvas`).isVisible(), name);
  }
  // The lengths on an axis are those of its own workload.
  const titles = await page.locator("#lead h3, #rpc .grid h3").allTextContents();
  assert.deepEqual(titles.slice(0, 4), [
    "Slowdown against message size, w3", "Time against message size, w3",
    "Slowdown against message size, w1", "Time against message size, w1",
  ]);
  assert.doesNotMatch(await page.locator("#plot-rpc-slowdown .legend").textContent(), /w1 at/);
  assert.match(await page.locator("#plot-rpc-slowdown-2 .legend").textContent(), /w1 at/);
  assert.doesNotMatch(await page.locator("#plot-rpc-short .legend").textContent(), /unloaded/);
  // What is unloaded has no slowdown.
  const slowed = await page.locator("#plot-rpc-slowdown .legend").textContent();
  assert.match(slowed, /w3 at 20000\/s p50/);
  assert.doesNotMatch(slowed, /unloaded/);
  assert.match(await page.locator("#plot-rpc-time .legend").textContent(), /unloaded/);
  const rows = parseCsv(await downloaded(page, () => page.click('[data-csv="rpc-slowdown"]')));
  const own = rows.filter((r) => Number(r.run) === loaded.index && r.figure === "p50");
  assert.equal(own.length, loaded.details.sizes.length);
  const of = loaded.details.sizes[3];
  const row = own.find((r) => Number(r.size_bytes) === of.size);
  assert.equal(Number(row.value_ns), of.summary.quantiles.find((k) => k.p === 0.5).value);
  assert.equal(Number(row.unloaded_p50_ns), of.unloaded.p50_ns);
  assert.ok(await painted(page, "#plot-rpc-slowdown canvas", [0, 114, 178]) > 100);
  await page.locator("#plot-rpc-slowdown .plot").press("ArrowRight");
  assert.match(await page.locator("#plot-rpc-slowdown output").textContent(), /p50 .*×, n = /);
  // The table needs no script.
  await page.locator("#rpc summary").first().click();
  const cells = await page.locator("#rpc tbody tr").first().locator("th, td").allTextContents();
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
  assert.equal(await page.locator("#graph-0 td.bad").count(), many.length);
  const rows = parseCsv(await downloaded(page, () => page.click('[data-csv="study-0"]')));
  assert.equal(rows.length, record.runs.length);
  for (const run of record.runs) {
    const row = rows.find((r) => Number(r.run) === run.index);
    assert.equal(Number(row.offered_per_s), run.case.schedule.periodic.rate);
    assert.equal(Number(row.values), run.case.spec.values);
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
  const percent = (100 * most).toPrecision(4);
  assert.ok(last.startsWith(`64 values: 100 k msg/s: ${percent} % `), last);
});

test("clocks show their offset with its bound and their drift over the time", async (t) => {
  const { page, record } = await open(t, "clocks");
  assert.equal(await page.locator("#clocks table").count(), 2);
  assert.equal(await page.locator("#lead canvas, #clocks canvas").count(), 2);
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
  assert.match(said, /node07: after 100\.0 s: .* us ± .*, 0(\.0000)? ns off the line/);
});

test("a histogram counts exactly at the samples that are kept, and evenly between them", () => {
  const source = readFileSync(new URL("../../web/figure.js", import.meta.url), "utf8");
  const [text] = source.match(/function samplesUpTo[\s\S]*?\n}\n/);
  const samplesUpTo = new Function(`${text}; return samplesUpTo;`)();
  const curve = { ranks: [1, 100, 200, 203], values: [1, 10, 1000, Infinity] };
  const seen = [0.5, 1, 10, 100, 999.9, 1000, 1e9].map((value) => samplesUpTo(curve, value));
  assert.deepEqual(seen, [0, 1, 100, 149, 198, 200, 200]);
  const all = Array.from({ length: 300 }, (_, i) => samplesUpTo(curve, 0.9 * 1.03 ** i));
  assert.ok(all.every((n, i) => i === 0 || n >= all[i - 1]), "it never falls");
});
