//! What can be asked of a pattern: its own options as data, and the request that they make. Also
//! the options that several patterns have.

use wiregauge_base::options::{Given, OptionDef, OptionTable, UsageError};
use wiregauge_plan::request::MOST_WINDOW;
use wiregauge_plan::{MOST_BURST, Request, sweep};

/// What the command line and studies need of a pattern.
pub trait PatternOptions: Sync {
    /// What it measures, in a line of help.
    fn about(&self) -> &'static str;

    /// Examples of its command, for help.
    fn examples(&self) -> &'static str;

    /// Its own options. One that a transport has too takes its place.
    fn options(&self) -> OptionTable;

    /// What was asked of it. The options that all patterns have are applied to the request
    /// afterwards.
    fn request(&self, given: &Given) -> Result<Request, UsageError>;
}

/// The heading of options that say what is measured.
pub const MEASUREMENT: &str = "Measurement";

/// Sizes of messages.
pub const SIZE: OptionDef = OptionDef::text(
    "size",
    |text| sweep::parse(text).map(drop),
    "Message payload size: 64, 64KiB, a list, or a sweep: 8..64KiB*2, 8..64+8, 1kB..100kB/8 (8 \
     steps, logarithmic)",
)
.metavar("SIZES")
.default("64B")
.common();

/// Messages of a burst.
pub const BURST: OptionDef =
    OptionDef::count("burst", "Messages posted together").limits(1, MOST_BURST as u64).default("1");

/// Time between bursts.
pub const PAUSE: OptionDef =
    OptionDef::time("pause", "Pause between messages or bursts, such as 10us").default("0");

/// Outstanding messages.
pub const WINDOW: OptionDef = OptionDef::count("window", "Maximum number of outstanding messages")
    .limits(1, MOST_WINDOW as u64);

/// A request with the sizes of `--size`.
pub fn with_sizes(given: &Given, request: Request) -> Request {
    match given.read("size", sweep::parse) {
        Some(sizes) => Request { sizes, ..request },
        None => request,
    }
}
