//! What oneway asks: bursts and pauses in a closed loop or through a window, or a schedule.

use crate::prelude::*;
use wiregauge_plan::request::{MOST_COUNT, MOST_WINDOW};
use wiregauge_plan::{MOST_BURST, check_limits};
use wiregauge_transport::Operation;

/// The pattern.
pub struct Oneway;

/// The specification of a case, and what was asked for: it has no lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Pause between two bursts.
    #[serde(default)]
    pub pause: Span,
    /// Messages of a burst: posted together in a closed loop, one after the other through a window.
    /// `None`: one message in a closed loop, the whole round through a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Most messages posted and not completed; `None`: a closed loop, or a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec { pause: Span(0), burst: Some(1), outstanding: None }
    }
}

/// Most messages that are posted and not completed where a schedule sets the times.
pub(crate) const WINDOW: u32 = 64;
/// The longest burst through a window: a round has no more messages.
const LONGEST_BURST: u32 = MOST_COUNT as u32;

/// Messages of a burst.
pub(super) const BURST: OptionDef = OptionDef::count(
    "burst",
    "Messages posted together; with --outstanding: messages sent before the next pause",
)
.limits(1, LONGEST_BURST as u64)
.default_note("1 (at most 1024); with --outstanding: all");

/// Messages on the way.
pub(super) const OUTSTANDING: OptionDef = OptionDef::count(
    "outstanding",
    "Send without waiting for replies: at most this many messages posted and not completed",
)
.limits(1, MOST_WINDOW as u64)
.default_note("closed loop")
.common();

/// A request with the defaults.
pub fn request(spec: Spec) -> Request {
    Request::new(&Oneway, spec, Bytes(64))
}

impl Spec {
    /// Messages of a burst.
    pub(super) fn burst(self) -> u32 {
        self.burst.unwrap_or(if self.outstanding.is_some() { LONGEST_BURST } else { 1 }).max(1)
    }

    /// Whether a burst fits the loop that sends it.
    fn check_burst(&self) -> Result<(), UsageError> {
        let burst = self.burst() as usize;
        ensure!(
            self.outstanding.is_some() || burst <= MOST_BURST,
            "--burst {burst} needs --outstanding N: without it the messages of a burst are posted \
             together, 1 to {MOST_BURST} of them"
        );
        Ok(())
    }
}

impl PatternSpec for Oneway {
    fn name(&self) -> &'static str {
        "oneway"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read_checked(json, |spec: &Spec| {
            check_limits(spec, &[BURST, OUTSTANDING])?;
            spec.check_burst()
        })
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Forward)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let spec: Spec = *case.spec();
        // Through a window, and by a schedule, each message is flushed by itself.
        let (traffic, queue_depth, together) = match spec.outstanding {
            _ if case.schedule.is_open() => (Traffic::Forward, WINDOW, 1),
            Some(most) => (Traffic::Forward, most, 1),
            None => (Traffic::Echo { every: spec.burst() }, spec.burst(), spec.burst()),
        };
        let bursts = CaseProfile::of_bursts(case, together, spec.pause);
        let followed = Some(Followed::OneWay);
        let ends = CaseProfile { traffic, queue_depth, followed, ..bursts };
        CaseProfile { stamps_at_server: true, is_one_way: true, ..ends }
    }

    /// The one that stamps messages.
    fn helper_threads(&self, case: &Case, role: Role) -> u32 {
        u32::from(role == Role::Client && case.settings.stamps_send())
    }
}

impl PatternRequest for Spec {
    fn check(&self, request: &Request) -> Result<(), UsageError> {
        let has_window = self.outstanding.is_some();
        let is_open = request.schedule.is_open();
        let fits = !is_open || !has_window;
        ensure!(
            fits,
            "--rate and --trace do not work with --outstanding: a schedule sets the send times, or \
             the window does"
        );
        self.check_burst()?;
        let in_bursts = self.burst() > 1 || has_window;
        let fits = !request.settings.stamps_send() || !(is_open || in_bursts || request.check);
        ensure!(
            fits,
            "--stamp-send sends one message at a time and does not work with --rate, \
             --outstanding, --burst and --check"
        );
        let fits = !is_open || (!in_bursts && self.pause.0 == 0);
        ensure!(
            fits,
            "--rate does not work with --burst and --pause: the rate sets the send times"
        );
        let fits = !has_window || self.pause.0 == 0 || self.burst.is_some();
        ensure!(
            fits,
            "--pause with --outstanding is between bursts: use --burst as well, such as --burst 1"
        );
        if is_open { refuse_threads(request) } else { Ok(()) }
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        refuse_one_sided(request)?;
        let has_window = self.outstanding.is_some();
        // A write is seen in memory, which the next but so many overwrites.
        let is_overwritten =
            request.settings.operation() == Operation::Write && over.loses(&request.settings);
        ensure!(
            !has_window || !is_overwritten,
            "--outstanding does not support --operation write of a service that loses messages, \
             which waits for no free buffer of the receiver: use send, send_imm or write_imm"
        );
        let is_carried = request.schedule.is_open()
            || has_window
            || over.descriptor().carries(Traffic::Echo { every: 1 });
        ensure!(is_carried, "oneway over {over} needs --rate or --outstanding: it has no way back");
        Ok(())
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, *self)]
    }
}

/// Refuses a schedule of several senders.
pub(crate) fn refuse_threads(request: &Request) -> Result<(), UsageError> {
    let has_one = request.threads.iter().all(|threads| *threads <= 1);
    ensure!(has_one, "--rate is the schedule of one sender: use --threads 1");
    Ok(())
}

/// Refuses operations in which no message arrives.
pub(crate) fn refuse_one_sided(request: &Request) -> Result<(), UsageError> {
    let operation = request.settings.operation();
    refuse_found(Some(operation).filter(|one| one.is_one_sided(false)), |operation| {
        let (pattern, name) = (request.pattern.name(), operation.name());
        format!(
            "{pattern} does not support --operation {name}, which the other end does not see: use \
             latency"
        )
    })
}
