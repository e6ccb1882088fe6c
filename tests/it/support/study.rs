//! A study with a value in every field.

use wiregauge::plan::rails::{RailPort, RailsAtOnce};
use wiregauge::plan::study::{Graph, GraphKind, Point, Reference, Series, Spread};
use wiregauge::plan::{Impact, Rails, Study};
use wiregauge::record::schema::{Factor, ImpactFigures};
use wiregauge::stats::{Interval, Missing, Value};
use wiregauge::units::Bytes;

pub fn full() -> Study {
    let point = |size: Option<u64>| Point { size: size.map(Bytes), value: 0.1 + 0.2 };
    Study {
        name: "a/b".to_string(),
        title: "What <b>is</b> it?".to_string(),
        source: Some("a book".to_string()),
        quick: true,
        series: vec![Series { name: "tcp".to_string(), cases: vec![0] }],
        graphs: vec![Graph {
            title: "one".to_string(),
            kind: GraphKind::AgainstSize,
            metric: "rtt".to_string(),
            also: vec!["half_rtt".to_string()],
            quantile: 0.99,
            spread: Spread::Deciles,
            above: true,
            over: vec![["tcp".to_string(), "tcp".to_string()]],
            less: Vec::new(),
            each_way: true,
            size: Some(Bytes(64)),
            series: vec!["tcp".to_string()],
            references: vec![Reference {
                name: "A 1999, Table 1".to_string(),
                source: "a book, Table 1".to_string(),
                system: "two hosts".to_string(),
                beside: Some("tcp".to_string()),
                quantile: 0.99,
                points: vec![point(Some(64)), point(None)],
                notes: vec!["a note".to_string()],
            }],
            notes: vec!["Table 2 is not drawn".to_string()],
        }],
    }
}

/// Rails of this host and another one.
pub fn rails() -> Rails {
    let port = |device: &str| RailPort {
        device: device.into(),
        port: Some(1),
        link_layer: "InfiniBand".into(),
    };
    let (here, there) = (vec![port("mlx5_0")], vec![port("mlx5_2")]);
    Rails { at_once: RailsAtOnce::Each, here, hosts: vec![there] }
}

/// A case beside others, by numbers.
pub fn impact_of_plan() -> Impact {
    Impact { congestor: "incast".into(), alone: 0, under: 1, beside: vec![2] }
}

/// What it suffers.
pub fn impact() -> ImpactFigures {
    let factor = Factor {
        metric: "half_rtt".into(),
        of: "p50".into(),
        alone: Some(Value(4.5)),
        under: Some(Value(9.0)),
        factor: Some(Value(2.0)),
        interval: Some(Interval { low: Value(1.5), high: Value(2.5) }),
        missing: Some(Missing::TooFew),
    };
    ImpactFigures {
        congestor: "incast".into(),
        alone: 0,
        under: 0,
        beside: vec![0],
        factors: vec![factor],
        covered: Some(0.99),
    }
}
