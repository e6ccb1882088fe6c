//! What a record says of clocks of two hosts, and of CPUs that were watched together, every field
//! set.

use wiregauge::record::schema::{
    Begin, CauseFigures, ClockHistory, ClockKnown, ClockOffset, ClockPoint, InterruptCount, Kind,
    OffsetCheck, ShownGap, Start, Together,
};

pub fn history() -> ClockHistory {
    ClockHistory {
        known: vec![ClockKnown {
            after_s: 1.5,
            clock: offset(),
            true_offset_ns: Some(-1.5e9),
            true_drift_ppm: Some(12.0),
        }],
        points: vec![ClockPoint::default()],
        ..ClockHistory::default()
    }
}

pub fn offset() -> ClockOffset {
    ClockOffset {
        offset_ns: -1.5e9,
        bound_ns: 812.5,
        drift_ppm: 12.25,
        drift_bound_ppm: 0.5,
        exchanges: 400,
        shortest_round_trip_ns: 1600.0,
        steps: 1,
        by: "ptp".to_string(),
        traffic: Some(OffsetCheck { least_ns: None, most_ns: Some(-1.4e9), beyond_ns: 0.0 }),
        exchanged: Some(OffsetCheck { least_ns: None, most_ns: None, beyond_ns: 1.5 }),
    }
}

pub fn start() -> Start {
    let begin = Some(Begin { late_ns: 1250.5, bound_ns: 640.25, number: 1, host: Some(0) });
    Start { client: begin, server: begin, spread_ns: 812.5 }
}

/// What took two CPUs: a task, and something at once on both.
pub fn together() -> Together {
    let cause = |kind, name: &str, all_at_once| CauseFigures {
        kind,
        name: name.into(),
        all_at_once,
        cpus: vec![0, 1],
        gaps: 4,
        lost_ns: 1e6,
        longest_ns: 250_000.0,
        recorded: 0.9,
        period_ns: Some(4e6),
        histogram: vec![(131_072.0, 4)],
    };
    let gap = |cpu, start_ns, cause| ShownGap { cpu, start_ns, length_ns: 250_000.0, cause };
    Together {
        cpus: vec![0, 1],
        observed_ns: 2e9,
        length_ns: 2.1e9,
        windows: 2,
        not_traced: Some("the kernel's trace cannot be used".into()),
        causes: vec![cause(Kind::Outside, "", true), cause(Kind::Task, "a <busy> task", false)],
        longest: vec![gap(0, 1e6, 0), gap(1, 1.001e6, 0), gap(1, 5e6, 1)],
        unlisted: 3,
        interrupts: vec![InterruptCount { cpu: 1, name: "virtio3-rx".into(), count: 12 }],
        steal_ns: vec![(0, 3e7)],
        smis: Some(2),
    }
}
