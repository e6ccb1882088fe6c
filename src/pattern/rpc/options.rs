//! The options of rpc.

use super::workload::Workload;
use super::{OUTSTANDING, Reply, Rpc, Slowdown, Sweep, request};
use crate::pattern::prelude::*;
use crate::pattern::schedule_options::{self, ARRIVALS, OFF, ON, TIMER, TRACE, schedule};
use crate::plan::request::MOST_THREADS;
use crate::plan::sweep;
use crate::transport;
use crate::units::{BitRate, ByteRate};
use std::io::Read;
use std::path::Path;

const PORTS: &str = "Ports and connections";
/// Longest file of lengths.
const LONGEST_FILE: u64 = crate::plan::written::LONGEST as u64;

const fn ports(name: &'static str, help: &'static str) -> OptionDef {
    OptionDef::count(name, help).list().heading(PORTS)
}

const OPTIONS: OptionTable = &[
    OptionDef::text(
        "workload",
        |name| workload(name).map(drop),
        "Request lengths: w1 to w5, a size (100B), or the path of a CDF file (lines of 'size \
             cumulative'); a list is a sweep",
    )
    .metavar("NAMES")
    .list()
    .default_note("100B"),
    OptionDef::text(
        "rps",
        |text| sweep::rates(text).map(drop),
        "Requests per second of all ports together (open loop): 50k, a list, or 1k..100k/8",
    )
    .metavar("RATES"),
    OptionDef::decimal("gbps", "Offered load in Gb/s of requests, such as 0.5 or 1,2,4")
        .metavar("GBPS")
        .list(),
    OptionDef::decimal(
        "load",
        "Offered load as a share of the path's capacity for this workload, which is measured \
             first, such as 0.5 or 0.2,0.5,0.8",
    )
    .metavar("SHARES")
    .list()
    .excludes(&["trace", "on", "off"]),
    OptionDef::count(
        "clients",
        "Closed loop with this number of outstanding requests per port, such as 1 or 1,2,4",
    )
    .list()
    .default_note("1 where no load is given")
    .excludes(&["rps", "gbps", "load", "trace"]),
    OptionDef::parsed::<Reply>("reply", "Reply length: as the request (echo), or a size (100B)")
        .metavar("ECHO|SIZE")
        .default("echo"),
    OptionDef::size("longest", "Cut longer messages to this size")
        .default_note("1MB; fixed sizes are not cut"),
    OptionDef::choice::<Slowdown>(
        "slowdown",
        "Divisor of slowdowns: the median or the minimum of unloaded requests of the same \
             length, or the unloaded shortest request plus both messages' time on the link",
    )
    .default("unloaded_p50"),
    OptionDef::parsed::<BitRate>("link", "Link rate for --slowdown serialisation, such as 25gbit")
        .metavar("RATE")
        .default_note("found from the unloaded times"),
    OptionDef::flag("no-unloaded", "Do not measure unloaded requests: no slowdowns"),
    OptionDef::flag(
        "both",
        "Run all transports and congestion controls at the same time, not one after another",
    ),
    transport::CONGESTION
        .list()
        .help("Congestion controls of tcp to compare, such as cubic,bbr")
        .heading(MEASUREMENT),
    ports("ports", "Client ports, each a thread with its own connections and share of the load")
        .limits(1, MOST_THREADS as u64)
        .default("1"),
    ports("server-ports", "Server ports, each a thread; requests are spread over them")
        .limits(1, MOST_THREADS as u64)
        .default("1"),
    ports("connections", "Connections from each client port to each server port").default("1"),
    ports("receivers", "Threads that receive the replies of each client port; 0: the port itself")
        .default("0"),
    OptionDef::count(
        "outstanding",
        "Maximum outstanding requests of each port; a warning says when this held some back",
    )
    .default_note("200")
    .heading(PORTS),
    ARRIVALS.default_note("poisson"),
    ON,
    OFF,
    TRACE.excludes(&["arrivals", "on", "off", "rps", "gbps"]),
    TIMER,
];

/// The lengths that were asked for, or that a trace has.
fn workloads(given: &Given, traced: Option<Workload>) -> Result<Vec<Workload>, UsageError> {
    if let Some(traced) = traced {
        return match given.is_given("workload") {
            true => refuse("--trace has a size on each line: use it without --workload"),
            false => Ok(vec![traced]),
        };
    }
    let names = given.text("workload").into_iter().flat_map(|names| names.split(','));
    let workloads: Result<Vec<_>, String> = names.map(workload).collect();
    let workloads = workloads.map_err(UsageError::of_option("workload"))?;
    Ok(if workloads.is_empty() { Sweep::default().workloads } else { workloads })
}

impl PatternOptions for Rpc {
    fn about(&self) -> &'static str {
        "Measure requests and replies of many lengths: the slowdown of each length under load"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge rpc --workload w3 --gbps 0.5 --transport tcp
  wiregauge rpc --workload w2,w4 --rps 20k --ports 2 --server-ports 2 --reply 100B
  wiregauge rpc --workload w3 --gbps 0.2 --congestion cubic,bbr --both
  wiregauge rpc --workload 100B --clients 1"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        if given.is_given("threads") {
            return refuse("rpc has ports instead of threads: use --ports");
        }
        if given.is_given("perturb") {
            return refuse("rpc does not support --perturb, since --workload sets the lengths");
        }
        let has_rate = given.is_given("rps") || given.is_given("gbps");
        let loads: Vec<f64> = given.list("load");
        let is_open = has_rate || given.is_given("trace") || !loads.is_empty();
        check_schedule(given, is_open)?;
        // What --load asks for is scheduled when the path's capacity is known.
        let (schedule, trace) = match loads.is_empty() || has_rate {
            true => schedule(
                given,
                has_rate.then_some(MessageRate(1.0)),
                schedule_options::Arrivals::Poisson,
            )?,
            false => (Schedule::ClosedLoop, None),
        };
        let clients = given.counts32("clients");
        let usual = Sweep::default();
        let asked = Sweep {
            workloads: workloads(given, trace.as_ref().and_then(Workload::of_trace))?,
            longest: given.size("longest"),
            reply: given.get("reply").unwrap_or(usual.reply),
            rates: given.read("rps", sweep::rates).unwrap_or_default(),
            clients: match is_open {
                true => Vec::new(),
                false if clients.is_empty() => vec![1],
                false => clients,
            },
            outstanding: given.count32("outstanding").unwrap_or(OUTSTANDING),
            gbps: given.list("gbps"),
            loads,
            server_ports: given.counts32("server-ports"),
            connections: given.counts32("connections"),
            receivers: given.counts32("receivers"),
            congestions: given.list("congestion"),
            both: given.flag("both"),
            baseline: !given.flag("no-unloaded"),
            slowdown: given.choice("slowdown").unwrap_or(usual.slowdown),
            link: given.get("link").map(|bits: BitRate| ByteRate(bits.0 as f64 / 8.0)),
        };
        let (threads, timer) = (given.counts32("ports"), given.choice("timer"));
        Ok(Request { threads, schedule, trace, timer, ..request(asked) })
    }
}

/// Refuses arrivals that no load asks for, and those that --load does not have.
fn check_schedule(given: &Given, is_open: bool) -> Result<(), UsageError> {
    let arrivals = given.choice::<schedule_options::Arrivals>("arrivals");
    if given.is_given("load")
        && arrivals.is_some_and(|arrivals| arrivals != schedule_options::Arrivals::Poisson)
    {
        return refuse("--load has poisson arrivals: use --rps for others");
    }
    let needing = ["arrivals", "on", "off", "timer"].into_iter().find(|name| given.is_given(name));
    match needing.filter(|_| !is_open) {
        Some(name) => {
            refuse(format!("--{name} needs an offered load: use --rps, --gbps or --load"))
        }
        None => Ok(()),
    }
}

/// A distribution by its name, one length, or a file.
fn workload(name: &str) -> Result<Workload, String> {
    if let Some(shipped) = Workload::shipped(name) {
        return Ok(shipped);
    }
    let is_size = name.starts_with(|c: char| c.is_ascii_digit());
    if let (true, Ok(size)) = (is_size, name.parse::<Bytes>()) {
        return Ok(Workload::fixed(size));
    }
    let unknown = |why: String| {
        let names = Workload::names().join(", ");
        format!(
            "unknown workload '{name}': use {names}, a size (100B), or the path of a CDF file \
             ({why})"
        )
    };
    let file = std::fs::File::open(Path::new(name)).map_err(|error| unknown(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(LONGEST_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| unknown(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unknown("not text".into()))?;
    Workload::of_file(name, &text).map_err(|wrong| wrong.to_string())
}
