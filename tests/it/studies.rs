//! `wiregauge run` from a file to the record and back.

use crate::support;
use crate::support::program::wiregauge;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge::record::read_record;
use wiregauge::record::schema::Metric;
use wiregauge_test_support::bounded;

const STUDY: &str = r#"
title = "Does <b>a</b> pause matter?"
source = "N. Nobody, A made-up book, 1900"

[all]
rounds = 3
transport = "synthetic"
size = [32, 64]
count = 2000

[[oneway]]
series = "at once"
synthetic = "constant(2us)"

[[oneway]]
series = "slower"
synthetic = "constant(4us)"

[[oneway]]
series = "elsewhere"
synthetic = "constant(6us)"
size = 32

[[graph]]
title = "One way"
kind = "bars"
metric = "one_way"
series = ["at once", "slower"]
  [[graph.reference]]
  file = "nobody.toml"
  table = "made-up"
  column = "RC"
  beside = "slower"
  [[graph.reference]]
  file = "potter"
  table = "busy-polling"
  column = "RC"
  beside = "at once"
"#;

const REFERENCE: &str = r#"
name = "Nobody 1900"
source = "N. Nobody, A made-up book, 1900"
place = "nowhere"
system = "two hosts"
[[table]]
name = "made-up"
at = "Table 1"
what = "one-way median"
unit = "us"
metric = "one_way"
columns = ["RC"]
rows = [[32, 4.0], [64, 8.0]]
"#;

fn folder() -> support::Scratch {
    let scratch = support::Scratch::new();
    std::fs::write(scratch.join("pauses.toml"), STUDY).unwrap();
    std::fs::write(scratch.join("nobody.toml"), REFERENCE).unwrap();
    scratch
}

#[test]
fn a_study_s_record_tells_all_that_its_report_needs() {
    let scratch = folder();
    let done = wiregauge(&scratch.0, &["run", "pauses.toml", "--out", "result", "--seed", "5"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let record = read_record(&scratch.join("result")).unwrap();
    let study = record.plan.study.as_ref().unwrap();
    assert_eq!((study.name.as_str(), study.series.len(), record.runs.len()), ("pauses", 3, 5));
    assert_eq!((study.cases("slower"), record.plan.seed), (&[2, 3][..], 5));
    assert_eq!(record.runs[2].label, "slower: oneway synthetic busy 32 B");
    for run in &record.runs {
        assert_eq!(run.rounds.len(), 3);
        let true_ns = if run.index < 2 {
            1000.0
        } else if run.index < 4 {
            2000.0
        } else {
            3000.0
        };
        assert_eq!(run.quantile(Metric::OneWay, 0.5).unwrap().0, true_ns, "{}", run.label);
    }
    let positions: Vec<u32> = record.runs[0].rounds.iter().map(|round| round.position).collect();
    assert!(positions.windows(2).all(|pair| pair[1] - pair[0] > 1), "interleaved: {positions:?}");
    let told = done.stdout;
    let rows: Vec<Vec<&str>> =
        told.lines().map(|line| line.split("  ").map(str::trim).collect::<Vec<_>>()).collect();
    let row =
        |line: &[&str]| rows.iter().any(|row| row.iter().filter(|word| !word.is_empty()).eq(line));
    assert!(row(&["slower", "32", "2.000", "±0", "4.000", "0.5000", "Nobody 1900, Table 1 RC"]));
    assert!(row(&["slower", "64", "2.000", "±0", "8.000", "0.2500", "Nobody 1900, Table 1 RC"]));
    let busy = "Potter 2018, Busy polling RC";
    assert!(row(&["at once", "32", "1.000", "±0", "1.269", "0.7880", busy]), "{told}");
    // The file and the reference are needed no more.
    std::fs::remove_file(scratch.join("pauses.toml")).unwrap();
    std::fs::remove_file(scratch.join("nobody.toml")).unwrap();
    let again = wiregauge(&scratch.0, &["report", "result"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let again = again.stdout;
    let graphs = |text: &str| text.split("graph: ").nth(1).map(String::from);
    let until = |text: String| text.split("figures:").next().map(String::from);
    assert_eq!(graphs(&told).and_then(until), graphs(&again).and_then(until));
    let page = std::fs::read_to_string(scratch.join("result/report.html")).unwrap();
    assert!(page.contains("Does &lt;b&gt;a&lt;/b&gt; pause matter?") && !page.contains("<b>a"));
    assert!(page.contains("Nobody 1900, Table 1 RC"));
}

/// Graphs of what is not the time of a message.
const SHOWING: &str = r#"
[[graph]]
title = "Largest"
kind = "bars"
metric = "one_way"
quantile = 1
series = ["slower"]
[[graph]]
title = "Above"
kind = "bars"
metric = "one_way"
above = true
[[graph]]
title = "Over"
kind = "bars"
metric = "one_way"
over = [["slower", "at once"]]
  [[graph.reference]]
  file = "nobody.toml"
  table = "ratio"
  column = "RC"
  beside = "slower"
[[graph]]
title = "Less"
kind = "bars"
metric = "one_way"
less = [["slower", "at once"]]
  [[graph.reference]]
  file = "nobody.toml"
  table = "rest"
  column = "RC"
  beside = "slower"
"#;

/// What was published of these.
const SHOWN: &str = r#"
[[table]]
name = "ratio"
at = "Table 2"
what = "one over the other"
unit = "ratio"
metric = "one_way"
shows = "ratio"
columns = ["RC"]
rows = [[32, 4.0]]
[[table]]
name = "rest"
at = "Table 3"
what = "one less the other"
unit = "us"
metric = "one_way"
shows = "difference"
columns = ["RC"]
rows = [[32, 0.5]]
"#;

#[test]
fn maxima_shares_and_ratios_stand_beside_those_that_were_published() {
    let scratch = folder();
    let study = STUDY.replace("count = 2000", "count = 2000\nthreshold = \"1500ns\"");
    std::fs::write(scratch.join("more.toml"), study + SHOWING).unwrap();
    std::fs::write(scratch.join("nobody.toml"), format!("{REFERENCE}{SHOWN}")).unwrap();
    let done = wiregauge(&scratch.0, &["run", "more.toml", "--seed", "5"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let rows = |title: &str| -> Vec<Vec<String>> {
        let after = done.stdout.split(&format!("graph: {title}\n")).nth(1).unwrap();
        let lines = after.lines().skip(1).take_while(|line| line.contains("  "));
        lines
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|f| !f.is_empty())
                    .map(String::from)
                    .collect()
            })
            .collect()
    };
    let shown = |title: &str, at: usize| -> Vec<String> {
        rows(title).into_iter().map(|row| row[at].clone()).collect()
    };
    assert_eq!(shown("Largest", 2), ["2.000", "2.000"]);
    assert_eq!(shown("Above", 2), ["0", "0", "100.0", "100.0", "100.0"]);
    assert_eq!(shown("Over", 2), ["2.000", "2.000"], "{}", done.stdout);
    let of_32 = rows("Over").remove(0);
    assert!(
        of_32.contains(&"4.000".to_string()) && of_32.contains(&"0.5000".to_string()),
        "{of_32:?}"
    );
    // 2 us less 1 us, beside 0.5 us.
    assert_eq!(shown("Less", 2), ["1.000", "1.000"], "{}", done.stdout);
    let of_32 = rows("Less").remove(0);
    assert!(of_32.contains(&"0.5000".to_string()), "{of_32:?}");
}

#[test]
fn some_series_alone_and_quickly() {
    let scratch = folder();
    let asked = ["run", "pauses.toml", "--only", "slower,elsewhere", "--quick", "--json"];
    let done = wiregauge(&scratch.0, &asked);
    assert_eq!(done.code, Some(0), "{done:?}");
    let record: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let study = &record["plan"]["study"];
    assert_eq!(study["quick"], true);
    let names: Vec<&str> =
        study["series"].as_array().unwrap().iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(names, ["slower", "elsewhere"]);
    assert_eq!(study["graphs"][0]["series"], serde_json::json!(["slower"]));
    assert_eq!(study["graphs"][0]["references"].as_array().unwrap().len(), 1);
    assert_eq!(record["plan"]["cases"][0]["bound"]["count"], 200);
}

#[test]
fn series_that_a_target_cannot_have_are_named() {
    let scratch = support::Scratch::new();
    let text = "title = \"t\"\n[[latency]]\nseries = \"memory\"\ntransport = \"shm\"\n";
    std::fs::write(scratch.join("local.toml"), text).unwrap();
    let done = wiregauge(&scratch.0, &["run", "local.toml", "--to", "nowhere.invalid"]);
    assert_eq!(done.code, Some(4), "{done:?}");
    let why = "shm: it connects processes of one host only";
    assert!(done.stderr.contains(why), "{done:?}");
}

#[test]
fn figures_of_many_lengths_have_no_size() {
    let scratch = support::Scratch::new();
    let text = "title = \"t\"\n[all]\nrounds = 2\n[[rpc]]\nseries = \"w1\"\nworkload = \"w1\"\n\
                transport = \"tcp\"\nclients = 1\ntime = \"50ms\"\n\
                [[graph]]\ntitle = \"shortest tenth\"\nkind = \"bars\"\nmetric = \"short\"\n";
    std::fs::write(scratch.join("lengths.toml"), text).unwrap();
    let done = wiregauge(&scratch.0, &["run", "lengths.toml"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let after = done.stdout.split("graph: shortest tenth\n").nth(1).unwrap();
    let head: Vec<&str> = after.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head[..3], ["series", "short", "p50"], "{after}");
}

#[test]
fn a_record_without_a_study_is_read_as_before() {
    let record = serde_json::to_value(support::full_record()).unwrap();
    let mut old = record.clone();
    old["plan"].as_object_mut().unwrap().remove("study");
    let read: wiregauge::record::schema::Record = serde_json::from_value(old).unwrap();
    assert_eq!(read.plan.study, None);
    let read: wiregauge::record::schema::Record = serde_json::from_value(record).unwrap();
    assert_eq!(read.plan.study, Some(support::study::full()));
}

const CURVES: &str = r#"
title = "Do curves have their axes?"

[all]
rounds = 2
transport = "synthetic"
synthetic = "constant(2us)"

[[stream]]
series = "stream"
rate = [2000, 1000]
values = [8, 1]
count = 500

[[load]]
series = "clients"
clients = [4, 1]
time = "5ms"

[[load]]
series = "open"
rate = [10_000, 20_000]
arrivals = "periodic"
time = "10ms"

[[graph]]
title = "surface"
kind = "surface"
metric = "one_way"
series = ["stream"]

[[graph]]
title = "missed"
kind = "against-values"
metric = "missed"
series = ["stream"]

[[graph]]
title = "clients"
kind = "against-clients"
metric = "message_rate"
series = ["clients"]

[[graph]]
title = "answered"
kind = "against-answered"
metric = "achieved_rate"
also = ["message_rate"]
series = ["open"]
"#;

#[test]
fn figures_stand_along_the_axis_of_their_graph() {
    let scratch = support::Scratch::new();
    std::fs::write(scratch.join("curves.toml"), CURVES).unwrap();
    let done = wiregauge(&scratch.0, &["run", "curves.toml", "--out", "result"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let told = done.stdout;
    let rows = |title: &str| -> Vec<Vec<String>> {
        let start = format!("graph: {title}\n");
        let graph = told.split(&start).nth(1).unwrap_or_else(|| panic!("no {title} in {told}"));
        let words = |line: &str| line.split_whitespace().map(String::from).collect();
        graph
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty() && !line.contains(": "))
            .map(words)
            .collect()
    };
    let begins = |title: &str, words: usize| -> Vec<Vec<String>> {
        rows(title).into_iter().map(|row| row[..words].to_vec()).collect()
    };
    let surface = begins("surface", 4);
    let places: Vec<[&str; 2]> =
        surface.iter().map(|row| [row[1].as_str(), row[2].as_str()]).collect();
    assert_eq!(places, [["1.000", "1"], ["1.000", "8"], ["2.000", "1"], ["2.000", "8"]]);
    assert!(surface.iter().all(|row| row[0] == "stream" && row[3] == "2.000"), "{surface:?}");
    assert!(rows("surface").iter().all(|row| row.last().unwrap() == "0.00"));
    let missed = begins("missed", 4);
    assert_eq!(missed[0], ["stream", "1", "1.000", "0"]);
    let rates: Vec<&str> = missed.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(rates, ["1.000", "2.000", "1.000", "2.000"]);
    assert_eq!(missed.len(), 4, "both rates at each number of values");
    let clients = begins("clients", 3);
    assert_eq!(clients[0], ["clients", "1", "500.0"]);
    assert_eq!((clients[1][1].as_str(), clients.len()), ("4", 2));
    let answered = begins("answered", 3);
    let figures: Vec<&str> = answered.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(figures, ["achieved_rate", "achieved_rate", "message_rate", "message_rate"]);
    for (row, rate) in answered.iter().zip([10.0, 20.0, 10.0, 20.0]) {
        let found: f64 = row[2].parse().unwrap();
        assert!((found / rate - 1.0).abs() < 0.02, "{row:?}");
    }
    let record = read_record(&scratch.join("result")).unwrap();
    assert_eq!(record.runs.len(), 8);
    assert_eq!(record.plan.study.unwrap().graphs[3].also, ["message_rate"]);
}

/// A host's files and programs as far as `potter/environment` uses them, in a folder.
struct TunedHost {
    folder: tempfile::TempDir,
}

impl TunedHost {
    /// Tools of the system, and tuned where a profile is active.
    fn new(active: Option<[&str; 2]>) -> TunedHost {
        let host = TunedHost { folder: tempfile::tempdir().unwrap() };
        for folder in ["etc", "run", "lib/latency-performance", "bin"] {
            fs::create_dir_all(host.path(folder)).unwrap();
        }
        for tool in ["sh", "cp", "rm", "cat", "grep", "sed", "mkdir"] {
            let found = Path::new("/bin").join(tool);
            symlink(found, host.path("bin").join(tool)).unwrap();
        }
        let Some([profile, mode]) = active else { return host };
        fs::write(host.path("etc/active_profile"), profile).unwrap();
        fs::write(host.path("etc/profile_mode"), mode).unwrap();
        let conf = "[cpu]\nforce_latency=1\ngovernor=performance\n";
        fs::write(host.path("lib/latency-performance/tuned.conf"), conf).unwrap();
        let etc = host.path("etc");
        let adm = format!(
            "#!/bin/sh\ncd {} || exit 1\ncase $1 in\n\
             profile) test \"$2\" != wiregauge || grep -q governor wiregauge/tuned.conf || exit 1\n\
             shift; echo \"$*\" >active_profile; echo manual >profile_mode;;\n\
             off) : >active_profile; echo manual >profile_mode;;\n\
             auto_profile) echo balanced >active_profile; echo auto >profile_mode;;\nesac\n",
            etc.display()
        );
        let program = host.path("bin/tuned-adm");
        fs::write(&program, adm).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command of the study; returns true where it succeeds.
    fn runs(&self, command: &str) -> bool {
        let mut command = command.to_string();
        for (named, own) in [("/etc/tuned", "etc"), ("/usr/lib/tuned", "lib"), ("/run/", "run/")] {
            command = command.replace(named, &self.path(own).display().to_string());
        }
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]).env("PATH", self.path("bin"));
        bounded::output(&mut shell).status.success()
    }

    /// All files below the folders that the study writes to, with their text.
    fn files(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("etc"), self.path("run")];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path.clone());
                }
                found.push((path.clone(), fs::read_to_string(&path).ok()));
            }
        }
        found.sort();
        found
    }
}

#[test]
fn the_study_of_tuned_leaves_a_host_as_it_was() {
    let study = include_str!("../../studies/potter/environment.toml");
    let given = |name: &str| {
        let begin = format!("{name} = \"");
        let lines = study.lines().filter_map(|line| line.strip_prefix(&*begin));
        lines.map(|line| line.trim_end_matches('"').to_string()).collect::<Vec<_>>()
    };
    let prepare = given("prepare");
    let restore = given("restore");
    assert_eq!((prepare.len(), restore.len()), (2, 1));
    for active in [["balanced\n", "manual\n"], ["", "manual\n"], ["balanced\n", "auto\n"]] {
        let host = TunedHost::new(Some(active));
        let before = host.files();
        // Rounds take turns.
        for command in [&prepare[0], &prepare[1], &prepare[1], &prepare[0]] {
            assert!(host.runs(command), "{active:?}: {command}");
        }
        assert_ne!(host.files(), before);
        assert!(host.runs(&restore[0]), "{active:?}");
        assert_eq!(host.files(), before, "{active:?}");
        assert!(host.runs(&restore[0]), "nothing is to be restored twice");
        assert_eq!(host.files(), before, "{active:?}");
    }
    let host = TunedHost::new(None);
    let before = host.files();
    for command in &prepare {
        assert!(!host.runs(command), "{command}");
    }
    assert!(host.runs(&restore[0]));
    assert_eq!(host.files(), before, "a host without tuned");
}
