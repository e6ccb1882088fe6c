//! Packets whose way is known, in the module's own words.

use super::*;

/// A trace of a clock of 1 GHz: a cycle is 1 ns.
fn trace(lines: &str) -> Trace {
    let text = format!("cpu_khz: 1000000\n{lines}");
    Trace::read(text.as_bytes(), "made up").unwrap()
}

fn problem(text: &[u8]) -> String {
    Trace::read(text, "made up").unwrap_err().to_string()
}

/// The median, which is the only value.
fn only(lives: &Lives) -> Vec<f64> {
    assert_eq!(lives.packets, 1);
    lives.stages_ns.iter().map(|stage| stage[3]).collect()
}

/// A request in two packets of one call into IP, and its reply, over loopback.
const ONE_HOST: &str = "\
1000 [C00] homa_sendmsg request, target 0x7f000001:4000, id 4, length 2800
1100 [C00] calling ip_queue_xmit: wire_bytes 2900, peer 0x7f000001, id 4, offset 0
1300 [C00] Finished queueing packet: rpc id 4, offset 0, len 2800, qid 0
1500 [C01] homa_gro_receive got packet from 0x7f000001 id 5, offset 0, priority 6
1510 [C01] homa_gro_receive got packet from 0x7f000001 id 5, offset 1400, priority 6
1530 [C01] homa_gro_receive got packet from 0x7f000001 id 9, type 0x12, priority 6

1540 [C01] homa_gro_gen2 chose core 2 for id 5 offset 0
1700 [C02] homa_softirq starting
1720 [C02] incoming data packet, id 5, peer 0x7f000001, offset 0/2800
1750 [C02] incoming data packet, id 5, peer 0x7f000001, offset 1400/2800
2000 [C03] calling ip_queue_xmit: wire_bytes 100, peer 0x7f000001, id 5, offset 0
2050 [C03] homa_gro_receive got packet from 0x7f000001 id 4, offset 0, priority 7
2060 [C03] homa_softirq starting
2065 [C03] incoming data packet, id 4, peer 0x7f000001, offset 0/100
2090 [C03] Finished queueing packet: rpc id 5, offset 0, len 40, qid 0
";

#[test]
fn stages_are_what_lies_between_the_modules_own_stamps() {
    let found = follow(&trace(ONE_HOST), None).unwrap();
    assert_eq!((found.lives.len(), found.cut, found.bound_ns), (2, 0, None));
    let [requests, replies] = &found.lives[..] else { panic!("{:?}", found.lives) };
    assert_eq!((requests.carries, requests.direction), (Carries::Data, Direction::ToServer));
    assert_eq!(requests.packets, 2);
    // The first of a batch waits for the second; both were one call into IP.
    let (least, most): (Vec<f64>, Vec<f64>) =
        requests.stages_ns.iter().map(|stage| (stage[0], stage[7])).unzip();
    assert_eq!(least, [200.0, 200.0, 0.0, 30.0, 160.0, 20.0]);
    assert_eq!(most, [200.0, 210.0, 10.0, 30.0, 160.0, 50.0]);
    assert_eq!((requests.total_ns[0], requests.total_ns[7]), (620.0, 650.0));
    // A reply that the other end had before the call into IP returned, and that GRO took itself.
    assert_eq!(replies.direction, Direction::ToClient);
    assert_eq!(only(replies), [50.0, 0.0, 0.0, 0.0, 10.0, 5.0]);
    assert_eq!(found.length_ns, 990.0);
}

#[test]
fn without_gro_the_soft_irq_sees_a_packet_first() {
    // Loopback: the offset stands in the packet only where GRO put it there.
    let lines = "\
        100 [C00] calling ip_queue_xmit: wire_bytes 120, peer 0x1, id 884, offset 0\n\
        130 [C00] homa_softirq starting\n\
        135 [C00] incoming data packet, id 885, peer 0x1, offset -1/64\n\
        190 [C00] Finished queueing packet: rpc id 884, offset 0, len 64, qid 0\n";
    let found = follow(&trace(lines), None).unwrap();
    assert_eq!(only(&found.lives[0]), [30.0, 0.0, 0.0, 0.0, 0.0, 5.0]);
    // Where GRO saw others, the trace does not hold all of this one.
    let other = "5 [C01] homa_gro_receive got packet from 0x1 id 3, offset 0, priority 7\n";
    let found = follow(&trace(&format!("{other}{lines}")), None).unwrap();
    assert_eq!((found.lives.len(), found.cut), (0, 1));
}

#[test]
fn a_packet_left_with_the_last_call_into_ip_that_took_its_bytes() {
    let found = follow(
        &trace(
            "100 [C00] calling ip_queue_xmit: wire_bytes 1500, peer 0x1, id 4, offset 0\n\
             110 [C00] Finished queueing packet: rpc id 4, offset 0, len 1400, qid 0\n\
             200 [C00] calling ip_queue_xmit: wire_bytes 1500, peer 0x1, id 4, offset 1400\n\
             210 [C00] Finished queueing packet: rpc id 4, offset 1400, len 1400, qid 0\n\
             300 [C00] calling ip_queue_xmit: wire_bytes 1500, peer 0x1, id 4, offset 0\n\
             310 [C00] Finished queueing packet: rpc id 4, offset 0, len 1400, qid 0\n\
             400 [C01] homa_gro_receive got packet from 0x1 id 5, offset 1400, priority 6\n\
             410 [C01] incoming data packet, id 5, peer 0x1, offset 1400/2800\n",
        ),
        None,
    )
    .unwrap();
    assert_eq!(only(&found.lives[0]), [10.0, 190.0, 0.0, 0.0, 0.0, 10.0]);
}

#[test]
fn clocks_of_two_hosts_are_placed_by_the_shortest_ways() {
    // The server's clock is 500 behind; its id 7 is another client's, of address 3.
    let client = trace(
        "1000 [C00] calling ip_queue_xmit: wire_bytes 100, peer 0x2, id 2, offset 0\n\
         1010 [C00] Finished queueing packet: rpc id 2, offset 0, len 40, qid 0\n\
         1200 [C00] homa_gro_receive got packet from 0x2 id 2, offset 0, priority 7\n\
         1210 [C00] homa_softirq starting\n\
         1220 [C00] incoming data packet, id 2, peer 0x2, offset 0/40\n\
         1300 [C00] calling ip_queue_xmit: wire_bytes 100, peer 0x2, id 6, offset 0\n\
         1310 [C00] Finished queueing packet: rpc id 6, offset 0, len 40, qid 0\n\
         1400 [C00] calling ip_queue_xmit: wire_bytes 100, peer 0x2, id 8, offset 0\n\
         1410 [C00] Finished queueing packet: rpc id 8, offset 0, len 40, qid 0\n",
    );
    let server = trace(
        "200 [C01] homa_softirq starting\n\
         500 [C00] homa_gro_receive got packet from 0x3 id 7, offset 0, priority 7\n\
         505 [C00] incoming data packet, id 7, peer 0x3, offset 0/40\n\
         550 [C00] homa_gro_receive got packet from 0x1 id 3, offset 0, priority 7\n\
         555 [C00] incoming data packet, id 3, peer 0x1, offset 0/40\n\
         650 [C00] calling ip_queue_xmit: wire_bytes 100, peer 0x1, id 3, offset 0\n\
         660 [C00] Finished queueing packet: rpc id 3, offset 0, len 40, qid 0\n\
         980 [C00] homa_gro_receive got packet from 0x1 id 9, offset 0, priority 7\n\
         985 [C00] incoming data packet, id 9, peer 0x1, offset 0/40\n",
    );
    let found = follow(&client, Some(&server)).unwrap();
    // 1000 to 550 + 500 and 650 + 500 to 1200: 50 each way.
    assert_eq!(found.bound_ns, Some(50.0));
    let [requests, replies] = &found.lives[..] else { panic!("{:?}", found.lives) };
    assert_eq!((requests.packets, found.cut), (2, 0));
    assert_eq!((requests.stages_ns[1][0], requests.stages_ns[1][7]), (40.0, 70.0));
    assert_eq!(only(replies), [10.0, 40.0, 0.0, 0.0, 10.0, 10.0]);
    // Of one way alone nothing is known of the clocks.
    assert_eq!(follow(&client, Some(&trace("1 [C00] homa_softirq starting\n"))), None);
}

#[test]
fn grants_locks_and_what_the_module_noticed() {
    let found = follow(
        &trace(
            "100 [C01] sending grant for id 5, offset 60000, priority 3, increment 10000\n\
             400 [C00] homa_gro_receive got grant from 0x2 id 4, offset 60000, priority 3\n\
             430 [C00] processing grant for id 4, offset 60000, priority 3, increment 10000\n\
             440 [C00] beginning wait for rpc lock, id 4, (bucket 7)\n\
             445 [C01] beginning wait for socket lock\n\
             470 [C00] ending wait for rpc lock, id 4, (bucket 7)\n\
             545 [C01] ending wait for socket lock\n\
             600 [C01] Sending RESEND for id 5, peer 0x1, offset 0, length 1400\n\
             700 [C01] incoming data packet, id 5, peer 0x1, offset 0/1400\n",
        ),
        None,
    )
    .unwrap();
    let [grants] = &found.lives[..] else { panic!("{:?}", found.lives) };
    assert_eq!((grants.carries, grants.direction), (Carries::Grant, Direction::ToClient));
    assert_eq!(only(grants), [0.0, 300.0, 0.0, 0.0, 0.0, 30.0]);
    let locks: Vec<_> = found.locks.iter().map(|one| (one.lock, one.waits, one.total_ns)).collect();
    assert_eq!(locks, [("socket", 1, 100.0), ("rpc", 1, 30.0)]);
    assert_eq!(found.events, [("resends asked for", 1)]);
    // The packet at the end came before the trace began.
    assert_eq!(found.cut, 1);
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    for (text, begin) in [
        (&b""[..], "made up:0: no event"),
        (b"cpu_khz: 2400000\n", "made up:1: no event"),
        (b"hello\n", "made up:1: no cpu_khz"),
        (b"cpu_khz: 0\n1 [C00] a\n", "made up:1: no cpu_khz"),
        (b"cpu_khz: 99999999999999999999\n", "made up:1: no cpu_khz"),
        (b"cpu_khz: 1000\n\xff\xfe\n", "made up:2: no event"),
    ] {
        assert!(problem(text).starts_with(begin), "{}", problem(text));
    }
    let long = [b"cpu_khz: 1000\n".to_vec(), vec![b'a'; 5000]].concat();
    assert!(problem(&long).starts_with("made up:2: a line of more than 4096 bytes"));
}

#[test]
fn numbers_are_of_32_bits_whatever_their_sign_and_length() {
    let found = follow(
        &trace(
            "1 [C00] calling ip6_xmit: wire_bytes 9, peer 0x1, id -2, offset 0\n\
             5 [C00] homa_gro_receive got packet from 0x1 id 18446744073709551615, offset 0, p 1\n\
             9 [C00] incoming data packet, id 4294967295, peer 0x1, offset 0/9\n\
             9 [C00] incoming data packet, id , peer 0x1, offset -/9\n",
        ),
        None,
    )
    .unwrap();
    assert_eq!(only(&found.lives[0]), [0.0, 4.0, 0.0, 0.0, 0.0, 4.0]);
}
