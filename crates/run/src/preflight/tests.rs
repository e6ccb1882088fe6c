//! Which ends must reach each other, and what is said where they do not.

use super::*;
use wiregauge_patterns::latency;
use wiregauge_plan::topology::{Connections, Rank, Wiring};
use wiregauge_transport::TransportKind;

const CLIENT: usize = 0;
const SERVER: usize = 1;

fn addresses(at: &str) -> PreflightAddresses {
    let udp: SocketAddr = at.parse().unwrap();
    let tcp = Some(SocketAddr::new(udp.ip(), udp.port() + 1000));
    PreflightAddresses { tcp, udp, interface: Some("eth0".into()), mtu_bytes: Some(1500) }
}

/// Returns a client here and a server on another host, between which all passes but for these
/// changes.
fn tried(change: impl FnOnce(&mut PeerReport, &mut PeerReport)) -> TriedPaths {
    let sizes = BTreeSet::from([69, 1280, 1500]);
    let [mut client, mut server] = [1, 0].map(|number| PeerReport {
        number,
        tcp: Some(Ok(())),
        acknowledged: sizes.clone(),
        received: sizes.clone(),
        ..PeerReport::default()
    });
    change(&mut client, &mut server);
    let ends = [("10.0.0.1:7000", client), ("10.0.0.2:8000", server)];
    let ends = ends.map(|(at, one)| TriedEnd { addresses: addresses(at), reports: vec![one] });
    TriedPaths {
        names: vec![HERE.into(), "far".into()],
        tried: ends.map(Ok).into(),
        pairs: Pairs::from([((CLIENT, SERVER), PairNeeds::ALL)]),
    }
}

fn refuse(report: &mut PeerReport, why: &str) {
    report.refused = Some(why.into());
    report.tcp = None;
}

fn blocked(paths: &TriedPaths, protocol: KernelPath) -> Option<Fault> {
    paths.blocked(&[(CLIENT, SERVER)].into(), protocol)
}

#[track_caller]
fn says(paths: &TriedPaths, protocol: KernelPath, sentence: &str) -> Fault {
    let fault = blocked(paths, protocol).expect("a fault");
    let said = fault.to_string();
    assert!(said.starts_with(sentence), "{said}");
    fault
}

#[test]
fn what_passes_blocks_nothing() {
    let paths = tried(|_, _| ());
    for protocol in [KernelPath::Segments, KernelPath::Datagrams] {
        assert!(blocked(&paths, protocol).is_none());
    }
    let [record] = &paths.records()[..] else { panic!() };
    assert_eq!((&record.tcp, &record.tcp_back, &record.udp), (&None, &None, &None));
    assert_eq!((record.to_server_bytes, record.to_client_bytes), (Some(1500), Some(1500)));
    assert_eq!(mtu_warnings(record), []);
}

#[test]
fn each_failure_of_a_connection_has_its_sentence() {
    let failed = ConnectFailure::Failed("No route to host".into());
    for (failure, sentence) in [
        (
            ConnectFailure::Silent,
            "this host (10.0.0.1) gets no answer from TCP port 9000 of far (10.0.0.2) within 2.5 s",
        ),
        (
            ConnectFailure::Refused,
            "this host (10.0.0.1) is refused at TCP port 9000 of far (10.0.0.2), where wiregauge",
        ),
        (
            ConnectFailure::Closed,
            "TCP port 9000 of far (10.0.0.2) closes each connection of this host (10.0.0.1)",
        ),
        (
            failed.clone(),
            "this host (10.0.0.1) cannot reach TCP port 9000 of far (10.0.0.2) (No route to host)",
        ),
        (
            ConnectFailure::Foreign,
            "another program answers this host (10.0.0.1) at TCP port 9000 of far (10.0.0.2)",
        ),
    ] {
        let paths = tried(|client, _| client.tcp = Some(Err(failure)));
        let fault = says(&paths, KernelPath::Segments, sentence);
        assert!(!fault.is_refused() && fault.to_string().contains("--interface"), "{fault}");
        assert!(blocked(&paths, KernelPath::Datagrams).is_none());
    }
    // Servers do not connect.
    let paths = tried(|_, server| server.tcp = Some(Err(failed)));
    assert!(blocked(&paths, KernelPath::Segments).is_none());
    let back = paths.records()[0].tcp_back.clone().unwrap();
    assert!(back.starts_with("far (10.0.0.2) cannot reach TCP port 8000 of this host"), "{back}");
}

#[test]
fn datagrams_that_are_lost_are_told_by_their_direction() {
    fn lost(from: &mut PeerReport, to: &mut PeerReport) {
        from.acknowledged.clear();
        to.received.clear();
    }
    let there = tried(lost);
    let sentence = "no datagram of this host (10.0.0.1) reaches UDP port 8000 of far (10.0.0.2): \
                    allow them";
    says(&there, KernelPath::Datagrams, sentence);
    assert!(blocked(&there, KernelPath::Segments).is_none());
    let back = tried(|client, server| {
        lost(server, client);
        server.unsent = Some("Operation not permitted".into());
    });
    let sentence = "no datagram of far (10.0.0.2) reaches UDP port 7000 of this host (10.0.0.1) \
                    (Operation not permitted): the other way they pass; allow them";
    says(&back, KernelPath::Datagrams, sentence);
    // Acknowledgements alone are lost: what came was counted where it came.
    let acks = tried(|client, server| {
        client.acknowledged.clear();
        server.acknowledged.clear();
    });
    assert!(blocked(&acks, KernelPath::Datagrams).is_none());
}

#[test]
fn what_a_daemon_does_not_allow_is_wrong_use_and_blocks_what_needs_it() {
    let why = "this agent does not allow rounds to exchange data with 10.0.0.1";
    let said = format!("far: {why}");
    // Behind NAT the server sees another address, which it allows.
    let of_server = tried(|_, server| refuse(server, why));
    assert!(blocked(&of_server, KernelPath::Segments).is_none());
    assert!(says(&of_server, KernelPath::Datagrams, &said).is_refused());
    let closed = tried(|client, server| {
        refuse(server, why);
        client.tcp = Some(Err(ConnectFailure::Closed));
    });
    assert!(says(&closed, KernelPath::Segments, &said).is_refused());
    let of_client = tried(|client, _| refuse(client, why));
    for protocol in [KernelPath::Segments, KernelPath::Datagrams] {
        assert!(says(&of_client, protocol, &format!("this host: {why}")).is_refused());
    }
}

#[test]
fn an_end_that_could_not_be_opened_blocks_its_own_pairs_alone() {
    let mut paths = tried(|_, _| ());
    paths.names.push("gone".into());
    paths.tried.push(Err(Fault::Refused("gone: no such interface".into())));
    let of_both = BTreeSet::from([(CLIENT, SERVER), (CLIENT, 2), (2, SERVER)]);
    let fault = paths.blocked(&of_both, KernelPath::Segments).unwrap();
    let sentence = "gone: no such interface (1 more of 3 pairs are blocked)";
    assert_eq!((fault.to_string().as_str(), fault.is_refused()), (sentence, true));
    assert!(blocked(&paths, KernelPath::Segments).is_none());
    paths.pairs.insert((CLIENT, 2), PairNeeds::ALL);
    assert_eq!(paths.records().len(), 1);
}

#[test]
fn a_path_that_carries_less_than_its_interface_is_warned_of_in_that_direction() {
    // All of them lost is no matter of size, and no interface sends more than an IP packet has.
    for (mtu, most, is_cut) in [
        (9000, Some(1500), true),
        (9000, None, false),
        (9000, Some(69), false),
        (65_536, Some(MAX_PACKET), false),
    ] {
        let warnings = mtu_warnings(&DataPath {
            client: HERE.into(),
            server: "far".into(),
            client_mtu_bytes: Some(mtu),
            server_mtu_bytes: Some(1500),
            to_server_bytes: most,
            to_client_bytes: Some(1500),
            ..DataPath::default()
        });
        assert_eq!(warnings.len(), usize::from(is_cut), "{mtu} {most:?}");
        let mut sentences = warnings.iter().map(|one| &one.sentence);
        assert!(sentences.all(|said| said.starts_with("packets of 9000 B")), "{warnings:?}");
    }
}

/// Returns a plan whose cases over these transports are between this host and others, or between
/// those.
fn plan(transports: &[TransportKind], pairs: &[(Option<u32>, Option<u32>)]) -> Plan {
    let mut request = latency::request(Default::default());
    request.transports = transports.to_vec();
    let mut plan = request.plan().unwrap();
    let cases = std::mem::take(&mut plan.cases);
    for (client, server) in pairs {
        plan.cases.extend(cases.iter().map(|case| {
            let mut case = case.clone();
            case.topology.ranks[0].host = *client;
            case.topology.ranks[1].host = *server;
            case
        }));
    }
    plan
}

#[test]
fn pairs_of_a_plan_are_tried_once_and_as_their_cases_need_them() {
    let all = [TransportKind::Tcp, TransportKind::Udp];
    fn needs(tcp: bool, udp: bool) -> PairNeeds {
        PairNeeds { tcp, tcp_back: false, udp }
    }
    let both = PlannedPaths::of_plan(&plan(&all, &[(None, Some(0)), (None, Some(0))]), &[]);
    assert_eq!((both.cases.len(), both.routes.len(), both.ends.all.len()), (4, 1, 2));
    assert_eq!(both.pairs(), Pairs::from([((0, 1), needs(true, true))]));
    let tcp = PlannedPaths::of_plan(&plan(&all[..1], &[(Some(0), Some(1)), (Some(1), None)]), &[]);
    let wanted = Pairs::from([((0, 1), needs(true, false)), ((1, 2), needs(true, false))]);
    assert_eq!((tcp.pairs(), tcp.ends.all.len()), (wanted, 3));
    let sites = tcp.ends.all.iter().map(|end| end.site.clone());
    assert_eq!(Vec::from_iter(sites), [Site::Session, Site::Session, Site::Loopback]);
    // On one host there is no path.
    assert!(PlannedPaths::of_plan(&plan(&all, &[(None, None)]), &[]).cases.is_empty());
}

#[test]
fn nodes_connect_to_those_of_higher_numbers() {
    let mut plan = plan(&[TransportKind::Tcp], &[(None, Some(0))]);
    let ranks = [None, Some(0), Some(1)].map(|host| Rank { role: Role::Node, host, threads: 1 });
    plan.cases[0].topology = Topology {
        ranks: ranks.to_vec(),
        connections: Connections::AllToAll,
        wiring: Wiring::Parallel,
    };
    let pairs = PlannedPaths::of_plan(&plan, &[]).pairs();
    assert_eq!(Vec::from_iter(pairs.into_keys()), [(0, 1), (0, 2), (1, 2)]);
}
