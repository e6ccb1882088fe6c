//! What the threads of a role used and saw, as that of the role.

use crate::result::ThreadResult;
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_figures::record::schema::{RoundEnd, Usage};
use wiregauge_host::ResourceUse;
use wiregauge_measure::control::protocol::Outcome;
use wiregauge_transport::counter::{self, CounterValue};

/// Why a client's loop ended.
pub fn ended(client: Option<&ThreadResult>) -> RoundEnd {
    let outcome = client.and_then(|part| part.outcome.as_ref());
    outcome.map_or(RoundEnd::Unknown, |outcome| RoundEnd::Loop(outcome.ended))
}

/// The usage of a role from that of its threads: costs and numbers of events are added up, and what
/// is true of a role is true of all its threads. Settings stand here where all threads have the
/// same, and what is no number where there is one thread; each thread's own stand beside it.
pub fn usage(parts: &[ThreadResult]) -> Usage {
    let outcomes = || parts.iter().filter_map(|part| part.outcome.as_ref());
    let used = outcomes().fold(ResourceUse::default(), |all, one| all.and(&one.usage));
    let all = |holds: fn(&Outcome) -> bool| {
        parts.iter().all(|part| part.outcome.as_ref().is_some_and(holds))
    };
    let hosts: BTreeSet<Option<u32>> = parts.iter().map(|part| part.host).collect();
    let of_host = |host: Option<u32>| {
        let own = parts.iter().filter(|part| part.host == host);
        let counters = own.filter_map(|part| Some(part.outcome.as_ref()?.counters.clone()));
        counter::merged(counters)
    };
    let mut counters = counter::of_hosts(hosts.into_iter().map(of_host));
    if parts.len() > 1 {
        counters.retain(|_, value| !matches!(value, CounterValue::Text(_)));
    }
    Usage {
        user_ns: used.user_ns,
        system_ns: used.system_ns,
        cpu_ns: used.cpu_ns,
        waited_ns: used.waited_ns,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        page_faults: used.page_faults,
        pinned: all(|outcome| outcome.pinned.is_ok()),
        locked: all(|outcome| outcome.locked.is_ok()),
        own_descriptors: all(|outcome| outcome.own_descriptors),
        effective_settings: in_common(parts),
        final_counters: BTreeMap::from_iter(
            counters.into_iter().map(|(name, it)| (name, it.to_string())),
        ),
    }
}

fn in_common(parts: &[ThreadResult]) -> BTreeMap<String, String> {
    let Some((first, others)) = parts.split_first() else { return BTreeMap::new() };
    let is_common = |setting: &&(String, String)| {
        others.iter().all(|other| other.effective_settings.contains(setting))
    };
    BTreeMap::from_iter(first.effective_settings.iter().filter(is_common).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::finished_thread;

    #[test]
    fn costs_add_up_and_settings_are_those_of_all_threads() {
        let all = usage(&[
            finished_thread(2, true, &["a1", "b1"]),
            finished_thread(3, false, &["a1", "b2"]),
        ]);
        assert_eq!((all.user_ns, all.involuntary_switches, all.pinned), (10.0, 5, false));
        assert_eq!(
            all.effective_settings.into_iter().collect::<Vec<_>>(),
            [("a".into(), "a1".into())]
        );
        assert_eq!(all.final_counters["event"], "7");
    }
}
