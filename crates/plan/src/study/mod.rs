//! Studies: series of cases, the graphs that show them, and the published figures beside them.
//!
//! [`mod@file`] reads what was written. What stands here goes into the record, so that a report is
//! made without the file and without the references.

mod axis;
pub mod file;
pub mod group;
pub mod parts;

pub use axis::Axis;
pub use group::impacts;

use super::request::{MOST_IN_ALL, in_all, refuse};
use super::{CasesSoFar, Plan, Request, UsageError};
use group::Groups;
use serde::{Deserialize, Serialize};
use wiregauge_base::units::{Bytes, Span};

/// What a study adds to a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Its name: of a shipped one as listed, else of its file.
    pub name: String,
    /// What it asks, on one line.
    pub title: String,
    /// What it reproduces; `None`: nothing that was published.
    pub source: Option<String>,
    /// Whether it ran shorter than it is written.
    pub quick: bool,
    /// Which cases belong together.
    pub series: Vec<Series>,
    /// What is drawn of them.
    pub graphs: Vec<Graph>,
}

/// Cases that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Positions of its cases in the plan, which are the numbers of their runs.
    pub cases: Vec<u32>,
}

wiregauge_base::options::named_enum! {
    /// How a graph shows its series.
    pub enum GraphKind {
        /// The share of messages no slower than x.
        Cdf = "cdf",
        /// How many messages took how long.
        Histogram = "histogram",
        /// A figure of each series, side by side.
        Bars = "bars",
        /// A figure over the size of the message.
        AgainstSize = "against-size",
        /// A figure over the number of values of a sample.
        AgainstValues = "against-values",
        /// A figure over the rate that the schedule intends.
        AgainstRate = "against-rate",
        /// A figure over the rate of what was answered, or arrived.
        AgainstAnswered = "against-answered",
        /// A figure over the number of clients of a closed loop.
        AgainstClients = "against-clients",
        /// A figure over the number of connections.
        AgainstConnections = "against-connections",
        /// A figure over the rate and the number of values.
        Surface = "surface",
    }
}

wiregauge_base::options::named_enum! {
    /// What stands above and below a point.
    #[derive(Default)]
    pub enum Spread {
        /// The 95 % interval of the figure.
        #[default]
        Interval = "interval",
        /// From p10 to p90 of the samples.
        Deciles = "deciles",
    }
}

/// One graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Its title.
    pub title: String,
    /// How it is drawn.
    pub kind: GraphKind,
    /// The metric by its name in the record.
    pub metric: String,
    /// More metrics in the same unit, each shown for each series.
    #[serde(default)]
    pub also: Vec<String>,
    /// The quantile of a latency that is shown, but by `cdf` and `histogram`; 1: the maximum.
    pub quantile: f64,
    /// Shows the share of messages whose latency is above the study's threshold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub above: bool,
    /// Shows the figure of the first series over that of the second, for each of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<[String; 2]>,
    /// Shows the figure of the first series less those of all others, for each of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub less: Vec<Vec<String>>,
    /// What stands above and below a point of a latency against something.
    pub spread: Spread,
    /// Shows a rate of both ways at once as that of one: half of the sum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_way: bool,
    /// Shows messages of this size only; `None`: of all sizes.
    pub size: Option<Bytes>,
    /// Names of the series that it shows.
    pub series: Vec<String>,
    /// Published figures beside them.
    pub references: Vec<Reference>,
    /// Why a reference that was asked for is not drawn, a sentence each.
    pub notes: Vec<String>,
}

/// Published figures of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// A short name for the legend.
    pub name: String,
    /// The publication, and where the figures stand in it.
    pub source: String,
    /// What was measured on.
    pub system: String,
    /// The series that they are to be compared with; `None`: all of the graph.
    pub beside: Option<String>,
    /// Which quantile of a latency they are.
    #[serde(default = "median")]
    pub quantile: f64,
    /// The figures.
    pub points: Vec<Point>,
    /// What a reader must know of them, a sentence each.
    pub notes: Vec<String>,
}

/// One published figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Payload of a message; `None`: the figure holds for all.
    pub size: Option<Bytes>,
    /// The figure in ns, B/s or msg/s, as the graph's metric has it.
    pub value: f64,
}

/// References that are older than other quantiles are medians.
fn median() -> f64 {
    0.5
}

impl Graph {
    /// What its figures are, as published ones must be too.
    pub fn what(&self) -> String {
        let shows = match () {
            _ if self.above => Some(Shows::Above),
            _ if !self.over.is_empty() => Some(Shows::Ratio),
            _ if !self.less.is_empty() => Some(Shows::Difference),
            _ => None,
        };
        what(&self.metric, shows)
    }

    /// The series over which the figure of a series stands.
    pub fn base_of(&self, series: &str) -> Option<&str> {
        self.over.iter().find(|[own, _]| own == series).map(|[_, base]| base.as_str())
    }

    /// The series whose figures are taken off the figure of a series.
    pub fn parts_of(&self, series: &str) -> &[String] {
        let mut all = self.less.iter().filter_map(|all| all.split_first());
        all.find(|(own, _)| *own == series).map_or(&[], |(_, parts)| parts)
    }

    /// All metrics that it shows.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.metric).chain(&self.also).map(String::as_str)
    }
}

wiregauge_base::options::named_enum! {
    /// What figures of a latency are, where they are not the times of messages.
    pub enum Shows {
        /// The share of messages above a threshold.
        Above = "above",
        /// The ratio of those of two series.
        Ratio = "ratio",
        /// That of one series less those of others.
        Difference = "difference",
    }
}

/// What figures of a metric are: itself, or what they show instead.
pub(super) fn what(metric: &str, shows: Option<Shows>) -> String {
    match shows {
        Some(Shows::Above) => format!("{metric} above the threshold"),
        Some(Shows::Ratio) => format!("the ratio of two {metric}"),
        Some(Shows::Difference) => format!("{metric} less that of others"),
        None => metric.to_owned(),
    }
}

impl Study {
    /// The series of a case.
    pub fn series_of(&self, case: u32) -> Option<&Series> {
        self.series.iter().find(|series| series.cases.contains(&case))
    }

    /// Puts a case that was added while the study ran into the series from which it follows.
    pub fn adopt(&mut self, origin: u32, case: u32) {
        let own = self.series.iter_mut().find(|series| series.cases.contains(&origin));
        own.into_iter().for_each(|series| series.cases.push(case));
    }

    /// The cases of a series.
    pub fn cases(&self, name: &str) -> &[u32] {
        let found = self.series.iter().find(|series| series.name == name);
        found.map_or(&[], |series| &series.cases)
    }
}

/// Rounds of a quick run at most.
const QUICK_ROUNDS: u32 = 3;
/// What a quick run divides messages, times and warm-ups by.
const QUICK: u64 = 10;
/// The shortest round of a quick run in ns where nobody knows what a time brings and a quantile
/// beyond the median is shown: p99 needs three such rounds of 3400 messages/s.
const QUICK_TAIL_NS: u64 = 100_000_000;

/// One plan of all requests, interleaved; each is given with its series. Rounds and threshold are
/// the same in all, since the study has them once.
pub fn plan(mut study: Study, requests: &[(String, Request)]) -> Result<Plan, UsageError> {
    let (mut so_far, mut first) = (CasesSoFar::default(), None);
    let mut groups = Groups::default();
    let mut hosts = group::hosts(requests);
    requests.iter().try_for_each(|(_, request)| request.asked.check_in_study())?;
    for (name, request) in requests {
        let mut own = request.clone().plan()?;
        group::renumber(&mut own, &mut hosts);
        let (cases, beside) = (std::mem::take(&mut own.cases), std::mem::take(&mut own.concurrent));
        groups.check(request, &cases, &beside)?;
        let numbers = so_far.add(cases, &beside);
        groups.add(request, numbers.clone());
        first.get_or_insert(own);
        match study.series.iter_mut().find(|series| series.name == *name) {
            Some(series) => series.cases.extend(numbers),
            None => study.series.push(Series { name: name.clone(), cases: numbers.collect() }),
        }
    }
    let Some(first) = first else {
        return refuse("the study has nothing to measure: write at least one entry");
    };
    let CasesSoFar { mut cases, mut concurrent } = so_far;
    concurrent.extend(groups.concurrent(&mut cases)?);
    let mut plan = Plan { cases, concurrent, hosts, name: "run".into(), ..first };
    if study.quick {
        hurry(&mut plan, &study);
    }
    let in_all = in_all(&plan.cases, plan.rounds);
    let (cases, rounds) = (plan.cases.len(), plan.rounds.most);
    ensure!(
        in_all <= MOST_IN_ALL,
        "{cases} cases in up to {rounds} rounds are {in_all}; at most {MOST_IN_ALL} are allowed: \
         write fewer sizes, series or rounds"
    );
    plan.study = Some(study);
    Ok(plan)
}

/// Cuts a plan down to a tenth of its messages and times. What the quantiles of its graphs need is
/// left, where the study has it: a graph of points without a value would not show that it works.
fn hurry(plan: &mut Plan, study: &Study) {
    plan.rounds.most = plan.rounds.most.min(QUICK_ROUNDS);
    plan.rounds.least = plan.rounds.least.min(plan.rounds.most);
    let rounds = u64::from(plan.rounds.least.max(1));
    for (number, case) in (0..).zip(&mut plan.cases) {
        let series = study.series_of(number).map(|series| &series.name);
        let shows = |graph: &&Graph| series.is_some_and(|name| graph.series.contains(name));
        let quantiles = study.graphs.iter().filter(shows).map(|graph| graph.quantile);
        let samples = quantiles.map(samples_of).max().unwrap_or_default();
        case.warmup /= QUICK;
        case.part.after = Span(case.part.after.0 / QUICK);
        let least = samples.div_ceil(rounds) + 1;
        let tenth = |whole: u64, least: u64| (whole / QUICK).max(least.min(whole)).max(1);
        case.bound.count = case.bound.count.map(|count| tenth(count, least));
        let seconds = case.schedule.rate().map(|rate| (least + case.warmup) as f64 / rate.0);
        let unknown = if samples > samples_of(0.5) { QUICK_TAIL_NS } else { 0 };
        let least = seconds.map_or(unknown, |seconds| (seconds * 1e9) as u64);
        case.bound.time = case.bound.time.map(|time| Span(tenth(time.0, least)));
    }
}

/// The fewest samples that a quantile is shown of.
fn samples_of(quantile: f64) -> u64 {
    if quantile >= 1.0 {
        return 1;
    }
    (10.0 / quantile.min(1.0 - quantile)).ceil() as u64
}
