//! Runs of `rpc`: what the load did to requests of all lengths, and to each.

mod plots;
mod sent;

use super::Rpc;
use super::lengths::{Lengths, OfSize};
use super::spec::Slowdown;
use crate::prelude::*;
use sent::{Length, Sent, explained};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::client_hosts;
use wiregauge_figures::view::model::{Rank, fields};
use wiregauge_figures::view::number::{PERCENT, THOUSANDS, quantile_name, short};

/// Lengths of one run that the terminal shows; the page has all.
const MOST_LENGTHS: usize = 20;
/// As records name the pattern.
const NAME: &str = "rpc";

impl PatternView for Rpc {
    /// The mean slowdown at each load, and whose is the least.
    fn answer(&self, record: &Record) -> Vec<String> {
        let own = || record.runs.iter().filter(|run| run.case.pattern == NAME);
        let mut all = sent::answer(own());
        all.extend(client_hosts::answers(own()));
        all
    }

    fn section(&self, record: &Record) -> Option<Section> {
        let own = record.runs.iter().filter(|run| run.case.pattern == NAME);
        let runs: Vec<Sent<'_>> = own.clone().filter_map(Sent::of).collect();
        let mut section = Section::new("rpc", "Requests by message size").of_runs(own);
        section.results.extend(requests(record, &runs));
        section.tables.extend(client_hosts::table(runs.iter().map(|sent| sent.run)));
        section.tables.extend(lengths(record, &runs));
        section.tables.extend(runs.iter().filter_map(lengths_of));
        section.plots = plots::of(&runs);
        section.data.push(data(&runs));
        section.filled()
    }
}

/// What distinguishes a run from the others.
fn place<'a, T: OfRun + 'a>(sent: impl Fn(&T) -> &Sent<'_> + Copy + 'a) -> [TableField<'a, T>; 4] {
    [
        text("transport", move |row: &T| {
            let case = &sent(row).run.case;
            let control = case.settings.text("congestion");
            let transport = case.transport.name();
            control.map_or(transport.to_string(), |name| format!("{transport} {name}"))
        }),
        text("wait", move |row: &T| sent(row).run.case.wait.name()),
        text("workload", move |row: &T| sent(row).rpc.workload.label()),
        text("load", move |row: &T| sent(row).load()),
    ]
}

/// Printed where `lacks_link`.
const NO_LINK: &str = "slowdown unknown: the longest unloaded requests were not slower than the \
                       shortest, so the link rate cannot be estimated: set it with --link";

/// Whether the slowdown needs a link rate that was neither set nor measured.
fn lacks_link(by: Slowdown, lengths: &Lengths) -> bool {
    by == Slowdown::Serialisation && lengths.baseline.is_some() && lengths.link.is_none()
}

/// All requests of each run.
fn requests(record: &Record, runs: &[Sent<'_>]) -> Option<Table> {
    let rate = |metric, scale| move |sent: &&Sent<'_>| Cell::rate(Some(sent.run), metric, scale);
    let quantile = |p| move |sent: &&Sent<'_>| Cell::of_run(Some(sent.run), sent.lengths.metric, p);
    let short = |p| move |sent: &&Sent<'_>| Cell::of_run(Some(sent.run), Metric::Short, p);
    let speed = byte_rate::or(ByteRateUnit::Gigabits);
    let fields = [
        text("ports", |sent: &&Sent<'_>| {
            let topology = &sent.run.case.topology;
            let (own, others) = (sent.run.case.threads(), topology.threads_of(Role::Server));
            match topology.connections_each() {
                1 => format!("{own}:{others}"),
                each => format!("{own}:{others} x {each}"),
            }
        })
        .rank(Rank::More),
        number("offered", "k/s", rate(RateMetric::OfferedRate, THOUSANDS)).rank(Rank::More),
        figure("answered", "k/s", rate(RateMetric::MessageRate, THOUSANDS)).rank(Rank::More),
        figure(speed.name(), "", rate(RateMetric::Bandwidth, speed.factor())).rank(Rank::More),
        text("metric", |sent: &&Sent<'_>| sent.lengths.metric.name()).show(Show::Page),
        figure("p50", "us", quantile(0.5)),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)).rank(Rank::More),
        number("max", "us", |sent: &&Sent<'_>| {
            Cell::maximum_of_run(Some(sent.run), sent.lengths.metric)
        })
        .show(Show::Page),
        figure("slowdown", "", |sent: &&Sent<'_>| sent.slowdown()),
        figure("short p50", "us", short(0.5)).rank(Rank::More),
        figure("short p99", "us", short(0.99)),
        number("n", "", |sent: &&Sent<'_>| Cell::Count(sent.summary().map_or(0, |all| all.count)))
            .rank(Rank::More),
        number("lost", "", |sent: &&Sent<'_>| Cell::lost(sent.run.lost_of(sent.lengths.metric)))
            .rank(Rank::More),
        number("unfinished", "", |sent: &&Sent<'_>| {
            Cell::lost(sent.run.unfinished_of(sent.lengths.metric))
        })
        .rank(Rank::More),
        number("unsent", "", |sent: &&Sent<'_>| Cell::lost(sent.run.counts.unsent))
            .rank(Rank::More),
    ];
    let own = own(record).into_iter().chain(place(|sent: &&Sent<'_>| *sent));
    let table = Table::of(runs, own.chain(fields))?;
    let by = runs.first()?.rpc.slowdown;
    let mut notes =
        vec![format!("slowdown: the mean over all answered requests of {}", explained(by))];
    if runs.iter().any(|sent| lacks_link(by, &sent.lengths)) {
        notes.push(NO_LINK.into());
    }
    let caption = Note::new("Requests of all lengths; short: the shortest tenth", Show::Page);
    Some(table.caption(caption).notes(notes))
}

/// The columns of one length, the times named after `metric`.
fn fields<'a>(metric: &str) -> Vec<TableField<'a, Length<'a>>> {
    let time = |p| move |row: &Length<'_>| Cell::quantile(Some(&row.of.summary), p);
    let slower = |p| move |row: &Length<'_>| row.slowdown(p);
    vec![
        number("size", "B", |row: &Length<'_>| Cell::Size(row.of.size.into())).rank(Rank::Label),
        number("share", "%", |row: &Length<'_>| Cell::fixed(PERCENT * row.of.share, 2))
            .rank(Rank::More),
        figure(&format!("{metric}p50"), "us", time(0.5)),
        figure(&format!("{metric}p99"), "us", time(0.99)),
        figure(&format!("{metric}p99.9"), "us", time(0.999)).rank(Rank::More),
        figure("unloaded", "us", Length::unloaded).rank(Rank::More),
        figure("slowdown p50", "", slower(0.5)),
        figure("slowdown p99", "", slower(0.99)),
        figure("slowdown p99.9", "", slower(0.999)).rank(Rank::More),
        number("n", "", |row: &Length<'_>| Cell::Count(row.of.summary.count)).rank(Rank::More),
        number("lost", "", |row: &Length<'_>| Cell::lost(row.of.summary.lost)).rank(Rank::More),
    ]
}

/// Some lengths of each run, for the terminal. The unloaded times stand beside those that are held
/// against them.
fn lengths(record: &Record, runs: &[Sent<'_>]) -> Option<Table> {
    let several = |sent: &&Sent<'_>| sent.rpc.workload.steps.len() > 1 && !sent.rpc.unloaded;
    let runs: Vec<&Sent<'_>> = runs.iter().filter(several).collect();
    let rows = runs.iter().flat_map(|&sent| {
        shown(&sent.lengths.sizes).into_iter().map(move |of| Length { sent, of })
    });
    let own = own(record).into_iter().chain(place(|row: &Length<'_>| row.sent));
    let table = Table::of(rows, own.chain(fields("")))?;
    let is_cut = runs.iter().any(|sent| sent.lengths.sizes.len() > MOST_LENGTHS);
    let cut = format!("{MOST_LENGTHS} lengths of each run are shown; the record has all");
    Some(table.show(Show::Terminal).notes(is_cut.then_some(cut)))
}

/// All lengths of one run, for the page.
fn lengths_of(sent: &Sent<'_>) -> Option<Table> {
    let table = Table::of(sent.lengths(), fields(&format!("{} ", sent.lengths.metric.name())))?;
    let mut notes = vec![sent.rpc.workload.what.clone()];
    if let Cell::Figure(mean) = sent.slowdown() {
        let interval =
            wiregauge_figures::view::number::interval(mean.value.0, mean.interval, short);
        let (mean, by) = (short(mean.value.0), explained(sent.rpc.slowdown));
        notes.push(format!("Mean slowdown: {mean} {interval}, of each answered request {by}."));
    }
    let table = table.caption(sent.run.label.as_str()).notes(notes).show(Show::Page);
    Some(Table { folded: true, ..table })
}

/// Lengths that are spread over the shares of all requests.
fn shown(sizes: &[OfSize]) -> Vec<&OfSize> {
    if sizes.len() <= MOST_LENGTHS {
        return sizes.iter().collect();
    }
    let mut shown: Vec<&OfSize> = Vec::new();
    for step in 1..=MOST_LENGTHS {
        let share = step as f64 / MOST_LENGTHS as f64;
        let at = sizes.partition_point(|of| of.share < share - 1e-9).min(sizes.len() - 1);
        if shown.last().is_none_or(|last| last.size != sizes[at].size) {
            shown.push(&sizes[at]);
        }
    }
    shown
}

fn data(runs: &[Sent<'_>]) -> Data {
    let rows = runs.iter().flat_map(Sent::lengths).flat_map(|Length { sent, of }| {
        of.summary.quantiles.iter().map(move |quantile| {
            let [value, low, high] = quantile_fields(Some(quantile));
            let (run, label, name) = (sent.run.index, &sent.run.label, quantile_name(quantile.p));
            let (OfSize { summary, unloaded, .. }, share) = (of, of.share);
            fields! {
                run, label, of.size, of.reply, share, name, value, low, high, summary.count,
                summary.lost, unloaded.p50_ns, unloaded.min_ns, unloaded.serialisation_ns,
                unloaded.cperf_ns
            }
        })
    });
    Data::new(
        "run label size_bytes reply_bytes share figure value_ns low high count lost \
         unloaded_p50_ns unloaded_min_ns serialisation_ns cperf_ns",
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::super::lengths::Unloaded;
    use super::*;
    use wiregauge_stats::{Interval, Value, summarize};

    fn sizes(count: u32) -> Vec<OfSize> {
        let of = |size: u32| OfSize {
            size,
            reply: size,
            share: f64::from(size) / f64::from(count),
            summary: summarize(&[vec![f64::from(size)]], f64::INFINITY),
            unloaded: Unloaded::default(),
        };
        (1..=count).map(of).collect()
    }

    #[test]
    fn many_lengths_are_shown_by_their_shares_and_the_longest_always() {
        let many = sizes(842);
        let shown = shown(&many);
        assert_eq!(shown.len(), MOST_LENGTHS);
        assert_eq!(shown.last().unwrap().size, 842);
        assert!(shown.windows(2).all(|two| two[0].size < two[1].size));
        assert_eq!(super::shown(&sizes(7)).len(), 7);
    }

    #[test]
    fn a_slowdown_without_a_link_rate_is_explained() {
        let of = |baseline, link| {
            let (short, sizes, slowdowns) = (None, Vec::new(), Vec::new());
            Lengths { metric: Metric::Response, short, sizes, slowdowns, baseline, link }
        };
        assert!(lacks_link(Slowdown::Serialisation, &of(Some(0), None)));
        assert!(!lacks_link(Slowdown::Serialisation, &of(Some(0), Some(1e9))));
        assert!(!lacks_link(Slowdown::Serialisation, &of(None, None)), "none was asked for");
        assert!(!lacks_link(Slowdown::UnloadedP50, &of(Some(0), None)));
    }

    #[test]
    fn a_slowdown_needs_both_times_and_has_the_error_of_both() {
        let mut of = sizes(1).remove(0);
        let rounds: Vec<Vec<f64>> = [29.0, 30.0, 31.0].map(|ns| vec![ns; 100]).to_vec();
        of.summary = summarize(&rounds, f64::INFINITY);
        assert_eq!(of.slowdown(Slowdown::UnloadedP50, 0.5), None);
        of.unloaded.p50_ns = Some(10.0);
        of.unloaded.min_ns = Some(10.0);
        let width = |of: &OfSize, by| {
            let (ratio, interval) = of.slowdown(by, 0.5).unwrap();
            // 30 ns is near the geometric mean of 29, 30 and 31.
            assert!((ratio - 3.0).abs() < 2e-3, "{ratio}");
            let interval = interval.unwrap();
            assert!(interval.low.0 < 3.0 && interval.high.0 > 3.0);
            interval.high.0 - interval.low.0
        };
        let alone = width(&of, Slowdown::UnloadedP50);
        of.unloaded.p50_interval = Some(Interval { low: Value(8.0), high: Value(12.0) });
        assert!(width(&of, Slowdown::UnloadedP50) > alone);
        assert_eq!(width(&of, Slowdown::UnloadedMin), alone, "of which no interval is known");
        assert_eq!(of.slowdown(Slowdown::UnloadedP50, 0.999), None, "n is too small");
    }
}
