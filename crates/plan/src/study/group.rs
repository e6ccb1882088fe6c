//! The cases of entries that run at the same time, and the hosts of all entries. Pure.

use super::super::{Case, HostSpec, Impact, Plan, Request, UsageError};
use super::parts::ImpactAsked;
use crate::pairs::MOST_AT_ONCE;
use std::collections::BTreeMap;
use std::ops::Range;
use wiregauge_base::options::{each_once, refuse};
use wiregauge_base::units::Span;

/// Groups of entries by their names, each with the cases of its entries.
#[derive(Default)]
pub(super) struct Groups(BTreeMap<String, Vec<Range<u32>>>);

impl Groups {
    /// Refuses what cannot run beside others.
    pub fn check(
        &self,
        request: &Request,
        cases: &[Case],
        beside: &[Vec<u32>],
    ) -> Result<(), UsageError> {
        let Some(group) = &request.group else { return Ok(()) };
        let name = request.pattern.name();
        ensure!(
            beside.is_empty(),
            "together = \"{group}\": {name} has cases at the same time already: leave them out"
        );
        ensure!(
            request.simulated().is_none() && request.injected_clock_error.is_none(),
            "together = \"{group}\": nothing runs beside a simulation, or by a clock that was made \
             wrong"
        );
        let first = self.0.get(group).and_then(|all| all.first());
        let differs = first.filter(|first| first.len() != cases.len());
        match differs {
            None => Ok(()),
            Some(first) => refuse(format!(
                "together = \"{group}\": one entry has {} cases and another {}: give all of them \
                 as many sizes, transports and waits",
                first.len(),
                cases.len()
            )),
        }
    }

    /// Adds the cases of an entry to its group.
    pub fn add(&mut self, request: &Request, numbers: Range<u32>) {
        if let Some(group) = &request.group {
            self.0.entry(group.clone()).or_default().push(numbers);
        }
    }

    /// The cases that run at the same time: of each entry of a group its first, and so on. Each
    /// takes the CPUs after those of the others on its hosts.
    pub fn concurrent(self, cases: &mut [Case]) -> Result<Vec<Vec<u32>>, UsageError> {
        let mut found = Vec::new();
        for (name, entries) in self.0 {
            let count = entries.iter().map(Range::len).min().unwrap_or(0) as u32;
            for at in 0..count {
                let group: Vec<u32> = entries.iter().map(|entry| entry.start + at).collect();
                let most = group.len();
                ensure!(
                    most <= MOST_AT_ONCE,
                    "together = \"{name}\": {most} pairs at the same time exceed the limit of \
                     {MOST_AT_ONCE}"
                );
                match group.as_slice() {
                    // One that is alone in its group runs as any other.
                    [one] => cases[*one as usize].part.after = Span(0),
                    _ => {
                        place_on_cpus(cases, &group);
                        found.push(group);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Gives each case the CPUs after those of the cases before it that have a host of its own.
fn place_on_cpus(cases: &mut [Case], group: &[u32]) {
    let mut taken = BTreeMap::<Option<u32>, u32>::new();
    for number in group {
        let case = &mut cases[*number as usize];
        let hosts = each_once(case.topology.ranks.iter().map(|rank| rank.host));
        let before = hosts.iter().filter_map(|host| taken.get(host)).max().copied();
        case.part.cpus_before = before.unwrap_or(0);
        let after = case.part.cpus_before + case.topology.cpu_pairs();
        taken.extend(hosts.into_iter().map(|host| (host, after)));
    }
}

/// The hosts of the whole study: those of its entries' places, each once, in their order.
pub(super) fn hosts(requests: &[(String, Request)]) -> Vec<HostSpec> {
    let without = requests.iter().filter(|(_, request)| request.part.pair.is_none());
    let all = without.chain(requests).flat_map(|(_, request)| request.place.all_nodes());
    each_once(all.flatten().cloned())
}

/// Has the cases of a plan count hosts as the whole study does.
pub(super) fn renumber(plan: &mut Plan, hosts: &mut Vec<HostSpec>) {
    let own = std::mem::take(&mut plan.hosts);
    let mut place = |spec: &HostSpec| match hosts.iter().position(|other| other == spec) {
        Some(at) => at as u32,
        None => {
            hosts.push(spec.clone());
            hosts.len() as u32 - 1
        }
    };
    let numbers: Vec<u32> = own.iter().map(&mut place).collect();
    let ranks = plan.cases.iter_mut().flat_map(|case| &mut case.topology.ranks);
    for rank in ranks {
        rank.host = rank.host.and_then(|host| numbers.get(host as usize).copied());
    }
}

/// The comparisons of series with themselves beside others, case by case. One whose series are not
/// all run is left out.
///
/// # Errors
/// The two series do not have as many cases, or nothing runs beside the second.
pub fn impacts(asked: &[ImpactAsked], plan: &Plan) -> Result<Vec<Impact>, UsageError> {
    let cases = |name: &str| plan.study.as_ref().map_or(&[][..], |study| study.cases(name));
    let mut found = Vec::new();
    for one in asked {
        let (alone, under) = (cases(&one.alone.0), cases(&one.under.0));
        if alone.is_empty() || under.is_empty() {
            continue;
        }
        let (name, own, others) = (&one.under.0, alone.len(), under.len());
        ensure!(
            own == others,
            "impact: '{}' has {own} cases and '{name}' {others}: give both as many",
            one.alone.0
        );
        for (alone, under_case) in alone.iter().zip(under) {
            let group = plan.concurrent.iter().find(|group| group.contains(under_case));
            let beside = group.into_iter().flatten().filter(|case| !under.contains(case));
            let beside: Vec<u32> = beside.copied().collect();
            ensure!(
                !beside.is_empty(),
                "impact: nothing runs beside '{name}': give it and another entry one together"
            );
            let (alone, under) = (*alone, *under_case);
            found.push(Impact { congestor: one.congestor.clone(), alone, under, beside });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::{Study, plan};
    use super::*;
    use crate::study::parts::ImpactAsked;
    use crate::{Part, Place};
    use wiregauge_base::units::Bytes;

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
}
