//! Why a round has ended.

use serde::{Deserialize, Serialize};
use wiregauge_transport::Link;

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
    #[inline]
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
