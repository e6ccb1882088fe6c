//! What can be asked of a pattern: its own options as data, and the request that they make. Also
//! the options that several patterns have.

use wiregauge_base::options::{Given, OptionDef, OptionTable, UsageError};
use wiregauge_plan::request::{MOST_WINDOW, refuse_found, within};
use wiregauge_plan::topology::MAX_ENDPOINTS;
use wiregauge_plan::{MOST_BURST, Request, Wait, sweep};
use wiregauge_transport::TransportKind;

/// Other descriptors of a process than those of its connections: files, and those that are open for
/// a moment.
pub const OTHER_DESCRIPTORS: u64 = 32;

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

/// Connections of each pair of threads.
pub const CONNECTIONS: OptionDef = OptionDef::text(
    "connections",
    |text| sweep::counts(text).map(drop),
    "Connections to the server, used in turn: 64, a list, or a sweep 1..16384*2",
)
.metavar("COUNTS")
.default("1");

/// Messages of a burst.
pub const BURST: OptionDef =
    OptionDef::count("burst", "Messages posted together").limits(1, MOST_BURST as u64).default("1");

/// Time between bursts.
pub const PAUSE: OptionDef =
    OptionDef::time("pause", "Pause between messages or bursts, such as 10us").default("0");

/// Outstanding messages.
pub const WINDOW: OptionDef = OptionDef::count("window", "Maximum number of outstanding messages")
    .limits(1, MOST_WINDOW as u64);

/// Returns the numbers of `--connections`, each a case.
///
/// # Errors
/// One is out of range.
pub fn connections(given: &Given) -> Result<Vec<u32>, UsageError> {
    let counts = given.read("connections", sweep::counts).unwrap_or_else(|| vec![1]);
    within("--connections", counts.iter().copied(), 1, MAX_ENDPOINTS.into())?;
    Ok(counts)
}

/// Refuses more connections than a process may have file descriptors for.
pub fn check_descriptors(
    connections: &[u32],
    of_each: u32,
    over: TransportKind,
) -> Result<(), UsageError> {
    let most = wiregauge_host::most_descriptors();
    let connections = connections.iter().copied().max().unwrap_or(1);
    let descriptors = u64::from(over.descriptor().descriptors) * u64::from(of_each);
    let needed = u64::from(connections) * descriptors + OTHER_DESCRIPTORS;
    ensure!(
        needed <= most,
        "--connections {connections} needs {needed} file descriptors, and the limit here is \
         {most}: use fewer, or raise it (ulimit -Hn {needed}, as root)"
    );
    Ok(())
}

/// Refuses to sleep over several connections that the kernel cannot watch together.
pub fn check_watched(
    request: &Request,
    has_several: bool,
    over: TransportKind,
) -> Result<(), UsageError> {
    let sleeps = request.waits.iter().find(|wait| **wait != Wait::Busy);
    refuse_found(sleeps.filter(|_| has_several && !over.descriptor().watchable), |wait| {
        format!(
            "{over} does not support --wait {} over several connections, which the kernel cannot \
             watch together: use --wait busy",
            wait.name()
        )
    })
}

/// A request with the sizes of `--size`.
pub fn with_sizes(given: &Given, request: Request) -> Request {
    match given.read("size", sweep::parse) {
        Some(sizes) => Request { sizes, ..request },
        None => request,
    }
}
