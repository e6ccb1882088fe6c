// Files made in the page. CSV by RFC 4180, numbers in the shortest form that reads back exactly.

function csvField(v) {
  if (typeof v === "number") return v === Infinity ? "inf" : v === -Infinity ? "-inf" : String(v);
  const text = v === null || v === undefined ? "" : String(v);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const csvText = (rows) => rows.map((r) => r.map(csvField).join(",") + "\r\n").join("");

function save(name, type, text) {
  const link = document.createElement("a");
  const url = URL.createObjectURL(new Blob([text], { type }));
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// A button that makes its rows only when it is pressed.
function csvButton(name, rows) {
  const button = element("button", { type: "button", textContent: `${name}.csv` });
  button.dataset.csv = name;
  button.addEventListener("click", () => save(`${name}.csv`, "text/csv", csvText(rows())));
  return button;
}

function element(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(properties)) {
    if (k.startsWith("aria-") || k === "role" || k === "for") e.setAttribute(k, v);
    else e[k] = v;
  }
  e.append(...children);
  return e;
}
