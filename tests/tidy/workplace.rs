//! No file tells of the place where it was written.

use super::{none, text, tracked};

/// Words that belong to a workplace and not to a project, in halves so that this file holds none.
fn strange_words() -> Vec<String> {
    let halves = [
        ("/wo", "rk/"),
        ("/tmp/", "wt"),
        ("assis", "tant"),
        ("clau", "de"),
        ("anthro", "pic"),
        ("issue ", "#"),
        ("this ses", "sion"),
        ("earlier ses", "sion"),
        ("crates", ".io"),
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("npm", "js.org"),
        ("npm", "js.com"),
        ("deb.deb", "ian.org"),
        ("proxy.go", "lang.org"),
    ];
    halves.iter().map(|(first, second)| format!("{first}{second}")).collect()
}

/// Cargo's own name for its registry: it stands in every lock file, and deny.toml must say it.
fn is_cargos_own(file: &str, line: &str) -> bool {
    let index = format!("https://github.com/rust-lang/{}{}", "crates", ".io-index");
    let locks = file.ends_with("Cargo.lock") || file.ends_with("deny.toml");
    locks && line.contains(&index)
}

#[test]
fn no_file_tells_of_the_place_where_it_was_written() {
    let strange = strange_words();
    let mut broken = Vec::new();
    for file in tracked() {
        let Some(text) = text(&file) else { continue };
        for (number, line) in text.lines().enumerate() {
            let small = line.to_lowercase();
            for word in strange.iter().filter(|word| small.contains(word.as_str())) {
                if !is_cargos_own(&file, line) {
                    broken.push(format!("{file}:{}: '{word}' is not for this tree", number + 1));
                }
            }
        }
    }
    none(&broken);
}
