// How the page writes numbers; needs no browser.

import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("../../web/units.js", import.meta.url), "utf8");
const fmtCount = new Function(`${source}; return fmtCount;`)();

test("digits are grouped before the point alone", () => {
  assert.equal(fmtCount(999), "999");
  assert.equal(fmtCount(1234567), "1\u202f234\u202f567");
  assert.equal(fmtCount("0.0125"), "0.0125");
  assert.equal(fmtCount("1234.5678"), "1\u202f234.5678");
});
