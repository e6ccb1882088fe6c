//! A transport is named in its own folder and in the registry; other code asks its descriptor.

use super::{none, root, sources};

/// Most source files outside its folder that name a transport: the registry, where its loops are
/// compiled apart, and one more.
const MOST_FILES: usize = 3;

/// A line of the registry.
struct Entry {
    variant: String,
    name: String,
    /// The module below `crates/transport/src/`, and the type in it.
    module: String,
    type_name: String,
}

fn registry() -> Vec<Entry> {
    let text = std::fs::read_to_string(root().join("crates/transport/src/registry.rs")).unwrap();
    let entry = |line: &str| {
        let (variant, rest) = line.trim().split_once(" \"")?;
        let (name, path) = rest.split_once("\" => ")?;
        let (module, type_name) = path.strip_suffix(';')?.split_once("::")?;
        let [variant, name, module, type_name] =
            [variant, name, module, type_name].map(String::from);
        Some(Entry { variant, name, module, type_name })
    };
    text.lines().filter_map(entry).collect()
}

#[test]
fn a_transport_is_named_in_few_files_outside_its_folder() {
    let entries = registry();
    assert!(entries.len() >= 10, "the registry was not understood");
    // Of each file the code without strings, and its lines of code with them.
    let texts = sources().iter().map(|source| {
        let lines = source.lines.iter().zip(&source.code);
        let lines = lines.filter(|(_, code)| !code.trim().is_empty());
        let lines: Vec<&str> = lines.map(|(line, _)| line.as_str()).collect();
        (source.path.clone(), source.code.join("\n"), lines.join("\n"))
    });
    let texts: Vec<(String, String, String)> = texts.collect();
    let mut broken = Vec::new();
    for Entry { variant, name, module, type_name } in entries {
        let words = [
            format!("TransportKind::{variant}"),
            format!("{module}::{type_name}"),
            format!("{variant}Endpoint"),
            format!("{type_name}Endpoint"),
            format!("{type_name}Opening"),
        ];
        let quoted = format!("\"{name}\"");
        let folder = format!("crates/transport/src/{module}");
        // A word of JSON.
        let is_common = name == "null";
        let outside = texts.iter().filter(|(path, ..)| !path.starts_with(&folder));
        let naming = outside.filter(|(_, code, lines)| {
            (!is_common && lines.contains(&quoted)) || words.iter().any(|word| code.contains(word))
        });
        let files: Vec<&str> = naming.map(|(path, ..)| path.as_str()).collect();
        if files.len() > MOST_FILES {
            broken.push(format!("{name} is named in {}", files.join(", ")));
        }
    }
    none(&broken);
}
