//! What ended a round, as it stands in the record.

use crate::loops::Ended;
use serde::{Deserialize, Serialize};

/// What ended a round, or a thread of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// All messages.
    Count,
    /// The time.
    Time,
    /// It was told to stop.
    Stopped,
    /// The other end closed the connection.
    Closed,
    /// The connection failed with this errno.
    Failed(i32),
    /// The other end's time was over before this one's warm-up.
    WarmingUp,
    /// Nothing is known of its end.
    #[default]
    Unknown,
    /// Something went wrong: a sentence.
    Fault(String),
}

impl From<Ended> for RoundEnd {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Count => RoundEnd::Count,
            Ended::Time => RoundEnd::Time,
            Ended::Stopped => RoundEnd::Stopped,
            Ended::Closed => RoundEnd::Closed,
            Ended::Failed(errno) => RoundEnd::Failed(errno),
            Ended::WarmingUp => RoundEnd::WarmingUp,
        }
    }
}
