//! What a case of `load` has beside the others: who asks, what is read, and through how many
//! buffers.

use super::request::{Refusal, refuse, within};
use super::{Case, Pattern, Request, Schedule, Settings, TimerKind, Wait};
use crate::plan::study::file::QUANTILES;
use crate::transport::{Role, TransportKind};
use crate::units::{Bytes, MessageRate, Span};
use serde::{Deserialize, Serialize};

/// Bytes in front of an object: the number of the request and the key of the object.
pub const HEAD: u64 = 16;
/// Bytes of an object where nothing else is asked for.
pub const OBJECT_SIZE: Bytes = Bytes(100);
/// Objects of the table where nothing else is asked for.
pub const OBJECTS: u64 = 100_000;
/// Most bytes of a table.
pub const MOST_TABLE: u64 = 1 << 30;
/// Most buffers of a pool: an endpoint has so many slots.
pub const MOST_BUFFERS: u32 = crate::transport::MOST_EVENTS as u32;
/// Most requests that may be on the way: what the client keeps of them takes 2 MiB.
pub const MOST_OUTSTANDING: u32 = 1 << 16;

/// The server's pools of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Replies that are posted and not completed, at most.
    pub transmit: u32,
    /// Requests that have arrived and are not answered, at most.
    pub receive: u32,
}

/// What a case of `load` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Clients that each send their next request when the last was answered (a closed loop); 0: a
    /// schedule says when.
    pub clients: u32,
    /// Objects of the server's table.
    pub objects: u64,
    /// Bytes of each.
    pub object_size: Bytes,
    /// The server's pools; `None`: as many as the transport has slots, and they are not measured.
    pub buffers: Option<Buffers>,
    /// Whether it is the probe beside the load of another case.
    #[serde(default)]
    pub probe: bool,
}

impl Load {
    /// Bytes of a request and of its answer: a connection's messages have one size.
    pub fn message(self) -> Bytes {
        Bytes(self.object_size.0.saturating_add(HEAD))
    }
}

impl Default for Load {
    fn default() -> Load {
        Load { clients: 0, objects: OBJECTS, object_size: OBJECT_SIZE, buffers: None, probe: false }
    }
}

/// A bound for the responses, e.g. `p99<50us`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// The quantile, one of those that a record has.
    pub quantile: f64,
    /// What it must stay below.
    pub below: Span,
}

impl std::str::FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Slo, String> {
        let parsed = text.split_once('<').and_then(|(name, span)| {
            let percent: f64 = name.trim().strip_prefix('p')?.parse().ok()?;
            let known = QUANTILES.into_iter().find(|p| (p * 100.0 - percent).abs() < 1e-9)?;
            let below: Span = span.trim().parse().ok()?;
            (below.0 > 0).then_some(Slo { quantile: known, below })
        });
        parsed.ok_or_else(|| {
            format!(
                "'{text}' is not allowed; write a quantile of the response (p50, p90, p99, p99.9 \
                 or p99.99) and a time as 'p99<50us'"
            )
        })
    }
}

impl std::fmt::Display for Slo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = (self.quantile * 1e8).round() / 1e6;
        write!(f, "p{percent} < {}", self.below)
    }
}

/// A search for the load at which the responses bend: points are added to the plan while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Whether points are added; else those of the plan are all.
    pub adds: bool,
    /// The intervals of the points that are added.
    pub arrivals: Schedule,
    /// The bound that the highest rate is wanted for.
    pub slo: Option<Slo>,
    /// Small requests per second beside each point, those that are added too; `None`: none.
    #[serde(default)]
    pub probe: Option<MessageRate>,
}

impl Default for Search {
    fn default() -> Search {
        Search { adds: false, arrivals: Schedule::ClosedLoop, slo: None, probe: None }
    }
}

/// Clients of the closed loop with which a search begins: as many as there are buffers, so that
/// the server never waits for a request.
pub const SATURATING: u32 = MOST_BUFFERS;

impl Request {
    /// The request once for each rate and each number of clients.
    pub(super) fn paces(&self, transport: TransportKind) -> Vec<Request> {
        if let Some(wanted) = &self.rpc {
            return self.rpc_paces(wanted, transport);
        }
        if self.search.adds {
            // It begins with what the server can do.
            let load = Load { clients: SATURATING, ..self.load };
            return vec![Request { schedule: Schedule::ClosedLoop, load, ..self.clone() }];
        }
        let at = |rate: &MessageRate| Request {
            schedule: self.schedule.at(*rate),
            load: Load { clients: 0, ..self.load },
            ..self.clone()
        };
        let of = |clients: &u32| Request {
            schedule: Schedule::ClosedLoop,
            load: Load { clients: *clients, ..self.load },
            ..self.clone()
        };
        let paces: Vec<Request> =
            self.clients.iter().map(of).chain(self.rates.iter().map(at)).collect();
        if paces.is_empty() { vec![self.clone()] } else { paces }
    }

    /// Whether what waits for the times of a schedule can.
    pub(super) fn check_timer(&self) -> Result<(), Refusal> {
        let Some(timer) = self.timer else { return Ok(()) };
        if !self.schedule.is_open() {
            return refuse("--timer needs a schedule to wait for; write --rate or --trace as well");
        }
        let simulated = self.transports.iter().find(|one| one.descriptor().one_process);
        match simulated.filter(|_| timer != TimerKind::Busy) {
            Some(transport) => refuse(format!(
                "--timer {} is not possible over {transport}, which simulates the time; allowed \
                 is --timer busy",
                timer.name()
            )),
            None => Ok(()),
        }
    }

    pub(super) fn check_load(&self) -> Result<(), Refusal> {
        self.check_probe()?;
        if self.pattern != Pattern::Load {
            return Ok(());
        }
        let load = &self.load;
        within("--objects", Some(load.objects), 1, u64::from(u32::MAX))?;
        within("--object-size", Some(load.object_size.0), 1, MOST_TABLE)?;
        let most = u64::from(MOST_OUTSTANDING);
        for clients in &self.clients {
            within("--clients", Some(u64::from(*clients)), 1, most)?;
        }
        within("--window", Some(u64::from(self.window)), 1, most)?;
        if load.objects.saturating_mul(load.object_size.0) > MOST_TABLE {
            return refuse(format!(
                "{} objects of {} are more than {}; write fewer or smaller ones",
                load.objects,
                load.object_size,
                Bytes(MOST_TABLE)
            ));
        }
        let Some(buffers) = load.buffers else { return Ok(()) };
        let most = u64::from(MOST_BUFFERS);
        within("--tx-buffers", Some(u64::from(buffers.transmit)), 1, most)?;
        within("--rx-buffers", Some(u64::from(buffers.receive)), 1, most)?;
        for transport in &self.transports {
            let least = transport.descriptor().least_receives;
            if buffers.receive < least {
                return refuse(format!(
                    "--rx-buffers {} is not possible over {transport}, whose queues have {least} \
                     receives at least",
                    buffers.receive
                ));
            }
        }
        match self.waits.iter().find(|wait| **wait != Wait::Busy) {
            None => Ok(()),
            Some(wait) => refuse(format!(
                "--tx-buffers counts and times polls, which --wait {} does not make; allowed is \
                 --wait busy",
                wait.name()
            )),
        }
    }

    /// The transport's settings. Over a transport with real queues the pools of `load` are those of
    /// the server: each reply has a completion of its own, and its buffer is in use until then,
    /// unless something else was asked for.
    pub(super) fn settings(&self, transport: TransportKind) -> Settings {
        let pools = [("signal-every", "1"), ("inline", "off")];
        let pools = pools.iter().filter(|_| self.load.buffers.is_some());
        with_defaults(&self.settings, transport, pools.copied())
    }
}

impl Case {
    /// Settings of an end: the pools of `load` are the server's queues, and the client's are as
    /// deep as without them.
    pub fn settings_of(&self, role: Role) -> Settings {
        let pools = self.load.buffers.filter(|_| role == Role::Server);
        let depths = pools.map_or_else(Vec::new, |pools| {
            let of = |depth: u32| depth.to_string();
            vec![("send-depth", of(pools.transmit)), ("receive-depth", of(pools.receive))]
        });
        let depths = depths.iter().map(|(name, depth)| (*name, depth.as_str()));
        with_defaults(&self.settings, self.transport, depths)
    }
}

/// Settings with more of them, where the transport has those and they were not given.
fn with_defaults<'a>(
    settings: &Settings,
    transport: TransportKind,
    defaults: impl Iterator<Item = (&'a str, &'a str)>,
) -> Settings {
    let mut settings = settings.clone();
    for (name, text) in defaults.filter(|(name, _)| transport.has_setting(name)) {
        let set = settings.set_default(name, text);
        debug_assert!(set.is_ok(), "{set:?}");
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_quantile_and_a_time() {
        let slo: Slo = "p99<50us".parse().unwrap();
        assert_eq!(slo, Slo { quantile: 0.99, below: Span(50_000) });
        assert_eq!(slo.to_string(), "p99 < 50 us");
        let slo: Slo = "p99.9 < 1ms".parse().unwrap();
        assert_eq!((slo.quantile, slo.to_string().as_str()), (0.999, "p99.9 < 1 ms"));
        for bad in ["p99", "p98<1us", "p99<0us", "p99<50", "99<1us", "p99>1us", ""] {
            let sentence = bad.parse::<Slo>().unwrap_err();
            assert!(sentence.contains("'p99<50us'"), "{sentence}");
        }
    }

    #[test]
    fn over_verbs_the_pools_are_the_queues_of_the_server_alone() {
        let pools = |receive, signal| {
            let mut request = Request::new(Pattern::Load);
            request.transports = vec![TransportKind::Verbs];
            request.load.buffers = Some(Buffers { transmit: 8, receive });
            if let Some(every) = signal {
                request.settings.set("signal-every", every).unwrap();
            }
            request.plan()
        };
        let case = pools(24, None).unwrap().cases.remove(0);
        let [client, server] = [Role::Client, Role::Server].map(|role| case.settings_of(role));
        let depths = |end: &Settings| (end.count("send-depth"), end.count("receive-depth"));
        assert_eq!(depths(&server), (Some(8), Some(24)));
        assert_eq!(depths(&client), (None, None));
        // Each reply completes by itself, and its buffer is in use until then.
        for end in [client, server] {
            assert_eq!((end.text("signal-every"), end.text("inline")), (Some("1"), Some("off")));
        }
        let typed = pools(24, Some("4")).unwrap().cases.remove(0);
        assert_eq!(typed.settings.text("signal-every"), Some("4"));
        assert!(pools(15, None).unwrap_err().0.contains("16 receives at least"));
    }
}
