//! The options of `rpc`.

use super::args::{CommonArguments, WHAT};
use super::schedule_args::{ScheduleArguments, TimerArguments};
use super::values::{self, Arrivals};
use crate::pattern::rpc::workload::Workload;
use crate::pattern::rpc::{self, Asked, OUTSTANDING, Reply, Slowdown};
use crate::plan::{Refusal, Request, Schedule};
use crate::units::{BitRate, ByteRate, Bytes, MessageRate};
use clap::Args;
use std::io::Read;
use std::path::Path;

const PORTS: &str = "Ports and connections";
/// Longest file of lengths.
const LONGEST_FILE: u64 = crate::plan::written::LONGEST as u64;

#[derive(Debug, Args)]
pub struct RpcArguments {
    /// Lengths of requests: w1 to w5, a size as 100B, or a file of lines 'size cumulative'; a list
    /// too [default: 100B]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = WHAT)]
    pub workload: Vec<String>,
    /// Requests per second of all ports together, as 50k, a list, or 1k..100k/8 (open loop)
    #[arg(long, value_name = "RATES", help_heading = WHAT, value_parser = values::rates)]
    pub rps: Option<values::Rates>,
    /// The same in 10^9 bits of requests per second, as 0.5 or 1,2,4
    #[arg(long, value_name = "GBPS", value_delimiter = ',', help_heading = WHAT)]
    pub gbps: Vec<f64>,
    /// The same as shares of what the path carries of this workload, which is measured first, as
    /// 0.5 or 0.2,0.5,0.8
    #[arg(long, value_name = "SHARES", value_delimiter = ',', help_heading = WHAT)]
    pub load: Vec<f64>,
    /// Closed loop instead: requests on the way of each port, as 1 or 1,2,4 [default: 1 where no
    /// load is given]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = WHAT)]
    #[arg(value_parser = values::count32)]
    pub clients: Vec<u32>,
    /// Replies: as long as the request (echo), or of this size as 100B [default: echo]
    #[arg(long, value_name = "ECHO|SIZE", help_heading = WHAT)]
    pub reply: Option<Reply>,
    /// Cut longer messages to this [default: 1MB, a size by itself not at all]
    #[arg(long, value_name = "SIZE", help_heading = WHAT)]
    pub longest: Option<Bytes>,
    /// What slowdowns are ratios to: the median of unloaded requests of the same length, the
    /// shortest of them, or the unloaded shortest request and the time of both messages on the link
    /// [default: unloaded_p50]
    #[arg(long, value_name = "NAME", help_heading = WHAT, value_parser = values::slowdowns())]
    pub slowdown: Option<Slowdown>,
    /// The rate of the link, as 25gbit, for --slowdown serialisation [default: found from the
    /// unloaded times]
    #[arg(long, value_name = "RATE", help_heading = WHAT)]
    pub link: Option<BitRate>,
    /// Do not measure unloaded requests: no slowdowns
    #[arg(long, help_heading = WHAT)]
    pub no_unloaded: bool,
    /// Transports and congestion controls run at the same time, not one after the other
    #[arg(long, help_heading = WHAT)]
    pub both: bool,
    /// Ports of the client, each a thread with its own connections and share of the load, or a list
    /// [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = PORTS)]
    #[arg(value_parser = values::count32)]
    pub ports: Vec<u32>,
    /// Ports of the server, each a thread, over which requests are spread, or a list [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = PORTS)]
    #[arg(value_parser = values::count32)]
    pub server_ports: Vec<u32>,
    /// Connections from each port of the client to each of the server's, or a list [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = PORTS)]
    #[arg(value_parser = values::count32)]
    pub connections: Vec<u32>,
    /// Threads of each client's port that take its replies; 0: the port takes them itself, between
    /// requests; or a list [default: 0]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = PORTS)]
    #[arg(value_parser = values::count32)]
    pub receivers: Vec<u32>,
    /// Most outstanding requests of each port [default: 200]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = PORTS)]
    pub outstanding: Option<u32>,
    #[command(flatten)]
    pub common: CommonArguments,
    #[command(flatten)]
    pub schedule: ScheduleArguments,
    #[command(flatten)]
    pub timer: TimerArguments,
}

impl RpcArguments {
    /// The request, and the options that all patterns have.
    pub fn request(mut self) -> Result<(Request, CommonArguments), Refusal> {
        let (mut schedule, mut trace) = (Schedule::ClosedLoop, None);
        if !self.common.threads.threads.is_empty() {
            return refuse("the threads of rpc are its ports; write --ports instead of --threads");
        }
        if self.common.perturb {
            return refuse(
                "--perturb is not allowed for rpc, whose lengths are those of --workload",
            );
        }
        let has_rate = self.rps.is_some() || !self.gbps.is_empty();
        let is_open = has_rate || self.schedule.trace.is_some() || !self.load.is_empty();
        self.check_schedule(is_open)?;
        let rates = self.rps.take().map_or_else(Vec::new, |rates| rates.0);
        let rate = has_rate.then_some(MessageRate(1.0));
        // What --load asks for is scheduled when the path's capacity is known.
        if self.load.is_empty() || has_rate {
            (schedule, trace) = self.schedule.schedule(rate, Arrivals::Poisson)?;
        }
        let by_trace = trace.as_ref().and_then(Workload::of_trace);
        if by_trace.is_some() && !self.workload.is_empty() {
            return refuse("--trace says how long its messages are; it goes without --workload");
        }
        let listed = |list: Vec<u32>| if list.is_empty() { vec![1] } else { list };
        let workloads: Vec<Workload> =
            self.workload.iter().map(|name| workload(name)).collect::<Result<_, _>>()?;
        let usual = Asked::default();
        let asked = Asked {
            rates,
            clients: if is_open { Vec::new() } else { listed(self.clients) },
            outstanding: self.outstanding.unwrap_or(OUTSTANDING),
            workloads: match by_trace {
                Some(traced) => vec![traced],
                None if self.workload.is_empty() => usual.workloads,
                None => workloads,
            },
            longest: self.longest,
            reply: self.reply.unwrap_or(usual.reply),
            gbps: self.gbps,
            loads: self.load,
            server_ports: listed(self.server_ports),
            connections: listed(self.connections),
            receivers: if self.receivers.is_empty() { vec![0] } else { self.receivers },
            congestions: std::mem::take(&mut self.common.options.congestion),
            both: self.both,
            baseline: !self.no_unloaded,
            slowdown: self.slowdown.unwrap_or(usual.slowdown),
            link: self.link.map(|bits| ByteRate(bits.0 as f64 / 8.0)),
        };
        let (threads, timer) = (listed(self.ports), self.timer.timer);
        let request = Request { threads, schedule, trace, timer, ..rpc::request(asked) };
        Ok((request, self.common))
    }

    /// Refuses what no schedule is: one of several loads, and arrivals without a load.
    fn check_schedule(&self, is_open: bool) -> Result<(), Refusal> {
        if is_open && !self.clients.is_empty() {
            return refuse(
                "--clients is a closed loop, which no rate drives; write one of --clients, --rps, \
                 --gbps, --load, --trace",
            );
        }
        let ScheduleArguments { arrivals, on, off, trace } = &self.schedule;
        let bursts = on.is_some() || off.is_some();
        let others = bursts || arrivals.is_some_and(|arrivals| arrivals != Arrivals::Poisson);
        if !self.load.is_empty() && (trace.is_some() || others) {
            return refuse("--load comes by poisson arrivals; write --rps for others");
        }
        if trace.is_some() && (self.rps.is_some() || !self.gbps.is_empty()) {
            return refuse("--trace sets the times; it goes without --rps and --gbps");
        }
        if !is_open && (arrivals.is_some() || bursts || self.timer.timer.is_some()) {
            return refuse(
                "--arrivals, --on, --off and --timer need a schedule; write --rps, --gbps or \
                 --load as well",
            );
        }
        Ok(())
    }
}

/// A distribution by its name, one length, or a file.
fn workload(name: &str) -> Result<Workload, Refusal> {
    if let Some(shipped) = Workload::shipped(name) {
        return Ok(shipped);
    }
    let is_size = name.starts_with(|c: char| c.is_ascii_digit());
    if let (true, Ok(size)) = (is_size, name.parse::<Bytes>()) {
        return Ok(Workload::fixed(size));
    }
    let path = Path::new(name);
    let unreadable = |why: String| {
        let names = Workload::names().join(", ");
        Refusal(format!(
            "--workload: '{name}' is none of {names}, no size as 100B, and as a file cannot be \
             read ({why})"
        ))
    };
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(LONGEST_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text".into()))?;
    Workload::of_file(name, &text).map_err(|wrong| Refusal(wrong.to_string()))
}

fn refuse<T>(sentence: &str) -> Result<T, Refusal> {
    Err(Refusal(sentence.into()))
}
