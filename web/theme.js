// Light, dark, or as the system says; and the colours that canvases need as strings.

// Okabe and Ito's palette, told apart by readers with any colour blindness; its yellow is too pale
// on white and its black too dark on black, so these two differ between the themes.
const PALETTE = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b4538a", "#3f9ad0", "#b07d00", "#3b3b3b"],
  dark: ["#56b4e9", "#f0803c", "#2fc99a", "#e08fc0", "#8fb8ff", "#f0c040", "#d8d8d8"],
};
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const themeListeners = [];

const isDark = () => {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : systemDark.matches;
};

function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  return {
    text: get("--text"), back: get("--back"),
    faint: get("--faint"), line: get("--line"), edge: get("--edge"),
    accent: get("--accent"), bad: get("--bad"),
    palette: PALETTE[isDark() ? "dark" : "light"], dark: isDark(),
  };
}

const onTheme = (f) => themeListeners.push(f);
const themeChanged = () => themeListeners.forEach((f) => f());

function startTheme() {
  const button = document.getElementById("theme");
  const order = ["auto", "light", "dark"];
  const set = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  // Storage may be forbidden to a page from a file.
  let now = "auto";
  try { now = localStorage.getItem("wiregauge-theme") ?? "auto"; } catch { /* stays auto */ }
  set(order.includes(now) ? now : "auto");
  button.addEventListener("click", () => {
    now = order[(order.indexOf(now) + 1) % order.length];
    set(now);
    try { localStorage.setItem("wiregauge-theme", now); } catch { /* not kept */ }
    themeChanged();
  });
  systemDark.addEventListener("change", themeChanged);
}
