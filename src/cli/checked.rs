//! From arguments that are well formed to a command that makes sense on this machine.

use super::args::{
    Arguments, BandwidthArguments, CommonArguments, CpuArguments, ExportArguments,
    LatencyArguments, NoiseArguments, OnewayArguments, OutputArguments, PaceArguments,
    SurveyArguments, Task, TransportArguments, definition,
};
use super::values::{Arrivals, CpuList, TwoCpus};
use super::{Command, Compare, Exit, Export, Measure, Noise, Output, Survey};
use crate::host::{self, CpuPair};
use crate::plan::{Options, Pattern, Refusal, Request, Schedule};
use std::path::Path;

impl From<Refusal> for Exit {
    fn from(refusal: Refusal) -> Exit {
        Exit::Refusal(refusal.0)
    }
}

/// The command, or why it cannot be.
pub fn command(arguments: Arguments) -> Result<Command, Exit> {
    let Some(task) = arguments.command else { return survey(arguments.survey) };
    match task {
        Task::Latency(latency) => measure_latency(latency),
        Task::Oneway(oneway) => measure_oneway(oneway),
        Task::Bandwidth(bandwidth) => measure_bandwidth(bandwidth),
        Task::List { json } => Ok(Command::List { json }),
        Task::Report { directories } => {
            directories.iter().try_for_each(|directory| run_directory(directory))?;
            Ok(Command::Report { directories })
        }
        Task::Export(export) => exporting(export),
        Task::Compare(compare) => {
            run_directory(&compare.a)?;
            run_directory(&compare.b)?;
            let limits = compare.fail_if;
            Ok(Command::Compare(Compare { a: compare.a, b: compare.b, limits, json: compare.json }))
        }
        Task::Selftest { json } => Ok(Command::Selftest { json }),
        Task::Noise(noise) => observing(noise),
        Task::Completions { shell } => Err(Exit::Text(completions(shell))),
        Task::Man => Err(Exit::Text(man_page()?)),
        Task::Agent => Ok(Command::Agent),
    }
}

fn survey(survey: SurveyArguments) -> Result<Command, Exit> {
    Ok(Command::Survey(Survey {
        output: output(survey.output)?,
        cpus: cpus(&survey.cpus)?,
        clock: survey.draw.clock,
        seed: survey.draw.seed,
    }))
}

fn measure_latency(latency: LatencyArguments) -> Result<Command, Exit> {
    let mut request = Request::new(Pattern::Latency);
    request.sizes = latency.size.0;
    set_pace(&mut request, &latency.pace);
    measure(request, latency.common)
}

fn measure_oneway(oneway: OnewayArguments) -> Result<Command, Exit> {
    let mut request = Request::new(Pattern::Oneway);
    request.sizes = oneway.size.0;
    set_pace(&mut request, &oneway.pace);
    request.schedule = match (oneway.rate, oneway.arrivals) {
        (None, None) => Schedule::ClosedLoop,
        (None, Some(_)) => {
            let sentence = "--arrivals needs --rate; write both as --rate 10k --arrivals poisson";
            return Err(Exit::Refusal(sentence.into()));
        }
        (Some(rate), Some(Arrivals::Poisson)) => Schedule::Poisson { rate },
        (Some(rate), Some(Arrivals::Periodic) | None) => Schedule::Periodic { rate },
    };
    measure(request, oneway.common)
}

fn measure_bandwidth(bandwidth: BandwidthArguments) -> Result<Command, Exit> {
    let mut request = Request::new(Pattern::Bandwidth);
    request.sizes = bandwidth.size.0;
    request.burst = bandwidth.burst.unwrap_or(request.burst);
    request.window = bandwidth.window.unwrap_or(request.window);
    request.direction = bandwidth.direction.unwrap_or(request.direction);
    measure(request, bandwidth.common)
}

fn set_pace(request: &mut Request, pace: &PaceArguments) {
    request.burst = pace.burst.unwrap_or(request.burst);
    request.pause = pace.pause.unwrap_or(request.pause);
}

fn measure(request: Request, common: CommonArguments) -> Result<Command, Exit> {
    let length = common.length;
    let request = Request {
        transports: each_once(common.transport),
        perturb: common.perturb,
        waits: each_once(common.wait),
        count: length.count,
        time: length.time,
        warmup: length.warmup,
        rounds: length.rounds,
        until: length.until,
        timeout: length.timeout.unwrap_or(request.timeout),
        loss_after: length.loss_after.unwrap_or(request.loss_after),
        threshold: common.threshold.unwrap_or(request.threshold),
        check: common.check,
        cpus: cpus(&common.cpus)?,
        options: options(common.options),
        seed: common.draw.seed,
        ..request
    };
    let plan = request.plan()?;
    let output = output(common.output)?;
    Ok(Command::Measure(Measure { plan, clock: common.draw.clock, output }))
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

fn options(typed: TransportArguments) -> Options {
    Options {
        nodelay: typed.nodelay,
        busy_poll_us: typed.busy_poll,
        send_buffer: typed.send_buffer,
        receive_buffer: typed.receive_buffer,
        zerocopy: typed.zerocopy,
        congestion: typed.congestion,
        dscp: typed.dscp,
        synthetic: typed.synthetic,
    }
}

fn cpus(typed: &CpuArguments) -> Result<Option<CpuPair>, Exit> {
    let Some(TwoCpus(client, server)) = typed.cpus else { return Ok(None) };
    let checked = host::check_pair(client, server);
    checked.map(Some).map_err(|error| Exit::Refusal(format!("--cpus: {error}")))
}

fn output(typed: OutputArguments) -> Result<Output, Exit> {
    if let Some(directory) = &typed.out
        && directory.symlink_metadata().is_ok()
    {
        return Err(Exit::Refusal(format!(
            "--out: '{}' exists already and is never overwritten; name a directory that does not",
            directory.display()
        )));
    }
    Ok(Output { directory: typed.out, json: typed.json })
}

fn exporting(typed: ExportArguments) -> Result<Command, Exit> {
    run_directory(&typed.directory)?;
    Ok(Command::Export(Export {
        directory: typed.directory,
        format: typed.format,
        file: typed.file,
        runs: typed.run,
        without_warmup: typed.without_warmup,
    }))
}

fn observing(typed: NoiseArguments) -> Result<Command, Exit> {
    if typed.time.0 == 0 {
        return Err(Exit::Refusal("--time 0 is not allowed; write a time above 0 as 1s".into()));
    }
    let cpus = typed.cpus.map(|CpuList(cpus)| cpus);
    for cpu in cpus.iter().flatten() {
        host::check_pair(*cpu, *cpu)
            .map_err(|error| Exit::Refusal(format!("--cpus: {error}")))?;
    }
    let (time, clock, json) = (typed.time, typed.clock, typed.json);
    Ok(Command::Noise(Noise { cpus, time, clock, json }))
}

/// Whether a path may be a run directory. What stands in it is for the reader to judge.
fn run_directory(path: &Path) -> Result<(), Exit> {
    let wrong = match path.metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is not a directory".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be read ({error})"),
    };
    Err(Exit::Refusal(format!(
        "'{}' {wrong}; name a run directory, such as those in wiregauge-runs",
        path.display()
    )))
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut definition(), "wiregauge", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// One page for all commands: each command's options after the overview.
fn man_page() -> Result<String, Exit> {
    let refused = |error: std::io::Error| Exit::Refusal(format!("the man page: {error}"));
    let mut text = Vec::new();
    let mut definition = definition();
    definition.build();
    clap_mangen::Man::new(definition.clone()).render(&mut text).map_err(refused)?;
    for command in definition.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name().to_uppercase();
        text.extend(format!(".SH \"WIREGAUGE {name}\"\n").into_bytes());
        let man = clap_mangen::Man::new(command.clone());
        man.render_description_section(&mut text).map_err(refused)?;
        man.render_options_section(&mut text).map_err(refused)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
