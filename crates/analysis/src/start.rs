//! Whether the ends of rounds at the same time began together: each was told one instant in its own
//! clock, and each stamped when its loop really began.

use crate::result::RoundResult;
use wiregauge_base::warning::Warning;
use wiregauge_clock::LocalNs;
use wiregauge_figures::record::schema::{Begin, Start};
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::{Case, Plan};
use wiregauge_sample::join::End;
use wiregauge_transport::Role;

/// How much later than agreed an end may begin: many times what the last look at the clock takes,
/// and little beside the shortest round that is worth a figure.
pub const ALLOWED_NS: f64 = 100_000.0;

/// By how much an end began after the agreed instant, where its last thread began at `began` by its
/// own clock.
pub fn begin(agreed: LocalNs, began: LocalNs, end: End<'_>) -> Begin {
    let (at, bound_ns) = end.offset.map_or((began, 0.0), |offset| offset.here(began));
    Begin { late_ns: at.0 - agreed.0, bound_ns, ..Begin::default() }
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

/// Returns how each thread of a role began that was told an instant and has a known clock.
fn begins<'c>(
    finished: &RoundResult,
    role: Role,
    clock_of: impl Fn(Option<u32>) -> Option<End<'c>>,
) -> Vec<Begin> {
    let mut found = Vec::new();
    for (number, part) in (0..).zip(finished.threads_of(role)) {
        let span = part.outcome.as_ref().map(|outcome| outcome.span);
        if let Some(((agreed, end), (began, _))) = finished.start.zip(clock_of(part.host)).zip(span)
        {
            let begin = begin(agreed, end.time.local(began), end);
            found.push(Begin { number, host: part.host, ..begin });
        }
    }
    found
}

/// How each of these rounds began, by what is known of the clocks of the hosts now that they are
/// over; `None` where no instant was agreed.
pub fn of_rounds<'c>(
    finished: &[Result<RoundResult, Fault>],
    clock_of: impl Fn(Option<u32>) -> Option<End<'c>>,
) -> Vec<Option<Start>> {
    // Of every thread and node, and not of the latest alone.
    let mut all: Vec<Begin> = Vec::new();
    let mut starts: Vec<Option<Start>> = Vec::new();
    for finished in finished {
        let agreed = finished.as_ref().ok().filter(|finished| finished.start.is_some());
        starts.push(agreed.map(|finished| {
            let both = [Role::Client, Role::Server].map(|role| begins(finished, role, &clock_of));
            all.extend(both.iter().flatten());
            let [client, server] = both
                .map(|begins| begins.into_iter().max_by(|a, b| a.late_ns.total_cmp(&b.late_ns)));
            Start { client, server, spread_ns: 0.0 }
        }));
    }
    let spread_ns = spread_ns(all.iter());
    starts.iter_mut().flatten().for_each(|start| start.spread_ns = spread_ns);
    starts
}

/// What began so, for a warning: an end, one of the hosts of its threads, or a node.
pub fn name(plan: &Plan, case: &Case, role: Role, begin: &Begin) -> String {
    let host = match begin.host {
        Some(host) => plan.host(Some(host)),
        None => "this host",
    };
    match case.topology.name_of(role) {
        node if case.topology.has_nodes() => format!("{node} {} on {host}", begin.number),
        end => format!("the {end} on {host}"),
    }
}

/// The warnings of a round of which an end started late.
pub fn warnings(round: u32, start: &Start, name: impl Fn(Role, &Begin) -> String) -> Vec<Warning> {
    let ends = [(Role::Client, &start.client), (Role::Server, &start.server)];
    let late = ends.into_iter().filter_map(|(role, begin)| Some((role, begin.as_ref()?)));
    late.filter(|(_, begin)| is_late(begin))
        .map(|(role, begin)| Warning::LateStart {
            end: name(role, begin),
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
    use crate::result::RankResult;
    use wiregauge_clock::offset::{Model, Offset};
    use wiregauge_clock::{Ticks, Timebase};

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
        assert!(
            !is_late(&Begin { late_ns: 150_000.0, bound_ns: 50_000.0, ..late(0.0) }),
            "what is allowed"
        );
    }

    #[test]
    fn a_round_began_with_the_last_thread_of_each_end() {
        let thread = |role: Role, began: u64| {
            let mut thread = crate::fixtures::finished_thread(0, true, &[]);
            thread.host = role.pick(None, Some(0));
            thread.outcome.as_mut().unwrap().span = (Ticks(began), Ticks(began + 10));
            thread
        };
        let of = |start, begins: [&[u64]; 2]| {
            let of_role = |(role, begins): (&Role, &[u64])| RankResult {
                role: *role,
                threads: begins.iter().map(|began| thread(*role, *began)).collect(),
            };
            let ranks = Role::SIDES.iter().zip(begins).map(of_role).collect();
            Ok(RoundResult { ranks, start, ..RoundResult::default() })
        };
        // The server's clock is ahead by 5000 ns.
        let agreed = Some(LocalNs(1000.0));
        let finished = [
            of(agreed, [&[1010, 1030, 1020], &[6004]]),
            of(agreed, [&[1001], &[]]),
            of(None, [&[900], &[900]]),
        ];
        let time = Timebase::nanoseconds(Ticks(0));
        let ahead = Model::stated(Offset { ns: 5000.0, bound_ns: 10.0 });
        let clock_of = |host: Option<u32>| Some(End { time: &time, offset: host.map(|_| &ahead) });
        let found = of_rounds(&finished, clock_of);
        let late = |begin: &Option<Begin>| begin.as_ref().map(|begin| begin.late_ns);
        let found: Vec<_> = found
            .iter()
            .map(|start| start.as_ref().map(|s| (late(&s.client), late(&s.server), s.spread_ns)))
            .collect();
        let both = Some((Some(30.0), Some(4.0), 29.0));
        assert_eq!(found, [both, Some((Some(1.0), None, 29.0)), None]);
        let lost = [Err(Fault::Interrupted)];
        assert!(of_rounds(&lost, clock_of)[0].is_none());
    }

    #[test]
    fn the_end_that_is_late_is_named_and_the_other_is_not() {
        let start = Start { client: Some(late(0.0)), server: Some(late(5e6)), spread_ns: 5e6 };
        let found = warnings(3, &start, |role, _| format!("the {}", role.name()));
        let [Warning::LateStart { end, round: 3, late_ns: 5e6, .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(end, "the server");
        let said = wiregauge_base::warning::RecordedWarning::from(&found[0]).sentence;
        assert!(said.starts_with("the server started round 3 5.00 ms late"), "{said}");
        let none = Start { client: Some(late(0.0)), server: None, spread_ns: 0.0 };
        assert_eq!(warnings(0, &none, |_, _| String::new()), []);
    }

    #[test]
    fn of_several_nodes_the_one_that_began_last_is_named() {
        let node = |began: u64, host| {
            let mut thread = crate::fixtures::finished_thread(0, true, &[]);
            thread.host = host;
            thread.outcome.as_mut().unwrap().span = (Ticks(began), Ticks(began + 10));
            thread
        };
        let threads = vec![node(1000, None), node(400_000, Some(0)), node(1020, None)];
        let ranks = vec![RankResult { role: Role::Node, threads }];
        let start = Some(LocalNs(1000.0));
        let finished = [Ok(RoundResult { ranks, start, ..RoundResult::default() })];
        let time = Timebase::nanoseconds(Ticks(0));
        let found = of_rounds(&finished, |_| Some(End { time: &time, offset: None }));
        let begin = found[0].as_ref().unwrap().client.unwrap();
        assert_eq!((begin.number, begin.host, begin.late_ns), (1, Some(0), 399_000.0));
        assert_eq!(
            found[0].as_ref().unwrap().spread_ns,
            399_000.0,
            "from the first node to the last"
        );
        let mut plan = wiregauge_patterns::latency::request(Default::default()).plan().unwrap();
        plan.cases[0].topology = wiregauge_plan::Topology::nodes(3);
        plan.hosts.push(wiregauge_plan::HostSpec { host: "node07".into(), ..Default::default() });
        let said = |begin: Begin| name(&plan, &plan.cases[0], Role::Client, &begin);
        assert_eq!(said(begin), "node 1 on node07");
        assert_eq!(said(Begin { number: 2, host: None, ..begin }), "node 2 on this host");
    }

    #[test]
    fn the_spread_is_from_the_first_begin_to_the_last() {
        let begins = [late(10.0), late(-5.0), late(40.0)];
        assert_eq!(spread_ns(begins.iter()), 45.0);
        assert_eq!(spread_ns([].iter()), 0.0);
    }
}
