//! Who sends what when: the measured loops.
//!
//! Takes a connected [`Endpoint`](crate::transport::Endpoint), a clock and a [`Loop`]; gives
//! samples to the [`Recorder`](crate::sample::recorder::Recorder). One file a loop: [`closed`]
//! (latency, and oneway without a schedule), [`open`] (oneway with one), [`stream`] (oneway of
//! samples), [`bandwidth`], [`load`] and its servers [`store`] and [`rpc`],
//! [`one_sided`] (latency and bandwidth of reads, atomics and streams of writes). [`role`] chooses
//! the loop of a case and role, and is compiled once for each transport, wait mode and clock.
//!
//! Must never: know a transport by name, allocate, log, lock or convert ticks inside a loop.

pub mod bandwidth;
pub mod closed;
pub mod compiled;
pub mod flow;
pub mod gate;
pub mod load;
pub mod one_sided;
pub mod open;
pub mod payload;
pub mod receivers;
pub mod role;
pub mod rpc;
pub mod schedule;
pub mod stamper;
pub mod store;
pub mod stream;
pub mod waiter;

use crate::clock::TickSpan;
use crate::plan::load::Load;
use crate::transport::Link;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A case as the loops need it: ticks and counts, nothing to be computed any more.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Payload bytes.
    pub size: usize,
    /// Messages of the round, warm-up included (`u64::MAX`: the time ends it).
    pub messages: u64,
    /// Of those, the warm-up.
    pub warmup: u64,
    /// How long after the warm-up.
    pub time: Option<TickSpan>,
    /// Between two bursts.
    pub pause: TickSpan,
    /// Messages posted together.
    pub burst: u64,
    /// Most messages posted and not completed.
    pub window: u64,
    /// Messages for one answer (0: none).
    pub every: u32,
    /// Whether payloads are filled and verified.
    pub check: bool,
    /// When an answer that has not come is given up (`None`: the transport loses nothing).
    pub loss_after: Option<TickSpan>,
    /// How long a receiver goes on after the sender has ended, for what is on the way.
    pub drain: TickSpan,
    /// Between the arming of an open loop and its first intended time; also how long a loop idles
    /// before it looks at its gate.
    pub lead: TickSpan,
    /// Messages for one sample of a bandwidth round.
    pub stride: u64,
    /// Whether each post makes a completion of its own, which is stamped.
    pub completions: bool,
    /// Whether messages carry the last time at which they were still at the sender.
    pub reads_send: bool,
    /// What is read, and through how many buffers.
    pub load: Load,
    /// What writes that time.
    pub stamper: Option<Arc<stamper::Stamper>>,
}

/// Why a round has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All messages.
    Count,
    /// The time.
    Time,
    /// It was told to stop.
    Stopped,
    /// The other end has closed the connection.
    Closed,
    /// The connection failed with this errno.
    Failed(i32),
    /// The other end's time was over before this one's warm-up.
    WarmingUp,
}

impl Ended {
    /// Why a loop ends whose link is like this: told to stop, where the link is up.
    pub fn of(link: Link) -> Ended {
        match link {
            Link::Up => Ended::Stopped,
            Link::Closed => Ended::Closed,
            Link::Failed(errno) => Ended::Failed(errno),
        }
    }

    /// Whether it was as planned.
    pub fn as_planned(self) -> bool {
        matches!(self, Ended::Count | Ended::Time)
    }
}
