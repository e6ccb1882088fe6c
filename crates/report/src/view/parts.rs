//! Entries of a study that ran at the same time: who with whom, how late each began, and what all
//! of a series carried together.

use crate::model::{Cell, Note, OfRun, Rank, Section, Show, Table, figure, number, text};
use crate::number::{PERCENT, US};
use std::collections::BTreeSet;
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::{Begin, Metric, RateMetric, Record, Run};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::Named;
use wiregauge_figures::view::curves::headline;
use wiregauge_plan::{Part, Study};
use wiregauge_stats::Rate;
use wiregauge_stats::rate::{Delivered, rate};

/// The parts; `None` where no entries ran at the same time by one instant.
pub fn section(record: &Record) -> Option<Section> {
    let study = record.plan.study.as_ref()?;
    let mut section = Section::new("parts", "At the same time");
    section.results.extend(sums(record, study));
    // The answer of `impact` is the factors; when each part began is for the page.
    let show = if record.plan.name == "impact" { Show::Page } else { Show::Everywhere };
    section.results.extend(parts(record).map(|table| table.show(show)));
    section.filled()
}

/// What the parts of each series carried together, each in a sentence.
pub fn answer(record: &Record) -> Vec<String> {
    let Some(study) = &record.plan.study else { return Vec::new() };
    let unit = byte_rate::or(ByteRateUnit::Gigabits);
    let sentence = |sum: Sum<'_>| {
        let found = sum.rate()?;
        let name = sum.series.to_owned();
        let named = Named { name, value: found.value, interval: found.interval };
        let text = named.text(unit.factor(), unit.name());
        Some(format!("{}: {text} in sum of {} parts.", named.name, sum.runs.len()))
    };
    sums_of(record, study).filter_map(sentence).collect()
}

/// The runs of parts that had others beside them.
fn beside(record: &Record) -> impl Iterator<Item = &Run> {
    let is_part = |number: &u32| {
        let case = record.plan.cases.get(*number as usize);
        case.is_some_and(|case| case.part != Part::default())
    };
    let groups = record.plan.concurrent.iter().filter(move |all| all.iter().any(is_part));
    let numbers: BTreeSet<u32> = groups.flatten().copied().collect();
    record.runs.iter().filter(move |run| numbers.contains(&run.index))
}

/// The latest begin of any end, over all rounds.
fn latest(run: &Run) -> Option<&Begin> {
    let starts = run.rounds.iter().filter_map(|round| round.start.as_ref());
    let begins = starts.flat_map(|start| [&start.client, &start.server]).flatten();
    begins.max_by(|a, b| a.late_ns.total_cmp(&b.late_ns))
}

/// The latency that is shown of a run.
fn timed(run: &Run) -> Option<Metric> {
    headline(run).or_else(|| Some(run.figures.first()?.metric))
}

/// Each part: its ends, when it began, and what it measured.
fn parts(record: &Record) -> Option<Table> {
    let unit = byte_rate::or(ByteRateUnit::Megabytes);
    let overlap = |run: &&Run| {
        let shares = run.rounds.iter().filter_map(|round| round.overlap);
        shares.reduce(f64::min).map(|share| Cell::fixed(PERCENT * share, 1))
    };
    let p50 = |run: &&Run| timed(run).map(|metric| Cell::of_run(Some(run), metric, 0.5));
    let p99 = |run: &&Run| timed(run).map(|metric| Cell::of_run(Some(run), metric, 0.99));
    let bandwidth = move |run: &&Run| Cell::rate(Some(run), RateMetric::Bandwidth, unit.factor());
    let late = |run: &&Run| latest(run).map(|begin| Cell::fixed(begin.late_ns * US, 1));
    let bound = |run: &&Run| latest(run).map(|begin| Cell::fixed(begin.bound_ns * US, 1));
    let fields = [
        text("part", |run: &&Run| run.label.clone()),
        number("after", "ms", |run: &&Run| Cell::fixed(run.case.part.after.0 as f64 / 1e6, 0)),
        number("late", "us", late),
        number("known to", "us", bound).rank(Rank::More),
        number("overlap %", "", overlap).rank(Rank::More),
        figure("p50", "us", p50),
        figure("p99", "us", p99),
        figure("bandwidth", unit.name(), bandwidth),
    ];
    let caption = "Each part: its start after the common instant, and the latest of its ends";
    let table = Table::of(beside(record), fields)?.caption(Note::new(caption, Show::Page));
    Some(Table { id: "parts-table".into(), ..table })
}

/// What all parts of a series carried together.
struct Sum<'a> {
    series: &'a str,
    runs: Vec<&'a Run>,
}

impl OfRun for Sum<'_> {}

impl<'a> Sum<'a> {
    /// The sum of their bandwidths, round by round.
    fn rate(&self) -> Option<Rate> {
        let rounds_of = |run: &&'a Run| Some(&run.rate(RateMetric::Bandwidth)?.rounds);
        let all = self.runs.iter().map(rounds_of).collect::<Option<Vec<&Vec<f64>>>>()?;
        let rounds = all.iter().map(|rounds| rounds.len()).min()?;
        let sum = |round: usize| all.iter().map(|rounds| rounds[round]).sum();
        let sums = (0..rounds).map(|round| Delivered { work: sum(round), seconds: 1.0 });
        let found = rate(&sums.collect::<Vec<_>>());
        (!found.value.is_nan()).then_some(found)
    }
}

/// Series with several parts.
fn sums_of<'a>(record: &'a Record, study: &'a Study) -> impl Iterator<Item = Sum<'a>> {
    let names = each_once(study.series.iter().map(|series| series.name.as_str()));
    let sum = move |series| {
        let own = study.cases(series);
        let runs: Vec<&Run> = beside(record).filter(|run| own.contains(&run.index)).collect();
        // Sweeps of one entry are not at the same time.
        let first = runs.first()?.index;
        let group = record.plan.concurrent.iter().find(|all| all.contains(&first));
        let runs = runs.into_iter().filter(|run| group.is_some_and(|all| all.contains(&run.index)));
        Some(Sum { series, runs: runs.collect() }).filter(|sum| sum.runs.len() > 1)
    };
    names.into_iter().filter_map(sum)
}

/// The sums of series with several parts.
fn sums(record: &Record, study: &Study) -> Option<Table> {
    let unit = byte_rate::or(ByteRateUnit::Gigabits);
    let sum_of = |sum: &Sum<'_>| {
        sum.rate().map(|found| Cell::figure(found.value, found.interval, unit.factor()))
    };
    let fields = [
        text("series", |sum: &Sum<'_>| sum.series),
        number("parts", "", |sum: &Sum<'_>| Cell::Count(sum.runs.len() as u64)),
        figure("sum", unit.name(), sum_of),
    ];
    let rows: Vec<Sum<'_>> = sums_of(record, study).filter(|sum| sum.rate().is_some()).collect();
    let caption = "What all parts of a series carried at the same time";
    Some(Table::of(rows, fields)?.caption(Note::new(caption, Show::Page)))
}
