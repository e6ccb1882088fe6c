//! Parts of a study, a pair of a topology each.

use wiregauge_base::units::Span;
use wiregauge_plan::study::parts::*;
use wiregauge_plan::{HostSpec, Pairs, Part, Place, Request};

#[test]
fn the_pairs_of_a_topology_are_those_of_its_name() {
    assert_eq!(Shape::ManyToOne.pairs(4), [[1, 0], [2, 0], [3, 0]]);
    assert_eq!(Shape::OneToMany.pairs(3), [[0, 1], [0, 2]]);
    assert_eq!(Shape::AllToAll.pairs(3), [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]);
    assert_eq!(Shape::Bisection.pairs(4), [[0, 2], [1, 3]]);
}

fn asked(topology: Option<Shape>, places: Places) -> PartAsked {
    PartAsked {
        together: Some("t".into()),
        after: Span(5),
        topology,
        places: Some(places),
        position: 0..0,
    }
}

fn hosts(names: &[&str]) -> Places {
    Places::Hosts(names.iter().map(|name| ((*name).to_owned(), 0..0)).collect())
}

fn run(names: &[&str]) -> Place {
    let spec = |name: &&str| HostSpec { host: (*name).to_owned(), ..HostSpec::default() };
    Place { nodes: names.iter().map(|name| Some(spec(name))).collect(), ..Place::default() }
}

#[test]
fn a_request_becomes_one_for_each_pair_with_its_hosts_and_its_start() {
    let request = wiregauge_patterns::latency::request(Default::default());
    let asked = asked(Some(Shape::ManyToOne), hosts(&["here", "b", "a"]));
    let found = requests(&asked, request, &run(&["a", "b"])).unwrap();
    let names = |one: &Request| {
        let name = |spec: &Option<HostSpec>| spec.as_ref().map(|spec| spec.host.clone());
        one.place.nodes.iter().map(name).collect::<Vec<_>>()
    };
    let ends: Vec<_> = found.iter().map(names).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(ends, [vec![named("b"), None], vec![named("a"), None]]);
    assert_eq!(found[1].part, Part { after: Span(5), pair: Some([2, 0]), cpus_before: 0 });
    assert_eq!(found[0].group.as_deref(), Some("t"));
}

#[test]
fn all_hosts_of_a_run_are_the_nodes_of_an_entry_whose_pattern_has_nodes() {
    let asked = PartAsked::default();
    for which in [Pairs::First, Pairs::All { at_once: Default::default() }] {
        let place = Place { which, ..run(&["a", "b", "c", "d"]) };
        let exchange = wiregauge_patterns::exchange::request(Default::default());
        let found = requests(&asked, exchange, &place).unwrap();
        assert_eq!((found.len(), found[0].place.which), (1, Pairs::Ranks));
        let latency = wiregauge_patterns::latency::request(Default::default());
        let found = requests(&asked, latency, &place).unwrap();
        assert_eq!(found[0].place.which, which, "pairs stay pairs");
    }
}

#[test]
fn what_no_topology_can_be_made_of_is_refused() {
    let latency = || wiregauge_patterns::latency::request(Default::default());
    let said = |topology, places, request| {
        let asked = asked(topology, places);
        requests(&asked, request, &run(&["a", "b", "c"])).unwrap_err().to_string()
    };
    let bisection = Some(Shape::Bisection);
    assert!(said(bisection, hosts(&["a", "b", "c"]), latency()).contains("an even number"));
    let found = said(None, Places::Processes(3), latency());
    assert!(found.contains("use many-to-one, one-to-many, all-to-all, bisection"), "{found}");
    assert!(said(None, hosts(&["a", "z"]), latency()).contains("'z' is not among"));
    let exchange = wiregauge_patterns::exchange::request(Default::default());
    assert!(said(bisection, hosts(&["a", "b"]), exchange).contains("has --schedule"));
}
