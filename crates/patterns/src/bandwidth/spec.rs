//! The options and the specification of bandwidth: how many messages are on the way, and whether
//! data goes both ways.

use crate::prelude::*;
use wiregauge_base::options::named_enum;

/// The pattern.
pub struct Bandwidth;

/// Time of a round where neither a time nor a count is given.
const TIME: Span = Span(200_000_000);
/// One sample stands for about this many bytes, so that a clock reading (about 20 ns) stays below a
/// hundredth of the time that they take at 100 GB/s ...
const STRIDE_BYTES: u64 = 16 << 10;
/// ... and for at most this many messages.
const MOST_STRIDE: u64 = 256;

named_enum! {
    /// Whether data goes one way or both ways at once.
    #[derive(Default)]
    pub enum Direction {
        /// From client to server.
        #[default]
        Uni = "uni",
        /// Both ways at once.
        Bi = "bi",
    }
}

/// The specification of a case, and what was asked for: it has no lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Messages posted together.
    pub burst: u32,
    /// Most messages posted and not completed.
    pub window: u32,
    /// One way or both.
    pub direction: Direction,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec { burst: 1, window: 64, direction: Direction::Uni }
    }
}

/// A request with the defaults.
pub fn request(spec: Spec) -> Request {
    Request {
        usual_bound: Bound { count: None, time: Some(TIME) },
        is_directed: spec.direction == Direction::Uni,
        measures_bisection: true,
        ..Request::new(&Bandwidth, spec, Bytes(64 << 10))
    }
}

impl PatternSpec for Bandwidth {
    fn name(&self) -> &'static str {
        "bandwidth"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read::<Spec>(json, OPTIONS)
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Forward)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let Spec { burst, window, direction } = *case.spec();
        let (traffic, ending) = match direction {
            Direction::Uni => (Traffic::Forward, Ending::SenderTellsReceiver),
            Direction::Bi => (Traffic::Both, Ending::EachTellsOther),
        };
        CaseProfile {
            traffic,
            ending,
            is_one_sided: case.settings.operation().is_one_sided(true),
            stamps_at_server: true,
            burst,
            queue_depth: window.max(burst),
            stride: (STRIDE_BYTES / case.size.0.max(1)).clamp(1, MOST_STRIDE),
            ..CaseProfile::of(case)
        }
    }

    fn label(&self, case: &Case) -> String {
        let is_both_ways = case.spec::<Spec>().direction == Direction::Bi;
        case.label_as(self.name(), if is_both_ways { " both ways" } else { "" })
    }
}

impl PatternRequest for Spec {
    fn check_over(&self, _: &Request, over: TransportKind) -> Result<(), UsageError> {
        let fits = self.direction == Direction::Uni || over.descriptor().carries(Traffic::Both);
        ensure!(fits, "{over} does not support --direction bi: use --direction uni");
        Ok(())
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, *self)]
    }
}

const OPTIONS: OptionTable = &[
    SIZE.default("64KiB"),
    BURST,
    WINDOW.default("64").common(),
    OptionDef::choice::<Direction>(
        "direction",
        "Traffic from client to server (uni) or both ways at once (bi)",
    )
    .metavar("WAY")
    .default("uni")
    .common(),
];

impl PatternOptions for Bandwidth {
    fn about(&self) -> &'static str {
        "Measure bandwidth and message rate, one way or both ways"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge bandwidth --transport tcp,shm --size '64..1MiB*4'
  wiregauge bandwidth --transport unix --direction bi --window 16 --time 500ms"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        Ok(with_sizes(given, request(given.fields()?)))
    }
}
