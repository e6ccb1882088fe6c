//! Checks of network interfaces: queues, interrupts, offloads, buffers, and what shapes traffic.

use super::cpus::named;
use super::examined::{Adapter, Examined};
use super::finding::Finding;
use wiregauge_base::warning::Severity::{Note, Warning};
use wiregauge_base::warning::number::time;

const NETWORKING: &str = "kernel documentation, networking/scaling.rst";
const SYSCTL_NET: &str = "kernel documentation, sysctl/net.rst";
const HOMA: &str = "J. Ousterhout, performance notes of Homa";
/// From this speed on a core is hard put to fill the link with frames of 1500 B.
const FAST_MBPS: u32 = 10_000;
/// The largest payload of a plain Ethernet frame.
const PLAIN_MTU: u32 = 1500;
/// Bytes that are under way at 10 Gb/s and 3 ms, or at 100 Gb/s and 0.3 ms.
const BUFFER: u64 = 4 << 20;
/// Queueing disciplines that delay or drop packets by design.
const SHAPERS: [&str; 9] = ["netem", "tbf", "htb", "hfsc", "cbq", "cake", "red", "choke", "sfb"];

/// A name that can stand in a shell command.
pub(super) fn is_plain(name: &str) -> bool {
    !name.starts_with('-') && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@".contains(c))
}

/// A finding about an interface, with ethtool's command where the name can stand in one.
fn with_ethtool(finding: Finding, adapter: &Adapter, [option, new, old]: [&str; 3]) -> Finding {
    let name = &adapter.interface.name;
    match is_plain(name) {
        true => finding.change(
            format!("ethtool {option} {name} {new}"),
            format!("ethtool {option} {name} {old}"),
        ),
        false => finding.advice(format!("ethtool {option} ... {new}")),
    }
}

fn name(adapter: &Adapter) -> String {
    adapter.interface.name.clone()
}

/// The CPUs of a mask in hexadecimal digits, in groups of 32 bits: `00000000,00000003`.
fn mask(text: &str) -> Vec<u32> {
    let digits: Vec<u32> =
        text.chars().rev().filter(|c| *c != ',').map_while(|c| c.to_digit(16)).collect();
    let bits = digits.iter().enumerate().flat_map(|(at, digit)| {
        (0..4).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| at as u32 * 4 + bit)
    });
    bits.collect()
}

/// Files of all queues of a kind that have a mask which is not empty, with it.
fn masks(examined: &Examined, adapter: &Adapter, kind: &str, file: &str) -> Vec<(String, String)> {
    let folder = format!("/sys/class/net/{}/queues", adapter.interface.name);
    let queues = examined.tree.names(&folder);
    let own = queues.iter().filter(|queue| queue.starts_with(kind));
    let path = own.map(|queue| format!("{folder}/{queue}/{file}"));
    let filled = path.filter_map(|path| {
        let text = examined.tree.text(&path)?;
        (!mask(&text).is_empty()).then_some((path, text))
    });
    filled.collect()
}

pub(super) fn receive_queues(examined: &Examined) -> Vec<Finding> {
    let online = examined.tree.cpus("/sys/devices/system/cpu/online").unwrap_or_default().len();
    let adapters = examined.socket_adapters().filter(|_| examined.wanted.rate);
    let finding = |adapter: &Adapter| {
        let (now, most) = adapter.ethtool.channels?;
        let useful = most.min(online as u32);
        if now >= useful {
            return None;
        }
        let sentence = format!("{now} of {most} receiving queues are used, with {online} CPUs");
        let finding = Finding::new(Note, name(adapter), sentence)
            .costs("one CPU receives for all connections of a queue", NETWORKING);
        let (new, old) = (format!("combined {useful}"), format!("combined {now}"));
        Some(with_ethtool(finding, adapter, ["-L", &new, &old]))
    };
    adapters.filter_map(finding).collect()
}

pub(super) fn packet_steering(examined: &Examined) -> Vec<Finding> {
    let finding = |adapter: &Adapter| {
        let set = masks(examined, adapter, "rx-", "rps_cpus");
        let all: Vec<u32> = set.iter().flat_map(|(_, text)| mask(text)).collect();
        let own: Vec<u32> = examined.cpus.iter().copied().filter(|cpu| all.contains(cpu)).collect();
        if own.is_empty() || !examined.wanted.latency {
            return None;
        }
        let files: Vec<_> =
            set.into_iter().map(|(path, old)| (path, "0".to_owned(), old)).collect();
        let sentence = format!("RPS hands received packets to {}, by an interrupt", named(&own));
        let finding = Finding::new(Note, name(adapter), sentence).costs(
            "RTT of 100 B over TCP, one thread: 21.9 us with RPS and RFS, 20.0 us without",
            format!("{HOMA}, November 2019"),
        );
        Some(finding.writes(&files))
    };
    examined.socket_adapters().filter_map(finding).collect()
}

pub(super) fn flow_steering(examined: &Examined) -> Vec<Finding> {
    let file = "/proc/sys/net/core/rps_sock_flow_entries";
    let entries = examined.tree.number::<u32>(file).unwrap_or(0);
    let finding = |adapter: &Adapter| {
        let has_rps = !masks(examined, adapter, "rx-", "rps_cpus").is_empty();
        if !has_rps || entries > 0 {
            return None;
        }
        let sentence = "RPS chooses CPUs without regard to the one that reads (RFS is off)";
        let finding = Finding::new(Note, name(adapter), sentence)
            .costs("a message's cache lines move to the CPU of its reader", NETWORKING)
            .writes(&[(file.to_owned(), "32768".to_owned(), "0".to_owned())]);
        Some(finding.advice("set rps_flow_cnt of each queue too"))
    };
    examined.socket_adapters().filter_map(finding).collect()
}

pub(super) fn transmit_queues(examined: &Examined) -> Vec<Finding> {
    let finding = |adapter: &Adapter| {
        let folder = format!("/sys/class/net/{}/queues", adapter.interface.name);
        let queues = examined.tree.names(&folder);
        let sending = queues.iter().filter(|queue| queue.starts_with("tx-")).count();
        let is_known = examined.tree.text(&format!("{folder}/tx-0/xps_cpus")).is_some();
        let is_set = !masks(examined, adapter, "tx-", "xps_cpus").is_empty()
            || !masks(examined, adapter, "tx-", "xps_rxqs").is_empty();
        if sending < 2 || !is_known || is_set || !examined.wanted.rate {
            return None;
        }
        let sentence = format!("its {sending} sending queues belong to no CPU (XPS is off)");
        let finding = Finding::new(Note, name(adapter), sentence)
            .costs("CPUs wait for each other's lock of a queue", NETWORKING)
            .advice(format!("write a mask of CPUs to {folder}/tx-*/xps_cpus"));
        Some(finding)
    };
    examined.socket_adapters().filter_map(finding).collect()
}

pub(super) fn coalescing(examined: &Examined) -> Vec<Finding> {
    let adapters = examined.socket_adapters().filter(|_| examined.wanted.latency);
    let finding = |adapter: &Adapter| {
        let now = adapter.ethtool.coalesce?;
        if now.rx_usecs == 0 && !now.adaptive_rx {
            return None;
        }
        let sentence = match now.adaptive_rx {
            true => "the driver holds interrupts back as it sees fit (adaptive-rx)".to_owned(),
            false => format!("an interrupt waits {} us for more packets", now.rx_usecs),
        };
        let cost = match now.rx_usecs {
            0 => "as long as the driver chooses".to_owned(),
            usecs => format!(
                "up to {} for each message that finds its reader idle",
                time(f64::from(usecs) * 1e3)
            ),
        };
        let finding =
            Finding::new(Warning, name(adapter), sentence).costs(cost, "this adapter's driver");
        let on = if now.adaptive_rx { "on" } else { "off" };
        // Drivers without the adaptive mode refuse its word.
        let (new, old) = match now.adaptive_rx {
            true => (
                "adaptive-rx off rx-usecs 0".to_owned(),
                format!("adaptive-rx {on} rx-usecs {}", now.rx_usecs),
            ),
            false => ("rx-usecs 0".to_owned(), format!("rx-usecs {}", now.rx_usecs)),
        };
        Some(with_ethtool(finding, adapter, ["-C", &new, &old]))
    };
    adapters.filter_map(finding).collect()
}

pub(super) fn offloads(examined: &Examined) -> Vec<Finding> {
    let mut found = Vec::new();
    for adapter in examined.socket_adapters() {
        let own = &adapter.ethtool;
        if own.gro == Some(true) && examined.wanted.latency {
            let sentence = "received packets pass GRO, which may hold them for others";
            let finding = Finding::new(Note, name(adapter), sentence).costs(
                "150 ns a packet for napi_gro_receive, and waiting where packets come together",
                format!("{HOMA}, June 2020"),
            );
            found.push(with_ethtool(finding, adapter, ["-K", "gro off", "gro on"]));
        }
        let all = [("gro", own.gro), ("gso", own.gso), ("tso", own.tso)];
        let off = all.into_iter().filter(|(_, state)| *state == Some(false));
        let off: Vec<&str> = off.map(|(name, _)| name).collect();
        if !off.is_empty() && examined.wanted.rate {
            let sentence = format!("offloads that merge packets are off: {}", off.join(", "));
            let finding = Finding::new(Warning, name(adapter), sentence).costs(
                "the stack is passed once for each frame instead of once for up to 64 KiB",
                "kernel documentation, networking/segmentation-offloads.rst",
            );
            let words = |state: &str| {
                let each = off.iter().map(|name| format!("{name} {state}"));
                each.collect::<Vec<_>>().join(" ")
            };
            found.push(with_ethtool(finding, adapter, ["-K", &words("on"), &words("off")]));
        }
    }
    found
}

pub(super) fn ring_sizes(examined: &Examined) -> Vec<Finding> {
    let adapters = examined.socket_adapters().filter(|_| examined.wanted.rate);
    let finding = |adapter: &Adapter| {
        let rings = adapter.ethtool.rings?;
        if rings.rx >= rings.rx_most {
            return None;
        }
        let sentence = format!("its receiving ring has {} of {} places", rings.rx, rings.rx_most);
        let finding = Finding::new(Note, name(adapter), sentence)
            .costs("packets of a burst that does not fit are dropped", "man ethtool(8)");
        let (new, old) = (format!("rx {}", rings.rx_most), format!("rx {}", rings.rx));
        Some(with_ethtool(finding, adapter, ["-G", &new, &old]))
    };
    adapters.filter_map(finding).collect()
}

pub(super) fn busy_poll(examined: &Examined) -> Vec<Finding> {
    let file = "/proc/sys/net/core/busy_read";
    let is_off = examined.tree.number::<u32>(file) == Some(0);
    let wanted = examined.wanted.latency && examined.wanted.blocks;
    if !is_off || !wanted || examined.socket_adapters().next().is_none() {
        return Vec::new();
    }
    let files = ["busy_read", "busy_poll"].map(|name| {
        let file = format!("/proc/sys/net/core/{name}");
        let old = examined.tree.text(&file).unwrap_or_else(|| "0".to_owned());
        (file, "50".to_owned(), old)
    });
    let finding =
        Finding::new(Note, "", "sockets that block wait for an interrupt (no busy polling)")
            .costs("the interrupt and its wake-up; 50 us of polling are recommended", SYSCTL_NET)
            .writes(&files);
    vec![finding]
}

pub(super) fn socket_buffers(examined: &Examined) -> Vec<Finding> {
    let is_fast = |adapter: &Adapter| adapter.interface.speed_mbps.unwrap_or(0) >= FAST_MBPS;
    if !examined.wanted.rate || !examined.socket_adapters().any(is_fast) {
        return Vec::new();
    }
    let finding = |name: &str| {
        let file = format!("/proc/sys/net/core/{name}");
        let bytes: u64 = examined.tree.number(&file).filter(|bytes| *bytes < BUFFER)?;
        let sentence = format!("sockets may ask for {} KiB (net.core.{name})", bytes >> 10);
        let finding = Finding::new(Note, "", sentence)
            .costs("a link of 100 Gb/s fills 4 MiB in 0.34 ms", "arithmetic")
            .writes(&[(file, (4 * BUFFER).to_string(), bytes.to_string())]);
        Some(finding)
    };
    ["rmem_max", "wmem_max"].into_iter().filter_map(finding).collect()
}

pub(super) fn qdisc(examined: &Examined) -> Vec<Finding> {
    let loopback = Some(("lo".to_owned(), &examined.loopback_qdiscs));
    let loopback = loopback.filter(|_| examined.wanted.sockets);
    let all = examined.socket_adapters().map(|one| (name(one), &one.qdiscs)).chain(loopback);
    let finding = |(name, kinds): (String, &Vec<String>)| {
        let kind = kinds.iter().find(|kind| SHAPERS.contains(&kind.as_str()))?;
        let sentence = format!("the queueing discipline {kind} delays or drops packets by design");
        let finding = Finding::new(Warning, name.clone(), sentence)
            .costs("as it was set: tc -s qdisc show", "man tc(8)")
            .advice(format!("tc qdisc del dev {name} root, if nobody needs it"));
        Some(finding)
    };
    all.filter_map(finding).collect()
}

pub(super) fn mtu(examined: &Examined) -> Vec<Finding> {
    let adapters = examined.socket_adapters().filter(|_| examined.wanted.rate);
    let finding = |adapter: &Adapter| {
        let (speed, mtu) = (adapter.interface.speed_mbps?, adapter.interface.mtu_bytes?);
        if speed < FAST_MBPS || mtu > PLAIN_MTU {
            return None;
        }
        let sentence = format!("frames carry {mtu} B on a link of {} Gb/s", speed / 1000);
        let finding = Finding::new(Note, name(adapter), sentence)
            .costs("six times as many packets as with 9000 B", "arithmetic");
        Some(match is_plain(&adapter.interface.name) {
            true => finding
                .change(
                    format!("ip link set {} mtu 9000", adapter.interface.name),
                    format!("ip link set {} mtu {mtu}", adapter.interface.name),
                )
                .advice("only where all hosts and switches of the network have it"),
            false => finding,
        })
    };
    adapters.filter_map(finding).collect()
}

pub(super) fn ipoib_mode(examined: &Examined) -> Vec<Finding> {
    let adapters = examined.socket_adapters();
    let connected = adapters.filter(|one| one.interface.ipoib_mode.as_deref() == Some("connected"));
    let finding = |adapter: &Adapter| {
        let file = format!("/sys/class/net/{}/mode", adapter.interface.name);
        Finding::new(Note, name(adapter), "IPoIB is in connected mode")
            .costs(
                "UDP of 2 KiB carried 1.4 Gb/s over FDR, in datagram mode 3.9 Gb/s",
                "E. Gamess and H. Ortiz-Zuazaga, IJCNIS 8(10), 2016, Tables 5 and 7",
            )
            .writes(&[(file, "datagram".to_owned(), "connected".to_owned())])
    };
    connected.map(finding).collect()
}

pub(super) fn flow_control(examined: &Examined) -> Vec<Finding> {
    let roce = examined.adapters.iter().filter(|one| one.is_roce && examined.wanted.rdma);
    let off = roce.filter(|one| one.ethtool.pause == Some((false, false)));
    let finding = |adapter: &Adapter| {
        let sentence = "RoCE goes over a link without pause frames; whether PFC is on was not read";
        let finding = Finding::new(Note, name(adapter), sentence).costs(
            "a packet that a switch drops is resent after 4.096 us x 2^n (--timeout n)",
            "InfiniBand specification, local ACK timeout",
        );
        with_ethtool(finding, adapter, ["-A", "rx on tx on", "rx off tx off"])
            .advice("PFC for the priority of RoCE: mlnx_qos, dcb pfc show")
    };
    off.map(finding).collect()
}

pub(super) fn ecn(examined: &Examined) -> Vec<Finding> {
    let mut found = Vec::new();
    for adapter in examined.adapters.iter().filter(|one| one.is_roce && examined.wanted.rdma) {
        let folder = format!("/sys/class/net/{}/ecn", adapter.interface.name);
        let mut files = Vec::new();
        for side in ["roce_np", "roce_rp"] {
            let priorities = examined.tree.names(&format!("{folder}/{side}/enable"));
            let path = priorities.iter().map(|name| format!("{folder}/{side}/enable/{name}"));
            files.extend(path.filter(|path| examined.tree.flag(path) == Some(false)));
        }
        if files.is_empty() {
            continue;
        }
        let files: Vec<_> =
            files.into_iter().map(|file| (file, "1".to_owned(), "0".to_owned())).collect();
        let sentence = format!("congestion control of RoCE is off for {} priorities", files.len());
        let finding = Finding::new(Warning, name(adapter), sentence)
            .costs("senders do not slow down before switches pause or drop", "DCQCN, SIGCOMM 2015")
            .writes(&files);
        found.push(finding);
    }
    found
}
