//! What a kernel shows in `/proc`, `/sys` and `/etc`, as a tree of files: an environment, warnings
//! and findings in one line each. A line `=== PATH` begins a file, and
//! `=== PATH -> NAME` is a link; what stands before the first one is read as what programs and the
//! kernel's trace print.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use wiregauge::host::{Tree, fuzzed};
use wiregauge::transport::homa;

/// Files of one input.
const FILES: usize = 64;

/// Writes a file of the tree, or a link where it is empty, unless its path leads elsewhere.
fn put(root: &Path, path: &str, text: &[u8]) {
    let is_name = |part: &str| {
        let is_elsewhere = part == "." || part == ".." || part.contains('/');
        !part.is_empty() && part.len() < 64 && !is_elsewhere
    };
    let (path, target) = path.split_once(" -> ").unwrap_or((path, "file"));
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
    // A link leads to its own folder, so that nothing is written outside of the tree.
    if !is_plain || path.len() >= 256 || !path.split('/').chain([target]).all(is_name) {
        return;
    }
    let file = root.join(path);
    let made = file.parent().map(fs::create_dir_all);
    if made.is_some_and(|made| made.is_ok()) {
        // It may be a folder of another file.
        let _ = match text {
            [] => symlink(target, file),
            text => fs::write(file, text),
        };
    }
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split("=== ");
    fuzzed::read_text(parts.next().unwrap_or_default());
    // In memory, where that is possible: a tree has many files.
    let memory = Path::new("/dev/shm");
    let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let root = above.join(format!("wiregauge-fuzz-tree-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir(&root).expect("the temporary directory can be written");
    for part in parts.take(FILES) {
        let (path, text) = part.split_once('\n').unwrap_or((part, ""));
        put(&root, path.trim(), text.as_bytes());
    }
    let tree = Tree::at(&root);
    for line in fuzzed::read_tree(&tree) {
        assert!(!line.is_empty());
    }
    homa::counted(&tree);
    let _ = fs::remove_dir_all(&root);
}
