//! The values of options: each parser gives the value, or a sentence that says what is allowed.

use crate::host::{self, CpuPair};
use crate::plan::host_spec::{self, AGENT_PORT, HostSpec};
use crate::plan::written::is_of_a_line;
use crate::remote::job::nodelist::{self, MAX_NAME_BYTES};
use crate::remote::job::rank::PORT as LEADER_PORT;
use crate::transport::parse_ports;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// Most characters of a list of CPUs: longer is not a person's, and would ask for gigabytes.
const LONGEST_LIST: usize = 1000;
/// Longest path or command, in bytes: PATH_MAX of linux/limits.h.
const LONGEST_LINE: usize = 4096;

/// Hosts, of which a name with numbers in brackets stands for several.
pub fn hosts(text: &str) -> Result<Vec<HostSpec>, String> {
    nodelist::expand(text)?.iter().map(|name| host(name)).collect()
}

/// One host, where brackets may not stand for several.
pub fn one_host(text: &str) -> Result<HostSpec, String> {
    let mut hosts = hosts(text)?;
    let count = hosts.len();
    let only = hosts.pop().filter(|_| count == 1);
    only.ok_or_else(|| format!("'{text}' stands for {count} hosts: name one, or use --hosts"))
}

/// A host, reached by an agent daemon or by ssh, which would take a dash for an option of its own.
fn host(text: &str) -> Result<HostSpec, String> {
    if let Some(agent) = text.strip_prefix(host_spec::AGENT) {
        let (host, port) = agent_address(agent)?;
        let address = Some(format!("[{host}]:{port}"));
        return Ok(HostSpec { host: agent.to_owned(), agent: address, ..HostSpec::default() });
    }
    let is_word = |c: char| !c.is_whitespace() && is_of_a_line(c);
    let is_name = (1..=MAX_NAME_BYTES).contains(&text.len()) && text.chars().all(is_word);
    if is_name && !text.starts_with('-') {
        return Ok(HostSpec { host: text.to_owned(), ..HostSpec::default() });
    }
    Err(format!("invalid host '{text}': use node07, user@node07 or agent:node07"))
}

/// The address of an agent daemon.
pub fn agent_address(text: &str) -> Result<(String, u16), String> {
    address(text, AGENT_PORT).ok_or_else(|| {
        format!("invalid agent address '{text}': use node07, node07:7425 or [2001:db8::7]:7425")
    })
}

/// Where rank 0 is.
pub fn leader(text: &str) -> Result<(String, u16), String> {
    address(text, LEADER_PORT).ok_or_else(|| {
        format!("invalid host '{text}': use the host of rank 0, such as node01 or 10.1.0.1:7426")
    })
}

fn address(text: &str, port_else: u16) -> Option<(String, u16)> {
    host_spec::address(text, port_else).filter(|_| text.len() <= MAX_NAME_BYTES)
}

/// Where an agent listens: an address with or without a port, of IPv6 also with an interface.
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    // Port 0, which is no other's address, has the kernel choose one.
    text.parse().map(Ok).ok().or_else(|| own_address(text)).unwrap_or_else(|| {
        Err(format!(
            "invalid address '{text}': use an address of this host such as 10.1.0.7, \
             10.1.0.7:7425 or fe80::7%eth0, or 0.0.0.0 for all"
        ))
    })
}

/// The address in a text, with an agent's port where it has none. `None`: it is none.
fn own_address(text: &str) -> Option<Result<SocketAddr, String>> {
    let (host, port) = address(text, AGENT_PORT)?;
    if let Some((ip, zone)) = host.split_once('%') {
        let ip: Ipv6Addr = ip.parse().ok()?;
        return Some(host::scope(zone).map(|scope| SocketAddrV6::new(ip, port, 0, scope).into()));
    }
    Some(Ok(SocketAddr::new(host.parse().ok()?, port)))
}

/// A range of ports.
pub fn ports(text: &str) -> Result<(u16, u16), String> {
    parse_ports(text).ok_or_else(|| format!("invalid range '{text}': use ports such as 7500-7599"))
}

/// A text on one line.
pub fn line(text: &str) -> Result<String, String> {
    if (1..=LONGEST_LINE).contains(&text.len()) && text.chars().all(is_of_a_line) {
        return Ok(text.to_owned());
    }
    Err(format!("invalid path '{text}': use one such as /opt/bin/wiregauge"))
}

pub fn ssh(text: &str) -> Result<Vec<String>, String> {
    Some(text)
        .filter(|text| text.len() <= LONGEST_LINE)
        .and_then(host_spec::words)
        .ok_or_else(|| format!("invalid command '{text}': use one such as 'ssh -p 2222'"))
}

pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("invalid seed '{text}': use a whole number of at most 2^64-1"))
}

/// `5%` as 0.05.
pub fn percent(text: &str) -> Result<f64, String> {
    text.strip_suffix('%')
        .and_then(|number| number.trim_end().parse::<f64>().ok())
        .filter(|percent| percent.is_finite())
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("invalid percentage '{text}': use one such as 5% or 0.5%"))
}

/// One CPU of each end as `2,3`; of several threads a list of each end as `0-3/4-7`.
pub fn role_cpus(text: &str) -> Result<Vec<CpuPair>, String> {
    let one = |text: &str| Some(vec![text.trim().parse().ok()?]);
    // Each part alone: the order of threads is the one that was typed.
    let several = |text: &str| {
        let parts: Option<Vec<Vec<u32>>> = text.split(',').map(host::parse_cpus).collect();
        Some(parts?.concat())
    };
    let lists = match text.split_once('/') {
        _ if text.len() > LONGEST_LIST => None,
        Some((client, server)) => several(client).zip(several(server)),
        None => text.split_once(',').and_then(|(client, server)| one(client).zip(one(server))),
    };
    match lists {
        Some((client, server)) if client.len() == server.len() && !client.is_empty() => {
            let pair = |(client, server)| CpuPair { client, server };
            Ok(client.into_iter().zip(server).map(pair).collect())
        }
        Some((client, server)) => Err(format!(
            "'{text}' has {} CPUs for the client and {} for the server: use as many for each, such \
             as 0-3/4-7",
            client.len(),
            server.len()
        )),
        None => Err(format!(
            "invalid CPUs '{text}': use the client's and the server's such as 2,3, or lists for \
             several threads such as 0-3/4-7"
        )),
    }
}

pub fn cpu_list(text: &str) -> Result<Vec<u32>, String> {
    Some(text)
        .filter(|text| text.len() <= LONGEST_LIST)
        .and_then(host::parse_cpus)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| format!("invalid CPUs '{text}': use 2, 0-3 or 0-3,6"))
}
