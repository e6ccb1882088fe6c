//! What latency asks: how many messages are on the way together, and how long it pauses.

use crate::plan::request::{COUNT, within};
use crate::plan::{
    self, Bound, Case, Combination, MOST_BURST, PatternRef, PatternRequest, PatternSpec, Request,
    UsageError,
};
use crate::transport::{Descriptor, Traffic};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// What was asked for.
pub type Asked = Spec;

impl Default for Spec {
    fn default() -> Spec {
        Spec { pause: Span(0), burst: 1 }
    }
}

/// A request with the defaults.
pub fn request(asked: Asked) -> Request {
    Request::new(PatternRef(&Latency), asked, Bytes(64))
}

impl PatternSpec for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        let spec: Spec = serde_json::from_value(json).map_err(|error| error.to_string())?;
        check_burst(spec.burst).map_err(|wrong| wrong.to_string())?;
        Ok(plan::Spec::new(spec))
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Echo { every: 1 })
    }

    fn traffic(&self, _: &Case) -> Traffic {
        Traffic::Echo { every: 1 }
    }

    fn queue_depth(&self, case: &Case) -> u32 {
        // A closed loop never has more than a burst on the way.
        case.spec::<Spec>().burst
    }

    fn longest_pause(&self, case: &Case) -> Span {
        case.spec::<Spec>().pause
    }

    fn paced_rate(&self, case: &Case) -> Option<f64> {
        let Spec { pause, burst } = case.spec::<Spec>();
        (pause.0 > 0).then(|| f64::from(*burst) * 1e9 / pause.0 as f64)
    }
}

impl PatternRequest for Asked {
    fn usual_bound(&self) -> Bound {
        Bound { count: Some(COUNT), time: None }
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        check_burst(self.burst)?;
        request.refuse_stamps()?;
        request.refuse_schedule()
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, *self)]
    }

    fn is_directed(&self) -> bool {
        // A round trip is the same whoever is the client.
        false
    }
}

/// Refuses a burst that the loop has no room for.
pub(in crate::pattern) fn check_burst(burst: u32) -> Result<(), UsageError> {
    within("--burst", Some(u64::from(burst)), 1, MOST_BURST as u64)
}
