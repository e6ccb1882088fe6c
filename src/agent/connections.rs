//! The connections of one thread: one, or (`rpc`) one to each thread of the other end and more; and
//! which connection of which thread connects to which.

use crate::clock::AnyClock;
use crate::host::{self, ResourceUse};
use crate::loops::Ended;
use crate::loops::receivers::{self, Given, Giving};
use crate::loops::role::{self, LoopContext};
use crate::loops::waiter::AnyWaiter;
use crate::plan::Case;
use crate::plan::rpc::Draws;
use crate::sample::recorder::Recorder;
use crate::transport::endpoint_set::EndpointSet;
use crate::transport::optional::{DeviceClock, LiveWord};
use crate::transport::{
    Blob, Connected, Endpoint, NamedValues, Opening, Role, Setup, SetupError, Slot,
};
use crate::units::Span;
use std::collections::BTreeMap;

/// How long a receiver thread sleeps before it looks whether its port has ended.
const LOOK: Span = Span(10_000_000);
/// What is tried when the kernel is to watch several connections.
const WATCHING: &str = "watching the connections";

/// Several ends of any transport.
type Endpoints = EndpointSet<Box<dyn Endpoint>>;

/// The connected ends of one thread.
pub(crate) struct Connections {
    set: Endpoints,
    /// Second handles on shares of them, one for each receiver thread.
    receivers: Vec<Endpoints>,
    used_beside: ResourceUse,
    effective_settings: NamedValues,
    rejected_peers: u64,
    /// Whether each message chooses a connection.
    is_rpc: bool,
}

/// Opens as many ends as a thread of this role has.
pub(crate) fn open(case: &Case, setup: &Setup) -> Result<Vec<Box<dyn Opening>>, SetupError> {
    (0..case.lanes_of(setup.role)).map(|_| case.transport.open(setup)).collect()
}

impl Connections {
    /// Connects each opening to the address of the one that connects to it.
    pub fn connect(
        case: &Case,
        role: Role,
        openings: Vec<Box<dyn Opening>>,
        others: &[Blob],
    ) -> Result<Connections, SetupError> {
        let (mut ends, mut first, mut rejected_peers) = (Vec::new(), None, 0);
        for (opening, other) in openings.into_iter().zip(others) {
            let Connected { endpoint, effective_settings, rejected_peers: rejected } =
                opening.connect(other)?;
            ends.push(endpoint);
            rejected_peers += rejected;
            first.get_or_insert(effective_settings);
        }
        let mut effective_settings = first.ok_or(SetupError::Address)?;
        let is_rpc = case.rpc.is_some();
        if is_rpc {
            effective_settings.push(("connections".into(), ends.len().to_string()));
        }
        let receivers = receivers_of(case, role, &ends)?;
        let patience = case.transport.loses(&case.settings).then_some(case.loss_after);
        let set = EndpointSet::new(ends, patience).map_err(SetupError::system(WATCHING))?;
        let used_beside = ResourceUse::default();
        Ok(Connections { set, receivers, used_beside, effective_settings, rejected_peers, is_rpc })
    }

    /// Runs a role over them, of the thread of this number. Receiver threads run on the CPU
    /// `elsewhere`, on which no thread of this end measures.
    pub fn run(
        &mut self,
        clock: AnyClock,
        context: LoopContext<'_>,
        (thread, elsewhere): (u32, Option<u32>),
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let Some(draws) = Draws::of(context.case, thread) else {
            return role::run(self.set.end(0), clock, context, recorder);
        };
        if self.receivers.is_empty() {
            return role::run_rpc(&mut self.set, clock, context, draws, recorder);
        }
        let (case, plan, spin) = (context.case, context.plan, context.spin);
        let handovers = self.receivers.iter().map(|_| receivers::handover());
        let (giving, mut given): (Vec<Giving>, Vec<Given>) = handovers.unzip();
        let (ended, used) = std::thread::scope(|scope| {
            let beside: Vec<_> = self
                .receivers
                .iter_mut()
                .zip(giving)
                .map(|(set, giving)| {
                    scope.spawn(move || {
                        elsewhere.inspect(|cpu| drop(host::pin_to(*cpu)));
                        let used = ResourceUse::of_thread();
                        let waiter = AnyWaiter::of(case.wait, spin);
                        receivers::receiver(set, waiter, clock, plan, giving);
                        ResourceUse::of_thread().since(&used)
                    })
                })
                .collect();
            let ended = role::run_split(&mut self.set, clock, context, draws, &mut given, recorder);
            given.iter().for_each(Given::end);
            let used = beside.into_iter().filter_map(|thread| thread.join().ok());
            (ended, used.fold(ResourceUse::default(), |all, one| all.and(&one)))
        });
        self.used_beside = used;
        ended
    }

    /// Settings that are in effect.
    pub fn effective_settings(&self) -> NamedValues {
        self.effective_settings.clone()
    }

    /// Peers that were rejected, until now.
    pub fn rejected_peers(&self) -> u64 {
        let later = self.set.ends().iter().map(Endpoint::rejected_peers);
        self.rejected_peers + later.sum::<u64>()
    }

    /// What receiver threads have used.
    pub fn used_beside(&self) -> ResourceUse {
        self.used_beside
    }

    /// What the ends have counted when the round is over: the sum of all, and of what is no count
    /// the last.
    pub fn final_counters(&self) -> NamedValues {
        if let [end] = self.set.ends() {
            return end.final_counters();
        }
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in self.set.ends().iter().flat_map(Endpoint::final_counters) {
            let before = all.get(&name).and_then(|before| before.parse::<u64>().ok());
            let sum = before.zip(value.parse::<u64>().ok()).map(|(a, b)| a.saturating_add(b));
            all.insert(name, sum.map_or(value, |sum| sum.to_string()));
        }
        all.into_iter().collect()
    }

    /// A word of the first slot, `at` bytes behind its begin, that another thread may go on
    /// writing.
    pub fn live_word(&mut self, at: usize) -> Option<Box<dyn LiveWord>> {
        if self.is_rpc {
            return None;
        }
        self.set.end(0).live_word(Slot::sending(0), at)
    }

    /// The clock by which the adapter stamps completions.
    pub fn device_clock(&self) -> Option<&dyn DeviceClock> {
        self.set.ends().first().filter(|_| !self.is_rpc)?.device_clock()
    }
}

/// The shares of a client's connections that its receiver threads watch.
fn receivers_of(
    case: &Case,
    role: Role,
    ends: &[Box<dyn Endpoint>],
) -> Result<Vec<Endpoints>, SetupError> {
    let count = case.rpc.as_ref().map_or(0, |rpc| rpc.receivers as usize).min(ends.len());
    if role == Role::Server || count == 0 {
        return Ok(Vec::new());
    }
    let mut shares: Vec<Vec<Box<dyn Endpoint>>> = (0..count).map(|_| Vec::new()).collect();
    for (number, end) in ends.iter().enumerate() {
        let second = || SetupError::Refused("a connection cannot have two threads".into());
        shares[number % count].push(end.receiver().ok_or_else(second)?);
    }
    let watching = |share| EndpointSet::watching(share, LOOK).map_err(SetupError::system(WATCHING));
    shares.into_iter().map(watching).collect()
}

/// What each thread of an end is to connect to, from the addresses of each thread of the other:
/// the thread of the same number, or (`rpc`) so many of each. `None`: these are not the addresses
/// of the case.
///
/// The connections of a thread stand in the order of the other end's threads.
pub(crate) fn connection_pairs(
    case: &Case,
    role: Role,
    others: &[Vec<Blob>],
) -> Option<Vec<Vec<Blob>>> {
    let (own, lanes) = (case.threads_of(role), case.lanes_of(role.other()) as usize);
    let is_whole = others.len() == case.threads_of(role.other()) as usize
        && others.iter().all(|thread| thread.len() == lanes);
    let each = case.rpc.as_ref().map(|rpc| rpc.connections as usize);
    match each {
        _ if !is_whole => None,
        None => Some(others.to_vec()),
        Some(each) => {
            let of = |thread: usize| {
                let mine = |other: &Vec<Blob>| other[thread * each..(thread + 1) * each].to_vec();
                others.iter().flat_map(mine).collect()
            };
            Some((0..own as usize).map(of).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::rpc::Wanted;
    use crate::plan::{Pattern, Request};

    #[test]
    fn each_connection_connects_to_the_one_that_connects_to_it() {
        let wanted = Wanted {
            server_ports: vec![3],
            connections: vec![2],
            baseline: false,
            ..Wanted::default()
        };
        let request = Request {
            threads: vec![2],
            clients: vec![1],
            rpc: Some(wanted),
            ..Request::new(Pattern::Load)
        };
        let case = request.plan().unwrap().cases.remove(0);
        let named = |role: Role| -> Vec<Vec<Blob>> {
            let lane = |thread, lane| Blob(vec![thread as u8, lane as u8]);
            let lanes = case.lanes_of(role);
            (0..case.threads_of(role))
                .map(|thread| (0..lanes).map(|number| lane(thread, number)).collect())
                .collect()
        };
        let at_client = connection_pairs(&case, Role::Client, &named(Role::Server)).unwrap();
        let at_server = connection_pairs(&case, Role::Server, &named(Role::Client)).unwrap();
        assert_eq!((at_client.len(), at_server.len()), (2, 3));
        for (thread, lanes) in at_client.iter().enumerate() {
            assert_eq!(lanes.len(), 6);
            for (lane, Blob(other)) in lanes.iter().enumerate() {
                let back = &at_server[other[0] as usize][other[1] as usize];
                assert_eq!(back.0, [thread as u8, lane as u8]);
            }
        }
        assert_eq!(connection_pairs(&case, Role::Client, &named(Role::Client)), None);
    }
}
