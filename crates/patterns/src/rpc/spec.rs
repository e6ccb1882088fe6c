//! The specification of a case of rpc: how long requests and replies are, how many may be
//! outstanding, and what their times are compared with. Pure.

use super::workload::Workload;
use serde::{Deserialize, Serialize};
use wiregauge_base::options::named_enum;
use wiregauge_base::units::{ByteRate, Bytes, Span};

/// Bytes that each request and each reply has at least: the number of the request and the length
/// of its reply.
pub const SHORTEST: Bytes = Bytes(8);
/// Longer messages are cut to this where nothing else is asked for: what Homa's cp_node does, whose
/// protocol carries no more.
pub const LONGEST: Bytes = Bytes(1_000_000);
/// Most receiver threads of a port.
pub const MOST_RECEIVERS: u64 = 16;
/// Most requests on the way of a port where nothing else is asked for: cperf's client_max.
pub const OUTSTANDING: u32 = 200;
/// How long replies are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// As long as the request.
    #[default]
    Echo,
    /// Of one length.
    Short(Bytes),
}

impl Reply {
    /// The length of the reply to a request.
    #[inline(always)]
    pub fn to(self, request: u32) -> u32 {
        match self {
            Reply::Echo => request,
            Reply::Short(Bytes(length)) => length as u32,
        }
    }
}

impl std::str::FromStr for Reply {
    type Err = String;

    fn from_str(text: &str) -> Result<Reply, String> {
        match text {
            "echo" => Ok(Reply::Echo),
            size => size.parse().map(Reply::Short).map_err(|_| {
                format!("invalid reply '{text}': use echo, or the size of each reply such as 100B")
            }),
        }
    }
}

named_enum! {
    /// What the time of a request is divided by.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Slowdown {
        /// The median of unloaded requests of the same length, measured in the same run (USENIX ATC
        /// 2021).
        #[default]
        UnloadedP50 = "unloaded_p50",
        /// The shortest of these (SIGCOMM 2018, RAMCloud).
        UnloadedMin = "unloaded_min",
        /// The unloaded median of the shortest request and the time that request and reply take on
        /// a link of a known rate, each once.
        Serialisation = "serialisation",
        /// A round trip that is given, the same for all lengths, and the time that the request
        /// takes on the link: that of `cperf.py` of the Homa module since November 2025. The reply
        /// is not counted, so that long echoed requests cannot come below 2.
        Cperf = "cperf",
    }
}

/// The round trip of cperf.py where it does not know the machine.
pub const CPERF_RTT: Span = Span(25_000);
/// The rate of cperf.py's link where nothing else is said: 25 Gb/s, in bytes per second.
pub const CPERF_LINK: f64 = 25e9 / 8.0;

fn cperf_rtt() -> Span {
    CPERF_RTT
}

/// The specification of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The lengths of requests.
    pub workload: Workload,
    /// Those of replies.
    pub reply: Reply,
    /// Requests that each port keeps outstanding (a closed loop); 0: a schedule says when.
    pub clients: u32,
    /// Most requests outstanding of each port.
    pub window: u32,
    /// Threads of each port of the client that take its replies; 0: it takes them itself.
    pub receivers: u32,
    /// Threads of each end that cases have which run at the same time, before its own: it takes
    /// the CPUs after theirs.
    pub beside: u32,
    /// Whether it measures the unloaded times: each length in turn, one request at a time.
    pub unloaded: bool,
    /// What slowdowns are ratios to.
    pub slowdown: Slowdown,
    /// The rate of the link, for those that need it; `None`: found from the unloaded times, or that
    /// of cperf.
    pub link: Option<ByteRate>,
    /// The round trip that cperf's definition begins with.
    #[serde(default = "cperf_rtt")]
    pub baseline_rtt: Span,
    /// Of a closed loop that finds how much the path carries: the shares of it that are offered
    /// afterwards, as cases of their own.
    pub loads: Vec<f64>,
}

impl Spec {
    /// The longest message of either way.
    pub fn longest(&self) -> Bytes {
        let request = self.workload.longest();
        match self.reply {
            Reply::Echo => request,
            Reply::Short(length) => request.max(length),
        }
    }
}
