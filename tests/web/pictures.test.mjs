// The first screen of each kind of page, wide and narrow, light and dark. UPDATE_DOCS=1 takes the
// screenshots of docs/reading-a-report.md.

import { test } from "node:test";
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { open } from "./support.mjs";

const pictures = fileURLToPath(new URL("../../docs/pictures", import.meta.url));
const SAMPLES = "20000";
const HEIGHT = 900;
const LOOKS = [
  { name: "wide", width: 1280, colorScheme: "light", isKept: true },
  { name: "narrow-dark", width: 400, colorScheme: "dark", isKept: true },
  { name: "wide-dark", width: 1280, colorScheme: "dark", isKept: false },
  { name: "narrow", width: 400, colorScheme: "light", isKept: false },
];

for (const kind of ["survey", "sweep", "study", "load", "rpc", "pairs", "several"]) {
  for (const { name, width, colorScheme, isKept } of LOOKS) {
    test(`the first screen of ${kind}, ${name}`, async (t) => {
      const viewport = { width, height: HEIGHT };
      const { page } = await open(t, kind, { viewport, colorScheme }, SAMPLES);
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [red] = background.match(/\d+/g).map(Number);
      assert.equal(red < 128, colorScheme === "dark", background);
      const path = `${pictures}/${kind}-${name}.png`;
      if (isKept && process.env.UPDATE_DOCS) {
        mkdirSync(pictures, { recursive: true });
        await page.screenshot({ path });
      }
      assert.ok(!isKept || existsSync(path), `${path}: UPDATE_DOCS=1 makes it`);
    });
  }
}
