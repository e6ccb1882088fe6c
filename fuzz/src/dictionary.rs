//! libFuzzer's dictionaries: a word a line, in quotes, with `\\`, `\"` and `\xAB` for bytes that
//! cannot stand there; `#` begins a comment.

use std::fs;
use std::path::Path;

/// Reads the words of a dictionary.
///
/// # Panics
/// It cannot be read, or a line is no word: libFuzzer would refuse it, too.
pub(crate) fn read(file: &Path) -> Vec<Vec<u8>> {
    let shown = file.display();
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| word(line).unwrap_or_else(|| panic!("{shown}: no word: {line}"))).collect()
}

/// Reads one line, if it is a word.
fn word(line: &str) -> Option<Vec<u8>> {
    let mut bytes = line.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut word = Vec::new();
    while let Some(byte) = bytes.next() {
        word.push(match byte {
            b'\\' => match bytes.next()? {
                b'x' => {
                    let digits = [bytes.next()?, bytes.next()?];
                    u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
                }
                escaped @ (b'\\' | b'"') => escaped,
                _ => return None,
            },
            b'"' => return None,
            plain => plain,
        });
    }
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TARGETS;
    use crate::mutate::root;
    use std::collections::BTreeSet;

    #[test]
    fn words_are_read_as_libfuzzer_reads_them() {
        assert_eq!(word(r#""a\x00\\\"b""#).as_deref(), Some(&b"a\0\\\"b"[..]));
        for wrong in ["a", "\"", "\"\"", r#""\n""#, r#""\x0""#, r#""a"b""#] {
            assert_eq!(word(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_target_has_a_dictionary_and_each_dictionary_a_target() {
        let used: BTreeSet<&str> = TARGETS.iter().map(|target| target.dictionary).collect();
        for dictionary in &used {
            assert!(!read(&root().join(dictionary)).is_empty(), "{dictionary}");
        }
        let there = fs::read_dir(root().join("fuzz/dictionaries")).expect("the folder is there");
        assert_eq!(there.count(), used.len(), "{used:?}");
    }
}
