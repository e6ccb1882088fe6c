//! The options of bandwidth.

use super::{Asked, Bandwidth, Direction, request};
use crate::options::{Given, OptionDef, OptionTable, UsageError};
use crate::pattern::options::{BURST, MEASUREMENT, PatternOptions, SIZE, WINDOW, with_sizes};
use crate::plan::Request;

const OPTIONS: OptionTable = &[
    SIZE.default("64KiB"),
    BURST,
    WINDOW.default("64"),
    OptionDef::choice::<Direction>(
        "direction",
        "Traffic from client to server (uni) or both ways at once (bi)",
    )
    .metavar("WAY")
    .default("uni")
    .heading(MEASUREMENT),
];

impl PatternOptions for Bandwidth {
    fn about(&self) -> &'static str {
        "Measure bandwidth and message rate, one way or both ways"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge bandwidth --transport tcp,shm --size 64..1MiB*4
  wiregauge bandwidth --transport unix --direction bi --window 16 --time 500ms"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let usual = Asked::default();
        let asked = Asked {
            burst: given.count32("burst").unwrap_or(usual.burst),
            window: given.count32("window").unwrap_or(usual.window),
            direction: given.choice("direction").unwrap_or(usual.direction),
        };
        Ok(with_sizes(given, request(asked)))
    }
}
