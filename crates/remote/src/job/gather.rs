//! How the ranks find each other: rank 0 listens until all have arrived, and every other rank
//! connects to it and reports the address of its agent.

use super::rank::Rank;
use super::{
    EVERYWHERE, Fault, JobKey, PORTS, Sharing, candidates, listen, listen_for, munge, name,
    parse_published, pmi, published, sharing,
};
use crate::daemon::caps::Caps;
use crate::daemon::identity::DerivedPair;
use crate::daemon::tls::{self, Channel};
use crate::daemon::{self, Daemon, Trust};
use crate::program::AgentProgram;
use rustls::AlertDescription;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_measure::control::frame::{self, FrameError};
use wiregauge_measure::control::protocol::VERSION;
use wiregauge_measure::control::secret;
use wiregauge_plan::FindPattern;
use wiregauge_plan::HostSpec;

/// How long ranks may take to arrive: a launcher starts them at about the same time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit of a handshake.
const PROOF: Duration = Duration::from_secs(10);
/// Time limit of a connection attempt.
const CONNECTING: Duration = Duration::from_secs(2);
/// Interval between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a rank looks for its rank 0 while only one with another secret answers. That may be
/// another job's on a port nearby, which started earlier.
const ANOTHER_JOB: Duration = Duration::from_secs(3);
/// What to do about another secret.
const SHARE_SECRET: &str = "set WIREGAUGE_JOB_SECRET to the same for all ranks";
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
    held: Vec<Channel>,
}

impl Drop for Gathered {
    fn drop(&mut self) {
        // The others know by this that rank 0 has ended in order.
        self.held.iter().for_each(|(_, writer)| writer.close());
        pmi::finish();
    }
}

/// Rank 0: waits until all have arrived. `tell` is given a sentence for the user meanwhile.
pub fn gather(
    rank: &Rank,
    interrupted: &AtomicBool,
    tell: impl Fn(&str),
) -> Result<Gathered, Fault> {
    let sharing = sharing(rank)?;
    let is_sealed = matches!(sharing, Sharing::Munge);
    let (key, listener) = match sharing {
        Sharing::Known(key) => (key, listen_for(&rank.leader)?),
        Sharing::Munge => (JobKey(secret::fresh()?), listen_for(&rank.leader)?),
        Sharing::Pmi => {
            let (key, listener) = (JobKey(secret::fresh()?), listen(&EVERYWHERE, 0)?);
            pmi::share(Some(&published(&key, listener.local_addr()?)))?;
            (key, listener)
        }
    };
    listener.set_nonblocking(true)?;
    let (tx, rx) = mpsc::channel();
    let mut arrived: Vec<Option<Arrived>> = (1..rank.ranks).map(|_| None).collect();
    let deadline = Instant::now() + PATIENCE;
    let handshakes = Arc::new(());
    let mut strangers = 0;
    let mut is_short_of_threads = false;
    while arrived.iter().any(Option::is_none) {
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
        ensure!(Instant::now() <= deadline, missing(&arrived, strangers));
        if let Ok((socket, from)) = listener.accept()
            && Arc::strong_count(&handshakes) <= MOST_AT_ONCE
        {
            let (tx, place) = (tx.clone(), Arc::clone(&handshakes));
            let spawned = threads::spawn("authenticate a rank", move || {
                let _ = tx.send((from, authenticate(socket, key, is_sealed)));
                drop(place);
            });
            // The rank comes again.
            if let Err(error) = spawned
                && !is_short_of_threads
            {
                is_short_of_threads = true;
                tell(&error.to_string());
            }
        }
        match rx.recv_timeout(Duration::from_millis(1)) {
            Ok((_, Ok((arrival, channel)))) => take(&mut arrived, arrival, channel, key),
            // It may be a rank of another job, and anybody may say so: it does not end this one.
            Ok((from, Err(Unproven::AnotherSecret))) => {
                if strangers == 0 {
                    tell(&format!("a rank at {} has another secret: {SHARE_SECRET}", from.ip()));
                }
                strangers += 1;
            }
            Ok((_, Err(Unproven::Failed(_)))) | Err(_) => {}
        }
    }
    let (hosts, held) = arrived.into_iter().flatten().unzip();
    Ok(Gathered { hosts, held })
}

fn missing(arrived: &[Option<Arrived>], strangers: u64) -> String {
    let absent = arrived.iter().enumerate().filter(|(_, one)| one.is_none());
    let names: Vec<String> = absent.map(|(at, _)| (at + 1).to_string()).take(20).collect();
    let advice = match strangers {
        0 => "start all with the same command, and check that they can reach rank 0 (--leader)",
        _ => "others came with another secret: set WIREGAUGE_JOB_SECRET to the same for all ranks",
    };
    format!(
        "of {} ranks {} did not arrive within {} s: {advice}",
        arrived.len() + 1,
        names.join(", "),
        PATIENCE.as_secs()
    )
}

/// Why the other end of a connection is not one of the job's.
#[derive(Debug, thiserror::Error)]
enum Unproven {
    /// It speaks the protocol of ranks, and has another secret.
    #[error("it has another secret")]
    AnotherSecret,
    /// Something else failed.
    #[error("{0}")]
    Failed(#[from] Fault),
}

impl From<std::io::Error> for Unproven {
    fn from(error: std::io::Error) -> Unproven {
        // The identities of both ends are derived from the secret: one does not trust the other's.
        match tls::of_tls(&error) {
            Some(rustls::Error::InvalidCertificate(_)) => Unproven::AnotherSecret,
            Some(rustls::Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::DecryptError,
            )) => Unproven::AnotherSecret,
            _ => Unproven::Failed(error.into()),
        }
    }
}

/// Authenticates a connection to rank 0 as one of the job's.
fn authenticate(
    mut socket: TcpStream,
    JobKey(key): JobKey,
    is_sealed: bool,
) -> Result<(Arrival, Channel), Unproven> {
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PROOF))?;
    if is_sealed {
        let sealed = munge::seal(&secret::to_hex(key)).map_err(Fault::from)?;
        frame::write(&mut socket, &sealed).map_err(Fault::from)?;
    }
    let ends = DerivedPair::of_secret(&key).map_err(Fault::from)?;
    let config = tls::listening(&ends.agent, &[ends.controller.certificate], tls::FRAMES);
    let deadline = Instant::now() + PROOF;
    let (mut reader, writer) = tls::accept(socket, deadline, |_| config)?;
    reader.deadline = Some(deadline);
    let arrival = frame::read(&mut reader).map_err(|error| match error {
        // In TLS 1.3 the dialling side rejects a certificate after this side has accepted its own.
        FrameError::Channel(error) => Unproven::from(error),
        error => Unproven::Failed(error.into()),
    })?;
    Ok((arrival, (reader, writer)))
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
pub fn serve(rank: &Rank, program: &AgentProgram, patterns: FindPattern) -> Result<(), Fault> {
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
    let mut own_daemon = Daemon::new(program.clone(), patterns, ends.agent, trust, true);
    own_daemon.caps = Caps::of_a_rank();
    let own_daemon = Arc::new(own_daemon);
    threads::spawn("serve rank 0", move || daemon::serve(&own_daemon, &listener))?;
    reader.deadline = Some(Instant::now() + PROOF);
    let arrived = Arrival { version: VERSION, rank: rank.rank, ranks: rank.ranks, at };
    let answer = frame::write(&mut writer, &arrived).and_then(|()| frame::read_plain(&mut reader));
    let answer: Answer = answer.map_err(|error| format!("rank 0: {error}"))?;
    answer.map_err(Fault::Refused)?;
    reader.deadline = None;
    // No more messages follow: rank 0 closes the connection at its end, unless it is killed.
    let ended = reader.read(&mut [0]);
    pmi::finish();
    ended.map(drop).map_err(|error| {
        Fault::new(format!(
            "rank 0, the controller, was killed or its host is gone ({error}): what was measured \
             is where it ran, see `wiregauge recover`"
        ))
    })
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
    let mut answered = None;
    while Instant::now() < deadline {
        let mut another = None;
        for at in addresses(hosts, port) {
            match reach(at, key) {
                Ok(connected) => return Ok(connected),
                Err(Unproven::AnotherSecret) => another = Some(at),
                // Another program may use one of the ports.
                Err(error) => last = format!("{at}: {error}"),
            }
        }
        answered = another.map(|at| answered.unwrap_or((at, Instant::now())));
        if let Some((at, since)) = answered
            && since.elapsed() >= ANOTHER_JOB
        {
            return Err(Fault::Refused(format!(
                "rank {rank} and rank 0 at {at} have different secrets: {SHARE_SECRET}"
            )));
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
fn reach(at: SocketAddr, key: Option<JobKey>) -> Result<(JobKey, IpAddr, Channel), Unproven> {
    let mut socket = TcpStream::connect_timeout(&at, CONNECTING)?;
    let key = match key {
        Some(key) => key,
        None => {
            socket.set_read_timeout(Some(PROOF))?;
            unseal(&mut socket)?
        }
    };
    let ends = DerivedPair::of_secret(&key.0).map_err(Fault::from)?;
    let address = socket.local_addr()?.ip().to_canonical();
    let (deadline, theirs) = (Instant::now() + PROOF, &ends.agent.certificate);
    Ok((key, address, tls::dial(socket, deadline, &ends.controller, theirs, tls::FRAMES)?))
}

/// The key in the credential that rank 0 sends.
fn unseal(socket: &mut TcpStream) -> Result<JobKey, Fault> {
    let sealed: String = frame::read(&mut socket.take(munge::LONGEST))?;
    let key = secret::from_hex(&munge::open(&sealed)?);
    Ok(JobKey(key.ok_or("the credential holds no key")?))
}
