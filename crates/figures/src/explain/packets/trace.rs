//! The text of `/proc/timetrace`, read: a line an event, in the order of time.
//!
//! The first line is `cpu_khz: N`; the others are a time in cycles, the CPU and a sentence of the
//! module's, such as `8143 [C01] incoming data packet, id 7, peer 0xa000001, offset 0/512`.

use std::io::{BufRead, Read};

/// The longest line that is taken; the module's own have below 200 bytes.
const LONGEST_LINE: u64 = 4096;
/// Events that are kept: those of 512 CPUs.
const MOST_EVENTS: usize = 1 << 23;

/// Why a text is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceProblem {
    /// It cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, std::io::Error),
    /// It is something else.
    #[error(
        "{name}:{line}: {what}; a trace is what /proc/timetrace of a kernel with Homa has: \
         cpu_khz and a number, then a line an event"
    )]
    Wrong { name: String, line: usize, what: String },
}

/// A packet or its message, by the number that one end gave it: the other end's differs in the last
/// bit, which the server's has set.
pub(super) type Id = u32;

/// Bytes of a message before those of a packet.
pub(super) type Offset = u32;

/// What stands there of a packet that no GRO has seen, which fills it in: -1.
pub(super) const NO_OFFSET: Offset = Offset::MAX;

/// What is used of the module's sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A packet is given to IP; the other end's address.
    Sent { id: Id, offset: Offset, peer: u32 },
    /// IP has returned; how many bytes of the message it took.
    Queued { id: Id, offset: Offset, length: Option<u32> },
    /// GRO has a packet; from whom.
    Gro { id: Id, offset: Offset, peer: u32 },
    /// GRO has a grant.
    GroGrant { id: Id, offset: Offset, peer: u32 },
    /// GRO has given what it collected to a CPU.
    HandedOff,
    /// A SoftIRQ of Homa begins.
    SoftIrq,
    /// It has come to a packet; from whom.
    Incoming { id: Id, offset: Offset, peer: u32 },
    /// A grant is sent.
    Granting { id: Id, offset: Offset },
    /// It has come to a grant.
    Granted { id: Id, offset: Offset },
    /// A thread waits for a lock, by its place in [`LOCKS`].
    Waits(usize),
    /// It has it.
    Has(usize),
    /// Something noticed, by its place in [`NOTICED`].
    Noticed(usize),
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub ns: f64,
    pub cpu: u32,
    pub what: What,
}

/// The locks that are waited for.
pub(super) const LOCKS: [&str; 5] = ["grant", "throttle", "peer", "socket", "rpc"];

/// What is counted, and how its sentences begin.
pub(super) const NOTICED: [(&str, &str); 7] = [
    ("resends asked for", "Sending RESEND"),
    ("packets sent again", "retransmitting offset"),
    ("packets discarded", "Discarding packet"),
    ("packets without a receive buffer", "Dropping packet because no buffer space"),
    ("receive buffers that could not be had", "Buffer allocation failed"),
    ("aborted", "aborting "),
    ("sent as busy", "sending BUSY"),
];

/// The trace of a host.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(super) events: Vec<Event>,
    /// Lines of the trace, of which those of packets and locks are kept.
    pub lines: usize,
}

impl Trace {
    /// Reads one; `name` is what a fault is told of.
    ///
    /// # Errors
    /// It cannot be read, has no `cpu_khz`, a line above 4096 bytes, no event, or more than 2^23.
    pub fn read(mut text: impl BufRead, name: &str) -> Result<Trace, TraceProblem> {
        let (mut trace, mut kilohertz, mut first) = (Trace::default(), None, None);
        let (mut line, mut number, mut seen) = (Vec::new(), 0, 0_usize);
        loop {
            let wrong = |line, what: &str| TraceProblem::Wrong {
                name: name.into(),
                line,
                what: what.into(),
            };
            line.clear();
            let read = text.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            let read = read.map_err(|error| TraceProblem::Unreadable(name.into(), error))?;
            if read == 0 {
                break;
            }
            number += 1;
            if read as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
                return Err(wrong(number, "a line of more than 4096 bytes"));
            }
            let words = String::from_utf8_lossy(&line);
            let words = words.trim();
            let Some(kilohertz) = kilohertz else {
                kilohertz =
                    words.strip_prefix("cpu_khz:").and_then(|n| n.trim().parse::<u64>().ok());
                if kilohertz.is_none_or(|rate| rate == 0) {
                    return Err(wrong(number, "no cpu_khz"));
                }
                continue;
            };
            // Some sentences end their line themselves, and leave an empty one.
            let Some((cycles, cpu, sentence)) = parts(words) else { continue };
            seen += 1;
            let begin = *first.get_or_insert(cycles);
            if let Some(what) = what(sentence) {
                let ns = cycles.wrapping_sub(begin).cast_signed() as f64 * 1e6 / kilohertz as f64;
                trace.events.push(Event { ns, cpu, what });
            }
            if trace.events.len() > MOST_EVENTS {
                return Err(wrong(number, "more than 2^23 events"));
            }
        }
        if seen == 0 {
            let what = "no event".into();
            return Err(TraceProblem::Wrong { name: name.into(), line: number, what });
        }
        trace.events.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        trace.lines = seen;
        Ok(trace)
    }
}

/// The time, the CPU and the sentence.
fn parts(line: &str) -> Option<(u64, u32, &str)> {
    let (cycles, rest) = line.split_once(" [C")?;
    let (cpu, sentence) = rest.split_once("] ")?;
    Some((cycles.trim().parse().ok()?, cpu.trim().parse().ok()?, sentence))
}

/// What a sentence says, of those that are used.
fn what(sentence: &str) -> Option<What> {
    let id = || number_after(sentence, "id ");
    let offset = || number_after(sentence, "offset ");
    let begins = |with: &str| sentence.starts_with(with);
    if begins("calling ip_queue_xmit") || begins("calling ip6_xmit") {
        return Some(What::Sent { id: id()?, offset: offset()?, peer: address(sentence)? });
    }
    if begins("Finished queueing packet") {
        let length = number_after(sentence, "len ");
        return Some(What::Queued { id: id()?, offset: offset()?, length });
    }
    if begins("homa_gro_receive got packet") {
        // Other control packets have a type in place of an offset.
        return Some(What::Gro { id: id()?, offset: offset()?, peer: address(sentence)? });
    }
    if begins("homa_gro_receive got grant") {
        return Some(What::GroGrant { id: id()?, offset: offset()?, peer: address(sentence)? });
    }
    if begins("homa_gro_") && sentence.contains(" chose core ") {
        return Some(What::HandedOff);
    }
    if begins("homa_softirq") {
        return Some(What::SoftIrq);
    }
    if begins("incoming data packet") {
        return Some(What::Incoming { id: id()?, offset: offset()?, peer: address(sentence)? });
    }
    if begins("sending grant for") {
        return Some(What::Granting { id: id()?, offset: offset()? });
    }
    if begins("processing grant for") {
        return Some(What::Granted { id: id()?, offset: offset()? });
    }
    if let Some(rest) = sentence.strip_prefix("beginning wait for ") {
        return lock(rest).map(What::Waits);
    }
    if let Some(rest) = sentence.strip_prefix("ending wait for ") {
        return lock(rest).map(What::Has);
    }
    NOTICED.iter().position(|(_, begin)| begins(begin)).map(What::Noticed)
}

fn lock(words: &str) -> Option<usize> {
    LOCKS.iter().position(|name| words.starts_with(name))
}

/// The decimal number behind these words, of 32 bits: the module writes it with either sign.
fn number_after(sentence: &str, words: &str) -> Option<u32> {
    let at = sentence.find(words)? + words.len();
    let rest = &sentence[at..];
    let end = rest.char_indices().find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')));
    let digits = &rest[..end.map_or(rest.len(), |(at, _)| at)];
    // More than 32 bits of an identifier are those that the trace did not keep.
    digits.parse::<i128>().ok().map(|n| n as u32)
}

fn address(sentence: &str) -> Option<u32> {
    let (_, rest) = sentence.split_once("0x")?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    u32::from_str_radix(&rest[..end], 16).ok()
}
