// What the tests of the report share: made-up reports, opened from disk in a browser without a
// network.
//
//   cargo build --release --example sample_report && cd tests/web && npm ci && npm test
//
// CHROMIUM names another browser than /usr/bin/chromium, SAMPLE_REPORT another example binary.

import { after, before } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
const example = process.env.SAMPLE_REPORT ?? join(root, "target/release/examples/sample_report");
const dir = mkdtempSync(join(tmpdir(), "wiregauge-report-"));
let browser;

// Of each wait, in milliseconds: far above what a busy machine needs.
const LIMIT = 120_000;

// Renders the example's record once a kind.
const made = new Map();
export function report(kind, samples = "1000000") {
  const key = `${kind}-${samples}`;
  if (!made.has(key)) {
    const path = join(dir, `${key}.html`);
    execFileSync(example, [path, kind, samples], { timeout: LIMIT });
    made.set(key, { path, record: JSON.parse(readFileSync(`${path}.json`, "utf8")) });
  }
  return made.get(key);
}

// Opens it and fails on anything that the page complains of or asks the network for.
export async function open(t, kind, options = {}, samples = undefined) {
  const { path, record } = report(kind, samples);
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  context.setDefaultTimeout(LIMIT);
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

export async function downloaded(page, press) {
  const [download] = await Promise.all([page.waitForEvent("download"), press()]);
  return readFileSync(await download.path(), "utf8");
}

// RFC 4180, and nothing more lenient.
export function parseCsv(text) {
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

export const value = (v) => (v === "inf" ? Infinity : v);
export const csvNumber = (v) => (v === "inf" ? Infinity : Number(v));
export const figure = (run, metric) => run.figures.find((f) => f.metric === metric).summary;

before(async () => {
  browser = await chromium.launch({
    timeout: LIMIT,
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});

after(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

// Whether a canvas has pixels of this colour.
export function painted(page, selector, rgb) {
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
