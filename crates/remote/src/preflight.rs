//! The controller's half of the pre-flight of the data path: ends on this host and on others are
//! opened, try to reach each other all at once, and are closed.

use crate::host::{RemoteHost, ask};
use crate::process::{Agent, AgentMessage};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_host::Family;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::frame::FrameError;
use wiregauge_measure::control::limits;
use wiregauge_measure::control::protocol::*;
use wiregauge_measure::control::secret;
use wiregauge_transport::Site;
use wiregauge_transport::preflight::{
    LIMIT, PeerReport, PreflightAddresses, PreflightEnd, PreflightPeer, STEP,
};

/// Ends that are opened at the same time.
const AT_ONCE: usize = 64;
/// Time that an agent may take to report after its attempts, on a busy machine too.
const SLACK: Duration = Duration::from_secs(5);
/// Interval between two looks for reports, where no end of this host waits.
const CHECK: Duration = Duration::from_millis(5);

/// An end of the data path.
pub struct PathEnd<'a> {
    /// The host; `None`: this one.
    pub host: Option<&'a RemoteHost>,
    /// The interface or address there.
    pub site: Site,
    /// The version of IP, where one was asked for.
    pub family: Option<Family>,
    /// The device that its packets are to use.
    pub device: Option<String>,
}

/// The results of an end.
pub struct TriedEnd {
    /// The addresses of the end.
    pub addresses: PreflightAddresses,
    /// A report of each end that it was paired with.
    pub reports: Vec<PeerReport>,
}

/// An end that can be reached.
struct OpenEnd {
    process: EndProcess,
    addresses: PreflightAddresses,
    peers: Vec<PreflightPeer>,
    reports: Option<Result<Vec<PeerReport>, Fault>>,
}

/// The process of an end.
enum EndProcess {
    Here(Box<PreflightEnd>),
    There(Box<Agent>, Receiver<AgentMessage>, String),
}

/// Has the ends of each pair reach each other; returns, for each end, how it did, or why it could
/// not be opened.
pub fn try_paths(
    ends: &[PathEnd<'_>],
    pairs: &BTreeSet<(usize, usize)>,
    interrupted: &AtomicBool,
) -> Result<Vec<Result<TriedEnd, Fault>>, Fault> {
    let cookie = secret::fresh()?;
    let mut open: Vec<Result<OpenEnd, Fault>> = Vec::with_capacity(ends.len());
    for some in ends.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|end| {
                    threads::spawn_scoped("open an end of the pre-flight", scope, move || {
                        OpenEnd::new(end, cookie, interrupted)
                    })
                })
                .collect();
            open.extend(threads.into_iter().map(|thread| {
                thread?.join().unwrap_or_else(|_| {
                    Err(Fault::new("opening an end of the pre-flight panicked"))
                })
            }));
        });
    }
    begin(&mut open, pairs);
    await_reports(&mut open, interrupted)?;
    Ok(close(open))
}

/// Tells each end which others to reach.
fn begin(open: &mut [Result<OpenEnd, Fault>], pairs: &BTreeSet<(usize, usize)>) {
    let addresses: Vec<_> =
        open.iter().map(|end| end.as_ref().ok().map(|end| end.addresses.clone())).collect();
    // A pair may be there in both directions.
    let directed: BTreeSet<(usize, usize)> =
        pairs.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]).collect();
    for (own, other) in directed {
        if let (Ok(end), Some(addresses)) = (&mut open[own], &addresses[other]) {
            let peer = PreflightPeer { number: other as u32, addresses: addresses.clone() };
            end.peers.push(peer);
        }
    }
    for (number, end) in open.iter_mut().enumerate() {
        let Ok(end) = end else { continue };
        let number = number as u32;
        let peers = end.peers.clone();
        match &mut end.process {
            EndProcess::Here(here) => {
                let begun = here.begin(number, &peers);
                end.reports = begun.err().map(|error| Err(Fault::new(error.to_string())));
            }
            EndProcess::There(agent, ..) => agent.send(&ToAgent::TryPath { number, peers }),
        }
    }
}

/// Lets the ends go on until all have reported.
fn await_reports(
    open: &mut [Result<OpenEnd, Fault>],
    interrupted: &AtomicBool,
) -> Result<(), Fault> {
    let deadline = Instant::now() + LIMIT + SLACK;
    let here = open.iter().flatten().filter(|end| matches!(end.process, EndProcess::Here(_)));
    let wait = STEP / here.count().max(1) as u32;
    while open.iter().flatten().any(|end| end.reports.is_none()) && Instant::now() < deadline {
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
        let mut has_waited = false;
        for end in open.iter_mut().flatten() {
            has_waited |= end.step(wait);
        }
        if !has_waited {
            std::thread::sleep(CHECK);
        }
    }
    Ok(())
}

/// Ends all sessions at once, and returns what each has reported.
fn close(open: Vec<Result<OpenEnd, Fault>>) -> Vec<Result<TriedEnd, Fault>> {
    let mut agents = Vec::new();
    let ended = open.into_iter().map(|end| {
        let OpenEnd { process, addresses, reports, .. } = end?;
        if let EndProcess::There(mut agent, ..) = process {
            agent.hang_up();
            agents.push(agent);
        }
        Ok(TriedEnd {
            addresses,
            reports: reports.unwrap_or_else(|| {
                Err(Fault::new("an end of the pre-flight has not reported in time"))
            })?,
        })
    });
    let ended = ended.collect();
    for agent in &mut agents {
        agent.close();
    }
    ended
}

impl OpenEnd {
    fn new(
        end: &PathEnd<'_>,
        cookie: [u8; 32],
        interrupted: &AtomicBool,
    ) -> Result<OpenEnd, Fault> {
        let PathEnd { site, family, device, .. } = end;
        let (peers, reports) = Default::default();
        let Some(host) = end.host else {
            let own = PreflightEnd::open(site, *family, device.clone(), cookie)
                .map_err(|error| Fault::new(error.to_string()))?;
            let addresses = own.addresses().clone();
            return Ok(OpenEnd {
                process: EndProcess::Here(Box::new(own)),
                addresses,
                peers,
                reports,
            });
        };
        let task = Box::new(OpenPath {
            site: site.clone(),
            family: *family,
            device: device.clone(),
            cookie,
        });
        let request = ToAgent::OpenPath(task);
        let (agent, rx, addresses) = ask(&host.session, request, interrupted, |said| match said {
            FromAgent::PathOpened(addresses) => Some(addresses),
            _ => None,
        })?;
        let name = host.session.host().to_string();
        limits::check_path(&addresses).map_err(|how| Fault::new(format!("{name} {how}")))?;
        Ok(OpenEnd {
            process: EndProcess::There(Box::new(agent), rx, name),
            addresses,
            peers,
            reports,
        })
    }

    /// Goes on; returns true if it is an end of this host, which waits at most this long.
    fn step(&mut self, wait: Duration) -> bool {
        match &mut self.process {
            EndProcess::Here(here) => {
                let went_on = here.step(wait);
                match went_on {
                    Ok(()) if here.is_over() && self.reports.is_none() => {
                        self.reports = Some(Ok(here.report()));
                    }
                    Ok(()) => {}
                    Err(error) => self.reports = Some(Err(Fault::new(error.to_string()))),
                }
                true
            }
            EndProcess::There(_, rx, name) => {
                let said = match rx.try_recv() {
                    Ok(heard) => heard.message,
                    Err(TryRecvError::Empty) => return false,
                    Err(TryRecvError::Disconnected) => Err(FrameError::Closed),
                };
                if self.reports.is_none() {
                    self.reports = Some(read_report(said, &self.peers, name));
                }
                false
            }
        }
    }
}

/// Takes the report of an agent on another host.
fn read_report(
    said: Result<FromAgent, FrameError>,
    peers: &[PreflightPeer],
    host: &str,
) -> Result<Vec<PeerReport>, Fault> {
    match said {
        Ok(FromAgent::PathTried(reports)) => {
            limits::check_reports(&reports, peers)
                .map_err(|how| Fault::new(format!("{host} {how}")))?;
            Ok(reports)
        }
        Ok(FromAgent::Refused { wrong_use, sentence }) => {
            Err(Fault::of_agent(wrong_use, format!("{host}: {sentence}")))
        }
        Ok(_) => Err(Fault::new(format!("{host} sent an unexpected message"))),
        Err(error) => {
            Err(Fault::new(format!("{host}: its agent ended during the pre-flight: {error}")))
        }
    }
}
