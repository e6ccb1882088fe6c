//! The definition of the command line. The completions, the man page and the help are made of it.
#![allow(rustdoc::invalid_html_tags, reason = "these comments are the help: <HOST> is a place")]

use super::agent_args::{AGENT, AgentArguments, DialArguments, PairArguments};
use super::cpu_args::{CpuArguments, ThreadArguments};
use super::host_args::{ClocksArguments, HostsArguments, PlacementArguments};
use super::load_args::LoadArguments;
use super::rpc_args::RpcArguments;
use super::schedule_args::{PaceArguments, ScheduleArguments, TimerArguments};
use super::stream_args::StreamArguments;
use super::testbed_args::TestbedTask;
use super::{tables, values};
use crate::clock::Source;
use crate::options::{OptionDef, UsageError};
use crate::pattern::bandwidth::Direction;
use crate::plan::Wait;
use crate::report::export::Format;
use crate::transport::definitions::definitions;
use crate::transport::{self, Interfaces, Settings, TransportKind};
use crate::units::{MessageRate, Span, Untrue};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;

/// Columns of the help where the terminal is wider or there is none.
const HELP_WIDTH: usize = 100;

/// The definition as the parser's own type.
pub fn definition() -> clap::Command {
    let definition = Arguments::command().max_term_width(HELP_WIDTH).disable_help_subcommand(true);
    definition.mut_subcommands(with_negative_numbers)
}

/// A negative number is then refused by the option that it was given to.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| match argument.get_action().takes_values() {
        true => argument.allow_negative_numbers(true),
        false => argument,
    });
    command.mut_subcommands(with_negative_numbers)
}

const EXAMPLES: &str = "\
Examples:
  wiregauge                                  every transport of this machine, in a minute
  wiregauge latency --transport tcp,shm --size 8..64KiB*2
  wiregauge oneway --transport udp --rate 10k --arrivals poisson
  wiregauge bandwidth --transport unix --size 64KiB --direction bi
  wiregauge compare before after --fail-if 'half_rtt.p99>+10%'

Exit codes: 0 right, 1 a limit was exceeded, 2 wrong use or refused, 3 incomplete run,
4 nothing could run.";

const ABOUT: &str = "\
Measure what an interconnect really gives a program, each figure with its own error.
Without a command: a survey of every transport that works on this machine, in at most 60 s.";

#[derive(Debug, Parser)]
#[command(
    name = "wiregauge",
    version,
    about = ABOUT,
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "COMMAND",
    after_help = EXAMPLES
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Task>,
    #[command(flatten)]
    pub survey: SurveyArguments,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Measure every transport that works on this machine (the same as no command)
    Survey(SurveyArguments),
    /// Measure round trips: ping-pong, one message (or burst) there and back before the next
    #[command(after_help = "\
Examples:
  wiregauge latency --transport tcp,udp,unix,shm --wait busy,block
  wiregauge latency --size 8..64KiB*2 --perturb --until 5%
  wiregauge latency --transport tcp --count 100k --rounds 10 --cpus 2,3 --json > record.json")]
    Latency(LatencyArguments),
    /// Measure messages one way, stamped at both ends by one clock
    #[command(after_help = "\
Examples:
  wiregauge oneway --transport shm,unix
  wiregauge oneway --transport udp --rate 10k --arrivals poisson --time 1s")]
    Oneway(OnewayArguments),
    /// Measure bytes and messages per second, one way or both
    #[command(after_help = "\
Examples:
  wiregauge bandwidth --transport tcp,shm --size 64..1MiB*4
  wiregauge bandwidth --transport unix --direction bi --window 16 --time 500ms")]
    Bandwidth(BandwidthArguments),
    /// Measure how a server's answers slow down as the load rises, from idle to saturation
    #[command(after_help = "\
Examples:
  wiregauge load --transport tcp --slo 'p99<100us'
  wiregauge load --transport shm,tcp --rate 10k..1M/8 --time 1s
  wiregauge load --transport tcp --clients 1,2,4,8 --tx-buffers 8 --rx-buffers 24")]
    Load(LoadArguments),
    /// Measure requests and replies of many lengths, and how much load slows each length down
    #[command(after_help = "\
Examples:
  wiregauge rpc --workload w3 --gbps 0.5 --transport tcp
  wiregauge rpc --workload w2,w4 --rps 20k --ports 2 --server-ports 2 --reply 100B
  wiregauge rpc --workload w3 --gbps 0.2 --congestion cubic,bbr --both
  wiregauge rpc --workload 100B --clients 1")]
    Rpc(RpcArguments),
    /// Measure a stream of samples as a real-time simulator sends them, one a step
    #[command(after_help = "\
Examples:
  wiregauge stream --transport shm,tcp --rate 100k --time 1s
  wiregauge stream --transport shm --values 8,16,32,64 --rate 25k --timer timerfd
  wiregauge stream --signal sine --frequency 50 --file out.csv --rounds 1")]
    Stream(StreamArguments),
    /// Carry out a study: what it measures is compared with published figures; without a name the
    /// studies that are shipped are listed
    #[command(after_help = "\
Examples:
  wiregauge run
  wiregauge run sockets/overview --quick
  wiregauge run my-study.toml --only 'tcp busy,shm busy' --out result")]
    Run(RunArguments),
    /// List transports, what each can do, and why one is not available
    List {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Print tables and write the HTML page again, from records alone
    #[command(after_help = "Example:\n  wiregauge report wiregauge-runs/*-latency")]
    Report {
        /// Run directories
        #[arg(value_name = "DIR", required = true)]
        directories: Vec<PathBuf>,
        /// Do not write report.html again
        #[arg(long)]
        no_html: bool,
    },
    /// Write the samples of a run in a format that other programs read
    #[command(after_help = "\
Examples:
  wiregauge export wiregauge-runs/20261121T055243Z-latency --format csv > samples.csv
  wiregauge export DIR --format parquet --out samples.parquet --without-warmup")]
    Export(ExportArguments),
    /// Show the difference of two runs, and fail where a limit is exceeded
    #[command(after_help = "\
Examples:
  wiregauge compare before after --fail-if 'half_rtt.p99>+10%' --fail-if 'bandwidth<-5%'
  wiregauge compare runs@transport=tcp runs@transport=shm --fail-if 'half_rtt.max>1ms'")]
    Compare(CompareArguments),
    /// Check the instrument itself against known answers
    Selftest {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Compare this host's clock with another's: offset, drift, and what they may be wrong by
    #[command(after_help = "Example:\n  wiregauge clocks --to node07 --time 100s")]
    Clocks(ClocksArguments),
    /// Check other hosts before anything is measured there: reached, version, clock, transports,
    /// and what weakens figures taken there
    #[command(after_help = "Example:\n  wiregauge hosts --hosts node1,node2,node3")]
    Hosts(HostsArguments),
    /// Stand on a host that has no ssh and play roles for the drivers that were paired with it
    #[command(after_help = AGENT)]
    Agent(AgentArguments),
    /// Pair with an agent, by the secret that `wiregauge agent --pair` prints there
    #[command(after_help = "Example:\n  wiregauge pair node07")]
    Pair(PairArguments),
    /// Show the gaps that a spinning core sees, per CPU
    #[command(after_help = "Example:\n  wiregauge noise --cpus 2,3 --time 10s")]
    Noise(NoiseArguments),
    /// Run a command in hosts that are made for it: a machine with an RDMA device, or a network
    #[command(subcommand)]
    Testbed(TestbedTask),
    /// Print completions for a shell
    #[command(after_help = "\
Example:
  wiregauge completions bash > ~/.local/share/bash-completion/completions/wiregauge")]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the man page
    #[command(after_help = "Example:\n  wiregauge man > ~/.local/share/man/man1/wiregauge.1")]
    Man,
    /// Play the roles that the driver gives (started by wiregauge itself)
    #[command(hide = true)]
    PlayRole,
    /// Carry a control channel to an agent (started by wiregauge itself)
    #[command(hide = true)]
    DialAgent(DialArguments),
}

#[derive(Debug, Args)]
pub struct SurveyArguments {
    #[command(flatten)]
    pub cpus: CpuArguments,
    #[command(flatten)]
    pub draw: DrawArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Debug, Args)]
pub struct LatencyArguments {
    /// Payload of a message: 64, 64KiB, a list, or a sweep as 8..64KiB*2, 8..64+8, 1kB..100kB/8
    /// (8 steps, logarithmic)
    #[arg(long, value_name = "SIZES", default_value = "64B", help_heading = WHAT)]
    #[arg(value_parser = values::sizes)]
    pub size: values::Sizes,
    #[command(flatten)]
    pub common: CommonArguments,
    #[command(flatten)]
    pub pace: PaceArguments,
}

#[derive(Debug, Args)]
pub struct OnewayArguments {
    /// Payload of a message: 64, 64KiB, a list, or a sweep as 8..64KiB*2, 8..64+8, 1kB..100kB/8
    /// (8 steps, logarithmic)
    #[arg(long, value_name = "SIZES", default_value = "64B", help_heading = WHAT)]
    #[arg(value_parser = values::sizes)]
    pub size: values::Sizes,
    #[command(flatten)]
    pub common: CommonArguments,
    #[command(flatten)]
    pub pace: PaceArguments,
    /// Send by an absolute schedule of so many messages per second (open loop), as 500, 10k, 1.5M
    #[arg(long, value_name = "RATE", help_heading = WHAT)]
    pub rate: Option<MessageRate>,
    #[command(flatten)]
    pub schedule: ScheduleArguments,
    #[command(flatten)]
    pub timer: TimerArguments,
    /// Make the other host's clock wrong by a known amount, to see whether that is found
    #[arg(long, value_name = "SPEC", hide = true)]
    pub untrue_clock: Option<Untrue>,
}

#[derive(Debug, Args)]
pub struct BandwidthArguments {
    /// Payload of a message: 64, 64KiB, a list, or a sweep as 8..64KiB*2, 8..64+8, 1kB..100kB/8
    /// (8 steps, logarithmic)
    #[arg(long, value_name = "SIZES", default_value = "64KiB", help_heading = WHAT)]
    #[arg(value_parser = values::sizes)]
    pub size: values::Sizes,
    #[command(flatten)]
    pub common: CommonArguments,
    /// Messages posted together [default: 1]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = WHAT)]
    pub burst: Option<u32>,
    /// Most messages posted and not completed [default: 64]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = WHAT)]
    pub window: Option<u32>,
    /// From client to server, or both ways at once [default: uni]
    #[arg(long, value_name = "WAY", help_heading = WHAT)]
    #[arg(value_parser = values::directions())]
    pub direction: Option<Direction>,
}

pub(super) const WHAT: &str = "What is measured";
const LONG: &str = "How long";
pub(super) const WHERE: &str = "Where, and with what clock";
const TRANSPORT: &str = "Transport (an option that the transport does not know is refused)";
const OUTPUT: &str = "Output";

/// Options of all three patterns.
#[derive(Debug, Args)]
pub struct CommonArguments {
    /// Transports, one or more as a list
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = WHAT)]
    #[arg(default_value = "tcp", value_parser = values::transports())]
    pub transport: Vec<TransportKind>,
    /// How both ends wait, one or more as a list
    #[arg(long, value_name = "MODES", value_delimiter = ',', help_heading = WHAT)]
    #[arg(default_value = "busy", value_parser = values::waits())]
    pub wait: Vec<Wait>,
    #[command(flatten)]
    pub threads: ThreadArguments,
    /// Measure each size 3 bytes smaller and larger too
    #[arg(long, help_heading = WHAT)]
    pub perturb: bool,
    /// Fill each payload, and verify it where it arrives
    #[arg(long, help_heading = WHAT)]
    pub check: bool,
    #[command(flatten)]
    pub length: LengthArguments,
    #[command(flatten)]
    pub cpus: CpuArguments,
    #[command(flatten)]
    pub draw: DrawArguments,
    #[command(flatten)]
    pub far: PlacementArguments,
    #[command(flatten)]
    pub options: TransportArguments,
    /// Count the samples above this as slow [default: 10us]
    #[arg(long, value_name = "TIME", help_heading = OUTPUT)]
    pub threshold: Option<Span>,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// When a round and a run end.
#[derive(Debug, Args)]
pub struct LengthArguments {
    /// Messages a round, as 10000, 10k or 1M; latency and oneway: 10k unless --time is given
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = LONG)]
    pub count: Option<u64>,
    /// Time a round (not of all rounds), as 500ms; with --count: whichever ends first; bandwidth:
    /// 200ms unless --count is given
    #[arg(long, value_name = "TIME", help_heading = LONG)]
    pub time: Option<Span>,
    /// Rounds of each case, every one by fresh processes [default: 5]; with --until: at most so
    /// many [default: 30]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = LONG)]
    pub rounds: Option<u32>,
    /// End the rounds when the intervals of p50 and p99 (bandwidth: of the rate) are within so much
    /// of their value, as 5%
    #[arg(long, value_name = "WIDTH", value_parser = values::percent, help_heading = LONG)]
    pub until: Option<f64>,
    /// Messages at the start of a round that are kept but left out of the figures [default: 1000,
    /// at most a tenth of those expected]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = LONG)]
    pub warmup: Option<u64>,
    /// A round without progress for so long has stalled [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = LONG)]
    pub timeout: Option<Span>,
    /// A message that has not come by then is lost [default: 100ms]
    #[arg(long, value_name = "TIME", help_heading = LONG)]
    pub loss_after: Option<Span>,
}

#[derive(Debug, Args)]
pub struct DrawArguments {
    /// The clock that stamps [default: tsc where it is invariant]
    #[arg(long, value_name = "NAME", value_parser = values::clocks(), help_heading = WHERE)]
    pub clock: Option<Source>,
    /// Seed of all that is drawn: the order of the cases, schedules, payloads
    #[arg(long, value_name = "N", default_value = "1", help_heading = WHERE)]
    #[arg(value_parser = values::seed)]
    pub seed: u64,
}

/// Settings of the transport under test: every option of every transport.
#[derive(Debug, Default)]
pub struct TransportArguments {
    /// Without the congestion control.
    pub settings: Settings,
    /// Of `rpc` several.
    pub congestion: Vec<String>,
}

/// The one setting of which a command compares several values.
static CONGESTIONS: OptionDef = transport::CONGESTION.list();

impl Args for TransportArguments {
    fn augment_args(command: clap::Command) -> clap::Command {
        let one_or_list = |option: &'static OptionDef| match option.name == CONGESTIONS.name {
            true => &CONGESTIONS,
            false => option,
        };
        let arguments = definitions()
            .iter()
            .map(|option| tables::argument(one_or_list(option)).help_heading(TRANSPORT));
        command.args(arguments)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TransportArguments {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = TransportArguments::default();
        arguments.update_from_arg_matches(matches).map(|()| arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        let refused = |error: UsageError| clap::Error::raw(ErrorKind::ValueValidation, error);
        for option in definitions().iter() {
            let typed = tables::typed(matches, option);
            if option.name == CONGESTIONS.name {
                self.congestion =
                    typed.iter().flat_map(|text| text.split(',')).map(String::from).collect();
            } else if let Some(text) = typed {
                self.settings.set(option.name, text).map_err(refused)?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
pub struct OutputArguments {
    /// Write the run directory here, which must not exist yet [default:
    /// wiregauge-runs/<UTC time>-<command>]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Print the record on stdout, and nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RunArguments {
    /// A study's file, or the name of one that is shipped
    #[arg(value_name = "STUDY")]
    pub study: Option<String>,
    /// Only these series, as a list
    #[arg(long, value_name = "SERIES", value_delimiter = ',', help_heading = WHAT)]
    pub only: Vec<String>,
    /// At most 3 rounds, a tenth of the messages and of the time: a look at whether all works
    #[arg(long, help_heading = LONG)]
    pub quick: bool,
    #[command(flatten)]
    pub far: PlacementArguments,
    /// Network interface whose addresses tcp, udp and homa use, as ib0, or the client's and the
    /// server's as ib0,ib1 [default: loopback]
    #[arg(long, value_name = "NAME", value_parser = values::interfaces, help_heading = WHERE)]
    pub interface: Option<Interfaces>,
    #[command(flatten)]
    pub cpus: CpuArguments,
    #[command(flatten)]
    pub draw: DrawArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The run directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT", value_parser = values::formats())]
    pub format: Format,
    /// Write to this new file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Only these runs of the record, by number, as a list
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = values::count32)]
    pub run: Vec<u32>,
    /// Leave the warm-up out
    #[arg(long)]
    pub without_warmup: bool,
}

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The run directory to compare with, or some of its runs as
    /// DIR@transport=tcp,wait=busy,size=64
    #[arg(value_name = "A")]
    pub a: String,
    /// The run directory that is judged, or some of its runs
    #[arg(value_name = "B")]
    pub b: String,
    /// End with exit code 1 where this holds, as half_rtt.p99>+10% or bandwidth<-5%; may be
    /// repeated
    #[arg(long, value_name = "LIMIT", value_parser = values::limit)]
    pub fail_if: Vec<values::TypedLimit>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct NoiseArguments {
    /// The CPUs, as 0-3,6 [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = values::cpu_list)]
    pub cpus: Option<values::CpuList>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub time: Span,
    /// The clock that the loop reads [default: tsc where it is invariant]
    #[arg(long, value_name = "NAME", value_parser = values::clocks())]
    pub clock: Option<Source>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
