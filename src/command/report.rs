//! `report`: tables and HTML again, from the run directory alone.

use super::console::{layout, print_report, print_text};
use super::{CommandError, Exit};
use crate::cli::{Display, Typed};
use crate::options::refuse;
use crate::pattern::registry;
use crate::record::directory::{REPORT_FILE, SAMPLES_FILE};
use crate::record::schema::Record;
use crate::record::{RecordError, SampleReader, read_record};
use crate::report::comparison::Side;
use crate::report::curves::{self, Reduced};
use crate::report::export::{self, Format, Rows, Selection};
use crate::report::markup::Markup;
use crate::report::several::Several;
use crate::report::svg::Picture;
use crate::report::table::Tone;
use crate::report::{html, table};
use crate::units::to_the_second;
use crate::view::byte_rate;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The page of several records, beside the page of the first.
const SEVERAL_FILE: &str = "comparison.html";

/// What is written, and where.
struct Output<'a> {
    has_page: bool,
    /// The directory for SVG files.
    svg: Option<&'a Path>,
    /// The tables alone, in this form.
    markup: Option<Markup>,
    /// The page of several records.
    page: Option<&'a Path>,
    display: Display,
}

/// Renders a record again, or several beside each other.
pub fn report(typed: &Typed) -> Result<Exit, CommandError> {
    let given = &typed.given;
    let output = Output {
        has_page: !given.flag("no-html"),
        svg: given.text("svg").map(Path::new),
        markup: given.choice("table"),
        page: given.text("out").map(Path::new),
        display: Display::of(given),
    };
    byte_rate::choose(output.display.unit);
    match typed.operands("DIR") {
        [dir] => rerender(Path::new(dir), &output)?,
        several => beside(several, &output)?,
    }
    Ok(Exit::RIGHT)
}

/// Writes a run in another format.
pub fn export(typed: &Typed) -> Result<Exit, CommandError> {
    let given = &typed.given;
    let selection = Selection {
        runs: given.counts32("run"),
        rounds: given.counts32("round"),
        observables: given.choices("metric"),
        with_warmup: given.flag("with-warmup"),
        around: given.count("around"),
        rows: if given.flag("stamps") { Rows::Stamps } else { Rows::Values },
    };
    let format = given.choice("format").unwrap_or(Format::Csv);
    let out = given.text("out").map(Path::new);
    export::export(&typed.path("DIR"), format, &selection, out)?;
    Ok(Exit::RIGHT)
}

fn rerender(dir: &Path, output: &Output<'_>) -> Result<(), CommandError> {
    let record = read_record(dir)?;
    match output.markup {
        Some(markup) => {
            print_text(&markup.tables(&html::results(&record, &registry::views())))?;
        }
        None => print_tables(&record, &output.display)?,
    }
    if let Some(out) = output.svg {
        let samples = SampleReader::open(&dir.join(SAMPLES_FILE))?;
        let pictures = html::pictures(&record, &registry::views(), samples);
        write_pictures(out, &pictures, output)?;
    }
    if output.has_page {
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

fn print_tables(record: &Record, display: &Display) -> Result<(), CommandError> {
    let started = to_the_second(&record.started);
    let head = format!("{} of {started} on {}", record.plan.name, record.environment.host);
    let layout = layout(display);
    if let Some(wrong) = table::unknown_column(record, &registry::views(), &layout) {
        return refuse(wrong);
    }
    let mut text = layout.sentence(&head, Tone::Head);
    text.append(table::report(record, &registry::views(), &layout));
    print_report(&text, display.color)?;
    Ok(())
}

/// Several records in one page and one table; the first is the baseline.
fn beside(dirs: &[OsString], output: &Output<'_>) -> Result<(), CommandError> {
    let (mut sides, mut reduced) = (Vec::new(), Vec::new());
    for dir in dirs {
        let path = Path::new(dir);
        let record = read_record(path)?;
        if output.has_page || output.svg.is_some() {
            reduced.push(reduce(path, &record)?);
        }
        let name = dir.to_string_lossy().trim_end_matches('/').to_owned();
        sides.push(Side::whole(name, record));
    }
    let all = Several::new(sides);
    let results = all.results();
    let tables = [results.results.as_slice(), &results.tables].concat();
    match output.markup {
        Some(markup) => print_text(&markup.tables(&tables))?,
        None => {
            let layout = layout(&output.display);
            let mut text = layout.sentence(&all.answer().join(" "), Tone::Head);
            text.append(table::sections(&[results], &layout));
            print_report(&text, output.display.color)?
        }
    };
    if let Some(out) = output.svg {
        write_pictures(out, &html::pictures_of_several(&all, &reduced), output)?;
    }
    if output.has_page {
        let beside_first = || Path::new(&dirs[0]).join(SEVERAL_FILE);
        let path = output.page.map_or_else(beside_first, Path::to_path_buf);
        replace(&path, &html::several(&all, &reduced))?;
        say(output, &format!("page: {}", path.display()))?;
    }
    Ok(())
}

/// The order statistics of a record's samples.
fn reduce(dir: &Path, record: &Record) -> Result<Reduced, CommandError> {
    let mut wrong: Option<RecordError> = None;
    let rounds = SampleReader::open(&dir.join(SAMPLES_FILE))?.map(|round| {
        round.map_err(|error| {
            let sentence = error.to_string();
            wrong.get_or_insert(error);
            sentence
        })
    });
    let reduced = curves::reduce(record, rounds);
    wrong.map_or(Ok(reduced), |error| Err(error.into()))
}

/// Says where something is, but not among tables for other programs.
fn say(output: &Output<'_>, line: &str) -> Result<(), CommandError> {
    if output.markup.is_none() {
        print_text(&format!("{line}\n"))?;
    }
    Ok(())
}

/// Writes each in a file of a directory, which is created if missing.
fn write_pictures(
    out: &Path,
    pictures: &[Picture],
    output: &Output<'_>,
) -> Result<(), CommandError> {
    std::fs::create_dir_all(out)
        .map_err(|error| CommandError::Unable(format!("making {}: {error}", out.display())))?;
    for Picture { name, svg } in pictures {
        replace(&out.join(format!("{name}.svg")), svg)?;
    }
    say(output, &format!("{} plots: {}", pictures.len(), out.display()))
}

/// Writes beside the file and renames, so that a full disk leaves the old report.
fn replace(path: &Path, page: &str) -> Result<(), CommandError> {
    let beside = path.with_extension("new");
    // One of a report that was killed; a link is no place to write to.
    let _ = std::fs::remove_file(&beside);
    let written = File::create_new(&beside)
        .and_then(|mut file| file.write_all(page.as_bytes()))
        .and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        CommandError::Unable(format!("writing {}: {error}", path.display()))
    })
}
