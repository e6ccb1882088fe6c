//! What an agent does by itself where the driver is on another host: it says what its host is,
//! makes its own sample memory, and sends what it has recorded when its loop is over.

use crate::clock::exchange::Local;
use crate::clock::{self, Calibration, Source, Ticks, Timebase};
use crate::control::frame::{self, FrameError};
use crate::control::patience::patience;
use crate::control::protocol::*;
use crate::host::{self, Environment};
use crate::sample::arena::{Arena, Row};
use crate::transport::TransportKind;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// As the driver's own calibration (`conduct`): two anchors of some 30 ns each over it leave less
/// than 1 ppm.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Anchors of that calibration.
const ANCHORS: u32 = 11;
/// How long a round may take to be set up and told of, on both ends together: several times what
/// the driver waits for each step.
const SET_UP: Duration = Duration::from_secs(60);
/// How often an agent looks whether its loop goes on.
const LOOK: Duration = Duration::from_secs(1);
/// How often an agent tells of its progress while its loop runs: rare enough not to disturb it.
pub(crate) const REPORT: Duration = Duration::from_secs(5);
/// Rows of one frame: at most 58 B each as varints, which is below `frame::LONGEST`.
const ROWS: usize = 16_384;

/// What there is on this host, or why it cannot serve, in a sentence.
pub(crate) fn probe(asked: &HostProbeRequest) -> Result<HostProbe, String> {
    for cpu in &asked.cpus {
        host::check_pair(*cpu, *cpu).map_err(|error| format!("--cpus: {error}"))?;
    }
    let address = match &asked.interface {
        Some(name) => {
            Some(host::address_of(name).map_err(|error| format!("--interface: {error}"))?)
        }
        None => host::session_address().ok(),
    };
    let cpus = match asked.cpus.is_empty() {
        false => asked.cpus.clone(),
        // The servers' first: where both "hosts" are namespaces of one, the driver has the others.
        true => host::choose_pairs(None, asked.threads).of_one_end(false, asked.threads),
    };
    let (source, reason) = match asked.clock {
        Some(source) => (source, "asked for".to_string()),
        None => Source::choose(),
    };
    let anchors = clock::anchors(source, CALIBRATION, ANCHORS);
    let scale = Calibration::of(source, &anchors).ok_or("the clock could not be calibrated")?;
    let epoch = anchors.first().map_or(Ticks(0), |anchor| anchor.ticks);
    let time = Timebase::new(epoch, scale.ns_per_tick);
    let clock = clock::report(source, &reason, &scale, &source.measure_reading(&time));
    let works = |transport: &TransportKind| transport.available().err();
    let environment = Environment::read(&cpus);
    if source == Source::Ptp {
        environment.discipline.stated_error_ns()?;
    }
    Ok(HostProbe {
        environment,
        cpus,
        source,
        time,
        clock,
        address: address.map(|address| address.ip()).filter(|ip| !is_link_local(*ip)),
        unavailable: asked
            .transports
            .iter()
            .filter_map(|transport| Some((*transport, works(transport)?)))
            .collect(),
    })
}

/// Whether an address means nothing without the number of an interface, which is each host's own.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Where the sample memory of each thread is: the driver's, or on another host its own. The thread
/// opens it, and touches every page on its own CPU.
pub(crate) fn memory(assignment: &Assignment) -> io::Result<Vec<PathBuf>> {
    let Some(RemoteSettings { rows, .. }) = assignment.remote else {
        return Ok(assignment.slots.iter().map(|slot| slot.arena.clone()).collect());
    };
    let rows = usize::try_from(rows).map_err(io::Error::other)?;
    let made = assignment.slots.iter().map(|_| Arena::create(rows));
    let made: Vec<Arena> = made.collect::<io::Result<_>>()?;
    let paths = made.iter().map(Arena::path).collect();
    let limit = 2 * patience(&assignment.case) + SET_UP;
    let elsewhere = assignment.cpu_beside();
    std::thread::spawn(move || watch_over(&made, limit, elsewhere));
    Ok(paths)
}

/// Tells of the loops' progress, and ends this process when they have handled nothing for so long.
/// A connection that has died without a word is not noticed where nothing is said over it, and a
/// loop that polls would spin until somebody finds it; the driver has long given up by then.
fn watch_over(memory: &[Arena], limit: Duration, cpu: Option<u32>) {
    if let Some(cpu) = cpu {
        // Where that fails it looks once a second beside the loop.
        let _ = host::pin_to(cpu);
    }
    let (mut seen, mut moved) = (0, Instant::now());
    let (mut told, mut spoke) = (0, Instant::now());
    while moved.elapsed() < limit {
        let now = memory.iter().map(Arena::progress).sum();
        if now != seen {
            (seen, moved) = (now, Instant::now());
        }
        if now != told && spoke.elapsed() >= REPORT {
            // A driver that is gone is noticed by the thread that listens to it.
            let _ = frame::write(&mut io::stdout(), &FromAgent::Progress(now));
            (told, spoke) = (now, Instant::now());
        }
        std::thread::sleep(LOOK);
    }
    std::process::exit(3);
}

/// Sends what a thread has recorded, as this host's clock has stamped it.
pub(crate) fn hand_over(
    thread: u32,
    arena: &Arena,
    clock: &Local,
    output: &mut impl io::Write,
) -> Result<(), FrameError> {
    let stamped = |row: &Row| Row {
        intended: clock.stamp(row.intended),
        submit: clock.stamp(row.submit),
        receive: clock.stamp(row.receive),
        complete: clock.stamp(row.complete),
        ..*row
    };
    arena.rows().chunks(ROWS).try_for_each(|rows| {
        let rows = rows.iter().map(stamped).collect();
        frame::write(output, &FromAgent::Rows { thread, rows })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Flags;

    #[test]
    fn the_largest_rows_fit_a_frame_and_come_back() {
        let most = Ticks(u64::MAX);
        let row = Row {
            intended: most,
            submit: most,
            receive: most,
            complete: most,
            flags: Flags(u32::MAX),
            order: u32::MAX,
        };
        let mut arena = Arena::create(ROWS + 1).unwrap();
        assert!(arena.extend(&vec![row; ROWS]) && arena.extend(&[Row::default()]));
        assert!(!arena.extend(&[row]), "there is no room");
        let mut channel = Vec::new();
        let time = Timebase::nanoseconds(Ticks(0));
        let clock = Local { source: Source::MonotonicRaw, time, untrue: None };
        hand_over(u32::MAX, &arena, &clock, &mut channel).unwrap();
        let mut channel = channel.as_slice();
        let mut back = Vec::new();
        for _ in 0..2 {
            let Ok(FromAgent::Rows { rows, .. }) = frame::read(&mut channel) else { panic!() };
            back.extend(rows);
        }
        assert_eq!(back, arena.rows());
    }

    #[test]
    fn what_a_host_is_passes_the_channel() {
        let transports = TransportKind::ALL.to_vec();
        let interface = Some("lo".into());
        let asked =
            HostProbeRequest { transports, interface, cpus: Vec::new(), threads: 2, clock: None };
        let found = probe(&asked).unwrap();
        let mut channel = Vec::new();
        frame::write(&mut channel, &FromAgent::Probed(Box::new(found.clone()))).unwrap();
        let Ok(FromAgent::Probed(back)) = frame::read(&mut channel.as_slice()) else { panic!() };
        assert_eq!(format!("{back:?}"), format!("{found:?}"));
    }

    #[test]
    fn what_is_not_on_this_host_is_refused() {
        let asked = HostProbeRequest {
            transports: Vec::new(),
            interface: Some("no-such-one".into()),
            cpus: Vec::new(),
            threads: 1,
            clock: None,
        };
        let refused = probe(&asked).unwrap_err();
        assert!(refused.starts_with("--interface: there is no network interface"), "{refused}");
    }
}
