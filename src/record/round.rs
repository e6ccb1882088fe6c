//! How rounds began that were to begin at one instant, and what ended them, as it stands in the
//! record.

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

/// How the ends of a round began that were told one instant, with those of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// When the client's last thread did; `None`: it never came.
    pub client: Option<Begin>,
    /// The same of the server's.
    pub server: Option<Begin>,
    /// From the first begin to the last, of all ends of all rounds at that time.
    pub spread_ns: f64,
}

impl Start {
    /// Of the ends that began.
    pub fn begins(&self) -> impl Iterator<Item = &Begin> {
        [&self.client, &self.server].into_iter().flatten()
    }
}

/// When an end really began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// After the agreed instant.
    pub late_ns: f64,
    /// What that may be wrong by, because of the end's clock.
    pub bound_ns: f64,
}
