//! Which hosts play which roles, and which of their pairs at the same time. Pure.

use super::topology::HostPair;
use super::{HostSpec, Rails, Request, UsageError, rails};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_base::options::{refuse, refuse_found};
use wiregauge_transport::{Role, Settings, TransportKind};

/// How this host is written in a list of hosts.
pub const HERE: &str = "here";
/// Most pairs that are measured at the same time: each is two sessions of the controller.
pub const MOST_AT_ONCE: usize = 512;
/// Most random matchings of a bisection.
pub const MOST_MATCHINGS: u32 = 1000;
/// Most hosts of a plan.
pub const MOST_HOSTS: usize = 10_000;

wiregauge_base::options::named_enum! {
    /// Which pairs are measured at the same time.
    #[derive(Default)]
    pub enum AtOnce {
        /// One: nothing else runs.
        Pair = "pair",
        /// As many as there are without any host in two of them: the whole machine is busy.
        #[default]
        Matching = "matching",
        /// All: each host is in as many pairs as there are other hosts.
        All = "all",
    }
}

/// Where the ends are to be, as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The hosts, `None` being this one. An empty list: both ends are on this one.
    pub nodes: Vec<Option<HostSpec>>,
    /// Further hosts with clients of the same server, beside the client of the pair.
    pub more_clients: Vec<Option<HostSpec>>,
    /// Which of their pairs.
    pub which: Pairs,
    /// Settings that this host has of its own, as [`HostSpec::own`].
    pub own_here: BTreeMap<String, String>,
    /// Whether each rail is measured.
    pub rails: Option<Rails>,
}

/// Which pairs of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// The first is the client, the second the server.
    #[default]
    First,
    /// Every one with every other.
    All {
        /// Which at the same time.
        at_once: AtOnce,
    },
    /// None: each is a rank of every case.
    Ranks,
    /// Random perfect matchings, all pairs of one at the same time.
    Bisection {
        /// How many matchings.
        matchings: u32,
    },
}

/// The ends of all pairs in the order of the plan, and which of them are measured at the same
/// time; one that is in none of the lists is measured by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Other hosts than this.
    pub hosts: Vec<HostSpec>,
    /// The hosts of the clients where one server has several, or of the nodes; else empty.
    pub clients: Vec<Option<u32>>,
    /// The hosts of each pair.
    pub pairs: Vec<HostPair>,
    /// Numbers of `pairs`; of [`Place::ends`] where each pair has several rails.
    pub concurrent: Vec<Vec<u32>>,
}

impl Place {
    /// The client here, the server there.
    pub fn to(host: HostSpec) -> Place {
        Place { nodes: vec![None, Some(host)], ..Place::default() }
    }

    /// Clients on these hosts, all of one server there or, if `None`, here.
    pub fn clients(mut hosts: Vec<Option<HostSpec>>, server: Option<HostSpec>) -> Place {
        let first = if hosts.is_empty() { None } else { hosts.remove(0) };
        Place { nodes: vec![first, server], more_clients: hosts, ..Place::default() }
    }

    /// On how many hosts clients of one server are.
    pub fn client_hosts(&self) -> u32 {
        1 + self.more_clients.len() as u32
    }

    /// All hosts, `None` being this one: those of pairs, then those of further clients. The others
    /// have the numbers of a [`Layout`] in this order.
    pub fn all_nodes(&self) -> impl Iterator<Item = &Option<HostSpec>> {
        self.nodes.iter().chain(&self.more_clients)
    }

    /// Whether any end is on another host.
    pub fn is_remote(&self) -> bool {
        self.all_nodes().any(Option::is_some)
    }

    /// Whether an end of this role may be on this host.
    pub fn is_here(&self, role: Role) -> bool {
        match self.which {
            Pairs::First => {
                let own = self.nodes.get(role.pick(0, 1)).is_none_or(Option::is_none);
                own || (role == Role::Client && self.more_clients.contains(&None))
            }
            Pairs::All { .. } | Pairs::Bisection { .. } => self.nodes.contains(&None),
            Pairs::Ranks => self.nodes.is_empty() || self.nodes.contains(&None),
        }
    }

    /// Which pairs of several hosts.
    pub fn pairs(&self) -> Option<Pairs> {
        Some(self.which).filter(|which| !matches!(which, Pairs::First | Pairs::Ranks))
    }

    /// How many pairs and rails there are, without making them. Those of a directed question are
    /// measured each in both directions.
    pub fn count(&self, is_directed: bool) -> u64 {
        let nodes = self.nodes.len() as u64;
        let rails = self.rails.as_ref().map_or(1, Rails::count);
        u64::from(rails).saturating_mul(self.count_pairs(nodes, is_directed))
    }

    fn count_pairs(&self, nodes: u64, is_directed: bool) -> u64 {
        match self.which {
            Pairs::First | Pairs::Ranks => 1,
            Pairs::All { .. } if is_directed => nodes * nodes.saturating_sub(1),
            Pairs::All { .. } => nodes * nodes.saturating_sub(1) / 2,
            Pairs::Bisection { matchings } => u64::from(matchings) * (nodes / 2),
        }
    }

    /// The pairs that the options ask for, or why no pair fits.
    pub fn layout(&self, asked: &Request) -> Result<Layout, UsageError> {
        let Place { nodes, which, .. } = self;
        if nodes.is_empty() {
            return Ok(Layout { pairs: vec![HostPair::default()], ..Layout::default() });
        }
        self.check_clients()?;
        check(nodes, *which, asked.measures_bisection)?;
        self.check_rails()?;
        let mut next = 0..;
        let mut number = |node: &Option<HostSpec>| node.as_ref().and_then(|_| next.next());
        let numbers: Vec<Option<u32>> = nodes.iter().map(&mut number).collect();
        let further = self.more_clients.iter().map(number).collect::<Vec<_>>();
        if *which == Pairs::Ranks {
            let hosts = self.all_nodes().flatten().cloned().collect();
            let pairs = vec![HostPair::default()];
            return Ok(Layout { hosts, clients: numbers, pairs, ..Layout::default() });
        }
        let clients = if further.is_empty() { None } else { numbers.first().copied() };
        let end = |node: u32| numbers.get(node as usize).copied().flatten();
        let of = |(a, b): (u32, u32)| HostPair { client: end(a), server: end(b) };
        let count = nodes.len() as u32;
        let turned = |pairs: Vec<(u32, u32)>| pairs.into_iter().map(|(a, b)| (b, a)).collect();
        let groups: Vec<Vec<(u32, u32)>> = match *which {
            Pairs::First | Pairs::Ranks => vec![vec![(0, 1)]],
            Pairs::All { .. } => (0..rounds(count))
                .map(|round| matching(count, round).collect::<Vec<_>>())
                .flat_map(|pairs| {
                    let turned = asked.is_directed.then(|| turned(pairs.clone()));
                    std::iter::once(pairs).chain(turned)
                })
                .collect(),
            Pairs::Bisection { matchings } => random_matchings(count, matchings, asked.seed),
        };
        let concurrent = match which {
            Pairs::First | Pairs::Ranks | Pairs::All { at_once: AtOnce::Pair } => Vec::new(),
            Pairs::All { at_once: AtOnce::All } => {
                vec![(0..groups.iter().map(Vec::len).sum::<usize>() as u32).collect()]
            }
            Pairs::All { at_once: AtOnce::Matching } | Pairs::Bisection { .. } => {
                consecutive(&groups)
            }
        };
        let count = groups.iter().map(Vec::len).sum::<usize>() as u32;
        let concurrent = rails::concurrent(&concurrent, count, self.rails.as_ref());
        let most = concurrent.iter().map(Vec::len).max();
        refuse_found(most.filter(|most| *most > MOST_AT_ONCE), |most| {
            format!(
                "{most} pairs at the same time exceed the limit of {MOST_AT_ONCE}: use fewer \
                 hosts, or --at-once pair"
            )
        })?;
        Ok(Layout {
            hosts: self.all_nodes().flatten().cloned().collect(),
            clients: clients.into_iter().chain(further).collect(),
            pairs: groups.concat().into_iter().map(of).collect(),
            concurrent,
        })
    }
}

impl Place {
    /// The ends of all cases of a combination: each pair of a layout on each rail, the rails of a
    /// pair after each other.
    pub fn ends(&self, layout: &Layout) -> Vec<(HostPair, u32)> {
        let rails = self.rails.as_ref().map_or(1, Rails::count);
        let on_each = |pair: HostPair| (0..rails).map(move |rail| (pair, rail));
        layout.pairs.iter().copied().flat_map(on_each).collect()
    }

    /// Refuses hosts of clients that are named twice, or are the server's.
    fn check_clients(&self) -> Result<(), UsageError> {
        let [first, server] = self.nodes.as_slice() else { return Ok(()) };
        if self.more_clients.is_empty() {
            return Ok(());
        }
        let name = |host: &Option<HostSpec>| {
            host.as_ref().map_or(HERE.to_string(), |spec| spec.host.clone())
        };
        let (most, count) = (MOST_AT_ONCE, self.client_hosts() as usize);
        ensure!(count <= most, "--client-hosts: {count} hosts are too many: use at most {most}");
        let mut names = BTreeSet::new();
        for client in std::iter::once(first).chain(&self.more_clients).map(name) {
            ensure!(
                client != name(server),
                "--client-hosts: '{client}' has the server: name other hosts for the clients, or \
                 another one for the server with --to"
            );
            let is_new = names.insert(client.clone());
            ensure!(is_new, "--client-hosts: '{client}' is named twice: name each host once");
        }
        Ok(())
    }

    /// Refuses hosts with devices of their own where all are measured.
    fn check_rails(&self) -> Result<(), UsageError> {
        let others = self.nodes.iter().flatten().map(|spec| &spec.own);
        let mut own = others.chain([&self.own_here]).flat_map(BTreeMap::keys);
        let of_rail = own.find(|name| matches!(name.as_str(), "device" | "port" | "interface"));
        refuse_found(of_rail.filter(|_| self.rails.is_some()), |name| {
            format!("--rails measures all ports of all hosts: leave out {name}= of --hosts-file")
        })
    }

    /// The settings of a case between these hosts of a layout on this rail, with those that each
    /// has of its own.
    pub fn settings(
        &self,
        layout: &Layout,
        (pair, rail): (HostPair, u32),
        transport: TransportKind,
        asked: &Settings,
    ) -> Result<Settings, UsageError> {
        let own = |host: Option<u32>| {
            let mut own = match host {
                None => self.own_here.clone(),
                Some(number) => layout.hosts[number as usize].own.clone(),
            };
            own.extend(self.rails.iter().flat_map(|rails| rails.own(host, rail)));
            own
        };
        let (client, server) = (own(pair.client), own(pair.server));
        let names: BTreeSet<&String> = client.keys().chain(server.keys()).collect();
        let mut settings = asked.clone();
        for name in names.into_iter().filter(|name| transport.has_setting(name)) {
            let both = asked.text(name).map(|both| both.split_once(',').unwrap_or((both, both)));
            let ends = [
                client.get(name).map(String::as_str).or(both.map(|(client, _)| client)),
                server.get(name).map(String::as_str).or(both.map(|(_, server)| server)),
            ];
            let [Some(client), Some(server)] = ends else {
                return refuse(format!(
                    "--hosts-file: {name} is given for some hosts: give it for all of them, or \
                     --{name} for the others"
                ));
            };
            let both = if client == server { client } else { &format!("{client},{server}") };
            settings.set(name, both)?;
        }
        Ok(settings)
    }
}

/// Numbers that follow each other, in groups of the same lengths.
fn consecutive(groups: &[Vec<(u32, u32)>]) -> Vec<Vec<u32>> {
    let mut next = 0;
    let mut take = |group: &Vec<(u32, u32)>| {
        let first = next;
        next += group.len() as u32;
        (first..next).collect()
    };
    groups.iter().map(&mut take).collect()
}

fn check(
    nodes: &[Option<HostSpec>],
    pairs: Pairs,
    measures_bisection: bool,
) -> Result<(), UsageError> {
    let count = nodes.len();
    ensure!(
        (2..=MOST_HOSTS).contains(&count),
        "{} named: use 2 to {MOST_HOSTS}, such as --hosts node1,node2",
        if count == 1 { "1 host is".to_owned() } else { format!("{count} hosts are") }
    );
    let mut names: Vec<Option<&str>> =
        nodes.iter().map(|node| node.as_ref().map(|spec| spec.host.as_str())).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
        let name = twice[0].unwrap_or(HERE);
        return refuse(format!("the host '{name}' is named twice: name each once"));
    }
    match pairs {
        Pairs::First if count > 2 => refuse(format!(
            "{count} hosts have more than one pair: use --all-pairs to measure each with each"
        )),
        Pairs::Bisection { .. } if !measures_bisection => {
            refuse("--bisection is supported by patterns that measure bandwidth only")
        }
        Pairs::Bisection { matchings } if !(1..=MOST_MATCHINGS).contains(&matchings) => {
            refuse(format!("--bisection: '{matchings}' is out of range: use 1 to {MOST_MATCHINGS}"))
        }
        _ => Ok(()),
    }
}

/// Rounds in which each of `count` hosts meets every other once and none is in two pairs.
pub fn rounds(count: u32) -> u32 {
    match count {
        0 | 1 => 0,
        count => count + count % 2 - 1,
    }
}

/// The pairs of one of these rounds (the circle method of tournaments: one host stays, the others
/// go round; Kirkman, 1847). Of an odd number one host pauses.
pub fn matching(count: u32, round: u32) -> impl Iterator<Item = (u32, u32)> {
    let even = count + count % 2;
    let circle = even.saturating_sub(1).max(1);
    let across = move |place: u32| match place {
        0 => (even.saturating_sub(1), round % circle),
        place => ((round + place) % circle, (round + circle - place) % circle),
    };
    let exists = move |&(a, b): &(u32, u32)| a != b && a < count && b < count;
    (0..even / 2).map(across).map(|(a, b)| (a.min(b), a.max(b))).filter(exists)
}

/// Perfect matchings, each drawn from all there are with equal chance, as are the directions.
pub fn random_matchings(count: u32, matchings: u32, seed: u64) -> Vec<Vec<(u32, u32)>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut nodes: Vec<u32> = (0..count).collect();
    let draw = |_| {
        nodes.shuffle(&mut random);
        nodes.chunks_exact(2).map(|two| (two[0], two[1])).collect()
    };
    (0..matchings).map(draw).collect()
}
