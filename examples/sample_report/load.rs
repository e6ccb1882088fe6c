//! Made-up curves over load and made-up streams: queues of one server (M/M/1).

use crate::samples::{normal, summarise, uniform};
use crate::{case, record};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use wiregauge::pattern::{load, stream};
use wiregauge::plan::study::{Graph, GraphKind, Series, Spread, Study};
use wiregauge::plan::{Case, Schedule, Wait};
use wiregauge::record::schema::{Figure, Metric, RateFigure, RateMetric, Record, Run};
use wiregauge::stats::rate::{self, Delivered};
use wiregauge::transport::TransportKind;
use wiregauge::units::{MessageRate, Span};

/// Messages of a round.
const MESSAGES: usize = 4000;

/// Two transports from idle to beyond saturation, and the closed loop that the search began with.
pub fn curve() -> Record {
    let mut cases = Vec::new();
    for (transport, capacity) in [(TransportKind::Tcp, 2e5), (TransportKind::Shm, 1e6)] {
        let of = |schedule, clients| {
            let slo = "p99<50us".parse().ok();
            let spec = load::Spec { clients, slo, ..load::Spec::default() };
            let asked = load::LoadRequest { spec, ..load::LoadRequest::default() };
            Case { schedule, ..case(load::request(asked), transport, Wait::Busy, 116) }
        };
        cases.push(of(Schedule::ClosedLoop, 64));
        for share in [0.05, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.1] {
            cases.push(of(Schedule::Poisson { rate: MessageRate(share * capacity) }, 0));
        }
    }
    let mut record = record::record("load", cases);
    for run in &mut record.runs {
        let capacity = if run.case.transport == TransportKind::Tcp { 2e5 } else { 1e6 };
        serve(run, capacity);
    }
    record
}

/// Fills in what an M/M/1 queue of this capacity gives; beyond it responses grow with the time.
fn serve(run: &mut Run, capacity: f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(run.index));
    let offered = run.case.schedule.rate().map_or(capacity, |rate| rate.0);
    let load = offered / capacity;
    let idle_ns = 4e9 / capacity;
    let (metric, answered) = match run.case.schedule.is_open() {
        true => (Metric::Response, offered.min(capacity)),
        false => (Metric::Rtt, capacity),
    };
    let clients = run.case.spec::<load::Spec>("load").map_or(0, |spec| spec.clients);
    let one = |i: usize, rng: &mut ChaCha8Rng| {
        let queued = -(1.0 - uniform(rng)).ln() * 1e9 / capacity;
        let late = (load - 1.0).max(0.0) * 4e7 * i as f64 / MESSAGES as f64;
        idle_ns * f64::from(clients.max(1)) + queued / (1.0 - load.min(0.99)) + late
    };
    let rounds: Vec<Vec<f64>> =
        (0..5).map(|_| (0..MESSAGES).map(|i| one(i, &mut rng)).collect()).collect();
    run.figures.push(figure(metric, &rounds));
    run.counts.sent = rounds.iter().map(|round| round.len() as u64).sum();
    run.counts.received = run.counts.sent;
    if run.case.schedule.is_open() {
        run.rates.push(rate(RateMetric::OfferedRate, "msg/s", offered, 0.0, &mut rng));
        run.rates.push(rate(RateMetric::AchievedRate, "msg/s", answered, 0.002, &mut rng));
        run.counts.held_up = u64::from(load > 1.0);
    }
    run.rates.push(rate(RateMetric::MessageRate, "msg/s", answered, 0.002, &mut rng));
}

fn figure(metric: Metric, rounds: &[Vec<f64>]) -> Figure {
    Figure { metric, unit: "ns".into(), summary: summarise(rounds), clock_bound_ns: None }
}

fn rate(
    metric: RateMetric,
    unit: &str,
    value: f64,
    spread: f64,
    rng: &mut ChaCha8Rng,
) -> RateFigure {
    let round = |_| Delivered { work: value * (1.0 + spread * normal(rng)), seconds: 1.0 };
    let rounds: Vec<Delivered> = (0..5).map(round).collect();
    RateFigure { metric, unit: unit.into(), rate: rate::rate(&rounds) }
}

/// Streams of several rates and sizes: fast and large ones miss steps.
pub fn surface() -> Record {
    let mut cases = Vec::new();
    for rate in [1e2, 1e3, 1e4, 1e5] {
        for values in [1_u32, 8, 64] {
            let rates = vec![MessageRate(rate)];
            let asked = stream::StreamRequest { rates, ..stream::StreamRequest::default() };
            let request = stream::request(asked, &[values]);
            let bytes = 24 + 8 * u64::from(values);
            cases.push(case(request, TransportKind::Shm, Wait::Busy, bytes));
        }
    }
    let mut record = record::record("run", cases);
    record.plan.threshold = Span(10_000);
    record.plan.study = Some(surfaces(record.runs.len() as u32));
    for run in &mut record.runs {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(run.index));
        let values =
            run.case.spec::<stream::Spec>("stream").map_or(0.0, |spec| f64::from(spec.values));
        let offered = run.case.schedule.rate().map_or(0.0, |rate| rate.0);
        let median = 900.0 + 9.0 * values - 120.0 * offered.log10();
        let one = |rng: &mut ChaCha8Rng| median * (0.05 * normal(rng)).exp();
        let rounds: Vec<Vec<f64>> =
            (0..5).map(|_| (0..MESSAGES).map(|_| one(&mut rng)).collect()).collect();
        run.figures.push(figure(Metric::OneWay, &rounds));
        let missed = (offered * (24.0 + 8.0 * values) / 4e7).powi(2).min(0.9);
        let missed = if missed < 1e-6 { 0.0 } else { missed };
        run.rates.push(rate(RateMetric::OfferedRate, "msg/s", offered, 0.0, &mut rng));
        run.rates.push(rate(RateMetric::Missed, "1/step", missed, 0.01, &mut rng));
    }
    record
}

fn surfaces(cases: u32) -> Study {
    let graph = |title: &str, kind, metric: &str| Graph {
        title: title.to_owned(),
        kind,
        metric: metric.to_owned(),
        also: Vec::new(),
        quantile: 0.5,
        above: false,
        over: Vec::new(),
        less: Vec::new(),
        each_way: false,
        spread: Spread::Interval,
        size: None,
        series: vec!["shm".to_owned()],
        references: Vec::new(),
        notes: Vec::new(),
    };
    Study {
        name: "nobody/surface".to_owned(),
        title: "What was never streamed?".to_owned(),
        source: None,
        quick: false,
        series: vec![Series { name: "shm".to_owned(), cases: (0..cases).collect() }],
        graphs: vec![
            graph("Latency by rate and values", GraphKind::Surface, "one_way"),
            graph("Missed against rate", GraphKind::AgainstRate, "missed"),
            graph("Latency against values", GraphKind::AgainstValues, "one_way"),
        ],
    }
}
