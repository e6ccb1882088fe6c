//! Runs of `bandwidth`: bytes and messages that arrived per second.

use super::{Bandwidth, Direction, Spec};
use crate::prelude::*;
use wiregauge_figures::view::byte_rate::ByteRateUnit::{Gigabits, Megabytes};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::{Compared, Named, ends_of, told_apart};
use wiregauge_figures::view::model::Rank;
use wiregauge_figures::view::number::THOUSANDS;

/// As records name the pattern.
const NAME: &str = "bandwidth";

fn spec(run: &Run) -> Spec {
    run.case.spec(NAME).unwrap_or_default()
}

impl PatternView for Bandwidth {
    /// The highest bandwidth of all cases.
    fn answer(&self, record: &Record) -> Vec<String> {
        let runs: Vec<&Run> = record.runs.iter().filter(|run| run.case.pattern == NAME).collect();
        // A survey and a study answer with more than that, a matrix of pairs by its own table.
        let is_own = runs.len() == record.runs.len() && record.plan.pairs.is_none();
        let names = told_apart(&runs, |run| format!("{} at {}", ends_of(run), run.case.size));
        let named = |(run, name): (&&Run, String)| {
            let rate = run.rate(RateMetric::Bandwidth)?;
            Some(Named { name, value: rate.value, interval: rate.interval })
        };
        let all: Vec<Named> = runs.iter().zip(names).filter(|_| is_own).filter_map(named).collect();
        let unit = byte_rate::or(Gigabits);
        match all.as_slice() {
            [one] => vec![format!("{}: {}.", one.name, one.text(unit.factor(), unit.name()))],
            all => {
                let (word, what, scale) = ("highest", "bandwidth", unit.factor());
                let unit = unit.name();
                let highest = Compared { word, what, scale, unit, more_is_better: true };
                highest.best(all).into_iter().collect()
            }
        }
    }

    fn section(&self, record: &Record) -> Option<Section> {
        let runs = || record.runs.iter().filter(|run| run.case.pattern == NAME);
        let rate = |metric, scale| move |run: &&Run| Cell::rate(Some(run), metric, scale);
        let hosts = |run: &&Run| record.plan.hosts_of(&run.case);
        let pair = record.plan.pairs.map(|_| text("pair", hosts).show(Show::Page));
        let speeds = byte_rate::or_all(&[Megabytes, Gigabits]).into_iter();
        let speed = |unit: ByteRateUnit| {
            figure(unit.name(), "", rate(RateMetric::Bandwidth, unit.factor()))
        };
        let before = [
            text("ways", |run: &&Run| match spec(run).direction {
                Direction::Uni => "one",
                Direction::Bi => "both",
            }),
            number("size", "B", |run: &&Run| Cell::Size(run.case.size.0)).rank(Rank::Label),
            number("window", "", |run: &&Run| Cell::Count(spec(run).window.into()))
                .rank(Rank::More),
        ];
        let after = [
            figure("k msg/s", "", rate(RateMetric::MessageRate, THOUSANDS)).key("rate"),
            number("n", "", |run: &&Run| Cell::Count(run.counts.received)),
            number("lost", "", |run: &&Run| Cell::lost(run.counts.lost)),
        ];
        let unit = byte_rate::or(Megabytes);
        let ways = [("there", RateMetric::BandwidthThere), ("back", RateMetric::BandwidthBack)]
            .into_iter()
            .filter(|_| runs().any(|run| spec(run).direction == Direction::Bi))
            .map(|(head, metric)| figure(head, unit.name(), rate(metric, unit.factor())));
        let fields = before.into_iter().chain(speeds.map(speed)).chain(ways).chain(after);
        let table =
            Table::of(runs(), own(record).into_iter().chain(pair).chain(ends()).chain(fields))?;
        let caption = "Bandwidth of the payload that arrived, by the receiver's clock";
        let table = table.caption(Note::new(caption, Show::Page));
        let results = vec![Table { id: "rate-table".into(), ..table }];
        let section = Section::new("bandwidth", "Bandwidth").of_runs(runs());
        Some(Section { results, ..section })
    }
}
