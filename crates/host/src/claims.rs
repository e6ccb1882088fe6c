//! Which CPUs other runs of this program measure on.
//!
//! Each measuring process takes a name for each of its CPUs: an abstract socket, which every user
//! of the machine can see in `/proc/net/unix` (unix(7)), and which goes with its process, whatever
//! ends it. The name has the CPU, the run's number, and the process. Names are those of a network
//! namespace: a run in a container with a network of its own is not seen. Nothing waits for a name,
//! and somebody who takes names of other runs causes a warning and no more.

use super::tree::Tree;
use std::collections::BTreeSet;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the kernel lists the names, each after an `@`.
const NAMES: &str = "/proc/net/unix";
/// What ours begin with.
const PREFIX: &str = "@wiregauge-cpu-";

/// The CPUs of a run, while this lives.
pub struct Claims {
    run: u64,
    cpus: BTreeSet<u32>,
    /// What holds the names.
    _held: Vec<UnixDatagram>,
    shared: BTreeSet<u32>,
}

impl Claims {
    /// Takes a name for each CPU. All processes of a run have its number, and do not count as
    /// others.
    pub fn of(run: u64, cpus: impl IntoIterator<Item = u32>) -> Claims {
        // Both ends may be on one CPU.
        let cpus: BTreeSet<u32> = cpus.into_iter().collect();
        // A name that cannot be taken is seen by nobody: another run lacks a warning.
        let held = cpus.iter().filter_map(|cpu| {
            let name = SocketAddr::from_abstract_name(&name(*cpu, run)[1..]).ok()?;
            UnixDatagram::bind_addr(&name).ok()
        });
        let mut claims = Claims { run, _held: held.collect(), cpus, shared: BTreeSet::new() };
        claims.look();
        claims
    }

    /// Looks for others. The kernel lists all local sockets: not to be called while a loop runs.
    pub fn look(&mut self) {
        let names = Tree::default().text(NAMES).unwrap_or_default();
        let others = others(&names, self.run).filter(|cpu| self.cpus.contains(cpu));
        self.shared.extend(others);
    }

    /// The CPUs on which others have been seen, in order.
    pub fn shared(&self) -> &BTreeSet<u32> {
        &self.shared
    }
}

/// A name as the kernel lists it. A process may have several runs, as the tests of this crate do.
fn name(cpu: u32, run: u64) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{cpu}-{run:016x}-{}-{number}", std::process::id())
}

/// The CPUs with names of other runs. The name is the last field of a line.
pub(super) fn others(names: &str, own: u64) -> impl Iterator<Item = u32> {
    let fields = names.lines().filter_map(|line| line.rsplit(' ').next()?.strip_prefix(PREFIX));
    fields.filter_map(move |field| {
        let mut parts = field.split('-');
        let cpu = parts.next()?.parse().ok()?;
        let run = u64::from_str_radix(parts.next()?, 16).ok()?;
        (run != own).then_some(cpu)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(claims: &Claims) -> Vec<u32> {
        claims.shared().iter().copied().collect()
    }

    #[test]
    fn runs_on_one_cpu_see_each_other_and_others_do_not() {
        // CPUs that no machine has: other tests measure meanwhile.
        let (one, other, third) = (4_000_001, 4_000_002, 4_000_003);
        let mut first = Claims::of(1, [one, other, other]);
        assert!(first.shared().is_empty());
        let second = Claims::of(2, [other, third]);
        assert_eq!(cpus(&second), [other]);
        first.look();
        assert_eq!(cpus(&first), [other]);
        drop((first, second));
        assert!(Claims::of(3, [one, other, third]).shared().is_empty());
    }

    #[test]
    fn processes_of_one_run_do_not_see_each_other() {
        let (first, second) = (Claims::of(7, [4_000_004]), Claims::of(7, [4_000_004]));
        assert!(first.shared().is_empty() && second.shared().is_empty());
        assert_eq!(cpus(&Claims::of(8, [4_000_004])), [4_000_004]);
    }

    #[test]
    fn only_whole_names_of_other_runs_count() {
        let line = |name: &str| format!("0000000000000000: 00000002 0 0 0002 01 4711 {name}\n");
        let run = format!("{:016x}", 5);
        let names = [
            "Num       RefCount Protocol Flags    Type St Inode Path\n".to_string(),
            line("/run/systemd/notify"),
            line(&format!("@wiregauge-cpu-3-{run}-1-0")),
            line("@wiregauge-cpu-4-00000000000000ff-1-0"),
            line("@wiregauge-cpu-x-00000000000000ff-1-0"),
            line("@wiregauge-cpu-6-"),
            line("@wiregauge-cpu-99999999999-ff"),
        ];
        assert_eq!(others(&names.concat(), 5).collect::<Vec<_>>(), [4]);
        assert_eq!(others(&names.concat(), 6).collect::<Vec<_>>(), [3, 4]);
    }
}
