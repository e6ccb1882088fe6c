//! Entries of a study that run at the same time.

use wiregauge_base::units::Bytes;
use wiregauge_base::units::Span;
use wiregauge_plan::study::group::impacts;
use wiregauge_plan::study::parts::ImpactAsked;
use wiregauge_plan::study::{Study, plan};
use wiregauge_plan::{Case, HostSpec, Request};
use wiregauge_plan::{Part, Place};

/// A latency between these hosts, `here` being this one.
fn between(series: &str, group: &str, hosts: [&str; 2]) -> (String, Request) {
    let spec = |name: &str| HostSpec { host: name.to_owned(), ..HostSpec::default() };
    let nodes = hosts.map(|name| (name != "here").then(|| spec(name)));
    let are_here = nodes.iter().all(Option::is_none);
    let nodes = if are_here { Vec::new() } else { nodes.into() };
    let request = Request {
        place: Place { nodes, ..Place::default() },
        part: Part { pair: Some([0, 1]), ..Part::default() },
        group: Some(group.to_owned()).filter(|group| !group.is_empty()),
        ..wiregauge_patterns::latency::request(Default::default())
    };
    (series.to_owned(), request)
}

#[test]
fn hosts_of_all_entries_are_numbered_once_and_cpus_are_shared_on_a_host_alone() {
    let entries = [
        between("x", "t", ["a", "b"]),
        between("y", "t", ["here", "a"]),
        between("z", "t", ["c", "b"]),
        between("w", "t", ["d", "here"]),
    ];
    let plan = plan(Study::default(), &entries).unwrap();
    let names: Vec<&str> = plan.hosts.iter().map(|spec| spec.host.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    let of = |case: &Case| -> Vec<Option<u32>> {
        case.topology.ranks.iter().map(|rank| rank.host).collect()
    };
    let ends: Vec<Vec<Option<u32>>> = plan.cases.iter().map(of).collect();
    let all = [[Some(0), Some(1)], [None, Some(0)], [Some(2), Some(1)], [Some(3), None]];
    assert_eq!(ends, all);
    let before: Vec<u32> = plan.cases.iter().map(|case| case.part.cpus_before).collect();
    // The second has a with the first, the third b, the last this host with the second.
    assert_eq!(before, [0, 1, 1, 2]);
    assert_eq!(plan.concurrent, [[0, 1, 2, 3]]);
    assert!(plan.label(2).ends_with(" c to b"), "{}", plan.label(2));
}

#[test]
fn sweeps_of_a_group_run_case_by_case_and_one_alone_is_no_group() {
    let sized = |(series, request): (String, Request)| {
        (series, Request { sizes: vec![Bytes(8), Bytes(16)], ..request })
    };
    let here = ["here", "here"];
    let entries = [between("x", "t", here), between("y", "t", here), between("z", "u", here)];
    let plan = plan(Study::default(), &entries.map(sized)).unwrap();
    assert_eq!(plan.concurrent, [[0, 2], [1, 3]]);
    assert_eq!(plan.cases[3].part.cpus_before, 1);
}

#[test]
fn a_series_is_compared_with_itself_beside_others_case_by_case() {
    let here = ["here", "here"];
    let entries = [
        between("alone", "", here),
        between("under", "t", here),
        between("other", "t", here),
        between("other", "t", here),
    ];
    let plan = plan(Study::default(), &entries).unwrap();
    let asked = |under: &str| ImpactAsked {
        congestor: "c".into(),
        alone: ("alone".into(), 0..0),
        under: (under.into(), 0..0),
    };
    let [found] = impacts(&[asked("under")], &plan).unwrap().try_into().unwrap();
    assert_eq!((found.alone, found.under, found.beside), (0, 1, vec![2, 3]));
    let refused = impacts(&[asked("other")], &plan).unwrap_err().to_string();
    assert!(refused.contains("1 cases and 'other' 2"), "{refused}");
    assert!(impacts(&[asked("gone")], &plan).unwrap().is_empty());
}

#[test]
fn a_quick_run_starts_its_parts_earlier_and_a_part_alone_at_once() {
    let (series, request) = between("x", "t", ["here", "here"]);
    let late = Part { after: Span(100_000_000), ..request.part };
    let late = (series, Request { part: late, ..request });
    let entries = [between("y", "t", ["here", "here"]), late.clone()];
    let quick = |entries: &[(String, Request)]| {
        let plan = plan(Study { quick: true, ..Study::default() }, entries).unwrap();
        plan.cases.iter().map(|case| case.part.after).collect::<Vec<_>>()
    };
    assert_eq!(quick(&entries), [Span(0), Span(10_000_000)]);
    // Without others there is no common instant.
    assert_eq!(quick(&[late]), [Span(0)]);
}
