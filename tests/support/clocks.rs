//! What a record says of two hosts' clocks, with every field set.

use wiregauge::record::schema::{Begin, ClockOffset, OffsetCheck, Start};

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
    let begin = Some(Begin { late_ns: 1250.5, bound_ns: 640.25 });
    Start { client: begin, server: begin, spread_ns: 812.5 }
}
