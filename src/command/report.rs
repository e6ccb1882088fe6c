//! `report`: tables and HTML again, from the run directory alone.

use super::console::{complain, layout, print_report, print_text};
use super::{CommandError, Exit};
use crate::cli::{Display, Typed};
use crate::pattern::registry;
use crate::record::directory::{REPORT_FILE, SAMPLES_FILE};
use crate::record::{RecordError, SampleReader, read_record};
use crate::report::export::{self, Format, Rows, Selection};
use crate::report::svg::Picture;
use crate::report::table::Tone;
use crate::report::{html, table};
use std::path::Path;

/// Renders them again. Every directory is tried; the first error is the command's.
pub fn report(typed: &Typed) -> Result<Exit, CommandError> {
    let mut first = None;
    let display = Display::of(&typed.given);
    let svg = typed.given.text("svg").map(Path::new);
    for dir in typed.operands("DIR") {
        if let Err(error) = rerender(Path::new(dir), !typed.given.flag("no-html"), svg, &display) {
            match first {
                None => first = Some(error),
                Some(_) => complain(&error),
            }
        }
    }
    first.map_or(Ok(Exit::RIGHT), Err)
}

/// Writes a run in another format.
pub fn export(typed: &Typed) -> Result<Exit, CommandError> {
    let given = &typed.given;
    let selection = Selection {
        runs: given.counts32("run"),
        rounds: given.counts32("round"),
        observables: given.choices("metric"),
        without_warmup: given.flag("without-warmup"),
        around: given.count("around"),
        rows: if given.flag("stamps") { Rows::Stamps } else { Rows::Values },
    };
    let format = given.choice("format").unwrap_or(Format::Csv);
    let out = given.text("out").map(Path::new);
    export::export(&typed.path("DIR"), format, &selection, out)?;
    Ok(Exit::RIGHT)
}

fn rerender(
    dir: &Path,
    with_html: bool,
    svg: Option<&Path>,
    display: &Display,
) -> Result<(), CommandError> {
    let record = read_record(dir)?;
    let mut head =
        format!("{} of {} on {}", record.plan.name, record.started, record.environment.host);
    if !record.complete {
        head.push_str(" (INCOMPLETE)");
    }
    let layout = layout(display);
    let mut text = layout.sentence(&head, Tone::Head);
    text.append(table::report(&record, &registry::views(), &layout));
    print_report(&text, display.color)?;
    if let Some(out) = svg {
        let samples = SampleReader::open(&dir.join(SAMPLES_FILE))?;
        write_pictures(out, &html::pictures(&record, &registry::views(), samples))?;
    }
    if with_html {
        let reader = SampleReader::open(&dir.join(SAMPLES_FILE))?;
        // The page names whatever is wrong with the samples; the command says it too.
        let mut wrong: Option<RecordError> = None;
        let samples = reader.map(|round| {
            round.map_err(|error| {
                let sentence = error.to_string();
                wrong.get_or_insert(error);
                sentence
            })
        });
        let page = html::render(&record, &registry::views(), samples);
        replace(&dir.join(REPORT_FILE), &page)?;
        if let Some(error) = wrong {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Writes each in a file of a directory, which is made where there is none.
fn write_pictures(out: &Path, pictures: &[Picture]) -> Result<(), CommandError> {
    std::fs::create_dir_all(out)
        .map_err(|error| CommandError::Unable(format!("making {}: {error}", out.display())))?;
    for Picture { name, svg } in pictures {
        replace(&out.join(format!("{name}.svg")), svg)?;
    }
    print_text(&format!("{} plots in {}\n", pictures.len(), out.display()))?;
    Ok(())
}

/// Writes beside the file and renames, so that a full disk leaves the old report.
fn replace(path: &Path, page: &str) -> Result<(), CommandError> {
    let beside = path.with_extension("new");
    let written = std::fs::write(&beside, page).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        CommandError::Unable(format!("writing {}: {error}", path.display()))
    })
}
