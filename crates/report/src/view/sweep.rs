//! Figures against the size of the message, or the number of connections, where a record has enough
//! of them; and the cliff: the step at which connections become too many.

use super::figures::{self, Figure};
use crate::model::{
    Axis, Data, Mark, Plot, Point, Section, Series, Unit, bounds, distinct, fields,
};
use crate::number::{THOUSANDS, US, bytes, count, interval, pace, short};
use crate::scale::Scale;
use std::collections::BTreeSet;
use wiregauge_base::options::grouped;
use wiregauge_base::units::counted;
use wiregauge_figures::record::schema::{RateMetric, Record, Run};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::Named;
use wiregauge_stats::Value;
use wiregauge_stats::cliff::{self, CLIFF, Cliff};

/// Fewest places on the axis that make a curve.
const LEAST: usize = 3;

/// A quantity that grows from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    Size,
    Connections,
}

impl Along {
    /// The name of the section, and its title.
    fn titles(self) -> [&'static str; 2] {
        match self {
            Along::Size => ["sweep", "By message size"],
            Along::Connections => ["connections", "By number of connections"],
        }
    }

    /// The word behind "against", and the column of the data.
    fn words(self) -> [&'static str; 2] {
        match self {
            Along::Size => ["size", "size_bytes"],
            Along::Connections => ["connections", "connections"],
        }
    }

    fn place(self, run: &Run) -> u64 {
        match self {
            Along::Size => run.case.size.0,
            Along::Connections => run.case.topology.connections_each().into(),
        }
    }

    fn axis(self) -> Axis {
        match self {
            Along::Size => Axis::log("message payload size", Unit::Bytes),
            Along::Connections => Axis::log("connections", Unit::Count),
        }
    }

    fn text(self, place: u64) -> String {
        match self {
            Along::Size => bytes(place),
            Along::Connections => counted(place, "connection"),
        }
    }
}

/// The curves of a record along one axis.
struct Curves<'a> {
    record: &'a Record,
    along: Along,
    /// True where the record's runs have several sizes, patterns, points of a load or threads.
    differs: Differs,
}

/// The other properties than transport and wait mode in which runs of a record differ.
#[derive(Clone, Copy)]
struct Differs {
    size: bool,
    pattern: bool,
    point: bool,
    threads: bool,
}

impl Differs {
    fn new(record: &Record) -> Differs {
        Differs {
            size: differ(record, |run| run.case.size),
            pattern: differ(record, |run| run.case.pattern.clone()),
            point: differ(record, |run| run.case.point.clone()),
            threads: differ(record, |run| run.case.threads()),
        }
    }
}

fn differ<T: Ord>(record: &Record, of_run: impl Fn(&Run) -> T) -> bool {
    record.runs.iter().map(of_run).collect::<BTreeSet<T>>().len() > 1
}

/// Returns a section of figures against the size, and one against the number of connections, each
/// where the record has enough of them: a plot of latencies and one of each rate.
pub fn sections(record: &Record) -> Vec<Section> {
    let along = [Along::Size, Along::Connections].into_iter();
    along.filter_map(|along| Curves::new(record, along).section()).collect()
}

/// Returns a sentence for each curve over connections: its cliff, or that it has none.
pub fn answer(record: &Record) -> Vec<String> {
    let curves = Curves::new(record, Along::Connections);
    let times = curves.groups(curves.times());
    let medians = times.iter().filter(|group| group[0].name == MEDIAN);
    let cliffs = medians.map(|group| curves.sentence(group, Scale::Time));
    let rates = curves.groups(curves.rates(RateMetric::MessageRate));
    let fallen = rates.iter().filter(|group| curves.cliff(group, Scale::Messages).is_some());
    cliffs.chain(fallen.map(|group| curves.sentence(group, Scale::Messages))).collect()
}

/// The quantile whose cliff is looked for.
const MEDIAN: &str = "p50";

impl<'a> Curves<'a> {
    fn new(record: &'a Record, along: Along) -> Curves<'a> {
        Curves { record, along, differs: Differs::new(record) }
    }

    fn times(&self) -> Vec<Figure<'a>> {
        self.record.runs.iter().flat_map(figures::quantiles).collect()
    }

    fn rates(&self, metric: RateMetric) -> Vec<Figure<'a>> {
        self.record.runs.iter().filter_map(|run| figures::rate(run, metric)).collect()
    }

    fn section(&self) -> Option<Section> {
        let [id, title] = self.along.titles();
        let mut section = Section::new(id, title);
        let bars = "Bars: 95 % intervals.";
        let note = format!("p50 solid, p99 dashed. {bars}");
        self.add(&mut section, ["latency", "Latency"], note, Scale::Time, self.times());
        let unit = byte_rate::or(ByteRateUnit::Megabytes);
        let note = format!("{} = {} of payload. {bars}", unit.name(), unit.meaning());
        let found = self.rates(RateMetric::Bandwidth);
        self.add(&mut section, ["bandwidth", "Bandwidth"], note, Scale::Bytes, found);
        let found = self.rates(RateMetric::MessageRate);
        self.add(&mut section, ["rate", "Message rate"], bars.into(), Scale::Messages, found);
        section.filled()
    }

    /// Returns all in which runs of different curves differ.
    fn who(&self, figure: &Figure<'_>) -> String {
        let case = &figure.run.case;
        let ends = format!("{} {}", case.transport, case.wait.name());
        if self.along == Along::Size {
            let pace =
                case.schedule.rate().map_or(String::new(), |rate| format!(" at {}", pace(rate.0)));
            return match case.topology.connections_each() {
                1 => ends + &pace,
                several => format!("{ends}{pace} {several} connections"),
            };
        }
        let Differs { size, pattern, point, threads } = self.differs;
        let words = [
            pattern.then(|| case.pattern.clone()),
            Some(ends),
            size.then(|| case.size.to_string()),
            case.point.clone().filter(|_| point),
            threads.then(|| counted(u64::from(case.threads()), "thread")),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn place(&self, figure: &Figure<'_>) -> u64 {
        self.along.place(figure.run)
    }

    /// Returns those that differ in nothing but their place, by it.
    fn groups<'b>(&self, figures: Vec<Figure<'b>>) -> Vec<Vec<Figure<'b>>> {
        let named = figures.into_iter().map(|figure| (self.who(&figure), figure));
        let groups = grouped(named, |(who, a), (other, b)| a.name == b.name && who == other);
        let groups = groups.into_iter().map(|group| {
            let mut group: Vec<_> = group.into_iter().map(|(_, figure)| figure).collect();
            group.sort_by_key(|figure| self.place(figure));
            group
        });
        groups.filter(|group| self.places(group) >= LEAST).collect()
    }

    /// Returns the number of different places of figures that are in their order.
    fn places(&self, group: &[Figure<'_>]) -> usize {
        group.chunk_by(|a, b| self.place(a) == self.place(b)).count()
    }

    fn add(
        &self,
        section: &mut Section,
        [id, title]: [&str; 2],
        note: String,
        scale: Scale,
        figures: Vec<Figure<'_>>,
    ) {
        let groups = self.groups(figures);
        if groups.is_empty() {
            return;
        }
        let mut names: Vec<String> = groups.iter().map(|group| self.who(&group[0])).collect();
        names.dedup();
        let colour = |who: &str| names.iter().position(|other| other == who);
        let series = groups.iter().map(|group| {
            let (who, name) = (self.who(&group[0]), shown(&group[0], scale));
            Series {
                colour: colour(&who),
                name: format!("{who} {name}").trim().into(),
                dash: usize::from(name == "p99"),
                points: group.iter().filter_map(|figure| self.point(figure, scale)).collect(),
                ..Series::default()
            }
        });
        let series: Vec<Series> = series.collect();
        let ticks = distinct(series.iter().flat_map(|one| &one.points).map(|point| point.x));
        let [against, _] = self.along.words();
        let id = format!("{}-{id}", self.along.titles()[0]);
        let marks = groups.iter().filter(|group| shown(&group[0], scale) != "p99");
        let marks = marks.filter_map(|group| {
            let colour = colour(&self.who(&group[0]));
            Some(Mark { colour, ..self.mark(group, scale)? })
        });
        let plot = Plot {
            x: Axis { ticks, ..self.along.axis() },
            y: match scale {
                Scale::Time => Axis::log("latency", Unit::Time),
                _ => Axis { log: true, ..scale.axis() },
            },
            series,
            marks: marks.collect(),
            ..Plot::new(id, format!("{title} against {against}"), note, 320)
        };
        section.draw(plot, self.data(&groups, scale));
    }

    fn point(&self, figure: &Figure<'_>, scale: Scale) -> Option<Point> {
        let x = self.place(figure) as f64;
        let y = figure.value;
        if !(x > 0.0 && y > 0.0 && y.is_finite()) {
            return None;
        }
        let interval = interval(y, figure.interval, |bound| scale.text(bound));
        let place = self.along.text(self.place(figure));
        let text = format!("{place}: {} {interval}, n = {}", scale.text(y), count(figure.count));
        Some(Point { x, y, text, ..Point::default() }.within(figure.interval))
    }

    /// Returns the cliff of a curve over connections.
    fn cliff(&self, group: &[Figure<'_>], scale: Scale) -> Option<Cliff> {
        if self.along != Along::Connections {
            return None;
        }
        let points = group.iter().map(|figure| cliff::Point {
            x: self.place(figure) as f64,
            value: figure.value,
            interval: figure.interval,
        });
        cliff::cliff(&points.collect::<Vec<_>>(), scale != Scale::Time)
    }

    /// Returns the line at which a curve has its cliff.
    fn mark(&self, group: &[Figure<'_>], scale: Scale) -> Option<Mark> {
        let found = self.cliff(group, scale)?;
        let text = self.sentence(group, scale);
        // Between the two, whose places stand in logarithmic steps.
        let x = (found.before.x * found.behind.x).sqrt();
        let y = found.before.value.max(found.behind.value);
        Some(Mark { x: Some(x), y: Some(y), text, ..Mark::default() })
    }

    /// Returns the sentence about a curve over connections.
    fn sentence(&self, group: &[Figure<'_>], scale: Scale) -> String {
        let who = self.who(&group[0]);
        let [what, becomes] = match scale {
            Scale::Time => [group[0].name.as_str(), "grows"],
            _ => ["the message rate", "falls"],
        };
        let places = [group.first(), group.last()].map(|one| one.map_or(0, |one| self.place(one)));
        let Some(Cliff { before, behind, factor, least }) = self.cliff(group, scale) else {
            let [first, last] = places.map(count);
            return format!(
                "{who}: no cliff is shown from {first} to {last} connections: at no step {what} \
                 {becomes} by a factor of {CLIFF} beyond the intervals."
            );
        };
        let [first, last] = [before, behind].map(|point| with_error(&point, scale));
        format!(
            "{who}: cliff between {} and {} connections: {what} {becomes} by a factor of {} (at \
             least {}), from {first} to {last}.",
            count(before.x as u64),
            count(behind.x as u64),
            short(factor),
            short(least)
        )
    }

    fn data(&self, groups: &[Vec<Figure<'_>>], scale: Scale) -> Data {
        let rows = groups.iter().flatten().map(|figure| {
            let Figure { run, value, interval, count, .. } = figure;
            let [low, high] = bounds(*interval);
            let place = self.place(figure);
            let who = self.who(figure);
            let name = shown(figure, scale);
            fields![run.index, who, name, place, Value(*value), low, high, count]
        });
        let [_, column] = self.along.words();
        let head = format!("run transport_wait figure {column} value low high count");
        Data::new(&head, rows)
    }
}

/// Returns a figure with its error.
fn with_error(point: &cliff::Point, scale: Scale) -> String {
    let (factor, unit) = match scale {
        Scale::Time => (US, "us"),
        _ => (THOUSANDS, "k msg/s"),
    };
    let cliff::Point { value, interval, .. } = *point;
    Named { name: String::new(), value, interval }.text(factor, unit)
}

/// The name of a quantile; a plot of a rate shows no other.
fn shown<'a>(figure: &'a Figure<'_>, scale: Scale) -> &'a str {
    if scale == Scale::Time { &figure.name } else { "" }
}
