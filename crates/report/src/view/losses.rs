//! The places at which messages of runs were lost.

use crate::model::{Note, OfRun, Section, Show, Table, number, text};
use wiregauge_figures::record::losses::{places, were_read};
use wiregauge_figures::record::schema::{Record, Run};
use wiregauge_figures::view::compared::{ends_of, told_apart};
use wiregauge_figures::view::model::Cell;

/// A row of the table.
struct LossRow<'a> {
    run: &'a Run,
    label: String,
    place: String,
    end: &'static str,
    packets: u64,
}

impl OfRun for LossRow<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

/// The table; `None` where no message was lost, or nothing is known of the hosts.
pub fn section(record: &Record) -> Option<Section> {
    let runs: Vec<&Run> =
        record.runs.iter().filter(|run| run.counts.lost > 0 && were_read(run)).collect();
    let names = told_apart(&runs, ends_of);
    let lines = runs.iter().zip(names).flat_map(|(run, name)| lines_of(record, run, &name));
    let fields = [
        text("run", |line: &LossRow<'_>| line.label.clone()),
        text("lost at", |line: &LossRow<'_>| line.place.clone()),
        text("end", |line: &LossRow<'_>| line.end),
        number("packets", "", |line: &LossRow<'_>| Cell::Count(line.packets)),
    ];
    let caption = "Packets that were dropped between the connection and the end of each round, by \
                   counters of both ends' hosts, which count those of other programs, too";
    let table = Table::of(lines, fields)?.caption(Note::new(caption, Show::Page));
    let mut section = Section::new("losses", "Where messages were lost");
    section.tables.push(Table { id: "losses-table".into(), ..table });
    Some(section)
}

/// Returns the places of a run, and what none of them accounts for.
fn lines_of<'a>(record: &Record, run: &'a Run, label: &str) -> Vec<LossRow<'a>> {
    let line =
        |place: String, end, packets| LossRow { run, label: label.to_owned(), place, end, packets };
    let found = places(run, record.hosts.is_empty());
    let placed: u64 = found.iter().map(|one| one.packets).sum();
    let mut lines: Vec<LossRow<'a>> =
        found.into_iter().map(|one| line(one.place, one.end, one.packets)).collect();
    let rest = run.counts.lost.saturating_sub(placed);
    if rest > 0 {
        lines.push(line("not on these hosts, or not counted".to_owned(), "", rest));
    }
    lines
}
