//! Writes the HTML report of a made-up record, to look at and for `tests/web`.
//!
//! `cargo run --release --example sample_report -- OUT.html KIND [SAMPLES]`, where KIND is survey,
//! sweep, study, hostile, clocks, load, surface, rpc, several or pairs.
//!
//! The samples are seeded draws, not measurements. `hostile` has text in every field that would run
//! as a script if it were not escaped, an incomplete run and lost messages.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod load;
mod many;
mod record;
mod rpc;
mod samples;
mod study;

use record::record;
use std::convert::Infallible;
use wiregauge::pattern::{bandwidth, latency, registry};
use wiregauge::plan::{Bound, Case, Request, Wait};
use wiregauge::record::schema::*;
use wiregauge::report::html;
use wiregauge::sample::RoundSamples;
use wiregauge::transport::TransportKind;
use wiregauge::units::{Bytes, Span};

const ROUNDS: u32 = 5;
const WARMUP: u64 = 100;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let out = args.next().expect("usage: sample_report OUT.html KIND [SAMPLES]");
    let kind = args.next().unwrap_or_else(|| "survey".to_owned());
    let total: u64 = args.next().map_or(1_000_000, |n| n.parse().expect("a number of samples"));
    let without_samples = match kind.as_str() {
        "clocks" => Some(clocks()),
        "load" => Some(load::curve()),
        "surface" => Some(load::surface()),
        "rpc" => Some(rpc::lengths()),
        _ => None,
    };
    if let Some(record) = without_samples {
        return write(&out, &record, Vec::new());
    }
    match kind.as_str() {
        "several" => return many::several(&out, total),
        "pairs" => return many::pairs(&out, total),
        _ => {}
    }
    let (name, cases) = match kind.as_str() {
        "sweep" => ("latency", sweep_cases()),
        "study" => ("run", sweep_cases()),
        "hostile" => ("survey", survey_cases().into_iter().take(4).collect()),
        _ => ("survey", survey_cases()),
    };
    let mut record = record(name, cases);
    record.plan.study = (kind == "study").then(|| study::study(&record.plan.cases));
    let latencies = record.runs.iter().filter(|r| r.case.pattern == "latency").count();
    let per_round = total / latencies as u64 / u64::from(ROUNDS);
    let mut all = Vec::new();
    for run in &mut record.runs {
        let n = if kind == "hostile" && run.index == 0 { 60 } else { per_round };
        all.extend(samples::measure(run, n, kind == "hostile", 1.0));
    }
    if kind == "hostile" {
        record::make_hostile(&mut record);
    }
    write(&out, &record, all)
}

fn write(out: &str, record: &Record, samples: Vec<RoundSamples>) -> std::io::Result<()> {
    let started = std::time::Instant::now();
    let page =
        html::render(record, &registry::views(), samples.into_iter().map(Ok::<_, Infallible>));
    println!("rendered {} B in {:.0?}", page.len(), started.elapsed());
    std::fs::write(out, page)?;
    std::fs::write(format!("{out}.json"), serde_json::to_string(record)?)
}

/// The clocks of two other hosts over 100 s.
fn clocks() -> Record {
    let history = |(host, ppm): (u32, f64)| {
        let point = |number: u32| {
            let after_s = f64::from(number) / 2.0;
            let offset_ns = 3e9 + 1e3 * ppm * after_s + 200.0 * (after_s / 9.0).sin();
            let (bound_ns, drift_bound_ppm) = (600.0 + 300.0 * (after_s / 5.0).cos(), 0.01);
            let drift_ppm = ppm;
            let true_offset_ns = None;
            ClockPoint { after_s, offset_ns, bound_ns, drift_ppm, drift_bound_ppm, true_offset_ns }
        };
        let known = (1..=10).map(|tenth| {
            let drift_bound_ppm = 1.0 / f64::from(tenth);
            let clock = ClockOffset { drift_ppm: ppm, drift_bound_ppm, ..Default::default() };
            ClockKnown { after_s: 10.0 * f64::from(tenth), clock, ..Default::default() }
        });
        let (known, points) = (known.collect(), (0..=200).map(point).collect());
        ClockHistory { host, known, points, ..Default::default() }
    };
    let clocks = [(0, 12.5), (1, -3.0)].map(history).to_vec();
    let host = |name: &str| OtherHost { name: name.into(), ..Default::default() };
    let hosts = ["node07", "node<08>"].map(host).to_vec();
    Record { clocks, hosts, ..record("clocks", Vec::new()) }
}

fn survey_cases() -> Vec<Case> {
    use TransportKind::{Shm, Tcp, Udp, Unix};
    let mut cases = Vec::new();
    for (transport, wait) in
        [(Shm, Wait::Busy), (Unix, Wait::Busy), (Udp, Wait::Busy), (Tcp, Wait::Busy)]
            .into_iter()
            .chain([(Unix, Wait::Block), (Tcp, Wait::Block)])
    {
        cases.push(case(latency(), transport, wait, 64));
        cases.push(case(bandwidth(), transport, wait, 64));
        let largest = if transport == Udp { 65507 } else { 65536 };
        cases.push(case(bandwidth(), transport, wait, largest));
    }
    cases
}

fn sweep_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in [TransportKind::Shm, TransportKind::Tcp] {
        for size in [8, 64, 1024, 16384, 131_072] {
            cases.push(case(latency(), transport, Wait::Busy, size));
        }
        for size in [64, 1024, 16384, 131_072, 1 << 20] {
            cases.push(case(bandwidth(), transport, Wait::Busy, size));
        }
    }
    cases
}

fn latency() -> Request {
    latency::request(Default::default())
}

fn bandwidth() -> Request {
    bandwidth::request(bandwidth::Spec::default())
}

/// The first case of a request, over this transport and of this size.
fn case(request: Request, transport: TransportKind, wait: Wait, size: u64) -> Case {
    let request = Request {
        transports: vec![transport],
        waits: vec![wait],
        sizes: vec![Bytes(size)],
        ..request
    };
    Case {
        bound: Bound { count: None, time: Some(Span(200_000_000)) },
        warmup: WARMUP,
        loss_after: Span(1_000_000_000),
        timeout: Span(5_000_000_000),
        seed: size,
        ..request.plan().expect("a plan").cases.remove(0)
    }
}
