// How the page writes numbers; needs no browser.

import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("../../web/units.js", import.meta.url), "utf8");
const fmtCount = new Function(`${source}; return fmtCount;`)();
const fmtBytes = new Function(`${source}; return fmtBytes;`)();

test("sizes are in powers of 1024 where they are multiples of one", () => {
  const sizes = [64, 1000, 1024, 1500, 65536, 3 * 2 ** 20, 2 ** 30];
  const shown = ["64 B", "1000 B", "1 KiB", "1500 B", "64 KiB", "3 MiB", "1 GiB"];
  assert.deepEqual(sizes.map(fmtBytes), shown);
});

test("digits are grouped before the point alone", () => {
  assert.equal(fmtCount(999), "999");
  assert.equal(fmtCount(1234567), "1\u202f234\u202f567");
  assert.equal(fmtCount("0.0125"), "0.0125");
  assert.equal(fmtCount("1234.5678"), "1\u202f234.5678");
});
