//! A transport as data: what can be asked of it before anything runs, and its control path.

use super::counter::FinalCounters;
use super::{NamedValues, Opening, Result, Role, Settings, Setup, Traffic, TransportRequest};
use std::path::PathBuf;
use wiregauge_base::options::OptionTable;
use wiregauge_base::warning::Warning;
use wiregauge_clock::Virtual;

/// Opens so many ends of one thread.
pub type OpenSeveral = fn(&Setup, u32) -> Result<Vec<Opening>>;

/// What the kernel shows of a message's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelPath {
    /// Nothing between the stamps of the program.
    #[default]
    None,
    /// The same: memory that both ends map, or an adapter that the program reaches by itself. What
    /// the program stamps when it posts and polls shows its way, and the kernel who waited.
    Bypassed,
    /// Segments of TCP over IP.
    Segments,
    /// Datagrams of UDP over IP.
    Datagrams,
    /// A stream socket within this host.
    LocalStream,
    /// A socket within this host that keeps messages apart.
    LocalDatagrams,
}

impl KernelPath {
    /// Returns true if the kernel carries the messages over IP: a pre-flight tries such paths.
    pub fn is_over_ip(self) -> bool {
        matches!(self, KernelPath::Segments | KernelPath::Datagrams)
    }
}

/// A transport.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// One line for `wiregauge list`.
    pub about: &'static str,
    /// Largest message in bytes, whatever is set.
    pub largest: u64,
    /// Bytes that it may be longer with these settings.
    pub larger_with: fn(&Settings) -> u64,
    /// What traffic it carries.
    pub traffic: &'static [Traffic],
    /// Whether a message may be lost without an error.
    pub loses: bool,
    /// Whether messages keep their order, whatever is set.
    pub ordered: bool,
    /// Whether it simulates the other end, so that one process plays both roles one after the
    /// other.
    pub one_process: bool,
    /// Whether its ends may be on two hosts.
    pub between_hosts: bool,
    /// Messages between two ends on one host pass the loopback interface.
    pub over_loopback: bool,
    /// Whether a message must be a stream's sample, which it carries in a form of its own.
    pub samples_only: bool,
    /// Whether the kernel can watch many of its ends at once for a thread that sleeps.
    pub watchable: bool,
    /// File descriptors of an end, at most.
    pub descriptors: u32,
    /// Whether two threads may share an end, of which one receives.
    pub splits: bool,
    /// Whether `wiregauge` without a command measures it.
    pub in_survey: bool,
    /// Fewest receive buffers of a queue.
    pub least_receives: u32,
    /// The options that it has.
    pub settings: OptionTable,
    /// What lies between submit and receive, for the record.
    pub path: &'static str,
    /// What the kernel shows of that.
    pub kernel_path: KernelPath,
    /// Most bytes of memory that an end takes beside two slots for each message of its window: what
    /// a controller may make an agent take is counted before anything is opened.
    pub memory_beside_slots: fn(&Setup) -> u64,
    /// Fewest bytes that the buffers of an end take when it has opened: a round that has no room
    /// for them is refused before it runs, so that bytes which are touched only by some rounds do
    /// not count.
    pub least_buffer_bytes: fn(&Setup) -> u64,
    /// Fewest bytes of these that an end registers with an adapter, which count against the limit
    /// of locked memory.
    pub least_registered_bytes: fn(&Setup) -> u64,
    /// Fewest file descriptors of an end.
    pub least_descriptors: u32,
    /// Queue pairs of an end, each of which has an address that the ends exchange.
    pub queues: fn(&Settings) -> u32,
    /// Opens one end.
    pub open: fn(&Setup) -> Result<Opening>,
    /// Opens so many ends of one thread, where they may have something in common; `None`: each is
    /// opened alone.
    pub open_several: Option<OpenSeveral>,
    /// Whether it works on this machine with these settings; if not, why, in a sentence.
    pub available: fn(&Settings) -> Result<(), String>,
    /// Validates a request beyond what is said above, before anything runs; the error says what is
    /// supported.
    pub check: fn(&TransportRequest<'_>) -> Result<(), String>,
    /// Of a transport that may lose messages: whether it may with these settings.
    pub loses_with: fn(&Settings) -> bool,
    /// Of a transport that may reorder messages: whether it keeps their order with these settings.
    pub ordered_with: fn(&Settings) -> bool,
    /// Whether each post, with these settings, makes a completion that says when it was done.
    pub completes_each: fn(&Settings) -> bool,
    /// The NUMA node of the adapter that an end would use, where there is one and it is known.
    pub numa_node: fn(&Settings, Role) -> Option<u32>,
    /// The device that an end uses, by its effective settings: its name, and a path in sysfs that
    /// goes when it is removed.
    pub device_path: fn(&NamedValues) -> Option<(String, PathBuf)>,
    /// What the counters of an end say that weakens its figures.
    pub counter_warnings: fn(&FinalCounters) -> Vec<Warning>,
    /// The words of the command that starts all ranks of a round together, before the number of
    /// ranks and the program; `None`: each is started by itself.
    pub launcher: Option<fn(&Settings) -> Vec<String>>,
    /// What was found on this machine that the transport uses, in words.
    pub found: fn() -> Option<String>,
    /// What a process that has opened its ends does before it exits.
    pub leave: fn(),
    /// This thread's clock of a transport that simulates time.
    pub virtual_clock: Option<fn() -> Virtual<'static>>,
}

impl Descriptor {
    /// Returns the largest message in bytes with these settings.
    pub fn largest_with(&self, settings: &Settings) -> u64 {
        self.largest.saturating_add((self.larger_with)(settings))
    }

    /// Whether it carries traffic of a kind for messages of any content.
    pub fn carries(&self, traffic: Traffic) -> bool {
        !self.samples_only && self.traffic.iter().any(|known| known.same_kind(traffic))
    }

    /// What most transports have in common: `Descriptor { about, ..Descriptor::opened_by(open) }`.
    pub const fn opened_by(open: fn(&Setup) -> Result<Opening>) -> Descriptor {
        Descriptor {
            about: "",
            largest: 0,
            larger_with: |_| 0,
            traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both],
            loses: false,
            ordered: true,
            one_process: false,
            between_hosts: false,
            over_loopback: false,
            samples_only: false,
            watchable: false,
            descriptors: 1,
            splits: false,
            in_survey: false,
            least_receives: 1,
            settings: &[],
            path: "",
            kernel_path: KernelPath::None,
            memory_beside_slots: |_| 0,
            least_buffer_bytes: |_| 0,
            least_registered_bytes: |_| 0,
            least_descriptors: 0,
            queues: |_| 1,
            open,
            open_several: None,
            available: |_| Ok(()),
            check: |_| Ok(()),
            loses_with: |_| true,
            ordered_with: |_| false,
            completes_each: |_| false,
            numa_node: |_, _| None,
            device_path: |_| None,
            counter_warnings: |_| Vec::new(),
            launcher: None,
            found: || None,
            leave: || (),
            virtual_clock: None,
        }
    }
}
