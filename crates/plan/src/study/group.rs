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
