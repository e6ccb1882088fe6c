//! What earlier runs decided, so that a run that was ended goes on where it was.
//!
//! A mutant that was noticed, or that the compiler refused, stays so until its file changes. To try
//! all of them again, remove the file.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::PathBuf;

use super::generate::{Mutant, Place};

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The test that failed, or how the tests ended.
    Noticed(String),
    /// No test failed.
    Survived,
    /// No test came to its place.
    NotReached,
    /// It does not compile.
    Refused,
}

pub struct Decided {
    path: PathBuf,
    verdicts: BTreeMap<String, Verdict>,
}

impl Decided {
    pub fn read(path: PathBuf) -> Decided {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let read = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
            [key, "refused"] => Some((key.to_owned(), Verdict::Refused)),
            [key, "noticed", by] => Some((key.to_owned(), Verdict::Noticed(by.to_owned()))),
            _ => None,
        };
        Decided { verdicts: text.lines().filter_map(read).collect(), path }
    }

    pub fn verdict(&self, key: &str) -> Option<&Verdict> {
        self.verdicts.get(key)
    }

    /// Keeps what a further test cannot change.
    pub fn keep(&self, key: &str, verdict: &Verdict) -> Result<(), String> {
        let line = match verdict {
            Verdict::Noticed(by) => format!("{key}\tnoticed\t{by}\n"),
            Verdict::Refused => format!("{key}\trefused\n"),
            Verdict::Survived | Verdict::NotReached => return Ok(()),
        };
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

/// Names a mutant for as long as its file, but for its tests, remains as it is.
pub fn key(mutant: &Mutant, text: &str) -> String {
    let own = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(own, _)| own);
    let mut hasher = DefaultHasher::new();
    (own, &mutant.instead).hash(&mut hasher);
    let at = match &mutant.place {
        Place::Body(at) => *at..*at,
        Place::Expression(at) => at.clone(),
    };
    format!("{}:{}-{}:{:x}", mutant.file, at.start, at.end, hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::generate;

    #[test]
    fn a_key_is_of_one_mutant_of_the_source_without_its_tests() {
        let keys = |text: &str| -> Vec<String> {
            let found = generate::mutants("a.rs", text).unwrap();
            found.iter().map(|mutant| key(mutant, text)).collect()
        };
        let before = keys("fn f(a: u64) -> u64 { a + 1 }");
        assert_eq!(before.len(), 3);
        assert!(before[0] != before[1] && before[1] != before[2]);
        assert_ne!(before, keys("fn f(a: u64) -> u64 { a + 2 }"));
        let with_tests = |number| {
            let text = "fn f(a: u64) -> u64 { a + 1 }\n#[cfg(test)]\nmod tests { const A: u8 = ";
            keys(&format!("{text}{number}; }}"))
        };
        assert_eq!(with_tests(1), with_tests(2));
    }
}
