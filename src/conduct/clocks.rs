//! What the comparison of two hosts' clocks says of a round.

use crate::clock::LocalNs;
use crate::clock::offset::{Exchange, Model};
use crate::record::schema::ClockOffset;
use crate::sample::RoundSamples;

/// The offset during a round, with the widest bound of its samples.
pub fn of_round(
    model: &Model,
    exchanges: &[Exchange],
    samples: &RoundSamples,
) -> Option<ClockOffset> {
    let received = samples.samples.iter().map(|sample| sample.receive_ns);
    let widest = |widest: Option<(f64, LocalNs)>, at: f64| {
        let bound = model.offset_at(LocalNs(at)).bound_ns;
        match widest {
            Some((before, _)) if before >= bound => widest,
            _ => Some((bound, LocalNs(at))),
        }
    };
    let (_, at) = received.filter(|at| at.is_finite()).fold(None, widest)?;
    ClockOffset::at(model, exchanges, at)
}

impl ClockOffset {
    /// What the model of these exchanges says of a time of this host's clock.
    pub fn at(model: &Model, exchanges: &[Exchange], at: LocalNs) -> Option<ClockOffset> {
        let (offset, drift) = (model.offset_at(at), model.drift_at(at)?);
        let shortest = exchanges.iter().map(Exchange::round_trip_ns).fold(f64::INFINITY, f64::min);
        Some(ClockOffset {
            offset_ns: offset.ns,
            bound_ns: offset.bound_ns,
            drift_ppm: drift.ppm,
            drift_bound_ppm: drift.bound_ppm,
            exchanges: exchanges.len() as u64,
            shortest_round_trip_ns: shortest,
            steps: model.steps.len() as u64,
        })
    }
}
