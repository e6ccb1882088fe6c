//! No source file depends on itself by way of others of its package; cargo refuses circles of
//! packages.
//!
//! A file depends on another where it names an item that is defined there: by `use`, or by a path
//! in its code. A re-export counts for the file that it leads to, and is itself no dependence:
//! a parent may declare and re-export its children. Not counted is a child that names a type of a
//! module above it (the contract of its folder): functions and constants that both need go into a
//! file of their own. Tests do not count.

use super::{Source, in_crate, none, sources};
use std::collections::{BTreeMap, BTreeSet};

type Path = Vec<String>;

/// Paths and re-exports of a file.
#[derive(Default)]
struct Mentions {
    /// Paths from the crate's root to what it uses.
    uses: Vec<Path>,
    /// Re-exports: the name here, and the path that it leads to.
    exports: BTreeMap<String, Path>,
}

struct Tree {
    /// The file of each module.
    files: BTreeMap<Path, String>,
    mentions: BTreeMap<String, Mentions>,
}

/// The module of a file: a::b of `src/a/b.rs` and of `src/a/b/mod.rs`, in any package.
fn module(file: &str) -> Path {
    let inner = in_crate(file).trim_end_matches(".rs");
    let parts = inner.split('/').filter(|part| !["mod", "lib"].contains(part));
    parts.map(String::from).collect()
}

/// Names, `::`, and single signs.
fn tokens(code: &str) -> Vec<String> {
    let chars: Vec<char> = code.chars().collect();
    let in_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let (mut all, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let length = match chars[at] {
            ':' if chars.get(at + 1) == Some(&':') => 2,
            c if in_word(&c) => chars[at..].iter().take_while(|c| in_word(c)).count(),
            _ => 1,
        };
        let token: String = chars[at..at + length].iter().collect();
        if !token.trim().is_empty() {
            all.push(token);
        }
        at += length;
    }
    all
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The paths of a tree of `use` that begins at `at`, each with the name that it has here; moves
/// `at` behind the tree.
fn leaves(tokens: &[String], at: &mut usize, prefix: &Path, found: &mut Vec<(Path, String)>) {
    let mut path = prefix.clone();
    let mut name = None;
    while let Some(token) = tokens.get(*at).filter(|token| !["}", ",", ";"].contains(&&***token)) {
        *at += 1;
        match token.as_str() {
            "{" => {
                while tokens.get(*at).is_some_and(|token| !["}", ";"].contains(&&**token)) {
                    leaves(tokens, at, &path, found);
                    *at += usize::from(tokens.get(*at).is_some_and(|token| token == ","));
                }
                *at += 1;
                return;
            }
            "as" => name = tokens.get(*at).cloned(),
            "self" if !path.is_empty() => {}
            token if name.is_none() && (is_name(token) || token == "*") => path.push(token.into()),
            _ => {}
        }
    }
    if let Some(last) = path.last().cloned() {
        found.push((path, name.unwrap_or(last)));
    }
}

impl Tree {
    fn of(sources: &[Source]) -> Tree {
        let files = sources.iter().map(|source| (module(&source.path), source.path.clone()));
        let mut tree = Tree { files: files.collect(), mentions: BTreeMap::new() };
        for source in sources {
            let mentions = tree.mentions_of(source);
            tree.mentions.insert(source.path.clone(), mentions);
        }
        tree
    }

    fn mentions_of(&self, source: &Source) -> Mentions {
        let tokens = tokens(&source.code.join("\n"));
        let is = |at: usize, token: &str| tokens.get(at).is_some_and(|other| other == token);
        let own = module(&source.path);
        let mut mentions = Mentions::default();
        // Modules by the names that they have here.
        let mut known: BTreeMap<String, Path> = BTreeMap::new();
        let mut at = 0;
        while at < tokens.len() {
            let mut paths = Vec::new();
            // `use<..>` of a type is another thing.
            let is_use = tokens[at] == "use" && !is(at + 1, "<");
            let is_public = at > 0 && (is(at - 1, "pub") || is(at - 1, ")"));
            if is_use {
                at += 1;
                leaves(&tokens, &mut at, &Vec::new(), &mut paths);
            } else if is_name(&tokens[at]) && is(at + 1, "::") {
                let first = at;
                while is(at + 1, "::") && tokens.get(at + 2).is_some_and(|next| is_name(next)) {
                    at += 2;
                }
                let path: Path = tokens[first..=at].iter().step_by(2).cloned().collect();
                paths.push((path, String::new()));
            }
            at += 1;
            for (path, name) in paths {
                let Some(path) = self.absolute(&own, &known, &path) else { continue };
                let is_module = self.files.contains_key(&path);
                if is_module {
                    known.insert(name.clone(), path.clone());
                }
                if is_use && is_public {
                    mentions.exports.insert(name, path.clone());
                    // What a parent hands on of its children is no use of them.
                    if path.starts_with(&own) {
                        continue;
                    }
                }
                if !is_module {
                    mentions.uses.push(path);
                }
            }
        }
        mentions
    }

    /// A path from the crate's root; `None` where it leads elsewhere.
    fn absolute(&self, own: &Path, known: &BTreeMap<String, Path>, path: &Path) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let child = || [own.clone(), vec![first.clone()]].concat();
        let ups = path.iter().take_while(|part| *part == "super").count();
        Some(match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [own, rest].concat(),
            "super" => [&own[..own.len().checked_sub(ups)?], &path[ups..]].concat(),
            _ if known.contains_key(first) => [&known[first], rest].concat(),
            _ if self.files.contains_key(&child()) => [own, &path[..]].concat(),
            _ => return None,
        })
    }

    /// The file where a path ends, and the item there.
    fn leads_to(&self, path: &Path, depth: usize) -> Option<(&String, Option<String>)> {
        let length = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
        let file = &self.files[&path[..length]];
        let item = path.get(length);
        let export = item.and_then(|item| self.mentions[file].exports.get(item));
        match export.filter(|_| depth < 8) {
            Some(export) => {
                let whole = [export, &path[length + 1..]].concat();
                self.leads_to(&whole, depth + 1)
            }
            None => Some((file, item.cloned())),
        }
    }

    /// The files on which each depends.
    fn dependences(&self) -> BTreeMap<&String, BTreeSet<&String>> {
        let mut all: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for (file, mentions) in &self.mentions {
            let others = all.entry(file).or_default();
            for (other, item) in mentions.uses.iter().filter_map(|path| self.leads_to(path, 0)) {
                let is_type = item.is_some_and(|item| {
                    item.starts_with(char::is_uppercase) && item.contains(char::is_lowercase)
                });
                let is_above = module(file).starts_with(&module(other));
                if other != file && !(is_above && is_type) {
                    others.insert(other);
                }
            }
        }
        all
    }
}

/// All that can be reached from a file, over one step at least.
fn reached<'a>(
    from: &String,
    dependences: &BTreeMap<&'a String, BTreeSet<&'a String>>,
) -> BTreeSet<&'a String> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(file) = next.pop() {
        for other in dependences.get(file).into_iter().flatten() {
            if found.insert(*other) {
                next.push(other);
            }
        }
    }
    found
}

/// Files that depend on each other, each group once.
fn circles(sources: &[Source]) -> Vec<Vec<String>> {
    let tree = Tree::of(sources);
    let dependences = tree.dependences();
    let all: BTreeMap<_, _> =
        dependences.keys().map(|file| (*file, reached(file, &dependences))).collect();
    let circle = |file: &String| -> Vec<String> {
        let mutual = all[file].iter().filter(|other| all[**other].contains(file));
        mutual.map(|other| (*other).clone()).collect()
    };
    let found: BTreeSet<Vec<String>> =
        all.keys().map(|file| circle(file)).filter(|circle| circle.len() > 1).collect();
    found.into_iter().collect()
}

#[test]
fn no_files_depend_on_each_other_in_a_circle() {
    let mut packages: BTreeMap<&str, Vec<Source>> = BTreeMap::new();
    for source in sources() {
        packages.entry(&source.package).or_default().push(source.clone());
    }
    let found: Vec<Vec<String>> = packages.values().flat_map(|sources| circles(sources)).collect();
    let broken: Vec<String> =
        found.iter().map(|circle| format!("a circle of imports: {}", circle.join(", "))).collect();
    none(&broken);
}

#[test]
fn a_circle_is_found_through_re_exports_and_types_of_a_parent_are_none() {
    let source = |path: &str, code: &str| Source {
        path: path.into(),
        package: String::new(),
        module: String::new(),
        code: code.lines().map(String::from).collect(),
        lines: Vec::new(),
    };
    let parent = "mod b;\nmod c;\npub use b::{f, g as h};\nfn top() { c::run() }";
    let types = [
        source("src/a/mod.rs", parent),
        source("src/a/b.rs", "use super::Contract;"),
        source("src/a/c.rs", "use crate::a::{self, Contract};\nfn run() { a::h() }"),
    ];
    assert_eq!(circles(&types), Vec::<Vec<String>>::new());
    let through = [
        source("src/a/mod.rs", parent),
        source("src/a/b.rs", "use super::c;\nfn g() { c::run() }"),
        source("src/a/c.rs", "use crate::a::{self, Contract};\nfn run() { a::h() }"),
    ];
    assert_eq!(circles(&through), [["src/a/b.rs", "src/a/c.rs"]]);
}
