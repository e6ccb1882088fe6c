//! Runs of `rpc`: what the load did to requests of all lengths, and to each.

use super::number::{self, THOUSANDS};
use super::{Cell, Grid, own_cells, own_heads};
use crate::plan::Rpc;
use crate::plan::rpc::Slowdown;
use crate::record::lengths::{Lengths, OfSize};
use crate::record::schema::{Metric, RateMetric, Record, Run};

/// Lengths of one run that a table has; the record has all.
const MOST_LENGTHS: usize = 20;
/// Quantiles of each length that a table has.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// Bytes per second as 10^9 bits.
const GIGABITS: f64 = 8e-9;

/// The runs with what they send, and what the record says of it.
fn runs(record: &Record) -> impl Iterator<Item = (&Run, &Rpc, &Lengths)> {
    record.runs.iter().filter_map(|run| Some((run, run.case.rpc.as_ref()?, run.lengths.as_ref()?)))
}

/// What tells a run from the others.
fn place(run: &Run, rpc: &Rpc) -> [Cell; 3] {
    let control = run.case.settings.text("congestion");
    let transport = run.case.transport.name();
    [
        control.map_or(transport.to_string(), |name| format!("{transport} {name}")).into(),
        run.case.wait.name().into(),
        rpc.workload.label().into(),
    ]
}

/// What a run was loaded with.
fn load(run: &Run, rpc: &Rpc) -> Cell {
    let offered = run.case.schedule.rate();
    match offered {
        _ if rpc.unloaded => "unloaded".into(),
        Some(rate) => format!("{:.3} Gb/s", rate.0 * rpc.workload.mean() * GIGABITS).into(),
        None => format!("{} clients", run.case.load.clients).into(),
    }
}

/// All requests of each run; `None` where there are no such runs.
pub fn table(record: &Record) -> Option<String> {
    let by = definition(record)?;
    let mut grid = Grid::new(own_heads(record).chain([
        "transport",
        "wait",
        "workload",
        "load",
        "ports",
        "offered k/s",
        "answered k/s",
        "±",
        "Gb/s",
        "±",
        "p50 us",
        "±",
        "p99 us",
        "±",
        "p99.9 us",
        "±",
        "slowdown",
        "±",
        "short p50 us",
        "±",
        "short p99 us",
        "±",
        "n",
        "lost",
    ]));
    for (run, rpc, lengths) in runs(record) {
        let main = run.summary(lengths.metric);
        let rate = |metric, scale| number::rate(Some(run), metric, scale);
        let [offered, _] = rate(RateMetric::OfferedRate, THOUSANDS);
        let slowdown = lengths.slowdowns.iter().find(|one| one.by == by).map(|one| &one.mean);
        let slowdown = slowdown.filter(|_| !rpc.unloaded).map_or_else(
            || [Cell::none(), Cell::none()],
            |mean| number::with_error(mean.value, mean.interval, 1.0),
        );
        let short = run.summary(Metric::Short);
        let ports = match rpc.connections {
            1 => format!("{}:{}", run.case.threads, rpc.server_ports),
            each => format!("{}:{} x {each}", run.case.threads, rpc.server_ports),
        };
        let head = [load(run, rpc), ports.into(), offered];
        let figures = [
            rate(RateMetric::MessageRate, THOUSANDS),
            rate(RateMetric::Bandwidth, GIGABITS),
            number::quantile(main, 0.5),
            number::quantile(main, 0.99),
            number::quantile(main, 0.999),
            slowdown,
            number::quantile(short, 0.5),
            number::quantile(short, 0.99),
        ];
        let rest = [Cell::count(main.map_or(0, |main| main.count)), Cell::count(run.counts.lost)];
        let cells = own_cells(record, run).chain(place(run, rpc)).chain(head);
        grid.row(cells.chain(figures.into_iter().flatten()).chain(rest));
    }
    let told = format!("slowdown: the mean over all answered requests of {}\n", told(by));
    (!grid.is_empty()).then(|| format!("{grid}{told}"))
}

/// Requests of each length; `None` where no run has several.
pub fn lengths(record: &Record) -> Option<String> {
    let by = definition(record)?;
    let mut grid = Grid::new(own_heads(record).chain([
        "transport",
        "wait",
        "workload",
        "load",
        "size B",
        "share %",
        "p50 us",
        "±",
        "p99 us",
        "±",
        "p99.9 us",
        "±",
        "unloaded us",
        "±",
        "slowdown p50",
        "±",
        "slowdown p99",
        "±",
        "slowdown p99.9",
        "±",
        "n",
        "lost",
    ]));
    let mut is_cut = false;
    // The unloaded times stand beside those that are held against them.
    let several = |rpc: &Rpc| rpc.workload.steps.len() > 1 && !rpc.unloaded;
    for (run, rpc, lengths) in runs(record).filter(|(_, rpc, _)| several(rpc)) {
        let shown = shown(&lengths.sizes);
        is_cut |= shown.len() < lengths.sizes.len();
        for of in shown {
            let head =
                [load(run, rpc), Cell::count(of.size.into()), Cell::Number(percent(of.share))];
            let times = QUANTILES.map(|p| number::quantile(Some(&of.summary), p));
            let slowdowns = QUANTILES.map(|p| slower(of, by, p));
            let rest = [Cell::count(of.summary.count), Cell::count(of.summary.lost)];
            let figures = times.into_iter().flatten().chain(unloaded(of, by));
            let figures = figures.chain(slowdowns.into_iter().flatten());
            let cells = own_cells(record, run).chain(place(run, rpc)).chain(head);
            grid.row(cells.chain(figures).chain(rest));
        }
    }
    let cut = match is_cut {
        true => format!("of more than {MOST_LENGTHS} lengths some are shown; the record has all\n"),
        false => String::new(),
    };
    (!grid.is_empty()).then(|| format!("{grid}{cut}"))
}

/// The definition of the runs' slowdowns; `None`: there are no such runs.
fn definition(record: &Record) -> Option<Slowdown> {
    runs(record).next().map(|(_, rpc, _)| rpc.slowdown)
}

/// A definition in words.
pub fn told(by: Slowdown) -> &'static str {
    match by {
        Slowdown::UnloadedP50 => "its time over the median of unloaded requests of its length",
        Slowdown::UnloadedMin => "its time over the shortest of unloaded requests of its length",
        Slowdown::Serialisation => {
            "its time over that of the shortest unloaded request and both messages on the link"
        }
    }
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

/// A quantile over what it is held against, and its error.
fn slower(of: &OfSize, by: Slowdown, p: f64) -> [Cell; 2] {
    match of.slowdown(by, p) {
        Some((ratio, interval)) => number::with_error(ratio, interval, 1.0),
        None => [Cell::none(), Cell::none()],
    }
}

/// What it is held against in us, and its error where that is known.
fn unloaded(of: &OfSize, by: Slowdown) -> [Cell; 2] {
    let own = of.unloaded.p50_interval.filter(|_| by == Slowdown::UnloadedP50);
    match of.unloaded.by(by) {
        Some(ns) => number::with_error(ns, own, 1e-3),
        None => [Cell::none(), Cell::none()],
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::lengths::Unloaded;
    use crate::stats::{Interval, Value, summarize};

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
    fn a_slowdown_needs_both_times_and_has_the_error_of_both() {
        let mut of = sizes(1).remove(0);
        let rounds: Vec<Vec<f64>> = [29.0, 30.0, 31.0].map(|ns| vec![ns; 100]).to_vec();
        of.summary = summarize(&rounds, f64::INFINITY);
        assert_eq!(of.slowdown(Slowdown::UnloadedP50, 0.5), None);
        of.unloaded.p50_ns = Some(10.0);
        of.unloaded.min_ns = Some(10.0);
        let width = |of: &OfSize, by| {
            let (ratio, interval) = of.slowdown(by, 0.5).unwrap();
            assert_eq!(ratio, 3.0);
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
