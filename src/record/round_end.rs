//! What ended a round, as it stands in the record.

use crate::loops::Ended;
use serde::{Deserialize, Serialize};

/// What ended a round, or a thread of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// Nothing is known of its end.
    #[default]
    Unknown,
    /// Something went wrong: a sentence.
    Fault(String),
    /// The measured loop of the client.
    #[serde(untagged)]
    Loop(Ended),
}
