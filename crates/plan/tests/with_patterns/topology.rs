//! Routes between the threads of two ranks.

use wiregauge_patterns::rpc;
use wiregauge_plan::Request;

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
