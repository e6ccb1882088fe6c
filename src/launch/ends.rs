//! What a thread plays over: one connection, or (`rpc`) one to each thread of the other end and
//! more; and which connection of which thread meets which.

use crate::clock::{Clock, DeviceStamps, DeviceTicks, TickSpan};
use crate::pattern::Ended;
use crate::pattern::role::{self, Part};
use crate::plan::Case;
use crate::plan::rpc::Draws;
use crate::sample::recorder::Recorder;
use crate::transport::fan::Fan;
use crate::transport::{
    Blob, Endpoint, LiveWord, Opening, Role, SetupError, Slot, Transport, Varied,
};

/// The connected ends of one thread.
pub(super) trait Ends<T: Transport>: Sized {
    /// What a loop is given.
    type Played;
    /// Connects each opening of a case to the address of its fellow.
    fn connect(case: &Case, openings: Vec<T::Opening>, others: &[Blob])
    -> Result<Self, SetupError>;
    /// What a loop is given.
    fn played(&mut self) -> &mut Self::Played;
    /// Plays a role over them.
    fn play<C: Clock>(
        case: &Case,
        role: Role,
        thread: u32,
        part: Part<'_, Self::Played, C>,
        recorder: &mut Recorder<'_>,
        spin: TickSpan,
    ) -> Ended;
    /// Settings as the system granted them.
    fn granted(&self) -> Vec<(String, String)>;
    /// Strangers that were dropped.
    fn strangers(&self) -> u64;
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
pub(super) struct One<E>(E);

impl<T: Transport> Ends<T> for One<<T::Opening as Opening>::Endpoint> {
    type Played = <T::Opening as Opening>::Endpoint;

    fn connect(_: &Case, openings: Vec<T::Opening>, others: &[Blob]) -> Result<Self, SetupError> {
        let pair = openings.into_iter().zip(others).next();
        let (opening, other) = pair.ok_or(SetupError::Address)?;
        opening.connect(other).map(One)
    }

    fn played(&mut self) -> &mut Self::Played {
        &mut self.0
    }

    fn play<C: Clock>(
        case: &Case,
        role: Role,
        _: u32,
        part: Part<'_, Self::Played, C>,
        recorder: &mut Recorder<'_>,
        spin: TickSpan,
    ) -> Ended {
        role::play(case, role, part, recorder, spin)
    }

    fn granted(&self) -> Vec<(String, String)> {
        T::granted(&self.0)
    }

    fn strangers(&self) -> u64 {
        T::strangers(&self.0)
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

/// Many of them, whose messages have different lengths.
pub(super) struct Many<E> {
    fan: Fan<E>,
    granted: Vec<(String, String)>,
    strangers: u64,
}

impl<T: Transport> Ends<T> for Many<<T::Opening as Opening>::Varied> {
    type Played = Fan<<T::Opening as Opening>::Varied>;

    fn connect(
        case: &Case,
        openings: Vec<T::Opening>,
        others: &[Blob],
    ) -> Result<Self, SetupError> {
        let (mut ends, mut first, mut strangers) = (Vec::new(), None, 0);
        for (opening, other) in openings.into_iter().zip(others) {
            let Varied { endpoint, granted, strangers: of_one } = opening.connect_varied(other)?;
            ends.push(endpoint);
            strangers += of_one;
            first.get_or_insert(granted);
        }
        let mut granted = first.unwrap_or_default();
        granted.push(("connections".into(), ends.len().to_string()));
        let patience = case.transport.loses(&case.options).then_some(case.loss_after);
        let fan =
            Fan::new(ends, patience).map_err(SetupError::system("watching the connections"))?;
        Ok(Many { fan, granted, strangers })
    }

    fn played(&mut self) -> &mut Self::Played {
        &mut self.fan
    }

    fn play<C: Clock>(
        case: &Case,
        role: Role,
        thread: u32,
        part: Part<'_, Self::Played, C>,
        recorder: &mut Recorder<'_>,
        spin: TickSpan,
    ) -> Ended {
        match Draws::of(case, thread) {
            Some(draws) => role::play_rpc(case, role, part, draws, recorder, spin),
            // Only what has draws has many ends.
            None => Ended::Stopped,
        }
    }

    fn granted(&self) -> Vec<(String, String)> {
        self.granted.clone()
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }

    fn afterwards(&self) -> Vec<(String, String)> {
        Vec::new()
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
pub(super) fn crossed(case: &Case, role: Role, others: &[Vec<Blob>]) -> Option<Vec<Vec<Blob>>> {
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
