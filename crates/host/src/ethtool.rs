//! What a network interface's driver says of its settings, by ethtool's ioctl and by netlink.

use super::netlink::{self, attribute, word};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, OwnedFd};

// include/uapi/linux/ethtool.h
const GET_DRIVER: u32 = 0x3;
const GET_COALESCE: u32 = 0xe;
const GET_RINGS: u32 = 0x10;
const GET_PAUSE: u32 = 0x12;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_GRO: u32 = 0x2b;
const GET_CHANNELS: u32 = 0x3c;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
const GET_SET_INFO: u32 = 0x37;
/// ETH_SS_STATS: the names of a driver's counters, each of 32 bytes.
const SET_OF_STATS: u32 = 1;
const STRING: usize = 32;
/// The most counters of a driver that are read: of 64 queues with 50 each.
const MAX_STATS: usize = 4096;
/// Counters that there is room for: the kernel writes as many as the driver has by then, whatever
/// it was told, and queues that are added meanwhile have more.
const ROOM: usize = 4 * MAX_STATS;
/// Parts of the names of counters that say what became of packets, in small letters.
const OF_LOSS: [&str; 16] = [
    "drop",
    "discard",
    "miss",
    "err",
    "no_buf",
    "nobuf",
    "out_of_buf",
    "fifo",
    "pause",
    "pfc",
    "ecn",
    "cnp",
    "congest",
    "timeout",
    "oversize",
    "full",
];
/// include/uapi/linux/sockios.h
const SIOCETHTOOL: u64 = 0x8946;

// include/uapi/linux/rtnetlink.h
const GET_QDISC: u16 = 38;
const NEW_QDISC: u16 = 36;
const ATTRIBUTE_KIND: u16 = 1;
/// `struct tc_stats`, and the place of its `drops`.
const ATTRIBUTE_STATS: u16 = 3;
const DROPS_AT: usize = 12;
/// TC_H_ROOT of include/uapi/linux/pkt_sched.h: the parent of a root.
const ROOT: u32 = 0xffff_ffff;
/// Bytes of `struct tcmsg`.
const OF_QDISC: usize = 20;

/// Interrupts that a driver holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalesce {
    /// How long after a packet has arrived, in microseconds.
    pub rx_usecs: u32,
    /// The same of packets that were sent.
    pub tx_usecs: u32,
    /// Whether the driver changes the first by itself.
    pub adaptive_rx: bool,
}

/// Descriptors of a queue, now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    pub rx: u32,
    pub rx_most: u32,
    pub tx: u32,
    pub tx_most: u32,
}

/// What the driver says; `None` where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ethtool {
    /// Interrupt coalescing.
    pub coalesce: Option<Coalesce>,
    /// Ring sizes.
    pub rings: Option<Rings>,
    /// Flow control of the whole link (IEEE 802.3x): of what is received, of what is sent.
    pub pause: Option<(bool, bool)>,
    /// Receiving queues, and the most that there may be.
    pub channels: Option<(u32, u32)>,
    /// Generic receive offload.
    pub gro: Option<bool>,
    /// Generic segmentation offload.
    pub gso: Option<bool>,
    /// TCP segmentation offload.
    pub tso: Option<bool>,
    /// Version of the firmware.
    pub firmware: Option<String>,
}

impl Ethtool {
    /// Asks the driver of an interface; reads only.
    pub fn read(name: &str) -> Ethtool {
        let made = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
        let Ok(socket) = made else { return Ethtool::default() };
        let flag = |command| ask::<2>(&socket, name, command).map(|[_, on]| on != 0);
        Ethtool {
            coalesce: ask::<23>(&socket, name, GET_COALESCE).map(|all| Coalesce {
                rx_usecs: all[1],
                tx_usecs: all[5],
                adaptive_rx: all[10] != 0,
            }),
            rings: ask::<9>(&socket, name, GET_RINGS).map(|all| Rings {
                rx_most: all[1],
                tx_most: all[4],
                rx: all[5],
                tx: all[8],
            }),
            pause: ask::<4>(&socket, name, GET_PAUSE).map(|[_, _, rx, tx]| (rx != 0, tx != 0)),
            // Queues that only receive, and those that do both.
            channels: ask::<9>(&socket, name, GET_CHANNELS)
                .map(|all| (all[5] + all[8], all[1].max(all[4]))),
            gro: flag(GET_GRO),
            gso: flag(GET_GSO),
            tso: flag(GET_TSO),
            firmware: firmware(&socket, name),
        }
    }
}

/// Asks for one of ethtool's structs that are made of words of 32 bits, the command first.
fn ask<const WORDS: usize>(socket: &OwnedFd, name: &str, command: u32) -> Option<[u32; WORDS]> {
    let mut words = [0u32; WORDS];
    words[0] = command;
    fill(socket, name, &mut words).then_some(words)
}

/// Has the kernel fill a struct whose first word is the command, and whose other words say how much
/// there is room for; returns false if it does not.
fn fill(socket: &OwnedFd, name: &str, words: &mut [u32]) -> bool {
    // SAFETY: `ifreq` is plain bytes and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0, as the kernel wants it.
    let room = request.ifr_name.len() - 1;
    if name.is_empty() || name.len() > room {
        return false;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL (netdevice(7), ethtool.h) reads and writes the struct of its command,
    // which is at most as long as `words`, and both live until it returns. Those of names and
    // counts are as long as the driver has counters, and have room for [`ROOM`] of them.
    unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) == 0 }
}

/// Returns the counters of an interface's driver that say what became of packets, by their names
/// (`ethtool -S`): drops, errors, pause frames, congestion notifications.
pub(super) fn driver_counters(name: &str) -> Vec<(String, u64)> {
    let made = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
    made.ok().and_then(|socket| read_driver_counters(&socket, name)).unwrap_or_default()
}

fn read_driver_counters(socket: &OwnedFd, name: &str) -> Option<Vec<(String, u64)>> {
    // `struct ethtool_sset_info`: command, reserved, a mask of 64 bits, and a number.
    let mut info = [GET_SET_INFO, 0, 1 << SET_OF_STATS, 0, 0];
    let count = fill(socket, name, &mut info).then_some(info[4] as usize)?;
    if !(1..=MAX_STATS).contains(&count) {
        return None;
    }
    // `struct ethtool_gstrings`: command, set, number, and the names.
    let mut names = vec![0u32; 3 + ROOM * STRING / 4];
    names[..3].copy_from_slice(&[GET_STRINGS, SET_OF_STATS, count as u32]);
    // `struct ethtool_stats`: command, number, and counters of 64 bits.
    let mut counts = vec![0u32; 2 + 2 * ROOM];
    counts[..2].copy_from_slice(&[GET_STATS, count as u32]);
    if !fill(socket, name, &mut names) || !fill(socket, name, &mut counts) {
        return None;
    }
    // A driver whose queues have changed since has other ones.
    if names[2] as usize != count || counts[1] as usize != count {
        return None;
    }
    Some(counters_of_loss(&names[3..][..count * STRING / 4], &counts[2..][..2 * count]))
}

/// Returns the counters whose names say that they are of loss: names of 32 bytes, and counts of 64
/// bits, in words of 32.
fn counters_of_loss(names: &[u32], counts: &[u32]) -> Vec<(String, u64)> {
    names
        .chunks_exact(STRING / 4)
        .zip(counts.chunks_exact(2))
        .filter_map(|(name, count)| {
            let bytes: Vec<u8> = name
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .take_while(|byte| byte.is_ascii_graphic())
                .collect();
            let name = String::from_utf8(bytes).ok()?.to_ascii_lowercase();
            let [first, second] = [count[0].to_ne_bytes(), count[1].to_ne_bytes()];
            let count = [first, second].concat().try_into().ok().map(u64::from_ne_bytes)?;
            OF_LOSS.iter().any(|part| name.contains(part)).then_some((name, count))
        })
        .collect()
}

/// The firmware that the driver names: 32 characters behind command, driver and its version.
fn firmware(socket: &OwnedFd, name: &str) -> Option<String> {
    let words = ask::<49>(socket, name, GET_DRIVER)?;
    let bytes = words[17..25].iter().flat_map(|word| word.to_ne_bytes());
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty() && text != "N/A").then_some(text)
}

/// A queueing discipline of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qdisc {
    /// Number of the interface.
    pub interface: u32,
    /// The name of the discipline, such as `fq_codel`.
    pub kind: String,
    /// Marks the one that all packets pass first.
    pub is_root: bool,
    /// Packets that it has dropped, with those of the disciplines below it.
    pub drops: u32,
}

/// Returns the queueing disciplines of all interfaces; none where the kernel does not answer.
pub fn qdiscs() -> Vec<Qdisc> {
    dump_qdiscs().unwrap_or_default()
}

fn dump_qdiscs() -> nix::Result<Vec<Qdisc>> {
    let mut all = Vec::new();
    netlink::dump(SockProtocol::NetlinkRoute, GET_QDISC, &[0; OF_QDISC], |kind, body| {
        all.extend((kind == NEW_QDISC).then(|| read_qdisc(body)).flatten());
    })?;
    Ok(all)
}

/// Returns the packets that the disciplines of each interface have dropped: `qdisc.eth0.drops`.
pub(super) fn qdisc_drops() -> Vec<(String, u64)> {
    let roots = qdiscs().into_iter().filter(|one| one.is_root);
    roots
        .filter_map(|one| {
            let name = nix::net::if_::if_indextoname(one.interface).ok()?;
            Some((format!("qdisc.{}.drops", name.to_string_lossy()), one.drops.into()))
        })
        .collect()
}

/// Reads `struct tcmsg` and the attributes behind it.
pub(super) fn read_qdisc(message: &[u8]) -> Option<Qdisc> {
    let attributes = message.get(OF_QDISC..)?;
    let kind = attribute(attributes, ATTRIBUTE_KIND)?.split(|byte| *byte == 0).next()?;
    let drops = attribute(attributes, ATTRIBUTE_STATS).and_then(|stats| word(stats, DROPS_AT));
    Some(Qdisc {
        interface: word(message, 4)?,
        kind: String::from_utf8(kind.to_vec()).ok()?,
        is_root: word(message, 12)? == ROOT,
        drops: drops.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the body of a message about a root of this kind that has dropped packets.
    fn message(interface: u32, kind: &str, drops: u32) -> Vec<u8> {
        let mut all = vec![0; OF_QDISC];
        all[4..8].copy_from_slice(&interface.to_ne_bytes());
        all[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        let stats = [&[0; DROPS_AT][..], &drops.to_ne_bytes(), &[0; 20]].concat();
        for (value, of) in [([kind.as_bytes(), &[0]].concat(), 1u16), (stats, ATTRIBUTE_STATS)] {
            all.extend((4 + value.len() as u16).to_ne_bytes());
            all.extend(of.to_ne_bytes());
            all.extend(&value);
            all.resize(all.len().next_multiple_of(4), 0);
        }
        all
    }

    #[test]
    fn a_qdisc_is_read_and_none_that_is_cut_off() {
        let expected = Qdisc { interface: 2, kind: "fq_codel".into(), is_root: true, drops: 7 };
        let whole = message(2, "fq_codel", 7);
        assert_eq!(read_qdisc(&whole), Some(expected));
        for length in 0..OF_QDISC + 4 + "fq_codel".len() {
            assert_eq!(read_qdisc(&whole[..length]), None, "{length}");
        }
    }

    /// Returns the words of a driver's names, or of its counts.
    fn words(bytes: &[u8]) -> Vec<u32> {
        let four = bytes.chunks_exact(4).filter_map(|four| four.try_into().ok());
        four.map(u32::from_ne_bytes).collect()
    }

    #[test]
    fn counters_of_a_driver_are_kept_if_they_say_what_became_of_packets() {
        let named = ["rx_packets", "rx_out_of_buffer", "Tx_Pause", "rx_ecn_mark", "np_cnp_sent"];
        let mut names = Vec::new();
        for name in named {
            names.extend(name.bytes());
            names.resize(names.len().next_multiple_of(STRING), 0);
        }
        let counts: Vec<u8> = (1..=5u64).flat_map(|count| (count << 33).to_ne_bytes()).collect();
        let found = counters_of_loss(&words(&names), &words(&counts));
        let expected = [("rx_out_of_buffer", 2), ("tx_pause", 3), ("rx_ecn_mark", 4)];
        let expected = expected.into_iter().chain([("np_cnp_sent", 5)]);
        let expected: Vec<_> =
            expected.map(|(name, count)| (name.to_owned(), count << 33)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_interface_that_does_not_exist_says_nothing() {
        assert_eq!(driver_counters("no-such-one"), []);
        assert_eq!(Ethtool::read("no-such-one"), Ethtool::default());
        assert_eq!(Ethtool::read("a-name-that-is-longer-than-any"), Ethtool::default());
    }

    #[test]
    fn loopback_has_a_qdisc_and_offloads() {
        assert!(!qdiscs().is_empty());
        assert!(Ethtool::read("lo").gro.is_some());
    }
}
