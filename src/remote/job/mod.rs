//! Processes that a launcher has started together: rank 0 drives, every other one is an agent for
//! it until it ends.
//!
//! Takes a [`Rank`] from the environment; gives rank 0 the other hosts. What all processes of a job
//! share and nobody else knows is the launcher's own secret or goes over its own channel; from it
//! both sides derive their identities ([`crate::remote::daemon::identity`]), and everything between
//! them is TLS. A rank dials rank 0, says where it listens, and ends when that connection does.

mod gather;
mod munge;
pub mod nodelist;
mod pmi;
pub mod rank;

use crate::control::fault::Fault;
use crate::control::secret;
use crate::host;
use crate::plan::host_spec::JobKey;
pub use gather::{Gathered, gather, serve};
use rank::{Launcher, Leader, Rank};
use ring::digest;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::process::Command;

/// The secret that a person or a manifest gives to all ranks.
const SECRET_VARIABLE: &str = "WIREGAUGE_JOB_SECRET";
/// The least length of one: what is shorter can be tried out.
const SHORTEST_SECRET: usize = 16;
/// A random number of each job that mpirun of Open MPI 4 gives to all of its processes.
const OPEN_MPI_KEY: &str = "OMPI_MCA_orte_precondition_transports";
/// Ports that are tried one after the other where the first is another program's.
const PORTS: u16 = 8;

/// How the ranks come to share a key.
enum Sharing {
    /// All have it already.
    Known(JobKey),
    /// Rank 0 seals a fresh one for each other rank, which only this user can open.
    Munge,
    /// Rank 0 puts a fresh one where the others get it, with its addresses.
    Pmi,
}

fn sharing(rank: &Rank) -> Result<Sharing, String> {
    let digested = |text: &str| {
        let mut key = [0; 32];
        key.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
        Sharing::Known(JobKey(key))
    };
    match std::env::var(SECRET_VARIABLE) {
        Ok(given) if given.trim().len() >= SHORTEST_SECRET => return Ok(digested(given.trim())),
        Ok(_) => {
            return Err(format!(
                "{SECRET_VARIABLE} is too short; give at least {SHORTEST_SECRET} random signs"
            ));
        }
        Err(_) => {}
    }
    let of_mpirun = std::env::var(OPEN_MPI_KEY).ok().filter(|key| key.len() >= SHORTEST_SECRET);
    match (rank.launcher, of_mpirun) {
        (Launcher::OpenMpi, Some(key)) => Ok(digested(&key)),
        (Launcher::Slurm, _) => Ok(Sharing::Munge),
        (Launcher::Hydra, _) if rank.leader == Leader::Told => Ok(Sharing::Pmi),
        _ => Err(format!(
            "the processes of this job have no secret in common; give each the same random \
             {SECRET_VARIABLE} of at least {SHORTEST_SECRET} signs in its environment"
        )),
    }
}

fn fresh() -> Result<JobKey, String> {
    secret::fresh().map(JobKey)
}

/// Where rank 0 is looked for: names or addresses, and the first port.
fn candidates(leader: &Leader) -> Result<(Vec<String>, u16), String> {
    match leader {
        Leader::At(hosts, _) if hosts.is_empty() => {
            Err("the launcher does not say where rank 0 is; name its host with --leader".into())
        }
        Leader::At(hosts, port) => Ok((hosts.clone(), *port)),
        Leader::Node(name, port) => {
            let is_known = (name.as_str(), *port).to_socket_addrs().is_ok();
            let hosts = if is_known { vec![name.clone()] } else { addresses_of_node(name) };
            match hosts.is_empty() {
                true => Err(format!(
                    "neither names nor `scontrol show node` tell the address of {name}, where \
                     rank 0 is; name it with --leader"
                )),
                false => Ok((hosts, *port)),
            }
        }
        Leader::Told => Err("the launcher's channel has not said where rank 0 is".into()),
    }
}

/// What Slurm itself knows of a node whose name is none of the network's.
fn addresses_of_node(name: &str) -> Vec<String> {
    let mut scontrol = Command::new("scontrol");
    let shown = scontrol.args(["show", "node", "-o", name]).output();
    let text = shown.map(|shown| String::from_utf8_lossy(&shown.stdout).into_owned());
    let text = text.unwrap_or_default();
    let of = |key| text.split_whitespace().find_map(|word| word.strip_prefix(key));
    ["NodeAddr=", "NodeHostName="].into_iter().filter_map(of).map(String::from).collect()
}

/// Where rank 0 listens for the others, for as long as they come.
fn listen(first: u16) -> Result<TcpListener, String> {
    let ports = if first == 0 { 0..=0 } else { first..=first.saturating_add(PORTS - 1) };
    let mut last = String::new();
    for port in ports {
        // On every address: which of them the others can reach, only they know.
        for all in ["[::]", "0.0.0.0"] {
            match TcpListener::bind(format!("{all}:{port}")) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = error.to_string(),
            }
        }
    }
    Err(format!("rank 0 cannot listen at a port from {first} on: {last}"))
}

/// `key/port/address,address`, without blanks as PMI asks.
fn words(key: &JobKey, at: SocketAddr) -> String {
    let own: Vec<String> = host::own_addresses().iter().map(|one| one.to_string()).collect();
    format!("{}/{}/{}", secret::to_hex(&key.0), at.port(), own.join(","))
}

/// The same read.
fn of_words(text: &str) -> Option<(JobKey, Vec<String>, u16)> {
    let mut parts = text.split('/');
    let key = secret::from_hex(parts.next()?)?;
    let port = parts.next()?.parse().ok()?;
    let hosts: Vec<String> = parts.next()?.split(',').map(String::from).collect();
    Some((JobKey(key), hosts, port))
}

/// Whether this process is one of a job and not its first: what it had to say, rank 0 says.
pub fn is_silent() -> bool {
    let found = rank::find(&rank::Typed::default(), &|name| std::env::var(name).ok());
    matches!(found, Ok(Some(rank)) if rank.rank > 0)
}

/// A rank's name among the hosts.
pub fn name(rank: u32) -> String {
    format!("rank:{rank}")
}

fn failed(sentence: String) -> Fault {
    Fault::new(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rank_0_puts_is_what_the_others_get() {
        let key = fresh().unwrap();
        let at: SocketAddr = "0.0.0.0:4711".parse().unwrap();
        let put = words(&key, at);
        assert!(!put.contains(char::is_whitespace) && put.len() < 1000, "{put}");
        let (back, hosts, port) = of_words(&put).unwrap();
        assert_eq!((back, port), (key, 4711));
        assert!(hosts.last().is_some_and(|last| last == "::1" || last == "127.0.0.1"), "{hosts:?}");
        for wrong in ["", "a/b/c", &put[1..], "//"] {
            assert!(of_words(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_leader_that_nobody_names_is_asked_for() {
        let nowhere = candidates(&Leader::At(Vec::new(), 80)).unwrap_err();
        assert!(nowhere.contains("--leader"), "{nowhere}");
        let (hosts, port) = candidates(&Leader::Node("localhost".into(), 80)).unwrap();
        assert_eq!((hosts, port), (vec!["localhost".to_string()], 80));
    }
}
