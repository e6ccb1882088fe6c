//! How the ranks find each other: rank 0 listens until all have arrived, and every other rank
//! connects to it and reports the address of its agent.

use super::rank::Rank;
use super::{
    Fault, JobKey, PORTS, Sharing, candidates, listen, munge, name, parse_published, pmi,
    published, sharing,
};
use crate::control::frame;
use crate::control::protocol::VERSION;
use crate::control::secret;
use crate::plan::FindPattern;
use crate::plan::HostSpec;
use crate::remote::daemon::identity::DerivedPair;
use crate::remote::daemon::tls::{self, Channel};
use crate::remote::daemon::{self, Daemon, Trust};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long ranks may take to arrive: a launcher starts them at about the same time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit of a handshake.
const PROOF: Duration = Duration::from_secs(10);
/// Time limit of a connection attempt.
const CONNECTING: Duration = Duration::from_secs(2);
/// Interval between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Most concurrent handshakes.
const MOST_AT_ONCE: usize = 256;

/// A rank's first message to rank 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrival {
    version: u32,
    rank: u32,
    ranks: u32,
    /// The address of its agent.
    at: SocketAddr,
}

/// A rank that has arrived, with the channel that it holds open.
type Arrived = (HostSpec, Channel);

/// The answer of rank 0: accepted, or why not.
type Answer = Result<(), String>;

/// The other ranks, each with an agent. They exit when this is dropped.
pub struct Gathered {
    /// As other hosts, by their rank from 1.
    pub hosts: Vec<HostSpec>,
    _held: Vec<Channel>,
}

/// Rank 0: waits until all have arrived.
pub fn gather(rank: &Rank, interrupted: &AtomicBool) -> Result<Gathered, Fault> {
    let sharing = sharing(rank)?;
    let is_sealed = matches!(sharing, Sharing::Munge);
    let (key, listener) = match sharing {
        Sharing::Known(key) => (key, listen(candidates(&rank.leader)?.1)?),
        Sharing::Munge => (JobKey(secret::fresh()?), listen(candidates(&rank.leader)?.1)?),
        Sharing::Pmi => {
            let (key, listener) = (JobKey(secret::fresh()?), listen(0)?);
            pmi::share(Some(&published(&key, listener.local_addr()?)))?;
            (key, listener)
        }
    };
    listener.set_nonblocking(true)?;
    let (tx, rx) = mpsc::channel();
    let mut arrived: Vec<Option<Arrived>> = (1..rank.ranks).map(|_| None).collect();
    let deadline = Instant::now() + PATIENCE;
    let handshakes = Arc::new(());
    while arrived.iter().any(Option::is_none) {
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
        ensure!(Instant::now() <= deadline, missing(&arrived));
        if let Ok((socket, _)) = listener.accept()
            && Arc::strong_count(&handshakes) <= MOST_AT_ONCE
        {
            let (tx, place) = (tx.clone(), Arc::clone(&handshakes));
            std::thread::spawn(move || {
                // A rejected peer does not end the job.
                if let Ok(one) = authenticate(socket, key, is_sealed) {
                    let _ = tx.send(one);
                }
                drop(place);
            });
        }
        if let Ok((arrival, channel)) = rx.recv_timeout(Duration::from_millis(1)) {
            take(&mut arrived, arrival, channel, key);
        }
    }
    let (hosts, held) = arrived.into_iter().flatten().unzip();
    Ok(Gathered { hosts, _held: held })
}

fn missing(arrived: &[Option<Arrived>]) -> String {
    let absent = arrived.iter().enumerate().filter(|(_, one)| one.is_none());
    let names: Vec<String> = absent.map(|(at, _)| (at + 1).to_string()).take(20).collect();
    format!(
        "of {} ranks {} did not arrive within {} s: start all with the same command, and check \
         that they can reach rank 0 (--leader)",
        arrived.len() + 1,
        names.join(", "),
        PATIENCE.as_secs()
    )
}

/// Authenticates a connection to rank 0 as one of the job's.
fn authenticate(
    mut socket: TcpStream,
    JobKey(key): JobKey,
    is_sealed: bool,
) -> Result<(Arrival, Channel), Fault> {
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PROOF))?;
    if is_sealed {
        frame::write(&mut socket, &munge::seal(&secret::to_hex(key))?)?;
    }
    let ends = DerivedPair::of_secret(&key)?;
    let config = tls::listening(&ends.agent, &[ends.controller.certificate], tls::FRAMES);
    let deadline = Instant::now() + PROOF;
    let (mut reader, writer) = tls::accept(socket, deadline, |_| config)?;
    reader.deadline = Some(deadline);
    Ok((frame::read(&mut reader)?, (reader, writer)))
}

/// Accepts a rank, or answers why not.
fn take(arrived: &mut [Option<Arrived>], arrival: Arrival, mut channel: Channel, key: JobKey) {
    let ranks = arrived.len() + 1;
    let place = (arrival.rank as usize).checked_sub(1).and_then(|at| arrived.get_mut(at));
    let answer: Answer = match &place {
        _ if arrival.version != VERSION => Err(format!(
            "rank {} speaks version {} of the control protocol and rank 0 version {VERSION}: run \
             the same wiregauge on all",
            arrival.rank, arrival.version
        )),
        Some(None) if arrival.ranks as usize == ranks => Ok(()),
        _ => {
            Err(format!("rank {} of {} does not fit a job of {ranks}", arrival.rank, arrival.ranks))
        }
    };
    if frame::write(&mut channel.1, &answer).is_ok()
        && let (Some(place), Ok(())) = (place, answer)
    {
        let agent = Some(format!("[{}]:{}", arrival.at.ip(), arrival.at.port()));
        let (host, key) = (name(arrival.rank), Some(key));
        *place = Some((HostSpec { host, agent, key, ..HostSpec::default() }, channel));
    }
}

/// Every other rank: serves rank 0 as an agent until it exits.
pub fn serve(rank: &Rank, program: &Path, patterns: FindPattern) -> Result<(), Fault> {
    let (key, (hosts, port)) = match sharing(rank)? {
        Sharing::Known(key) => (Some(key), candidates(&rank.leader)?),
        Sharing::Munge => (None, candidates(&rank.leader)?),
        Sharing::Pmi => {
            let (key, hosts, port) =
                parse_published(&pmi::share(None)?).ok_or("rank 0 published no valid address")?;
            (Some(key), (hosts, port))
        }
    };
    let (JobKey(key), own, (mut reader, mut writer)) = connect(rank.rank, &hosts, port, key)?;
    let ends = DerivedPair::of_secret(&key)?;
    let trust = Trust::One(ends.controller.certificate);
    let listener = daemon::listen(SocketAddr::new(own, 0))?;
    let at = listener.local_addr()?;
    let own_daemon = Daemon::new(program.into(), patterns, ends.agent, trust, true);
    std::thread::spawn(move || daemon::serve(&Arc::new(own_daemon), &listener));
    reader.deadline = Some(Instant::now() + PROOF);
    let arrived = Arrival { version: VERSION, rank: rank.rank, ranks: rank.ranks, at };
    let answer = frame::write(&mut writer, &arrived).and_then(|()| frame::read_plain(&mut reader));
    let answer: Answer = answer.map_err(|error| format!("rank 0: {error}"))?;
    answer.map_err(Fault::Refused)?;
    reader.deadline = None;
    // No more messages follow: the connection closes when rank 0 exits or is killed.
    let _ = reader.read(&mut [0]);
    let _ = writer.flush();
    Ok(())
}

/// Connects to rank 0, wherever it is of these, as [`reach`].
fn connect(
    rank: u32,
    hosts: &[String],
    port: u16,
    key: Option<JobKey>,
) -> Result<(JobKey, IpAddr, Channel), Fault> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = String::from("no answer");
    while Instant::now() < deadline {
        for at in addresses(hosts, port) {
            match reach(at, key) {
                // Another program may use one of the ports.
                Err(error) => last = format!("{at}: {error}"),
                connected => return connected,
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(Fault::new(format!(
        "rank {rank} could not connect to rank 0 at {} within {} s (last: {last}): name its host \
         with --leader",
        hosts.join(", "),
        PATIENCE.as_secs()
    )))
}

/// All addresses of these names, on each port that rank 0 may use.
fn addresses(hosts: &[String], first: u16) -> Vec<SocketAddr> {
    let ports = first..=first.saturating_add(PORTS - 1);
    let all = ports.flat_map(|port| hosts.iter().map(move |host| (host.as_str(), port)));
    all.filter_map(|at| at.to_socket_addrs().ok()).flatten().collect()
}

/// Connects to rank 0; returns the key, this end's address and the channel.
fn reach(at: SocketAddr, key: Option<JobKey>) -> Result<(JobKey, IpAddr, Channel), Fault> {
    let mut socket = TcpStream::connect_timeout(&at, CONNECTING)?;
    let key = match key {
        Some(key) => key,
        None => {
            socket.set_read_timeout(Some(PROOF))?;
            let sealed: String = frame::read(&mut (&mut socket).take(munge::LONGEST))?;
            let opened = munge::open(&sealed)?;
            JobKey(secret::from_hex(&opened).ok_or("the credential holds no key")?)
        }
    };
    let ends = DerivedPair::of_secret(&key.0)?;
    let address = socket.local_addr()?.ip().to_canonical();
    let (deadline, theirs) = (Instant::now() + PROOF, &ends.agent.certificate);
    Ok((key, address, tls::dial(socket, deadline, &ends.controller, theirs, tls::FRAMES)?))
}
