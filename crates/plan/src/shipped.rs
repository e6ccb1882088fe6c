//! Files in TOML that the program has in it.

use include_dir::{Dir, DirEntry, include_dir};
use std::sync::LazyLock;

/// Names and texts.
pub type Texts = Vec<(&'static str, &'static str)>;

static FOLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/references");

/// The published figures, and the workloads.
pub static REFERENCES: LazyLock<Texts> = LazyLock::new(|| texts(&FOLDER));

/// Returns the text of this name, or an empty one if there is none.
pub fn text(all: &Texts, name: &str) -> &'static str {
    all.iter().find(|(found, _)| *found == name).map_or("", |(_, text)| text)
}

/// Lists the TOML files below a folder in the order of their names: the path in the folder without
/// `.toml`, and the text.
pub fn texts(folder: &'static Dir<'static>) -> Texts {
    let mut all = Texts::new();
    add_texts(folder, &mut all);
    // Names are not in the order of files: `presta-collectives.toml` comes before `presta.toml`.
    all.sort_unstable();
    all
}

fn add_texts(folder: &'static Dir<'static>, all: &mut Texts) {
    for entry in folder.entries() {
        match entry {
            DirEntry::Dir(inner) => add_texts(inner, all),
            DirEntry::File(file) => {
                let name = file.path().to_str().and_then(|path| path.strip_suffix(".toml"));
                all.extend(name.zip(file.contents_utf8()));
            }
        }
    }
}
