//! Runs of `bandwidth`: bytes and messages that arrived per second.

use crate::plan::{Direction, Pattern};
use crate::record::schema::{RateMetric, Record, Run};
use crate::report::model::{Cell, Note, Section, Show, Table, ends, figure, number, own, text};
use crate::report::number::{GIGABITS, MEGABYTES, THOUSANDS};

/// All that a record says of them; `None` where there are no such runs.
pub fn section(record: &Record) -> Option<Section> {
    let runs = || record.runs.iter().filter(|run| run.case.pattern == Pattern::Bandwidth);
    let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
    let pair = record
        .plan
        .pairs
        .map(|_| text("pair", |run: &&Run| record.plan.ends_of(&run.case)).show(Show::Page));
    let fields = [
        text("ways", |run: &&Run| match run.case.direction {
            Direction::Uni => "one",
            Direction::Bi => "both",
        }),
        number("size", "B", |run: &&Run| Cell::Size(run.case.size.0)),
        number("window", "", |run: &&Run| Cell::Count(run.case.window.into())),
        figure("MB/s", "", rate(RateMetric::Bandwidth, MEGABYTES)),
        figure("Gb/s", "", rate(RateMetric::Bandwidth, GIGABITS)),
        figure("k msg/s", "", rate(RateMetric::MessageRate, THOUSANDS)).key("rate"),
        number("n", "", |run: &&Run| Cell::Count(run.counts.received)),
        number("lost", "", |run: &&Run| Cell::lost(run.counts.lost)),
    ];
    let table = Table::of(runs(), own(record).into_iter().chain(pair).chain(ends()).chain(fields))?;
    let caption = "Bandwidth of the payload that arrived, by the receiver's clock";
    let table = table.caption(Note::new(caption, Show::Page));
    let own: Vec<u32> = runs().map(|run| run.index).collect();
    let results = vec![Table { id: "rate-table".into(), ..table }];
    let section = Section::new("bandwidth", "Bandwidth");
    Some(Section { results, distributions: own.clone(), rates: own, ..section })
}
