//! What is asked of `rpc`, what is refused, and what is drawn.

use super::workload::Workload;
use super::*;
use crate::registry;
use std::sync::Arc;
use wiregauge_base::units::{Bytes, MessageRate};
use wiregauge_measure::control::case::CaseFrame;
use wiregauge_plan::topology::{MAX_ENDPOINTS, Wiring};
use wiregauge_plan::{Case, Plan, Request, Topology, UsageError, Wait};
use wiregauge_transport::{Role, TransportKind};

fn planned(change: impl FnOnce(&mut Request, &mut RpcRequest)) -> Result<Plan, UsageError> {
    let mut asked = RpcRequest::default();
    let mut request = request(asked.clone());
    change(&mut request, &mut asked);
    request.asked = Arc::new(asked);
    request.plan()
}

fn spec(case: &Case) -> &Spec {
    case.spec()
}

fn w(name: &str) -> Workload {
    Workload::shipped(name).unwrap()
}

#[test]
fn a_load_in_bits_is_that_of_the_cut_workload() {
    let plan = planned(|_, asked| {
        asked.workloads = vec![w("w5")];
        asked.gbps = vec![2.0];
    });
    let plan = plan.unwrap();
    let case = &plan.cases[0];
    let mean = spec(case).workload.mean();
    // 385,315 B is the mean of the full tables, cut at 1 MB.
    assert!((mean / 385_315.0 - 1.0).abs() < 0.02, "{mean}");
    let rate = case.schedule.rate().unwrap().0;
    assert!((rate * mean * 8.0 / 2e9 - 1.0).abs() < 1e-9);
    assert_eq!(case.size, LONGEST);
    assert_eq!((plan.name.as_str(), plan.cases.len()), ("rpc", 2), "and the unloaded one");
}

#[test]
fn each_combination_is_a_case_and_unloaded_times_are_measured_once() {
    let plan = planned(|request, asked| {
        request.transports = vec![TransportKind::Tcp, TransportKind::Unix];
        request.threads = vec![1, 2];
        asked.workloads = vec![w("w2"), w("w3")];
        asked.gbps = vec![0.1, 0.2];
        asked.congestions = vec!["cubic".into(), "reno".into()];
    });
    let cases = plan.unwrap().cases;
    let unloaded = |case: &&Case| spec(case).unloaded;
    // tcp has two congestion controls, unix none.
    assert_eq!(cases.iter().filter(|case| !unloaded(case)).count(), 3 * 2 * 2 * 2);
    assert_eq!(cases.iter().filter(unloaded).count(), 3 * 2);
    for case in cases.iter().filter(|case| !unloaded(case)) {
        let of_this = cases.iter().filter(|other| is_baseline_of(other, case));
        assert_eq!(of_this.count(), 1, "{}", case.label());
    }
    let names: std::collections::BTreeSet<String> = cases.iter().map(Case::label).collect();
    assert_eq!(names.len(), cases.len(), "{names:?}");
}

#[test]
fn both_run_at_the_same_time_and_their_baselines_do_not() {
    let plan = planned(|request, asked| {
        request.transports = vec![TransportKind::Tcp, TransportKind::Udp];
        asked.workloads = vec![Workload::fixed(Bytes(100)), Workload::fixed(Bytes(200))];
        asked.gbps = vec![0.1];
        asked.both = true;
    });
    let plan = plan.unwrap();
    assert_eq!(plan.concurrent.len(), 2);
    for group in &plan.concurrent {
        let cases: Vec<&Case> = group.iter().map(|number| &plan.cases[*number as usize]).collect();
        assert_eq!(cases.len(), 2);
        let beside = |case: &Case| spec(case).beside;
        assert_eq!((beside(cases[0]), beside(cases[1])), (0, 1), "each has CPUs of its own");
        assert_ne!(cases[0].transport, cases[1].transport);
    }
    assert_eq!(plan.cases.len(), 8);
    assert_eq!(plan.cpus_at_once(), 2);
    assert!(planned(|_, asked| asked.both = true).unwrap_err().0.contains("two transports"));
}

#[test]
fn what_a_transport_cannot_carry_is_refused_with_what_it_can() {
    let over = |transport, workload: Workload, longest: u64| {
        planned(|request, asked| {
            request.transports = vec![transport];
            asked.clients = vec![1];
            asked.workloads = vec![workload];
            asked.longest = Some(Bytes(longest));
        })
    };
    let refusal = over(TransportKind::Udp, w("w4"), 1_000_000).unwrap_err().0;
    assert!(refusal.contains("w4") && refusal.contains("--longest 65507B"), "{refusal}");
    assert!(over(TransportKind::Udp, w("w4"), 65_507).is_ok());
    let refusal = over(TransportKind::Synthetic, w("w1"), 1000).unwrap_err().0;
    assert!(refusal.contains("synthetic"), "{refusal}");
    assert!(over(TransportKind::Tcp, w("w1"), 7).is_err(), "shorter than the shortest");
    // One length is sent as it is, whatever distributions are cut to.
    let fixed = planned(|_, asked| {
        asked.clients = vec![1];
        asked.workloads = vec![Workload::fixed(Bytes(5_000_000))];
    });
    assert_eq!(fixed.unwrap().cases[0].size, Bytes(5_000_000));
}

#[test]
fn several_connections_that_cannot_be_watched_are_polled() {
    let over = |transport, wait, connections| {
        planned(|request, asked| {
            request.transports = vec![transport];
            asked.clients = vec![1];
            request.waits = vec![wait];
            asked.connections = vec![connections];
        })
    };
    assert!(over(TransportKind::Tcp, Wait::Block, 100).is_ok());
    assert!(over(TransportKind::Shm, Wait::Busy, 3).is_ok());
    assert!(over(TransportKind::Shm, Wait::Block, 1).is_ok());
    let refusal = over(TransportKind::Shm, Wait::Block, 3).unwrap_err().0;
    assert!(refusal.contains("--wait busy"), "{refusal}");
    assert!(over(TransportKind::Tcp, Wait::Busy, MAX_ENDPOINTS + 1).is_err());
}

#[test]
fn receivers_need_connections_that_two_threads_can_share() {
    let over = |transport, receivers| {
        planned(|request, asked| {
            request.transports = vec![transport];
            asked.clients = vec![1];
            asked.receivers = vec![receivers];
        })
    };
    let plan = over(TransportKind::Udp, 2).unwrap();
    assert_eq!(spec(&plan.cases[1]).receivers, 0, "unloaded ones need none");
    assert!(over(TransportKind::Shm, 0).is_ok());
    let refusal = over(TransportKind::Shm, 1).unwrap_err().0;
    assert!(refusal.contains("--receivers 0"), "{refusal}");
    assert!(over(TransportKind::Tcp, 17).is_err());
}

#[test]
fn a_port_has_its_share_of_the_load_and_a_schedule_of_its_own() {
    let plan = planned(|request, asked| {
        request.threads = vec![4];
        asked.rates = vec![MessageRate(1000.0)];
    });
    let case = &plan.unwrap().cases[0];
    let shares: Vec<Case> = (0..4).map(|port| crate::load::share_of(case, port).unwrap()).collect();
    assert!(shares.iter().all(|share| share.schedule.rate() == Some(MessageRate(250.0))));
    let seeds: std::collections::BTreeSet<u64> = shares.iter().map(|share| share.seed).collect();
    assert_eq!(seeds.len(), 4);
}

#[test]
fn lengths_are_those_of_the_workload_and_of_nothing_but_the_number() {
    let plan = planned(|_, asked| {
        asked.workloads = vec![w("w2")];
        asked.server_ports = vec![3];
        asked.connections = vec![2];
        asked.rates = vec![MessageRate(1.0)];
    });
    let case = &plan.unwrap().cases[0];
    let draws = Draws::of(case, 0);
    let (n, mut lanes) = (200_000u64, [0u64; 6]);
    let steps = &spec(case).workload.steps;
    let lengths: Vec<u32> = (0..n).map(|number| draws.length(number)).collect();
    for (size, cumulative) in steps {
        let found = lengths.iter().filter(|length| u64::from(**length) <= size.0).count() as f64;
        // Five standard deviations of a share of n draws.
        let allowed = 5.0 * (cumulative * (1.0 - cumulative) / n as f64).sqrt() + 1e-9;
        assert!((found / n as f64 - cumulative).abs() <= allowed, "{size:?}");
    }
    (0..n).for_each(|number| lanes[draws.connection(number)] += 1);
    let even = n as f64 / 6.0;
    assert!(lanes.iter().all(|lane| (*lane as f64 - even).abs() < 5.0 * even.sqrt()), "{lanes:?}");
    assert_eq!(Draws::of(case, 0).length(77), draws.length(77));
    let other = Draws::of(case, 1);
    assert!((0..100).any(|number| other.length(number) != draws.length(number)));
}

#[test]
fn unloaded_requests_of_a_length_follow_one_another_in_an_order_that_is_drawn() {
    let plan = planned(|request, asked| {
        asked.workloads = vec![w("w1")];
        asked.rates = vec![MessageRate(1.0)];
        request.threads = vec![2];
    });
    let cases = plan.unwrap().cases;
    let unloaded = cases[1].clone();
    let steps = &spec(&unloaded).workload.steps;
    let draws = Draws::of(&unloaded, 0);
    let lengths = |draws: &Draws, from: u64, many: u64| -> Vec<u32> {
        (from..from + many).map(|number| draws.length(number)).collect()
    };
    let mut warm = lengths(&draws, 0, unloaded.warmup);
    let all = lengths(&draws, unloaded.warmup, unloaded.bound.count.unwrap());
    let each = all.len() / steps.len();
    let mut turns = all.clone();
    turns.dedup();
    assert_eq!(turns, warm, "the warm-up has each length once, in the same order");
    assert!(all.chunk_by(|a, b| a == b).all(|turn| turn.len() == each), "{each}");
    warm.sort_unstable();
    assert!(warm.iter().zip(steps).all(|(length, (size, _))| u64::from(*length) == size.0));
    assert_ne!(turns, warm, "a cycle by length");
    let next = Draws::of(&Case { seed: unloaded.seed + 1, ..unloaded.clone() }, 0);
    assert_ne!(lengths(&next, 0, unloaded.warmup), turns, "another round, another order");
    assert_eq!(
        (unloaded.topology.threads_of(Role::Client), unloaded.topology.endpoints_of(1)),
        (1, 1)
    );
    assert_eq!(spec(&unloaded).clients, 1);
    assert_eq!(draws.connection(5), 0);
}

#[test]
fn what_does_not_fit_is_not_played() {
    let plan = planned(|_, asked| {
        asked.workloads = vec![w("w2")];
        asked.clients = vec![1];
    });
    let case = plan.unwrap().cases.remove(0);
    // As an end that knows nothing but the case and the room for a message takes it.
    let fits = |case: &Case| CaseFrame::from(case).read(registry::find).is_ok();
    let in_room = |size| fits(&Case { size, ..case.clone() });
    let longest = spec(&case).longest();
    assert!(in_room(longest) && !in_room(Bytes(longest.0 - 1)));
    let with = |change: fn(&mut Spec)| {
        let mut other = spec(&case).clone();
        change(&mut other);
        fits(&Case { size: LONGEST, ..case.with_spec(other) })
    };
    assert!(with(|_| {}));
    assert!(!with(|rpc| rpc.workload.steps.clear()));
    assert!(!with(|rpc| rpc.workload.steps[0].0 = Bytes(7)));
    assert!(!with(|rpc| rpc.workload.steps[0].0 = Bytes(LONGEST.0 + 1)), "steps need not rise");
    assert!(!with(|rpc| rpc.reply = Reply::Short(Bytes(LONGEST.0 + 1))));
    assert!(!with(|rpc| rpc.receivers = 17));
    let wired = |each| {
        let topology = Topology { wiring: Wiring::Mesh { each }, ..case.topology.clone() };
        fits(&Case { topology, ..case.clone() })
    };
    assert!(wired(1) && !wired(0) && !wired(u32::MAX));
}
