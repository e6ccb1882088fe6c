//! `recover`: the record of a run that could not end, from what it had saved.

use super::console::{complain, layout, print_report, print_text};
use super::{CommandError, Exit};
use crate::cli::{Display, Typed};
use crate::pattern::registry;
use crate::record::journal::not_restored;
use crate::record::schema::Record;
use crate::record::{RunDirectory, SampleReader};
use crate::report::{html, table};
use crate::run::recovered;
use crate::view::byte_rate;
use std::path::Path;

/// Completes a directory that a run left under a hidden name, and publishes it.
pub fn recover(typed: &Typed) -> Result<Exit, CommandError> {
    let display = Display::of(&typed.given);
    byte_rate::choose(display.unit);
    let dir = typed.path("DIR");
    if let Some((record, kept)) = RunDirectory::recover_complete(&dir)? {
        return shown(&record, &kept, &display);
    }
    let (writer, saved) = RunDirectory::recover(&dir)?;
    let samples = writer.samples_file();
    if let Some(command) = &saved.restore {
        complain(&not_restored(command));
    }
    let record = recovered::record(saved, SampleReader::open(&samples)?)?;
    let reader = SampleReader::open(&samples)?;
    let page = |record: &_| html::render(record, &registry::views(), reader);
    let kept = writer.finish(&record, page)?;
    shown(&record, &kept, &display)
}

/// Prints a record and where it is.
fn shown(record: &Record, kept: &Path, display: &Display) -> Result<Exit, CommandError> {
    let text = table::report(record, &registry::views(), &layout(display));
    print_report(&text, display.color)?;
    print_text(&format!("kept in {}\n", kept.display()))
}
