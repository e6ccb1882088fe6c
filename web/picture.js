// A plot as a picture: its title and legend, which are text of the page, above its canvas.

const PICTURE_GAP = 8;

// The canvas of the picture, in the pixels of the screen.
function picture(title, legend, plot, c) {
  const ratio = uPlot.pxRatio;
  const [gap, line] = [PICTURE_GAP * ratio, 18 * ratio];
  const whole = element("canvas");
  const ctx = whole.getContext("2d");
  const font = (weight, px) => { ctx.font = `${weight} ${px * ratio}px sans-serif`; };
  font(400, 12);
  const items = legend.map((l) => ({ ...l, words: `${l.shape ? GLYPHS[l.shape] : ""}${l.name}` }));
  let [x, y] = [gap, 2 * line];
  for (const one of items) {
    const width = 28 * ratio + ctx.measureText(one.words).width + 2 * gap;
    if (x > gap && x + width > plot.width) [x, y] = [gap, y + line];
    [one.x, one.y] = [x, y];
    x += width;
  }
  const top = y + line;
  [whole.width, whole.height] = [plot.width, top + plot.height];
  ctx.fillStyle = c.back;
  ctx.fillRect(0, 0, whole.width, whole.height);
  ctx.fillStyle = c.text;
  ctx.textBaseline = "middle";
  font(600, 14);
  ctx.fillText(title, gap, line);
  font(400, 12);
  for (const one of items) {
    stroke(null, ctx, one);
    ctx.beginPath();
    ctx.moveTo(one.x, one.y);
    ctx.lineTo(one.x + 22 * ratio, one.y);
    ctx.stroke();
    ctx.fillText(one.words, one.x + 28 * ratio, one.y);
  }
  ctx.drawImage(plot, 0, top);
  return whole;
}

// A button that saves it, with the colours that the page has at that time.
function pictureButton(name, made) {
  const button = element("button", { type: "button", textContent: `${name}.png` });
  button.dataset.png = name;
  button.addEventListener("click", () =>
    made().toBlob((blob) => save(`${name}.png`, "image/png", blob)));
  return button;
}

// A button that saves the drawing of the whole plot as the report wrote it (crates/report/src/svg):
// `chosen` gives its name and, where a reader has chosen among them, the runs that it shall have.
function vectorButton(name, chosen) {
  const button = element("button", { type: "button", textContent: `${name}.svg` });
  button.dataset.svg = name;
  button.addEventListener("click", () => {
    const { stored, runs } = chosen();
    const text = storedPicture(stored).textContent;
    save(`${stored}.svg`, "image/svg+xml", runs ? onlyRuns(text, runs) : text);
  });
  return button;
}

const storedPicture = (name) =>
  document.querySelector(`script[data-picture="${CSS.escape(name)}"]`);

// Without the curves of other runs; the names in the legend move up.
function onlyRuns(text, runs) {
  const svg = new DOMParser().parseFromString(text, "image/svg+xml");
  const keys = [...svg.querySelectorAll("g.key")];
  const places = keys.map((key) => key.getAttribute("transform"));
  const wanted = (g) => !g.dataset.run || runs.has(Number(g.dataset.run));
  for (const g of svg.querySelectorAll("g[data-run]")) if (!wanted(g)) g.remove();
  keys.filter(wanted).forEach((key, i) => key.setAttribute("transform", places[i]));
  return new XMLSerializer().serializeToString(svg);
}
