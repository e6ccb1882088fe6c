//! What oneway asks: bursts and pauses in a closed loop, or a schedule.

use crate::pattern::latency::{self, OPTIONS};
use crate::pattern::prelude::*;

/// The pattern.
pub struct Oneway;

/// The specification of a case, and what was asked for: as of `latency`, whose closed loop it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spec(pub latency::Spec);

/// Most messages that are posted and not completed where a schedule sets the times.
pub(in crate::pattern) const WINDOW: u32 = 64;

/// A request with the defaults.
pub fn request(spec: Spec) -> Request {
    Request::new(&Oneway, spec, Bytes(64))
}

impl PatternSpec for Oneway {
    fn name(&self) -> &'static str {
        "oneway"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read::<Spec>(json, OPTIONS)
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Forward)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let latency::Spec { pause, burst } = case.spec::<Spec>().0;
        let (traffic, queue_depth) = match case.schedule.is_open() {
            true => (Traffic::Forward, WINDOW.max(burst)),
            false => (Traffic::Echo { every: burst.max(1) }, burst),
        };
        let bursts = CaseProfile::of_bursts(case, burst, pause);
        CaseProfile { traffic, queue_depth, stamps_at_server: true, is_one_way: true, ..bursts }
    }
}

impl PatternRequest for Spec {
    fn check(&self, request: &Request) -> Result<(), UsageError> {
        let latency::Spec { pause, burst } = self.0;
        let is_open = request.schedule.is_open();
        let fits = !request.settings.stamps_send() || !(is_open || burst > 1 || request.check);
        ensure!(fits, "--stamp-send does not work with --rate, --burst and --check");
        let fits = !is_open || (burst <= 1 && pause.0 == 0);
        ensure!(
            fits,
            "--rate does not work with --burst and --pause: the rate sets the send times"
        );
        if is_open { refuse_threads(request) } else { Ok(()) }
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        refuse_one_sided(request)?;
        let is_carried =
            request.schedule.is_open() || over.descriptor().carries(Traffic::Echo { every: 1 });
        ensure!(is_carried, "oneway over {over} needs --rate: it has no way back");
        Ok(())
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, *self)]
    }
}

/// Refuses a schedule of several senders.
pub(in crate::pattern) fn refuse_threads(request: &Request) -> Result<(), UsageError> {
    let has_one = request.threads.iter().all(|threads| *threads <= 1);
    ensure!(has_one, "--rate is the schedule of one sender: use --threads 1");
    Ok(())
}

/// Refuses operations in which no message arrives.
pub(in crate::pattern) fn refuse_one_sided(request: &Request) -> Result<(), UsageError> {
    let operation = request.settings.operation();
    refuse_found(Some(operation).filter(|one| one.is_one_sided(false)), |operation| {
        let (pattern, name) = (request.pattern.name(), operation.name());
        format!(
            "{pattern} does not support --operation {name}, which the other end does not see: use \
             latency"
        )
    })
}
