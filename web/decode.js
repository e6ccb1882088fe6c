// What crates/report/src/html/encode.rs wrote, back to numbers.

const readJson = (id) => JSON.parse(document.getElementById(id).textContent);

function bytesOf(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

function doublesOf(base64) {
  return new Float64Array(bytesOf(base64).buffer);
}

// LEB128; numbers beyond 2^53 do not occur (they count samples).
function varintReader(base64) {
  const bytes = bytesOf(base64);
  let at = 0;
  return {
    more: () => at < bytes.length,
    next() {
      let n = 0;
      let factor = 1;
      while (at < bytes.length) {
        const b = bytes[at++];
        n += (b & 127) * factor;
        if (b < 128) break;
        factor *= 128;
      }
      return n;
    },
  };
}

function decodeCurve(c) {
  const values = doublesOf(c.values);
  const ranks = new Float64Array(values.length);
  const reader = varintReader(c.ranks);
  let rank = 0;
  for (let i = 0; i < ranks.length; i++) ranks[i] = rank += reader.next();
  return { ...c, values, ranks };
}

function decodeDensity(d) {
  const reader = varintReader(d.cells);
  const columns = [];
  for (let i = 0; i < d.columns; i++) {
    const lost = reader.next();
    const cells = [];
    let row = 0;
    for (let left = reader.next(); left > 0 && reader.more(); left--) {
      row += reader.next();
      cells.push([row, reader.next()]);
    }
    columns.push({ lost, cells });
  }
  return { ...d, columns, max: doublesOf(d.max) };
}

// A Value of the record: a number, "inf", "-inf", or null for a missing value.
function valueOf(v) {
  if (v === "inf") return Infinity;
  if (v === "-inf") return -Infinity;
  return v === null || v === undefined ? NaN : Number(v);
}
