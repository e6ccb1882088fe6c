//! From arguments that are well formed to a command that makes sense on this machine.

use super::agent_args::AgentArguments;
use super::args::{
    Arguments, BandwidthArguments, CommonArguments, CompareArguments, ExportArguments,
    LatencyArguments, NoiseArguments, OnewayArguments, OutputArguments, RunArguments,
    SurveyArguments, Task, TransportArguments,
};
use super::cpu_args::CpuArguments;
use super::host_args::ClocksArguments;
use super::place;
use super::schedule_args::PaceArguments;
use super::values::{Arrivals, CpuList, RoleCpus, TypedLimit};
use super::{Asked, Output, Standing, testbed_args, text};
use crate::host::{self, CpuPair};
use crate::pattern::{bandwidth, latency, oneway};
use crate::plan::{Place, Refusal, Request};
use crate::remote::daemon::caps::Caps;
use crate::remote::job::rank::Rank;
use crate::report::export::Selection;
use crate::transport::{Interfaces, Role, Settings};
use std::path::Path;

/// What was asked for, or why it cannot be.
pub fn asked(arguments: Arguments) -> Result<Asked, Refusal> {
    match arguments.command.unwrap_or(Task::Survey(arguments.survey)) {
        Task::Survey(survey) => surveying(survey),
        Task::Latency(latency) => measuring_latency(latency),
        Task::Oneway(oneway) => measuring_oneway(oneway),
        Task::Bandwidth(bandwidth) => measuring_bandwidth(bandwidth),
        Task::Load(load) => {
            let (request, common) = load.request()?;
            measuring(request, common)
        }
        Task::Rpc(rpc) => {
            let (request, common) = rpc.request()?;
            measuring(request, common)
        }
        Task::Stream(stream) => {
            let (request, common) = stream.request()?;
            measuring(request, common)
        }
        Task::Run(run) => running(run),
        Task::List { json } => Ok(Asked::List { json }),
        Task::Report { directories, no_html } => {
            directories.iter().try_for_each(|directory| run_directory(directory))?;
            Ok(Asked::Report { dirs: directories, html: !no_html })
        }
        Task::Export(export) => exporting(export),
        Task::Compare(compare) => Ok(comparing(compare)),
        Task::Selftest { json } => Ok(Asked::Selftest { json }),
        Task::Clocks(clocks) => comparing_clocks(clocks),
        Task::Hosts(typed) => {
            let (hosts, rank) = place::others(typed.reach, &typed.job, "hosts")?;
            Ok(Asked::Hosts { hosts, json: typed.json, rank: rank.map(Box::new) })
        }
        Task::Noise(noise) => observing(noise),
        Task::Testbed(task) => testbed_args::asked(task),
        Task::Completions { shell } => Ok(Asked::Text(text::completions(shell))),
        Task::Man => text::man_page().map(Asked::Text),
        Task::Agent(agent) => standing(agent),
        Task::Pair(typed) => {
            let (host, port) = typed.agent;
            Ok(Asked::Pair { host, port })
        }
        Task::PlayRole => Ok(Asked::Play),
        Task::DialAgent(typed) => {
            let (host, port) = typed.agent;
            Ok(Asked::Dial { host, port })
        }
    }
}

fn surveying(survey: SurveyArguments) -> Result<Asked, Refusal> {
    Ok(Asked::Survey {
        cpus: cpus(&survey.cpus, &Place::Here)?,
        seed: survey.draw.seed,
        clock: survey.draw.clock,
        output: output(survey.output, None)?,
    })
}

fn running(run: RunArguments) -> Result<Asked, Refusal> {
    let (place, rank) = place::place(run.far)?;
    Ok(Asked::Run {
        study: run.study,
        only: each_once(run.only),
        quick: run.quick,
        interface: interface(run.interface, &place)?,
        cpus: cpus(&run.cpus, &place)?,
        place,
        seed: run.draw.seed,
        clock: run.draw.clock,
        output: output(run.output, rank.as_ref())?,
        rank: rank.map(Box::new),
    })
}

fn measuring_latency(latency: LatencyArguments) -> Result<Asked, Refusal> {
    let request = latency::request(pace(&latency.pace));
    measuring(Request { sizes: latency.size.0, ..request }, latency.common)
}

fn measuring_oneway(oneway: OnewayArguments) -> Result<Asked, Refusal> {
    let mut request = oneway::request(oneway::Asked(pace(&oneway.pace)));
    request.sizes = oneway.size.0;
    (request.schedule, request.trace) =
        oneway.schedule.schedule(oneway.rate, Arrivals::Periodic)?;
    request.timer = oneway.timer.timer;
    request.untrue_clock = oneway.untrue_clock;
    let place = &oneway.common.far.reach;
    if request.untrue_clock.is_some() && !place.names_hosts() {
        let sentence = "--untrue-clock is of another host; write --to HOST as well";
        return Err(Refusal(sentence.into()));
    }
    measuring(request, oneway.common)
}

fn measuring_bandwidth(bandwidth: BandwidthArguments) -> Result<Asked, Refusal> {
    let usual = bandwidth::Asked::default();
    let request = bandwidth::request(bandwidth::Asked {
        burst: bandwidth.burst.unwrap_or(usual.burst),
        window: bandwidth.window.unwrap_or(usual.window),
        direction: bandwidth.direction.unwrap_or(usual.direction),
    });
    measuring(Request { sizes: bandwidth.size.0, ..request }, bandwidth.common)
}

fn pace(typed: &PaceArguments) -> latency::Spec {
    let usual = latency::Spec::default();
    let (pause, burst) = (typed.pause.unwrap_or(usual.pause), typed.burst.unwrap_or(usual.burst));
    latency::Spec { pause, burst }
}

fn measuring(request: Request, common: CommonArguments) -> Result<Asked, Refusal> {
    let length = common.length;
    let (place, rank) = place::place(common.far)?;
    let request = Request {
        transports: each_once(common.transport),
        perturb: common.perturb,
        waits: each_once(common.wait),
        threads: match each_once(common.threads.threads) {
            none if none.is_empty() => request.threads,
            typed => typed,
        },
        count: length.count,
        time: length.time,
        warmup: length.warmup,
        rounds: length.rounds,
        until: length.until,
        timeout: length.timeout.unwrap_or(request.timeout),
        loss_after: length.loss_after.unwrap_or(request.loss_after),
        threshold: common.threshold.unwrap_or(request.threshold),
        check: common.check,
        cpus: cpus(&common.cpus, &place)?,
        settings: settings(common.options, &place)?,
        place,
        seed: common.draw.seed,
        ..request
    };
    // A wrong request is refused before a wrong place for what it would give.
    request.clone().plan()?;
    let output = output(common.output, rank.as_ref())?;
    let (clock, rank) = (common.draw.clock, rank.map(Box::new));
    Ok(Asked::Measure { request: Box::new(request), clock, output, rank })
}

/// In the order in which they were typed.
fn each_once<T: PartialEq>(typed: Vec<T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in typed {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

/// With one congestion control; `rpc` has taken its own by then.
fn settings(typed: TransportArguments, place: &Place) -> Result<Settings, Refusal> {
    let TransportArguments { mut settings, congestion } = typed;
    if !congestion.is_empty() {
        settings.set("congestion", congestion.join(","))?;
    }
    interface(settings.interfaces(), place)?;
    Ok(settings)
}

/// Interfaces that have an address here; other hosts say the same of their own.
fn interface(typed: Option<Interfaces>, place: &Place) -> Result<Option<Interfaces>, Refusal> {
    if let Some(names) = &typed {
        if place.pairs().is_some() && names.client != names.server {
            return Err(Refusal(
                "--interface with --all-pairs or --bisection is one name, which all hosts have; \
                 write it as ib0"
                    .into(),
            ));
        }
        let ends = [(Role::Client, &names.client), (Role::Server, &names.server)];
        for (_, name) in ends.into_iter().filter(|(role, _)| place.is_here(*role)) {
            host::address_of(name).map_err(|error| Refusal(format!("--interface: {error}")))?;
        }
    }
    Ok(typed)
}

/// A pair for each thread; none where they are to be chosen.
fn cpus(typed: &CpuArguments, place: &Place) -> Result<Vec<CpuPair>, Refusal> {
    let Some(RoleCpus(clients, servers)) = &typed.cpus else { return Ok(Vec::new()) };
    let pairs = clients.iter().zip(servers).map(|(&client, &server)| {
        // Another host says what is wrong with its own.
        let (one, other) = match (place.is_here(Role::Client), place.is_here(Role::Server)) {
            (true, true) => (client, server),
            (true, false) => (client, client),
            (false, true) => (server, server),
            (false, false) => return Ok(CpuPair { client, server }),
        };
        host::check_pair(one, other).map(|_| CpuPair { client, server })
    });
    let pairs: Result<_, host::CpuError> = pairs.collect();
    pairs.map_err(|error| Refusal(format!("--cpus: {error}")))
}

fn output(typed: OutputArguments, rank: Option<&Rank>) -> Result<Output, Refusal> {
    // Only rank 0 of a job writes, and another one may come when it has begun to.
    let writes = rank.is_none_or(|rank| rank.rank == 0);
    if let Some(directory) = typed.out.as_ref().filter(|_| writes)
        && directory.symlink_metadata().is_ok()
    {
        return Err(Refusal(format!(
            "--out: '{}' exists already and is never overwritten; name a directory that does not",
            directory.display()
        )));
    }
    Ok(Output { directory: typed.out, json: typed.json })
}

fn exporting(typed: ExportArguments) -> Result<Asked, Refusal> {
    run_directory(&typed.directory)?;
    Ok(Asked::Export {
        dir: typed.directory,
        format: typed.format,
        selection: Selection { runs: typed.run, without_warmup: typed.without_warmup },
        out: typed.out,
    })
}

fn comparing(typed: CompareArguments) -> Asked {
    let limits = typed.fail_if.into_iter().map(|TypedLimit(text, limit)| (text, limit));
    Asked::Compare { a: typed.a, b: typed.b, limits: limits.collect(), json: typed.json }
}

fn comparing_clocks(typed: ClocksArguments) -> Result<Asked, Refusal> {
    let (to, rank) = place::others(typed.reach, &typed.job, "clocks")?;
    let place = to.first().cloned().map_or(Place::Here, Place::To);
    let interface = interface(typed.interface, &place)?;
    if typed.time.0 == 0 {
        return Err(Refusal("--time 0 is not allowed; write a time above 0 as 1s".into()));
    }
    let (time, clock, untrue) = (typed.time, typed.clock, typed.untrue_clock);
    let output = output(typed.output, rank.as_ref())?;
    let rank = rank.map(Box::new);
    Ok(Asked::Clocks { to, time, interface, clock, untrue, output, rank })
}

fn standing(typed: AgentArguments) -> Result<Asked, Refusal> {
    let default = Caps::default();
    let transports = match typed.transports.is_empty() {
        true => default.transports,
        false => each_once(typed.transports),
    };
    if let Some(near) = transports.iter().find(|one| !one.descriptor().between_hosts) {
        return Err(Refusal(format!(
            "--transports: {near} joins processes of one host, and an agent is for others"
        )));
    }
    if typed.longest_run.0 == 0 {
        let sentence = "--longest-run 0 is not allowed; write a time above 0 as 10min";
        return Err(Refusal(sentence.into()));
    }
    Ok(Asked::Agent(Box::new(Standing {
        listen: typed.listen,
        pair: typed.pair,
        folder: typed.identity,
        allow: typed.allow,
        caps: Caps {
            longest_run: typed.longest_run,
            highest_rate: typed.highest_rate,
            most_memory: typed.most_memory,
            ports: typed.ports,
            transports,
        },
    })))
}

fn observing(typed: NoiseArguments) -> Result<Asked, Refusal> {
    if typed.time.0 == 0 {
        return Err(Refusal("--time 0 is not allowed; write a time above 0 as 1s".into()));
    }
    let cpus = match typed.cpus {
        Some(CpuList(cpus)) => cpus,
        None => host::allowed_cpus(),
    };
    for cpu in &cpus {
        host::check_pair(*cpu, *cpu).map_err(|error| Refusal(format!("--cpus: {error}")))?;
    }
    Ok(Asked::Noise { cpus, time: typed.time, clock: typed.clock, json: typed.json })
}

/// Whether a path may be a run directory. What stands in it is for the reader to judge.
fn run_directory(path: &Path) -> Result<(), Refusal> {
    let wrong = match path.metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is not a directory".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be read ({error})"),
    };
    Err(Refusal(format!(
        "'{}' {wrong}; name a run directory, such as those in wiregauge-runs",
        path.display()
    )))
}
