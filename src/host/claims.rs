//! Which CPUs other runs of this program measure on.
//!
//! A run takes a name for each of its CPUs: an abstract socket, which every user of the machine can
//! see, and which goes with its process, whatever ends it. Names are those of a network namespace:
//! a run in a container with a network of its own is not seen. Nothing waits for a name, and
//! somebody who takes them all causes a warning and no more: a CPU without a free name is a shared
//! one.

use std::collections::BTreeSet;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Most runs on a CPU that see each other.
const RUNS: u32 = 8;

/// The CPUs of a run, while this lives.
pub struct Claims {
    /// A CPU, which of its names this run has, and what holds it.
    held: Vec<(u32, u32, UnixDatagram)>,
    shared: BTreeSet<u32>,
}

impl Claims {
    /// Takes a name for each CPU, where one is free.
    pub fn of(cpus: &[u32]) -> Claims {
        // Both ends may be on one CPU.
        let cpus: BTreeSet<u32> = cpus.iter().copied().collect();
        let mut claims = Claims { held: Vec::new(), shared: BTreeSet::new() };
        for cpu in cpus {
            let names = (0..RUNS).filter_map(|number| Some((number, name(cpu, number).ok()?)));
            let mut tried = names.map(|(number, name)| (number, UnixDatagram::bind_addr(&name)));
            match tried.find(|(_, bound)| !is_taken(bound)) {
                Some((number, Ok(socket))) => claims.held.push((cpu, number, socket)),
                // Another error says nothing of other runs.
                Some((_, Err(_))) => {}
                None => {
                    claims.shared.insert(cpu);
                }
            }
        }
        claims.look();
        claims
    }

    /// Looks for others: a few system calls for each CPU.
    pub fn look(&mut self) {
        let Ok(asking) = UnixDatagram::unbound() else { return };
        let is_taken = |cpu: u32, number: u32| {
            name(cpu, number).and_then(|name| asking.connect_addr(&name)).is_ok()
        };
        for (cpu, own, _) in &self.held {
            if (0..RUNS).any(|number| number != *own && is_taken(*cpu, number)) {
                self.shared.insert(*cpu);
            }
        }
    }

    /// The CPUs on which others have been seen, in order.
    pub fn shared(&self) -> Vec<u32> {
        self.shared.iter().copied().collect()
    }
}

fn is_taken(bound: &io::Result<UnixDatagram>) -> bool {
    bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn name(cpu: u32, number: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("wiregauge-measures-cpu-{cpu}-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_on_one_cpu_see_each_other_and_others_do_not() {
        // CPUs that no machine has: other tests measure meanwhile.
        let (one, other, third) = (4_000_001, 4_000_002, 4_000_003);
        let mut first = Claims::of(&[one, other, other]);
        assert!(first.shared().is_empty());
        let second = Claims::of(&[other, third]);
        assert_eq!(second.shared(), [other]);
        first.look();
        assert_eq!(first.shared(), [other]);
        drop((first, second));
        assert!(Claims::of(&[one, other, third]).shared().is_empty());
    }

    #[test]
    fn a_run_that_finds_no_free_name_is_not_alone() {
        const CPU: u32 = 4_000_004;
        let others: Vec<Claims> = (0..RUNS).map(|_| Claims::of(&[CPU])).collect();
        assert!(others.iter().all(|one| one.held.len() == 1));
        let last = Claims::of(&[CPU]);
        assert_eq!((last.held.len(), last.shared()), (0, vec![CPU]));
    }
}
