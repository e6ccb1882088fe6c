//! How rounds began that were to begin at one instant, what ended them, and which gaps stand out of
//! them, as it stands in the record.

use serde::{Deserialize, Serialize};
use wiregauge_plan::Ended;

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
    /// Which of the end's threads, or which node, began last.
    #[serde(default)]
    pub number: u32,
    /// Its host, a number of the plan's hosts; `None`: this one.
    #[serde(default)]
    pub host: Option<u32>,
}

/// A message, or a time between two stamps of a rate, that took far longer than the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Number of the round.
    pub round: u32,
    /// The thread whose message it was.
    pub thread: u32,
    /// When it began, after the begin of the round.
    pub at_ns: f64,
    /// How long it was.
    pub length_ns: f64,
    /// For how long the client's thread waited for a CPU in the whole round; `None`: not known.
    pub client_waited_ns: Option<f64>,
    /// The same of the server's.
    pub server_waited_ns: Option<f64>,
    /// What these two say of it.
    pub cause: StallCause,
}

wiregauge_base::options::named_enum! {
    /// Which end waited for a CPU about as long as a gap was, in its round.
    pub enum StallCause {
        /// The client, and the server did not.
        ClientWaited = "client_waited",
        /// The server, and the client did not.
        ServerWaited = "server_waited",
        /// Both.
        BothWaited = "both_waited",
        /// Neither: what stood still was the host below, or the path.
        NeitherWaited = "neither_waited",
        /// The counters do not decide.
        Unknown = "unknown",
    }
}
