//! What the threads of a role used and saw, as that of the role.

use crate::record::schema::{RoundEnd, Usage};
use crate::run::round::Part;
use std::collections::BTreeMap;

/// Counters of a port, whose begin this is, are seen by all threads that use it.
const OF_THE_PORT: &str = "counter.";

/// Why a client's loop ended.
pub(super) fn ended(client: Option<&Part>) -> RoundEnd {
    let outcome = client.and_then(|part| part.outcome.as_ref());
    outcome.map_or(RoundEnd::Unknown, |outcome| outcome.ended.into())
}

/// The usage of a role from that of its threads: costs and numbers of events are added up, and what
/// is true of a role is true of all its threads. Settings stand here where all threads have the
/// same; each thread's own stand beside it.
pub(super) fn whole(each: &[Usage]) -> Usage {
    let sum = |of: fn(&Usage) -> u64| each.iter().map(of).sum();
    Usage {
        user_ns: each.iter().map(|usage| usage.user_ns).sum(),
        system_ns: each.iter().map(|usage| usage.system_ns).sum(),
        voluntary_switches: sum(|usage| usage.voluntary_switches),
        involuntary_switches: sum(|usage| usage.involuntary_switches),
        page_faults: sum(|usage| usage.page_faults),
        pinned: each.iter().all(|usage| usage.pinned),
        locked: each.iter().all(|usage| usage.locked),
        granted: in_common(each),
        seen: seen(each),
    }
}

fn in_common(each: &[Usage]) -> BTreeMap<String, String> {
    let Some((first, others)) = each.split_first() else { return BTreeMap::new() };
    let same = |name: &String, value: &String| {
        others.iter().all(|usage| usage.granted.get(name) == Some(value))
    };
    let kept = first.granted.iter().filter(|(name, value)| same(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Numbers of events are added up, but for the port's counters, of which the largest holds. What is
/// no number stands with the threads alone, where there are several.
fn seen(each: &[Usage]) -> BTreeMap<String, String> {
    if let [one] = each {
        return one.seen.clone();
    }
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (name, value) in each.iter().flat_map(|usage| &usage.seen) {
        let Ok(value) = value.parse::<u64>() else { continue };
        let so_far = all.entry(name.clone()).or_default();
        *so_far = match name.starts_with(OF_THE_PORT) {
            true => value.max(*so_far),
            false => value.saturating_add(*so_far),
        };
    }
    all.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(switches: u64, pinned: bool, granted: &[&str], seen: &[(&str, &str)]) -> Usage {
        let pair = |(a, b): (&str, &str)| (a.to_string(), b.to_string());
        Usage {
            user_ns: 5.0,
            involuntary_switches: switches,
            pinned,
            granted: granted.iter().map(|value| pair((&value[..1], value))).collect(),
            seen: seen.iter().copied().map(pair).collect(),
            ..Usage::default()
        }
    }

    #[test]
    fn events_add_up_and_a_port_s_counters_do_not() {
        let all = whole(&[
            usage(2, true, &["a1", "b1"], &[("error.send.retry_exc", "1"), ("counter.rx", "90")]),
            usage(3, false, &["a1", "b2"], &[("error.send.retry_exc", "2"), ("counter.rx", "91")]),
        ]);
        assert_eq!((all.user_ns, all.involuntary_switches, all.pinned), (10.0, 5, false));
        assert_eq!(all.granted.into_iter().collect::<Vec<_>>(), [("a".into(), "a1".into())]);
        let seen = [("counter.rx", "91"), ("error.send.retry_exc", "3")];
        assert!(all.seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(seen));
    }

    #[test]
    fn one_thread_is_its_role() {
        let one = usage(2, true, &["a1"], &[("event", "port error"), ("counter.rx", "90")]);
        assert_eq!(format!("{:?}", whole(std::slice::from_ref(&one))), format!("{one:?}"));
    }
}
