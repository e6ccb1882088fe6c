//! Records of one folder as a history: the figures of each case over time, and where their level
//! changed.
//!
//! Takes the records in the order of time; must never read a file.

use super::comparison::{Condition, Pair, Side, between};
use super::scale::Scale;
use serde::Serialize;
use wiregauge_base::options::each_once;
use wiregauge_base::units::Bytes;
use wiregauge_figures::record::schema::Run;
use wiregauge_figures::view::compared::words;
use wiregauge_stats::change::{change_points, level_change};
use wiregauge_stats::compare::Estimate;
use wiregauge_stats::limit::Figure;
use wiregauge_stats::{Interval, Value};

/// A record and where it lies.
pub struct Entry {
    /// The name of its directory.
    pub directory: String,
    /// All of it.
    pub side: Side,
}

/// All figures over time.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    /// A figure of a case each.
    pub series: Vec<Series>,
}

/// A figure of a case over time.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Label of the runs.
    pub runs: String,
    /// The figure.
    pub figure: String,
    /// What it is in.
    #[serde(skip)]
    pub scale: Scale,
    /// Its values, in ns, B/s or messages/s, in the order of time.
    pub points: Vec<Point>,
    /// Where their level changed.
    pub changes: Vec<Change>,
}

/// A figure of one record.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The name of its directory.
    pub directory: String,
    /// When the run started.
    pub started: String,
    /// The value.
    pub value: Value,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
}

/// A change of the level.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The position of the first value of the new level.
    pub at: usize,
    /// The name of its directory.
    pub directory: String,
    /// The geometric mean of the values of the old level.
    pub before: Value,
    /// That of the new one.
    pub after: Value,
    /// The change as a share.
    pub relative: Value,
    /// Its 95 % interval, from the spread of the values around both levels.
    pub interval: Option<Interval>,
    /// What else differs from the record before.
    pub conditions: Vec<Condition>,
}

impl History {
    /// That of records in the order of time. `figures`: those to follow; none: p50 and p99 of what
    /// answers a run's question, or its rate.
    pub fn new(entries: &[Entry], figures: &[Figure]) -> History {
        let runs = entries.iter().flat_map(|entry| &entry.side.record.runs);
        let wanted = runs.flat_map(|run| {
            let usual = Figure::of_headline(&run.headline);
            let all = if figures.is_empty() { &usual } else { figures };
            let label = of_today(&run.label);
            all.iter().map(|figure| (label.clone(), *figure)).collect::<Vec<_>>()
        });
        let series = each_once(wanted).into_iter();
        let series = series.map(|(label, figure)| Series::new(entries, &label, figure));
        History { series: series.filter(|series| !series.points.is_empty()).collect() }
    }
}

/// Returns the label that this build gives a run of an older one, which had all sizes in bytes, and
/// `1 clients`.
fn of_today(label: &str) -> String {
    let words = words(label).into_iter().map(|word| match (word, word.strip_suffix(" B")) {
        ("1 clients", _) => "1 client".to_owned(),
        (_, Some(size)) => size.parse().map_or(word.to_owned(), |size| Bytes(size).to_string()),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Series {
    fn new(entries: &[Entry], label: &str, figure: Figure) -> Series {
        let found = entries.iter().filter_map(|entry| {
            let runs = &entry.side.record.runs;
            let run = runs.iter().find(|run| of_today(&run.label) == label)?;
            let Estimate { value, interval, .. } = figure.estimate(run)?;
            let started = entry.side.record.started.clone();
            let directory = entry.directory.clone();
            // Levels are of logarithms: what is lost or nothing has none.
            let is_level = value.is_finite() && value > 0.0;
            let point = Point { directory, started, value: Value(value), interval };
            is_level.then_some((entry, run, point))
        });
        let found: Vec<(&Entry, &Run, Point)> = found.collect();
        let logs: Vec<f64> = found.iter().map(|(.., point)| point.value.0.ln()).collect();
        let cuts = change_points(&logs);
        let ends = cuts.iter().skip(1).copied().chain([logs.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let change = |((&at, start), end): ((&usize, usize), usize)| {
            let (before, after) = (&logs[start..at], &logs[at..end]);
            let (relative, interval) = level_change(before, after)?;
            let level = |logs: &[f64]| Value((logs.iter().sum::<f64>() / logs.len() as f64).exp());
            let ((last, a, _), (first, b, _)) = (&found[at - 1], &found[at]);
            Some(Change {
                at,
                directory: first.directory.clone(),
                before: level(before),
                after: level(after),
                relative: Value(relative),
                interval,
                conditions: between(&last.side, &first.side, &Pair { a, b }),
            })
        };
        let changes = cuts.iter().zip(starts).zip(ends).filter_map(change).collect();
        Series {
            runs: label.into(),
            figure: figure.to_string(),
            scale: Scale::of(figure.metric()),
            points: found.into_iter().map(|(.., point)| point).collect(),
            changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_an_older_build_continues_the_series_of_its_case() {
        for (older, today) in [
            ("bandwidth tcp busy 65536 B", "bandwidth tcp busy 64 KiB"),
            ("latency tcp busy 64 B", "latency tcp busy 64 B"),
            ("load tcp busy 116 B of 1 clients", "load tcp busy 116 B of 1 client"),
            ("a: mpi busy 1048576 B reduce of 4 ranks", "a: mpi busy 1 MiB reduce of 4 ranks"),
            ("latency tcp busy 64 KiB", "latency tcp busy 64 KiB"),
        ] {
            assert_eq!(of_today(older), today);
        }
    }
}
