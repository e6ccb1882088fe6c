//! The memory that the kernel's programs and this process share.

use super::{Kind, Stamp, TraceError, Whose};
use aya::Ebpf;
use aya::maps::{Map, MapData};
use memmap2::{MmapMut, MmapOptions};
use std::os::fd::AsFd;
use std::os::linux::fs::MetadataExt;

/// `struct stamp` in stamps.bpf.h.
const STAMP_BYTES: usize = 32;
/// CPUs that `struct shared` has room for.
pub const MOST_CPUS: u32 = 1024;
/// Stamps of all CPUs together: 32 MiB. A message has some 20.
pub const STAMPS: u32 = 1 << 20;
/// The fewest of a CPU.
const FEWEST: u32 = 1 << 14;

/// Where the fields of `struct shared` are.
const NS_DEV: usize = 0;
const NS_INO: usize = 8;
const CONTROLLER: usize = 16;
const SLOTS: usize = 20;
const ADOPTS: usize = 24;
const NETNS: usize = 28;
const ITSELF: usize = 32;
const LEAST_NETWORK_NS: usize = 36;
const CLOCK_CALL: usize = 40;
const POSITIONS: usize = 64;
const POSITION_BYTES: usize = 64;
const PORTS: usize = POSITIONS + MOST_CPUS as usize * POSITION_BYTES;
const END: usize = PORTS + 65536 / 8 + (1 << 22) / 8;

/// CPUs that the kernel may have.
pub fn cpus() -> u32 {
    let possible = crate::read_text("/sys/devices/system/cpu/possible".as_ref(), 4096).ok();
    let possible = possible.and_then(|text| crate::parse_cpus(text.trim()));
    let most = possible.and_then(|cpus| cpus.into_iter().max()).map_or(1, |cpu| cpu + 1);
    most.min(MOST_CPUS)
}

/// Stamps of a CPU that there is room for.
pub fn slots() -> u32 {
    (STAMPS / cpus().max(1)).max(FEWEST)
}

/// The two maps.
pub struct Memory {
    shared: MmapMut,
    stamps: MmapMut,
    slots: u32,
}

impl Memory {
    /// Maps what the kernel has made for the loaded programs.
    pub fn map(ebpf: &Ebpf, slots: u32) -> Result<Memory, TraceError> {
        let stamps = slots as usize * cpus() as usize * STAMP_BYTES;
        Ok(Memory {
            shared: map(ebpf, "shared_map", END)?,
            stamps: map(ebpf, "stamps", stamps)?,
            slots,
        })
    }

    /// Forgets all stamps, ports and processes, and says whose stamps are to be kept. Work of
    /// the network for others alone that is shorter than `least_network_ns` is not stamped.
    pub fn clear(&mut self, whose: Whose, least_network_ns: u32) -> Result<(), TraceError> {
        let namespace = |name: &str| {
            let found = std::fs::metadata(format!("/proc/self/ns/{name}"));
            found.map_err(|error| TraceError::NotSupported(format!("/proc: {error}")))
        };
        let own = namespace("pid")?;
        self.shared.fill(0);
        // The kernel's own form of a device's number.
        let (major, minor) = (libc::major(own.st_dev()), libc::minor(own.st_dev()));
        let dev = u64::from(major) << 20 | u64::from(minor);
        self.put(NS_DEV, &dev.to_ne_bytes());
        self.put(NS_INO, &own.st_ino().to_ne_bytes());
        self.put(CONTROLLER, &std::process::id().to_ne_bytes());
        self.put(SLOTS, &self.slots.to_ne_bytes());
        self.put(ADOPTS, &u32::from(whose == Whose::Readers).to_ne_bytes());
        self.put(LEAST_NETWORK_NS, &least_network_ns.to_ne_bytes());
        // Numbers of calls have 32 bits.
        self.put(CLOCK_CALL, &(libc::SYS_clock_gettime as u32).to_ne_bytes());
        if whose == Whose::Itself {
            self.put(ITSELF, &1_u32.to_ne_bytes());
            // The kernel's numbers of namespaces have 32 bits.
            self.put(NETNS, &(namespace("net")?.st_ino() as u32).to_ne_bytes());
        }
        Ok(())
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.shared[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// All stamps, CPU by CPU, and when the memory of a CPU was full (of several the
    /// first). Only when no program is attached.
    pub fn stamps(&self) -> (Vec<Stamp>, Option<u64>) {
        let (mut all, mut full_ns) = (Vec::new(), None);
        let room = self.slots as usize;
        for cpu in 0..cpus() as usize {
            let at = POSITIONS + cpu * POSITION_BYTES;
            let written = u64::from_ne_bytes(field(&self.shared, at));
            let kept = written.min(room as u64) as usize;
            let first = cpu * room * STAMP_BYTES;
            let own = &self.stamps[first..first + kept * STAMP_BYTES];
            all.extend(own.chunks_exact(STAMP_BYTES).filter_map(read));
            if written > room as u64 {
                let last = all.last().map(|stamp: &Stamp| stamp.time_ns);
                full_ns = [full_ns, last].into_iter().flatten().min();
            }
        }
        (all, full_ns)
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// A stamp; `None`: its slot was not written to the end.
fn read(bytes: &[u8]) -> Option<Stamp> {
    let word = |at| u32::from_ne_bytes(field(bytes, at));
    let stamp = Stamp {
        time_ns: u64::from_ne_bytes(field(bytes, 0)),
        tid: word(8),
        flow: word(12),
        number: word(16),
        length: word(20),
        cpu: u16::from_ne_bytes(field(bytes, 24)),
        kind: Kind::from_number(bytes[26])?,
        in_kernel_thread: bytes[27] & 1 != 0,
    };
    (stamp.time_ns > 0).then_some(stamp)
}

fn map(ebpf: &Ebpf, name: &str, bytes: usize) -> Result<MmapMut, TraceError> {
    let data: &MapData = match ebpf.map(name) {
        Some(Map::Array(data)) => data,
        _ => return Err(TraceError::NotSupported(format!("the object lacks {name}"))),
    };
    let descriptor = data.fd().as_fd();
    // SAFETY: mmap(2) of a BPF array that was made with BPF_F_MMAPABLE and is at least `bytes`
    // long: shared memory, which stays as long as the mapping. The programs write to it while they
    // are attached; it is read when they are not.
    let mapped = unsafe { MmapOptions::new().len(bytes).map_mut(&descriptor) };
    mapped.map_err(|error| TraceError::NotAllowed(format!("mapping its memory: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_was_not_written_to_the_end_is_no_stamp() {
        let mut slot = [0; STAMP_BYTES];
        assert_eq!(read(&slot), None);
        slot[..8].copy_from_slice(&77_u64.to_ne_bytes());
        assert_eq!(read(&slot), None);
        slot[8..12].copy_from_slice(&9_u32.to_ne_bytes());
        slot[24..28].copy_from_slice(&[1, 0, 10, 1]);
        let found = read(&slot).unwrap();
        assert_eq!((found.time_ns, found.tid, found.cpu), (77, 9, 1));
        assert_eq!((found.kind, found.in_kernel_thread), (Kind::Switch, true));
        slot[26] = 200;
        assert_eq!(read(&slot), None);
    }
}
