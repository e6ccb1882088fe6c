//! The options and the specification of latency: how many messages are on the way together, and how
//! long it pauses.

use crate::prelude::*;

/// The pattern.
pub struct Latency;

/// The specification of a case, and what was asked for: it has no lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Pause between two bursts (between two messages where the burst is 1).
    pub pause: Span,
    /// Messages posted together.
    pub burst: u32,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec { pause: Span(0), burst: 1 }
    }
}

/// A request with the defaults.
pub fn request(spec: Spec) -> Request {
    // A round trip is the same whoever is the client.
    Request { is_directed: false, ..Request::new(&Latency, OneSpec(spec), Bytes(64)) }
}

impl PatternSpec for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read::<Spec>(json, OPTIONS)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let Spec { pause, burst } = *case.spec();
        let profile = CaseProfile::of_bursts(case, burst, pause);
        let is_alone = burst == 1 && !profile.is_one_sided;
        CaseProfile { followed: is_alone.then_some(Followed::Alone), ..profile }
    }
}

const OPTIONS: OptionTable = &[SIZE, BURST, PAUSE];

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
        Ok(with_sizes(given, request(given.fields()?)))
    }
}
