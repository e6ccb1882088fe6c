//! Comparison of two hosts' clocks before, during and after the rounds: a thread of the controller
//! exchanges timestamps with an agent on the other host, both off the measuring CPUs.

use crate::host::{RemoteHost, ask};
use crate::locked;
use crate::process::{Agent, AgentMessage};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_base::units::InjectedClockError;
use wiregauge_clock::exchange::{Cookie, ExchangeEnd, Local};
use wiregauge_clock::offset::{Exchange, LONGEST_NS};
use wiregauge_host::ResourceUse;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::protocol::*;
use wiregauge_measure::control::secret;
use wiregauge_transport::{Interfaces, Role, Site, address_of_site, towards};

/// Exchanges before the first round, and the interval between them.
const FIRST: usize = 200;
const QUICK: Duration = Duration::from_millis(1);
/// Exchanges per burst while rounds run. The first ones after a pause meet sleeping CPUs and cold
/// caches on both hosts; those that follow at once are the shortest, which count.
const BURST: usize = 10;
/// Interval between two bursts: 50 exchanges per second use some 0.2 % of a CPU.
const PAUSE: Duration = Duration::from_millis(190);
/// Time limit of an answer.
const ANSWER: Duration = Duration::from_millis(500);
/// Fewest exchanges before the first round, for paths with a long delay.
const LEAST: usize = 20;
/// How long the last messages of an agent that has exited may take to be read.
const LAST_WORD: Duration = Duration::from_millis(200);
/// Time limit of the exchanges before a run, and after a round.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a comparison has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Datagrams sent by this host.
    pub sent: u64,
    /// CPU time of the asking thread.
    pub cpu_ns: f64,
    /// Datagrams sent by the other host and the CPU time of its thread; `None`: not reported.
    pub remote: Option<(u64, f64)>,
}

/// The controller's side of a running comparison.
pub struct Comparison {
    agent: Agent,
    rx: Receiver<AgentMessage>,
    /// The thread asks while this exists.
    shared: Arc<Shared>,
    thread: JoinHandle<Cost>,
}

struct Shared {
    /// The other host's name.
    host: String,
    exchanges: Mutex<Vec<Exchange>>,
    /// When the last of them was answered.
    answered: Mutex<Instant>,
    fault: Mutex<Option<String>>,
    /// How many exchanges there were when no more came for as long as is waited.
    given_up_at: AtomicUsize,
}

impl Shared {
    fn of(host: &str) -> Shared {
        let (exchanges, fault) = Default::default();
        let (host, answered) = (host.to_owned(), Mutex::new(Instant::now()));
        Shared { host, exchanges, answered, fault, given_up_at: AtomicUsize::new(usize::MAX) }
    }

    /// Waits for `count` exchanges while their agent is not `gone`; after `patience`, `least` are
    /// enough. Who has waited in vain does not wait again before another exchange is answered.
    fn wait_for(
        &self,
        count: usize,
        least: usize,
        patience: Duration,
        gone: impl Fn() -> Option<String>,
    ) -> Result<(), Fault> {
        let is_given_up = self.is_given_up();
        let deadline = Instant::now() + if is_given_up { Duration::ZERO } else { patience };
        loop {
            let found = locked(&self.exchanges).len();
            if let Some(why) = gone() {
                *locked(&self.fault) = Some(why);
            }
            let fault = locked(&self.fault).clone();
            let is_late = Instant::now() > deadline;
            if found >= count || (is_late && fault.is_none() && found >= least) {
                return Ok(());
            }
            let goes_on = !is_late && fault.is_none();
            if !goes_on {
                self.given_up_at.store(found, Ordering::Relaxed);
            }
            let why = fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
            ensure!(
                goes_on,
                "cannot compare the clocks of this host and {}: only {found} clock exchanges were \
                 answered{why}; allow UDP between their addresses",
                self.host
            );
            std::thread::sleep(QUICK);
        }
    }

    /// The exchanges, while they say anything of now: of a comparison that has ended no longer than
    /// a line is believed.
    fn believed(&self, goes_on: bool) -> Vec<Exchange> {
        match goes_on || locked(&self.answered).elapsed().as_nanos() as f64 <= LONGEST_NS {
            true => locked(&self.exchanges).clone(),
            false => Vec::new(),
        }
    }

    fn is_given_up(&self) -> bool {
        self.given_up_at.load(Ordering::Relaxed) == locked(&self.exchanges).len()
    }
}

impl Comparison {
    /// Starts a comparison over these interfaces, or the path of ssh. Avoids `cpus`.
    pub fn start(
        host: &RemoteHost,
        interface: Option<&Interfaces>,
        local: Local,
        cpus: Vec<u32>,
        injected_error: Option<InjectedClockError>,
    ) -> Result<Comparison, Fault> {
        let cookie: Cookie = secret::fresh()?;
        let site = |role: Role| match interface {
            Some(names) => Site::Interface(names.of(role).to_string()),
            None => host.site(role).unwrap_or_default(),
        };
        let request = AnswerClock {
            site: site(Role::Server),
            clock: Local { injected_error, ..host.probe.local },
            cookie,
            leaves: host.probe.cpus.clone(),
        };
        let request = ToAgent::AnswerClock(Box::new(request));
        // Who interrupts the rounds ends this agent, too.
        let never = AtomicBool::new(false);
        let (agent, rx, other) = ask(&host.session, request, &never, |said| match said {
            FromAgent::ClockAddress(address) => Some(address),
            _ => None,
        })?;
        let own = address_of_site(&site(Role::Client), None).map_err(|error| error.to_string())?;
        let other = towards(other, own).map_err(|error| error.to_string())?;
        let mut asking = ExchangeEnd::bind(own, local, cookie)
            .map_err(|error| format!("clock exchanges from {own}: {error}"))?;
        let shared = Arc::new(Shared::of(host.session.host()));
        let theirs = Arc::clone(&shared);
        let thread = threads::spawn("compare two clocks", move || {
            wiregauge_host::stay_off(&cpus);
            let before = ResourceUse::of_thread();
            if let Err(error) = exchange_until_over(&mut asking, other, &theirs) {
                *locked(&theirs.fault) = Some(error.to_string());
            }
            let cpu_ns = ResourceUse::of_thread().since(&before).cpu_ns;
            Cost { sent: asking.sent, cpu_ns, remote: None }
        })?;
        let comparison = Comparison { agent, rx, shared, thread };
        comparison.shared.wait_for(FIRST, LEAST, PATIENCE, || comparison.gone())?;
        Ok(comparison)
    }

    /// All exchanges so far, with at least one that began after this call; or why there is none,
    /// and those before it, if they are not too old.
    pub fn exchanges(&self) -> (Vec<Exchange>, Option<Fault>) {
        let count = locked(&self.shared.exchanges).len();
        self.thread.thread().unpark();
        // The current one may have begun before.
        let waited = self.shared.wait_for(count + 2, count + 2, PATIENCE, || self.gone());
        (self.shared.believed(waited.is_ok()), waited.err())
    }

    /// Why its agent answers no more. One that answers says nothing.
    fn gone(&self) -> Option<String> {
        self.rx.try_recv().ok()?.message.err().map(|error| error.to_string())
    }

    /// All exchanges so far.
    pub fn so_far(&self) -> Vec<Exchange> {
        locked(&self.shared.exchanges).clone()
    }

    /// Ends the comparison; returns its cost.
    pub fn end(self) -> Cost {
        let Comparison { mut agent, rx, shared, thread } = self;
        let is_given_up = shared.is_given_up();
        drop(shared);
        thread.thread().unpark();
        let mut cost = thread.join().unwrap_or_default();
        // One that answers no more does not exit in time either: it is killed where it is dropped.
        if is_given_up {
            return cost;
        }
        let _ = agent.close();
        // Its process has exited: its last messages are queued or in the pipe.
        while let Ok(AgentMessage { message: Ok(said), .. }) = rx.recv_timeout(LAST_WORD) {
            if let FromAgent::ClockAnswered { datagrams, cpu_ns } = said {
                cost.remote = Some((datagrams, cpu_ns));
            }
        }
        cost
    }
}

/// Exchanges timestamps until the comparison is over.
fn exchange_until_over(
    asking: &mut ExchangeEnd,
    other: SocketAddr,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    while Arc::strong_count(shared) > 1 {
        let exchange = asking.ask(other, ANSWER)?;
        if exchange.is_some() {
            *locked(&shared.answered) = Instant::now();
        }
        let mut all = locked(&shared.exchanges);
        all.extend(exchange);
        let count = all.len();
        drop(all);
        let rests = count >= FIRST && count.is_multiple_of(BURST);
        // A caller that needs a new exchange ends the pause.
        std::thread::park_timeout(if rests { PAUSE } else { QUICK });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::LocalNs;

    #[test]
    fn a_long_way_has_fewer_exchanges_and_none_at_all_is_a_sentence() {
        let shared = Shared::of("far");
        let now = LocalNs(0.0);
        let one = Exchange { sent: now, reached: now, answered: now, heard: now };
        *locked(&shared.exchanges) = vec![one; LEAST];
        let soon = Duration::from_millis(5);
        let none = || None;
        assert!(shared.wait_for(FIRST, LEAST, soon, none).is_ok());
        let fault = shared.wait_for(FIRST, LEAST + 1, soon, none).unwrap_err();
        assert!(fault.to_string().contains("only 20 clock exchanges were answered"), "{fault}");
        assert_eq!(shared.believed(false).len(), LEAST);
        let is_old = Instant::now().checked_sub(Duration::from_secs(21));
        *locked(&shared.answered) = is_old.expect("a machine that is up for so long");
        assert_eq!((shared.believed(false).len(), shared.believed(true).len()), (0, LEAST));
        let began = Instant::now();
        shared.wait_for(FIRST, LEAST + 1, PATIENCE, none).unwrap_err();
        assert!(began.elapsed() < PATIENCE, "it was waited for in vain once");
        *locked(&shared.exchanges) = vec![one; LEAST + 1];
        assert!(!shared.is_given_up(), "another one was answered");
        let gone = || Some("killed".to_string());
        let fault = shared.wait_for(FIRST, FIRST, PATIENCE, gone).unwrap_err();
        assert!(fault.to_string().contains("(killed)"), "{fault}");
        *locked(&shared.fault) = Some("no route".into());
        let fault = shared.wait_for(FIRST, LEAST, PATIENCE, none).unwrap_err();
        assert!(fault.to_string().contains("(no route)"), "{fault}");
    }
}
