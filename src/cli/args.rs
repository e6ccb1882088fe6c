//! The command line's definition. Only this folder knows the argument parser.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  wiregauge                                          what this machine's transports give
  wiregauge latency --transport tcp,shm --size 8..64KiB*2
  wiregauge latency --transport tcp --wait block --until 5%
  wiregauge oneway --transport udp --rate 10k --arrivals poisson
  wiregauge bandwidth --transport unix --size 64KiB --direction bi
  wiregauge compare before/ after/ --fail-if 'half_rtt.p99>+10%'

Exit codes: 0 right, 1 a limit was exceeded, 2 wrong use, 3 incomplete run, 4 nothing could run.";

/// Measures what an interconnect really gives: latency, rate and bandwidth, each with its error.
#[derive(Debug, Parser)]
#[command(
    name = "wiregauge",
    version,
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub survey: Survey,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure what every transport of this machine gives (what runs without a command)
    Survey(Survey),
    /// Round trips: one message there and back before the next
    Latency(Measure),
    /// One way: messages stamped at both ends
    Oneway(Measure),
    /// Bandwidth and message rate: as many messages as the transport takes
    Bandwidth(Measure),
    /// Gaps that a spinning loop sees on each CPU
    Noise(Noise),
    /// Transports, patterns and options, and why what is missing is missing
    List(List),
    /// Tables and HTML again, from the record alone
    Report(Report),
    /// A run's samples and record in another format
    Export(Export),
    /// The difference of each quantile of two runs, with its interval
    Compare(Compare),
    /// Prove the instrument on transports whose true figures are known
    Selftest(Selftest),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
    /// Play one role of one round for a driver (started by wiregauge itself)
    #[command(hide = true)]
    Agent,
}

#[derive(Clone, Debug, Args)]
pub struct Output {
    /// Run directory to be made; it must not exist [default: wiregauge-runs/<UTC time>-<name>]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Print the record as JSON on stdout, and nothing else there
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Survey {
    #[command(flatten)]
    pub output: Output,
    /// CPUs of client and server, as 0,1 [default: two cores of one NUMA node]
    #[arg(long, value_name = "A,B")]
    pub cpus: Option<String>,
    /// Seed of all that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Clock: tsc or monotonic_raw [default: tsc where it is invariant]
    #[arg(long, value_name = "NAME")]
    pub clock: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct Measure {
    /// Transports, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "tcp")]
    pub transport: String,
    /// Sizes: 64, a list 8,64,1KiB or a sweep 8..64KiB*2, 8..64+8, 1kB..1MB/10
    #[arg(long, value_name = "SIZES")]
    pub size: Option<String>,
    /// Add each size's neighbours 3 bytes below and above
    #[arg(long)]
    pub perturb: bool,
    /// Wait modes: busy, block, adaptive, separated by commas
    #[arg(long, value_name = "MODES", default_value = "busy")]
    pub wait: String,
    /// Messages of a round, after the warm-up [default: 10000; bandwidth: by time]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub count: Option<u64>,
    /// Time of a round, after the warm-up [default: by count; bandwidth: 200ms]
    #[arg(long, value_name = "TIME", help_heading = "How much")]
    pub time: Option<String>,
    /// Rounds, each by fresh processes [default: 5; with --until at most 30]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub rounds: Option<u32>,
    /// Stop when the intervals of p50 and p99 (of the rate) are within so much of their value
    #[arg(long, value_name = "WIDTH%", help_heading = "How much")]
    pub until: Option<String>,
    /// Messages of the warm-up, kept but left out of figures [default: 1000, at most count/10]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub warmup: Option<u64>,
    /// Pause between messages (between bursts)
    #[arg(long, value_name = "TIME", default_value = "0", help_heading = "Schedule")]
    pub pause: String,
    /// Messages posted together (one flush)
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Schedule")]
    pub burst: u32,
    /// Send by a schedule of so many messages per second (oneway)
    #[arg(long, value_name = "RATE", help_heading = "Schedule")]
    pub rate: Option<String>,
    /// Arrivals of that schedule
    #[arg(long, value_name = "KIND", default_value = "periodic", help_heading = "Schedule")]
    pub arrivals: Arrivals,
    /// Most messages posted and not completed (bandwidth)
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Schedule")]
    pub window: u32,
    /// One way or both ways at once (bandwidth)
    #[arg(long, value_name = "WAYS", default_value = "uni", help_heading = "Schedule")]
    pub direction: Ways,
    /// CPUs of client and server, as 0,1 [default: two cores of one NUMA node]
    #[arg(long, value_name = "A,B", help_heading = "Method")]
    pub cpus: Option<String>,
    /// Fill payloads and verify them
    #[arg(long, help_heading = "Method")]
    pub check: bool,
    /// Count samples above this
    #[arg(long, value_name = "TIME", default_value = "10us", help_heading = "Method")]
    pub threshold: String,
    /// A message not answered by then is lost (transports that lose messages)
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = "Method")]
    pub loss_after: String,
    /// A round without progress for so long has stalled
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Method")]
    pub timeout: String,
    /// Seed of all that is drawn
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Method")]
    pub seed: u64,
    /// Clock: tsc or monotonic_raw [default: tsc where it is invariant]
    #[arg(long, value_name = "NAME", help_heading = "Method")]
    pub clock: Option<String>,
    #[command(flatten)]
    pub options: TransportOptions,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
pub struct TransportOptions {
    /// TCP_NODELAY: on or off [default: on]
    #[arg(long, value_name = "SWITCH")]
    pub nodelay: Option<Switch>,
    /// SO_BUSY_POLL: the kernel polls the device so long before it sleeps
    #[arg(long, value_name = "TIME")]
    pub busy_poll: Option<String>,
    /// SO_SNDBUF
    #[arg(long, value_name = "SIZE")]
    pub send_buffer: Option<String>,
    /// SO_RCVBUF
    #[arg(long, value_name = "SIZE")]
    pub receive_buffer: Option<String>,
    /// MSG_ZEROCOPY (tcp)
    #[arg(long)]
    pub zerocopy: bool,
    /// TCP congestion control
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// DSCP code point, 0 to 63
    #[arg(long, value_name = "N")]
    pub dscp: Option<u8>,
    /// What the synthetic transport does, as 'normal(1us,300ns) stall(5ms@500) loss(1%)'
    #[arg(long, value_name = "SPEC")]
    pub synthetic: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    Periodic,
    Poisson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ways {
    Uni,
    Bi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[derive(Clone, Debug, Args)]
pub struct Noise {
    /// CPUs to be watched, as 0,1 or 0-3 [default: all that are allowed]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub time: String,
    /// Print JSON on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct List {
    /// Print JSON on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Report {
    /// Run directories
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Do not write report.html again
    #[arg(long)]
    pub no_html: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Export {
    /// Run directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Format: csv, json or parquet
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: String,
    /// File to be written [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Compare {
    /// The first run directory, or DIR@transport=tcp,wait=busy,size=64 for some of its runs
    #[arg(value_name = "A")]
    pub a: String,
    /// The second
    #[arg(value_name = "B")]
    pub b: String,
    /// A limit on the difference, as 'half_rtt.p99>+10%' or 'bandwidth<-5%'; may be given often
    #[arg(long, value_name = "LIMIT")]
    pub fail_if: Vec<String>,
    /// Print JSON on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Selftest {
    /// Print JSON on stdout
    #[arg(long)]
    pub json: bool,
}
