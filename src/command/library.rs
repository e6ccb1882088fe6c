//! Measuring from another program.

use super::{CommandError, measure, process};
use crate::agent::serve;
use crate::cli::{self, Command};
use crate::options::UsageError;
use crate::pattern::registry;
use crate::record::RunDirectory;
use crate::record::schema::{Record, Unavailable};
use crate::run::{RunContext, Silent, run};
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

/// Ends this process as an end of a measurement, if it was started as one.
///
/// Both ends of a measurement on this host are processes of the calling program: call this first in
/// `main`.
pub fn serve_as_agent() {
    if std::env::args_os().nth(1).is_some_and(|word| word == serve::RUN_ROLE) {
        std::process::exit(serve::main(registry::execution).into());
    }
}

/// Measures what a command line of `wiregauge` says, without the program's name, and returns its
/// record. The samples and the page are kept where `--out` is given, else nothing is; nothing is
/// printed.
///
/// # Errors
///
/// What the program would refuse or could not do, in its sentence. A run that ended early is no
/// error: its record is not [complete](Record::complete).
pub fn measure<W: Into<OsString>>(
    words: impl IntoIterator<Item = W>,
) -> Result<Record, CommandError> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let command = [OsString::from("wiregauge")].into_iter().chain(words.iter().cloned());
    let Command::Measure { request, options } = cli::parse(&command.collect::<Vec<_>>())? else {
        let sentence = "this command measures nothing: use one such as latency or bandwidth";
        return Err(UsageError(sentence.into()).into());
    };
    let interrupted = AtomicBool::new(false);
    let measured = measure::prepared(*request, &options, |plan, unavailable, hosts| {
        let context = process::context(&options, &interrupted, hosts, unavailable)?;
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        let context = RunContext { command: words.collect(), ..context };
        let directory = options.directory.as_ref();
        let writer = directory.map(|path| RunDirectory::create(path, measure::need(plan)));
        let mut writer = writer.transpose()?;
        let record = run(plan, &context, &mut writer, &mut Silent)?;
        writer.map(|writer| measure::keep(&record, writer)).transpose()?;
        Ok(record)
    })?;
    measured.map_err(|unavailable| CommandError::Unable(reasons(&unavailable)))
}

fn reasons(unavailable: &[Unavailable]) -> String {
    let each = unavailable.iter().map(|one| format!("{}: {}", one.transport, one.reason));
    each.collect::<Vec<_>>().join("; ")
}
