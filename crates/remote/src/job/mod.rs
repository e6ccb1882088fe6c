//! Processes that a launcher started together: rank 0 is the controller, all others are its agents.
//!
//! Takes a [`Rank`] from the environment; gives rank 0 the other hosts. The processes of a job
//! share a key: the launcher's own secret, or one that it distributes. Both sides derive their
//! identities from it ([`crate::daemon::identity`]) and use TLS. A rank connects to rank 0,
//! reports where its agent listens, and exits when that connection closes.

mod gather;
pub mod munge;
pub mod nodelist;
pub mod pmi;
pub mod rank;

pub use gather::{Gathered, gather, serve};
use rank::{Launcher, Leader, Rank};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::process::Command;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::secret;
use wiregauge_plan::host_spec::{JobKey, RANK};

/// Environment variable with the secret of all ranks, set by a person or a manifest.
const SECRET_VARIABLE: &str = "WIREGAUGE_JOB_SECRET";
/// Its least length: a shorter one could be guessed.
const SHORTEST_SECRET: usize = 16;
/// A random number that mpirun of Open MPI 4 gives to all processes of a job.
const OPEN_MPI_KEY: &str = "OMPI_MCA_orte_precondition_transports";
/// Ports that are tried in turn if the first is in use.
const PORTS: u16 = 8;

/// How the ranks share a key.
enum Sharing {
    /// All have it.
    Known(JobKey),
    /// Rank 0 sends each rank a new one in a MUNGE credential that only this user can open.
    Munge,
    /// Rank 0 publishes a new one and its addresses over PMI.
    Pmi,
}

fn sharing(rank: &Rank) -> Result<Sharing, String> {
    let known = |text: &str| Ok(Sharing::Known(JobKey(secret::digested(text.as_bytes()))));
    match std::env::var(SECRET_VARIABLE) {
        Ok(given) if given.trim().len() >= SHORTEST_SECRET => return known(given.trim()),
        Ok(_) => {
            return Err(format!(
                "{SECRET_VARIABLE} is too short: use at least {SHORTEST_SECRET} random characters"
            ));
        }
        Err(_) => {}
    }
    let of_mpirun = std::env::var(OPEN_MPI_KEY).ok().filter(|key| key.len() >= SHORTEST_SECRET);
    match (rank.launcher, of_mpirun) {
        (Launcher::OpenMpi, Some(key)) => known(&key),
        (Launcher::Slurm, _) => Ok(Sharing::Munge),
        (Launcher::Hydra, _) if rank.leader == Leader::FromLauncher => Ok(Sharing::Pmi),
        _ => Err(format!(
            "the processes of this job share no secret: set {SECRET_VARIABLE} to the same \
             {SHORTEST_SECRET} or more random characters for all"
        )),
    }
}

/// Names or addresses of rank 0, and its first port.
fn candidates(leader: &Leader) -> Result<(Vec<String>, u16), String> {
    match leader {
        Leader::Address(hosts, _) if hosts.is_empty() => {
            Err("the launcher does not give the host of rank 0: name it with --leader".into())
        }
        Leader::Address(hosts, port) => Ok((hosts.clone(), *port)),
        Leader::Node(name, port) => {
            let is_known = (name.as_str(), *port).to_socket_addrs().is_ok();
            let hosts = if is_known { vec![name.clone()] } else { addresses_of_node(name) };
            ensure!(
                !hosts.is_empty(),
                "cannot resolve {name}, the host of rank 0, by name or `scontrol show node`: name \
                 it with --leader"
            );
            Ok((hosts, *port))
        }
        Leader::FromLauncher => {
            Err("the launcher's channel did not give the address of rank 0".into())
        }
    }
}

/// Addresses of a node by Slurm's configuration.
fn addresses_of_node(name: &str) -> Vec<String> {
    let mut scontrol = Command::new("scontrol");
    let shown = scontrol.args(["show", "node", "-o", name]).output();
    let text = shown.map(|shown| String::from_utf8_lossy(&shown.stdout).into_owned());
    parse_node(&text.unwrap_or_default())
}

/// Parses what `scontrol show node -o` prints of a node: its address and its name.
pub fn parse_node(text: &str) -> Vec<String> {
    ["NodeAddr=", "NodeHostName="]
        .into_iter()
        .filter_map(|key| text.split_whitespace().find_map(|word| word.strip_prefix(key)))
        .filter(|name| !name.is_empty())
        .map(String::from)
        .collect()
}

/// All addresses of this host.
const EVERYWHERE: [IpAddr; 2] =
    [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
/// This host's addresses for itself.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// The listener of rank 0: at the one address of this host that was given, else at all, since only
/// the other ranks know which they can reach. A name may mean another address to them.
fn listen_for(leader: &Leader) -> Result<TcpListener, String> {
    let (hosts, first) = candidates(leader)?;
    let given = match &hosts[..] {
        [one] if one == "localhost" => return listen(&LOOPBACK, first),
        [one] => one.parse::<IpAddr>().ok(),
        _ => None,
    };
    let is_own = |ip: &IpAddr| ip.is_loopback() || wiregauge_host::own_addresses().contains(ip);
    match given.filter(is_own) {
        Some(ip) => listen(&[ip], first),
        None => listen(&EVERYWHERE, first),
    }
}

/// A listener at the first of these addresses and ports that is free.
fn listen(addresses: &[IpAddr], first: u16) -> Result<TcpListener, String> {
    let ports = first..=if first == 0 { 0 } else { first.saturating_add(PORTS - 1) };
    let all: Vec<SocketAddr> =
        ports.flat_map(|port| addresses.iter().map(move |ip| (*ip, port).into())).collect();
    TcpListener::bind(&all[..])
        .map_err(|error| format!("rank 0 cannot listen on any of the ports from {first}: {error}"))
}

/// Key, port and addresses, in hex: without blanks as PMI requires.
fn published(JobKey(key): &JobKey, at: SocketAddr) -> String {
    let own = (key, at.port(), wiregauge_host::own_addresses());
    secret::to_hex(postcard::to_stdvec(&own).unwrap_or_default())
}

/// Parses it.
pub fn parse_published(text: &str) -> Option<(JobKey, Vec<String>, u16)> {
    let (key, port, hosts): ([u8; 32], u16, Vec<IpAddr>) =
        postcard::from_bytes(&hex::decode(text).ok()?).ok()?;
    Some((JobKey(key), hosts.iter().map(IpAddr::to_string).collect(), port))
}

/// Whether this is a rank other than 0, which prints nothing: rank 0 speaks for all.
pub fn is_silent() -> bool {
    let found = rank::find(&rank::RankOptions::default(), &|name| std::env::var(name).ok());
    matches!(found, Ok(Some(rank)) if rank.rank > 0)
}

/// A rank's name among the hosts.
pub fn name(rank: u32) -> String {
    format!("{RANK}{rank}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rank_0_puts_is_what_the_others_get() {
        let key = JobKey(secret::fresh().unwrap());
        let at: SocketAddr = "0.0.0.0:4711".parse().unwrap();
        let put = published(&key, at);
        assert!(!put.contains(char::is_whitespace) && put.len() < 1000, "{put}");
        let (back, hosts, port) = parse_published(&put).unwrap();
        assert_eq!((back, port), (key, 4711));
        assert!(hosts.last().is_some_and(|last| last == "::1" || last == "127.0.0.1"), "{hosts:?}");
        for wrong in ["", "a/b/c", &put[1..], "//"] {
            assert!(parse_published(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn rank_0_listens_where_its_leader_s_address_says_if_that_is_its_own() {
        let at = |host: &str| {
            let leader = Leader::Address(vec![host.to_string()], 0);
            listen_for(&leader).unwrap().local_addr().unwrap().ip()
        };
        assert_eq!(at("127.0.0.1").to_string(), "127.0.0.1");
        assert_eq!(at("localhost").to_string(), "127.0.0.1");
        // Another host's, as of a service in front of this one, and a name.
        assert!(at("192.0.2.1").is_unspecified() && at("node07").is_unspecified());
        let two = Leader::Address(vec!["127.0.0.1".into(), "192.0.2.1".into()], 0);
        assert!(listen_for(&two).unwrap().local_addr().unwrap().ip().is_unspecified());
    }

    #[test]
    fn a_leader_that_nobody_names_is_asked_for() {
        let nowhere = candidates(&Leader::Address(Vec::new(), 80)).unwrap_err();
        assert!(nowhere.contains("--leader"), "{nowhere}");
        let (hosts, port) = candidates(&Leader::Node("localhost".into(), 80)).unwrap();
        assert_eq!((hosts, port), (vec!["localhost".to_string()], 80));
    }
}
