//! The values of options: each parser gives the value, or a sentence that says what is allowed.

use crate::clock::Source;
use crate::host;
use crate::pattern::bandwidth::Direction;
use crate::pattern::rpc::Slowdown;
use crate::plan::pairs::AtOnce;
use crate::plan::sweep::{self, SweepError};
use crate::plan::{TimerKind, Wait, host_spec};
use crate::remote::job::rank::PORT as LEADER_PORT;
use crate::report::export::Format;
use crate::signal;
use crate::stats::limit::{Limit, LimitError};
use crate::testbed::net::Topology;
use crate::transport::{Interfaces, TransportKind, parse_ports};
use crate::units::{Bytes, MessageRate};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::net::{IpAddr, SocketAddr};

/// The sizes of a list or sweep, rising, each once.
#[derive(Clone, Debug)]
pub struct Sizes(pub Vec<Bytes>);

/// CPUs of the client's threads, and as many of the server's, in the order in which they were
/// typed.
#[derive(Clone, Debug)]
pub struct RoleCpus(pub Vec<u32>, pub Vec<u32>);

/// CPUs, rising.
#[derive(Clone, Debug)]
pub struct CpuList(pub Vec<u32>);

/// A limit as typed and as understood.
#[derive(Clone, Debug)]
pub struct TypedLimit(pub String, pub Limit);

/// A host, and the port of the agent that stands there; `None`: ssh reaches it.
#[derive(Clone, Debug)]
pub struct Host {
    pub name: String,
    pub agent: Option<String>,
}

/// ssh with its own arguments.
#[derive(Clone, Debug)]
pub struct Ssh(pub Vec<String>);

/// The intervals of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    Periodic,
    Poisson,
    OnOff,
}

/// Most characters of a list of CPUs: longer is not a person's, and would ask for gigabytes.
const LONGEST_LIST: usize = 1000;
/// Longest name of a host (253, RFC 1035) with a user before it.
const LONGEST_HOST: usize = 320;
/// Longest path or command, in bytes: PATH_MAX of linux/limits.h.
const LONGEST_LINE: usize = 4096;

/// A parser of one of few words.
fn one_of<T, I>(
    all: I,
    name: fn(&T) -> &'static str,
) -> impl TypedValueParser<Value = T> + use<T, I>
where
    T: Clone + Send + Sync + 'static,
    I: IntoIterator<Item = T>,
{
    let all: Vec<T> = all.into_iter().collect();
    PossibleValuesParser::new(all.iter().map(name).collect::<Vec<_>>()).try_map(move |text| {
        all.iter()
            .find(|value| name(value) == text)
            .cloned()
            .ok_or_else(|| format!("'{text}' is not known"))
    })
}

pub fn transports() -> impl TypedValueParser<Value = TransportKind> {
    one_of(TransportKind::ALL.iter().copied(), |transport| transport.name())
}

pub fn waits() -> impl TypedValueParser<Value = Wait> {
    one_of(Wait::ALL.iter().copied(), |wait| wait.name())
}

pub fn at_once() -> impl TypedValueParser<Value = AtOnce> {
    one_of(AtOnce::ALL, |at_once| at_once.name())
}

pub fn clocks() -> impl TypedValueParser<Value = Source> {
    one_of(Source::ALL, |source| source.name())
}

pub fn formats() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL, |format| match format {
        Format::Csv => "csv",
        Format::Json => "json",
        Format::Parquet => "parquet",
    })
}

pub fn sample_formats() -> impl TypedValueParser<Value = signal::format::Format> {
    one_of(signal::format::Format::ALL, |format| format.name())
}

pub fn signals() -> impl TypedValueParser<Value = signal::source::Signal> {
    one_of(signal::source::Signal::ALL, |signal| signal.name())
}

pub fn kinds() -> impl TypedValueParser<Value = signal::Kind> {
    one_of(signal::Kind::ALL, |kind| kind.name())
}

pub fn topologies() -> impl TypedValueParser<Value = Topology> {
    one_of(Topology::ALL, |topology| topology.name())
}

pub fn directions() -> impl TypedValueParser<Value = Direction> {
    one_of([Direction::Uni, Direction::Bi], |direction| match direction {
        Direction::Uni => "uni",
        Direction::Bi => "bi",
    })
}

pub fn arrivals() -> impl TypedValueParser<Value = Arrivals> {
    let all = [Arrivals::Periodic, Arrivals::Poisson, Arrivals::OnOff];
    one_of(all, |arrivals| match arrivals {
        Arrivals::Periodic => "periodic",
        Arrivals::Poisson => "poisson",
        Arrivals::OnOff => "on-off",
    })
}

pub fn slowdowns() -> impl TypedValueParser<Value = Slowdown> {
    one_of(Slowdown::ALL.iter().copied(), |slowdown| slowdown.name())
}

pub fn timers() -> impl TypedValueParser<Value = TimerKind> {
    one_of(TimerKind::ALL.iter().copied(), |timer| timer.name())
}

pub fn interfaces(text: &str) -> Result<Interfaces, String> {
    text.parse()
}

/// A host, reached by an agent that stands there or by ssh, which would take a dash for an option
/// of its own.
pub fn host(text: &str) -> Result<Host, String> {
    if let Some(agent) = text.strip_prefix(host_spec::AGENT) {
        let (host, port) = agent_address(agent)?;
        return Ok(Host { name: agent.to_owned(), agent: Some(format!("[{host}]:{port}")) });
    }
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    if (1..=LONGEST_HOST).contains(&text.len()) && text.chars().all(plain) && !text.starts_with('-')
    {
        return Ok(Host { name: text.to_owned(), agent: None });
    }
    Err(format!("'{text}' is not allowed; write a host as node07, user@node07 or agent:node07"))
}

/// The address of an agent that stands.
pub fn agent_address(text: &str) -> Result<(String, u16), String> {
    host_spec::agent_address(text).filter(|_| text.len() <= LONGEST_HOST).ok_or_else(|| {
        format!(
            "'{text}' is not allowed; write an agent's address as node07, node07:7425 or \
             [2001:db8::7]:7425"
        )
    })
}

/// Where rank 0 is.
pub fn leader(text: &str) -> Result<(String, u16), String> {
    host_spec::address(text, LEADER_PORT).filter(|_| text.len() <= LONGEST_HOST).ok_or_else(|| {
        format!("'{text}' is not allowed; write the host of rank 0 as node01 or 10.1.0.1:7426")
    })
}

/// Where an agent listens: an address with or without a port.
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let alone = bare.parse::<IpAddr>().map(|ip| SocketAddr::from((ip, host_spec::AGENT_PORT)));
    text.parse().or(alone).map_err(|_| {
        format!(
            "'{text}' is not allowed; write an address of this host as 10.1.0.7, 10.1.0.7:7425 or \
             0.0.0.0 for all"
        )
    })
}

/// A range of ports.
pub fn ports(text: &str) -> Result<(u16, u16), String> {
    parse_ports(text)
        .ok_or_else(|| format!("'{text}' is not allowed; write a range of ports as 7500-7599"))
}

/// A text on one line.
pub fn line(text: &str) -> Result<String, String> {
    if (1..=LONGEST_LINE).contains(&text.len()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!("'{text}' is not allowed; write a path as /opt/bin/wiregauge"))
}

pub fn ssh(text: &str) -> Result<Ssh, String> {
    Some(text)
        .filter(|text| text.len() <= LONGEST_LINE)
        .and_then(host_spec::words)
        .map(Ssh)
        .ok_or_else(|| format!("'{text}' is not allowed; write a command as 'ssh -p 2222'"))
}

pub fn sizes(text: &str) -> Result<Sizes, SweepError> {
    sweep::parse(text).map(Sizes)
}

/// Rates of load, rising, each once.
#[derive(Clone, Debug)]
pub struct Rates(pub Vec<MessageRate>);

/// Most rates of a list or sweep.
const MOST_RATES: usize = 100;

pub fn rates(text: &str) -> Result<Rates, String> {
    let form =
        || format!("'{text}' is not allowed; write rates as 50k, 10k,20k or 1k..100k/8 (8 steps)");
    let mut rates: Vec<f64> = Vec::new();
    for part in text.split(',') {
        let one = |text: &str| text.trim().parse::<MessageRate>().map(|rate| rate.0);
        let Some((first, rest)) = part.split_once("..") else {
            rates.push(one(part).map_err(|error| error.to_string())?);
            continue;
        };
        let (last, steps) = rest.split_once('/').ok_or_else(form)?;
        let (first, last) = (one(first).map_err(|_| form())?, one(last).map_err(|_| form())?);
        let steps: usize = steps.trim().parse().map_err(|_| form())?;
        if !(2..=MOST_RATES).contains(&steps) || last <= first {
            return Err(form());
        }
        let share = |step: usize| step as f64 / (steps - 1) as f64;
        rates.extend((0..steps).map(|step| first * (last / first).powf(share(step))));
    }
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    match rates.len() {
        1..=MOST_RATES => Ok(Rates(rates.into_iter().map(MessageRate).collect())),
        many => Err(format!("'{text}' has {many} rates; at most {MOST_RATES} are allowed")),
    }
}

pub fn limit(text: &str) -> Result<TypedLimit, LimitError> {
    text.parse().map(|limit| TypedLimit(text.to_owned(), limit))
}

pub use crate::options::parse_count as count;

pub fn count32(text: &str) -> Result<u32, String> {
    let most = u32::MAX;
    count(text)?.try_into().map_err(|_| format!("'{text}' is not allowed; write at most {most}"))
}

pub fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not allowed; write a whole number of at most 2^64-1"))
}

/// `5%` as 0.05.
pub fn percent(text: &str) -> Result<f64, String> {
    text.strip_suffix('%')
        .and_then(|number| number.trim_end().parse::<f64>().ok())
        .filter(|percent| percent.is_finite())
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("'{text}' is not allowed; write a percentage as 5% or 0.5%"))
}

/// One CPU of each end as `2,3`; of several threads a list of each end as `0-3/4-7`.
pub fn role_cpus(text: &str) -> Result<RoleCpus, String> {
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
            Ok(RoleCpus(client, server))
        }
        Some((client, server)) => Err(format!(
            "'{text}' is not allowed: it names {} CPUs for the client and {} for the server; write \
             as many for each, as 0-3/4-7",
            client.len(),
            server.len()
        )),
        None => Err(format!(
            "'{text}' is not allowed; write the client's CPU and the server's as 2,3, and those of \
             several threads as 0-3/4-7"
        )),
    }
}

pub fn cpu_list(text: &str) -> Result<CpuList, String> {
    Some(text)
        .filter(|text| text.len() <= LONGEST_LIST)
        .and_then(host::parse_cpus)
        .filter(|cpus| !cpus.is_empty())
        .map(CpuList)
        .ok_or_else(|| format!("'{text}' is not allowed; write CPUs as 2, 0-3 or 0-3,6"))
}
