//! From arguments that are well formed to a command that makes sense on this machine.

use super::args::{
    Arguments, BandwidthArguments, CommonArguments, CompareArguments, ExportArguments,
    LatencyArguments, NoiseArguments, OnewayArguments, OutputArguments, PaceArguments,
    RunArguments, SurveyArguments, Task, TestbedArguments, TransportArguments,
};
use super::cpu_args::CpuArguments;
use super::far_args::ClocksArguments;
use super::far_args::FarArguments;
use super::values::{Arrivals, CpuList, RoleCpus, Ssh, TypedLimit};
use super::verbs_args::VerbsArguments;
use super::{Asked, Output, text};
use crate::host::{self, CpuPair};
use crate::plan::{Far, Options, Pattern, Refusal, Request, Schedule};
use crate::report::export::Selection;
use crate::testbed;
use crate::transport::Interfaces;
use crate::transport::verbs::options::VerbsOptions;
use std::path::Path;

/// What was asked for, or why it cannot be.
pub fn asked(arguments: Arguments) -> Result<Asked, Refusal> {
    match arguments.command.unwrap_or(Task::Survey(arguments.survey)) {
        Task::Survey(survey) => surveying(survey),
        Task::Latency(latency) => measuring_latency(latency),
        Task::Oneway(oneway) => measuring_oneway(oneway),
        Task::Bandwidth(bandwidth) => measuring_bandwidth(bandwidth),
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
        Task::Noise(noise) => observing(noise),
        Task::Testbed(testbed) => testing(testbed),
        Task::Completions { shell } => Ok(Asked::Text(text::completions(shell))),
        Task::Man => text::man_page().map(Asked::Text),
        Task::Agent => Ok(Asked::Agent),
    }
}

fn surveying(survey: SurveyArguments) -> Result<Asked, Refusal> {
    Ok(Asked::Survey {
        cpus: cpus(&survey.cpus, false)?,
        seed: survey.draw.seed,
        clock: survey.draw.clock,
        output: output(survey.output)?,
    })
}

fn running(run: RunArguments) -> Result<Asked, Refusal> {
    let to = far(run.far)?;
    Ok(Asked::Run {
        study: run.study,
        only: each_once(run.only),
        quick: run.quick,
        interface: interface(run.interface, to.is_some())?,
        cpus: cpus(&run.cpus, to.is_some())?,
        to,
        seed: run.draw.seed,
        clock: run.draw.clock,
        output: output(run.output)?,
    })
}

fn measuring_latency(latency: LatencyArguments) -> Result<Asked, Refusal> {
    let mut request = Request::new(Pattern::Latency);
    request.sizes = latency.size.0;
    set_pace(&mut request, &latency.pace);
    measuring(request, latency.common)
}

fn measuring_oneway(oneway: OnewayArguments) -> Result<Asked, Refusal> {
    let mut request = Request::new(Pattern::Oneway);
    request.sizes = oneway.size.0;
    set_pace(&mut request, &oneway.pace);
    request.schedule = match (oneway.rate, oneway.arrivals) {
        (None, None) => Schedule::ClosedLoop,
        (None, Some(_)) => {
            let sentence = "--arrivals needs --rate; write both as --rate 10k --arrivals poisson";
            return Err(Refusal(sentence.into()));
        }
        (Some(rate), Some(Arrivals::Poisson)) => Schedule::Poisson { rate },
        (Some(rate), Some(Arrivals::Periodic) | None) => Schedule::Periodic { rate },
    };
    measuring(request, oneway.common)
}

fn measuring_bandwidth(bandwidth: BandwidthArguments) -> Result<Asked, Refusal> {
    let mut request = Request::new(Pattern::Bandwidth);
    request.sizes = bandwidth.size.0;
    request.burst = bandwidth.burst.unwrap_or(request.burst);
    request.window = bandwidth.window.unwrap_or(request.window);
    request.direction = bandwidth.direction.unwrap_or(request.direction);
    measuring(request, bandwidth.common)
}

fn set_pace(request: &mut Request, pace: &PaceArguments) {
    request.burst = pace.burst.unwrap_or(request.burst);
    request.pause = pace.pause.unwrap_or(request.pause);
}

fn measuring(request: Request, common: CommonArguments) -> Result<Asked, Refusal> {
    let length = common.length;
    let to = far(common.far)?;
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
        cpus: cpus(&common.cpus, to.is_some())?,
        options: options(common.options, to.is_some())?,
        to,
        seed: common.draw.seed,
        ..request
    };
    // A wrong request is refused before a wrong place for what it would give.
    request.clone().plan()?;
    let output = output(common.output)?;
    Ok(Asked::Measure { request: Box::new(request), clock: common.draw.clock, output })
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

fn options(typed: TransportArguments, is_far: bool) -> Result<Options, Refusal> {
    Ok(Options {
        nodelay: typed.nodelay,
        busy_poll_us: typed.busy_poll,
        send_buffer: typed.send_buffer,
        receive_buffer: typed.receive_buffer,
        zerocopy: typed.zerocopy,
        congestion: typed.congestion,
        dscp: typed.dscp,
        interface: interface(typed.interface, is_far)?,
        synthetic: typed.synthetic,
        operation: typed.operation,
        verbs: verbs(typed.verbs),
    })
}

/// Interfaces that have an address here; the other host says the same of its own.
fn interface(typed: Option<Interfaces>, is_far: bool) -> Result<Option<Interfaces>, Refusal> {
    if let Some(names) = &typed {
        let ends = if is_far { 1 } else { 2 };
        for name in [&names.client, &names.server].into_iter().take(ends) {
            host::address_of(name).map_err(|error| Refusal(format!("--interface: {error}")))?;
        }
    }
    Ok(typed)
}

fn verbs(typed: VerbsArguments) -> VerbsOptions {
    VerbsOptions {
        device: typed.device,
        port: typed.port,
        gid_index: typed.gid_index,
        service: typed.service,
        connect: typed.connect,
        inline: typed.inline,
        signal: typed.signal_every,
        send_depth: typed.send_depth,
        receive_depth: typed.receive_depth,
        posting: typed.post,
        polling: typed.poll,
        queue_pairs: typed.queue_pairs,
        shared_receives: typed.shared_receive_queue,
        huge_pages: typed.huge_pages,
        mtu: typed.mtu,
        service_level: typed.service_level,
        traffic_class: typed.traffic_class,
        send_wait: typed.send_wait,
        relaxed_ordering: typed.relaxed_ordering,
        stamp_send: typed.stamp_send,
    }
}

/// The other host's, where there is one.
fn far(typed: FarArguments) -> Result<Option<Far>, Refusal> {
    let FarArguments { to, remote_binary, push, ssh } = typed;
    let Some(host) = to else {
        let asked = [
            ("--remote-binary", remote_binary.is_some()),
            ("--push", push),
            ("--ssh", ssh.is_some()),
        ];
        return match asked.into_iter().find(|(_, asked)| *asked) {
            Some((name, _)) => Err(Refusal(format!("{name} needs another host; write --to HOST"))),
            None => Ok(None),
        };
    };
    if push && remote_binary.is_some() {
        let sentence = "--push copies this program, and --remote-binary names another one; write \
                        one of the two";
        return Err(Refusal(sentence.into()));
    }
    let ssh = ssh.map_or_else(|| vec!["ssh".into()], |Ssh(words)| words);
    Ok(Some(Far { host, ssh, binary: remote_binary, push }))
}

/// A pair for each thread; none where they are to be chosen.
fn cpus(typed: &CpuArguments, is_far: bool) -> Result<Vec<CpuPair>, Refusal> {
    let Some(RoleCpus(clients, servers)) = &typed.cpus else { return Ok(Vec::new()) };
    let pairs = clients.iter().zip(servers).map(|(&client, &server)| {
        // The other host says what is wrong with its own.
        host::check_pair(client, if is_far { client } else { server })?;
        Ok(CpuPair { client, server })
    });
    let pairs: Result<_, host::CpuError> = pairs.collect();
    pairs.map_err(|error| Refusal(format!("--cpus: {error}")))
}

fn output(typed: OutputArguments) -> Result<Output, Refusal> {
    if let Some(directory) = &typed.out
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
    let none = || Refusal("clocks compares with another host; write --to HOST".into());
    let to = far(typed.far)?.ok_or_else(none)?;
    let interface = interface(typed.interface, true)?;
    if typed.time.0 == 0 {
        return Err(Refusal("--time 0 is not allowed; write a time above 0 as 1s".into()));
    }
    let (time, clock, json) = (typed.time, typed.clock, typed.json);
    Ok(Asked::Clocks { to, time, interface, clock, json })
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

fn testing(typed: TestbedArguments) -> Result<Asked, Refusal> {
    if typed.memory < testbed::LEAST_MEMORY {
        let least = testbed::LEAST_MEMORY;
        return Err(Refusal(format!(
            "--memory {} is too little; write {least} or more",
            typed.memory
        )));
    }
    if typed.peer.is_some() && typed.machines != 2 {
        return Err(Refusal("--peer needs a second machine; write --machines 2 as well".into()));
    }
    if typed.timeout.0 == 0 {
        return Err(Refusal("--timeout 0 is not allowed; write a time above 0 as 60s".into()));
    }
    if let Some(out) = &typed.out {
        empty_directory(out)?;
    }
    if let Some(kernel) = &typed.kernel
        && let Err(error) = std::fs::File::open(kernel)
    {
        let path = kernel.display();
        return Err(Refusal(format!("--kernel: '{path}' cannot be read ({error})")));
    }
    Ok(Asked::Testbed(Box::new(testbed::Wanted {
        memory: typed.memory,
        timeout: typed.timeout,
        out: typed.out,
        kernel: typed.kernel,
        machines: typed.machines.into(),
        peer: typed.peer,
        command: typed.command,
    })))
}

/// Whether a path may take files: an empty directory, or none as yet.
fn empty_directory(path: &Path) -> Result<(), Refusal> {
    let wrong = match path.read_dir().map(|mut entries| entries.next()) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => "is not empty".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("cannot be used ({error})"),
    };
    Err(Refusal(format!(
        "--out: '{}' {wrong}; name an empty directory, or one that does not exist yet",
        path.display()
    )))
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
