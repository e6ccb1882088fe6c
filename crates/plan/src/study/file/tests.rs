//! What a study's text promises.

use super::*;
use crate::study::{GraphKind, Spread};
use proptest::prelude::*;

/// Reads a study of the commands that there are.
fn parse(file: &str, text: &str) -> Result<StudyFile, Misplaced> {
    super::parse(&wiregauge_patterns::registry::names(), file, text)
}

const GOOD: &str = r#"
title = "a question"
source = "a book"

[all]
rounds = 3
size = "8..64*2"

[[latency]]
series = "tcp"
transport = "tcp"

[[bandwidth]]
series = "stream"
transport = ["tcp", "unix"]
size = 64

[[latency]]
series = "tcp"
transport = "tcp"
size = 1_024
check = true

[[graph]]
title = "one"
kind = "against-size"
metric = "half_rtt"
quantile = 0.99
spread = "deciles"
series = ["tcp"]
  [[graph.reference]]
  file = "gamess"
  table = "send-latency-rc"
  column = "link-rate"
  beside = "tcp"

[[graph]]
title = "two"
kind = "bars"
metric = "bandwidth"
size = "64B"
"#;

fn refusal(text: &str) -> String {
    match parse("s.toml", text) {
        Err(wrong) => wrong.to_string(),
        Ok(found) => panic!("{text}: {found:?}"),
    }
}

#[test]
fn a_study_is_read_in_the_order_in_which_it_is_written() {
    let study = parse("s.toml", GOOD).unwrap();
    assert_eq!((study.title.as_str(), study.source.as_deref()), ("a question", Some("a book")));
    let commands: Vec<&str> = study.entries.iter().map(|entry| entry.command).collect();
    assert_eq!(commands, ["latency", "bandwidth", "latency"]);
    assert_eq!(series(&study.entries), ["tcp", "stream"]);
    let words = |entry: usize| -> Vec<(String, WordValue)> {
        let words = study.entries[entry].words.iter();
        words.map(|word| (word.key.clone(), word.value.clone())).collect()
    };
    let text = |key: &str, value: &str| (key.to_owned(), WordValue::Text(value.to_owned()));
    assert_eq!(words(0), [text("rounds", "3"), text("size", "8..64*2"), text("transport", "tcp")]);
    assert_eq!(words(1), [text("rounds", "3"), text("transport", "tcp,unix"), text("size", "64")]);
    assert_eq!(words(2)[3], ("check".to_owned(), WordValue::Switch(true)));
}

#[test]
fn a_stream_is_an_entry_and_a_graph_has_more_than_one_metric() {
    let text = "title = \"t\"\n[[stream]]\nseries = \"s\"\nrate = [100, \"1k\"]\n\
                [[load]]\nseries = \"l\"\nclients = 4\n[[graph]]\ntitle = \"g\"\n\
                kind = \"against-clients\"\nmetric = \"empty_poll_time\"\n\
                also = [\"full_poll_time\"]\nseries = [\"l\"]\n";
    let study = parse("s.toml", text).unwrap();
    let commands: Vec<&str> = study.entries.iter().map(|entry| entry.command).collect();
    assert_eq!(commands, ["stream", "load"]);
    let graph = &study.graphs[0].graph;
    assert_eq!(graph.kind, GraphKind::AgainstClients);
    assert_eq!(graph.metrics().collect::<Vec<_>>(), ["empty_poll_time", "full_poll_time"]);
}

#[test]
fn graphs_have_their_defaults_and_their_references() {
    let study = parse("s.toml", GOOD).unwrap();
    let [one, two] = study.graphs.as_slice() else { panic!() };
    assert_eq!((one.graph.kind, one.graph.spread), (GraphKind::AgainstSize, Spread::Deciles));
    assert_eq!((one.graph.quantile, one.graph.series.as_slice()), (0.99, &["tcp".to_owned()][..]));
    assert_eq!(one.references[0].beside.as_ref().unwrap().0, "tcp");
    assert_eq!((two.graph.quantile, two.graph.spread), (0.5, Spread::Interval));
    assert_eq!((two.graph.series.len(), two.graph.size), (2, Some(Bytes(64))));
}

#[test]
fn a_graph_shows_maxima_shares_and_ratios_where_it_says_so() {
    let graph = |rest: &str| format!("{GOOD}\n[[graph]]\ntitle = \"t\"\nkind = \"bars\"\n{rest}");
    let parsed = |rest| parse("s.toml", &graph(rest)).unwrap().graphs.pop().unwrap().graph;
    let plain = parsed("metric = \"rtt\"");
    assert_eq!((plain.what(), plain.above, plain.each_way), ("rtt".into(), false, false));
    let maximum = parsed("metric = \"rtt\"\nquantile = 1");
    assert_eq!((maximum.what(), maximum.quantile), ("rtt".into(), 1.0));
    assert_eq!(parsed("metric = \"rtt\"\nabove = true").what(), "rtt above the threshold");
    assert!(parsed("metric = \"bandwidth\"\neach-way = true").each_way);
    let ratio = parsed("metric = \"rtt\"\nover = [[\"stream\", \"tcp\"]]");
    assert_eq!(
        (ratio.what(), ratio.series.as_slice()),
        ("the ratio of two rtt".into(), &["stream".to_owned()][..])
    );
    assert_eq!((ratio.base_of("stream"), ratio.base_of("tcp")), (Some("tcp"), None));
    let rest = parsed("metric = \"rtt\"\nless = [[\"stream\", \"tcp\"]]");
    assert_eq!((rest.what(), rest.series.len()), ("rtt less that of others".into(), 1));
    assert_eq!((rest.parts_of("stream"), rest.parts_of("tcp")), (&["tcp".into()][..], &[][..]));
    for (rest, says) in [
        ("metric = \"rtt\"\nless = [[\"stream\"]]", "less lists a series and those"),
        ("metric = \"rtt\"\nover = [[\"stream\"]]", "over lists pairs of series"),
        ("metric = \"rtt\"\nover = [[\"stream\", \"x\"]]", "unknown series 'x'"),
        ("metric = \"rtt\"\nquantile = 2", "or 1 for the maximum"),
    ] {
        assert!(refusal(&graph(rest)).contains(says), "{rest}: {}", refusal(&graph(rest)));
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_is_allowed() {
    let entry = "title = \"t\"\n[[latency]]\nseries = \"s\"\n";
    let graph = "title = \"t\"\n[[latency]]\nseries = \"s\"\n[[graph]]\ntitle = \"g\"\n";
    let graph_of = |rest: &str| format!("{graph}{rest}");
    for (text, says) in [
        ("", "s.toml:1:1: a study needs 'title'".to_owned()),
        ("title = 5", "s.toml:1:9: 'title' is an integer: write a text in quotes".into()),
        ("title = \"\"", "s.toml:1:9: write one line of 1 to 500 characters".into()),
        ("title = \"t\"\n", "s.toml:1:1: a study has 1 to 200 entries, not 0; write one as".into()),
        ("title = \"t\"\n[[latncy]]\n", "s.toml:2:3: a study has no key 'latncy': use".into()),
        ("title = \"t\"\n[latency]\n", "'latency' is a table: write a list in [ ]".into()),
        ("title = \"t\"\n[[latency]]\n", "s.toml:2:1: latency needs 'series'".into()),
        (
            "title = \"t\"\n[[latency]]\nseries = \"a,b\"",
            "s.toml:3:10: the name of a series".into(),
        ),
        ("title = [", "s.toml:1:10: invalid TOML: ".into()),
        ("title = \"a\"\ntitle = \"b\"\n", "s.toml:2:1: invalid TOML: duplicate key".into()),
        (&format!("{entry}cpus = \"0,1\"\n"), "s.toml:4:1: 'cpus' applies to the whole run".into()),
        (&format!("{entry}rank = 0\n"), "s.toml:4:1: 'rank' applies to the whole run".into()),
        (&format!("{entry}ranks = 2\n"), "s.toml:4:1: 'ranks' applies to the whole run".into()),
        (&format!("{entry}leader = \"a\"\n"), "s.toml:4:1: 'leader' applies to the".into()),
        (&format!("{entry}rounds = 3\n"), "write it below [all]".into()),
        (&format!("[all]\nout = \"x\"\n{entry}"), "s.toml:1:1: a study needs 'title'".into()),
        ("title = \"t\"\nall = 3", "s.toml:2:7: 'all' is an integer: write a table".into()),
        (&format!("{entry}size = {{ a = 1 }}\n"), "s.toml:4:8: 'size' is a table".into()),
        (&format!("{entry}size = 0x10\n"), "s.toml:4:8: 'size' is an integer".into()),
        (&graph_of("kind = \"pie\"\nmetric = \"rtt\"\n"), "s.toml:6:8: unknown kind 'pie'".into()),
        (&graph_of("kind = \"cdf\"\n"), "s.toml:4:1: a graph needs 'metric'".into()),
        (
            &graph_of("kind = \"cdf\"\nmetric = \"rtt\"\nquantile = 0.95\n"),
            "s.toml:8:12: unknown quantile 0.95: use 0.1, 0.5, 0.9, 0.99, 0.999".into(),
        ),
        (
            &graph_of("kind = \"cdf\"\nmetric = \"rtt\"\nseries = [\"s\", \"x\"]\n"),
            "s.toml:8:16: unknown series 'x': use s".into(),
        ),
        (
            &graph_of("kind = \"cdf\"\nmetric = \"rtt\"\nspread = \"wide\"\n"),
            "s.toml:8:10: unknown spread 'wide': use interval, deciles".into(),
        ),
        (
            &graph_of("kind = \"cdf\"\nmetric = \"rtt\"\n[[graph.reference]]\nfile = \"a\"\n"),
            "s.toml:8:1: a reference needs 'table'".into(),
        ),
        (&graph_of("kind = \"cdf\"\nmetric = \"rtt\"\ncolour = 1\n"), "has no key 'colour'".into()),
        (
            &graph_of("kind = \"cdf\"\nmetric = \"rtt\"\nalso = [\"half_rtt\"]\n"),
            "s.toml:8:9: cdf shows one metric: write one graph for each".into(),
        ),
        (
            "title = \"t\"\n[[stream]]\nseries = \"s\"\nfile = \"a.csv\"\n",
            "s.toml:4:1: 'file' is not available here: a study writes no sample files: use \
             `wiregauge stream --file out.csv`"
                .into(),
        ),
        (
            "title = \"t\"\n[[load]]\nseries = \"s\"\nslo = \"p99<50us\"\n",
            "s.toml:4:1: 'slo' is not available here: a study does not search for rates".into(),
        ),
    ] {
        let sentence = refusal(text);
        assert!(sentence.contains(&says), "{text}\n{sentence}\n{says}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
}

#[test]
fn a_text_that_is_too_long_is_not_read() {
    let text = "#".repeat(crate::written::LONGEST + 1);
    assert!(refusal(&text).contains("exceeds the limit of 1048576 B"));
    let many = "[[latency]]\nseries = \"s\"\n".repeat(201);
    assert!(refusal(&format!("title = \"t\"\n{many}")).contains("1 to 200 entries, not 201"));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _ = parse("s.toml", &text);
    }

    #[test]
    fn no_study_with_something_else_in_it_panics(
        at in 0usize..700, cut in 0usize..40, new in "[\\PC\n]{0,12}",
    ) {
        let last = GOOD.len();
        let boundary =
            |at: usize| (0..=at.min(last)).rev().find(|at| GOOD.is_char_boundary(*at));
        let (start, end) = (boundary(at).unwrap(), boundary(at + cut).unwrap());
        let text = format!("{}{new}{}", &GOOD[..start], &GOOD[end..]);
        if let Err(wrong) = parse("s.toml", &text) {
            prop_assert!(!wrong.to_string().contains(char::is_control), "{:?}", wrong);
            prop_assert_eq!(wrong.marked().lines().count(), 3);
        }
    }
}
