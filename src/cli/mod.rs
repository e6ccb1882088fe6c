//! What was typed. Nothing outside this folder knows the argument parser.
//!
//! Takes the arguments; gives an [`Asked`] with validated parts, or a [`Refusal`] in one sentence.

mod args;
mod read;
mod refuse;

use crate::clock::Source;
use crate::plan::{CpuPair, Refusal, Request};
use crate::transport::TransportKind;
use crate::units::Span;
use clap::{CommandFactory, Parser};
use std::path::PathBuf;

/// Where a run's output goes.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The run directory; `None`: one under `wiregauge-runs/`.
    pub directory: Option<PathBuf>,
    /// Whether the record goes to stdout.
    pub json: bool,
}

/// What was asked for.
#[derive(Debug)]
pub enum Asked {
    /// Measure every transport.
    Survey {
        /// CPUs of the roles.
        cpus: Option<CpuPair>,
        /// The seed.
        seed: u64,
        /// The clock.
        clock: Option<Source>,
        /// Where the output goes.
        output: Output,
    },
    /// Measure what a request says.
    Measure {
        /// The request, not yet validated as a whole.
        request: Box<Request>,
        /// The clock.
        clock: Option<Source>,
        /// Where the output goes.
        output: Output,
    },
    /// Watch CPUs.
    Noise {
        /// Which; empty: all that are allowed.
        cpus: Vec<u32>,
        /// How long.
        time: Span,
        /// Whether as JSON.
        json: bool,
    },
    /// Say what there is.
    List {
        /// Whether as JSON.
        json: bool,
    },
    /// Tell records again.
    Report {
        /// Run directories.
        dirs: Vec<PathBuf>,
        /// Whether report.html is written again.
        html: bool,
    },
    /// Write a run in another format.
    Export {
        /// Run directory.
        dir: PathBuf,
        /// Name of the format.
        format: String,
        /// The file; `None`: stdout.
        out: Option<PathBuf>,
    },
    /// Compare two runs.
    Compare {
        /// The first, with a selection.
        a: String,
        /// The second.
        b: String,
        /// Limits, as typed.
        limits: Vec<String>,
        /// Whether as JSON.
        json: bool,
    },
    /// Prove the instrument.
    Selftest {
        /// Whether as JSON.
        json: bool,
    },
    /// Text that the definition itself gives (help, version, completions, manual).
    Text(Vec<u8>),
    /// Be an agent.
    Agent,
}

/// Reads the arguments, the program's name first.
pub fn parse(typed: &[String]) -> Result<Asked, Refusal> {
    let cli = match args::Cli::try_parse_from(typed) {
        Ok(cli) => cli,
        Err(error) => {
            use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
            if matches!(error.kind(), DisplayHelp | DisplayVersion) {
                return Ok(Asked::Text(error.to_string().into_bytes()));
            }
            return Err(Refusal(refuse::sentence(&error, typed)));
        }
    };
    use args::Command;
    Ok(match cli.command.unwrap_or(Command::Survey(cli.survey)) {
        Command::Survey(survey) => Asked::Survey {
            cpus: read::cpu_pair(survey.cpus.as_deref())?,
            seed: survey.seed,
            clock: read::clock(survey.clock.as_deref())?,
            output: output(survey.output),
        },
        Command::Latency(measure) => read::measure(crate::plan::Pattern::Latency, measure)?,
        Command::Oneway(measure) => read::measure(crate::plan::Pattern::Oneway, measure)?,
        Command::Bandwidth(measure) => read::measure(crate::plan::Pattern::Bandwidth, measure)?,
        Command::Noise(noise) => Asked::Noise {
            cpus: read::cpu_list(noise.cpus.as_deref())?,
            time: read::span("--time", &noise.time)?,
            json: noise.json,
        },
        Command::List(list) => Asked::List { json: list.json },
        Command::Report(report) => Asked::Report { dirs: report.dirs, html: !report.no_html },
        Command::Export(export) => {
            Asked::Export { dir: export.dir, format: export.format, out: export.out }
        }
        Command::Compare(compare) => Asked::Compare {
            a: compare.a,
            b: compare.b,
            limits: compare.fail_if,
            json: compare.json,
        },
        Command::Selftest(selftest) => Asked::Selftest { json: selftest.json },
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut args::Cli::command(), "wiregauge", &mut text);
            Asked::Text(text)
        }
        Command::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(args::Cli::command())
                .render(&mut text)
                .map_err(|error| Refusal(format!("the manual page: {error}")))?;
            Asked::Text(text)
        }
        Command::Agent => Asked::Agent,
    })
}

fn output(output: args::Output) -> Output {
    Output { directory: output.out, json: output.json }
}

/// All names of transports, for a refusal.
fn transport_names() -> String {
    TransportKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}
