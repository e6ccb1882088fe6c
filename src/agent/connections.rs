//! What a thread plays over: one connection, or (`rpc`) one to each thread of the other end and
//! more; and which connection of which thread meets which.

use crate::clock::{Clock, DeviceStamps, DeviceTicks, TickSpan};
use crate::host::{self, ResourceUse};
use crate::loops::Ended;
use crate::loops::receivers::{self, Given, Giving};
use crate::loops::role::{self, Part};
use crate::loops::waiter::Any;
use crate::plan::Case;
use crate::plan::rpc::Draws;
use crate::sample::recorder::Recorder;
use crate::transport::fan::Fan;
use crate::transport::{Blob, Endpoint, LiveWord, Opening, Role, SetupError, Slot, Transport};
use crate::units::Span;
use std::collections::BTreeMap;

/// How long a receiver thread sleeps before it looks whether its port has ended.
const LOOK: Span = Span(10_000_000);
/// What is tried when the kernel is to watch several connections.
const WATCHING: &str = "watching the connections";

/// Where a thread plays.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub case: &'a Case,
    pub role: Role,
    /// Its number.
    pub thread: u32,
    /// A CPU on which no thread of its end measures.
    pub elsewhere: Option<u32>,
}

/// The connected ends of one thread.
pub(crate) trait Ends<T: Transport, C: Clock>: Sized {
    /// Connects each opening of a case to the address of its fellow.
    fn connect(
        case: &Case,
        role: Role,
        openings: Vec<T::Opening>,
        others: &[Blob],
    ) -> Result<Self, SetupError>;
    /// Plays a role over them.
    fn play(
        &mut self,
        at: At<'_>,
        part: Part<'_, (), C>,
        recorder: &mut Recorder<'_>,
        spin: TickSpan,
    ) -> Ended;
    /// Settings as the system granted them.
    fn granted(&self) -> Vec<(String, String)>;
    /// Strangers that were dropped.
    fn strangers(&self) -> u64;
    /// What threads beside the playing one have used.
    fn used_beside(&self) -> ResourceUse;
    /// What they have seen when the round is over.
    fn afterwards(&self) -> Vec<(String, String)>;
    /// A word that another thread may go on writing.
    fn live(&mut self, at: usize) -> Option<LiveWord>;
    /// The adapter's clock.
    fn device_clock(&self) -> Option<DeviceTicks>;
    /// Its stamps.
    fn device_stamps(&self) -> Option<DeviceStamps<'_>>;
}

/// One connection.
pub(crate) struct One<E>(E);

impl<T: Transport, C: Clock> Ends<T, C> for One<<T::Opening as Opening>::Endpoint> {
    fn connect(
        _: &Case,
        _: Role,
        openings: Vec<T::Opening>,
        others: &[Blob],
    ) -> Result<Self, SetupError> {
        let pair = openings.into_iter().zip(others).next();
        let (opening, other) = pair.ok_or(SetupError::Address)?;
        opening.connect(other).map(One)
    }

    fn play(
        &mut self,
        at: At<'_>,
        part: Part<'_, (), C>,
        recorder: &mut Recorder<'_>,
        spin: TickSpan,
    ) -> Ended {
        role::play(at.case, at.role, part.over(&mut self.0), recorder, spin)
    }

    fn granted(&self) -> Vec<(String, String)> {
        T::granted(&self.0)
    }

    fn strangers(&self) -> u64 {
        T::strangers(&self.0)
    }

    fn used_beside(&self) -> ResourceUse {
        ResourceUse::default()
    }

    fn afterwards(&self) -> Vec<(String, String)> {
        T::afterwards(&self.0)
    }

    fn live(&mut self, at: usize) -> Option<LiveWord> {
        self.0.live(Slot::sending(0), at)
    }

    fn device_clock(&self) -> Option<DeviceTicks> {
        T::device_clock(&self.0)
    }

    fn device_stamps(&self) -> Option<DeviceStamps<'_>> {
        T::device_stamps(&self.0)
    }
}

/// Many of them, whose messages have different lengths, and the handles that receiver threads have
/// on shares of them.
pub(crate) struct Many<E> {
    fan: Fan<E>,
    receivers: Vec<Fan<E>>,
    used_beside: ResourceUse,
    afterwards: fn(&E) -> Vec<(String, String)>,
    granted: Vec<(String, String)>,
    strangers: u64,
}

impl<E: Endpoint> Many<E> {
    /// The shares of a client's connections that its receiver threads watch.
    fn shares(case: &Case, role: Role, ends: &[E]) -> Result<Vec<Fan<E>>, SetupError> {
        let count = case.rpc.as_ref().map_or(0, |rpc| rpc.receivers as usize).min(ends.len());
        if role == Role::Server || count == 0 {
            return Ok(Vec::new());
        }
        let mut shares: Vec<Vec<E>> = (0..count).map(|_| Vec::new()).collect();
        for (number, end) in ends.iter().enumerate() {
            let second = || SetupError::Refused("a connection cannot have two threads".into());
            shares[number % count].push(end.receiver().ok_or_else(second)?);
        }
        let watching = |share| Fan::watching(share, LOOK).map_err(SetupError::system(WATCHING));
        shares.into_iter().map(watching).collect()
    }
}

impl<T: Transport, C: Clock + Send> Ends<T, C> for Many<<T::Opening as Opening>::Varied> {
    fn connect(
        case: &Case,
        role: Role,
        openings: Vec<T::Opening>,
        others: &[Blob],
    ) -> Result<Self, SetupError> {
        let (mut ends, mut strangers) = (Vec::new(), 0);
        let mut first = None;
        for (opening, other) in openings.into_iter().zip(others) {
            let one = opening.connect_varied(other)?;
            ends.push(one.endpoint);
            strangers += one.strangers;
            first.get_or_insert((one.granted, one.afterwards));
        }
        let none = || SetupError::Refused("a thread of rpc has a connection at least".into());
        let (mut granted, afterwards) = first.ok_or_else(none)?;
        granted.push(("connections".into(), ends.len().to_string()));
        let receivers = Many::shares(case, role, &ends)?;
        let patience = case.transport.loses(&case.settings).then_some(case.loss_after);
        let fan = Fan::new(ends, patience).map_err(SetupError::system(WATCHING))?;
        let used_beside = ResourceUse::default();
        Ok(Many { fan, receivers, used_beside, afterwards, granted, strangers })
    }

    fn play(
        &mut self,
        at: At<'_>,
        part: Part<'_, (), C>,
        recorder: &mut Recorder<'_>,
        spin: TickSpan,
    ) -> Ended {
        // Only what has draws has many ends.
        let Some(draws) = Draws::of(at.case, at.thread) else { return Ended::Stopped };
        if self.receivers.is_empty() {
            let part = part.over(&mut self.fan);
            return role::play_rpc(at.case, at.role, part, draws, recorder, spin);
        }
        let (clock, plan) = (part.clock, part.plan);
        let handovers = self.receivers.iter().map(|_| receivers::handover());
        let (giving, mut given): (Vec<Giving>, Vec<Given>) = handovers.unzip();
        let own = part.over(&mut self.fan);
        let (ended, used) = std::thread::scope(|scope| {
            let beside: Vec<_> = self
                .receivers
                .iter_mut()
                .zip(giving)
                .map(|(fan, giving)| {
                    scope.spawn(move || {
                        at.elsewhere.inspect(|cpu| drop(host::pin_to(*cpu)));
                        let used = ResourceUse::of_thread();
                        let waiter = Any::of(at.case.wait, spin);
                        receivers::receiver(fan, waiter, clock, plan, giving);
                        ResourceUse::of_thread().since(&used)
                    })
                })
                .collect();
            let ended = role::play_split(own, draws, &mut given, recorder);
            given.iter().for_each(Given::end);
            let used = beside.into_iter().filter_map(|thread| thread.join().ok());
            (ended, used.fold(ResourceUse::default(), |all, one| all.and(&one)))
        });
        self.used_beside = used;
        ended
    }

    fn granted(&self) -> Vec<(String, String)> {
        self.granted.clone()
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }

    fn used_beside(&self) -> ResourceUse {
        self.used_beside
    }

    /// Counts of all connections are added up; of what is no count the last stands.
    fn afterwards(&self) -> Vec<(String, String)> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in self.fan.ends().iter().flat_map(self.afterwards) {
            let before = all.get(&name).and_then(|before| before.parse::<u64>().ok());
            let sum = before.zip(value.parse::<u64>().ok()).map(|(a, b)| a.saturating_add(b));
            all.insert(name, sum.map_or(value, |sum| sum.to_string()));
        }
        all.into_iter().collect()
    }

    fn live(&mut self, _: usize) -> Option<LiveWord> {
        None
    }

    fn device_clock(&self) -> Option<DeviceTicks> {
        None
    }

    fn device_stamps(&self) -> Option<DeviceStamps<'_>> {
        None
    }
}

/// What each thread of an end is to connect to, from the addresses of each thread of the other:
/// the thread of the same number, or (`rpc`) so many of each. `None`: these are not the addresses
/// of the case.
///
/// The connections of a thread stand in the order of the other end's threads.
pub(crate) fn crossed(case: &Case, role: Role, others: &[Vec<Blob>]) -> Option<Vec<Vec<Blob>>> {
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
    fn each_connection_meets_the_one_that_meets_it() {
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
        let at_client = crossed(&case, Role::Client, &named(Role::Server)).unwrap();
        let at_server = crossed(&case, Role::Server, &named(Role::Client)).unwrap();
        assert_eq!((at_client.len(), at_server.len()), (2, 3));
        for (thread, lanes) in at_client.iter().enumerate() {
            assert_eq!(lanes.len(), 6);
            for (lane, Blob(other)) in lanes.iter().enumerate() {
                let back = &at_server[other[0] as usize][other[1] as usize];
                assert_eq!(back.0, [thread as u8, lane as u8]);
            }
        }
        assert_eq!(crossed(&case, Role::Client, &named(Role::Client)), None);
    }
}
