//! What the record says of one host, where clients of one server are on several.

use serde::{Deserialize, Serialize};
use wiregauge_stats::{Metric, Rate, Summary};

/// The requests of the clients on one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientHost {
    /// Its number among the plan's hosts; `None`: this one.
    pub host: Option<u32>,
    /// Its name.
    pub name: String,
    /// What its times are: the first metric of the run.
    pub metric: Metric,
    /// Its times.
    pub summary: Summary,
    /// Its mean slowdown by the definition of the run; `None`: not of requests of many lengths.
    pub slowdown: Option<Rate>,
    /// The figures by which it stands out of all hosts: `p50`, `p99`, `slowdown`.
    pub stands_out: Vec<String>,
}
