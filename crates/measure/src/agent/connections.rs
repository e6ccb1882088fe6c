//! The connections of one thread: opened, connected, and asked for what they have counted.

use crate::loops::socket_stamped::SocketStamped;
use crate::loops::stamped::{Stamped, identify};
use std::io;
use std::time::Instant;
use wiregauge_clock::Source;
use wiregauge_plan::Case;
use wiregauge_plan::topology::Wiring;
use wiregauge_sample::arena::Arena;
use wiregauge_transport::counter::{self, CounterValue, FinalCounters};
use wiregauge_transport::endpoint_set::EndpointSet;
use wiregauge_transport::optional::{DeviceClock, LiveWord};
use wiregauge_transport::{
    Blob, Connected, Endpoint, KernelPath, NamedValues, Opening, Setup, SetupError, Slot, Wait,
};

/// What is tried when the kernel is to watch several connections.
const WATCHING: &str = "watching the connections";

/// The connected endpoints of a thread, of any transport.
pub type Endpoints = EndpointSet<Box<dyn Endpoint>>;

/// The connected endpoints of one thread.
pub(crate) struct Connections {
    /// The endpoints.
    pub set: Endpoints,
    /// Settings that are in effect.
    pub effective_settings: NamedValues,
    rejected_peers: u64,
    /// Whether each message chooses a connection.
    is_mesh: bool,
    /// Times that it took to connect, rising: of each connection.
    setup_ns: Vec<u64>,
}

/// Opens the endpoints of a thread, each for the side that its rank has on that connection.
pub(crate) fn open(case: &Case, setup: &Setup, thread: usize) -> Result<Vec<Opening>, SetupError> {
    let (topology, rank) = (&case.topology, setup.rank.number as usize);
    if !topology.has_nodes() {
        return case.transport.open_several(setup, topology.endpoints_of(rank));
    }
    let peers = topology.peers_of(rank, thread).into_iter();
    let one = |other: usize| {
        let role = topology.side_towards(rank, other);
        case.transport.open(&Setup { role, ..setup.clone() })
    };
    peers.map(|peer| one(peer.rank)).collect()
}

impl Connections {
    /// Connects each opening to the address of its peer.
    pub fn connect(
        case: &Case,
        openings: Vec<Opening>,
        peers: &[Blob],
    ) -> Result<Connections, SetupError> {
        let (mut ends, mut first, mut rejected_peers) = (Vec::new(), None, 0);
        let mut setup_ns = Vec::new();
        for (opening, peer) in openings.into_iter().zip(peers) {
            let begin = Instant::now();
            let Connected { endpoint, effective_settings, rejected_peers: rejected } =
                opening.connect(peer)?;
            setup_ns.push(begin.elapsed().as_nanos() as u64);
            ends.push(endpoint);
            rejected_peers += rejected;
            first.get_or_insert(effective_settings);
        }
        let mut effective_settings = first.ok_or(SetupError::Address)?;
        let is_mesh = matches!(case.topology.wiring, Wiring::Mesh { .. });
        if is_mesh {
            effective_settings.push(("connections".into(), ends.len().to_string()));
        }
        let patience = case.transport.loses(&case.settings).then_some(case.loss_after);
        // A node sleeps over its connections together, even if it has one.
        let is_watched = ends.iter().all(|end| end.watched().is_some());
        let set = match case.topology.has_nodes() && case.wait != Wait::Busy && is_watched {
            true => EndpointSet::watched(ends, true, patience),
            false => EndpointSet::new(ends, patience),
        };
        let set = set.map_err(SetupError::system(WATCHING))?;
        setup_ns.sort_unstable();
        Ok(Connections { set, effective_settings, rejected_peers, is_mesh, setup_ns })
    }

    /// Has each post and arrival stamped in this memory, those of a socket by the kernel; in memory
    /// of one row this thread says only who it is. To be called by the thread that uses the end.
    ///
    /// # Errors
    /// The kernel does not stamp its messages.
    pub fn stamp(&mut self, case: &Case, source: Source, mut memory: Arena) -> io::Result<()> {
        // With room for nothing else it is only asked who it is.
        if memory.capacity() <= 1 {
            identify(&mut memory);
            return Ok(());
        }
        let is_bypassed = case.transport.descriptor().kernel_path == KernelPath::Bypassed;
        let ends = std::mem::take(&mut self.set.ends).into_vec();
        self.set.ends = match <[_; 1]>::try_from(ends) {
            Ok([only]) if is_bypassed => {
                Box::new([Box::new(Stamped::new(only, source, memory)) as _])
            }
            Ok([only]) => Box::new([Box::new(SocketStamped::new(only, source, memory)?) as _]),
            Err(several) => several.into(),
        };
        Ok(())
    }

    /// Peers that were rejected, until now.
    pub fn rejected_peers(&self) -> u64 {
        let later = self.set.ends.iter().map(Endpoint::rejected_peers);
        self.rejected_peers + later.sum::<u64>()
    }

    /// What the endpoints have counted when the round is over.
    pub fn final_counters(&self) -> FinalCounters {
        let mut all = counter::merged(self.set.ends.iter().map(Endpoint::final_counters));
        all.extend(self.setup_counters());
        all
    }

    /// Returns the number of connections and quantiles of the time to connect one.
    fn setup_counters(&self) -> FinalCounters {
        let Some(longest) = self.setup_ns.last() else { return FinalCounters::new() };
        let connections = CounterValue::Events(self.setup_ns.len() as u64);
        let mut all = FinalCounters::from([("connect.connections".to_owned(), connections)]);
        for (name, p) in [("p50", 0.5), ("p99", 0.99), ("longest", 1.0)] {
            // The nearest rank.
            let rank = ((self.setup_ns.len() as f64 * p).ceil() as usize).saturating_sub(1);
            let ns = *self.setup_ns.get(rank).unwrap_or(longest);
            all.insert(format!("connect.{name}_ns"), CounterValue::Largest(ns));
        }
        all
    }

    /// A word of the first slot, `at` bytes behind its begin, that another thread may go on
    /// writing.
    pub fn live_word(&mut self, at: usize) -> Option<LiveWord> {
        let only = if self.is_mesh { None } else { self.set.ends.first_mut() };
        only?.live_word(Slot::sending(0), at)
    }

    /// The clock by which the adapter stamps completions.
    pub fn device_clock(&self) -> Option<&dyn DeviceClock> {
        self.set.ends.first().filter(|_| !self.is_mesh)?.device_clock()
    }
}
