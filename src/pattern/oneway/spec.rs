//! What oneway asks: bursts and pauses in a closed loop, or a schedule.

use crate::pattern::latency;
use crate::plan::request::{COUNT, refuse};
use crate::plan::{
    self, Bound, Case, Combination, PatternRef, PatternRequest, PatternSpec, Request, UsageError,
};
use crate::transport::{Descriptor, Traffic, TransportKind};
use crate::units::{Bytes, Span};
use serde_json::Value;

/// The pattern.
pub struct Oneway;

/// The specification of a case: as of `latency`, whose closed loop it is.
pub use latency::Spec;

/// Most messages that are posted and not completed where a schedule sets the times.
pub(in crate::pattern) const WINDOW: u32 = 64;

/// What was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked(pub Spec);

/// A request with the defaults.
pub fn request(asked: Asked) -> Request {
    Request::new(PatternRef(&Oneway), asked, Bytes(64))
}

impl PatternSpec for Oneway {
    fn name(&self) -> &'static str {
        "oneway"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        latency::Latency.read_spec(json)
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Forward)
    }

    fn traffic(&self, case: &Case) -> Traffic {
        match case.schedule.is_open() {
            true => Traffic::Forward,
            false => Traffic::Echo { every: case.spec::<Spec>().burst.max(1) },
        }
    }

    fn queue_depth(&self, case: &Case) -> u32 {
        let burst = case.spec::<Spec>().burst;
        if case.schedule.is_open() { WINDOW.max(burst) } else { burst }
    }

    fn longest_pause(&self, case: &Case) -> Span {
        case.spec::<Spec>().pause
    }

    fn paced_rate(&self, case: &Case) -> Option<f64> {
        latency::Latency.paced_rate(case)
    }
}

impl PatternRequest for Asked {
    fn usual_bound(&self) -> Bound {
        Bound { count: Some(COUNT), time: None }
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        let Spec { pause, burst } = self.0;
        latency::check_burst(burst)?;
        let is_open = request.schedule.is_open();
        if request.settings.stamps_send() && (is_open || burst > 1 || request.check) {
            return refuse("--stamp-send does not work with --rate, --burst and --check");
        }
        if is_open && (burst > 1 || pause.0 > 0) {
            return refuse(
                "--rate does not work with --burst and --pause: the rate sets the send times",
            );
        }
        if is_open && request.threads.iter().any(|threads| *threads > 1) {
            return refuse("--rate is the schedule of one sender: use --threads 1");
        }
        Ok(())
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        refuse_one_sided(request)?;
        let is_carried =
            request.schedule.is_open() || over.descriptor().carries(Traffic::Echo { every: 1 });
        match is_carried {
            true => Ok(()),
            false => refuse(format!("oneway over {over} needs --rate: it has no way back")),
        }
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, self.0)]
    }
}

/// Refuses operations in which no message arrives.
pub(in crate::pattern) fn refuse_one_sided(request: &Request) -> Result<(), UsageError> {
    let operation = request.settings.operation();
    match operation.is_one_sided(false) {
        false => Ok(()),
        true => refuse(format!(
            "{} does not support --operation {}, which the other end does not see: use latency",
            request.pattern.name(),
            operation.name()
        )),
    }
}
