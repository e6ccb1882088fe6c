//! The controller's half of the pre-flight of the data path: ends on this host and on others are
//! opened, try to reach each other all at once, and are closed.

use crate::host::{RemoteHost, ask};
use crate::process::{Agent, AgentMessage, EXIT};
use std::collections::BTreeMap;
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
use wiregauge_plan::pairs::HERE;
use wiregauge_transport::Site;
use wiregauge_transport::preflight::{
    POLL_TIMEOUT, PREFLIGHT_TIMEOUT, PathNeeds, PeerReport, PreflightAddresses, PreflightEnd,
    PreflightPeer,
};

/// Ends that are opened at the same time.
pub const MAX_CONCURRENT_OPENS: usize = 64;
/// Time that an agent may take to report after its attempts, on a busy machine too.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two checks for reports, where no end of this host waits, and for exits.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

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

impl PathEnd<'_> {
    /// Returns the name of its host.
    pub fn name(&self) -> &str {
        self.host.map_or(HERE, |host| host.session.host())
    }
}

/// Requirements of a client's and a server's end on the path between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairNeeds {
    /// A connection from the client to the server.
    pub tcp: bool,
    /// A connection from the server to the client.
    pub tcp_back: bool,
    /// Datagrams both ways.
    pub udp: bool,
}

impl PairNeeds {
    /// Everything that can be tried.
    pub const ALL: PairNeeds = PairNeeds { tcp: true, tcp_back: true, udp: true };

    /// Adds what others need of the same path.
    pub fn add(&mut self, more: PairNeeds) {
        self.tcp |= more.tcp;
        self.tcp_back |= more.tcp_back;
        self.udp |= more.udp;
    }
}

/// Pairs of a client's and a server's end, by their numbers, with what each needs.
pub type Pairs = BTreeMap<(usize, usize), PairNeeds>;

/// The results of an end.
#[derive(Debug)]
pub struct TriedEnd {
    /// The addresses of the end.
    pub addresses: PreflightAddresses,
    /// A report of each end that it was paired with.
    pub reports: Vec<PeerReport>,
}

/// An end that can be reached.
struct OpenEnd {
    process: EndProcess,
    /// The name of its host.
    name: String,
    addresses: PreflightAddresses,
    peers: Vec<PreflightPeer>,
    reports: Option<Result<Vec<PeerReport>, Fault>>,
}

/// The process of an end.
enum EndProcess {
    Local(Box<PreflightEnd>),
    Remote(Box<Agent>, Receiver<AgentMessage>),
}

/// Returns what each end needs of each other, in both directions of the pairs: a pair may be there
/// twice, each of its ends being the client of one case.
fn directed_needs(pairs: &Pairs) -> BTreeMap<(usize, usize), PathNeeds> {
    let mut directed = BTreeMap::<_, PathNeeds>::new();
    for ((client, server), needs) in pairs {
        let PairNeeds { tcp, tcp_back, udp } = *needs;
        for (ends, tcp) in [((*client, *server), tcp), ((*server, *client), tcp_back)] {
            let known = directed.entry(ends).or_default();
            *known = PathNeeds { tcp: known.tcp || tcp, udp: known.udp || udp };
        }
    }
    directed
}

/// Has the ends of each pair reach each other; returns, for each end, how it did, or why it could
/// not be opened.
///
/// # Errors
/// The user has interrupted it, or there are no random numbers.
pub fn try_paths(
    ends: &[PathEnd<'_>],
    pairs: &Pairs,
    interrupted: &AtomicBool,
) -> Result<Vec<Result<TriedEnd, Fault>>, Fault> {
    // Each session has several, and all are open at once.
    wiregauge_host::allow_descriptors();
    let secret = secret::fresh()?;
    let needs = directed_needs(pairs);
    let mut open = open_all(ends, &needs, interrupted)?;
    begin(&mut open, &needs, &secret);
    await_reports(&mut open, interrupted)?;
    close(open, interrupted)
}

/// Opens the ends, some at a time; returns for each why it could not be opened.
fn open_all(
    ends: &[PathEnd<'_>],
    needs: &BTreeMap<(usize, usize), PathNeeds>,
    interrupted: &AtomicBool,
) -> Result<Vec<Result<OpenEnd, Fault>>, Fault> {
    let mut listens = vec![false; ends.len()];
    for ((_, other), _) in needs.iter().filter(|(_, needs)| needs.tcp) {
        listens[*other] = true;
    }
    let mut open: Vec<Result<OpenEnd, Fault>> = Vec::with_capacity(ends.len());
    let all: Vec<_> = ends.iter().zip(listens).collect();
    for some in all.chunks(MAX_CONCURRENT_OPENS) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|(end, listens)| {
                    threads::spawn_scoped("open an end of the pre-flight", scope, move || {
                        OpenEnd::new(end, *listens, interrupted)
                    })
                })
                .collect();
            open.extend(threads.into_iter().zip(some).map(|(thread, (end, _))| {
                thread?.join().unwrap_or_else(|_| {
                    let name = end.name();
                    Err(Fault::new(format!("opening the pre-flight's end of {name} panicked")))
                })
            }));
        });
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
    }
    Ok(open)
}

/// Tells each end which others to reach.
fn begin(
    open: &mut [Result<OpenEnd, Fault>],
    needs: &BTreeMap<(usize, usize), PathNeeds>,
    secret: &[u8; 32],
) {
    let addresses: Vec<_> =
        open.iter().map(|end| end.as_ref().ok().map(|end| end.addresses.clone())).collect();
    for ((own, other), needs) in needs {
        if let (Ok(end), Some(addresses)) = (&mut open[*own], &addresses[*other]) {
            end.peers.push(PreflightPeer {
                number: *other as u32,
                addresses: addresses.clone(),
                cookie: secret::of_pair(secret, *own as u32, *other as u32),
                needs: *needs,
            });
        }
    }
    for (number, end) in open.iter_mut().enumerate() {
        let Ok(end) = end else { continue };
        let number = number as u32;
        let peers = end.peers.clone();
        match &mut end.process {
            EndProcess::Local(local) => {
                let begun = local.begin(number, &peers);
                end.reports = begun.err().map(|error| Err(Fault::new(error.to_string())));
            }
            EndProcess::Remote(agent, _) => agent.send(&ToAgent::TryPath { number, peers }),
        }
    }
}

/// Lets the ends go on until all have reported.
fn await_reports(
    open: &mut [Result<OpenEnd, Fault>],
    interrupted: &AtomicBool,
) -> Result<(), Fault> {
    let deadline = Instant::now() + PREFLIGHT_TIMEOUT + REPORT_TIMEOUT;
    let local = open.iter().flatten().filter(|end| matches!(end.process, EndProcess::Local(_)));
    let wait = POLL_TIMEOUT / local.count().max(1) as u32;
    while open.iter().flatten().any(|end| end.reports.is_none()) && Instant::now() < deadline {
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
        let mut has_waited = false;
        for end in open.iter_mut().flatten() {
            has_waited |= end.step(wait);
        }
        if !has_waited {
            std::thread::sleep(CHECK_INTERVAL);
        }
    }
    Ok(())
}

/// Ends all sessions at once, and returns what each has reported. An agent that has not exited in
/// time, or when the user has had enough, is killed.
fn close(
    open: Vec<Result<OpenEnd, Fault>>,
    interrupted: &AtomicBool,
) -> Result<Vec<Result<TriedEnd, Fault>>, Fault> {
    let mut agents = Vec::new();
    let ended = open.into_iter().map(|end| {
        let OpenEnd { process, name, addresses, reports, .. } = end?;
        if let EndProcess::Remote(mut agent, _) = process {
            agent.hang_up();
            agents.push(agent);
        }
        let reports = reports.unwrap_or_else(|| {
            Err(Fault::new(format!("{name} has not reported its end of the pre-flight in time")))
        })?;
        Ok(TriedEnd { addresses, reports })
    });
    let ended = ended.collect();
    let deadline = Instant::now() + EXIT;
    loop {
        agents.retain_mut(|agent| !agent.has_exited());
        if agents.is_empty() || Instant::now() >= deadline {
            return Ok(ended);
        }
        ensure!(!interrupted.load(Ordering::Relaxed), Fault::Interrupted);
        std::thread::sleep(CHECK_INTERVAL);
    }
}

impl OpenEnd {
    fn new(end: &PathEnd<'_>, listens: bool, interrupted: &AtomicBool) -> Result<OpenEnd, Fault> {
        let PathEnd { site, family, device, .. } = end;
        let Some(host) = end.host else {
            let own = PreflightEnd::open(site, *family, device.clone(), listens)
                .map_err(|error| Fault::new(format!("this host: {error}")))?;
            let addresses = own.addresses().clone();
            return Ok(OpenEnd::with_process(EndProcess::Local(Box::new(own)), end, addresses));
        };
        let task = Box::new(OpenPath {
            site: site.clone(),
            family: *family,
            device: device.clone(),
            listens,
        });
        let request = ToAgent::OpenPath(task);
        let (agent, rx, addresses) = ask(&host.session, request, interrupted, |said| match said {
            FromAgent::PathOpened(addresses) => Some(addresses),
            _ => None,
        })?;
        let name = end.name();
        limits::check_path(&addresses, listens)
            .map_err(|how| Fault::new(format!("{name} {how}")))?;
        Ok(OpenEnd::with_process(EndProcess::Remote(Box::new(agent), rx), end, addresses))
    }

    fn with_process(
        process: EndProcess,
        end: &PathEnd<'_>,
        addresses: PreflightAddresses,
    ) -> OpenEnd {
        let name = end.name().to_string();
        OpenEnd { process, name, addresses, peers: Vec::new(), reports: None }
    }

    /// Goes on; returns true if it is an end of this host, which waits at most this long.
    fn step(&mut self, wait: Duration) -> bool {
        match &mut self.process {
            EndProcess::Local(local) => {
                let stepped = local.step(wait);
                match stepped {
                    Ok(()) if local.is_over() && self.reports.is_none() => {
                        self.reports = Some(Ok(local.report()));
                    }
                    Ok(()) => {}
                    Err(error) => self.reports = Some(Err(Fault::new(error.to_string()))),
                }
                true
            }
            EndProcess::Remote(_, rx) => {
                let said = match rx.try_recv() {
                    Ok(heard) => heard.message,
                    Err(TryRecvError::Empty) => return false,
                    Err(TryRecvError::Disconnected) => Err(FrameError::Closed),
                };
                if self.reports.is_none() {
                    self.reports = Some(self.read_report(said));
                }
                false
            }
        }
    }

    /// Reads the report of an agent on another host.
    fn read_report(&self, said: Result<FromAgent, FrameError>) -> Result<Vec<PeerReport>, Fault> {
        let host = &self.name;
        match said {
            Ok(FromAgent::PathTried(reports)) => {
                limits::check_reports(&reports, &self.addresses, &self.peers)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_test_support::bounded::Bound;

    const TCP: PairNeeds = PairNeeds { tcp: true, tcp_back: false, udp: false };
    const UDP: PairNeeds = PairNeeds { tcp: false, tcp_back: false, udp: true };

    fn end_at(site: Site) -> PathEnd<'static> {
        PathEnd { host: None, site, family: None, device: None }
    }

    #[test]
    fn both_directions_of_a_pair_are_tried_as_far_as_a_case_needs_them() {
        fn needs(tcp: bool, udp: bool) -> PathNeeds {
            PathNeeds { tcp, udp }
        }
        let pairs = Pairs::from([((0, 1), TCP), ((2, 0), UDP), ((3, 4), TCP), ((4, 3), UDP)]);
        let wanted = BTreeMap::from([
            ((0, 1), needs(true, false)),
            ((1, 0), needs(false, false)),
            ((2, 0), needs(false, true)),
            ((0, 2), needs(false, true)),
            // Two cases, each with the other end as its client.
            ((3, 4), needs(true, true)),
            ((4, 3), needs(false, true)),
        ]);
        assert_eq!(directed_needs(&pairs), wanted);
        let all = directed_needs(&Pairs::from([((0, 1), PairNeeds::ALL)]));
        assert!(all.values().all(|one| *one == needs(true, true)) && all.len() == 2);
    }

    #[test]
    fn ends_of_this_host_reach_each_other_and_one_serves_several() {
        let _bound = Bound::new();
        let missing = Site::Interface("no-such-interface".into());
        let sites = [Site::Loopback, Site::Loopback, Site::Loopback, missing];
        let ends = sites.map(end_at);
        let pairs = Pairs::from([((0, 1), TCP), ((2, 1), PairNeeds::ALL), ((0, 3), TCP)]);
        let mut found = try_paths(&ends, &pairs, &AtomicBool::new(false)).unwrap();
        let failed = found.pop().unwrap().unwrap_err();
        assert!(failed.to_string().contains("no-such-interface"), "{failed}");
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        let listens = found.iter().map(|end| end.addresses.tcp.is_some());
        assert_eq!(Vec::from_iter(listens), [false, true, true]);
        // No end is told of one that could not be opened.
        for (end, wanted) in [
            (0, &[(1, Some(Ok(())))][..]),
            (1, &[(0, None), (2, Some(Ok(())))]),
            (2, &[(1, Some(Ok(())))]),
        ] {
            let reports = found[end].reports.iter();
            assert_eq!(Vec::from_iter(reports.map(|one| (one.number, one.tcp.clone()))), wanted);
        }
        assert!(!found[1].reports[1].received.is_empty());
    }

    #[test]
    fn an_interrupt_ends_it_wherever_it_is() {
        let _bound = Bound::new();
        let interrupted = AtomicBool::new(true);
        let ends = [Site::Loopback, Site::Loopback].map(end_at);
        let fault = try_paths(&ends, &Pairs::from([((0, 1), TCP)]), &interrupted).unwrap_err();
        assert!(fault.is_interrupted(), "{fault}");
    }
}
