//! Stamps of the kernel: when threads of ours, and packets of their sockets, passed its trace
//! points.
//!
//! Takes nothing; gives a [`Trace`] for the time between [`Tracer::attach`] and
//! [`Tracer::detach`]. The programs that write the stamps are in `stamps.bpf.c`, committed with
//! their object, and where each hangs in `programs.rs`. Each is optional: what this kernel lacks is
//! in [`Tracer::missing`].
//!
//! Must never: be attached while something is measured that is not to be explained. A stamp takes
//! some 50 to 90 ns, which the message waits for.

mod memory;
mod programs;
pub mod report;

use super::time_namespace::monotonic_offset_ns;
use aya::maps::{HashMap, Map};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use memory::Memory;
pub use memory::{MOST_CPUS, STAMPS};
use programs::{Program, whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of /proc/interrupts that are read: a line of 10 bytes a CPU for each of 2000 interrupts.
const MOST_TEXT: u64 = 16 << 20;

/// Where packets are not stamped, SoftIRQs of the network are from this length on: one for a small
/// message takes 1 to 3 us, and each message has two.
const LEAST_NETWORK_NS: u32 = 5_000;

/// The programs, made by `xtask bpf`.
static OBJECT: &[u8] = include_bytes_aligned!("stamps.bpf.o");

wiregauge_base::options::named_enum! {
    /// A trace point, in the order of the numbers in `stamps.bpf.h` (from 1).
    pub enum Kind {
        /// A thread of ours hands bytes to TCP.
        Send = "tcp_sendmsg_locked",
        /// A packet reaches its network device.
        Queue = "net_dev_queue",
        /// The driver takes a packet.
        Xmit = "net_dev_start_xmit",
        /// A device without interrupts (loopback, veth) hands a packet to this host.
        NetifRx = "netif_rx",
        /// The driver of an adapter hands a packet to GRO.
        Gro = "napi_gro_receive_entry",
        /// The stack takes a packet.
        Receive = "netif_receive_skb",
        /// TCP takes a segment.
        TcpProbe = "tcp_probe",
        /// A socket tells its owner that there is something to read.
        Ready = "sk_data_ready",
        /// A thread of ours is woken.
        Waking = "sched_waking",
        /// A thread of ours leaves or takes a CPU.
        Switch = "sched_switch",
        /// A thread of ours has copied bytes from a socket.
        Copied = "tcp_rcv_space_adjust",
        /// An interrupt of a device begins.
        IrqEntry = "irq_handler_entry",
        /// It ends.
        IrqExit = "irq_handler_exit",
        /// The timer interrupt of a CPU begins.
        TimerEntry = "local_timer_entry",
        /// It ends.
        TimerExit = "local_timer_exit",
        /// A SoftIRQ begins; of one of the network what it does for others than us.
        SoftirqEntry = "softirq_entry",
        /// It ends.
        SoftirqExit = "softirq_exit",
        /// A thread of ours is moved to another CPU.
        Migrate = "sched_migrate_task",
        /// A thread of ours touches a page that is not mapped.
        Fault = "page_fault_user",
        /// TCP sends again what a socket of ours has sent.
        Retransmit = "tcp_retransmit_skb",
        /// A thread of ours enters the kernel.
        SysEnter = "sys_enter",
        /// It returns.
        SysExit = "sys_exit",
        /// A packet waits in the queue of its network device.
        Qdisc = "qdisc_enqueue",
        /// A datagram finds no room in the buffer of its socket.
        Dropped = "udp_fail_queue_rcv_skb",
        /// A CPU has taken packets from a device.
        Napi = "napi_poll",
        /// A CPU gets another frequency.
        Frequency = "cpu_frequency",
        /// A call to send would have to wait for room; of those that follow within 10 us the first.
        Refused = "sock_send_length",
        /// The program's own stamp: before it posts a message.
        Post = "the program's call that posts",
        /// The same: that call has returned.
        Posted = "return of the call that posts",
        /// The same: the poll that found a message has returned.
        Arrived = "return of the poll that found it",
        /// The same: the last time that stood in a message when the adapter read it.
        Taken = "last time written before the adapter read it",
        /// Of the kernel, by SO_TIMESTAMPING: a message reaches the device queue.
        TxQueue = "TX SCHED stamp",
        /// The same: the driver has it.
        TxDriver = "TX SOFTWARE stamp",
        /// The same: it comes.
        RxHost = "RX SOFTWARE stamp",
    }
}

impl Kind {
    /// Whether the program stamps it, and not the kernel.
    pub fn is_of_program(self) -> bool {
        matches!(self, Kind::Post | Kind::Posted | Kind::Arrived | Kind::Taken)
    }

    /// Whether a program of ours at a trace point stamps it.
    pub fn is_of_kernel(self) -> bool {
        self as u8 <= Kind::Refused as u8
    }

    fn from_number(number: u8) -> Option<Kind> {
        let known = Kind::ALL.get(usize::from(number).checked_sub(1)?).copied();
        known.filter(|kind| kind.is_of_kernel())
    }
}

/// What one program wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// CLOCK_MONOTONIC of this process's time namespace.
    pub time_ns: u64,
    /// The thread that ran, by its number in the initial PID namespace. Of a switch: the one that
    /// leaves.
    pub tid: u32,
    /// Of a packet or socket: source port << 16 | destination port. Of the scheduler: the thread
    /// that is woken, moved, or takes the CPU. Of a frequency: the CPU.
    pub flow: u32,
    /// Of TCP: a sequence number, of a packet its first byte's, else that of the byte after the
    /// last; of `tcp_probe` without payload that of the byte after those for which the other end
    /// had room before. Of a datagram: the number in it. Of bytes that were copied from a Unix
    /// socket: how many were sent together. Of a switch: the state of the thread that leaves. Of
    /// interrupts: their number. Of a migration: the CPU. Of a frequency: kHz.
    pub number: u32,
    /// Of a packet: payload bytes. Of a poll of a device: packets. Of a switch: bit 0 set where the
    /// thread that leaves is ours, bit 1 where the one that comes is; above them the number of the
    /// first in the PID namespace of this process.
    pub length: u32,
    /// The CPU.
    pub cpu: u16,
    /// Where.
    pub kind: Kind,
    /// Whether a thread of the kernel ran.
    pub in_kernel_thread: bool,
}

/// Puts stamps into the order of time; those of one instant stay in the order that they had.
pub fn sort(stamps: &mut [Stamp]) {
    stamps.sort_by_key(|stamp| stamp.time_ns);
}

impl Stamp {
    /// Of a switch: the thread of ours that leaves, by its number in the PID namespace of this
    /// process.
    pub fn leaves(&self) -> Option<u32> {
        (self.kind == Kind::Switch && self.length & 1 != 0).then_some(self.length >> 2)
    }
}

/// The stamps of a round.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order of time.
    pub stamps: Vec<Stamp>,
    /// When the memory of a CPU was full, of several the first; `None`: nothing is missing.
    pub full_ns: Option<u64>,
    /// Names of threads that are not ours.
    pub names: BTreeMap<u32, String>,
    /// Names of interrupts by their number, as /proc/interrupts has them.
    pub interrupts: BTreeMap<u32, String>,
}

/// Why nothing is traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The kernel refuses.
    #[error(
        "the kernel allows no tracing ({0}): run as root, or give the program CAP_BPF and \
         CAP_PERFMON (docs/explain.md)"
    )]
    NotAllowed(String),
    /// The kernel has no types, or no trace points.
    #[error("this kernel cannot be traced: {0}")]
    NotSupported(String),
}

/// Whose stamps are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of processes that this one starts from now on.
    Children,
    /// The same, and of those that read from a connection with one of them.
    Readers,
    /// Of this process, from the next thread on that it starts, in its network namespace.
    Itself,
}

/// The loaded programs.
pub struct Tracer {
    ebpf: Ebpf,
    programs: Vec<Program>,
    memory: Memory,
    missing: Vec<String>,
    least_network_ns: u32,
}

wiregauge_base::options::named_enum! {
    /// The trace point that shows that bytes were copied to a thread.
    pub enum CopiedAt {
        /// Of TCP.
        Stream = "tcp_rcv_space_adjust",
        /// Of sockets within this host.
        Local = "skb_copy_datagram_iovec",
        /// Of UDP: the end of the call, since a small datagram passes none before.
        Datagram = "sock_recv_length",
    }
}

/// In the environment: what stands in for trace points is used where the kernel has those, too.
const PREFER_FUNCTIONS: &str = "WIREGAUGE_EXPLAIN_FUNCTIONS";

impl Tracer {
    /// Loads the programs for these trace points.
    ///
    /// # Errors
    /// The kernel does not allow it, or has no types of its own (`CONFIG_DEBUG_INFO_BTF`).
    pub fn load(wanted: &[Kind], copied: CopiedAt) -> Result<Tracer, TraceError> {
        let btf = Btf::from_sys_fs().map_err(|error| TraceError::NotSupported(whole(&error)))?;
        let slots = memory::slots();
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .map_max_entries("stamps", slots.saturating_mul(memory::cpus()))
            .load(OBJECT)
            .map_err(|error| TraceError::NotAllowed(whole(&error)))?;
        let memory = Memory::map(&ebpf, slots)?;
        let preferred = std::env::var_os(PREFER_FUNCTIONS).is_some();
        let (programs, missing) = programs::load(&mut ebpf, &btf, wanted, copied, preferred)?;
        Ok(Tracer { ebpf, programs, memory, missing, least_network_ns: 0 })
    }

    /// The same without short SoftIRQs of the network: where packets are not stamped, those of the
    /// run's own messages are not told from others.
    #[must_use]
    pub fn with_long_network_work_only(self) -> Tracer {
        Tracer { least_network_ns: LEAST_NETWORK_NS, ..self }
    }

    /// Trace points that were wanted and that this kernel lacks, or whose program it refused.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// What stamps, each with its trace point.
    pub fn programs(&self) -> Vec<(Kind, &'static str)> {
        let all = self.programs.iter().filter(|program| program.stamps());
        all.map(|program| (program.kind, program.name)).collect()
    }

    /// Begins to stamp what these processes do.
    ///
    /// # Errors
    /// The kernel refuses to attach a program.
    pub fn attach(&mut self, whose: Whose) -> Result<(), TraceError> {
        self.memory.clear(whose, self.least_network_ns)?;
        for program in &mut self.programs {
            program.attach(&mut self.ebpf)?;
        }
        Ok(())
    }

    /// Stops, and gives what was stamped; nothing where it was not attached.
    ///
    /// # Errors
    /// A program cannot be detached.
    pub fn detach(&mut self) -> Result<Trace, TraceError> {
        let mut was_attached = false;
        for program in &mut self.programs {
            was_attached |= program.detach(&mut self.ebpf)?;
        }
        if !was_attached {
            return Ok(Trace::default());
        }
        let (mut stamps, mut full_ns) = self.memory.stamps();
        // The kernel stamps by its own clock; this process has that of its time namespace.
        let offset_ns = monotonic_offset_ns();
        for time_ns in stamps.iter_mut().map(|stamp| &mut stamp.time_ns).chain(&mut full_ns) {
            *time_ns = time_ns.saturating_add_signed(offset_ns);
        }
        sort(&mut stamps);
        Ok(Trace { stamps, full_ns, names: self.names(), interrupts: interrupts() })
    }

    fn names(&self) -> BTreeMap<u32, String> {
        let Some(map @ Map::LruHashMap(_)) = self.ebpf.map("names") else {
            return BTreeMap::new();
        };
        let Ok(map) = HashMap::<_, u32, [u8; 16]>::try_from(map) else { return BTreeMap::new() };
        let name = |bytes: [u8; 16]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
            text.chars().filter(|c| !c.is_control()).collect()
        };
        BTreeMap::from_iter(map.iter().flatten().map(|(tid, bytes)| (tid, name(bytes))))
    }
}

/// The devices of interrupts, by their number.
fn interrupts() -> BTreeMap<u32, String> {
    let text = crate::read_text("/proc/interrupts".as_ref(), MOST_TEXT);
    devices_of_interrupts(&text.unwrap_or_default())
}

/// Reads lines of `/proc/interrupts`.
pub(super) fn devices_of_interrupts(text: &str) -> BTreeMap<u32, String> {
    let line = |line: &str| {
        let (number, rest) = line.trim().split_once(':')?;
        let words = rest.split_whitespace().skip_while(|word| word.parse::<u64>().is_ok());
        let device = words.last()?.to_owned();
        Some((number.parse().ok()?, format!("IRQ {number} ({device})")))
    };
    BTreeMap::from_iter(text.lines().filter_map(line))
}
