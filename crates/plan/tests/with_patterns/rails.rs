//! Rails of hosts whose ports are known.

use std::collections::BTreeMap;
use wiregauge_patterns::{bandwidth, latency};
use wiregauge_plan::pairs::{AtOnce, Pairs, Place};
use wiregauge_plan::rails::*;
use wiregauge_plan::{Case, UsageError};
use wiregauge_plan::{HostSpec, Plan, Request};
use wiregauge_transport::TransportKind;

fn ports(names: &[&str]) -> Vec<RailPort> {
    let port = |name: &&str| match name.split_once('/') {
        Some((device, port)) => RailPort {
            device: device.into(),
            port: port.parse().ok(),
            link_layer: "InfiniBand".into(),
        },
        None => RailPort::of_interface(name.to_string()),
    };
    names.iter().map(port).collect()
}

fn spec(name: &str) -> Option<HostSpec> {
    let (host, ssh) = (name.to_string(), vec!["ssh".to_string()]);
    Some(HostSpec { host, ssh, ..HostSpec::default() })
}

/// A request over verbs between this host and others.
fn request(others: &[&str], which: Pairs, at_once: RailsAtOnce) -> Request {
    let nodes = std::iter::once(None).chain(others.iter().map(|name| spec(name))).collect();
    let rails = Some(Rails::new(at_once));
    let place = Place { nodes, which, rails, ..Place::default() };
    let transports = vec![TransportKind::Verbs];
    Request { place, transports, ..latency::request(Default::default()) }
}

/// The plan of a request when its hosts were found to have these ports, this one first.
fn plan(mut request: Request, found: &[&[&str]]) -> Result<Plan, UsageError> {
    let names = ["here", "b", "c"];
    let mut all = names.iter().zip(found).map(|(name, own)| (*name, ports(own)));
    let here = all.next();
    let kind = RailKind::of_transport(request.transports[0]).unwrap();
    request.place.rails.as_mut().unwrap().found(kind, here, all.collect())?;
    request.plan()
}

fn ends(plan: &Plan) -> Vec<(String, String)> {
    let text = |case: &Case, name| case.settings.text(name).unwrap_or_default().to_owned();
    plan.cases.iter().map(|case| (text(case, "device"), text(case, "port"))).collect()
}

#[test]
fn each_rail_is_a_case_with_the_ports_of_both_hosts() {
    let asked = request(&["b"], Pairs::First, RailsAtOnce::Each);
    let plan = plan(asked, &[&["mlx5_0/1", "mlx5_1/1"], &["mlx5_0/1", "mlx5_3/2"]]).unwrap();
    let expected = [("mlx5_0", "1"), ("mlx5_1,mlx5_3", "1,2")];
    assert_eq!(ends(&plan), expected.map(|(device, port)| (device.into(), port.into())));
    assert_eq!((plan.concurrent.len(), plan.cpus_at_once()), (0, 1));
    let rails: Vec<Option<String>> = plan.cases.iter().map(|case| plan.rail(case)).collect();
    assert_eq!(rails[0].as_deref(), Some("0 (mlx5_0/1)"));
    assert_eq!(rails[1].as_deref(), Some("1 (mlx5_1/1,mlx5_3/2)"));
    assert!(plan.label(1).ends_with("rail 1 (mlx5_1/1,mlx5_3/2)"), "{}", plan.label(1));
}

#[test]
fn over_ip_a_rail_is_a_network_interface_of_each_host() {
    let over = |transports: &[TransportKind]| Request {
        transports: transports.to_vec(),
        ..request(&["b"], Pairs::First, RailsAtOnce::Each)
    };
    let two: &[&str] = &["eth0", "eth1"];
    let planned = plan(over(&[TransportKind::Tcp]), &[two, &["ens1", "ens2"]]).unwrap();
    let interface = |case: &Case| case.settings.text("interface").unwrap().to_owned();
    let interfaces: Vec<String> = planned.cases.iter().map(interface).collect();
    assert_eq!(interfaces, ["eth0,ens1", "eth1,ens2"]);
    let rails: Vec<Option<String>> = planned.cases.iter().map(|case| planned.rail(case)).collect();
    assert_eq!(rails[1].as_deref(), Some("1 (eth1,ens2)"));
    let refused = |transports, found: &[&[&str]]| plan(over(transports), found).unwrap_err().0;
    let fewer = refused(&[TransportKind::Udp], &[two, &["ens1"]]);
    assert!(
        fewer.contains("b has 1 interfaces (ens1)") && fewer.contains("--interface"),
        "{fewer}"
    );
    let none = refused(&[TransportKind::Udp], &[two, &[]]);
    assert!(none.contains("b has no interface that is up"), "{none}");
    let both = refused(&[TransportKind::Tcp, TransportKind::Verbs], &[two, two]);
    assert!(both.contains("either of RDMA ports or of network interfaces"), "{both}");
}

#[test]
fn all_rails_of_a_pair_run_together_on_cpus_of_their_own() {
    let asked = request(&["b"], Pairs::First, RailsAtOnce::All);
    let two: &[&str] = &["mlx5_0/1", "mlx5_1/1"];
    let plan = plan(asked, &[two, two]).unwrap();
    assert_eq!(plan.concurrent, [[0, 1]]);
    assert_eq!(plan.cpus_at_once(), 2);
}

#[test]
fn rails_of_all_pairs_keep_their_matchings() {
    let three: &[&str] = &["mlx5_0/1", "mlx5_1/1", "mlx5_2/1"];
    let at_once = |of_pairs, of_rails| {
        let asked = request(&["b", "c"], Pairs::All { at_once: of_pairs }, of_rails);
        plan(asked, &[three; 3]).unwrap()
    };
    let each = at_once(AtOnce::All, RailsAtOnce::Each);
    assert_eq!(each.cases.len(), 9);
    assert_eq!(each.concurrent, [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
    for group in &each.concurrent {
        let rail = |number: &u32| {
            let case = &each.cases[*number as usize];
            each.rails.as_ref().unwrap().of_case(case)
        };
        assert!(group.iter().all(|number| rail(number) == rail(&group[0])), "{group:?}");
    }
    let all = at_once(AtOnce::Matching, RailsAtOnce::All);
    assert_eq!(all.concurrent, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]);
    assert!(at_once(AtOnce::Pair, RailsAtOnce::Each).concurrent.is_empty());
}

#[test]
fn hosts_whose_ports_do_not_pair_are_refused() {
    let refused = |found: &[&[&str]]| {
        plan(request(&["b", "c"], all(), RailsAtOnce::Each), found).unwrap_err().0
    };
    let (one, two): (&[&str], &[&str]) = (&["mlx5_0/1"], &["mlx5_0/1", "mlx5_1/1"]);
    let unequal = "--rails: here has 2 active RDMA ports (mlx5_0/1, mlx5_1/1) and c has 1 active \
                   RDMA ports (mlx5_0/1): use hosts with the same number, or --device for one rail";
    assert_eq!(refused(&[two, two, one]), unequal);
    let none = "--rails: b has no active RDMA port: see `rdma link show` there";
    assert_eq!(refused(&[two, &[], two]), none);
    let mut rails = Rails::new(RailsAtOnce::Each);
    let mut ethernet = ports(two);
    ethernet[1].link_layer = "Ethernet".into();
    let wrong = rails
        .found(RailKind::Rdma, Some(("here", ports(two))), vec![("b", ethernet)])
        .unwrap_err()
        .0;
    assert!(wrong.contains("rail 1 is InfiniBand mlx5_1/1 on here and Ethernet"), "{wrong}");
    assert_eq!(rails.count(), 1);
}

fn all() -> Pairs {
    Pairs::All { at_once: AtOnce::Pair }
}

#[test]
fn what_has_no_rails_is_refused_before_hosts_are_reached() {
    let mixed = Request {
        transports: vec![TransportKind::Verbs, TransportKind::Tcp],
        ..request(&["b"], Pairs::First, RailsAtOnce::Each)
    };
    let wrong = mixed.plan().unwrap_err().0;
    assert!(wrong.contains("use verbs alone, or the transports over IP"), "{wrong}");
    let mut own = request(&["b"], Pairs::First, RailsAtOnce::Each);
    own.place.own_here = BTreeMap::from([("device".into(), "mlx5_0".into())]);
    assert!(own.plan().unwrap_err().0.contains("leave out device= of --hosts-file"));
}

#[test]
fn rails_count_among_the_cases_of_a_plan() {
    let (transports, threads) = (vec![TransportKind::Verbs], vec![1]);
    let place = request(&["b"], all(), RailsAtOnce::Each).place;
    let sizes = vec![wiregauge_base::units::Bytes(64); 1000];
    let many = Request {
        place,
        transports,
        threads,
        sizes,
        rounds: Some(3),
        ..bandwidth::request(bandwidth::Spec::default())
    };
    let two: &[&str] = &["mlx5_0/1", "mlx5_1/1"];
    assert!(many.clone().plan().is_ok());
    assert!(plan(many, &[two, two]).unwrap_err().0.contains("use 1 to 8000"));
}
