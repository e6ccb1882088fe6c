//! The options of latency.

use super::{Latency, Spec, request};
use crate::options::{Given, OptionTable, UsageError};
use crate::pattern::options::{BURST, PAUSE, PatternOptions, SIZE, with_sizes};
use crate::plan::Request;

const OPTIONS: OptionTable = &[SIZE, BURST, PAUSE];

/// Bursts and pauses.
pub fn spec(given: &Given) -> Spec {
    let usual = Spec::default();
    Spec {
        pause: given.time("pause").unwrap_or(usual.pause),
        burst: given.count32("burst").unwrap_or(usual.burst),
    }
}

impl PatternOptions for Latency {
    fn about(&self) -> &'static str {
        "Measure round-trip latency: ping-pong, one message (or burst) at a time"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge latency --transport tcp,udp,unix,shm --wait busy,block
  wiregauge latency --size 8..64KiB*2 --perturb --until 5%
  wiregauge latency --transport tcp --count 100k --rounds 10 --cpus 2,3 --json > record.json"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        Ok(with_sizes(given, request(spec(given))))
    }
}
