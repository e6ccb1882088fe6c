//! What load shows: response times, rates, what a request costs, and the points that a search adds.

use super::{Load, Spec, landmarks, probe};
use crate::oneway::SCHEDULED;
use crate::prelude::*;
use wiregauge_analysis::pattern::Completion;
use wiregauge_analysis::rates::figure;
use wiregauge_analysis::search;
use wiregauge_sample::recorder::PoolUse;
use wiregauge_stats::knee::{self, Point};

impl PatternAnalysis for Load {
    fn metrics(&self, case: &Case) -> Vec<Metric> {
        match case.schedule.is_open() {
            false => vec![Metric::Rtt],
            true => vec![Metric::Response, Metric::Service, Metric::Lateness],
        }
    }

    fn rates(&self, case: &Case) -> Vec<RateMetric> {
        let pools = case.spec::<Spec>().buffers.into_iter().flat_map(|_| RateMetric::of_pools());
        rates(case).into_iter().chain(pools).collect()
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::<Costs>::default()
    }

    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        let costs = run.collected::<Costs>().into_iter().flat_map(Costs::figures);
        run.work.figures(run.case.schedule).into_iter().chain(costs).collect()
    }

    /// The points that a search wants next, over each transport, way to wait and size.
    fn next_cases(&self, _: &Plan, runs: &[RunSoFar]) -> Vec<NextCase> {
        let searched = |run: &RunSoFar| {
            let case = &run.case;
            case.pattern.name() == self.name()
                && case.spec::<Spec>().search.is_some()
                && !case.schedule.is_open()
        };
        let first = runs.iter().enumerate().filter(|(_, run)| searched(run));
        first.flat_map(|(number, run)| next_points(number, run, runs)).collect()
    }

    fn complete(&self, plan: &Plan, runs: &[RunSoFar], number: usize) -> Completion {
        landmarks::complete(plan, runs, number)
    }
}

/// The rates of requests and replies, and what a request costs each end.
pub(crate) fn rates(case: &Case) -> Vec<RateMetric> {
    let sent = if case.schedule.is_open() { &SCHEDULED[..] } else { &[RateMetric::MessageRate] };
    sent.iter().chain(&[RateMetric::CpuClient, RateMetric::CpuServer]).copied().collect()
}

/// The points that follow from the closed loop `first` and those that followed before.
fn next_points(number: usize, first: &RunSoFar, runs: &[RunSoFar]) -> Vec<NextCase> {
    let case = &first.case;
    let spec = case.spec::<Spec>();
    let Some(search) = spec.search else { return Vec::new() };
    let is_of = |run: &&RunSoFar| {
        let other = &run.case;
        let is_load = other.pattern == case.pattern && !other.spec::<Spec>().probe;
        is_load
            && (other.transport, other.wait, other.size, other.topology.hosts())
                == (case.transport, case.wait, case.size, case.topology.hosts())
    };
    let quantile = spec.slo.map_or(knee::BOUNDED, |slo| slo.quantile);
    let points: Vec<Point> =
        runs.iter().filter(is_of).filter_map(|run| run.point(quantile)).collect();
    let rates = match points.is_empty() {
        true => search::grid(first.capacity()),
        false => search::next(&points, spec.slo),
    };
    let at = |rate| {
        let schedule = search.arrivals.at(MessageRate(rate));
        let point = Case { schedule, ..case.with_spec(Spec { clients: 0, search: None, ..*spec }) };
        let beside = spec.probe_rate.map(|rate| probe::probe(&point, rate));
        NextCase { origin: number, case: point, beside: beside.into_iter().collect() }
    };
    rates.into_iter().map(at).collect()
}

/// Costs of each round, as work over what it was done for.
#[derive(Default)]
pub(crate) struct Costs(BTreeMap<RateMetric, Vec<Delivered>>);

impl Collector for Costs {
    fn add_round(&mut self, seen: &RoundSeen<'_>) {
        let RoundSeen { client, server, server_time, .. } = seen;
        let answered = seen.round.counts.received;
        if answered == 0 {
            return;
        }
        let ends = [(RateMetric::CpuClient, client), (RateMetric::CpuServer, server)];
        for (metric, parts) in ends {
            let outcomes = parts.iter().filter_map(|part| part.outcome.as_ref());
            self.add(metric, outcomes.map(|outcome| outcome.usage.cpu_ns).sum(), answered);
        }
        let first = server.first().and_then(|part| part.outcome.as_ref());
        // Where no pools are measured the server counts no polls.
        let is_measured = |pool: &PoolUse| pool.empty_polls > 0 || pool.full_polls > 0;
        let pool = first.map(|outcome| outcome.pool).filter(is_measured);
        let Some(pool) = pool else { return };
        let ns = |ticks: i64| server_time.span(TickSpan(ticks));
        self.add(RateMetric::BufferTime, ns(pool.buffer_ticks), pool.reads);
        self.add(RateMetric::EmptyPollTime, ns(pool.empty_ticks), pool.reads);
        self.add(RateMetric::FullPollTime, ns(pool.full_ticks), pool.reads);
        self.add(RateMetric::EmptyPolls, pool.empty_polls as f64, pool.reads);
        self.add(RateMetric::FullPolls, pool.full_polls as f64, pool.reads);
        self.add(RateMetric::CompletionsPerPoll, pool.completions as f64, pool.full_polls);
        self.add(RateMetric::RequestsPerPoll, pool.reads as f64, pool.request_polls);
        let waited = pool.buffer_empty_ticks + pool.buffer_full_ticks;
        self.add(RateMetric::BufferPollTime, ns(waited), pool.reads);
        self.add(RateMetric::BufferEmptyPollTime, ns(pool.buffer_empty_ticks), pool.reads);
        self.add(RateMetric::BufferFullPollTime, ns(pool.buffer_full_ticks), pool.reads);
    }
}

impl Costs {
    fn add(&mut self, metric: RateMetric, work: f64, of: u64) {
        if of > 0 {
            self.0.entry(metric).or_default().push(Delivered { work, seconds: of as f64 });
        }
    }

    /// The figures of a typical round: its work over all that it was done for.
    pub(crate) fn figures(&self) -> impl Iterator<Item = RateFigure> {
        self.0.iter().map(|(metric, rounds)| figure(*metric, unit(*metric), rounds, 1.0))
    }
}

fn unit(metric: RateMetric) -> &'static str {
    match metric {
        RateMetric::CpuClient | RateMetric::CpuServer => "ns/msg",
        RateMetric::CompletionsPerPoll | RateMetric::RequestsPerPoll => "1/poll",
        RateMetric::EmptyPolls | RateMetric::FullPolls => "1/read",
        _ => "ns/read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Search;
    use wiregauge_analysis::fixtures::finished_thread;
    use wiregauge_clock::Timebase;
    use wiregauge_figures::record::schema::Round;

    /// What costs a round with `received` answers, 800 ns of the client's CPU and 400 ns of the
    /// server's, by a server's clock of 2 GHz.
    fn costs(received: u64, pool: PoolUse) -> Vec<(RateMetric, f64)> {
        let ends = [(800.0, PoolUse::default()), (400.0, pool)].map(|(cpu_ns, pool)| {
            let mut thread = finished_thread(0, true, &[]);
            let outcome = thread.outcome.as_mut().unwrap();
            (outcome.usage.cpu_ns, outcome.pool) = (cpu_ns, pool);
            [thread]
        });
        let case = crate::oneway::request(Default::default());
        let counts = Counts { received, ..Counts::default() };
        let mut found = Costs::default();
        found.add_round(&RoundSeen {
            case: &case.plan().unwrap().cases.remove(0),
            samples: &RoundSamples::default(),
            round: &Round { counts, ..Round::default() },
            client: &ends[0],
            server: &ends[1],
            server_time: &Timebase { epoch: Ticks(0), ns_per_tick: 0.5 },
        });
        found.figures().map(|figure| (figure.metric, figure.rate.value)).collect()
    }

    #[test]
    fn costs_are_those_of_a_request_of_a_poll_and_of_a_read() {
        let cpu = [(RateMetric::CpuClient, 200.0), (RateMetric::CpuServer, 100.0)];
        assert_eq!(costs(4, PoolUse::default()), cpu);
        assert_eq!(costs(0, PoolUse::default()), []);
        let pool = PoolUse {
            reads: 10,
            buffer_ticks: 1000,
            empty_polls: 40,
            empty_ticks: 200,
            full_polls: 5,
            full_ticks: 300,
            completions: 20,
            request_polls: 2,
            buffer_empty_ticks: 60,
            buffer_full_ticks: 140,
            ..PoolUse::default()
        };
        let mut known = BTreeMap::from([
            (RateMetric::CpuClient, 200.0),
            (RateMetric::CpuServer, 100.0),
            (RateMetric::CompletionsPerPoll, 4.0),
            (RateMetric::BufferTime, 50.0),
            (RateMetric::EmptyPollTime, 10.0),
            (RateMetric::FullPollTime, 15.0),
            (RateMetric::EmptyPolls, 4.0),
            (RateMetric::FullPolls, 0.5),
            (RateMetric::RequestsPerPoll, 5.0),
            (RateMetric::BufferPollTime, 10.0),
            (RateMetric::BufferEmptyPollTime, 3.0),
            (RateMetric::BufferFullPollTime, 7.0),
        ]);
        assert_eq!(BTreeMap::from_iter(costs(4, pool)), known);
        // Without full polls there is nothing that came of one.
        known.remove(&RateMetric::CompletionsPerPoll);
        known.insert(RateMetric::FullPolls, 0.0);
        assert_eq!(BTreeMap::from_iter(costs(4, PoolUse { full_polls: 0, ..pool })), known);
        let unpolled = PoolUse { full_polls: 0, empty_polls: 0, ..pool };
        assert_eq!(costs(4, unpolled), cpu, "no pools are measured");
    }

    #[test]
    fn a_search_begins_with_shares_of_what_the_closed_loop_has_answered() {
        let plan = crate::load::request(Default::default()).plan().unwrap();
        let any = Schedule::Poisson { rate: MessageRate(1.0) };
        let spec = Spec {
            clients: 256,
            search: Some(Search { arrivals: any }),
            probe_rate: Some(MessageRate(100.0)),
            ..Spec::default()
        };
        let closed = Case { schedule: Schedule::ClosedLoop, ..plan.cases[0].with_spec(spec) };
        let mut first = RunSoFar::new(1, &closed, &Load, &[], 1);
        first.work.delivered = vec![Delivered { work: 1e6, seconds: 1.0 }];
        let none = Spec { clients: 0, search: None, ..spec };
        let point = Case { schedule: any, ..closed.with_spec(none) };
        let other = |case: &Case| RunSoFar::new(0, case, &Load, &[], 1);
        let next = |runs: &[RunSoFar]| Load.next_cases(&plan, runs);
        // Of another size, and a probe: no points of this curve.
        let longer = Case { size: Bytes(4000), ..point.clone() };
        let probe = point.with_spec(Spec { probe: true, ..none });
        let runs = [other(&longer), other(&Case { schedule: any, ..probe }), first];
        let found = next(&runs);
        let rates: Vec<f64> =
            found.iter().filter_map(|next| next.case.schedule.rate()).map(|r| r.0).collect();
        assert_eq!(rates, [5e4, 2.5e5, 5e5, 7e5, 8e5, 9e5, 1e6, 1.1e6, 1.3e6]);
        for NextCase { origin, case, beside } in &found {
            assert_eq!((*origin, case.spec::<Spec>()), (2, &none));
            let [probe] = beside.as_slice() else { panic!("{}", beside.len()) };
            assert_eq!(probe.schedule.rate(), Some(MessageRate(100.0)));
            assert!(probe.spec::<Spec>().probe);
        }
        // One point says nothing yet of where the next ones are.
        let [_, _, first] = runs;
        assert!(next(&[other(&point), first]).is_empty());
        // Nothing is searched for.
        let fixed = Case { schedule: Schedule::ClosedLoop, ..point };
        let mut fixed = other(&fixed);
        fixed.work.delivered = vec![Delivered { work: 1e6, seconds: 1.0 }];
        assert!(next(&[fixed]).is_empty());
    }

    #[test]
    fn nothing_follows_from_a_schedule_or_from_another_pattern() {
        let plan = crate::load::request(Default::default()).plan().unwrap();
        let any = Schedule::Poisson { rate: MessageRate(1.0) };
        let spec = Spec { search: Some(Search { arrivals: any }), ..Spec::default() };
        let open = Case { schedule: any, ..plan.cases[0].with_spec(spec) };
        let other = crate::latency::request(Default::default()).plan().unwrap();
        let mut runs = [
            RunSoFar::new(0, &open, &Load, &[], 1),
            RunSoFar::new(1, &other.cases[0], &crate::latency::Latency, &[], 1),
        ];
        for run in &mut runs {
            run.work.delivered = vec![Delivered { work: 1e6, seconds: 1.0 }];
        }
        assert!(Load.next_cases(&plan, &runs).is_empty());
    }
}
