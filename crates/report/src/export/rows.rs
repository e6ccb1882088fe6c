//! From stored messages to the rows of a table: one measured value each, or one message with its
//! stamps.

use std::collections::BTreeMap;
use wiregauge_base::options::{Named, each_once};
use wiregauge_figures::record::schema::{Record, Run};
use wiregauge_plan::{Axis, written::escaped};
use wiregauge_sample::{Flags, RoundSamples, Sample};
use wiregauge_stats::{Metric, RateMetric};

/// The outcome of a message that arrived.
const RECEIVED: &str = "received";

/// What one value of the samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Observable {
    /// A metric of a message.
    Metric(Metric),
    /// From one stamp of a flow (a thread and a direction) of `bandwidth` to the next.
    Interarrival,
}

/// Those that a single message has. `short` is the response, or the round trip, of some.
impl Named for Observable {
    const ALL: &'static [Observable] = &[
        Observable::Metric(Metric::HalfRtt),
        Observable::Metric(Metric::Rtt),
        Observable::Metric(Metric::OneWay),
        Observable::Metric(Metric::Response),
        Observable::Metric(Metric::Service),
        Observable::Metric(Metric::Lateness),
        Observable::Metric(Metric::Transfer),
        Observable::Metric(Metric::Jitter),
        Observable::Metric(Metric::Collective),
        Observable::Metric(Metric::AfterBarrier),
        Observable::Metric(Metric::Post),
        Observable::Metric(Metric::Complete),
        Observable::Interarrival,
    ];

    fn name(self) -> &'static str {
        match self {
            Observable::Metric(metric) => metric.name(),
            Observable::Interarrival => "interarrival",
        }
    }
}

impl Observable {
    /// Whether it is the time from one stamp to another: half of one is not, nor a difference.
    pub(super) fn is_span(self) -> bool {
        !matches!(self, Observable::Metric(Metric::HalfRtt | Metric::Jitter))
    }
}

impl From<Metric> for Observable {
    fn from(metric: Metric) -> Observable {
        Observable::Metric(metric)
    }
}

/// What all rows of a run have in common.
pub(super) struct RunContext {
    pub run: u32,
    pub case: String,
    pub pattern: String,
    pub transport: &'static str,
    pub wait: &'static str,
    /// Messages per second of the schedule; NaN: none.
    pub offered_per_s: f64,
    /// Clients of a closed loop.
    pub clients: Option<i64>,
    /// What its samples show, its main metric first.
    pub observables: Vec<Observable>,
    /// Whether the server takes the stamp of a receipt.
    server_receives: bool,
    /// Messages that a row stands for, by round.
    strides: BTreeMap<u32, u64>,
}

impl RunContext {
    pub fn new(run: &Run) -> RunContext {
        let is_rate = RateMetric::from_name(&run.headline).is_some();
        let first = match is_rate {
            true => Some(Observable::Interarrival),
            false => Observable::from_name(&run.headline),
        };
        let metrics = run.figures.iter().map(|figure| Observable::Metric(figure.metric));
        let found = first.into_iter().chain(metrics);
        let observables = each_once(found.filter(|one| Observable::ALL.contains(one)));
        let is_one_way = observables.contains(&Observable::Metric(Metric::OneWay));
        RunContext {
            run: run.index,
            case: escaped(&run.label),
            pattern: escaped(&run.case.pattern),
            transport: run.case.transport.name(),
            wait: run.case.wait.name(),
            offered_per_s: run.case.on_axis(Axis::Rate).unwrap_or(f64::NAN),
            clients: run.case.on_axis(Axis::Clients).map(|clients| clients as i64),
            server_receives: (is_one_way || is_rate) && !run.case.is_one_sided,
            strides: run.rounds.iter().map(|round| (round.index, round.stride.max(1))).collect(),
            observables,
        }
    }

    /// Every run of a record by its number.
    pub fn of_record(record: &Record) -> BTreeMap<u32, RunContext> {
        record.runs.iter().map(|run| (run.index, RunContext::new(run))).collect()
    }

    /// Of these observables those that the run has; if none are given, its main one.
    pub fn chosen(&self, wanted: &[Observable]) -> Vec<Observable> {
        match wanted {
            [] => self.observables.first().copied().into_iter().collect(),
            _ => wanted.iter().copied().filter(|one| self.observables.contains(one)).collect(),
        }
    }

    fn receiver(&self, sample: &Sample) -> &'static str {
        role(self.server_receives != sample.flags.has(Flags::REVERSE))
    }
}

fn role(is_server: bool) -> &'static str {
    if is_server { "server" } else { "client" }
}

/// A row: a message, and the value that was observed of it where rows are values.
pub(super) struct Row<'a> {
    pub context: &'a RunContext,
    pub round: u32,
    pub sample: &'a Sample,
    /// The end that took the last stamp.
    pub role: &'static str,
    pub metric: &'static str,
    /// When the observed time began.
    pub time_ns: f64,
    pub value_ns: f64,
}

impl<'a> Row<'a> {
    /// A message with its stamps; the end is the one that received it.
    pub fn of_stamps(context: &'a RunContext, round: u32, sample: &'a Sample) -> Row<'a> {
        let role = context.receiver(sample);
        Row { context, round, sample, role, metric: "", time_ns: f64::NAN, value_ns: f64::NAN }
    }

    /// Messages that it stands for.
    pub fn messages(&self) -> u64 {
        self.context.strides.get(&self.round).copied().unwrap_or(1)
    }

    /// Whether the message arrived.
    pub fn has_arrived(&self) -> bool {
        self.outcome() == RECEIVED
    }

    /// What became of the message.
    pub fn outcome(&self) -> &'static str {
        let outcomes = [
            (Flags::MISSED, "missed"),
            (Flags::UNSENT, "unsent"),
            (Flags::UNFINISHED, "unfinished"),
            (Flags::LOST, "lost"),
        ];
        let found = outcomes.iter().find(|(flag, _)| self.sample.flags.has(*flag));
        found.map_or(RECEIVED, |(_, outcome)| outcome)
    }
}

/// Observes one metric of a run, part by part: what needs the message before remembers it.
pub(super) struct Observer {
    observable: Observable,
    /// The round that `before` is of.
    of: (u32, u32),
    /// The receipt before, and of a jitter the one-way time, by flow.
    before: BTreeMap<(u32, bool), f64>,
}

impl Observer {
    pub fn new(observable: Observable) -> Observer {
        Observer { observable, of: (0, 0), before: BTreeMap::new() }
    }

    /// The values of a part of a round. Samples without one leave no row.
    pub fn rows<'a>(&mut self, context: &'a RunContext, part: &'a RoundSamples) -> Vec<Row<'a>> {
        if self.of != (part.run, part.round) {
            self.of = (part.run, part.round);
            self.before.clear();
        }
        let observe = |sample| {
            let (time_ns, value_ns) = self.value(sample)?;
            let role = match self.observable {
                // The sender has both stamps.
                Observable::Metric(Metric::Lateness | Metric::Post | Metric::Complete) => {
                    role(sample.flags.has(Flags::REVERSE))
                }
                _ => context.receiver(sample),
            };
            let metric = self.observable.name();
            Some(Row { context, round: part.round, sample, role, metric, time_ns, value_ns })
        };
        part.samples.iter().filter_map(observe).collect()
    }

    /// When an observed time began, and how long it was.
    fn value(&mut self, sample: &Sample) -> Option<(f64, f64)> {
        let Observable::Metric(metric) = self.observable else {
            if sample.receive_ns.is_nan() {
                return None;
            }
            let flow = (sample.thread, sample.flags.has(Flags::REVERSE));
            let before = self.before.insert(flow, sample.receive_ns)?;
            return Some((before, sample.receive_ns - before));
        };
        let value = metric.of_sample(sample)?;
        let start = match metric {
            Metric::Response | Metric::Lateness => sample.intended_ns,
            Metric::Transfer => sample.send_ns,
            _ => sample.submit_ns,
        };
        if metric != Metric::Jitter {
            return Some((start, value));
        }
        // Only what arrived has a jitter; the first sample behind the warm-up follows none.
        let kind = (0, sample.flags.has(Flags::WARMUP));
        let before = value.is_finite().then(|| self.before.insert(kind, value))??;
        Some((start, (value - before).abs()))
    }
}
