//! Pages name files that there are.

use super::{none, root};

/// Folders whose files are named by their path from the root.
const FOLDERS: [&str; 11] = [
    "crates/",
    "src/",
    "web/",
    "tests/",
    "docs/",
    "bench/",
    "fuzz/",
    "examples/",
    "studies/",
    "testbed/",
    "xtask/",
];

/// A part of a path that stands for any name.
const ANY: &str = "NAME";

#[test]
fn pages_name_files_that_there_are() {
    let pages = ["README.md", "ARCHITECTURE.md", "METHOD.md", "COMPARE.md", "CONTRIBUTING.md"];
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let mut broken = Vec::new();
    for page in pages.map(String::from).into_iter().chain(docs.filter(|page| page.ends_with(".md")))
    {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        for named in text.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| named.starts_with(folder))
                && named.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if is_path && !named.contains(ANY) && !root().join(named).exists() {
                broken.push(format!("{page}: there is no {named}"));
            }
        }
    }
    none(&broken);
}
