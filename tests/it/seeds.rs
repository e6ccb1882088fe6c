//! The inputs that fuzzing starts from (`fuzz/seeds`, `studies`, `tests/records`) are valid: each
//! gets past its parser, or the fuzzer would spend its time before the first branch.
//!
//! `UPDATE_SEEDS=1 cargo test --test it seeds::` makes those of a format again after it changed.

mod commands;
mod sessions;

use crate::support::program::PROGRAM;
use crate::support::{Scratch, full_record};
use std::collections::BTreeMap;
use std::fs;
use std::mem::{Discriminant, discriminant};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge::cli::entry::hosts;
use wiregauge::clock::exchange;
use wiregauge::control::frame;
use wiregauge::control::protocol::{FromAgent, Outcome, ToAgent};
use wiregauge::pattern::registry;
use wiregauge::pattern::rpc::workload::Workload;
use wiregauge::plan::{Trace, reference, study, sweep};
use wiregauge::record::directory::parse_record;
use wiregauge::record::journal::{self, JOURNAL_FILE};
use wiregauge::record::{RunDirectory, SampleReader};
use wiregauge::remote::daemon::pairing;
use wiregauge::remote::job::{munge, nodelist, parse_node, parse_published, rank};
use wiregauge::remote::stderr::telling_line;
use wiregauge::signal::format::Format;
use wiregauge::signal::source::{Shape, Signal, Source};
use wiregauge::signal::{Kind, Sample, TimeOfDay};
use wiregauge::stats::limit::Limit;
use wiregauge::transport::Blob;
use wiregauge::transport::synthetic::Synthetic;
use wiregauge::transport::verbs::address::Address;
use wiregauge_test_support::bounded;
use wiregauge_test_support::villas;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn seeds(target: &str) -> PathBuf {
    root().join("fuzz/seeds").join(target)
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries.map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found.sort();
    found
}

/// Every seed in a folder is valid, and there is one.
fn all_valid(folder: &Path, check: impl Fn(&Path, &[u8]) -> Result<(), String>) {
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        return; // The other test is writing them.
    }
    let all = files(folder);
    assert!(!all.is_empty(), "{} is empty", folder.display());
    for path in all {
        let bytes = fs::read(&path).unwrap();
        check(&path, &bytes).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| e.to_string())
}

#[test]
fn records_are_read() {
    for folder in [seeds("record_json"), root().join("tests/records")] {
        all_valid(&folder, |path, bytes| {
            parse_record(path, bytes).map(drop).map_err(|e| e.to_string())
        });
    }
}

#[test]
fn journals_are_read() {
    all_valid(&seeds("journal"), |_, bytes| {
        let scratch = Scratch::new();
        let dir = scratch.join(".run.partial-1");
        fs::create_dir(&dir).unwrap();
        let mut sum = String::new();
        let lines = text_of(bytes)?.lines().map(|line| journal::sealed(&mut sum, line));
        fs::write(dir.join(JOURNAL_FILE), lines.collect::<String>()).unwrap();
        // Those of the fuzz target, which the journal has the hashes of.
        fs::write(dir.join("samples.parquet"), [7; 1 << 14]).unwrap();
        RunDirectory::recover(&dir).map(drop).map_err(|error| error.to_string())
    });
}

#[test]
fn samples_are_read() {
    all_valid(&seeds("samples_parquet"), |path, _| {
        let mut reader = SampleReader::open(path).map_err(|e| e.to_string())?;
        while let Some(part) = reader.next_part() {
            part.map_err(|e| e.to_string())?;
        }
        Ok(())
    });
}

#[test]
fn studies_are_read() {
    all_valid(&root().join("studies"), |path, bytes| {
        if path.extension().is_none_or(|extension| extension != "toml") {
            return Ok(());
        }
        let read = study::file::parse(&registry::names(), "study.toml", text_of(bytes)?);
        read.map(drop).map_err(|wrong| wrong.sentence)
    });
}

#[test]
fn sweeps_and_synthetic_behaviours_are_read() {
    all_valid(&seeds("sweep"), |_, bytes| {
        sweep::parse(text_of(bytes)?).map(drop).map_err(|e| e.to_string())
    });
    all_valid(&seeds("synthetic_spec"), |_, bytes| text_of(bytes)?.parse::<Synthetic>().map(drop));
}

#[test]
fn files_of_users_and_limits_are_read() {
    all_valid(&seeds("trace"), |_, bytes| Trace::parse("t", text_of(bytes)?).map(drop));
    all_valid(&seeds("workload"), |_, bytes| {
        Workload::of_file("w", text_of(bytes)?).map(drop).map_err(|wrong| wrong.sentence)
    });
    all_valid(&seeds("reference"), |_, bytes| {
        reference::parse("r", text_of(bytes)?).map(drop).map_err(|wrong| wrong.sentence)
    });
    all_valid(&seeds("limit"), |_, bytes| text_of(bytes)?.parse::<Limit>().map(drop));
}

#[test]
fn signals_are_read() {
    all_valid(&seeds("stream_formats"), |_, bytes| {
        let kind = Kind::ALL[usize::from(bytes[0]) % Kind::ALL.len()];
        let is_read =
            |format: &Format| villas::read(*format, &bytes[1..], kind).is_ok_and(|s| !s.is_empty());
        Format::ALL.iter().any(is_read).then_some(()).ok_or("in no format".into())
    });
}

#[test]
fn frames_are_read() {
    all_valid(&seeds("control_frames"), |_, bytes| {
        let as_sent = frame::read::<ToAgent>(&mut &*bytes).map(drop);
        let as_received = frame::read::<FromAgent>(&mut &*bytes).map(drop);
        as_sent.or(as_received).map_err(|e| e.to_string())
    });
}

#[test]
fn what_peers_and_launchers_send_is_read() {
    all_valid(&seeds("hosts_file"), |_, bytes| {
        hosts(text_of(bytes)?, "rack").map(drop).map_err(|wrong| wrong.to_string())
    });
    all_valid(&seeds("verbs_address"), |_, bytes| {
        let own = Address::from_blob(&Blob(bytes.to_vec())).map_err(|error| error.to_string())?;
        Address::read(&own.blob(), &own).map(drop).map_err(|error| error.to_string())
    });
    all_valid(&seeds("pairing"), |_, mut bytes| {
        let offer = text_of(bytes).ok().and_then(pairing::parse_offer).map(drop);
        offer.ok_or("no offer").or_else(|_| pairing::read_card(&mut bytes).map(drop))
    });
    all_valid(&seeds("clock_datagrams"), |_, bytes| {
        let datagram = exchange::read(b"0123456789abcdef0123456789abcdef", bytes).map(drop);
        let times = (bytes.len() % 16 == 0).then_some(());
        datagram.or(times).ok_or("no datagram".into())
    });
    all_valid(&seeds("launchers"), |_, bytes| {
        let text = text_of(&bytes[1..])?;
        let name = |name: &str| {
            text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.into()))
        };
        match bytes[0] {
            0 => nodelist::first(text).map(drop).ok_or("no node".into()),
            1 => munge::read(text, 1000).map(drop),
            3 => parse_published(text).map(drop).ok_or("nothing published".into()),
            4 => rank::find(&rank::RankOptions::default(), &name)?.map(drop).ok_or("alone".into()),
            5 => telling_line(&bytes[1..]).map(drop).ok_or("nothing said".into()),
            6 => parse_node(text).first().map(drop).ok_or("no address".into()),
            // The answers of a manager end in an orderly way.
            _ => text.ends_with("cmd=finalize_ack\n").then_some(()).ok_or("cut off".into()),
        }
    });
}

/// Writes the seeds again whose format is ours: of a run with an agent behind a pipe.
#[test]
fn seeds_are_written_when_asked() {
    if std::env::var_os("UPDATE_SEEDS").is_none() {
        return;
    }
    let _bound = bounded::Bound::new();
    for target in ["record_json", "samples_parquet", "stream_formats"] {
        renewed(target);
    }
    let record = serde_json::to_vec_pretty(&full_record()).unwrap();
    fs::write(seeds("record_json").join("every-field"), record).unwrap();
    for &kind in Kind::ALL {
        for format in Format::ALL {
            let name = format!("{}-{}", kind.name(), format.name());
            fs::write(seeds("stream_formats").join(name), signal(kind, format)).unwrap();
        }
    }
    session();
    more_samples();
    commands::write();
    let words = words_of_records();
    let about = "Keys and words of a record and of a journal.";
    commands::write_dictionary("record_json", about, words);
}

/// An empty folder of seeds.
fn renewed(target: &str) -> PathBuf {
    let folder = seeds(target);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Three samples of a kind, after the byte that names the kind.
fn signal(kind: Kind, format: Format) -> Vec<u8> {
    let mut bytes = vec![Kind::ALL.iter().position(|other| *other == kind).unwrap() as u8];
    let mut source = Source::new(Shape { signal: Signal::Sine, kind, ..Shape::default() }, 2, 1);
    format.head(2, &mut bytes);
    for sequence in 0..3 {
        let values = (0..2).map(|i| source.value(i, sequence, 0.01 * sequence as f64)).collect();
        let origin = TimeOfDay::from_ns(1_700_000_000_000_000_000 + sequence);
        format.write(&Sample { sequence, origin, received: None, values }, &mut bytes);
    }
    bytes
}

/// A measurement whose control channel is written down: its frames, record and samples.
fn session() {
    let scratch = Scratch::new();
    let wrapper = scratch.join("ssh");
    let at = scratch.0.display();
    let script = format!(
        "#!/bin/sh\nfor command; do :; done\n\
         export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n\
         tee {at}/sent.$$ | sh -c \"$command\" | tee {at}/received.$$\n"
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let run = scratch.join("run");
    let mut command = Command::new(PROGRAM);
    command.args("latency --to 127.0.0.1 --transport tcp,udp --count 20 --rounds 2".split(' '));
    command.args(["--ssh", wrapper.to_str().unwrap(), "--remote-binary", PROGRAM, "--out"]);
    let output = bounded::output(command.arg(&run));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = fs::read_to_string(run.join("record.json")).unwrap();
    let record = record.replace(env!("CARGO_MANIFEST_DIR"), "/opt/wiregauge");
    fs::write(seeds("record_json").join("latency"), record).unwrap();
    fs::copy(run.join("samples.parquet"), seeds("samples_parquet").join("latency")).unwrap();

    let (frames, sessions) = (renewed("control_frames"), renewed("agent_inspector"));
    sessions::write_of_studies();
    for (number, path) in files(&scratch.0).iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        match path.file_stem().and_then(|name| name.to_str()) {
            Some("sent") if !bytes.is_empty() => {
                first_of_each::<ToAgent>(&bytes, &frames, "sent");
                fs::write(sessions.join(format!("session-{number}")), bytes).unwrap();
            }
            Some("received") => {
                first_of_each::<FromAgent>(&bytes, &frames, "received");
                outcome_of(&bytes).iter().for_each(sessions::write_of_agents);
            }
            _ => {}
        }
    }
}

/// Samples with flags, and those of several nodes.
const MORE_SAMPLES: [(&str, &str); 2] = [
    (
        "lossy",
        "oneway --transport synthetic --synthetic constant(1us)_loss(10%)_duplicate(5%) --rate 50k \
         --count 30 --warmup 2 --rounds 2",
    ),
    ("exchange", "exchange --transport unix --nodes 3 --chaotic --time 2ms --rounds 1 --size 64"),
];

/// Measures what has other samples than the session.
fn more_samples() {
    for (name, line) in MORE_SAMPLES {
        let scratch = Scratch::new();
        let words = line.split(' ').map(|word| word.replace('_', " "));
        let mut command = Command::new(PROGRAM);
        let output = bounded::output(command.args(words).arg("--out").arg(scratch.join("run")));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let samples = scratch.join("run/samples.parquet");
        fs::copy(samples, seeds("samples_parquet").join(name)).unwrap();
    }
}

/// Returns the results of the first thread that ends in these frames.
fn outcome_of(mut bytes: &[u8]) -> Option<Outcome> {
    loop {
        if let FromAgent::Ended { outcome, .. } = frame::read(&mut bytes).ok()? {
            return Some(*outcome);
        }
    }
}

/// Returns the keys of a record with every field, and its words.
fn words_of_records() -> Vec<String> {
    const MAX_WORD: usize = 24;
    let text = serde_json::to_string(&full_record()).unwrap();
    let words = text.split('"').skip(1).step_by(2).filter(|word| {
        let mut letters = word.chars();
        let is_short = !word.is_empty() && word.len() <= MAX_WORD;
        is_short && letters.all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    });
    let mut all: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    let more = ["null", "true", "false", "1e308", "-1", "18446744073709551615", "{}", "[]", "\n"];
    all.extend(more.map(String::from));
    all
}

/// Keeps the first frame of each kind of message.
fn first_of_each<T: serde::Serialize + serde::de::DeserializeOwned>(
    mut bytes: &[u8],
    folder: &Path,
    name: &str,
) {
    let mut kinds: BTreeMap<String, Discriminant<T>> = BTreeMap::new();
    while let Ok(message) = frame::read::<T>(&mut bytes) {
        let kind = discriminant(&message);
        if kinds.values().any(|known| *known == kind) {
            continue;
        }
        let file = format!("{name}-{}", kinds.len());
        let mut whole = Vec::new();
        frame::write(&mut whole, &message).unwrap();
        fs::write(folder.join(&file), whole).unwrap();
        kinds.insert(file, kind);
    }
}
