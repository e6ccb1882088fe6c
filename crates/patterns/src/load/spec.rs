//! The options and the specification of load: who sends requests, what the server reads, and
//! through how many buffers. Pure.

use crate::prelude::*;
use crate::schedule_options::{ARRIVALS, OFF, ON, TIMER, TRACE};
use wiregauge_plan::{Slo, check_limits};

/// Bytes in front of an object: the number of the request and the key of the object.
pub const HEAD: u64 = 16;
/// Bytes of an object where nothing else is asked for.
pub const OBJECT_SIZE: Bytes = Bytes(100);
/// Objects of the table where nothing else is asked for.
pub const OBJECTS: u64 = 100_000;
/// Most bytes of a table.
pub const MOST_TABLE: u64 = 1 << 30;
/// Most buffers of a pool: as many as an endpoint can have slots.
pub const MOST_BUFFERS: u32 = wiregauge_transport::MOST_EVENTS as u32;
/// Most requests that may be outstanding: what the client keeps of them takes 2 MiB.
pub const MOST_OUTSTANDING: u32 = 1 << 16;

const RATE: OptionDef = OptionDef::text(
    "rate",
    |text| sweep::rates(text).map(drop),
    "Requests per second: 50k, a list, or a sweep 1k..100k/8 (8 steps, logarithmic)",
)
.metavar("RATES")
.default_note("searched from idle to saturation, finer around the knee")
.common();

const CLIENTS: OptionDef = OptionDef::count(
    "clients",
    "Closed loop of this many clients with one request each, such as 8 or 1,2,4,8; their hosts: \
     --client-hosts",
)
.limits(1, MOST_OUTSTANDING as u64)
.list()
.excludes(&["rate", "trace", "slo"])
.common();

pub(super) const OPTIONS: OptionTable = &[
    RATE,
    CLIENTS,
    CONNECTIONS,
    OptionDef::parsed::<Slo>(
        "slo",
        "Find the highest rate that meets this bound, such as 'p99<50us'; exit code 1 if none \
         does, 5 if that is not shown",
    )
    .metavar("BOUND")
    .common(),
    OptionDef::parsed::<MessageRate>(
        "probe",
        "Small requests per second on a connection of their own, beside the load",
    )
    .metavar("RATE"),
    OptionDef::count("objects", "Objects in the server's table")
        .limits(1, u32::MAX as u64)
        .default("100k"),
    OptionDef::size("object-size", "Size of an object; requests and responses add 16 B")
        .limits(1, MOST_TABLE)
        .default("100B"),
    OptionDef::count("tx-buffers", "Transmit buffers of the server; measures its buffer pools")
        .limits(1, MOST_BUFFERS as u64)
        .default_note("64"),
    OptionDef::count("rx-buffers", "Receive buffers of the server; measures its buffer pools")
        .limits(1, MOST_BUFFERS as u64)
        .default_note("64"),
    WINDOW.help("Maximum number of outstanding requests").default("65536"),
    ARRIVALS.default_note("poisson"),
    ON,
    OFF,
    TRACE,
    TIMER,
];

/// The server's pools of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Replies that are posted and not completed, at most.
    pub transmit: u32,
    /// Requests that have arrived and are not answered, at most.
    pub receive: u32,
}

/// A search for the load at which responses grow: points are added to the plan while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The schedule of the points that are added, at any rate.
    pub arrivals: Schedule,
}

/// The specification of a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Clients that each send their next request when the last was answered (a closed loop); 0: a
    /// schedule says when.
    pub clients: u32,
    /// Objects of the server's table.
    pub objects: u64,
    /// Bytes of each.
    pub object_size: Bytes,
    /// The server's pools; `None`: as many as the transport has slots, and they are not measured.
    pub buffers: Option<Buffers>,
    /// Most requests outstanding.
    pub window: u32,
    /// Whether it is the probe beside the load of another case.
    pub probe: bool,
    /// Rate of the probe beside this point, and beside those that follow from it.
    pub probe_rate: Option<MessageRate>,
    /// The limit that the highest rate is wanted for.
    pub slo: Option<Slo>,
    /// Set where points are added.
    pub search: Option<Search>,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            clients: 0,
            objects: OBJECTS,
            object_size: OBJECT_SIZE,
            buffers: None,
            window: MOST_OUTSTANDING,
            probe: false,
            probe_rate: None,
            slo: None,
            search: None,
        }
    }
}

impl Spec {
    /// Bytes of a request and of its answer: a connection's messages have one size.
    pub fn message(&self) -> Bytes {
        Bytes(self.object_size.0.saturating_add(HEAD))
    }

    /// Refuses numbers that no server can have.
    pub(super) fn check_numbers(&self) -> Result<(), UsageError> {
        check_limits(self, OPTIONS)?;
        let (count, each, most) = (self.objects, self.object_size, Bytes(MOST_TABLE));
        ensure!(
            count.saturating_mul(each.0) <= MOST_TABLE,
            "{count} objects of {each} exceed the limit of {most}: use fewer or smaller objects"
        );
        let Some(buffers) = self.buffers else { return Ok(()) };
        let most = u64::from(MOST_BUFFERS);
        within("--tx-buffers", Some(buffers.transmit), 1, most)?;
        within("--rx-buffers", Some(buffers.receive), 1, most)
    }
}
