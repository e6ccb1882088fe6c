//! What the threads of a role used and saw, as that of the role.

use crate::record::schema::{RoundEnd, Usage};
use crate::run::round::ThreadResult;
use crate::transport::counter::{self, CounterValue, FinalCounters};
use std::collections::BTreeMap;

/// Why a client's loop ended.
pub(super) fn ended(client: Option<&ThreadResult>) -> RoundEnd {
    let outcome = client.and_then(|part| part.outcome.as_ref());
    outcome.map_or(RoundEnd::Unknown, |outcome| RoundEnd::Loop(outcome.ended))
}

/// The usage of a role from that of its threads: costs and numbers of events are added up, and what
/// is true of a role is true of all its threads. Settings stand here where all threads have the
/// same; each thread's own stand beside it.
pub(super) fn whole(each: &[&Usage], counters: &FinalCounters) -> Usage {
    let sum = |of: fn(&Usage) -> u64| each.iter().copied().map(of).sum();
    Usage {
        user_ns: each.iter().map(|usage| usage.user_ns).sum(),
        system_ns: each.iter().map(|usage| usage.system_ns).sum(),
        voluntary_switches: sum(|usage| usage.voluntary_switches),
        involuntary_switches: sum(|usage| usage.involuntary_switches),
        page_faults: sum(|usage| usage.page_faults),
        pinned: each.iter().all(|usage| usage.pinned),
        locked: each.iter().all(|usage| usage.locked),
        effective_settings: in_common(each),
        final_counters: shown(counters),
    }
}

fn in_common(each: &[&Usage]) -> BTreeMap<String, String> {
    let Some((first, others)) = each.split_first() else { return BTreeMap::new() };
    let same = |name: &String, value: &String| {
        others.iter().all(|usage| usage.effective_settings.get(name) == Some(value))
    };
    let kept = first.effective_settings.iter().filter(|(name, value)| same(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The counters of all threads of a role. What is no number stands with the threads alone, where
/// there are several.
pub(super) fn counters(parts: &[ThreadResult]) -> FinalCounters {
    let outcomes = parts.iter().filter_map(|part| part.outcome.as_ref());
    let mut all = counter::merged(outcomes.map(|outcome| outcome.counters.clone()));
    if parts.len() > 1 {
        all.retain(|_, value| !matches!(value, CounterValue::Text(_)));
    }
    all
}

/// As the record has them.
pub(super) fn shown(counters: &FinalCounters) -> BTreeMap<String, String> {
    counters.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(switches: u64, pinned: bool, granted: &[&str]) -> Usage {
        let pair = |value: &&str| (value[..1].to_string(), value.to_string());
        Usage {
            user_ns: 5.0,
            involuntary_switches: switches,
            pinned,
            effective_settings: granted.iter().map(pair).collect(),
            ..Usage::default()
        }
    }

    #[test]
    fn costs_add_up_and_settings_are_those_of_all_threads() {
        let (one, other) = (usage(2, true, &["a1", "b1"]), usage(3, false, &["a1", "b2"]));
        let counters = [("event".to_string(), CounterValue::Events(7))];
        let all = whole(&[&one, &other], &counters.into());
        assert_eq!((all.user_ns, all.involuntary_switches, all.pinned), (10.0, 5, false));
        assert_eq!(
            all.effective_settings.into_iter().collect::<Vec<_>>(),
            [("a".into(), "a1".into())]
        );
        assert_eq!(all.final_counters["event"], "7");
    }
}
