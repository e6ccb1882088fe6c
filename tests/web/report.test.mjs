// The report as a reader has it: what every record has.
//
//   cargo build --release --example sample_report && cd tests/web && npm ci && npm test
//
// CHROMIUM names another browser than /usr/bin/chromium, SAMPLE_REPORT another example binary.

import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { csvNumber, downloaded, figure, open, painted, parseCsv, report, value }
  from "./support.mjs";

test("a million samples fit in 3 MB and are interactive within a second", async (t) => {
  for (const kind of ["survey", "sweep"]) {
    const { page } = await open(t, kind);
    const bytes = statSync(report(kind).path).size;
    assert.ok(bytes <= 3e6, `${bytes} B`);
    // Other programs may delay a page: the quickest of several loads counts.
    let ready = Infinity;
    for (let load = 0; load < 10 && ready >= 1000; load++) {
      if (load > 0) await page.reload();
      await page.waitForSelector("html[data-ready]");
      ready = Math.min(ready, Number(await page.getAttribute("html", "data-ready")));
    }
    t.diagnostic(`${kind}: ${bytes} B, interactive after ${ready} ms`);
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
  assert.deepEqual(names, ["sweep-latency", "results", "sweep-bandwidth", "sweep-rate", "ccdf",
    "cdf", "density", "rounds-latency", "rounds-bandwidth", "noise"]);
  for (const [i, name] of names.entries()) {
    // Chromium drops the eleventh download that a page starts within a few seconds.
    if (i === 5) await page.reload();
    const rows = parseCsv(await downloaded(page, () => page.click(`[data-csv="${name}"]`)));
    assert.ok(rows.length > 0, name);
    assert.equal(await page.locator(`figure#plot-${name}, #results`).count() > 0, true);
  }
});

test("every plot is a picture at a click, with its title and its colours", async (t) => {
  const { page } = await open(t, "sweep");
  const names = await page.locator("figure[id^=plot-] [data-png]").evaluateAll((all) =>
    all.map((b) => b.dataset.png));
  assert.equal(names.length, await page.locator(".plot").count());
  const [download] = await Promise.all([
    page.waitForEvent("download"), page.click(`[data-png="${names[0]}"]`),
  ]);
  const bytes = readFileSync(await download.path());
  assert.equal(bytes.subarray(1, 4).toString(), "PNG");
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  const plot = await page.locator(`#plot-${names[0]} canvas`).evaluate((c) => [c.width, c.height]);
  assert.equal(width, plot[0]);
  assert.ok(height > plot[1] + 40, `${height} of ${plot[1]}: the title and the legend are above`);
  // Taller than what a blank page of that size is compressed to.
  assert.ok(bytes.length > 5000, `${bytes.length} B`);
});

test("every plot is a drawing of vectors at a click, with the runs that were chosen", async (t) => {
  const { page } = await open(t, "sweep");
  const names = await page.locator("figure[id^=plot-] [data-svg]").evaluateAll((all) =>
    all.map((b) => b.dataset.svg));
  assert.equal(names.length, await page.locator("figure[id^=plot-]").count());
  const drawn = async (name) => {
    const text = await downloaded(page, () => page.click(`[data-svg="${name}"]`));
    return page.evaluate((svg) => {
      const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
      const count = (selector) => root.querySelectorAll(selector).length;
      return { tag: root.tagName, images: count("image, foreignObject, script"),
        paths: count("path"), runs: count("g[data-run]:not(.key)"),
        keys: count("g.key[data-run]") };
    }, text);
  };
  const first = await drawn(names[0]);
  assert.equal(first.tag, "svg");
  assert.equal(first.images, 0);
  assert.ok(first.paths > 5, `${first.paths} paths`);
  const whole = await drawn("ccdf");
  await page.locator(".choice input:checked").first().uncheck();
  const less = await drawn("ccdf");
  assert.equal(less.runs, whole.runs - 1);
  assert.equal(less.keys, whole.keys - 1);
});

test("curves of the page are the order statistics of the samples", async (t) => {
  const { page, record } = await open(t, "survey");
  const points = parseCsv(await downloaded(page, () => page.click('[data-csv="cdf"]')));
  for (const run of record.runs.filter((r) => r.figures.length > 0)) {
    const own = points.filter((p) => p.run === String(run.index));
    const { quantiles, count, min } = figure(run, "half_rtt");
    assert.equal(Number(own[0].latency_ns), min);
    assert.equal(own.length, new Set(own.map((p) => p.rank)).size);
    // `within` is the interval of all rounds' messages together, as the curve is; a figure is that
    // of a typical round.
    const pooled = quantiles.filter((q) => q.within);
    assert.ok(pooled.length >= 3, `${pooled.length} quantiles`);
    for (const { p: share, within } of pooled) {
      const rank = Math.ceil(share * count);
      const below = own.findLast((p) => Number(p.rank) <= rank);
      const above = own.find((p) => Number(p.rank) >= rank);
      const said = `p${100 * share} of run ${run.index}`;
      assert.ok(Number(below.latency_ns) <= within.high, said);
      assert.ok(within.low <= Number(above.latency_ns), said);
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

test("the drawing that compares is on the first screen, and links lead to all below", async (t) => {
  const kinds = ["survey", "sweep", "load", "rpc", "study", "clocks", "surface", "several"];
  for (const [width, height] of [[1280, 900], [400, 800]]) {
    for (const kind of kinds) {
      const { page } = await open(t, kind, { viewport: { width, height } }, "20000");
      const top = (await page.locator("#lead .plot, #lead .surface").first().boundingBox()).y;
      assert.ok(top < 0.7 * height, `${kind}: begins at ${top} of ${height}`);
      const dead = await page.locator("nav a").evaluateAll((links) =>
        links.map((a) => a.hash).filter((hash) => !document.querySelector(hash)?.offsetHeight));
      assert.deepEqual(dead, [], kind);
    }
  }
});

test("a page of several records says which cases differ, and draws the one that differs most",
  async (t) => {
    const { page } = await open(t, "several", { viewport: { width: 1280, height: 900 } }, "20000");
    const answer = await page.locator("#answer").textContent();
    assert.match(answer, /^after: 5 of 20 cases changed; the largest change: tcp/);
    assert.match(answer, /repaired: no change shown in 20 cases \(at most [^()]*\)\.$/);
    assert.match(await page.locator("#lead").textContent(), /^\s*tcp busy .* latency: Tail/);
    const drawn = await page.locator("#overlays .graph").count();
    assert.equal(drawn, 9, "the other cases that have samples");
  });

// The ratio of luminances of a cell's text and of what is behind it (WCAG 2, 1.4.3).
function contrast(element) {
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const parsed = (colour) => {
    const [r, g, b, alpha = 1] = numbers(colour);
    return [...(colour.startsWith("rgb") ? [r, g, b].map((v) => v / 255) : [r, g, b]), alpha];
  };
  const back = parsed(getComputedStyle(document.body).backgroundColor);
  const [r, g, b, alpha] = parsed(getComputedStyle(element.closest("td")).backgroundColor);
  const behind = [r, g, b].map((v, i) => alpha * v + (1 - alpha) * back[i]);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) =>
    0.05 + 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const [one, other] = [light(parsed(getComputedStyle(element).color)), light(behind)];
  return Math.max(one, other) / Math.min(one, other);
}

test("a matrix has intervals in its cells, legible in both themes", async (t) => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, record } = await open(t, "pairs", { colorScheme }, "20000");
    const cells = page.locator("table.heat").first().locator("td[data-run]");
    const seen = await cells.evaluateAll((all) => all.map((td) => {
      const { low, high } = td.querySelector(".ci").dataset;
      return { run: Number(td.dataset.run), low: Number(low), high: Number(high),
        title: td.title, text: td.querySelector(".ci").textContent };
    }));
    assert.equal(seen.length, 56, "eight hosts, each with each other");
    for (const { run, low, high, title, text } of seen) {
      const { interval } = figure(record.runs[run], "half_rtt").quantiles.find((q) => q.p === 0.5);
      assert.deepEqual({ low, high }, interval);
      assert.ok(title.endsWith(`; 95 % interval: ${text}`), title);
    }
    const least = Math.min(...await page.locator("table.heat td[data-run] > *").evaluateAll(
      (all, source) => all.map(new Function(`return ${source}`)()), contrast.toString()));
    assert.ok(least >= 4.5, `${colorScheme}: ${least}`);
    await page.setViewportSize({ width: 400, height: 800 });
    const caption = await page.locator("table.heat caption span").first().boundingBox();
    assert.ok(caption.x + caption.width <= 400, "the caption wraps");
  }
});

test("a narrow page does not scroll sideways", async (t) => {
  const seen = [["sweep", 360], ["sweep", 700], ["survey", 1280], ["hostile", 360], ["study", 360],
    ["load", 360], ["surface", 360], ["rpc", 360], ["pairs", 360], ["several", 360]];
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
  // Beside the SVG of each plot, whose labels are those of the record.
  assert.equal(await page.locator("script:not([data-picture])").count(), 4);
  assert.match(await page.locator("header").textContent(), /INCOMPLETE/);
  assert.match(await page.locator("#faults").textContent(), /stalled for 5 s/);
  const first = page.locator('#results tr[data-run="0"]');
  assert.equal(await first.locator('td[data-k="p99"]').textContent(), "n too small");
  assert.equal(await first.locator('td[data-k="p99.9"]').textContent(), "n too small");
  const lossy = record.runs[3];
  const row = page.locator('#results tr[data-run="3"]');
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
  assert.equal(await page.locator("#lead figure, #study figure").count(), graphs.length);
  assert.match(await page.textContent("h1"), /never measured/);
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
