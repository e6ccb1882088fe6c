//! The clocks of the other hosts against this one's: compared while rounds run, and what that says
//! of each.

use super::{ConductError, Stage, Time};
use crate::clock::LocalNs;
use crate::clock::exchange::Local;
use crate::clock::offset::{Exchange, Model};
use crate::launch::clocks::Comparison;
use crate::launch::round::Fault;
use crate::plan::{Case, Pattern, Plan};
use crate::record::schema::ClockOffset;
use crate::sample::RoundSamples;
use crate::transport::Role;

/// The comparison of each host's clock with this one's, where one-way times are taken there: as
/// many as there are hosts, however many pairs these have.
pub struct Comparisons(Vec<Option<Comparison>>);

impl Comparisons {
    /// Begins to compare. `cpus` are left alone.
    pub fn start(
        plan: &Plan,
        stage: &Stage<'_>,
        time: &Time,
        cpus: &[u32],
    ) -> Result<Comparisons, ConductError> {
        let local = Local { source: time.source, time: time.base };
        let compare = |number: usize| {
            let is_at = |end: Option<u32>| end == Some(number as u32);
            let case = plan.cases.iter().find(|case| {
                case.pattern == Pattern::Oneway
                    && case.ends.are_apart()
                    && (is_at(case.ends.client) || is_at(case.ends.server))
            });
            let (case, there) = case.zip(stage.hosts.get(number))?;
            // Where neither end is here, no interface of this host was named.
            let is_here = case.ends.client.is_none() || plan.pairs.is_some();
            let interface = case.options.interface.as_ref().filter(|_| is_here);
            Some(Comparison::start(there, interface, local, cpus.to_vec()))
        };
        let started: Vec<Option<Result<Comparison, Fault>>> = std::thread::scope(|scope| {
            let hosts = 0..stage.hosts.len();
            let threads: Vec<_> = hosts.map(|host| scope.spawn(move || compare(host))).collect();
            let failed = |_| Some(Err(Fault::new("comparing the clocks of two hosts panicked")));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect()
        });
        let comparisons = started.into_iter().map(Option::transpose).collect::<Result<_, _>>();
        comparisons.map(Comparisons).map_err(|fault| match fault.wrong_use {
            true => ConductError::Refused(fault.sentence),
            false => ConductError::Unable(fault.sentence),
        })
    }

    /// What is known of the clock of a case's end; `None` where that is this host's, or one-way
    /// times are not taken.
    pub fn of(&self, case: &Case, role: Role) -> Option<Result<Known, Fault>> {
        if case.pattern != Pattern::Oneway || !case.ends.are_apart() {
            return None;
        }
        let comparison = self.0.get(case.ends.of(role)? as usize)?.as_ref()?;
        Some(comparison.exchanges().and_then(|exchanges| {
            let none = || Fault::new("no exchange of times could be used");
            Ok(Known { model: Model::fit(&exchanges).ok_or_else(none)?, exchanges })
        }))
    }
}

/// What is known of another host's clock at the end of a round.
pub struct Known {
    pub model: Model,
    exchanges: Vec<Exchange>,
}

impl Known {
    /// The offset during a round, with the widest bound of its samples.
    fn during(&self, samples: &RoundSamples) -> Option<ClockOffset> {
        let received = samples.samples.iter().map(|sample| sample.receive_ns);
        let widest = |widest: Option<(f64, LocalNs)>, at: f64| {
            let bound = self.model.offset_at(LocalNs(at)).bound_ns;
            match widest {
                Some((before, _)) if before >= bound => widest,
                _ => Some((bound, LocalNs(at))),
            }
        };
        let (_, at) = received.filter(|at| at.is_finite()).fold(None, widest)?;
        ClockOffset::at(&self.model, &self.exchanges, at)
    }
}

/// The offset between both ends during a round; `None` on one clock.
pub fn of_round(
    client: Option<&Known>,
    server: Option<&Known>,
    samples: &RoundSamples,
) -> Option<ClockOffset> {
    let of = |known: Option<&Known>| known.and_then(|known| known.during(samples));
    match (of(client), of(server)) {
        (None, server) => server,
        (Some(client), None) => Some(ClockOffset {
            offset_ns: -client.offset_ns,
            drift_ppm: -client.drift_ppm,
            ..client
        }),
        (Some(client), Some(server)) => Some(ClockOffset {
            offset_ns: server.offset_ns - client.offset_ns,
            bound_ns: server.bound_ns + client.bound_ns,
            drift_ppm: server.drift_ppm - client.drift_ppm,
            drift_bound_ppm: server.drift_bound_ppm + client.drift_bound_ppm,
            exchanges: server.exchanges.min(client.exchanges),
            shortest_round_trip_ns: server
                .shortest_round_trip_ns
                .max(client.shortest_round_trip_ns),
            steps: server.steps + client.steps,
        }),
    }
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
