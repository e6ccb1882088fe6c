//! Several records beside each other, and all pairs of several hosts.

use crate::{latency, record, samples, sweep_cases, write};
use wiregauge::plan::pairs::{AtOnce, Place};
use wiregauge::plan::{Case, HostSpec, Pairs, Request};
use wiregauge::record::schema::*;
use wiregauge::report::comparison::Side;
use wiregauge::report::several::Several;
use wiregauge::report::{curves, html};
use wiregauge::transport::TransportKind;

/// The same sweep before and after a change that made TCP a tenth slower, and after its repair.
pub fn several(out: &str, total: u64) -> std::io::Result<()> {
    let (mut sides, mut reduced) = (Vec::new(), Vec::new());
    for (name, tcp) in [("before", 1.0), ("after", 1.1), ("repaired", 1.0)] {
        let mut record = record("latency", sweep_cases());
        let per_round = total / record.runs.len() as u64;
        let slower = |run: &Run| if run.case.transport == TransportKind::Tcp { tcp } else { 1.0 };
        let draw = |run: &mut Run| samples::measure(run, per_round, false, slower(run));
        let all: Vec<_> = record.runs.iter_mut().flat_map(draw).collect();
        reduced.push(curves::reduce(&record, all.into_iter().map(Ok::<_, String>)));
        sides.push(Side::whole(name, record));
    }
    std::fs::write(format!("{out}.json"), "{}")?;
    std::fs::write(out, html::several(&Several::new(sides), &reduced))
}

/// Latency between all pairs of eight hosts, one of which is half as fast.
pub fn pairs(out: &str, total: u64) -> std::io::Result<()> {
    const HOSTS: usize = 8;
    const SLOW: u32 = 5;
    const MEDIAN: f64 = 3175.0;
    let spec = |number: usize| {
        let host = format!("node{number:02}");
        Some(HostSpec { host, ssh: vec!["ssh".into()], ..HostSpec::default() })
    };
    let which = Pairs::All { at_once: AtOnce::Matching };
    let place = Place { nodes: (0..HOSTS).map(spec).collect(), which, ..Place::default() };
    let request = Request { place, transports: vec![TransportKind::Tcp], ..latency() };
    let plan = request.plan().expect("a plan");
    let labels: Vec<String> = (0..plan.cases.len()).map(|at| plan.label(at)).collect();
    let cases: Vec<Case> = plan.cases;
    let mut record = record("latency", cases);
    record.plan.pairs = plan.pairs;
    record.plan.hosts = plan.hosts;
    let per_round = total / record.runs.len() as u64;
    let mut slow = Vec::new();
    let mut all = Vec::new();
    for (run, label) in record.runs.iter_mut().zip(labels) {
        run.label = label;
        let ends = run.case.topology.hosts();
        let is_slow = [ends.client, ends.server].contains(&Some(SLOW));
        let slower = if is_slow { 2.0 } else { 1.0 };
        all.extend(samples::measure(run, per_round, false, slower));
        let value = run.quantile(Metric::HalfRtt, 0.5).map_or(f64::NAN, |found| found.0);
        let metric = "half_rtt p50".to_owned();
        let found = SlowPair { run: run.index, metric, value, median: MEDIAN };
        slow.extend(is_slow.then_some(found));
    }
    record.pairs = Some(PairFigures { slow, bisections: Vec::new() });
    write(out, &record, all)
}
