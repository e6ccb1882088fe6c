//! `docs/record.md` names every field that a record has, and its snippets run.

use crate::support;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use wiregauge::explain::tail::TailCauses;
use wiregauge::explain::{Apart, Cause, Explanation, Named, Slow, SlowMessage, StageFigures};
use wiregauge::record::schema::{Record, Run};
use wiregauge::record::{RunDirectory, samples};
use wiregauge::stats;
use wiregauge::stats::Metric;
use wiregauge::units::Bytes;
use wiregauge_test_support::bounded::output;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/record.md");
    std::fs::read_to_string(path).unwrap()
}

/// Names that stand for themselves: keys of maps that are data, and what `Environment` holds.
const FREE: [&str; 5] =
    ["environment", "included", "effective_settings", "final_counters", "settings"];

/// Every key below `value`, with the name that the document gives it: its own, after its parent's.
fn keys(value: &Value, parent: &str, found: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                found.insert((parent.to_string(), key.clone()));
                if !FREE.contains(&key.as_str()) {
                    keys(inner, key, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, parent, found)),
        _ => {}
    }
}

/// The words in backquotes in a line's cells, split at dots, without brackets.
fn documented(line: &str) -> Vec<Vec<String>> {
    let spans = line.split('`').skip(1).step_by(2);
    let names = spans.map(|span| span.split('.').map(|w| w.replace("[]", "")).collect());
    names.collect()
}

/// With all its lists filled.
fn explanation() -> Explanation {
    let cause = Named { cause: Cause::Task, who: "stress".into() };
    let cpus = vec![(1, 9)];
    let on_cpu_ns = Some(1.0);
    let name = "driver".into();
    let known = Some(stats::Interval { low: stats::Value(1.0), high: stats::Value(2.0) });
    let median_interval = known;
    let best_interval = known;
    let stage = StageFigures {
        name,
        cpus,
        on_cpu_ns,
        median_interval,
        best_interval,
        ..Default::default()
    };
    Explanation {
        run: 1,
        untraced: 0,
        stages: vec![stage.clone()],
        total: stage,
        messages: 9,
        incomplete: 0,
        disordered: 0,
        beyond: 0,
        sum_error: 0.0,
        anchor_ns: 14.0,
        factor: 1.2,
        factor_interval: known,
        untraced_p50_ns: 5e3,
        stamps: 16.0,
        probe_ns: 80.0,
        probe_interval: known,
        queues: vec![vec![0.0; 8]],
        batches: vec![vec![1.0; 8]],
        merged: vec![vec![1.0; 8]],
        slow: Slow { count: 1, above_ns: 9e3, causes: vec![(cause.clone(), 1)] },
        slowest: vec![SlowMessage {
            round: 0,
            sequence: 7,
            start_ns: 1.0,
            total_ns: 2.0,
            stages: vec![(2.0, 1)],
            cause,
            covered: 0.9,
        }],
        missing: vec!["tcp_probe".into()],
        apart: Some(Apart { bound_ns: 90.0, refused: Some("no right".into()) }),
        not_traced: "no rights".into(),
    }
}

#[test]
fn every_field_is_documented() {
    let mut found = BTreeSet::new();
    let explanation = explanation();
    let (slow, slowest) = (explanation.slow.clone(), explanation.slowest.clone());
    let missing = explanation.missing.clone();
    let tail = TailCauses { run: 0, messages: 9, beyond: 0, slow, slowest, missing };
    let full = support::full_record();
    let record = Record { explanation: Some(Box::new(explanation)), tails: vec![tail], ..full };
    keys(&serde_json::to_value(record).unwrap(), "", &mut found);
    assert!(found.len() > 100, "the record has {} keys", found.len());
    let text = document();
    let rows = text.lines().filter(|l| l.starts_with('|')).collect::<Vec<_>>();
    let names: Vec<_> = rows.iter().flat_map(|row| documented(row)).collect();
    let missing: Vec<_> =
        found.iter().filter(|(parent, key)| !is_in(&names, parent, key)).collect();
    assert!(missing.is_empty(), "docs/record.md does not describe {missing:?}");
}

/// Whether a row names `key`: as `parent.key`, or alone where the row stands for many parents.
fn is_in(names: &[Vec<String>], parent: &str, key: &str) -> bool {
    let parents: &[&str] = match parent {
        // Both roles have the fields of `client`, every case those of `case`.
        "server" | "client" if !["client", "server"].contains(&key) => &["client", "plan", "cpus"],
        "cases" => &["case"],
        _ => &[],
    };
    let fits = |name: &Vec<String>| match name.as_slice() {
        [.., last] if last != key => false,
        [_] => parent.is_empty() || ["interval", "within", "between", "rounds"].contains(&parent),
        [.., before, _] => before == parent || parents.contains(&before.as_str()),
        [] => false,
    };
    names.iter().any(fits)
}

#[test]
fn every_column_and_flag_is_documented() {
    let text = document();
    for column in samples::COLUMNS {
        assert!(text.contains(&format!("| `{column}` |")), "column {column}");
    }
    for flag in (0..12).map(|bit| 1 << bit) {
        assert!(text.contains(&format!("\n| {flag} |")), "flag {flag}");
    }
}

/// The code of the fence that is marked with `mark`.
fn snippet(text: &str, mark: &str) -> String {
    let start = text.find(mark).unwrap_or_else(|| panic!("no snippet {mark}")) + mark.len();
    let rest = &text[start..];
    rest[..rest.find("```").expect("an end of the fence")].to_string()
}

#[test]
fn the_snippets_give_the_median() {
    let scratch = support::Scratch::new();
    let dir = scratch.join("run");
    let mut round = support::realistic_round(0, 0, 1100);
    round.samples[500].receive_ns = f64::NAN;
    round.samples[500].flags = wiregauge::sample::Flags::LOST;
    let mut writer = RunDirectory::create(&dir, Bytes(1)).unwrap();
    let second = support::realistic_round(1, 0, 1100);
    writer.append(&round).unwrap();
    writer.append(&second).unwrap();
    let mut record = support::full_record();
    let other = Run { index: 1, ..record.runs[0].clone() };
    record.runs.push(other);
    for (run, round) in record.runs.iter_mut().zip([&round, &second]) {
        let figures = [support::figure_of(std::slice::from_ref(round), Metric::Rtt)];
        run.figures = figures.into();
    }
    writer.finish(&record, |_| String::new()).unwrap();
    let kept = round.samples.iter().filter(|s| s.flags.0 & 1 == 0);
    let latency = |ns: f64| if ns.is_nan() { f64::INFINITY } else { ns };
    let mut rtt: Vec<f64> = kept.map(|s| latency(s.receive_ns - s.submit_ns)).collect();
    rtt.sort_by(f64::total_cmp);
    let median = rtt[rtt.len().div_ceil(2) - 1];
    let text = document();
    let sql = snippet(&text, "```sql duckdb\n");
    let duckdb = format!("import duckdb\nmedian = duckdb.sql(\"\"\"{sql}\"\"\").fetchall()[0][0]");
    for code in [snippet(&text, "```python pandas\n"), snippet(&text, "```python polars\n"), duckdb]
    {
        let mut python = Command::new(support::python::python());
        python.args(["-c", &format!("{code}\nprint(repr(float(median)))")]).current_dir(&dir);
        let output = output(&mut python);
        let said = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{error}\nTo install the readers: {}",
            support::python::READERS
        );
        assert_eq!(said.trim().parse(), Ok(median), "{code}");
    }
}
