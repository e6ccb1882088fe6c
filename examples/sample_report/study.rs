//! A made-up study.

use wiregauge::plan::Study;
use wiregauge::plan::study::{Graph, GraphKind, Point, Reference, Series, Spread};
use wiregauge::record::schema::CaseRecord;
use wiregauge::transport::TransportKind;
use wiregauge::units::Bytes;

/// A study of the sweep with figures that nobody has published.
pub fn study(cases: &[CaseRecord]) -> Study {
    let of = |pattern: &str, transport: TransportKind| {
        let fits = |case: &CaseRecord| case.pattern == pattern && case.transport == transport;
        let numbers = (0_u32..).zip(cases).filter(|(_, case)| fits(case));
        numbers.map(|(number, _)| number).collect::<Vec<u32>>()
    };
    let series = |name: &str, pattern, transport| Series {
        name: name.to_owned(),
        cases: of(pattern, transport),
    };
    let reference = |beside: Option<&str>, points: &[(Option<u64>, f64)]| Reference {
        name: format!("Nobody 1900, {}", beside.unwrap_or("limit")),
        source: "N. Nobody, A made-up book, 1900".to_owned(),
        system: "two made-up hosts".to_owned(),
        beside: beside.map(String::from),
        quantile: 0.5,
        points: points
            .iter()
            .map(|(s, value)| Point { size: s.map(Bytes), value: *value })
            .collect(),
        notes: vec!["Not one of these figures was measured.".to_owned()],
    };
    let graph = |title: &str, kind, metric: &str, series: [&str; 2], references| Graph {
        title: title.to_owned(),
        kind,
        metric: metric.to_owned(),
        also: Vec::new(),
        quantile: 0.5,
        above: false,
        over: Vec::new(),
        less: Vec::new(),
        each_way: false,
        spread: Spread::Deciles,
        size: (kind != GraphKind::AgainstSize).then_some(Bytes(64)),
        series: series.map(String::from).to_vec(),
        references,
        notes: Vec::new(),
    };
    let tcp = |size: Option<u64>| reference(Some("tcp"), &[(size, 2_600.0), (Some(1024), 3_000.0)]);
    let shm = || reference(Some("shm"), &[(Some(64), 140.0), (Some(16384), 900.0)]);
    let (both, stream) = (["shm", "tcp"], ["shm stream", "tcp stream"]);
    let limit = vec![reference(None, &[(None, 6.8e9)])];
    let mut against =
        graph("Against size", GraphKind::AgainstSize, "half_rtt", both, vec![tcp(Some(8)), shm()]);
    against.notes.push("Nobody 1900, table 2 is not drawn: nothing is known of it".to_owned());
    Study {
        name: "nobody/made-up".to_owned(),
        title: "What was never measured?".to_owned(),
        source: Some("N. Nobody, A made-up book, 1900".to_owned()),
        quick: false,
        series: vec![
            series("shm", "latency", TransportKind::Shm),
            series("tcp", "latency", TransportKind::Tcp),
            series("shm stream", "bandwidth", TransportKind::Shm),
            series("tcp stream", "bandwidth", TransportKind::Tcp),
        ],
        graphs: vec![
            against,
            graph("Bars", GraphKind::Bars, "half_rtt", both, vec![tcp(Some(64)), shm()]),
            graph("Cumulative", GraphKind::Cdf, "half_rtt", both, vec![tcp(Some(64))]),
            graph("Histogram", GraphKind::Histogram, "half_rtt", both, vec![tcp(Some(64))]),
            graph("Bandwidth", GraphKind::AgainstSize, "bandwidth", stream, limit),
        ],
    }
}
