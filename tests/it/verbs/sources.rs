//! What is granted to the shipped studies is what their sources had: by a device, and by sockets,
//! which need none.

use super::{has_device, program, run_to_end};
use serde_json::Value;

fn sources() -> Vec<Value> {
    let texts = [
        include_str!("../../support/sources/dabc.json"),
        include_str!("../../support/sources/gamess.json"),
        include_str!("../../support/sources/homa.json"),
        include_str!("../../support/sources/mpi.json"),
        include_str!("../../support/sources/potter.json"),
        include_str!("../../support/sources/ramcloud.json"),
        include_str!("../../support/sources/villas.json"),
    ];
    texts.iter().flat_map(|text| serde_json::from_str::<Vec<Value>>(text).unwrap()).collect()
}

/// What is run of a study: its name, the series (none: all), and texts in it that are replaced.
/// What is granted depends on neither sizes, rates nor pauses, which are the plan's business
/// (`src/command/run/sources.rs`), and software takes minutes for 8 MiB.
struct Part(&'static str, &'static str, &'static [(&'static str, &'static str)]);

const BURSTS: &[Part] = &[
    Part("potter/busy-polling", "", &[]),
    Part("potter/event-polling", "", &[]),
    Part("potter/write-against-send", "", &[]),
    Part("potter/pauses", "", &[("pause = \"1s\"", "pause = \"1ms\"")]),
];

const INLINE: &[Part] = &[
    Part("potter/inline", "", &[]),
    Part("potter/unsignalled", "", &[]),
    // The thread that rewrites a time has no CPU of its own: a few messages.
    Part("potter/submit-against-send", "", &[("count = 8000", "count = 80")]),
];

const ROUND_TRIPS: &[Part] = &[
    Part(
        "potter/mtu",
        "",
        &[
            ("size = [32, 1024, 4096, 32768]", "size = 32"),
            ("size = [32, 1024, 4096]", "size = 32"),
            ("size = [32, 1024]", "size = 32"),
        ],
    ),
    Part("potter/cm-against-exchange", "", &[("\"8..32KiB*4\"", "64"), ("\"8..2KiB*4\"", "64")]),
    Part(
        "potter/correspondence",
        "",
        &[("\"8..32KiB*2\"", "64"), ("\"8..4KiB*2\"", "64"), ("\"8..512*2\"", "64")],
    ),
];

/// Both ways of posting and both operations by the shortest and the longest message.
const SIZES: &[Part] = &[
    Part(
        "potter/size-sweep",
        "RC send inline,UC write inline,UD send,UD send 5500 ns",
        &[("\"8..512*2\"", "[8, 512]"), ("\"8..4KiB*2\"", "[8, 4096]")],
    ),
    Part(
        "potter/size-sweep",
        "",
        &[("\"8..32KiB*2\"", "64"), ("\"8..4KiB*2\"", "64"), ("\"8..512*2\"", "64")],
    ),
];

const DATAGRAMS: &[Part] = &[
    Part("gamess/send-latency", "UD", &[]),
    Part("gamess/bandwidth", "UD uni", &[]),
    Part("gamess/bandwidth", "UD bi", &[]),
];

const TO_8_MIB: &[Part] = &[
    Part("gamess/send-latency", "RC,UC", &[("\"4..8MiB*2\"", "[64, 8192]")]),
    Part("gamess/bandwidth", "RC uni,UC uni,RC bi,UC bi", &[("\"2..8MiB*2\"", "[64, 8192]")]),
];

const STREAMS: &[Part] = &[
    Part("villas/signalling", "", &[FEW_SAMPLES]),
    Part("villas/receive-depth", "", &[FEW_SAMPLES]),
    Part(
        "villas/rates",
        "RC,UD",
        &[("[100, 500, \"2500\", \"10k\", \"25k\", \"50k\", \"100k\"]", "\"25k\"")],
    ),
    Part(
        "villas/node-types",
        "verbs",
        &[("[100, \"2500\", \"10k\", \"25k\", \"50k\", \"100k\"]", "\"25k\"")],
    ),
    Part("villas/sizes", "RC,UD", &[("[1, 2, 4, 8, 16, 32, 64]", "8")]),
    Part(
        "villas/surface",
        "RC,UC,UD",
        &[
            ("[1, 4, 8, 16, 32, 64]", "8"),
            ("[100, \"1k\", \"10k\", \"25k\", \"50k\", \"100k\"]", "\"25k\""),
        ],
    ),
    Part("villas/decomposition", "verbs,adapters", &[FEW_SAMPLES]),
];
/// At 25000 a second an emulated sender is late for nearly all.
const FEW_SAMPLES: (&str, &str) = ("\"50k\"", "2000");

const SERVERS: &[Part] = &[
    Part(
        "ramcloud/many-clients",
        "verbs 24 shared,verbs 48 shared,verbs 24 own",
        &[FOUR_CLIENTS, ("threads = 4", "threads = 1")],
    ),
    Part(
        "ramcloud/under-load",
        "verbs TX 8 RX 24,verbs TX 32 RX 24,verbs TX 64 RX 24,verbs TX 8 RX 48,verbs TX 32 RX 48,\
         verbs TX 64 RX 48",
        &[FOUR_CLIENTS],
    ),
];
const FOUR_CLIENTS: (&str, &str) = ("[1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64]", "4");

/// The slots of 8 Gb/s are hardware's; four nodes share the processor of an emulated machine.
const NODES: &[Part] = &[
    Part("dabc/messages", "", &[ONE_SIZE, SLOWLY]),
    Part("dabc/rdma", "", &[ONE_SIZE, SLOWLY]),
    Part("dabc/chaotic", "", &[ONE_SIZE]),
    Part("dabc/scheduled-or-chaotic", "", &[ONE_SIZE, SLOWLY]),
    Part("dabc/over-time", "", &[("time = \"5s\"", "time = \"1s\"")]),
];
const ONE_SIZE: (&str, &str) = ("\"1KiB..128KiB*2\"", "4096");
const SLOWLY: (&str, &str) = ("\"8gbit\"", "\"10mbit\"");

/// What no RDMA device is needed for.
const SOCKETS: &[Part] = &[
    Part("gamess/ipoib-latency", "", &[("\"4..32KiB*2\"", "64")]),
    Part("gamess/ipoib-throughput", "", &[("\"4..32KiB*2\"", "64")]),
    Part("homa/congestion", "cubic,reno", &[]),
    Part("homa/polling", "", &[]),
    Part("homa/workloads", "W2 TCP,W3 TCP,W4 TCP,W5 TCP", &[]),
];

/// Settings that need a module of the kernel.
const DCTCP: &[Part] = &[Part("homa/workloads", "W2 DCTCP,W3 DCTCP,W4 DCTCP,W5 DCTCP", &[])];

const ALL: [&[Part]; 11] = [
    BURSTS,
    INLINE,
    ROUND_TRIPS,
    SIZES,
    DATAGRAMS,
    TO_8_MIB,
    STREAMS,
    SERVERS,
    NODES,
    SOCKETS,
    DCTCP,
];

/// The text of a study with one round: all are granted the same.
fn one_round(text: &str) -> String {
    let line = |line: &str| match line.starts_with("rounds = ") {
        true => "rounds = 1\n".to_string(),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The record of a tenth of a part of a study.
fn record(Part(study, only, replaced): &Part) -> Value {
    let scratch = std::env::temp_dir().join(format!("wiregauge-source-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let shipped = format!("{}/studies/{study}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(shipped).unwrap();
    for (all, few) in *replaced {
        assert!(text.contains(all), "{study}: {all}");
        text = text.replace(all, few);
    }
    std::fs::write(scratch.join("study.toml"), one_round(&text)).unwrap();
    let mut command = program();
    command.current_dir(&scratch).args(["run", "study.toml", "--quick", "--json"]);
    if !only.is_empty() {
        command.args(["--only", *only]);
    }
    let output = run_to_end(&mut command);
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
    let mut checked = 0;
    for number in series["cases"].as_array().unwrap() {
        let run = &record["runs"][number.as_u64().unwrap() as usize];
        let label = run["label"].as_str().unwrap();
        for (end, key) in [("client", "granted"), ("server", "granted_server")] {
            let mut expected = source[key].as_object().cloned().unwrap_or_default();
            // A series that is called after a service is granted it.
            let first = name.split(' ').next().unwrap_or_default();
            if ["RC", "UC", "UD"].contains(&first) {
                expected.insert("service".into(), first.to_lowercase().into());
            }
            for round in run["rounds"].as_array().unwrap() {
                let granted = &round[end]["effective_settings"];
                for (setting, value) in &expected {
                    let place = format!("{study}: {label}: {setting} of the {end}");
                    assert_eq!(granted[setting], *value, "{place} in {granted}");
                }
            }
            checked += expected.len();
        }
    }
    checked
}

/// Checks what a device grants to each of these parts.
fn each(parts: &[Part]) {
    if has_device() {
        each_here(parts);
    }
}

/// Checks what is granted to each of these parts.
fn each_here(parts: &[Part]) {
    let sources = sources();
    for part in parts {
        let Part(study, ..) = part;
        let record = record(part);
        for series in record["plan"]["study"]["series"].as_array().unwrap() {
            assert!(check(study, &record, series, &sources) > 0, "{study}: {series}");
        }
        eprintln!("{study}: as its source");
    }
}

#[test]
fn every_series_that_a_source_says_something_of_is_run() {
    let parts = || ALL.into_iter().flatten();
    for source in sources() {
        let granted = source["granted"].as_object().is_some_and(|all| !all.is_empty());
        let reason = source["ungranted"].as_str().is_some_and(|why| !why.is_empty());
        assert!(granted != reason, "either what is granted, or why it says nothing: {source}");
        let series = source["series"].as_array().cloned().unwrap_or_else(|| vec!["".into()]);
        for name in series.iter().filter(|_| granted) {
            let is_run = |Part(study, only, _): &Part| {
                source["study"] == *study
                    && (only.is_empty() || only.split(',').any(|one| *name == one))
            };
            assert!(parts().any(is_run), "{}, {name}", source["study"]);
        }
    }
}

#[test]
fn bursts_are_granted_the_settings_of_their_source() {
    each(BURSTS);
}

#[test]
fn inline_and_unsignalled_messages_are_granted_the_settings_of_their_source() {
    each(INLINE);
}

#[test]
fn round_trips_are_granted_the_settings_of_their_source() {
    each(ROUND_TRIPS);
}

#[test]
fn sweeps_of_sizes_are_granted_the_settings_of_their_source() {
    each(SIZES);
}

#[test]
fn sweeps_of_datagrams_are_granted_the_settings_of_their_source() {
    each(DATAGRAMS);
}

#[test]
fn sweeps_to_8_mib_are_granted_the_settings_of_their_source() {
    each(TO_8_MIB);
}

#[test]
fn streams_are_granted_the_settings_of_their_source() {
    each(STREAMS);
}

#[test]
fn connections_of_nodes_are_granted_the_settings_of_their_source() {
    each(NODES);
}

#[test]
fn connections_of_a_server_are_granted_the_settings_of_their_source() {
    each(SERVERS);
}

#[test]
fn connections_of_sockets_are_granted_the_settings_of_their_source() {
    // They took a tenth of the time of all tests in the emulated machine, and need none.
    if std::env::var_os("WIREGAUGE_TESTBED").is_some() {
        return eprintln!("not checked here: the host checks it");
    }
    each_here(SOCKETS);
}

#[test]
fn connections_with_dctcp_are_granted_the_settings_of_their_source() {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    match std::fs::read_to_string(file).unwrap().split_whitespace().any(|name| name == "dctcp") {
        true => each_here(DCTCP),
        false => eprintln!("not checked here: the kernel has not loaded dctcp"),
    }
}
