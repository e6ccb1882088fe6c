//! Runs of `bandwidth`: bytes and messages that arrived per second.

use super::{Bandwidth, Direction, Spec};
use crate::pattern::prelude::*;
use crate::report::number::{GIGABITS, MEGABYTES, THOUSANDS};

/// As records name the pattern.
const NAME: &str = "bandwidth";

fn spec(run: &Run) -> Spec {
    run.case.spec(NAME).unwrap_or_default()
}

impl PatternView for Bandwidth {
    fn section(&self, record: &Record) -> Option<Section> {
        section(record)
    }
}

/// All that a record says of them; `None` where there are no such runs.
fn section(record: &Record) -> Option<Section> {
    let runs = || record.runs.iter().filter(|run| run.case.pattern == NAME);
    let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
    let pair = record
        .plan
        .pairs
        .map(|_| text("pair", |run: &&Run| record.plan.hosts_of(&run.case)).show(Show::Page));
    let fields = [
        text("ways", |run: &&Run| match spec(run).direction {
            Direction::Uni => "one",
            Direction::Bi => "both",
        }),
        number("size", "B", |run: &&Run| Cell::Size(run.case.size.0)),
        number("window", "", |run: &&Run| Cell::Count(spec(run).window.into())),
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
