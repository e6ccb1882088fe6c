//! The viewer of reports: scripts and styles of `web/`, which the program has in it.

use include_dir::{Dir, include_dir};

/// The viewer's modules in the order in which they use each other; see `web/README.md`.
pub const SCRIPTS: [&str; 11] = [
    "decode.js",
    "units.js",
    "download.js",
    "theme.js",
    "plot.js",
    "picture.js",
    "distribution.js",
    "density.js",
    "figure.js",
    "surface.js",
    "main.js",
];
/// The library that draws.
pub const UPLOT: &str = "vendor/uPlot.iife.min.js";
/// Its style.
pub const UPLOT_CSS: &str = "vendor/uPlot.min.css";
/// The page's style.
pub const CSS: &str = "page.css";

/// The viewer's files.
static WEB: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web");

/// The text of one of them.
pub fn web(name: &str) -> &'static str {
    WEB.get_file(name).and_then(|file| file.contents_utf8()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_of_the_viewer_can_end_its_element() {
        for script in SCRIPTS.iter().chain([&UPLOT]) {
            let lower = web(script).to_lowercase();
            assert!(!lower.is_empty() && !lower.contains("</script") && !lower.contains("<!--"));
        }
        for style in [CSS, UPLOT_CSS] {
            let lower = web(style).to_lowercase();
            assert!(!lower.is_empty() && !lower.contains("</style"));
        }
    }
}
