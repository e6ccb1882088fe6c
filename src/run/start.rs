//! Whether the ends of rounds at the same time began together: each was told one instant in its own
//! clock, and each stamped when its loop really began.

use crate::clock::LocalNs;
use crate::control::fault::Fault;
use crate::plan::Case;
use crate::record::schema::{Begin, Start};
use crate::run::conditions::Conditions;
use crate::run::round::RoundResult;
use crate::sample::join::End;
use crate::transport::Role;
use crate::warning::Warning;

/// How much later than agreed an end may begin: many times what the last look at the clock takes,
/// and little beside the shortest round that is worth a figure.
pub const ALLOWED_NS: f64 = 100_000.0;

/// By how much an end began after the agreed instant, where its last thread began at `began` by its
/// own clock.
pub fn begin(agreed: LocalNs, began: LocalNs, end: End<'_>) -> Begin {
    let (at, bound_ns) = end.offset.map_or((began, 0.0), |offset| offset.here(began));
    Begin { late_ns: at.0 - agreed.0, bound_ns }
}

/// Whether an end began later than is allowed, whatever its clock may be wrong by.
pub fn is_late(begin: &Begin) -> bool {
    begin.late_ns > begin.bound_ns + ALLOWED_NS
}

/// From the first begin to the last.
pub fn spread_ns<'a>(begins: impl Iterator<Item = &'a Begin>) -> f64 {
    let (first, last) = begins.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), begin| {
        (first.min(begin.late_ns), last.max(begin.late_ns))
    });
    (last - first).max(0.0)
}

/// How each of these rounds began, by what is known of the clocks now that they are over; `None`
/// where no instant was agreed.
pub fn of_rounds(
    cases: &[Case],
    finished: &[Result<RoundResult, Fault>],
    conditions: &Conditions<'_>,
) -> Vec<Option<Start>> {
    let one = |(case, finished): (&Case, &Result<RoundResult, Fault>)| {
        let finished = finished.as_ref().ok()?;
        let agreed = finished.start?;
        let of = |role: Role| {
            let end = conditions.clock_of(case.topology.host_of(role))?;
            let parts = finished.threads_of(role);
            let spans = parts.iter().filter_map(|part| Some(part.outcome.as_ref()?.span));
            let began = spans.map(|(began, _)| end.time.local(began).0).reduce(f64::max)?;
            Some(begin(agreed, LocalNs(began), end))
        };
        Some(Start { client: of(Role::Client), server: of(Role::Server), spread_ns: 0.0 })
    };
    let mut starts: Vec<Option<Start>> = cases.iter().zip(finished).map(one).collect();
    let spread_ns = spread_ns(starts.iter().flatten().flat_map(Start::begins));
    starts.iter_mut().flatten().for_each(|start| start.spread_ns = spread_ns);
    starts
}

/// The warnings of a round of which an end started late.
pub fn warnings(round: u32, start: &Start, name: impl Fn(Role) -> String) -> Vec<Warning> {
    let ends = [(Role::Client, &start.client), (Role::Server, &start.server)];
    let late = ends.into_iter().filter_map(|(role, begin)| Some((role, begin.as_ref()?)));
    late.filter(|(_, begin)| is_late(begin))
        .map(|(role, begin)| Warning::LateStart {
            end: name(role),
            round,
            late_ns: begin.late_ns,
            bound_ns: begin.bound_ns,
            allowed_ns: ALLOWED_NS,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::offset::{Model, Offset};
    use crate::clock::{Ticks, Timebase};

    const BOUND_NS: f64 = 50_000.0;

    /// How an end began `after_ns` after the agreed instant, on a clock that
    /// is ahead by 3 s and known to 50 us.
    fn late(after_ns: f64) -> Begin {
        let model = Model::stated(Offset { ns: 3e9, bound_ns: BOUND_NS });
        let time = Timebase::nanoseconds(Ticks(0));
        let began = LocalNs(7e9 + 3e9 + after_ns);
        begin(LocalNs(7e9), began, End { time: &time, offset: Some(&model) })
    }

    #[test]
    fn a_begin_is_late_beyond_what_the_clock_may_be_wrong_by_and_what_is_allowed() {
        let begin = late(2000.0);
        assert!((begin.late_ns, begin.bound_ns.round()) == (2000.0, BOUND_NS), "{begin:?}");
        assert!(!is_late(&late(149_000.0)) && is_late(&late(151_000.0)));
    }

    #[test]
    fn the_end_that_is_late_is_named_and_the_other_is_not() {
        let start = Start { client: Some(late(0.0)), server: Some(late(5e6)), spread_ns: 5e6 };
        let found = warnings(3, &start, |role| format!("the {}", role.name()));
        let [Warning::LateStart { end, round: 3, late_ns: 5e6, .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(end, "the server");
        let said = crate::warning::RecordedWarning::from(&found[0]).sentence;
        assert!(said.starts_with("the server started round 3 5.00 ms late"), "{said}");
        let none = Start { client: Some(late(0.0)), server: None, spread_ns: 0.0 };
        assert_eq!(warnings(0, &none, |_| String::new()), []);
    }

    #[test]
    fn the_spread_is_from_the_first_begin_to_the_last() {
        let begins = [late(10.0), late(-5.0), late(40.0)];
        assert_eq!(spread_ns(begins.iter()), 45.0);
        assert_eq!(spread_ns([].iter()), 0.0);
    }
}
