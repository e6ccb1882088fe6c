//! Who talks to whom: the processes of a case, where they run, and which of their threads are
//! connected. Pure.
//!
//! A client and a server are the simplest value. Nothing here grows with the number of
//! connections: who is connected to whom follows from the numbers.

use crate::transport::Role;
use serde::{Deserialize, Serialize};

/// Most threads of a rank.
pub const MOST_THREADS: u32 = 64;
/// Most ranks.
const MOST_RANKS: usize = 10_000;
/// Most connections of one thread.
pub const MOST_ENDPOINTS: u32 = 1024;

/// The hosts of a client and a server: numbers of a plan's hosts, or this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPair {
    /// The client's host; `None`: this one.
    pub client: Option<u32>,
    /// The server's host; `None`: this one.
    pub server: Option<u32>,
}

/// A process of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// What it does.
    pub role: Role,
    /// Its host, a number of the plan's hosts; `None`: this one.
    pub host: Option<u32>,
    /// Its threads; each has endpoints of its own.
    pub threads: u32,
}

/// Which ranks are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// These pairs.
    Pairs(Vec<(u32, u32)>),
    /// Every rank with every other.
    AllToAll,
}

/// How the threads of two connected ranks are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
            && (0..ranks).all(|rank| (1..=MOST_ENDPOINTS).contains(&self.endpoints_of(rank)));
        ensure!(
            is_small,
            "the case is too large: at most {MOST_THREADS} threads of a rank, and \
             {MOST_ENDPOINTS} connections of a thread"
        );
        Ok(())
    }

    /// The same on these hosts.
    #[must_use]
    pub fn on(mut self, hosts: HostPair) -> Topology {
        for rank in &mut self.ranks {
            rank.host = rank.role.pick(hosts.client, hosts.server);
        }
        self
    }

    /// The same with the clients on these hosts, one on each in their order.
    #[must_use]
    pub fn with_clients_on(mut self, hosts: &[Option<u32>]) -> Topology {
        let clients = self.ranks.iter_mut().filter(|rank| rank.role == Role::Client);
        clients.zip(hosts).for_each(|(rank, host)| rank.host = *host);
        self
    }

    /// The hosts of its first client and its server.
    pub fn hosts(&self) -> HostPair {
        HostPair { client: self.host_of(Role::Client), server: self.host_of(Role::Server) }
    }

    /// The first rank of a role.
    pub fn rank(&self, role: Role) -> Option<&Rank> {
        self.ranks.iter().find(|rank| rank.role == role)
    }

    /// The host of a role; `None`: this one.
    pub fn host_of(&self, role: Role) -> Option<u32> {
        self.rank(role)?.host
    }

    /// The ranks of a role, in the order of their numbers.
    pub fn ranks_of(&self, role: Role) -> impl Iterator<Item = &Rank> {
        self.ranks.iter().filter(move |rank| rank.role == role)
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

    /// Whether several clients talk to one server.
    pub fn has_several_clients(&self) -> bool {
        self.ranks_of(Role::Client).nth(1).is_some()
    }

    /// Threads of the rank that has the most.
    pub fn most_threads(&self) -> u32 {
        self.ranks.iter().map(|rank| rank.threads).max().unwrap_or(1)
    }

    /// Whether its ranks are on different hosts.
    pub fn is_between_hosts(&self) -> bool {
        self.ranks.windows(2).any(|two| two[0].host != two[1].host)
    }

    /// Endpoints of each thread of a rank.
    pub fn endpoints_of(&self, rank: usize) -> u32 {
        let all = self.neighbours(rank).into_iter().map(|other| self.endpoints_towards(other));
        all.fold(0, u32::saturating_add)
    }

    /// Endpoints of each thread of the first rank of a role. Clients of one server are all alike.
    pub fn endpoints_of_role(&self, role: Role) -> u32 {
        self.endpoints_of(self.position(role).unwrap_or_default())
    }

    /// The endpoints that those of a thread are connected to, in the order of its own: by rank,
    /// then by thread.
    pub fn peers_of(&self, rank: usize, thread: usize) -> Vec<EndpointId> {
        let mut peers = Vec::new();
        for other in self.neighbours(rank) {
            let before = self.neighbours(other).into_iter().take_while(|one| *one != rank);
            let first: u32 = before.map(|one| self.endpoints_towards(one)).sum();
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
    fn endpoints_towards(&self, other: usize) -> u32 {
        match self.wiring {
            Wiring::Parallel => 1,
            Wiring::Mesh { each } => {
                self.ranks.get(other).map_or(0, |other| other.threads.saturating_mul(each))
            }
        }
    }

    /// The ranks that a rank is connected to, in the order of their numbers.
    fn neighbours(&self, rank: usize) -> Vec<usize> {
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

    /// The position of a role's first rank.
    pub fn position(&self, role: Role) -> Option<usize> {
        self.ranks.iter().position(|rank| rank.role == role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::rpc;
    use crate::plan::Request;
    use std::collections::BTreeSet;

    #[test]
    fn threads_of_a_pair_are_connected_to_the_same_number() {
        let topology = Topology::pair(3);
        let peers: Vec<EndpointId> = (0..3).flat_map(|t| topology.peers_of(0, t)).collect();
        let expected = |thread| EndpointId { rank: 1, thread, endpoint: 0 };
        assert_eq!(peers, (0..3).map(expected).collect::<Vec<_>>());
        assert_eq!((topology.endpoints_of(0), topology.endpoints_of(1)), (1, 1));
    }

    #[test]
    fn a_mesh_connects_every_endpoint_once_and_both_sides_agree() {
        for (clients, servers, each) in [(1, 1, 1), (2, 3, 2), (3, 2, 4), (1, 5, 1)] {
            let topology = Topology::client_server(clients, servers, Wiring::Mesh { each });
            let mut seen = BTreeSet::new();
            for thread in 0..clients as usize {
                let peers = topology.peers_of(0, thread);
                assert_eq!(peers.len(), topology.endpoints_of(0) as usize);
                for (endpoint, peer) in peers.iter().enumerate() {
                    assert!(seen.insert((peer.thread, peer.endpoint)), "connected once");
                    let back = topology.peers_of(1, peer.thread)[peer.endpoint];
                    assert_eq!(back, EndpointId { rank: 0, thread, endpoint });
                }
            }
            assert_eq!(seen.len() as u32, servers * topology.endpoints_of(1));
        }
    }

    #[test]
    fn each_thread_of_several_clients_has_a_connection_of_its_own_to_their_server() {
        let topology = Topology::client_server(2, 1, Wiring::Mesh { each: 1 }).with_clients(3);
        let topology = topology.with_clients_on(&[None, Some(0), Some(1)]);
        let hosts: Vec<Option<u32>> = topology.ranks_of(Role::Client).map(|one| one.host).collect();
        assert_eq!(hosts, [None, Some(0), Some(1)]);
        assert_eq!((topology.threads_of(Role::Client), topology.threads_of(Role::Server)), (6, 1));
        let first: Vec<u32> = (0..4).map(|rank| topology.first_thread(rank)).collect();
        assert_eq!(first, [0, 0, 2, 4], "the server is the second rank");
        let hosts = (0..6).map(|thread| topology.host_of_thread(Role::Client, thread));
        assert_eq!(hosts.collect::<Vec<_>>(), [None, None, Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(topology.endpoints_of_role(Role::Client), 1);
        assert_eq!(topology.endpoints_of_role(Role::Server), 6);
        let server = topology.peers_of(1, 0);
        let of_clients: Vec<(usize, usize)> = server.iter().map(|p| (p.rank, p.thread)).collect();
        assert_eq!(of_clients, [(0, 0), (0, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
        for (endpoint, peer) in server.iter().enumerate() {
            let back = topology.peers_of(peer.rank, peer.thread);
            assert_eq!(back, [EndpointId { rank: 1, thread: 0, endpoint }]);
        }
        assert!(topology.has_several_clients() && topology.check().is_ok());
        assert!(!Topology::pair(5).has_several_clients());
    }

    #[test]
    fn every_rank_is_connected_to_every_other_where_all_are() {
        let rank = |role| Rank { role, host: None, threads: 2 };
        let ranks = vec![rank(Role::Client), rank(Role::Server), rank(Role::Server)];
        let wiring = Wiring::Mesh { each: 2 };
        let topology = Topology { ranks, connections: Connections::AllToAll, wiring };
        for rank in 0..3 {
            for thread in 0..2 {
                let peers = topology.peers_of(rank, thread);
                assert_eq!(peers.len(), topology.endpoints_of(rank) as usize);
                for (endpoint, peer) in peers.into_iter().enumerate() {
                    let back = topology.peers_of(peer.rank, peer.thread)[peer.endpoint];
                    assert_eq!(back, EndpointId { rank, thread, endpoint });
                }
            }
        }
    }

    #[test]
    fn what_comes_from_outside_and_no_plan_makes_is_refused() {
        assert_eq!(Topology::pair(64).check(), Ok(()));
        assert!(Topology::pair(65).check().is_err() && Topology::pair(0).check().is_err());
        let mesh = |each| Topology::client_server(2, 2, Wiring::Mesh { each });
        assert!(mesh(512).check().is_ok() && mesh(513).check().is_err());
        assert!(mesh(u32::MAX).check().is_err() && mesh(0).check().is_err());
        let pairs =
            |pair| Topology { connections: Connections::Pairs(vec![pair]), ..Topology::pair(1) };
        assert!(pairs((0, 2)).check().is_err() && pairs((1, 1)).check().is_err());
        let nobody = Topology { ranks: Vec::new(), ..Topology::pair(1) };
        assert!(nobody.check().is_err());
    }

    #[test]
    fn each_connection_connects_to_the_one_that_connects_to_it() {
        let asked = rpc::RpcRequest {
            server_ports: vec![3],
            connections: vec![2],
            clients: vec![1],
            baseline: false,
            ..rpc::RpcRequest::default()
        };
        let request = Request { threads: vec![2], ..rpc::request(asked) };
        let topology = request.plan().unwrap().cases.remove(0).topology;
        let named = |rank: usize| -> Vec<Vec<[usize; 2]>> {
            let all = topology.endpoints_of(rank) as usize;
            (0..topology.ranks[rank].threads as usize)
                .map(|thread| (0..all).map(|endpoint| [thread, endpoint]).collect())
                .collect()
        };
        let of = [named(0), named(1)];
        let [at_client, at_server] = [0, 1].map(|rank| topology.route(rank, &of).unwrap());
        assert_eq!((at_client.len(), at_server.len()), (2, 3));
        for (thread, endpoints) in at_client.iter().enumerate() {
            assert_eq!(endpoints.len(), 6);
            for (endpoint, other) in endpoints.iter().enumerate() {
                assert_eq!(at_server[other[0]][other[1]], [thread, endpoint]);
            }
        }
        assert_eq!(topology.route(0, &[named(0), named(0)]), None);
    }
}
