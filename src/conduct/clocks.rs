//! What the comparison of two hosts' clocks says of a round, and what it has cost.

use super::{ConductError, Stage, Time};
use crate::clock::check::{self, Check, Message};
use crate::clock::exchange::LENGTH;
use crate::clock::offset::{Exchange, Model, Offset};
use crate::clock::{LocalNs, Source};
use crate::host::Environment;
use crate::launch::clocks::{Comparison, Cost};
use crate::launch::round::Fault;
use crate::record::schema::{ClockCost, ClockOffset, OffsetCheck};
use crate::sample::RoundSamples;
use crate::sample::arena::Row;
use crate::sample::join::Times;

/// What is known of two clocks after a round.
pub struct Known {
    /// By which times are converted.
    pub model: Model,
    exchanges: Vec<Exchange>,
    /// What the exchanges say, where the model is what the clocks say of themselves.
    exchanged: Option<Model>,
}

/// What the exchanges until now tell, or what the clocks say of themselves; and why there are no
/// exchanges.
pub fn known(comparison: &Comparison, stated: Option<Offset>) -> (Option<Known>, Option<Fault>) {
    let (exchanges, fault) = match comparison.exchanges() {
        Ok(exchanges) => (exchanges, None),
        Err(fault) => (Vec::new(), Some(fault)),
    };
    let exchanged = Model::fit(&exchanges);
    let known = match stated.map(Model::stated) {
        Some(model) => Some(Known { model, exchanges, exchanged }),
        None => exchanged.map(|model| Known { model, exchanges, exchanged: None }),
    };
    (known, fault)
}

/// What two clocks say of themselves, where they are kept right: how far the other's local time is
/// from this one's, by each one's own zero, and what both may be wrong by.
pub fn stated(
    stage: &Stage<'_>,
    time: &Time,
    environment: &Environment,
) -> Result<Option<Offset>, ConductError> {
    if time.source != Source::Ptp {
        return Ok(None);
    }
    let error = |environment: &Environment| {
        environment.discipline.stated_error_ns().map_err(ConductError::Refused)
    };
    let own_ns = error(environment)?;
    let Some(there) = stage.there else { return Ok(None) };
    let bound_ns = own_ns + error(&there.seen.environment)?;
    // Both tick in nanoseconds since 1970.
    let ns = (time.base.epoch - there.seen.time.epoch).0 as f64;
    Ok(Some(Offset { ns, bound_ns }))
}

/// The messages of a round that have arrived, with each end's own stamps.
pub fn messages<'a>(
    client: &'a [Row],
    server: &'a [Row],
    times: Times<'a>,
) -> impl Iterator<Item = Message> + 'a {
    let both = client.iter().zip(server);
    both.filter(|(here, there)| here.submit.0 != 0 && there.receive.0 != 0).map(
        move |(here, there)| Message {
            sent: times.client.local(here.submit),
            reached: times.server.local(there.receive),
            heard: (here.receive.0 != 0).then(|| times.client.local(here.receive)),
        },
    )
}

impl Known {
    /// The offset during a round, at the sample with the widest bound.
    pub fn of_round(
        &self,
        samples: &RoundSamples,
        messages: impl Iterator<Item = Message>,
    ) -> Option<ClockOffset> {
        let received = samples.samples.iter().map(|sample| sample.receive_ns);
        let widest = |widest: Option<(f64, LocalNs)>, at: f64| {
            let bound = self.model.offset_at(LocalNs(at)).bound_ns;
            match widest {
                Some((before, _)) if before >= bound => widest,
                _ => Some((bound, LocalNs(at))),
            }
        };
        let (_, at) = received.filter(|at| at.is_finite()).fold(None, widest)?;
        let clock = ClockOffset::at(&self.model, &self.exchanges, at)?;
        let exchanged = self.exchanged.as_ref();
        Some(ClockOffset {
            by: if exchanged.is_some() { "ptp" } else { "exchanges" }.into(),
            traffic: check::by_traffic(&self.model, messages, at).map(OffsetCheck::from),
            exchanged: exchanged.map(|model| check::by_model(&self.model, model, at).into()),
            steps: exchanged.map_or(clock.steps, |model| model.steps.len() as u64),
            ..clock
        })
    }
}

impl From<Check> for OffsetCheck {
    fn from(check: Check) -> OffsetCheck {
        let Check { least_ns, most_ns, beyond_ns } = check;
        OffsetCheck { least_ns, most_ns, beyond_ns }
    }
}

impl ClockOffset {
    /// What the model of these exchanges says of a time of this host's clock.
    pub fn at(model: &Model, exchanges: &[Exchange], at: LocalNs) -> Option<ClockOffset> {
        let (offset, drift) = (model.offset_at(at), model.drift_at(at)?);
        let shortest = exchanges.iter().map(Exchange::round_trip_ns).reduce(f64::min);
        Some(ClockOffset {
            offset_ns: offset.ns,
            bound_ns: offset.bound_ns,
            drift_ppm: drift.ppm,
            drift_bound_ppm: drift.bound_ppm,
            exchanges: exchanges.len() as u64,
            shortest_round_trip_ns: shortest.unwrap_or(0.0),
            steps: model.steps.len() as u64,
            by: "exchanges".into(),
            traffic: None,
            exchanged: None,
        })
    }
}

/// Ends a comparison; what it took.
pub fn end(comparison: Comparison) -> ClockCost {
    let exchanges = comparison.exchanges().unwrap_or_default();
    cost(&exchanges, comparison.end())
}

/// What the exchanges took.
pub fn cost(exchanges: &[Exchange], cost: Cost) -> ClockCost {
    let length_ns = match (exchanges.first(), exchanges.last()) {
        (Some(first), Some(last)) => last.heard - first.sent,
        _ => 0.0,
    };
    let datagrams = cost.asked + cost.there.map_or(0, |(datagrams, _)| datagrams);
    ClockCost {
        length_ns,
        exchanges: exchanges.len() as u64,
        datagrams,
        bytes: datagrams * LENGTH as u64,
        client_cpu_ns: cost.cpu_ns,
        server_cpu_ns: cost.there.map(|(_, cpu_ns)| cpu_ns),
    }
}
