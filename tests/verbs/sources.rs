//! What a device grants to the shipped studies is what their sources had.

use super::bounded::output;
use super::{has_device, program};
use serde_json::Value;

fn sources() -> Vec<Value> {
    let texts = [
        include_str!("../support/sources/gamess.json"),
        include_str!("../support/sources/potter.json"),
        include_str!("../support/sources/villas.json"),
    ];
    texts.iter().flat_map(|text| serde_json::from_str::<Vec<Value>>(text).unwrap()).collect()
}

/// The record of a tenth of a study; `sizes` replaces its list of sizes (before, after).
fn record(study: &str, only: &str, sizes: Option<(&str, &str)>) -> Value {
    let scratch = std::env::temp_dir().join(format!("wiregauge-source-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let mut command = program();
    command.current_dir(&scratch);
    match sizes {
        None => command.args(["run", study]),
        Some((all, few)) => {
            let shipped = format!("{}/studies/{study}.toml", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(shipped).unwrap();
            assert!(text.contains(all), "{study}: {all}");
            std::fs::write(scratch.join("study.toml"), text.replace(all, few)).unwrap();
            command.args(["run", "study.toml"])
        }
    };
    command.args(["--quick", "--json"]);
    if !only.is_empty() {
        command.args(["--only", only]);
    }
    let output = output(&mut command);
    let _ = std::fs::remove_dir_all(&scratch);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{study}: {told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks what was granted to a series; how many settings that were.
fn check(study: &str, record: &Value, series: &Value, sources: &[Value]) -> usize {
    let name = series["name"].as_str().unwrap();
    let covers = |source: &&Value| {
        let all = source["series"].as_array();
        source["study"] == study && all.is_none_or(|all| all.iter().any(|one| one == name))
    };
    let source = sources.iter().find(covers).unwrap_or_else(|| panic!("{study}: {name}"));
    let expected = source["granted"].as_object().unwrap();
    for number in series["cases"].as_array().unwrap() {
        let run = &record["runs"][number.as_u64().unwrap() as usize];
        for round in run["rounds"].as_array().unwrap() {
            let granted = &round["client"]["effective_settings"];
            for (setting, value) in expected {
                let label = run["label"].as_str().unwrap();
                assert_eq!(granted[setting], *value, "{study}: {label}: {setting} in {granted}");
            }
        }
    }
    expected.len()
}

/// A tenth of each of these studies, and of each the series that are run (none: all). Sizes and
/// pauses beyond that are the plan's business (`src/command/run/sources.rs`).
fn each(studies: &[(&str, &str)]) {
    each_with_sizes(studies, None);
}

fn each_with_sizes(studies: &[(&str, &str)], sizes: Option<(&str, &str)>) {
    if !has_device() {
        return;
    }
    let sources = sources();
    for (study, only) in studies {
        let record = record(study, only, sizes);
        for series in record["plan"]["study"]["series"].as_array().unwrap() {
            assert!(check(study, &record, series, &sources) > 0, "{study}: {series}");
        }
        eprintln!("{study}: as its source");
    }
}

#[test]
fn bursts_are_granted_the_settings_of_their_source() {
    each(&[
        ("potter/busy-polling", ""),
        ("potter/event-polling", ""),
        ("potter/write-against-send", ""),
        ("potter/pauses", "RC event,UD busy,UC busy 5500 ns"),
    ]);
}

#[test]
fn inline_and_unsignalled_messages_are_granted_the_settings_of_their_source() {
    // The thread that rewrites a time needs a CPU of its own.
    each(&[
        ("potter/inline", ""),
        ("potter/unsignalled", ""),
        ("potter/submit-against-send", "submit"),
    ]);
}

#[test]
fn round_trips_are_granted_the_settings_of_their_source() {
    each(&[("potter/mtu", "RC 256,UD 256"), ("potter/cm-against-exchange", "UD cm")]);
}

#[test]
fn sweeps_of_sizes_are_granted_the_settings_of_their_source() {
    // Both ways of posting and both operations; a run has the sizes of one series, and ends in time
    // on a busy host. Software takes minutes for the 8 MiB of RC and UC.
    each(&[
        ("potter/size-sweep", "RC send inline"),
        ("potter/size-sweep", "UC write inline"),
        ("potter/size-sweep", "UD send"),
    ]);
}

#[test]
fn sweeps_of_datagrams_are_granted_the_settings_of_their_source() {
    each(&[
        ("gamess/send-latency", "UD"),
        ("gamess/bandwidth", "UD uni"),
        ("gamess/bandwidth", "UD bi"),
    ]);
}

#[test]
fn sweeps_to_8_mib_are_granted_the_settings_of_their_source() {
    // Software takes minutes for 8 MiB, and what is granted does not depend on the size.
    let few = "size = [64, 8192]";
    let sweep = Some(("size = \"4..8MiB*2\"", few));
    each_with_sizes(&[("gamess/send-latency", "RC,UC")], sweep);
    let sweep = Some(("size = \"2..8MiB*2\"", few));
    each_with_sizes(&[("gamess/bandwidth", "RC uni,UC uni,RC bi,UC bi")], sweep);
    let sweep = Some(("size = \"8..32KiB*2\"", few));
    each_with_sizes(&[("potter/size-sweep", "RC write,UC send")], sweep);
}

#[test]
fn streams_are_granted_the_settings_of_their_source() {
    each(&[("villas/signalling", ""), ("villas/receive-depth", "")]);
}
