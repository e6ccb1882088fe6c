//! The counters with known answers: texts in one line each, so that they do not count themselves.

use super::*;

/// Counts a file whose lines `;;` separates.
fn census(text: &str) -> Census {
    let mut census = Census::default();
    census.add_file("a.rs", &text.replace(";;", "\n"));
    census
}

/// Asserts that a kind has these line numbers.
#[track_caller]
fn assert_lines(kind: &str, text: &str, lines: &[usize]) {
    let found: Vec<usize> = census(text).positions(kind).iter().map(|p| p.line).collect();
    assert_eq!(found, lines, "{kind} in {text}");
}

#[test]
fn forms_count_once_a_line_and_not_in_comments() {
    assert_lines("closures", "let f = |x| x;;  let mut g: F = move |x| x;;let h = a | b", &[1, 2]);
    assert_lines("closures", "// let f = |x| x;;f(|x| x)", &[]);
    assert_lines("tuple_parameters", "fn f((a, b): (u8, u8)) {;;let (a, b): (u8, u8) = c", &[1]);
    assert_lines("tuple_lets", "let (a, mut b) = (1, 2);;let (a, b) = f();;let a = (1, 2)", &[1]);
    assert_lines("limit_names", &["const M", "OST_X: u8 = 1;;const MAX_X: u8"].concat(), &[1]);
    assert_lines("vague_functions", "pub(crate) fn of(a);;fn take_all();;const fn at()", &[1, 3]);
    assert_lines("vague_types", "pub struct Word;;enum Wording {;;type Line = u8", &[1, 3]);
    let look = ["    const L", "OOK: u8 = 1;;const LOOKS: u8 = 1"].concat();
    assert_lines("look_constants", &look, &[1]);
}

#[test]
fn two_arms_on_a_boolean_are_one_match() {
    let arms =
        "match a {;;    true => b,;;    false if c => d,;;    false => e,;;    Some(true) => f";
    assert_lines(MATCH_BOOL, arms, &[2, 3, 4]);
    assert_eq!(census(arms).figures()[MATCH_BOOL], 1);
}

#[test]
fn only_the_first_line_of_a_doc_comment_counts() {
    assert_lines(ODD_DOCS, "/// What it is.;;/// Where it is.;;fn f()", &[1]);
    assert_lines(ODD_DOCS, "//! `Of` a run;;;;/// Whatever;;//// What", &[1]);
    assert_lines(ODD_DOCS, "///;;/// Whether it is.", &[]);
}

#[test]
fn docs_of_functions_begin_with_a_verb() {
    let docs =
        "/// Returns one.;;#[inline];;pub fn f();;/// The sum.;;unsafe fn g();;/// A.;;struct S";
    assert_lines(VERB_DOCS, docs, &[4]);
    assert_eq!(census(docs).figures()[VERB_DOCS], 500);
    assert_lines(VERB_DOCS, "/// Whose it is.;;fn f();;/// Its sums.;;fn g()", &[1, 3]);
}

#[test]
fn private_words_count_in_comments_alone() {
    assert_lines(PRIVATE_WORDS, "// beside it;;/// So many.;;let beside = 1;;//! besides", &[1, 2]);
}

#[test]
fn a_name_defined_three_times_is_repeated() {
    let mut census = census("struct A;;pub enum A {;;struct B;;struct B");
    assert_eq!(census.figures()[REPEATED_TYPES], 0);
    census.add_file("b.rs", "pub(crate) struct A;");
    assert_eq!(census.figures()[REPEATED_TYPES], 1);
    let positions = census.positions(REPEATED_TYPES);
    assert_eq!(positions.last().map(ToString::to_string), Some("b.rs:1".into()));
}

#[test]
fn generated_files_and_fuzz_targets_do_not_count() {
    assert!(is_counted("src/a.rs"));
    for file in ["src/a.toml", "fuzz/src/lib.rs", "a/bindings.rs", "a/generated/b.rs"] {
        assert!(!is_counted(file), "{file}");
    }
}

/// A ratchet of two kinds, with a comment above each.
const TWO: &str =
    "# Head.\n\n# Named closures:\n# fewer.\nclosures = 5\n\n# Verbs.\nverb_docs_permille = 300\n";

/// Compares two figures with `TWO`.
fn compare(closures: i64, verbs: i64) -> Vec<Deviation> {
    deviations(&Figures::from([("closures", closures), (VERB_DOCS, verbs)]), TWO).unwrap()
}

#[test]
fn counts_may_fall_and_the_share_of_verbs_may_rise() {
    assert_eq!(compare(5, 300), []);
    assert!(compare(6, 299).iter().all(Deviation::is_worse));
    assert!(!compare(4, 301).iter().any(Deviation::is_worse));
    assert_eq!(advice(TWO, "closures"), "Named closures: fewer.");
}

#[test]
fn an_update_only_tightens() {
    assert_eq!(tightened(TWO, &compare(4, 301)), TWO.replace("= 5", "= 4").replace("300", "301"));
    assert_eq!(tightened(TWO, &compare(6, 299)), TWO);
}

#[test]
fn the_ratchet_names_exactly_the_kinds_that_are_counted() {
    let only_closures = Figures::from([("closures", 5)]);
    assert!(deviations(&only_closures, TWO).unwrap_err().contains("nothing counts"));
    let more = Figures::from([("closures", 5), (VERB_DOCS, 300), ("x", 0)]);
    assert!(deviations(&more, TWO).unwrap_err().contains("x needs a whole number"));
}

#[test]
fn places_on_added_lines_are_listed_first() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1,2 @@ fn f\n+x\n+y\n@@ -9,2 +10,0 @@\n-z\n";
    let added = parse_diff(diff);
    assert_eq!(added["a.rs"], [1..3, 10..10]);
    let all = [("a.rs", 2), ("a.rs", 10), ("b.rs", 1)];
    let all = all.map(|(file, line)| Position { file: file.into(), line });
    assert_eq!(listing(&all, &added), "  on added lines:\n    a.rs:2\n");
    assert_eq!(listing(&all[1..], &added), "  in changed files:\n    a.rs:10\n");
    assert_eq!(listing(&all[2..], &added), "  in the tree:\n    b.rs:1\n");
}

#[test]
fn a_lint_is_demanded_once_its_kind_no_longer_occurs() {
    let none_left = Figures::from([(MATCH_BOOL, 0)]);
    let table = "[workspace.lints.clippy]\nmatch_bool = ";
    let denying = [format!("{table}\"deny\""), format!("{table}{{ level = \"deny\" }}")];
    for manifest in denying {
        assert!(
            lints_to_deny(&none_left, &parse_toml(&manifest).unwrap()).is_empty(),
            "{manifest}"
        );
    }
    for manifest in ["[workspace]".into(), format!("{table}\"warn\"")] {
        let manifest = parse_toml(&manifest).unwrap();
        assert_eq!(lints_to_deny(&none_left, &manifest).len(), 1);
        assert!(lints_to_deny(&Figures::from([(MATCH_BOOL, 1)]), &manifest).is_empty());
    }
}
