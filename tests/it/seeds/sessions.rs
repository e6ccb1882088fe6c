//! Sessions of controllers and agents, made of the cases of the shipped studies.

use super::{Path, all_valid, files, frame, fs, renewed, root, seeds, text_of};
use std::collections::BTreeSet;
use wiregauge::cli::entry;
use wiregauge::clock::exchange::Local;
use wiregauge::clock::{Source, Ticks, Timebase};
use wiregauge::control::protocol::*;
use wiregauge::pattern::registry;
use wiregauge::plan::case_frame::CaseFrame;
use wiregauge::plan::study::file;
use wiregauge::plan::{Case, Plan};
use wiregauge::remote::daemon::caps::{Caps, Inspector};
use wiregauge::sample::arena::Row;
use wiregauge::sample::recorder::MessageCounts;
use wiregauge::transport::preflight::{PeerReport, PreflightAddresses};
use wiregauge::transport::{Blob, TransportKind};
use wiregauge::units::{Bytes, Span};

/// Rounds of a session: what differs within a study are mostly numbers.
const ROUNDS: usize = 6;
/// Cases and ranks of the seeds of `agent_frames`.
const CASES: u8 = 8;
const RANKS: u8 = 3;
/// Rows of a thread.
const ROWS: u64 = 8;

/// Returns limits that let every round through.
fn unlimited() -> Caps {
    Caps {
        longest_run: Span(u64::MAX),
        most_memory: Bytes(u64::MAX),
        transports: TransportKind::ALL.to_vec(),
        ..Caps::of_a_rank()
    }
}

/// Returns the first case of each entry of a study that differs from the others in its pattern,
/// transport or schedule.
fn cases(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap();
    let study = file::parse(&registry::names(), "study.toml", &text).unwrap();
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for asked in &study.entries {
        let request = entry::request(&study.written, asked);
        let plan = request.ok().and_then(|request| request.plan().ok());
        for case in plan.into_iter().flat_map(|plan: Plan| plan.cases) {
            let kind = (case.pattern.name(), case.transport.name(), format!("{:?}", case.schedule));
            if all.len() < ROUNDS && known.insert(kind) {
                all.push(case);
            }
        }
    }
    all
}

fn assignment(case: &Case) -> Assignment {
    let rank = case.topology.ranks.len() - 1;
    let slot = ThreadSlot { cpu: None, arena: "".into(), stamps: None };
    Assignment {
        role: case.topology.ranks[rank].role,
        rank: rank as u32,
        slots: vec![slot; case.topology.ranks[rank].threads as usize],
        others: vec![0],
        server_arena: None,
        remote_rows: Some(1000),
        site: None,
        run: 7,
        cookie: [7; 32],
        clock: Local {
            source: Source::MonotonicRaw,
            time: Timebase::nanoseconds(Ticks(0)),
            injected_error: None,
        },
        epoch_of_day_ns: None,
        noise: Span(0),
        overhead_messages: 100,
        trace: None,
    }
}

/// Returns what a controller sends for rounds of these cases.
fn session(cases: &[Case]) -> Vec<u8> {
    let hello =
        ToAgent::Hello { magic: MAGIC, version: VERSION, secret: [7; 32], asks_program: true };
    let mut all = vec![hello];
    for case in cases {
        let assignment = assignment(case);
        let connections = case.topology.endpoints_of(assignment.rank as usize) as usize;
        let addresses = vec![vec![Blob(vec![7; 8]); connections]; assignment.slots.len()];
        all.push(ToAgent::Open(Box::new(CaseFrame::from(case)), Box::new(assignment)));
        all.push(ToAgent::Connect(addresses));
        all.push(ToAgent::Start(None));
        all.push(ToAgent::Again);
    }
    all.push(ToAgent::Stop);
    let mut bytes = Vec::new();
    all.iter().for_each(|message| frame::write(&mut bytes, message).unwrap());
    bytes
}

/// Sends a session through an inspector; fails if one of its frames is refused, or if an agent
/// would refuse its greeting, which the inspector leaves to it.
pub fn admitted(mut bytes: &[u8]) -> Result<(), String> {
    let mut inspector = Inspector::new(unlimited(), registry::find);
    while !bytes.is_empty() {
        let body = frame::read_body(&mut bytes).map_err(|error| error.to_string())?;
        if let Ok(ToAgent::Hello { version, .. }) = postcard::from_bytes(&body)
            && version != VERSION
        {
            return Err(format!("version {version}, not {VERSION}: UPDATE_SEEDS=1"));
        }
        inspector.admit(&body)?;
    }
    Ok(())
}

/// Writes a session of each study.
pub fn write_of_studies() {
    let folder = seeds("agent_inspector");
    for path in files(&root().join("studies")) {
        let is_study = path.extension().is_some_and(|extension| extension == "toml");
        let cases = if is_study { cases(&path) } else { Vec::new() };
        let bytes = session(&cases);
        if !cases.is_empty() && admitted(&bytes).is_ok() {
            let name = path.strip_prefix(root().join("studies")).unwrap().with_extension("");
            let name = name.to_str().unwrap().replace('/', "-");
            fs::write(folder.join(format!("study-{name}")), bytes).unwrap();
        }
    }
}

/// Rows as a loop writes them, a message each microsecond.
fn rows() -> Vec<Row> {
    let rows = (0..ROWS).map(|number| Row {
        intended: Ticks(1000 * number + 1),
        submit: Ticks(1000 * number + 11),
        receive: Ticks(1000 * number + 411),
        complete: Ticks(1000 * number + 511),
        order: number as u32 + 1,
        ..Row::default()
    });
    rows.collect()
}

/// Returns the addresses of an end of a pre-flight.
fn path() -> PreflightAddresses {
    PreflightAddresses {
        tcp: "10.0.0.1:7000".parse().ok(),
        udp: "10.0.0.1:7001".parse().unwrap(),
        interface: Some("eth0".into()),
        mtu_bytes: Some(1500),
    }
}

/// Returns what an end reports of the first other one.
fn path_report() -> PeerReport {
    let sizes = BTreeSet::from([69, 1280, 1500]);
    PeerReport {
        tcp: Some(Ok(())),
        acknowledged: sizes.clone(),
        received: sizes,
        ..PeerReport::default()
    }
}

/// Writes what agents send in a round of each case, with an outcome of a real one.
pub fn write_of_agents(outcome: &Outcome) {
    let folder = renewed("agent_frames");
    let counts = MessageCounts { sent: ROWS, received: ROWS, ..MessageCounts::default() };
    let outcome = Outcome { counts, span: (Ticks(1), Ticks(9000)), ..outcome.clone() };
    for case in 0..2 * CASES {
        // The second half has tables and pages, too.
        let choice = if case < CASES { case } else { 0x80 + case };
        let mut bytes = vec![choice];
        for rank in 0..RANKS {
            let settings = vec![vec![("send_buffer".to_owned(), "4096".to_owned())]];
            for message in [
                FromAgent::PathOpened(path()),
                FromAgent::PathTried(vec![path_report()]),
                FromAgent::Connected(settings),
                FromAgent::Rows { thread: 0, rows: rows() },
                FromAgent::Ended { thread: 0, outcome: Box::new(outcome.clone()) },
            ] {
                bytes.push(rank);
                frame::write(&mut bytes, &message).unwrap();
            }
        }
        fs::write(folder.join(format!("case-{case}")), bytes).unwrap();
    }
}

#[test]
fn sessions_of_studies_are_admitted_and_frames_of_agents_are_read() {
    all_valid(&seeds("agent_inspector"), |_, bytes| admitted(bytes));
    all_valid(&seeds("agent_frames"), |_, mut bytes| {
        bytes = &bytes[1..];
        while !bytes.is_empty() {
            bytes = &bytes[1..];
            frame::read_plain::<FromAgent>(&mut bytes).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
}

#[test]
fn files_of_exchanges_hosts_and_homa_are_read() {
    use wiregauge::explain::packets::Trace;
    use wiregauge::pattern::exchange::file as schedule;
    use wiregauge::pattern::exchange::routes::Network;
    all_valid(&seeds("exchange_files"), |_, bytes| {
        let text = text_of(&bytes[1..])?;
        let nodes = 2 + u32::from(bytes[0] >> 1) % 8;
        let listed = schedule::parse("slots", text, nodes).map(drop);
        let read = if bytes[0] & 1 == 0 { listed } else { Network::parse("r", text).map(drop) };
        read.map_err(|wrong| wrong.sentence)
    });
    all_valid(&seeds("homa_timetrace"), |_, bytes| {
        let traces = text_of(bytes)?.split("\n--\n");
        let mut read = traces.map(|text| Trace::read(text.as_bytes(), "t").map(drop));
        read.try_for_each(|one| one).map_err(|wrong| wrong.to_string())
    });
    all_valid(&seeds("netlink_replies"), |path, bytes| {
        let has_any = wiregauge::host::fuzzed::read_netlink(bytes) > 0 || path.ends_with("error");
        has_any.then_some(()).ok_or("no message".into())
    });
    all_valid(&seeds("host_files"), |_, bytes| {
        text_of(bytes)?.contains("=== ").then_some(()).ok_or("no file".into())
    });
}
