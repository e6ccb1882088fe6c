//! The licences of what is built into the program: each text once, with the packages that have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{at, output, read};

/// How the names of licence files begin, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// What no package of cargo brings: its name, and its licence's file in the checkout.
const OTHERS: [(&str, &str); 2] = [
    ("uPlot (plots of the page)", "web/vendor/uPlot.LICENSE"),
    ("rdma-core (types of the interface)", "crates/fabric-sys/LICENSE-RDMA-CORE"),
];

/// A package that is built in.
struct Package {
    /// `name version`.
    name: String,
    licence: String,
    folder: PathBuf,
}

/// All licences, as one text.
pub fn all(root: &Path, target: &str) -> Result<String, String> {
    let asked = ["metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let metadata = output(Command::new("cargo").args(asked).current_dir(root))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let packages = built_in(&metadata);
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in &packages {
        list += &format!("{}: {}\n", package.name, package.licence);
        for text in texts(&package.folder)? {
            users.entry(text).or_default().insert(package.name.clone());
        }
    }
    for (name, file) in OTHERS {
        list += &format!("{name}\n");
        users.entry(read(&root.join(file))?).or_default().insert(name.to_owned());
    }
    let mut all = format!(
        "wiregauge is built from these packages and the standard library of Rust (MIT or \
         Apache-2.0).\n\n{list}"
    );
    for (text, names) in users {
        let names: Vec<String> = names.into_iter().collect();
        all += &format!("\n{}\n{}\n\n{}\n", "=".repeat(80), names.join(", "), text.trim());
    }
    Ok(all)
}

/// The packages that the program is linked from, without those of the checkout and those that only
/// build or test it.
fn built_in(metadata: &Value) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let node = |id: &str| nodes.iter().find(|node| node["id"] == id);
    let mut reached = BTreeSet::new();
    let mut open = vec![text(&metadata["resolve"]["root"])];
    while let Some(id) = open.pop() {
        let dependencies = node(&id).map(|node| list(&node["deps"])).unwrap_or_default();
        let linked = dependencies.iter().filter(|dependency| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
        });
        if reached.insert(id) {
            open.extend(linked.map(|dependency| text(&dependency["pkg"])));
        }
    }
    let packages = list(&metadata["packages"]);
    // What has no source is a part of the checkout.
    let foreign = packages
        .iter()
        .filter(|package| !package["source"].is_null() && reached.contains(&text(&package["id"])));
    let package = |package: &Value| Package {
        name: format!("{} {}", text(&package["name"]), text(&package["version"])),
        licence: text(&package["license"]),
        folder: Path::new(&text(&package["manifest_path"])).with_file_name(""),
    };
    foreign.map(package).collect()
}

/// The texts in the licence files of a package.
fn texts(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_licence = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        NAMES.iter().any(|begin| name.starts_with(begin)) && path.is_file()
    };
    paths.iter().filter(is_licence).map(|path| read(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_linked_is_listed_and_what_only_builds_is_not() {
        let package = |name: &str, source: Value| {
            let path = format!("/crates/{name}/Cargo.toml");
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT",
                   "source": source, "manifest_path": path})
        };
        let needs = |id: &str, kinds: &[Value]| {
            let kinds: Vec<Value> = kinds.iter().map(|kind| json!({"kind": kind})).collect();
            json!({"pkg": id, "dep_kinds": kinds})
        };
        let registry = json!("registry");
        let metadata = json!({
            "packages": [
                package("own", Value::Null), package("part", Value::Null),
                package("linked", registry.clone()), package("deep", registry.clone()),
                package("builds", registry.clone()), package("tests", registry.clone()),
            ],
            "resolve": {"root": "own", "nodes": [
                {"id": "own", "deps": [
                    needs("part", &[Value::Null]),
                    needs("builds", &[json!("build")]),
                    needs("tests", &[json!("dev")]),
                ]},
                {"id": "part", "deps": [needs("linked", &[json!("dev"), Value::Null])]},
                {"id": "linked", "deps": [needs("deep", &[Value::Null])]},
                {"id": "deep", "deps": [needs("linked", &[Value::Null])]},
            ]},
        });
        let found = built_in(&metadata);
        let names: Vec<&str> = found.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["linked 1.0.0", "deep 1.0.0"]);
        assert_eq!(found[0].folder, Path::new("/crates/linked"));
    }

    #[test]
    fn only_licence_files_of_a_package_are_taken() {
        let folder = std::env::temp_dir().join(format!("licences-{}", std::process::id()));
        fs::create_dir_all(folder.join("LICENSES")).unwrap();
        for name in ["License-MIT.txt", "COPYING", "README.md"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let found = texts(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, ["COPYING", "License-MIT.txt"]);
    }
}
