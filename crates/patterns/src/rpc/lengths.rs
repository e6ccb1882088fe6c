//! What the record says of requests of many lengths.

use super::spec::Slowdown;
use serde::{Deserialize, Serialize};
use wiregauge_stats::compare::difference;
use wiregauge_stats::{Interval, Metric, Rate, Summary, Value, as_value};

/// Requests by their lengths.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lengths {
    /// What their times are: `response` of a schedule, `rtt` of a closed loop.
    pub metric: Metric,
    /// Each length, rising.
    pub sizes: Vec<OfSize>,
    /// The shortest tenth of all requests; `None`: those are not short.
    pub short: Option<Short>,
    /// The mean slowdown of all requests that were answered, by each definition that was known.
    pub slowdowns: Vec<MeanSlowdown>,
    /// The run that measured the unloaded times; `None` if no run did.
    pub baseline: Option<u32>,
    /// The link's rate in bytes per second: as it was given, or what longer unloaded requests take
    /// more than short ones.
    pub link: Option<f64>,
}

/// Requests of one length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfSize {
    /// Bytes of each.
    pub size: u32,
    /// Bytes of its reply.
    pub reply: u32,
    /// The fraction of the run's requests that are no longer than these.
    pub share: f64,
    /// Their times.
    pub summary: Summary,
    /// What these are held against.
    pub unloaded: Unloaded,
}

/// What the times of one length are held against, in ns: a slowdown is a time divided by one of
/// these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unloaded {
    /// The median of the unloaded requests of this length ...
    pub p50_ns: Option<f64>,
    /// ... and its interval.
    #[serde(default)]
    pub p50_interval: Option<Interval>,
    /// The shortest of them.
    pub min_ns: Option<f64>,
    /// The unloaded median of the shortest length, and request and reply each once over the link.
    pub serialisation_ns: Option<f64>,
    /// The given round trip, and the request once over the link.
    #[serde(default)]
    pub cperf_ns: Option<f64>,
}

impl OfSize {
    /// A quantile's slowdown by a definition, with its interval: that of both times where the
    /// definition is a median, and of the loaded one alone else. `None`: one of the two is not
    /// known.
    pub fn slowdown(&self, by: Slowdown, p: f64) -> Option<(f64, Option<Interval>)> {
        let unloaded_ns = self.unloaded.by(by)?;
        let found = self.summary.quantile(p)?;
        let own = self.unloaded.p50_interval.filter(|_| by == Slowdown::UnloadedP50);
        let exact = Interval { low: Value(unloaded_ns), high: Value(unloaded_ns) };
        let unloaded = (unloaded_ns, Some(own.unwrap_or(exact)));
        let ratio = difference(unloaded, (found.value?.0, found.interval))?;
        let more = |value: Value| Value(value.0 + 1.0);
        let interval = ratio.relative_interval;
        let interval = interval.map(|i| Interval { low: more(i.low), high: more(i.high) });
        Some((more(ratio.relative?).0, interval))
    }
}

impl Unloaded {
    /// By a definition.
    pub fn by(&self, slowdown: Slowdown) -> Option<f64> {
        match slowdown {
            Slowdown::UnloadedP50 => self.p50_ns,
            Slowdown::UnloadedMin => self.min_ns,
            Slowdown::Serialisation => self.serialisation_ns,
            Slowdown::Cperf => self.cperf_ns,
        }
    }
}

/// The mean slowdown by one definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeanSlowdown {
    /// The definition.
    pub by: Slowdown,
    /// The mean over all answered requests, each round weighing by its requests.
    pub mean: Rate,
}

/// The shortest tenth of all requests, as far as they have less than 1500 B; the figure `short` of
/// their run has their times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Short {
    /// None of them is longer.
    pub longest: u32,
    /// The complement of their distribution: time in ns, and the fraction that took longer.
    pub tail: Vec<(f64, f64)>,
    /// Where that fraction has fallen to nothing: the largest finite time.
    #[serde(with = "as_value")]
    pub longest_ns: f64,
}
