//! Each number of real records, changed to what it cannot be: refused, or listed here with the
//! reason for which it cannot be known.

use super::*;
use crate::support::program;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wiregauge::record::directory::parse_record;

/// Runs of each pattern whose messages take simulated times, and of one that really sends.
const RUNS: [&str; 4] = [
    "latency --transport synthetic --count 500 --rounds 3",
    "load --transport synthetic --rate 1k,4k --time 50ms --rounds 3",
    "oneway --transport synthetic --rate 2k --count 500 --rounds 3",
    "latency --transport unix --wait block --count 500 --rounds 3",
];

/// Parts of pointers whose numbers cannot be known to be impossible, and why.
const UNKNOWABLE: [(&str, &str); 14] = [
    ("/spec/", "what was asked, in the pattern's own form"),
    ("/details/", "what a pattern keeps, in its own form"),
    ("/schedule/", "what was asked"),
    ("/seed", "any number"),
    ("/after", "what was asked"),
    ("/loss_after", "what was asked: any time"),
    ("/timeout", "what was asked: any time"),
    ("/bound/time", "what was asked: any time"),
    ("interval/high", "that of two rounds which differ much reaches beyond any time"),
    ("/plan/threshold", "what was asked: any time"),
    ("/magnitude", "in the unit of the warning's kind, and of any sign"),
    ("/frequency_ppm", "of a clock, of any sign and size"),
    ("/pending_ns", "of a clock, of any sign"),
    ("/started_ns", "before the epoch, in simulated time"),
];

/// Each kind of number once, by its pointer with `*` for places, with the pointer of one.
fn leaves(value: &Value, pointer: &str, kind: &str, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(all) => {
            for (name, one) in all {
                leaves(one, &format!("{pointer}/{name}"), &format!("{kind}/{name}"), found);
            }
        }
        Value::Array(all) => {
            for (number, one) in all.iter().enumerate() {
                leaves(one, &format!("{pointer}/{number}"), &format!("{kind}/*"), found);
            }
        }
        Value::Number(_) => drop(found.entry(kind.into()).or_insert_with(|| pointer.into())),
        _ => {}
    }
}

/// Runs this and gives the directory of its record.
fn run(scratch: &Scratch, line: &str) -> PathBuf {
    let words: Vec<&str> = line.split(' ').chain(["--out", "run"]).collect();
    let ended = program::wiregauge(&scratch.0, &words);
    // On a busy machine a round may fail; its record is an honest one, too.
    assert!(matches!(ended.code, Some(0 | 3)), "{line}: {ended:?}");
    scratch.join("run")
}

/// Why a changed record of a directory is refused; `None`: it is taken.
fn refused(dir: &Path, changed: &Value) -> Option<String> {
    fs::write(dir.join("record.json"), serde_json::to_vec(changed).unwrap()).unwrap();
    read_record(dir).err().map(|error| error.to_string())
}

#[test]
fn each_impossible_number_of_a_real_record_is_refused() {
    let mut tried = 0;
    let mut taken = Vec::new();
    for line in RUNS {
        let scratch = Scratch::new();
        let dir = run(&scratch, line);
        let text = fs::read(dir.join("record.json")).unwrap();
        let record: Value = serde_json::from_slice(&text).unwrap();
        let mut found = BTreeMap::new();
        leaves(&record, "", "", &mut found);
        for (kind, pointer) in &found {
            if UNKNOWABLE.iter().any(|(part, _)| format!("{kind}/").contains(part)) {
                continue;
            }
            for value in [json!(-1000), json!(1e300), json!(u64::MAX)] {
                // The interval of a time between two clocks may reach below 0.
                let is_interval = kind.ends_with("interval/low") && kind.contains("/figures/");
                if is_interval && value == json!(-1000) && !line.starts_with("latency") {
                    continue;
                }
                let mut changed = record.clone();
                *changed.pointer_mut(pointer).unwrap() = value.clone();
                tried += 1;
                if refused(&dir, &changed).is_none() {
                    taken.push(format!("{line}: {kind} as {value}"));
                }
            }
        }
    }
    println!("{tried} impossible numbers, {} taken", taken.len());
    assert!(taken.is_empty(), "{} of {tried} were taken:\n{}", taken.len(), taken.join("\n"));
}

/// A change of a record, and what the refusal says.
type Change = (fn(&mut Value), &'static str);

#[test]
fn figures_that_contradict_each_other_or_the_samples_are_refused() {
    fn summary(record: &mut Value) -> &mut Value {
        &mut record["runs"][0]["figures"][0]["summary"]
    }
    fn swap(interval: &mut Value) {
        let low = interval["low"].take();
        interval["low"] = interval["high"].take();
        interval["high"] = low;
    }
    let changes: [Change; 20] = [
        (|r| swap(&mut summary(r)["quantiles"][1]["interval"]), "its interval begins at"),
        (|r| swap(&mut summary(r)["quantiles"][1]["within"]), "its interval begins at"),
        (|r| swap(&mut summary(r)["mean_interval"]), "its interval begins at"),
        (|r| summary(r)["quantiles"][1]["effective_n"] = json!(1e6), "effective_n is 1000000"),
        (|r| summary(r)["mean"] = json!(1e9), "mean is 1000000000"),
        (|r| summary(r)["sd"] = json!(1e9), "sd is 1000000000"),
        (|r| summary(r)["count"] = json!(1), "samples"),
        (|r| summary(r)["max"] = json!(1e12), "max is 1000000000000 ns, but 0 are lost"),
        (|r| summary(r)["max"] = json!("inf"), "max is inf ns, but 0 are lost"),
        (|r| summary(r)["quantiles"][0]["value"] = json!("inf"), "is inf ns, outside of all"),
        (|r| summary(r)["above_threshold"] = json!(77), "77 are above the threshold by"),
        (|r| summary(r)["min"] = json!(1.5), "min is 1.5 ns"),
        (|r| summary(r)["rounds"][0]["mean"] = summary(r)["rounds"][0]["max"].clone(), "mean"),
        (|r| summary(r)["rounds"][0]["quantiles"][0] = json!(1e8), "a quantile is 100000000"),
        (|r| r["runs"][0]["rounds"][0]["counts"]["warmup"] = json!(u64::MAX), "warmup is"),
        (|r| r["runs"][0]["counts"]["reordered"] = json!(3), "reordered is 3, but the rounds"),
        (|r| r["runs"][0]["rounds"][0]["position"] = json!(99), "its position is 99"),
        (|r| r["runs"][0]["rounds"][1]["index"] = json!(0), "round"),
        (|r| r["plan"]["rounds"]["least"] = json!(9), "at least 9 rounds are planned"),
        (|r| r["runs"][0]["rounds"][0]["overlap"] = json!(1.5), "expected a share"),
    ];
    let scratch = Scratch::new();
    let dir = run(&scratch, RUNS[3]);
    let text = fs::read(dir.join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(refused(&dir, &record), None);
    for (number, (change, says)) in changes.into_iter().enumerate() {
        let mut changed = record.clone();
        change(&mut changed);
        let said = refused(&dir, &changed).unwrap_or_else(|| panic!("change {number} was taken"));
        assert!(said.contains(says), "change {number}: {said}");
    }
}

#[test]
fn a_label_that_exports_would_repeat_for_gigabytes_is_refused() {
    let scratch = Scratch::new();
    let dir = run(&scratch, RUNS[0]);
    let path = dir.join("record.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["runs"][0]["label"] = json!("x".repeat(200_000));
    let said = refused(&dir, &record).expect("refused");
    assert!(said.contains("its label has 200000 bytes, expected at most 1024"), "{said}");
}

/// Changes a record to that of a host which the tests do not have: with a clock that PTP sets, or
/// in a container that has run for years.
#[test]
fn numbers_of_other_hosts_are_not_impossible() {
    let changes: [fn(&mut Value); 4] = [
        |r| r["environment"]["discipline"]["ptp_offset_ns"] = json!(-12.0),
        |r| {
            r["environment"]["container"]["throttled"] =
                json!({"times": 1u64 << 40, "ns": 1u64 << 58})
        },
        |r| {
            r["environment"]["container"]["memory"] =
                json!({"limit_bytes": 1u64 << 59, "used_bytes": 5, "cache_bytes": 0});
        },
        |r| {
            r["pairs"] = json!({"slow": [], "bisections": [{
                "runs": [0], "pairs": 2, "matchings": [null, 2e9], "overlap": null,
                "bandwidth": {
                    "value": 2e9, "interval": null, "basis": "one_round", "rounds": [2e9]
                },
            }]});
        },
    ];
    let scratch = Scratch::new();
    let dir = run(&scratch, RUNS[3]);
    let record: Value =
        serde_json::from_slice(&fs::read(dir.join("record.json")).unwrap()).unwrap();
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = record.clone();
        change(&mut changed);
        assert_ne!(changed, record);
        assert_eq!(refused(&dir, &changed), None, "change {number}");
    }
}

#[test]
fn no_honest_record_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    for version in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        for dir in fs::read_dir(version).unwrap().map(|entry| entry.unwrap().path()) {
            read_record(&dir).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    for line in [
        "latency --transport synthetic,null --count 300 --rounds 2",
        "latency --transport unix --wait block --threads 2 --count 300 --rounds 2",
        "latency --transport synthetic --synthetic loss(10%) --count 300 --rounds 2",
        "load --transport synthetic --rate 1k,2k,100k --time 50ms --rounds 2",
        "load --transport unix --clients 3 --wait block --time 50ms --rounds 2",
        "oneway --transport udp,unix --wait block --rate 2k --count 300 --rounds 2",
        "bandwidth --transport unix,tcp --wait block --time 50ms --rounds 2",
        "bandwidth --transport unix --direction bi --wait block --time 50ms --rounds 2",
        "rpc --transport unix --wait block --time 50ms --rounds 2",
        "exchange --transport unix --nodes 3 --wait block --time 50ms --rounds 2",
        "stream --transport synthetic,udp --rate 1k --count 100 --rounds 2",
    ] {
        let scratch = Scratch::new();
        let dir = run(&scratch, line);
        let record = read_record(&dir).unwrap_or_else(|error| panic!("{line}: {error}"));
        // As a record of printed JSON, too.
        let text = serde_json::to_vec(&record).unwrap();
        parse_record(Path::new("record.json"), &text).unwrap();
    }
}
