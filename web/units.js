// Numbers as a person reads them; the same rules as crates/figures/src/view/number.rs.

function significant(number) {
  const v = valueOf(number);
  if (v === Infinity) return "∞";
  if (v === -Infinity) return "-∞";
  if (Number.isNaN(v)) return "?";
  const a = Math.abs(v);
  return v.toFixed(a < 1 ? 4 : a < 10 ? 3 : a < 100 ? 2 : a < 1000 ? 1 : 0);
}

// Without the zeros that say nothing on an axis.
const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

function fmtNs(ns) {
  const a = Math.abs(ns);
  if (!Number.isFinite(ns)) return significant(ns);
  if (a < 1e3) return `${significant(ns)} ns`;
  if (a < 1e6) return `${significant(ns / 1e3)} us`;
  if (a < 1e9) return `${significant(ns / 1e6)} ms`;
  return `${significant(ns / 1e9)} s`;
}

const onAxis = (fmt) => (v) => {
  const [n, ...unit] = fmt(v).split(" ");
  return [trimmed(n), ...unit].join(" ");
};
const axisNs = onAxis(fmtNs);

function fmtBytes(n) {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (n >= size && n % size === 0) return `${n / size} ${unit}`;
  }
  return `${n} B`;
}

// In groups of three before the point; digits after it are one group.
const fmtCount = (n) => {
  const [whole, ...fraction] = String(n).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, "\u202f"), ...fraction].join(".");
};
const fmtRate = (v) => {
  const [scale, unit] = v >= 1e6 ? [1e6, "M msg/s"] : v >= 1e3 ? [1e3, "k msg/s"] : [1, "msg/s"];
  return `${significant(v / scale)} ${unit}`;
};

const axisRate = onAxis(fmtRate);
// Where the axis says what is counted.
const axisPerSecond = (v) => axisRate(v).replace(/ ?msg\/s$/, "");

// A share with as many digits as its distance to 0 or 1 needs.
function fmtShare(p) {
  const tail = Math.min(p, 1 - p);
  const digits = tail <= 0 ? 1 : Math.min(9, Math.max(1, Math.ceil(-Math.log10(tail)) + 1));
  return `${(100 * p).toFixed(Math.max(1, digits - 1))} %`;
}
