//! Comparison of two hosts' clocks before, during and after the rounds: a thread of the controller
//! exchanges timestamps with an agent on the other host, both off the measuring CPUs.

use crate::clock::exchange::{Asking, Cookie, Local};
use crate::clock::offset::Exchange;
use crate::control::fault::Fault;
use crate::control::protocol::*;
use crate::control::secret;
use crate::host::{self, ResourceUse};
use crate::remote::host::RemoteHost;
use crate::remote::process::{Agent, AgentMessage, AgentPlace};
use crate::remote::ssh::GREETING;
use crate::transport::{Interfaces, Role, Site, address_of_site, towards};
use crate::units::InjectedClockError;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
    agent: Option<Agent>,
    rx: Receiver<AgentMessage>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    exchanges: Mutex<Vec<Exchange>>,
    fault: Mutex<Option<String>>,
    /// Set when the thread ends.
    cost: Mutex<Cost>,
}

impl Shared {
    fn exchanges(&self) -> MutexGuard<'_, Vec<Exchange>> {
        // A panic leaves the list valid.
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `count` exchanges; after `patience`, `least` are enough.
    fn wait_for(&self, count: usize, least: usize, patience: Duration) -> Result<(), Fault> {
        let deadline = Instant::now() + patience;
        loop {
            let found = self.exchanges().len();
            if found >= count {
                return Ok(());
            }
            let fault = self.fault();
            let is_late = Instant::now() > deadline;
            if is_late && fault.is_none() && found >= least {
                return Ok(());
            }
            if is_late || fault.is_some() {
                let why = fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
                return Err(Fault::new(format!(
                    "cannot compare the clocks of the two hosts: only {found} clock exchanges were \
                     answered{why}; allow UDP between their addresses"
                )));
            }
            std::thread::sleep(QUICK);
        }
    }

    fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let cookie: Cookie = secret::fresh().map_err(Fault::new)?;
        let site = |role| match (interface, role) {
            (Some(names), Role::Client) => Site::Interface(names.client.clone()),
            (Some(names), Role::Server) => Site::Interface(names.server.clone()),
            (None, role) => host.site(role).unwrap_or_default(),
        };
        let request = AnswerClock {
            site: site(Role::Server),
            source: host.probe.source,
            time: host.probe.time,
            cookie,
            leaves: host.probe.cpus.clone(),
            injected_error,
        };
        let (agent, rx, other) = answering(host, request)?;
        let own = address_of_site(&site(Role::Client)).map_err(|e| Fault::new(e.to_string()))?;
        let other = towards(other, own);
        let asking = Asking::from(own, other, local, cookie)
            .map_err(|error| Fault::new(format!("clock exchanges from {own}: {error}")))?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            host::stay_off(&cpus);
            if let Err(error) = ask(asking, &theirs) {
                *theirs.fault.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(error.to_string());
            }
        });
        let comparison = Comparison { agent: Some(agent), rx, shared, thread: Some(thread) };
        comparison.shared.wait_for(FIRST, LEAST, PATIENCE)?;
        Ok(comparison)
    }

    /// All exchanges so far, with at least one that began after this call.
    pub fn exchanges(&self) -> Result<Vec<Exchange>, Fault> {
        let count = self.shared.exchanges().len();
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
        // The current one may have begun before.
        self.shared.wait_for(count + 2, count + 2, PATIENCE)?;
        Ok(self.shared.exchanges().clone())
    }

    /// All exchanges so far.
    pub fn so_far(&self) -> Vec<Exchange> {
        self.shared.exchanges().clone()
    }

    /// Ends the comparison; returns its cost.
    pub fn end(mut self) -> Cost {
        self.stop();
        let mut cost = *self.shared.cost.lock().unwrap_or_else(PoisonError::into_inner);
        // Its process has exited: its last messages are queued or in the pipe.
        while let Ok(AgentMessage { message: Ok(said), .. }) = self.rx.recv_timeout(LAST_WORD) {
            if let FromAgent::ClockAnswered { datagrams, cpu_ns } = said {
                cost.remote = Some((datagrams, cpu_ns));
            }
        }
        cost
    }

    fn stop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.close();
        }
    }
}

impl Drop for Comparison {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Exchanges timestamps until the comparison is over.
fn ask(mut asking: Asking, shared: &Shared) -> io::Result<()> {
    let before = ResourceUse::of_thread();
    let done = exchange_until_over(&mut asking, shared);
    let cost = Cost {
        sent: asking.sent(),
        cpu_ns: ResourceUse::of_thread().since(&before).cpu_ns,
        remote: None,
    };
    *shared.cost.lock().unwrap_or_else(PoisonError::into_inner) = cost;
    done
}

fn exchange_until_over(asking: &mut Asking, shared: &Shared) -> io::Result<()> {
    while !shared.over.load(Ordering::Relaxed) {
        let exchange = asking.ask(ANSWER)?;
        let count = {
            let mut all = shared.exchanges();
            all.extend(exchange);
            all.len()
        };
        let rests = count >= FIRST && count.is_multiple_of(BURST);
        // A caller that needs a new exchange ends the pause.
        std::thread::park_timeout(if rests { PAUSE } else { QUICK });
    }
    Ok(())
}

/// Starts the answering agent; returns its address.
fn answering(
    host: &RemoteHost,
    request: AnswerClock,
) -> Result<(Agent, Receiver<AgentMessage>, SocketAddr), Fault> {
    let (tx, rx) = mpsc::channel();
    let place = AgentPlace::Remote(&host.session);
    let mut agent = Agent::start(place, 0, Role::Server, VERSION, tx).map_err(Fault::new)?;
    let mut request = Some(request);
    let deadline = Instant::now() + GREETING;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let said = match rx.recv_timeout(left) {
            Ok(AgentMessage { message, .. }) => message,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(Fault::new(
                    "the agent did not start answering clock exchanges in time",
                ));
            }
        };
        match said {
            Ok(FromAgent::Welcome { .. }) if request.is_some() => {
                request
                    .take()
                    .into_iter()
                    .for_each(|a| agent.send(&ToAgent::AnswerClock(Box::new(a))));
            }
            Ok(FromAgent::ClockAddress(address)) if request.is_none() => {
                return Ok((agent, rx, address));
            }
            Ok(FromAgent::Refused { sentence, wrong_use }) => {
                return Err(Fault::of_agent(wrong_use, sentence));
            }
            Ok(_) => {
                return Err(Fault::new(
                    "the agent that answers clock exchanges sent an unexpected message",
                ));
            }
            Err(error) => {
                return Err(Fault::new(format!("the agent that answers clock exchanges: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::LocalNs;

    #[test]
    fn a_long_way_has_fewer_exchanges_and_none_at_all_is_a_sentence() {
        let shared = Shared::default();
        let now = LocalNs(0.0);
        let one = Exchange { sent: now, reached: now, answered: now, heard: now };
        *shared.exchanges() = vec![one; LEAST];
        let soon = Duration::from_millis(5);
        assert!(shared.wait_for(FIRST, LEAST, soon).is_ok());
        let fault = shared.wait_for(FIRST, LEAST + 1, soon).unwrap_err();
        assert!(fault.to_string().contains("only 20 clock exchanges were answered"), "{fault}");
        *shared.fault.lock().unwrap() = Some("no route".into());
        let fault = shared.wait_for(FIRST, LEAST, PATIENCE).unwrap_err();
        assert!(fault.to_string().contains("(no route)"), "{fault}");
    }
}
