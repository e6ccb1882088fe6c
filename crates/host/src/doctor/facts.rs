//! What is to be the same on hosts that are measured together, and where it is not.

use super::examined::Examined;
use crate::format_cpus;
use std::collections::{BTreeMap, BTreeSet};

/// The settings of a host that figures depend on.
pub(super) fn of(examined: &Examined) -> BTreeMap<String, String> {
    let environment = &examined.environment;
    let processor = &environment.processor;
    let shown = |value: &dyn std::fmt::Debug| format!("{value:?}");
    let states = &environment.cpus;
    let governors: BTreeSet<&str> =
        states.iter().filter_map(|state| state.governor.as_deref()).collect();
    let named = [
        ("kernel", environment.kernel.clone()),
        ("kernel options", Some(environment.kernel_options.join(" "))),
        ("system", environment.system.clone()),
        ("machine", environment.machine.clone()),
        ("hypervisor", environment.hypervisor.clone()),
        ("processor", processor.model.clone()),
        ("microcode", processor.microcode.clone()),
        ("CPUs", Some(processor.logical.to_string())),
        ("isolated CPUs", Some(format_cpus(&processor.isolated))),
        ("turbo", processor.turbo.map(|on| shown(&on))),
        ("SMT", processor.smt_active.map(|on| shown(&on))),
        ("idle driver", processor.idle_driver.clone()),
        ("governor", Some(governors.into_iter().collect::<Vec<_>>().join(" "))),
        ("huge pages", environment.memory.transparent_huge_pages.clone()),
        ("locked memory", environment.memory.lock_limit.clone()),
        ("CPU quota", environment.container.cpu_quota.map(|quota| format!("{}", quota.cpus()))),
        ("cpuset", Some(format_cpus(&environment.container.cpuset_cpus))),
        ("clock source", environment.clock_source.clone()),
        ("tuned", examined.tree.text("/etc/tuned/active_profile")),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mitigations = processor.mitigations.iter();
    let mitigations =
        mitigations.map(|(name, state)| (format!("mitigation {name}"), state.clone()));
    let sysctls = environment.sysctls.iter().map(|(name, value)| (name.clone(), value.clone()));
    let mut all = BTreeMap::from_iter(named.chain(mitigations).chain(sysctls));
    for adapter in &examined.adapters {
        let name = &adapter.interface.name;
        let own = [
            ("MTU", adapter.interface.mtu_bytes.map(|mtu| mtu.to_string())),
            ("speed", adapter.interface.speed_mbps.map(|speed| format!("{speed} Mb/s"))),
            ("driver", adapter.interface.driver.clone()),
            ("firmware", adapter.ethtool.firmware.clone()),
            (
                "coalescing",
                adapter.ethtool.coalesce.map(|own| {
                    let adaptive = if own.adaptive_rx { ", adaptive" } else { "" };
                    format!("rx {} us, tx {} us{adaptive}", own.rx_usecs, own.tx_usecs)
                }),
            ),
            ("GRO", adapter.ethtool.gro.map(|on| shown(&on))),
            ("TSO", adapter.ethtool.tso.map(|on| shown(&on))),
            ("IPoIB mode", adapter.interface.ipoib_mode.clone()),
        ];
        let own = own.into_iter().filter_map(|(what, value)| Some((what, value?)));
        all.extend(own.map(|(what, value)| (format!("{name} {what}"), value)));
    }
    for port in &examined.ports {
        let own = [("rate", &port.rate), ("firmware", &port.firmware), ("board", &port.board)];
        let own = own.into_iter().filter_map(|(what, value)| Some((what, value.clone()?)));
        all.extend(own.map(|(what, value)| (format!("{} {what}", port.name()), value)));
    }
    all
}

/// A fact that is not the same on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// What it is.
    pub name: String,
    /// Its values, the most frequent first, each with its hosts; "not there" is one too.
    pub values: Vec<(String, Vec<String>)>,
}

/// What a host has where it lacks a fact that others have.
const MISSING: &str = "not there";

/// The facts that differ between hosts, in the order of their names.
pub fn differences(hosts: &[(&str, &BTreeMap<String, String>)]) -> Vec<Difference> {
    let names: BTreeSet<&String> = hosts.iter().flat_map(|(_, facts)| facts.keys()).collect();
    let of = |name: &&String| {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        for (host, facts) in hosts {
            let value = facts.get(*name).map_or(MISSING, String::as_str);
            match values.iter_mut().find(|(known, _)| known == value) {
                Some((_, own)) => own.push((*host).to_owned()),
                None => values.push((value.to_owned(), vec![(*host).to_owned()])),
            }
        }
        values.sort_by_key(|(_, own)| std::cmp::Reverse(own.len()));
        (values.len() > 1).then(|| Difference { name: (*name).clone(), values })
    };
    names.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_differs_is_named_with_its_hosts_and_what_agrees_is_not() {
        let (a, b) =
            (facts(&[("kernel", "6.1"), ("eth0 MTU", "9000")]), facts(&[("kernel", "6.1")]));
        let c = facts(&[("kernel", "6.8")]);
        let found = differences(&[("a", &a), ("b", &b), ("c", &c)]);
        let host = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = [
            ("eth0 MTU", vec![("not there", host(&["b", "c"])), ("9000", host(&["a"]))]),
            ("kernel", vec![("6.1", host(&["a", "b"])), ("6.8", host(&["c"]))]),
        ];
        let expected = expected.map(|(name, values)| Difference {
            name: name.into(),
            values: values.into_iter().map(|(value, own)| (value.to_owned(), own)).collect(),
        });
        assert_eq!(found, expected);
        assert!(differences(&[("a", &a), ("same", &a.clone())]).is_empty());
    }
}
