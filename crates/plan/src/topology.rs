//! Who talks to whom: the processes of a case, where they run, and which of their threads are
//! connected. Pure.
//!
//! A client and a server are the simplest value. Who is connected to whom follows from the numbers,
//! or from a list of pairs of ranks.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_transport::Role;

/// Most threads of a rank.
pub const MOST_THREADS: u32 = 64;
/// Most ranks.
const MOST_RANKS: usize = 10_000;
/// Most connections of one thread.
pub const MAX_ENDPOINTS: u32 = 16_384;
/// Most connections of one rank, of all its threads.
const MAX_OF_RANK: u64 = 65_536;
/// Most ranks that one rank is connected to, where each is.
pub const MAX_PEERS: u32 = 1024;

/// The hosts of a client and a server: numbers of a plan's hosts, or this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPair {
    /// The client's host; `None`: this one.
    pub client: Option<u32>,
    /// The server's host; `None`: this one.
    pub server: Option<u32>,
}

/// A process of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// What it does.
    pub role: Role,
    /// Its host, a number of the plan's hosts; `None`: this one.
    pub host: Option<u32>,
    /// Its threads; each has endpoints of its own.
    pub threads: u32,
}

/// Which ranks are connected.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// These pairs.
    Pairs(Vec<(u32, u32)>),
    /// Every rank with every other.
    AllToAll,
}

/// How the threads of two connected ranks are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wiring {
    /// Each thread to the thread of the same number.
    Parallel,
    /// Each thread to every thread of the other rank.
    Mesh {
        /// Connections of each pair of threads.
        each: u32,
    },
}

/// One endpoint of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointId {
    /// Position of its rank.
    pub rank: usize,
    /// The thread of that rank.
    pub thread: usize,
    /// Which of the endpoints of that thread.
    pub endpoint: usize,
}

/// The ranks of a case and their connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Topology {
    /// The processes, in the order of their numbers.
    pub ranks: Vec<Rank>,
    /// Which of them are connected.
    pub connections: Connections,
    /// How the threads of two that are.
    pub wiring: Wiring,
}

impl Default for Topology {
    fn default() -> Topology {
        Topology::pair(1)
    }
}

impl Topology {
    /// A client and a server on this host, their threads connected one to one.
    pub fn pair(threads: u32) -> Topology {
        Topology::client_server(threads, threads, Wiring::Parallel)
    }

    /// A client and a server on this host.
    pub fn client_server(clients: u32, servers: u32, wiring: Wiring) -> Topology {
        let rank = |role, threads| Rank { role, host: None, threads };
        let ranks = vec![rank(Role::Client, clients), rank(Role::Server, servers)];
        Topology { ranks, connections: Connections::Pairs(vec![(0, 1)]), wiring }
    }

    /// So many nodes on this host, each a process with one thread and a connection to every other.
    pub fn nodes(count: u32) -> Topology {
        let node = Rank { role: Role::Node, host: None, threads: 1 };
        Topology {
            ranks: vec![node; count.min(MOST_RANKS as u32) as usize],
            connections: Connections::AllToAll,
            wiring: Wiring::Parallel,
        }
    }

    /// So many nodes, of which these pairs are connected; more than can be listed are all. One that
    /// none of them names is connected to the next, since a rank has an endpoint.
    pub fn nodes_connected(count: u32, pairs: impl IntoIterator<Item = (u32, u32)>) -> Topology {
        let all = Topology::nodes(count);
        let ordered = |(a, b): (u32, u32)| (a.min(b), a.max(b));
        let mut pairs: BTreeSet<(u32, u32)> = pairs.into_iter().map(ordered).collect();
        let named: BTreeSet<u32> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let alone = (0..count).filter(|node| !named.contains(node));
        pairs.extend(alone.map(|node| ordered((node, (node + 1) % count))));
        let every = u64::from(count) * u64::from(count.saturating_sub(1)) / 2;
        if pairs.len() > MOST_RANKS || pairs.len() as u64 == every {
            return all;
        }
        Topology { connections: Connections::Pairs(pairs.into_iter().collect()), ..all }
    }

    /// The same with this many clients of the one server, all alike: the first, and others after
    /// the server.
    #[must_use]
    pub fn with_clients(mut self, clients: u32) -> Topology {
        let (Some(first), Some(server)) =
            (self.position(Role::Client), self.position(Role::Server))
        else {
            return self;
        };
        let client = self.ranks[first];
        let before = self.ranks.len() as u32;
        let more = clients.saturating_sub(1).min(MOST_RANKS as u32);
        self.ranks.extend((0..more).map(|_| client));
        if let Connections::Pairs(pairs) = &mut self.connections {
            pairs.extend((before..before + more).map(|number| (number, server as u32)));
        }
        self
    }

    /// Refuses what no plan makes: it may come over a network.
    pub fn check(&self) -> Result<(), String> {
        let ranks = self.ranks.len();
        let is_rank = |number: u32| (number as usize) < ranks;
        let pairs = match &self.connections {
            Connections::Pairs(pairs) => pairs.as_slice(),
            Connections::AllToAll => &[],
        };
        let are_ranks = pairs.iter().all(|(a, b)| a != b && is_rank(*a) && is_rank(*b));
        let is_small = (1..=MOST_RANKS).contains(&ranks)
            && pairs.len() <= MOST_RANKS
            && self.ranks.iter().all(|rank| (1..=MOST_THREADS).contains(&rank.threads))
            && are_ranks
            && self.is_of_one_kind()
            && self.has_few_endpoints();
        ensure!(
            is_small,
            "the case is too large: at most {MOST_THREADS} threads of a rank, \
             {MAX_ENDPOINTS} connections of a thread and {MAX_OF_RANK} of a rank"
        );
        Ok(())
    }

    /// Returns true if each thread of each rank has a connection, and no more than are allowed.
    fn has_few_endpoints(&self) -> bool {
        let each = self.endpoints_of_each();
        let mut ranks = self.ranks.iter().zip(each);
        ranks.all(|(rank, all)| {
            let of_rank = u64::from(rank.threads) * u64::from(all);
            (1..=MAX_ENDPOINTS).contains(&all) && of_rank <= MAX_OF_RANK
        })
    }

    /// Whether nodes are among themselves: a process that is one of several equals has no client.
    fn is_of_one_kind(&self) -> bool {
        !self.has_nodes() || self.ranks.iter().all(|rank| rank.role == Role::Node)
    }

    /// Whether its ranks are nodes, which all do the same.
    pub fn has_nodes(&self) -> bool {
        self.ranks.iter().any(|rank| rank.role == Role::Node)
    }

    /// The same on these hosts.
    #[must_use]
    pub fn on(mut self, hosts: HostPair) -> Topology {
        for rank in &mut self.ranks {
            rank.host = rank.role.pick(hosts.client, hosts.server);
        }
        self
    }

    /// The same with the clients, or the nodes, on these hosts, one on each in their order.
    #[must_use]
    pub fn with_clients_on(mut self, hosts: &[Option<u32>]) -> Topology {
        let clients = self.ranks.iter_mut().filter(|rank| rank.role.side() == Role::Client);
        clients.zip(hosts).for_each(|(rank, host)| rank.host = *host);
        self
    }

    /// The hosts of its first client and its server.
    pub fn hosts(&self) -> HostPair {
        HostPair { client: self.host_of(Role::Client), server: self.host_of(Role::Server) }
    }

    /// The first rank of a role's side.
    pub fn rank(&self, role: Role) -> Option<&Rank> {
        self.ranks_of(role).next()
    }

    /// The host of a role; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<u32> {
        self.rank(role)?.host
    }

    /// What the ranks of a role's side are called.
    pub fn name_of(&self, role: Role) -> &'static str {
        self.rank(role).map_or(role, |rank| rank.role).name()
    }

    /// The ranks of a role's side, in the order of their numbers: nodes are those of the client's.
    pub fn ranks_of(&self, role: Role) -> impl Iterator<Item = &Rank> {
        self.ranks.iter().filter(move |rank| rank.role.side() == role.side())
    }

    /// Threads of a role, of all its ranks.
    pub fn threads_of(&self, role: Role) -> u32 {
        self.ranks_of(role).fold(0, |all, rank| all.saturating_add(rank.threads))
    }

    /// Threads of the ranks of its role before this one: the number of its first thread among all
    /// of the role.
    pub fn first_thread(&self, rank: usize) -> u32 {
        let role = self.ranks.get(rank).map(|rank| rank.role);
        let before = self.ranks.iter().take(rank).filter(|one| Some(one.role) == role);
        before.fold(0, |all, rank| all.saturating_add(rank.threads))
    }

    /// The host of one of the threads of a role.
    pub fn host_of_thread(&self, role: Role, thread: u32) -> Option<u32> {
        let mut before = 0u32;
        let own = self.ranks_of(role).find(|rank| {
            before = before.saturating_add(rank.threads);
            thread < before
        });
        own?.host
    }

    /// Whether several ranks begin: clients of one server, or nodes.
    pub fn has_several_clients(&self) -> bool {
        self.ranks_of(Role::Client).nth(1).is_some()
    }

    /// Threads of the rank that has the most.
    pub fn most_threads(&self) -> u32 {
        self.ranks.iter().map(|rank| rank.threads).max().unwrap_or(1)
    }

    /// Pairs of CPUs that its ranks of one host can use, for the host with the most of them: a
    /// client and a server take one pair for each thread, and two nodes share one.
    pub fn cpu_pairs(&self) -> u32 {
        if !self.has_nodes() {
            return self.most_threads();
        }
        let mut threads = BTreeMap::<Option<u32>, u32>::new();
        self.ranks.iter().for_each(|rank| *threads.entry(rank.host).or_default() += rank.threads);
        let pairs = threads.into_values().max().unwrap_or(1).div_ceil(2);
        pairs.clamp(1, MOST_THREADS)
    }

    /// Threads of the ranks before this one on its own host: nodes of one host take its CPUs in
    /// turns.
    pub fn threads_before_on_host(&self, rank: usize) -> u32 {
        let host = self.ranks.get(rank).map(|rank| rank.host);
        let before = self.ranks.iter().take(rank).filter(|one| Some(one.host) == host);
        before.fold(0, |all, one| all.saturating_add(one.threads))
    }

    /// Whether its ranks are on different hosts.
    pub fn is_between_hosts(&self) -> bool {
        self.ranks.windows(2).any(|two| two[0].host != two[1].host)
    }

    /// Returns true if all ranks that a rank is connected to are on other hosts.
    pub fn is_alone_on_host(&self, rank: usize) -> bool {
        let own = self.ranks.get(rank).map(|own| own.host);
        self.neighbours(rank).into_iter().all(|other| Some(self.ranks[other].host) != own)
    }

    /// Returns the number of connections of each pair of threads that are connected.
    pub fn connections_each(&self) -> u32 {
        match self.wiring {
            Wiring::Parallel => 1,
            Wiring::Mesh { each } => each,
        }
    }

    /// Endpoints of each thread of a rank.
    pub fn endpoints_of(&self, rank: usize) -> u32 {
        self.endpoints_before(rank, self.ranks.len())
    }

    /// Endpoints of each thread of a rank towards the ranks below `other`.
    fn endpoints_before(&self, rank: usize, other: usize) -> u32 {
        if self.connections == Connections::AllToAll && self.wiring == Wiring::Parallel {
            // One of each: a sum for each of thousands of ranks would take their number squared.
            return (other - usize::from(rank < other)) as u32;
        }
        let before = self.neighbours(rank).into_iter().take_while(|one| *one < other);
        before.map(|one| self.endpoints_towards(one)).fold(0, u32::saturating_add)
    }

    /// The side of a rank on its connection to another: a node's is the client's towards those of
    /// higher rank.
    pub fn side_towards(&self, rank: usize, other: usize) -> Role {
        match self.ranks.get(rank).map(|rank| rank.role) {
            Some(Role::Server) => Role::Server,
            Some(Role::Node) if other < rank => Role::Server,
            _ => Role::Client,
        }
    }

    /// Endpoints of each thread of the rank of a role's side that has the most. Clients of one
    /// server are all alike.
    pub fn endpoints_of_role(&self, role: Role) -> u32 {
        let of_role = |(rank, all): (&Rank, u32)| (rank.role.side() == role.side()).then_some(all);
        let each = self.ranks.iter().zip(self.endpoints_of_each());
        each.filter_map(of_role).max().unwrap_or_default()
    }

    /// Endpoints of each thread of each rank, in one pass over the pairs.
    pub fn endpoints_of_each(&self) -> Vec<u32> {
        let ranks = 0..self.ranks.len();
        let Connections::Pairs(pairs) = &self.connections else {
            // Of all but itself: a sum for each of thousands of ranks would take their number
            // squared.
            let towards: Vec<u64> =
                ranks.map(|rank| u64::from(self.endpoints_towards(rank))).collect();
            let all: u64 = towards.iter().sum();
            return towards.iter().map(|own| (all - own).min(u32::MAX.into()) as u32).collect();
        };
        let mut each = vec![0u32; ranks.len()];
        for (a, b) in pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]) {
            if let Some(own) = each.get_mut(a as usize) {
                *own = own.saturating_add(self.endpoints_towards(b as usize));
            }
        }
        each
    }

    /// The endpoints that those of a thread are connected to, in the order of its own: by rank,
    /// then by thread.
    pub fn peers_of(&self, rank: usize, thread: usize) -> Vec<EndpointId> {
        let mut peers = Vec::new();
        for other in self.neighbours(rank) {
            let first = self.endpoints_before(other, rank);
            match self.wiring {
                Wiring::Parallel => {
                    peers.push(EndpointId { rank: other, thread, endpoint: first as usize });
                }
                Wiring::Mesh { each } => {
                    let first = first as usize + thread * each as usize;
                    let threads = self.ranks.get(other).map_or(0, |rank| rank.threads as usize);
                    peers.extend((0..threads).flat_map(|thread| {
                        let all = first..first + each as usize;
                        all.map(move |endpoint| EndpointId { rank: other, thread, endpoint })
                    }));
                }
            }
        }
        peers
    }

    /// What each thread of a rank is to connect to, in the order of its endpoints, from what each
    /// endpoint of each thread of each rank has; `None`: these are not those of the topology.
    pub fn route<T: Clone>(&self, rank: usize, of: &[Vec<Vec<T>>]) -> Option<Vec<Vec<T>>> {
        let is_whole = |rank: &usize| {
            let (threads, each) = (self.ranks[*rank].threads, self.endpoints_of(*rank));
            of.get(*rank).is_some_and(|of| {
                of.len() == threads as usize && of.iter().all(|own| own.len() == each as usize)
            })
        };
        if !self.neighbours(rank).iter().all(is_whole) {
            return None;
        }
        let one =
            |peer: EndpointId| of.get(peer.rank)?.get(peer.thread)?.get(peer.endpoint).cloned();
        let thread =
            |number: u32| self.peers_of(rank, number as usize).into_iter().map(one).collect();
        (0..self.ranks.get(rank)?.threads).map(thread).collect()
    }

    /// Endpoints that a thread has for its connections to a rank.
    pub fn endpoints_towards(&self, other: usize) -> u32 {
        let threads = match self.wiring {
            Wiring::Parallel => 1,
            Wiring::Mesh { .. } => self.ranks.get(other).map_or(0, |other| other.threads),
        };
        threads.saturating_mul(self.connections_each())
    }

    /// The ranks that a rank is connected to, in the order of their numbers.
    pub fn neighbours(&self, rank: usize) -> Vec<usize> {
        match &self.connections {
            Connections::AllToAll => (0..self.ranks.len()).filter(|one| *one != rank).collect(),
            Connections::Pairs(pairs) => {
                let both = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
                let own = both.filter(|(from, _)| *from as usize == rank);
                let mut others: Vec<usize> = own.map(|(_, to)| to as usize).collect();
                others.sort_unstable();
                others
            }
        }
    }

    /// The position of the first rank of a role's side.
    pub fn position(&self, role: Role) -> Option<usize> {
        self.ranks.iter().position(|rank| rank.role.side() == role.side())
    }
}

#[cfg(test)]
mod tests;
