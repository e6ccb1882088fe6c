//! Made-up requests of many lengths: one run that is loaded, beside its unloaded times.

use crate::samples::{summarise, uniform};
use crate::{case, record};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use wiregauge::pattern::rpc::workload::Workload;
use wiregauge::pattern::rpc::{
    self, Lengths, MeanSlowdown, OfSize, Short, Slowdown, Spec, Unloaded,
};
use wiregauge::plan::{Case, Request, Wait};
use wiregauge::record::schema::{Figure, Metric, Record, Run};
use wiregauge::stats::rate::{Delivered, rate};
use wiregauge::transport::TransportKind;
use wiregauge::units::MessageRate;

/// Requests of a round.
const MESSAGES: f64 = 20_000.0;
/// What a request takes at least, and its bytes per ns.
const BASE_NS: f64 = 10_000.0;
const BYTES_A_NS: f64 = 1.0;

/// Two workloads over two transports, of which the second slows its requests down twice as much.
pub fn lengths() -> Record {
    let asked = rpc::RpcRequest {
        workloads: ["w3", "w1"]
            .map(|name| Workload::shipped(name).expect("a shipped workload"))
            .to_vec(),
        rates: vec![MessageRate(20_000.0)],
        ..rpc::RpcRequest::default()
    };
    let request = Request {
        transports: vec![TransportKind::Tcp, TransportKind::Unix],
        ..rpc::request(asked)
    };
    let plan = request.plan().expect("a plan");
    let usual = case(crate::latency(), TransportKind::Tcp, Wait::Busy, 64);
    let cases = plan.cases.into_iter().map(|one| Case { seed: usual.seed, ..one }).collect();
    let mut record = record::record("rpc", cases);
    record.runs.iter_mut().for_each(fill);
    record
}

fn fill(run: &mut Run) {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(run.index));
    let rpc = run.case.spec::<Spec>("rpc").expect("a case of rpc");
    run.label = run.case.label.clone();
    let factor = if run.case.transport == TransportKind::Tcp { 1.0 } else { 2.0 };
    let load = if rpc.unloaded { 0.0 } else { factor };
    let unloaded_ns = |size: u32| BASE_NS + 2.0 * f64::from(size) / BYTES_A_NS;
    let mut before = 0.0;
    let sizes: Vec<OfSize> = rpc
        .workload
        .steps
        .iter()
        .map(|(size, cumulative)| {
            let (size, share) = (size.0 as u32, *cumulative);
            let n = ((share - before) * MESSAGES) as usize + 1;
            before = share;
            let base = unloaded_ns(size);
            let mut one = || base * (1.0 - load * (1.0 - uniform(&mut rng)).ln());
            let rounds: Vec<Vec<f64>> = (0..5).map(|_| (0..n).map(|_| one()).collect()).collect();
            let p50_ns = Some(base);
            let (min_ns, serialisation_ns) = (p50_ns, p50_ns);
            let unloaded = Unloaded { p50_ns, min_ns, serialisation_ns, ..Unloaded::default() };
            OfSize { size, reply: size, share, summary: summarise(&rounds), unloaded }
        })
        .collect();
    let tail = (0..40).map(|n| {
        let above = 10f64.powf(-f64::from(n) / 16.0);
        (BASE_NS * (1.0 - load.max(0.01) * above.ln()), above)
    });
    let summary = sizes[0].summary.clone();
    let figure =
        |metric, summary| Figure { metric, unit: "ns".into(), summary, clock_bound_ns: None };
    let metric = if rpc.unloaded { Metric::Rtt } else { Metric::Response };
    run.figures.push(figure(metric, sizes[sizes.len() / 2].summary.clone()));
    run.figures.extend((!rpc.unloaded).then(|| figure(Metric::Short, summary)));
    let mean = rate(&[Delivered { work: 1.0 + load, seconds: 1.0 }]);
    let lengths = Lengths {
        metric,
        short: (!rpc.unloaded).then(|| Short {
            longest: sizes[0].size,
            tail: tail.collect(),
            longest_ns: 9e5,
        }),
        sizes,
        slowdowns: vec![MeanSlowdown { by: Slowdown::UnloadedP50, mean }],
        baseline: (!rpc.unloaded).then_some(2),
        link: Some(1e9),
    };
    run.details = Some(serde_json::to_value(lengths).expect("lengths are JSON"));
}
