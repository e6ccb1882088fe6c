//! The time of each client's thread where several hosts send to one server: the samples of a round
//! are pooled in the order of one time, and its rate is that of all hosts in one window.

use super::conditions::Conditions;
use wiregauge_analysis::result::RoundResult;
use wiregauge_analysis::result::ThreadResult;
use wiregauge_clock::offset::{Model, Offset};
use wiregauge_clock::{Ticks, Timebase};
use wiregauge_plan::Case;
use wiregauge_sample::join::End;
use wiregauge_transport::Role;

/// The clock of a client's thread, and how far it is from the time that the round's samples share.
pub struct ClientClock {
    time: Timebase,
    offset: Option<Model>,
}

impl ClientClock {
    /// As the join of samples takes it.
    pub fn end(&self) -> End<'_> {
        End { time: &self.time, offset: self.offset.as_ref() }
    }
}

/// The clocks of a round's client threads; none where one host has all of them, whose clock is
/// that of the round.
///
/// The common time is the controller's where the clocks of all hosts were compared. Otherwise all
/// were told to start at the same moment, and the begin of the first thread of each host stands for
/// that moment: their times are then wrong by what the order took to arrive (an exchange over the
/// control channel), which no duration contains and a rate only at its two ends.
pub fn of_round(
    case: &Case,
    finished: &RoundResult,
    conditions: &Conditions<'_>,
) -> Vec<ClientClock> {
    let threads = finished.threads_of(Role::Client);
    if !case.topology.has_several_clients() {
        return Vec::new();
    }
    let time_of = |host: Option<u32>| match conditions.remote_host(host) {
        Some(there) => there.probe.local.time,
        None => conditions.clock.time,
    };
    let known = |host: Option<u32>| conditions.clock_of(host).map(|end| end.offset.cloned());
    let compared: Option<Vec<Option<Model>>> = threads.iter().map(|one| known(one.host)).collect();
    let offsets = compared.unwrap_or_else(|| {
        let begins = threads.iter().map(|one| (one.host, begin_ns(one, &time_of(one.host))));
        aligned(&begins.collect::<Vec<_>>())
    });
    let clock = |(one, offset): (&ThreadResult, _)| ClientClock { time: time_of(one.host), offset };
    threads.iter().zip(offsets).map(clock).collect()
}

/// When a thread began, by the clock of its host; `None`: it has left nothing.
fn begin_ns(thread: &ThreadResult, time: &Timebase) -> Option<f64> {
    let reported = thread.outcome.as_ref().map(|outcome| outcome.span.0);
    let first = || thread.arena.rows().first().map(|row| row.submit);
    let began = reported.or_else(first).filter(|ticks| *ticks != Ticks(0))?;
    Some(time.local(began).0)
}

/// The offsets by which the first thread of each host begins when that of the first host does, for
/// each thread.
fn aligned(threads: &[(Option<u32>, Option<f64>)]) -> Vec<Option<Model>> {
    let first_of = |host: Option<u32>| {
        let own = threads.iter().filter(|(other, _)| *other == host);
        own.filter_map(|(_, began)| *began).reduce(f64::min)
    };
    let reference = threads.iter().find_map(|(host, _)| first_of(*host));
    let offset = |(host, _): &(Option<u32>, Option<f64>)| {
        let ns = first_of(*host)? - reference?;
        Some(Model::stated(Offset { ns, bound_ns: 0.0 }))
    };
    threads.iter().map(offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::LocalNs;

    #[test]
    fn hosts_whose_clocks_were_not_compared_begin_together() {
        // Two threads here and one there, whose clock is 5 s ahead; one that left nothing.
        let threads =
            [(None, Some(1000.0)), (None, Some(1200.0)), (Some(0), Some(5e9)), (Some(1), None)];
        let here = |number: usize, at: f64| {
            let offset = aligned(&threads).swap_remove(number)?;
            Some(offset.here(LocalNs(at)).0.0)
        };
        assert_eq!((here(0, 1000.0), here(1, 1200.0)), (Some(1000.0), Some(1200.0)));
        assert_eq!((here(2, 5e9), here(2, 5e9 + 70.0)), (Some(1000.0), Some(1070.0)));
        assert_eq!(here(3, 7.0), None);
    }
}
