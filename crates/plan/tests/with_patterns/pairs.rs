//! Every pair once, no host in two at a time, and lists of hosts that make no sense.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_base::units::MessageRate;
use wiregauge_patterns::bandwidth::{self, Direction};
use wiregauge_patterns::{latency, load, oneway};
use wiregauge_plan::pairs::*;
use wiregauge_plan::topology::HostPair;
use wiregauge_plan::{HostSpec, Settings, UsageError};
use wiregauge_plan::{Request, Schedule};
use wiregauge_transport::TransportKind;

fn round_trips() -> Request {
    latency::request(Default::default())
}

fn one_way() -> Request {
    oneway::request(oneway::Spec::default())
}

fn towards(direction: Direction) -> Request {
    bandwidth::request(bandwidth::Spec { direction, ..bandwidth::Spec::default() })
}

fn spec(name: &str) -> Option<HostSpec> {
    let (host, ssh) = (name.to_string(), vec!["ssh".to_string()]);
    Some(HostSpec { host, ssh, ..HostSpec::default() })
}

fn nodes(count: usize) -> Vec<Option<HostSpec>> {
    let others = (1..count).map(|number| spec(&format!("n{number}")));
    std::iter::once(None).chain(others).collect()
}

fn layout(
    nodes: Vec<Option<HostSpec>>,
    which: Pairs,
    asked: Request,
) -> Result<Layout, UsageError> {
    Place { nodes, which, ..Place::default() }.layout(&Request { seed: 7, ..asked })
}

proptest! {
    #[test]
    fn each_meets_each_once_and_nobody_is_in_two_pairs_of_a_round(count in 2u32..80) {
        let mut met = BTreeSet::new();
        for round in 0..rounds(count) {
            let mut busy = BTreeSet::new();
            for (a, b) in matching(count, round) {
                prop_assert!(a < b && b < count);
                prop_assert!(busy.insert(a) && busy.insert(b), "round {round}: {a} {b}");
                prop_assert!(met.insert((a, b)), "{a} {b} twice");
            }
            prop_assert_eq!(busy.len() as u32, count - count % 2);
        }
        prop_assert_eq!(met.len() as u32, count * (count - 1) / 2);
    }

    #[test]
    fn a_random_matching_is_perfect_and_another_seed_gives_another(count in 2u32..60, seed: u64) {
        let drawn = random_matchings(count, 3, seed);
        for pairs in &drawn {
            let all: BTreeSet<u32> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
            prop_assert_eq!(all.len() as u32, count - count % 2);
        }
        prop_assert_eq!(random_matchings(count, 3, seed), drawn.clone());
        if count > 20 {
            prop_assert_ne!(random_matchings(count, 3, seed ^ 1), drawn);
        }
    }
}

#[test]
fn all_pairs_of_ten_thousand_hosts_are_planned_without_keeping_them() {
    let count = 10_000;
    let pairs: u64 = (0..rounds(count)).map(|round| matching(count, round).count() as u64).sum();
    assert_eq!(pairs, 10_000 * 9_999 / 2);
}

#[test]
fn round_trips_are_of_each_pair_and_one_way_times_of_each_direction() {
    let all = Pairs::All { at_once: AtOnce::Matching };
    let latency = layout(nodes(4), all, round_trips()).unwrap();
    assert_eq!((latency.pairs.len(), latency.concurrent.len(), latency.hosts.len()), (6, 3, 3));
    assert_eq!(latency.concurrent, [[0, 1], [2, 3], [4, 5]]);
    let oneway = layout(nodes(4), all, one_way()).unwrap();
    assert_eq!((oneway.pairs.len(), oneway.concurrent.len()), (12, 6));
    let distinct: BTreeSet<HostPair> = oneway.pairs.iter().copied().collect();
    assert_eq!(distinct.len(), 12);
    let counted = |asked: Request, which| {
        Place { nodes: nodes(4), which, ..Place::default() }.count(asked.is_directed)
    };
    let drawn = Pairs::Bisection { matchings: 5 };
    assert_eq!((counted(round_trips(), all), counted(one_way(), all)), (6, 12));
    assert_eq!(
        (counted(towards(Direction::Uni), drawn), counted(round_trips(), Pairs::First)),
        (10, 1)
    );
    for numbers in &oneway.concurrent {
        let mut busy = BTreeSet::new();
        for ends in numbers.iter().map(|number| oneway.pairs[*number as usize]) {
            assert!(busy.insert(ends.client) && busy.insert(ends.server));
        }
    }
    let four = Place { nodes: nodes(4), which: all, ..Place::default() };
    let both = four.layout(&towards(Direction::Bi)).unwrap();
    assert_eq!(both.pairs.len(), 6);
}

#[test]
fn pairs_run_one_by_one_in_matchings_or_all_together() {
    let at_once = |at_once| layout(nodes(3), Pairs::All { at_once }, round_trips()).unwrap();
    assert!(at_once(AtOnce::Pair).concurrent.is_empty());
    assert_eq!(at_once(AtOnce::All).concurrent, [[0, 1, 2]]);
    assert_eq!(at_once(AtOnce::Matching).concurrent, [[0], [1], [2]]);
    let drawn =
        layout(nodes(4), Pairs::Bisection { matchings: 5 }, towards(Direction::Uni)).unwrap();
    assert_eq!((drawn.concurrent.len(), drawn.pairs.len()), (5, 10));
}

#[test]
fn two_hosts_are_client_and_server() {
    let two = vec![spec("a"), spec("b")];
    let plain = layout(two, Pairs::First, one_way()).unwrap();
    assert_eq!(plain.pairs, [HostPair { client: Some(0), server: Some(1) }]);
    assert_eq!(plain.hosts.len(), 2);
    let here = layout(nodes(2), Pairs::First, one_way()).unwrap();
    assert_eq!(here.pairs, [HostPair { client: None, server: Some(0) }]);
}

#[test]
fn wrong_lists_of_hosts_are_refused() {
    let refused = |nodes, pairs, pattern| layout(nodes, pairs, pattern).unwrap_err().0;
    let all = Pairs::All { at_once: AtOnce::default() };
    assert!(refused(nodes(1), all, round_trips()).contains("1 host is named: use 2 to"));
    assert!(refused(nodes(3), Pairs::First, round_trips()).contains("use --all-pairs"));
    let twice = vec![spec("a"), spec("b"), spec("a")];
    assert!(refused(twice, all, round_trips()).contains("the host 'a' is named twice"));
    let drawn = Pairs::Bisection { matchings: 1 };
    assert!(
        refused(nodes(4), drawn, round_trips()).contains("patterns that measure bandwidth only")
    );
    let none = Pairs::Bisection { matchings: 0 };
    assert!(refused(nodes(4), none, towards(Direction::Uni)).contains("use 1 to 1000"));
    let many = Pairs::All { at_once: AtOnce::All };
    assert!(refused(nodes(40), many, round_trips()).contains("780 pairs at the same time"));
}

#[test]
fn each_rate_has_the_groups_of_its_own_pairs() {
    let rates = vec![MessageRate(1e3), MessageRate(2e3)];
    let asked = load::LoadRequest { rates, ..load::LoadRequest::default() };
    let request = Request {
        schedule: Schedule::Periodic { rate: MessageRate(1e3) },
        place: Place {
            nodes: nodes(4),
            which: Pairs::All { at_once: AtOnce::Matching },
            ..Place::default()
        },
        transports: vec![TransportKind::Tcp],
        ..load::request(asked)
    };
    let plan = request.plan().unwrap();
    assert_eq!(plan.concurrent.len() * 2, plan.cases.len(), "{:?}", plan.concurrent);
    for group in &plan.concurrent {
        let rate = |number: &u32| plan.cases[*number as usize].schedule.rate();
        assert!(group.iter().all(|number| rate(number) == rate(&group[0])), "{group:?}");
    }
}

#[test]
fn a_host_has_its_own_device_in_every_pair_and_role() {
    let own = |name: &str| BTreeMap::from([("device".to_string(), name.to_string())]);
    let with =
        |host: &str, device: &str| spec(host).map(|spec| HostSpec { own: own(device), ..spec });
    let all = Pairs::All { at_once: AtOnce::Pair };
    let nodes = vec![None, with("n1", "mlx5_1"), with("n2", "mlx5_2")];
    let place = Place { nodes, which: all, own_here: own("mlx5_0"), ..Place::default() };
    let transports = vec![TransportKind::Verbs];
    let plan = Request { place: place.clone(), transports, ..one_way() }.plan().unwrap();
    // This machine is no host of the layout; n1 is its first.
    let device_of = |host: Option<u32>| format!("mlx5_{}", host.map_or(0, |number| number + 1));
    let mut directions = BTreeSet::new();
    for case in &plan.cases {
        let HostPair { client, server } = case.topology.hosts();
        let expected = format!("{},{}", device_of(client), device_of(server));
        assert_eq!(case.settings.text("device"), Some(expected.as_str()));
        directions.insert((client, server));
    }
    assert_eq!(directions.len(), 6, "each of three pairs in both directions");
    // A transport without devices does not get any.
    let over_tcp = Request { place: place.clone(), ..one_way() }.plan().unwrap();
    assert!(over_tcp.cases.iter().all(|case| case.settings.iter().next().is_none()));
    let some = Place { own_here: BTreeMap::new(), ..place };
    let transports = vec![TransportKind::Verbs];
    let refused = Request { place: some.clone(), transports, ..one_way() }.plan().unwrap_err();
    assert!(refused.0.contains("device is given for some hosts"), "{}", refused.0);
    // What is given for all is that of the others.
    let settings = Settings::of_values([("device", "mlx5_9")]).unwrap();
    let transports = vec![TransportKind::Verbs];
    let plan = Request { place: some, transports, settings, ..one_way() }.plan().unwrap();
    assert!(plan.cases.iter().any(|case| case.settings.text("device") == Some("mlx5_9,mlx5_1")));
}

#[test]
fn clients_of_one_server_are_on_hosts_that_are_named_once_and_are_not_the_server_s() {
    let host = |name: &str| {
        let spec = || HostSpec { host: name.into(), ..HostSpec::default() };
        (name != HERE).then(spec)
    };
    let place = |clients: &[&str], server: &str| {
        Place::clients(clients.iter().map(|name| host(name)).collect(), host(server))
    };
    let asked = latency::request(Default::default());
    let layout = place(&["a", HERE, "b"], "s").layout(&asked).unwrap();
    let names: Vec<&str> = layout.hosts.iter().map(|spec| spec.host.as_str()).collect();
    assert_eq!((names, layout.clients), (vec!["a", "s", "b"], vec![Some(0), None, Some(2)]));
    assert_eq!(layout.pairs, [HostPair { client: Some(0), server: Some(1) }]);
    let refused = |clients: &[&str], server| place(clients, server).layout(&asked).unwrap_err().0;
    assert!(refused(&["a", "b", "a"], HERE).contains("'a' is named twice"));
    assert!(refused(&["a", HERE], HERE).contains("'here' has the server"));
    assert!(refused(&["a", "b"], "b").contains("'b' has the server"));
    let alone = place(&["a"], HERE).layout(&asked).unwrap();
    assert!(alone.clients.is_empty(), "one client is a pair");
    let asked = Request { place: place(&["a", "b"], HERE), ..asked };
    assert!(asked.plan().unwrap_err().0.contains("latency has one client"));
}
