//! Tests of topologies.

use super::*;
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
fn endpoints_of_all_to_all_are_counted_in_one_pass() {
    fn rank(threads: u32) -> Rank {
        Rank { role: Role::Node, host: None, threads }
    }
    for wiring in [Wiring::Parallel, Wiring::Mesh { each: 3 }] {
        let ranks = vec![rank(1), rank(2), rank(5)];
        let topology = Topology { ranks, connections: Connections::AllToAll, wiring };
        let each: Vec<u32> = (0..3).map(|number| topology.endpoints_of(number)).collect();
        assert_eq!(topology.endpoints_of_each(), each);
    }
    // 10,000 ranks squared would take seconds.
    let ranks = vec![rank(64); 10_000];
    let wiring = Wiring::Mesh { each: u32::MAX };
    let topology = Topology { ranks, connections: Connections::AllToAll, wiring };
    assert_eq!(topology.endpoints_of_each(), vec![u32::MAX; 10_000]);
    assert!(topology.check().is_err());
}

#[test]
fn two_nodes_have_one_connection_with_a_client_s_end_and_a_server_s() {
    for count in [2, 3, 8] {
        let topology = Topology::nodes(count);
        assert_eq!((topology.check(), topology.threads_of(Role::Client)), (Ok(()), count));
        assert_eq!(topology.threads_of(Role::Server), 0, "all stand on one side");
        for rank in 0..count as usize {
            let peers = topology.peers_of(rank, 0);
            assert_eq!(peers.len(), topology.endpoints_of(rank) as usize);
            for (endpoint, peer) in peers.into_iter().enumerate() {
                let back = topology.peers_of(peer.rank, 0)[peer.endpoint];
                assert_eq!(back, EndpointId { rank, thread: 0, endpoint });
                let sides = [(rank, peer.rank), (peer.rank, rank)];
                let [own, other] = sides.map(|(a, b)| topology.side_towards(a, b));
                assert_eq!((own, other.other()), (Role::SIDES[usize::from(peer.rank < rank)], own));
            }
        }
    }
    let mut mixed = Topology::nodes(3);
    mixed.ranks[1].role = Role::Server;
    assert!(mixed.check().is_err(), "a node among nodes only");
}

#[test]
fn nodes_are_connected_as_they_send_and_none_is_left_alone() {
    // Both ways of a pair are one connection; 3 sends to nobody, and 4 is named by it.
    let topology = Topology::nodes_connected(5, [(1, 0), (0, 1), (0, 2), (2, 0)]);
    assert_eq!(topology.check(), Ok(()));
    let pairs = vec![(0, 1), (0, 2), (0, 4), (3, 4)];
    assert_eq!(topology.connections, Connections::Pairs(pairs));
    let ends: Vec<u32> = (0..5).map(|rank| topology.endpoints_of(rank)).collect();
    assert_eq!((ends, topology.endpoints_of_role(Role::Node)), (vec![3, 1, 1, 1, 2], 3));
    for rank in 0..5 {
        for (endpoint, peer) in topology.peers_of(rank, 0).into_iter().enumerate() {
            let back = topology.peers_of(peer.rank, 0)[peer.endpoint];
            assert_eq!(back, EndpointId { rank, thread: 0, endpoint });
        }
    }
    let all = (0..40).flat_map(|a| (0..40).map(move |b| (a, b))).filter(|(a, b)| a != b);
    assert_eq!(Topology::nodes_connected(40, all), Topology::nodes(40));
    // More pairs than a case may list.
    let many = (0..200).flat_map(|a| (a + 1..200).map(move |b| (a, b))).skip(1);
    assert_eq!(Topology::nodes_connected(200, many).connections, Connections::AllToAll);
}

#[test]
fn nodes_of_one_host_take_its_cpus_in_turns() {
    let mut topology = Topology::nodes(5);
    assert_eq!((topology.cpu_pairs(), topology.threads_before_on_host(3)), (3, 3));
    topology = topology.with_clients_on(&[None, Some(0), Some(0), Some(0), Some(1)]);
    assert_eq!((topology.cpu_pairs(), topology.threads_before_on_host(3)), (2, 2));
    assert_eq!(Topology::pair(7).cpu_pairs(), 7);
}

#[test]
fn what_comes_from_outside_and_no_plan_makes_is_refused() {
    assert_eq!(Topology::pair(64).check(), Ok(()));
    assert!(Topology::pair(65).check().is_err() && Topology::pair(0).check().is_err());
    let mesh = |each| Topology::client_server(2, 2, Wiring::Mesh { each });
    assert!(mesh(8192).check().is_ok() && mesh(8193).check().is_err());
    // As many of a thread as are allowed, and more of the process.
    let wide =
        |threads| Topology::client_server(threads, 1, Wiring::Mesh { each: 16_384 / threads });
    assert!(wide(4).check().is_ok());
    let both = Topology::client_server(8, 8, Wiring::Mesh { each: 2048 });
    assert!(both.check().unwrap_err().contains("65536 of a rank"));
    assert!(mesh(u32::MAX).check().is_err() && mesh(0).check().is_err());
    let pairs =
        |pair| Topology { connections: Connections::Pairs(vec![pair]), ..Topology::pair(1) };
    assert!(pairs((0, 2)).check().is_err() && pairs((1, 1)).check().is_err());
    let nobody = Topology { ranks: Vec::new(), ..Topology::pair(1) };
    assert!(nobody.check().is_err());
}

/// Nodes connect one connection at a time, in the order of their peers. Here every connection
/// waits for both of its ends, which is the slowest that a transport may be.
#[test]
fn nodes_connect_without_waiting_in_a_circle_and_each_to_one_other_at_a_time() {
    for count in [2, 3, 4, 7, 16, 64, 200] {
        let topology = Topology::nodes(count);
        let peers = |rank| topology.peers_of(rank, 0).into_iter().map(|peer| peer.rank);
        let order: Vec<Vec<usize>> =
            (0..count as usize).map(|rank| peers(rank).collect()).collect();
        let mut done = vec![0; count as usize];
        let (mut steps, mut most) = (0, 0);
        while done.iter().zip(&order).any(|(done, order)| *done < order.len()) {
            let wants = |rank: usize| order[rank].get(done[rank]).copied();
            let meets = |rank: &usize| wants(*rank).is_some_and(|to| wants(to) == Some(*rank));
            let now: Vec<usize> = (0..count as usize).filter(meets).collect();
            assert!(!now.is_empty(), "{count} nodes wait for each other: {done:?}");
            most = most.max(now.len() / 2);
            now.into_iter().for_each(|rank| done[rank] += 1);
            steps += 1;
        }
        // Node 0 has count - 1 to connect, and the last pair follows the same number later.
        assert_eq!(steps, 2 * count - 3, "{count} nodes");
        assert!(most <= count as usize / 2, "{count} nodes: {most} at once");
    }
}
