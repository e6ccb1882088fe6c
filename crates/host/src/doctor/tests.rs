//! A machine as it should be, and for each check what makes it worse.

use super::counters::Counter;
use super::examined::{Examined, Use};
use super::{CHECKS, Checkup};
use crate::Environment;
use crate::ethtool::{Coalesce, Ethtool, Rings};
use crate::tree::fake::Fake;
use std::collections::BTreeSet;
use wiregauge_base::warning::Severity;

const CPU: &str = "sys/devices/system/cpu";
const ETH: &str = "sys/class/net/eth0";
const IB: &str = "sys/class/infiniband/mlx5_0";

/// What is not in files.
struct Said {
    ethtool: Ethtool,
    qdisc: &'static str,
    grown: Vec<Counter>,
    wanted: Use,
    is_loopback_up: bool,
}

/// A driver that says nothing bad; GRO off, which is right for latency, is wrong for a rate.
fn good_driver() -> Ethtool {
    Ethtool {
        coalesce: Some(Coalesce::default()),
        rings: Some(Rings { rx: 1024, rx_most: 1024, tx: 1024, tx_most: 1024 }),
        pause: Some((true, true)),
        channels: Some((4, 4)),
        gro: Some(false),
        gso: Some(true),
        tso: Some(true),
        firmware: None,
    }
}

/// A machine on which CPUs 2 and 3 are kept free, with a network and an RDMA adapter.
fn good() -> (Fake, Said) {
    let fake = Fake::new(&[
        (&format!("{CPU}/isolated"), "2-3\n"),
        (&format!("{CPU}/nohz_full"), "2-3\n"),
        (&format!("{CPU}/intel_pstate/no_turbo"), "1\n"),
        (&format!("{CPU}/cpu2/cpufreq/scaling_governor"), "performance\n"),
        (&format!("{CPU}/cpu3/cpufreq/scaling_governor"), "performance\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n"),
        ("sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("sys/devices/system/node/node0/distance", "10\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/module/pcie_aspm/parameters/policy", "default [performance] powersave\n"),
        ("proc/self/limits", "Max locked memory  unlimited  unlimited  bytes\n"),
        ("proc/loadavg", "0.1 0.1 0.1 1/98 19277\n"),
        ("proc/sys/kernel/watchdog", "1\n"),
        ("proc/sys/kernel/soft_watchdog", "1\n"),
        ("proc/sys/kernel/watchdog_cpumask", "0-1\n"),
        ("proc/sys/kernel/nmi_watchdog", "0\n"),
        ("proc/sys/net/core/busy_read", "50\n"),
        ("proc/sys/net/core/rmem_max", "16777216\n"),
        ("proc/sys/net/core/wmem_max", "16777216\n"),
        ("proc/irq/40/effective_affinity_list", "0\n"),
        ("proc/irq/40/smp_affinity_list", "0-1\n"),
        (&format!("{ETH}/operstate"), "up\n"),
        (&format!("{ETH}/ifindex"), "2\n"),
        (&format!("{ETH}/mtu"), "9000\n"),
        (&format!("{ETH}/speed"), "100000\n"),
        (&format!("{ETH}/device/numa_node"), "0\n"),
        (&format!("{ETH}/device/msi_irqs/40"), "msix\n"),
        (&format!("{ETH}/device/current_link_speed"), "8.0 GT/s PCIe\n"),
        (&format!("{ETH}/device/current_link_width"), "16\n"),
        (&format!("{ETH}/device/max_link_speed"), "8.0 GT/s PCIe\n"),
        (&format!("{ETH}/device/max_link_width"), "16\n"),
        (&format!("{ETH}/queues/rx-0/rps_cpus"), "0\n"),
        (&format!("{ETH}/queues/tx-0/xps_cpus"), "1\n"),
        (&format!("{ETH}/queues/tx-1/xps_cpus"), "2\n"),
        (&format!("{IB}/ports/1/state"), "4: ACTIVE\n"),
        (&format!("{IB}/ports/1/rate"), "100 Gb/sec (4X EDR)\n"),
        (&format!("{IB}/ports/1/link_layer"), "Ethernet\n"),
        (&format!("{IB}/ports/1/counters/symbol_error"), "0\n"),
        (&format!("{IB}/board_id"), "MT_1\n"),
        (&format!("{IB}/fw_ver"), "16.35\n"),
        (&format!("{IB}/device/numa_node"), "0\n"),
        (&format!("{IB}/device/net/eth0/mtu"), "9000\n"),
        (&format!("{ETH}/ecn/roce_np/enable/3"), "1\n"),
    ])
    .with_cores(4, 1, 1);
    fake.link(&format!("{ETH}/device/driver"), "../../../bus/pci/drivers/mlx5_core");
    let said = Said {
        ethtool: Ethtool { gro: None, ..good_driver() },
        qdisc: "fq_codel",
        grown: Vec::new(),
        wanted: Use::default(),
        is_loopback_up: true,
    };
    (fake, said)
}

fn examined(fake: &Fake, said: Said) -> Checkup {
    let environment = Environment::read_from(&fake.tree, &[2, 3]);
    let qdiscs = |number| if number == 2 { vec![said.qdisc.to_owned()] } else { Vec::new() };
    let driver = |_: &str| said.ethtool.clone();
    let own = Examined::of(fake.tree.clone(), environment, &said.wanted, driver, qdiscs);
    let Said { grown, is_loopback_up, .. } = said;
    Checkup::of(&Examined { grown, is_loopback_up, ..own })
}

/// The names of the checks that found something.
fn found(checkup: &Checkup) -> BTreeSet<&str> {
    checkup.findings.iter().map(|finding| finding.check.as_str()).collect()
}

/// What spoils a host.
type Spoils = fn(&Fake, &mut Said);

/// For each check what makes the good machine a bad one.
const BAD: &[(&str, Spoils)] = &[
    ("pcie_link", |fake, _| {
        fake.file(&format!("{IB}/device/current_link_speed"), "8.0 GT/s PCIe\n");
        fake.file(&format!("{IB}/device/current_link_width"), "8\n");
        fake.file(&format!("{IB}/device/max_link_speed"), "8.0 GT/s PCIe\n");
        fake.file(&format!("{IB}/device/max_link_width"), "16\n");
    }),
    ("port_rate", |fake, _| fake.file(&format!("{IB}/ports/1/rate"), "25 Gb/sec (1X EDR)\n")),
    ("error_counters", |_, said| {
        let (port, name) = ("mlx5_0/1".to_owned(), "symbol_error".to_owned());
        said.grown.push(Counter { port, name, value: 7 });
    }),
    ("qdisc", |_, said| said.qdisc = "netem"),
    ("governor", |fake, _| {
        fake.file(&format!("{CPU}/cpu2/cpufreq/scaling_governor"), "powersave\n");
    }),
    ("idle_states", deep_idle),
    ("pm_qos", deep_idle),
    ("tuned", |fake, _| {
        fake.file("proc/9/comm", "tuned\n");
        fake.file("etc/tuned/active_profile", "balanced\n");
    }),
    ("turbo", |fake, _| fake.file(&format!("{CPU}/intel_pstate/no_turbo"), "0\n")),
    ("aspm", |fake, _| fake.file(&format!("{ETH}/device/link/l1_aspm"), "1\n")),
    ("smt", |fake, _| {
        fake.file(&format!("{CPU}/cpu2/topology/thread_siblings_list"), "2,6\n");
    }),
    ("numa_nodes", |fake, _| {
        fake.remove(&format!("{CPU}/cpu3/node0"));
        fake.file(&format!("{CPU}/cpu3/node1/cpulist"), "");
    }),
    ("adapter_node", |fake, _| fake.file(&format!("{ETH}/device/numa_node"), "1\n")),
    ("numa_balancing", |fake, _| {
        fake.file("proc/sys/kernel/numa_balancing", "1\n");
        fake.file("sys/devices/system/node/node1/cpulist", "4-7\n");
    }),
    ("device_interrupts", |fake, _| fake.file("proc/irq/40/effective_affinity_list", "2\n")),
    ("irqbalance", |fake, _| fake.file("proc/9/comm", "irqbalance\n")),
    ("interrupts", |fake, _| fake.file("proc/irq/9/effective_affinity_list", "3\n")),
    ("isolation", |fake, _| fake.file(&format!("{CPU}/isolated"), "\n")),
    ("tick", |fake, _| {
        fake.file(&format!("{CPU}/nohz_full"), "\n");
        fake.file("proc/cmdline", "rcu_nocbs=2-3\n");
    }),
    ("rcu", |fake, _| fake.file(&format!("{CPU}/nohz_full"), "\n")),
    ("coalescing", |_, said| {
        said.ethtool.coalesce = Some(Coalesce { rx_usecs: 8, tx_usecs: 8, adaptive_rx: true });
    }),
    ("offloads", |_, said| said.ethtool.tso = Some(false)),
    ("busy_poll", |fake, _| fake.file("proc/sys/net/core/busy_read", "0\n")),
    ("receive_queues", |_, said| said.ethtool.channels = Some((1, 8))),
    ("packet_steering", |fake, _| {
        fake.file(&format!("{ETH}/queues/rx-0/rps_cpus"), "00000000,0000000c\n");
        fake.file("proc/sys/net/core/rps_sock_flow_entries", "32768\n");
    }),
    ("flow_steering", |fake, _| fake.file(&format!("{ETH}/queues/rx-0/rps_cpus"), "3\n")),
    ("transmit_queues", |fake, _| {
        fake.file(&format!("{ETH}/queues/tx-0/xps_cpus"), "0\n");
        fake.file(&format!("{ETH}/queues/tx-1/xps_cpus"), "0\n");
    }),
    ("ring_sizes", |_, said| {
        said.ethtool.rings = Some(Rings { rx: 512, rx_most: 4096, tx: 512, tx_most: 4096 });
    }),
    ("socket_buffers", |fake, _| fake.file("proc/sys/net/core/rmem_max", "212992\n")),
    ("mtu", |fake, _| fake.file(&format!("{ETH}/mtu"), "1500\n")),
    ("ipoib_mode", |fake, _| {
        fake.file(&format!("{ETH}/type"), "32\n");
        fake.file(&format!("{ETH}/mode"), "connected\n");
    }),
    ("flow_control", |_, said| said.ethtool.pause = Some((false, false))),
    ("ecn", |fake, _| fake.file(&format!("{ETH}/ecn/roce_np/enable/3"), "0\n")),
    ("firmware", |fake, _| {
        fake.file("sys/class/infiniband/mlx5_1/board_id", "MT_1\n");
        fake.file("sys/class/infiniband/mlx5_1/fw_ver", "16.20\n");
        fake.file("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
    }),
    ("locked_memory", |fake, _| {
        fake.file("proc/self/limits", "Max locked memory  65536  65536  bytes\n");
    }),
    ("huge_pages", |fake, _| {
        fake.file("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    }),
    ("cpu_quota", |fake, _| in_group(fake, &[("cpu.max", "150000 100000\n")])),
    ("cpuset", |fake, _| in_group(fake, &[("cpuset.cpus.effective", "3\n")])),
    ("memory_limit", |fake, _| {
        in_group(fake, &[("memory.max", "67108864\n"), ("memory.current", "9000000\n")]);
    }),
    ("task_limit", |fake, _| in_group(fake, &[("pids.max", "40\n"), ("pids.current", "9\n")])),
    ("process_limits", |fake, _| {
        let limits = "Max locked memory  unlimited  unlimited  bytes\n\
                      Max address space  900000000  900000000  bytes\n";
        fake.file("proc/self/limits", limits);
    }),
    ("loopback", |_, said| said.is_loopback_up = false),
    ("clock_source", |fake, _| {
        let folder = "sys/devices/system/clocksource/clocksource0";
        fake.file(&format!("{folder}/current_clocksource"), "hpet\n");
    }),
    ("watchdogs", |fake, _| fake.file("proc/sys/kernel/watchdog_cpumask", "0-3\n")),
    ("mitigations", |fake, _| {
        fake.file(&format!("{CPU}/vulnerabilities/spectre_v2"), "Mitigation: Retpolines\n");
    }),
    ("other_load", |fake, _| fake.file("proc/loadavg", "3.9 1.0 1.0 1/98 19277\n")),
    ("virtual_machine", |fake, _| {
        fake.file("proc/cpuinfo", "flags : tsc hypervisor\n");
    }),
];

/// A control group of version 2 with these files, in which the process is.
fn in_group(fake: &Fake, files: &[(&str, &str)]) {
    fake.file("proc/self/cgroup", "0::/box\n");
    let mount = "29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
    fake.file("proc/self/mountinfo", mount);
    for (file, text) in files {
        fake.file(&format!("sys/fs/cgroup/box/{file}"), text);
    }
}

fn deep_idle(fake: &Fake, _: &mut Said) {
    fake.file(&format!("{CPU}/cpu2/cpuidle/state0/name"), "C6\n");
    fake.file(&format!("{CPU}/cpu2/cpuidle/state0/latency"), "133\n");
    // 2000000000, in the byte order of this machine: text, as it happens.
    let bytes = 2_000_000_000i32.to_ne_bytes();
    fake.raw("dev/cpu_dma_latency", &bytes);
}

#[test]
fn a_machine_as_it_should_be_has_no_finding() {
    let (fake, said) = good();
    let checkup = examined(&fake, said);
    assert!(checkup.findings.is_empty(), "{:#?}", checkup.findings);
    assert!(!checkup.facts.is_empty());
}

#[test]
fn each_check_finds_what_it_is_for_and_no_other_does() {
    for (check, worsen) in BAD {
        let (fake, mut said) = good();
        worsen(&fake, &mut said);
        let checkup = examined(&fake, said);
        let expected = match *check {
            "idle_states" | "pm_qos" => BTreeSet::from(["idle_states", "pm_qos"]),
            // A CPU of another node is also far from the adapter.
            "numa_nodes" => BTreeSet::from(["numa_nodes", "adapter_node"]),
            // Without nohz_full= there is the tick, too.
            "rcu" => BTreeSet::from(["rcu", "tick"]),
            alone => BTreeSet::from([alone]),
        };
        assert_eq!(found(&checkup), expected, "{check}");
    }
    let known: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    let tried: BTreeSet<&str> = BAD.iter().map(|(check, _)| *check).collect();
    assert_eq!(known, tried, "each check has a machine that is bad by it alone");
    assert_eq!(known.len(), CHECKS.len(), "a name is that of one check");
}

#[test]
fn each_finding_has_a_cost_with_its_source_and_says_what_to_do() {
    for (check, worsen) in BAD {
        let (fake, mut said) = good();
        worsen(&fake, &mut said);
        for finding in examined(&fake, said).findings {
            assert!(!finding.source.is_empty(), "{check}: {finding:?}");
            assert!(finding.command.is_some() || !finding.advice.is_empty(), "{check}");
            assert_eq!(finding.command.is_some(), finding.undo.is_some(), "{check}");
            assert!(finding.sentence.len() <= 100, "{check}: {}", finding.sentence);
        }
    }
}

#[test]
fn the_worst_comes_first_and_only_notes_are_not_wrong() {
    let (fake, mut said) = good();
    said.qdisc = "netem";
    fake.file(&format!("{CPU}/isolated"), "\n");
    let checkup = examined(&fake, said);
    let names: Vec<&str> = checkup.findings.iter().map(|one| one.check.as_str()).collect();
    assert_eq!((names.as_slice(), checkup.wrong()), (&["qdisc", "isolation"][..], 1));
}

#[test]
fn what_is_not_used_does_not_matter() {
    let wanted = |change: fn(&mut Use)| {
        let (fake, mut said) = good();
        said.qdisc = "netem";
        said.ethtool.coalesce = Some(Coalesce { rx_usecs: 8, ..Coalesce::default() });
        fake.file(&format!("{IB}/ports/1/rate"), "25 Gb/sec (1X EDR)\n");
        fake.file(&format!("{ETH}/mtu"), "1500\n");
        change(&mut said.wanted);
        found(&examined(&fake, said)).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(wanted(|_| {}), ["coalescing", "mtu", "port_rate", "qdisc"]);
    assert_eq!(wanted(|one| one.rdma = false), ["coalescing", "mtu", "qdisc"]);
    assert_eq!(wanted(|one| one.sockets = false), ["port_rate"]);
    assert_eq!(wanted(|one| one.rate = false), ["coalescing", "port_rate", "qdisc"]);
    assert_eq!(wanted(|one| one.latency = false), ["mtu", "port_rate", "qdisc"]);
    assert_eq!(wanted(|one| one.device = Some("mlx5_7".into())), ["coalescing", "mtu", "qdisc"]);
    assert_eq!(wanted(|one| one.interface = Some("eth7".into())), ["port_rate"]);
}

#[test]
fn a_command_and_its_undo_are_each_other_s_opposite() {
    let (fake, said) = good();
    fake.file("proc/irq/40/effective_affinity_list", "2\n");
    fake.file("proc/irq/40/smp_affinity_list", "0-3\n");
    let checkup = examined(&fake, said);
    let [finding] = checkup.findings.as_slice() else { panic!("{checkup:?}") };
    let file = "/proc/irq/40/smp_affinity_list";
    assert_eq!(finding.command.as_deref(), Some(&*format!("echo '0-1' > {file}")));
    assert_eq!(finding.undo.as_deref(), Some(&*format!("echo '0-3' > {file}")));
    assert_eq!((finding.severity, &*finding.check), (Severity::Warning, "device_interrupts"));
    assert!(finding.what().starts_with("eth0: 1 of its interrupts"));
}

#[test]
fn a_name_that_is_no_name_gets_into_no_command() {
    let name = "e;reboot";
    let (fake, mut said) = good();
    said.ethtool.coalesce = Some(Coalesce { rx_usecs: 8, ..Coalesce::default() });
    fake.file(&format!("sys/class/net/{name}/operstate"), "up\n");
    fake.link(&format!("sys/class/net/{name}/device/driver"), "../drivers/x");
    said.wanted.interface = Some(name.into());
    let checkup = examined(&fake, said);
    let own = checkup.findings.iter().find(|one| one.check == "coalescing").unwrap();
    assert_eq!(own.command, None);
}

#[test]
fn an_empty_tree_gives_no_panic() {
    let fake = Fake::new(&[]);
    let said = Said {
        ethtool: Ethtool::default(),
        qdisc: "",
        grown: Vec::new(),
        wanted: Use::default(),
        is_loopback_up: true,
    };
    let checkup = examined(&fake, said);
    assert_eq!(found(&checkup), BTreeSet::from(["isolation", "rcu", "tick"]));
}
