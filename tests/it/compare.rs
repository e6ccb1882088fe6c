//! `wiregauge compare`: verdicts with their exit codes, what differs between two records, and that
//! the samples are those of the record.

use crate::support::Scratch;
use crate::support::program::{Printed, wiregauge};
use serde_json::{Value, json};

/// Measures simulated round trips into a directory of this name.
fn measured(scratch: &Scratch, name: &str, delays: &str, more: &[&str]) {
    let usual = ["latency", "--transport", "synthetic", "--count", "2000", "--out", name];
    let arguments = [&usual, &["--synthetic", delays][..], more].concat();
    let ended = wiregauge(&scratch.0, &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Changes `record.json` of a run directory.
fn edited(scratch: &Scratch, name: &str, edit: impl FnOnce(&mut Value)) {
    let path = scratch.join(name).join("record.json");
    let mut record = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(&mut record);
    std::fs::write(path, serde_json::to_vec(&record).unwrap()).unwrap();
}

fn compared(scratch: &Scratch, arguments: &[&str]) -> Printed {
    wiregauge(&scratch.0, &[&["compare"], arguments].concat())
}

#[test]
fn each_verdict_has_its_exit_code() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(3us)", &[]);
    measured(&scratch, "once", "constant(3us)", &["--rounds", "1"]);
    let judged = |b: &str, limits: &[&str], more: &[&str]| {
        let limits: Vec<&str> = limits.iter().flat_map(|limit| ["--fail-if", limit]).collect();
        compared(&scratch, &[&["a", b], limits.as_slice(), more].concat())
    };
    let held = judged("b", &["rtt.p50>+60%", "rtt.max<1us"], &[]);
    assert_eq!(held.code, Some(0), "{held:?}");
    let line = "limit rtt.p50>+60% (latency synthetic busy 64 B): held: +50 % (+50 % to +50 %)";
    assert!(held.stdout.contains(line), "{held:?}");
    let exceeded = judged("b", &["rtt.p50>+40%"], &[]);
    assert_eq!(exceeded.code, Some(1), "{exceeded:?}");
    assert!(exceeded.stdout.contains("exceeded: +50 %"), "{exceeded:?}");
    let answer = "B is 50 % slower at p50 (50..50 %), 50 % slower at p99 (50..50 %)";
    assert!(exceeded.stdout.contains(answer), "{exceeded:?}");
    let unknown = judged("once", &["rtt.max>+40%"], &[]);
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
    let why = "inconclusive: rtt.max has no interval: measure 6 rounds or more";
    assert!(unknown.stdout.contains(why), "{unknown:?}");
    assert_eq!(judged("once", &["rtt.max>+40%"], &["--strict"]).code, Some(1));
    let both = judged("once", &["rtt.max>+40%", "rtt.min>1us"], &[]);
    assert_eq!(both.code, Some(5), "min has no interval either: {both:?}");
    let worst = judged("b", &["rtt.p50>+40%", "rtt.p99.99>+1%"], &[]);
    assert_eq!(worst.code, Some(1), "exceeded is worse than inconclusive: {worst:?}");
    let nothing = judged("b", &["bandwidth<-1%"], &[]);
    assert_eq!(nothing.code, Some(5), "{nothing:?}");
    assert!(nothing.stdout.contains("no run measured bandwidth"), "{nothing:?}");
    let alone = compared(&scratch, &["a", "b", "--strict"]);
    assert_eq!(alone.code, Some(2), "--strict without a limit: {alone:?}");
}

#[test]
fn an_inconclusive_pair_says_what_it_could_have_shown_and_what_would_decide() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "exponential(1us,1us)", &[]);
    measured(&scratch, "b", "exponential(1us,1us)", &["--seed", "2"]);
    let ended = compared(&scratch, &["a", "b", "--fail-if", "rtt.p99>+1%", "--json"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let limit = &all["limits"][0];
    assert_eq!(limit["verdict"], "inconclusive");
    let share = |value: &Value| value.as_f64().unwrap();
    let ends = ["low", "high"].map(|end| share(&limit["interval"][end]));
    assert!(ends[0] < 0.01 && ends[1] > 0.01, "{limit}");
    let measured = share(&limit["measured"]);
    let half = (ends[1] - measured).max(measured - ends[0]);
    assert_eq!(share(&limit["smallest_change"]), half, "{limit}");
    let sentence = limit["sentence"].as_str().unwrap();
    assert!(sentence.contains("; these runs cannot show a change below "), "{sentence}");
    let more = &limit["needed"];
    let rounds = more["rounds"].as_u64().or(more["more_than"].as_u64()).unwrap();
    let known =
        [format!("about {rounds} rounds would decide"), format!("more than {rounds} rounds")];
    assert!(rounds > 6 && known.iter().any(|part| sentence.contains(part)), "{limit}");
    let ended = compared(&scratch, &["a", "b", "--fail-if", "rtt.max>+1%", "--json"]);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let limit = &all["limits"][0];
    assert_eq!((&limit["verdict"], &limit["needed"]), (&json!("inconclusive"), &json!(null)));
    let sentence = limit["sentence"].as_str().unwrap();
    assert!(sentence.contains("; more rounds need not settle rtt.max: "), "{sentence}");
}

#[test]
fn what_differs_is_told_worst_first() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(2us)", &["--size", "128", "--seed", "7"]);
    edited(&scratch, "b", |record| {
        record["environment"]["host"] = json!("elsewhere");
        record["environment"]["kernel"] = json!("9.9.9");
        record["environment"]["memory"]["total_bytes"] = json!(1);
        record["environment"]["load_average"] = json!([99.0, 99.0, 99.0]);
        record["environment"]["cpus"] = json!([{"cpu": 5, "governor": "powersave"}]);
        record["tool"] = json!("99.0.0");
    });
    let ended = compared(&scratch, &["a", "b"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let fields = |line: &str| -> Vec<String> {
        line.split("  ").filter(|part| !part.is_empty()).map(|part| part.trim().into()).collect()
    };
    let table = ended.stdout.split_once("\ndiffers").unwrap().1;
    let rows: Vec<Vec<String>> = table.lines().skip(1).map(fields).collect();
    let at = |what: &str, severity: &str| {
        let found = rows.iter().position(|row| row[0] == what && row[1] == severity);
        found.unwrap_or_else(|| panic!("{what} {severity}: {table}"))
    };
    let worst = [at("host", "severe"), at("size", "severe")];
    let weaker = ["kernel", "cpus.governor", "wiregauge"].map(|what| at(what, "warning"));
    let notes = [at("memory.total_bytes", "note"), at("seed", "note")];
    assert!(worst.iter().max() < weaker.iter().min(), "{table}");
    assert!(weaker.iter().max() < notes.iter().min(), "{table}");
    assert_eq!(rows[at("host", "severe")][3], "elsewhere");
    assert_eq!(rows[at("size", "severe")][2..], ["64", "128"]);
    assert!(!table.contains("load_average") && !table.contains("interrupts"), "{table}");
    let same = compared(&scratch, &["a", "a"]);
    assert_eq!(same.code, Some(2), "{same:?}");
    assert!(same.stderr.contains("A and B are the same runs"), "{same:?}");
}

#[test]
fn runs_that_have_no_counterpart_are_named() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &["--size", "64,128"]);
    measured(&scratch, "b", "constant(2us)", &["--size", "128,256"]);
    let all = compared(&scratch, &["a", "b", "--json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    let [answer] = all["answers"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert!(answer["runs"].as_str().unwrap().contains("128 B"), "{all}");
    let first = &all["conditions"][0];
    assert_eq!(first["what"], "runs without a counterpart");
    assert!(first["a"].as_str().unwrap().contains("64 B"), "{first}");
    assert!(first["b"].as_str().unwrap().contains("256 B"), "{first}");
}

/// The verdict on each limit, with its run.
fn verdicts(ended: &Printed) -> Vec<(String, String)> {
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let limits = all["limits"].as_array().unwrap().iter();
    limits.map(|limit| (text(&limit["runs"]), text(&limit["verdict"]))).collect()
}

#[test]
fn a_run_without_a_counterpart_keeps_no_gate_open() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &["--size", "64,128"]);
    measured(&scratch, "b", "constant(2us)", &["--size", "128,256"]);
    let of =
        |size: u32, verdict: &str| (format!("latency synthetic busy {size} B"), verdict.into());
    let compares = ["a", "b", "--json", "--fail-if", "rtt.p50>+60%"];
    let compares = compared(&scratch, &compares);
    let known = [of(128, "held"), of(64, "inconclusive"), of(256, "inconclusive")];
    assert_eq!((compares.code, verdicts(&compares)), (Some(5), known.to_vec()), "{compares:?}");
    assert!(compares.stdout.contains("inconclusive: B does not have this case"), "{compares:?}");
    assert!(compares.stdout.contains("inconclusive: A does not have this case"), "{compares:?}");
    // Whatever A has: each run of B by its own.
    let absolute = compared(&scratch, &["a", "b", "--json", "--fail-if", "rtt.p50>1us"]);
    let known = [of(128, "exceeded"), of(256, "exceeded")];
    assert_eq!((absolute.code, verdicts(&absolute)), (Some(1), known.to_vec()), "{absolute:?}");
    let held = compared(&scratch, &["a", "b", "--fail-if", "rtt.p50>1ms"]);
    assert_eq!(held.code, Some(0), "{held:?}");
}

#[test]
fn a_transport_that_was_not_measured_keeps_no_gate_open() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(2us)", &[]);
    let missing = json!([{"transport": "homa", "reason": "there is no Homa"}]);
    edited(&scratch, "b", |record| record["unavailable"] = missing);
    let judged = compared(&scratch, &["a", "b", "--json", "--fail-if", "rtt.p50>1ms"]);
    let known = [("latency synthetic busy 64 B", "held"), ("homa", "inconclusive")];
    let known = known.map(|(runs, verdict)| (runs.to_owned(), verdict.to_owned()));
    assert_eq!((judged.code, verdicts(&judged)), (Some(5), known.to_vec()), "{judged:?}");
    assert!(judged.stdout.contains("not measured: there is no Homa"), "{judged:?}");
    let of_one = ["a", "b@transport=synthetic", "--fail-if", "rtt.p50>1ms"];
    assert_eq!(compared(&scratch, &of_one).code, Some(0), "B is what was selected");
}

#[test]
fn a_figure_that_only_the_counterpart_has_is_inconclusive() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &["--size", "64,128"]);
    measured(&scratch, "b", "constant(2us)", &["--size", "64,128"]);
    edited(&scratch, "b", |record| {
        let figures = record["runs"][0]["figures"].as_array_mut().unwrap();
        figures.retain(|figure| figure["metric"] != "rtt");
    });
    let ended = compared(&scratch, &["a", "b", "--json", "--fail-if", "rtt.p50>1ms"]);
    let mut found: Vec<String> = verdicts(&ended).into_iter().map(|(_, verdict)| verdict).collect();
    found.sort_unstable();
    assert_eq!(found, ["held", "inconclusive"], "{ended:?}");
}

#[test]
fn a_baseline_of_other_cases_decides_nothing_and_is_kept() {
    let scratch = Scratch::new();
    let run = |sizes: &str, more: &[&str]| {
        let usual = ["latency", "--transport", "synthetic", "--count", "1000", "--size", sizes];
        wiregauge(&scratch.0, &[&usual, &["--synthetic", "constant(2us)"][..], more].concat())
    };
    assert_eq!(run("64,128", &["--save-baseline", "main"]).code, Some(0));
    let limits = ["--fail-if", "rtt.p50>+10%,rtt.p50>1ms"];
    let gate = [&["--baseline", "main", "--save-baseline", "main"], &limits[..]].concat();
    let changed = run("256,512", &[&gate[..], &["--junit", "gate.xml"]].concat());
    assert_eq!(changed.code, Some(5), "{changed:?}");
    assert!(changed.stdout.contains("nothing is compared"), "{changed:?}");
    let kept = "baseline main is kept, since a limit is inconclusive";
    assert!(changed.stderr.contains(kept), "{changed:?}");
    let junit = std::fs::read_to_string(scratch.join("gate.xml")).unwrap();
    assert!(junit.contains("tests=\"6\" failures=\"0\" errors=\"0\" skipped=\"4\""), "{junit}");
    assert_eq!(run("256,512", &gate).code, Some(5), "the baseline is what it was");
    assert_eq!(run("256,512", &["--save-baseline", "main"]).code, Some(0));
    assert_eq!(run("256,512", &gate).code, Some(0), "it was saved anew");
    // Of two directories that were named, a limit is judged and anything else is refused.
    measured(&scratch, "a", "constant(2us)", &["--size", "64,128"]);
    measured(&scratch, "b", "constant(2us)", &["--size", "256,512"]);
    assert_eq!(compared(&scratch, &["a", "b", "--fail-if", "rtt.p50>+10%"]).code, Some(5));
    for (sides, says) in [
        (["a", "b"], "no runs of the two match: select them as DIR@transport=tcp"),
        (["a", "b@size=8"], "'b@size=8' selects no run: select them as DIR@transport=tcp"),
    ] {
        let refused = compared(&scratch, &sides);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
}

/// A gate that was written for one case must not pass by another, whatever names it.
#[test]
fn a_gate_compares_no_case_with_another() {
    let scratch = Scratch::new();
    let run = |line: &str, more: &[&str]| {
        let words: Vec<&str> = ["latency", "--count", "300", "--rounds", "3"]
            .into_iter()
            .chain(line.split(' '))
            .chain(more.iter().copied())
            .collect();
        wiregauge(&scratch.0, &words)
    };
    let usual = "--transport unix --wait block --size 64";
    assert_eq!(run(usual, &["--save-baseline", "ci", "--out", "a"]).code, Some(0));
    let gate = ["--baseline", "ci", "--fail-if", "half_rtt.p50>+1000%"];
    for (line, says) in [
        ("--transport unixgram --wait block --size 64", "transport unixgram, not unix"),
        ("--transport unix --wait block --size 128", "size 128, not 64"),
        ("--transport unix --wait adaptive --size 64", "wait adaptive, not block"),
        ("--transport unix --wait block --size 64 --send-buffer 64KiB", "settings.send-buffer"),
        ("--transport unix --wait block --size 64 --check", "check true, not false"),
    ] {
        let ended = run(line, &gate);
        assert_eq!(ended.code, Some(5), "{line}: {ended:?}");
        let why = ended.stdout.lines().find(|line| line.contains("ci does not have this case"));
        assert!(why.is_some_and(|why| why.contains(says)), "{line}: {ended:?}");
        assert!(ended.stdout.contains("latency unix block 64 B"), "{line}: {ended:?}");
    }
    assert_eq!(run("--transport unix --wait block --size 64 --time 50ms", &gate).code, Some(0));
    // By hand two single cases are compared, and that comes first.
    assert_eq!(run("--transport unixgram --wait block --size 64", &["--out", "b"]).code, Some(0));
    let by_hand = compared(&scratch, &["a", "b"]);
    assert_eq!(by_hand.code, Some(0), "{by_hand:?}");
    let says = "not the same case (transport unixgram, not unix): ";
    assert!(by_hand.stdout.contains(says), "{by_hand:?}");
    assert_eq!(compared(&scratch, &["a", "b", "--fail-if", "half_rtt.p50>+1000%"]).code, Some(5));
}

/// A run that exceeds a limit would be what the next one is compared with: red once, then green.
#[test]
fn a_run_that_exceeds_a_limit_does_not_become_the_baseline() {
    let scratch = Scratch::new();
    let latency = |delay: &str, more: &[&str]| {
        let delay = format!("constant({delay})");
        let usual = ["latency", "--transport", "synthetic", "--count", "1000", "--synthetic"];
        wiregauge(&scratch.0, &[&usual, &[delay.as_str()][..], more].concat())
    };
    let gate = ["--baseline", "m", "--save-baseline", "m", "--fail-if", "rtt.p50>+5%,rtt.p50>1ms"];
    assert_eq!(latency("2us", &gate).code, Some(5), "the first has nothing to compare with");
    for _ in 0..2 {
        let slower = latency("3us", &gate);
        assert_eq!(slower.code, Some(1), "{slower:?}");
        let says = "not saved as baseline m, since a limit was exceeded";
        assert!(slower.stderr.contains(says), "{slower:?}");
    }
    let held = latency("2us", &gate);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.stdout.contains("saved as baseline m"), "{held:?}");
}

#[test]
fn an_incomplete_run_passes_no_gate() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(2us)", &[]);
    edited(&scratch, "b", |record| record["complete"] = json!(false));
    let code = |limit: &str, more: &[&str]| {
        compared(&scratch, &[&["a", "b", "--fail-if", limit], more].concat()).code
    };
    assert_eq!(code("rtt.p50>+10%", &[]), Some(3), "held in what there is");
    assert_eq!(code("rtt.p99.99>+10%", &[]), Some(3), "inconclusive");
    assert_eq!(code("rtt.p99.99>+10%", &["--strict"]), Some(1));
    assert_eq!(code("rtt.p50>1us", &[]), Some(1), "exceeded");
    assert_eq!(compared(&scratch, &["a", "b"]).code, Some(3), "without a limit");
    assert_eq!(compared(&scratch, &["b", "a"]).code, Some(0), "B is complete");
}

#[test]
fn samples_that_were_changed_are_refused() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    let path = scratch.join("a").join("samples.parquet");
    let mut samples = std::fs::read(&path).unwrap();
    // One bit in the middle: no header is hurt.
    let middle = samples.len() / 2;
    samples[middle] ^= 1;
    std::fs::write(path, samples).unwrap();
    let ended = compared(&scratch, &["a", "a"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("its SHA-256 is not the one in record.json"), "{ended:?}");
}

#[test]
fn a_baseline_is_kept_by_its_name_and_replaced() {
    let scratch = Scratch::new();
    let folder = scratch.join("wiregauge-runs").join("baselines");
    let latency = |delay: &str, more: &[&str]| {
        let delay = format!("constant({delay})");
        let usual = ["latency", "--transport", "synthetic", "--count", "1000", "--synthetic"];
        wiregauge(&scratch.0, &[&usual, &[delay.as_str()][..], more].concat())
    };
    let none = latency("2us", &["--baseline", "main"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("save one with --save-baseline main"), "{none:?}");
    assert!(!scratch.join("wiregauge-runs").exists(), "it is refused before the run");
    let saved = latency("2us", &["--save-baseline", "main"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert!(saved.stdout.contains("saved as baseline main in wiregauge-runs/baselines/main"));
    let limits = ["--fail-if", "rtt.p50>+40%,rtt.max>1ms"];
    let slower = latency("3us", &[&["--baseline", "main"], &limits[..]].concat());
    assert_eq!(slower.code, Some(1), "{slower:?}");
    assert!(slower.stdout.contains("this run is 50 % slower at p50"), "{slower:?}");
    let json = latency("3us", &[&["--baseline", "main", "--json"], &limits[..]].concat());
    assert_eq!(json.code, Some(1), "{json:?}");
    let record: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(record["schema"], "wiregauge.record");
    assert_eq!(record["comparison"]["names"], serde_json::json!(["baseline main", "this run"]));
    assert_eq!(record["comparison"]["limits"][0]["verdict"], "exceeded");
    assert!(json.stderr.contains("exceeded: +50 %"), "{json:?}");
    // The copy is enough, and a later one replaces it.
    let runs = std::fs::read_dir(scratch.join("wiregauge-runs")).unwrap();
    for run in runs.map(|run| run.unwrap().path()).filter(|path| *path != folder) {
        std::fs::remove_dir_all(run).unwrap();
    }
    measured(&scratch, "after", "constant(4us)", &[]);
    let again = ["after", "--baseline", "main", "--save-baseline", "main"];
    let twice = compared(&scratch, &again);
    assert!(twice.stdout.contains("this run is 100 % slower at p50"), "{twice:?}");
    let same = compared(&scratch, &["after", "--baseline", "main"]);
    assert!(
        same.stdout.contains("no change shown at p50 (at most 0 %) or at p99 (at most 0 %)"),
        "{same:?}"
    );
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["main"], "nothing is left beside it");
    edited(&scratch, "after", |record| record["complete"] = json!(false));
    let cut = compared(&scratch, &["after", "--baseline", "main", "--save-baseline", "cut"]);
    assert!(cut.stderr.contains("an incomplete run is not saved"), "{cut:?}");
    assert_eq!(cut.code, Some(3), "{cut:?}");
    assert!(!folder.join("cut").exists());
}

#[test]
fn what_cannot_be_judged_or_named_is_refused() {
    let scratch = Scratch::new();
    for (arguments, says) in [
        (&["latency", "--save-baseline", "../x"][..], "invalid name '../x'"),
        (&["latency", "--baseline", ""], "invalid name ''"),
        (&["latency", "--fail-if", "rtt.p50>+1%"], "compares two runs: use --baseline NAME"),
        (&["latency", "--json", "--save-baseline", "x"], "--json makes none: use --out DIR"),
        (&["compare", "a"], "name two run directories, or one and --baseline NAME"),
        (&["compare", "a", "b", "--baseline", "x"], "name two run directories, or one"),
    ] {
        let refused = wiregauge(&scratch.0, arguments);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
    let alone = ["latency", "--transport", "synthetic", "--fail-if", "rtt.max>1ns"];
    assert_eq!(wiregauge(&scratch.0, &alone).code, Some(1), "a limit of the run alone");
}

#[test]
fn verdicts_and_conditions_are_only_text_in_xml_and_markdown() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(2us)", &[]);
    edited(&scratch, "b", |record| {
        record["environment"]["host"] = json!("<a href=\"x\">|`*\u{1b}");
    });
    let files = ["--junit", "a.xml", "--markdown", "a.md", "--fail-if", "rtt.p50>+10%"];
    let ended = compared(&scratch, &[&["a", "b"], &files[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = |name: &str| std::fs::read_to_string(scratch.join(name)).unwrap();
    let host = "&lt;a href=&quot;x&quot;&gt;|`*\u{fffd}";
    assert!(text("a.xml").contains(&format!("hostname=\"{host}\"")), "{}", text("a.xml"));
    let host = host.replace('|', "\\|").replace('`', "\\`").replace('*', "\\*");
    assert!(text("a.md").contains(&host), "{}", text("a.md"));
    compared(&scratch, &[&["a", "b"], &files[..]].concat());
    assert_eq!(text("a.md").matches("## wiregauge: all limits held").count(), 2, "appended");
    assert_eq!(text("a.xml").matches("<testsuite ").count(), 1, "written again");
}

#[test]
fn a_folder_of_records_is_a_history_with_its_changes() {
    let scratch = Scratch::new();
    let nightly = scratch.join("nightly");
    std::fs::create_dir(&nightly).unwrap();
    measured(&scratch, "fast", "normal(2us,100ns)", &[]);
    measured(&scratch, "slow", "normal(3us,100ns)", &[]);
    for day in 1..=10 {
        let (name, from) = (format!("nightly/{day:02}"), if day < 7 { "fast" } else { "slow" });
        std::fs::create_dir(scratch.join(&name)).unwrap();
        for file in ["record.json", "samples.parquet"] {
            std::fs::copy(scratch.join(from).join(file), scratch.join(&name).join(file)).unwrap();
        }
        edited(&scratch, &name, |record| {
            record["started"] = json!(format!("2026-11-{day:02}T00:00:00Z"));
            record["environment"]["kernel"] = json!(if day < 7 { "6.1" } else { "6.9" });
        });
    }
    std::fs::create_dir(nightly.join("not-a-record")).unwrap();
    std::fs::create_dir(nightly.join("broken")).unwrap();
    std::fs::write(nightly.join("broken/record.json"), "{}").unwrap();
    let shown = wiregauge(&scratch.0, &["history", "nightly", "--figure", "rtt.p50,rtt.p99.99"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.contains("left out: nightly/broken/record.json"), "{shown:?}");
    let line = |begin: &str| {
        let found = shown.stdout.lines().find(|line| line.starts_with(begin));
        found.unwrap_or_else(|| panic!("{begin}: {shown:?}")).split_whitespace().collect::<Vec<_>>()
    };
    let series = line("latency synthetic");
    assert_eq!((series[5], series[7], series.last().unwrap()), ("rtt.p50", "10", &"1"));
    assert_eq!(line("07")[6..8], ["rtt.p50", "us"]);
    assert!(shown.stdout.contains("changed at 07: kernel: 6.1 -> 6.9"), "{shown:?}");
    assert!(!shown.stdout.contains("p99.99"), "no record shows it: {shown:?}");
    let json = wiregauge(&scratch.0, &["history", "nightly", "--json"]);
    let all: Value = serde_json::from_str(&json.stdout).unwrap();
    let change = &all["series"][0]["changes"][0];
    assert_eq!((change["at"].as_u64(), change["directory"].as_str()), (Some(6), Some("07")));
    assert!((change["relative"].as_f64().unwrap() - 0.5).abs() < 0.02, "{change}");
    let empty = wiregauge(&scratch.0, &["history", "fast"]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
}
