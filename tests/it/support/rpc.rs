//! A case and figures of `rpc` with every field that a record may have.

use wiregauge::pattern::rpc::workload::Workload;
use wiregauge::pattern::rpc::{
    Lengths, MeanSlowdown, OfSize, Reply, Short, Slowdown, Spec, Unloaded,
};
use wiregauge::stats::{Metric, Rate, Summary};
use wiregauge::units::{ByteRate, Bytes, Span};

/// What it sends.
pub fn full() -> Spec {
    Spec {
        workload: Workload {
            name: "w3".to_string(),
            what: "a distribution".to_string(),
            steps: vec![(Bytes(64), 0.5), (Bytes(1000), 1.0)],
            largest: Bytes(2000),
        },
        reply: Reply::Short(Bytes(100)),
        clients: 4,
        window: 16,
        receivers: 1,
        beside: 1,
        unloaded: false,
        slowdown: Slowdown::UnloadedMin,
        link: Some(ByteRate(3.125e9)),
        baseline_rtt: Span(15_000),
        loads: vec![0.5],
    }
}

/// Its figures, with this distribution for each.
pub fn lengths(summary: &Summary) -> Lengths {
    Lengths {
        metric: Metric::Response,
        sizes: vec![OfSize {
            size: 64,
            reply: 100,
            share: 0.5,
            summary: summary.clone(),
            unloaded: Unloaded {
                p50_ns: Some(9000.0),
                p50_interval: summary.quantiles.first().and_then(|quantile| quantile.interval),
                min_ns: Some(8000.0),
                serialisation_ns: Some(8500.0),
                cperf_ns: Some(15_000.0),
            },
        }],
        short: Some(Short {
            longest: 64,
            tail: vec![(8000.0, 0.5), (9000.0, 0.0)],
            longest_ns: 9000.0,
        }),
        slowdowns: vec![MeanSlowdown {
            by: Slowdown::UnloadedP50,
            mean: Rate {
                value: 2.5,
                interval: None,
                basis: wiregauge::stats::Basis::Pooled,
                rounds: vec![2.5],
            },
        }],
        baseline: Some(1),
        link: Some(3.125e9),
    }
}

/// A host of clients that stands out.
pub fn client_host(summary: Summary) -> wiregauge::record::schema::ClientHost {
    wiregauge::record::schema::ClientHost {
        host: Some(0),
        name: "node07".to_string(),
        metric: wiregauge::stats::Metric::Rtt,
        summary,
        slowdown: Some(wiregauge::stats::Rate {
            value: 1.5,
            interval: None,
            basis: wiregauge::stats::Basis::Pooled,
            rounds: vec![1.5],
        }),
        stands_out: vec!["slowdown".to_string()],
    }
}
