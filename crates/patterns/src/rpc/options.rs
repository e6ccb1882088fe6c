//! The options of rpc.

use super::spec::CPERF_RTT;
use super::workload::Workload;
use super::{OUTSTANDING, Reply, Rpc, RpcRequest, Slowdown, Spec, request};
use crate::load::MOST_OUTSTANDING;
use crate::prelude::*;
use crate::schedule_options::{ARRIVALS, ArrivalProcess, OFF, ON, TIMER, TRACE, schedule};
use std::path::Path;
use wiregauge_base::units::{BitRate, ByteRate};
use wiregauge_plan::request::MOST_THREADS;
use wiregauge_plan::written;

const PORTS: &str = "Ports and connections";

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
    .default_note("100B")
    .common(),
    OptionDef::text(
        "rps",
        |text| sweep::rates(text).map(drop),
        "Requests per second of all ports together (open loop): 50k, a list, or 1k..100k/8",
    )
    .metavar("RATES")
    .common(),
    OptionDef::decimal("gbps", "Offered load in Gb/s of requests, such as 0.5 or 1,2,4")
        .metavar("GBPS")
        .list()
        .common(),
    OptionDef::decimal(
        "load",
        "Offered load as a share of the path's capacity, which is measured first for this \
             workload, such as 0.5 or 0.2,0.5,0.8",
    )
    .metavar("SHARES")
    .list()
    .excludes(&["trace", "on", "off"])
    .common(),
    OptionDef::count(
        "clients",
        "Closed loop with this many outstanding requests per port, such as 1 or 1,2,4; hosts of \
         clients: --client-hosts",
    )
    .limits(1, MOST_OUTSTANDING as u64)
    .list()
    .default_note("1 where no load is given")
    .excludes(&["rps", "gbps", "load", "trace"])
    .common(),
    OptionDef::parsed::<Reply>("reply", "Reply length: as the request (echo), or a size (100B)")
        .metavar("ECHO|SIZE")
        .default("echo"),
    OptionDef::size("longest", "Cut longer messages to this size")
        .default_note("1MB; fixed sizes are not cut"),
    OptionDef::choice::<Slowdown>(
        "slowdown",
        "Divisor of slowdowns: the median or the minimum of unloaded requests of the same \
             length, the unloaded shortest request plus both messages' time on the link, or as \
             Homa's cperf.py has it --baseline-rtt plus the request's time on the link",
    )
    .default("unloaded_p50"),
    OptionDef::parsed::<BitRate>(
        "link",
        "Link rate for --slowdown serialisation and cperf, such as 25gbit",
    )
    .metavar("RATE")
    .default_note("found from the unloaded times; of cperf 25gbit"),
    OptionDef::duration("baseline-rtt", "Unloaded round trip for --slowdown cperf").default("25us"),
    OptionDef::flag("no-unloaded", "Do not measure unloaded requests: no slowdowns"),
    OptionDef::flag(
        "both",
        "Run all transports and congestion controls at the same time, not one after another",
    ),
    wiregauge_transport::CONGESTION
        .list()
        .help("Congestion controls of tcp to compare, such as cubic,bbr")
        .heading(MEASUREMENT),
    ports("ports", "Client ports, each a thread with its own connections and share of the load")
        .limits(1, MOST_THREADS as u64)
        .default("1"),
    ports("server-ports", "Server ports, each a thread; requests are spread over them")
        .limits(1, MOST_THREADS as u64)
        .default("1"),
    CONNECTIONS
        .help(
            "Connections from each client port to each server port: 64, a list, or a sweep \
             1..16384*2",
        )
        .heading(PORTS),
    ports("receivers", "Threads that receive the replies of each client port; 0: the port itself")
        .default("0"),
    OptionDef::count(
        "outstanding",
        "Maximum outstanding requests of each port; a warning says when this held some back",
    )
    .limits(1, MOST_OUTSTANDING as u64)
    .default_note("200")
    .heading(PORTS),
    ARRIVALS.default_note("poisson"),
    ON,
    OFF,
    TRACE.excludes(&["arrivals", "on", "off", "rps", "gbps"]),
    TIMER,
];

/// What was given; where nothing was, as the table has it.
impl From<&Given> for RpcRequest {
    fn from(given: &Given) -> RpcRequest {
        let workload = Workload::fixed(Bytes(100));
        let spec = Spec {
            workload: workload.clone(),
            reply: given.get("reply").unwrap_or_default(),
            clients: 0,
            window: given.count32("outstanding").unwrap_or(OUTSTANDING),
            receivers: 0,
            beside: 0,
            unloaded: false,
            slowdown: given.choice("slowdown").unwrap_or_default(),
            link: given.get("link").map(|bits: BitRate| ByteRate(bits.0 as f64 / 8.0)),
            baseline_rtt: given.time("baseline-rtt").unwrap_or(CPERF_RTT),
            loads: given.list("load"),
        };
        RpcRequest {
            spec,
            workloads: vec![workload],
            longest: given.size("longest"),
            rates: given.read("rps", sweep::rates).unwrap_or_default(),
            clients: given.counts32("clients"),
            gbps: given.list("gbps"),
            server_ports: given.counts32("server-ports"),
            connections: given.read("connections", sweep::counts).unwrap_or_else(|| vec![1]),
            receivers: given.counts32("receivers"),
            congestions: given.list("congestion"),
            both: given.flag("both"),
            baseline: !given.flag("no-unloaded"),
        }
    }
}

impl Default for RpcRequest {
    fn default() -> RpcRequest {
        RpcRequest::from(&Given::of_tables([OPTIONS]))
    }
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
        let is_given = |name| given.is_given(name);
        ensure!(!is_given("threads"), "rpc has ports instead of threads: use --ports");
        let is_plain = !is_given("perturb");
        ensure!(is_plain, "rpc does not support --perturb, since --workload sets the lengths");
        let has_rate = given.is_given("rps") || given.is_given("gbps");
        let has_share = given.is_given("load");
        let is_open = has_rate || given.is_given("trace") || has_share;
        check_schedule(given, is_open)?;
        // What --load asks for is scheduled when the path's capacity is known.
        let (schedule, trace) = match !has_share || has_rate {
            true => schedule(given, has_rate.then_some(MessageRate(1.0)), ArrivalProcess::Poisson)?,
            false => (Schedule::ClosedLoop, None),
        };
        let mut asked = RpcRequest::from(given);
        if !is_open && asked.clients.is_empty() {
            asked.clients.push(1);
        }
        let traced = trace.as_ref().and_then(Workload::of_trace);
        let has_one = traced.is_none() || !is_given("workload");
        ensure!(has_one, "--trace has a size on each line: use it without --workload");
        let named = given.text("workload").into_iter().flat_map(|names| names.split(','));
        let workloads: Result<Vec<_>, String> = named.map(workload).chain(traced.map(Ok)).collect();
        let workloads = workloads.map_err(UsageError::of_option("workload"))?;
        if !workloads.is_empty() {
            asked.workloads = workloads;
        }
        let (threads, timer) = (given.counts32("ports"), given.choice("timer"));
        Ok(Request { threads, schedule, trace, timer, ..request(asked) })
    }
}

/// Refuses arrivals that no load asks for, and those that --load does not have.
fn check_schedule(given: &Given, is_open: bool) -> Result<(), UsageError> {
    let arrivals = given.choice("arrivals").unwrap_or(ArrivalProcess::Poisson);
    let fits = arrivals == ArrivalProcess::Poisson || !given.is_given("load");
    ensure!(fits, "--load has poisson arrivals: use --rps for others");
    let needing = ["arrivals", "on", "off", "timer"].into_iter().find(|name| given.is_given(name));
    refuse_found(needing.filter(|_| !is_open), |name| {
        format!("--{name} needs an offered load: use --rps, --gbps or --load")
    })
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
    let unknown = |why: std::io::Error| {
        let names = Workload::names().join(", ");
        format!(
            "unknown workload '{name}': use {names}, a size (100B), or the path of a CDF file \
             ({why})"
        )
    };
    let text =
        wiregauge_host::read_text(Path::new(name), written::LONGEST as u64).map_err(unknown)?;
    Workload::of_file(name, &text).map_err(|wrong| wrong.to_string())
}
