//! Interfaces and versions of IP.

use super::*;
use crate::cli::values::listening;

#[test]
fn a_rank_of_a_job_does_not_check_the_interface_of_another() {
    let line = |rank| format!("latency --interface lo,none0 --rank {rank} --ranks 2 --leader h");
    assert!(asked(&line(0)).is_ok(), "the server is rank 1's");
    assert!(asked(&line(1)).is_ok(), "rank 0 asks it for its own");
    assert!(refusal("latency --interface lo,none0").contains("'none0'"));
}

#[test]
fn a_family_is_an_address_s_and_of_socket_transports() {
    assert!(request("latency --transport tcp,udp --family ipv4").settings.is_given("family"));
    assert!(refusal("latency --family ipv5").contains("use ipv4, ipv6"));
    assert!(refusal("latency --transport shm --family ipv6").contains("does not support --family"));
}

#[test]
fn an_agent_listens_at_an_address_of_either_version_of_ip() {
    for (typed, meant) in [
        ("10.1.0.7", "10.1.0.7:7425"),
        ("10.1.0.7:80", "10.1.0.7:80"),
        // The kernel chooses the port.
        ("10.1.0.7:0", "10.1.0.7:0"),
        ("::1", "[::1]:7425"),
        ("[::]:80", "[::]:80"),
        // Loopback is interface 1.
        ("fe80::1%lo", "[fe80::1%1]:7425"),
        ("[fe80::1%lo]:80", "[fe80::1%1]:80"),
    ] {
        assert_eq!(listening(typed).map(|at| at.to_string()).as_deref(), Ok(meant));
    }
    let unknown = listening("fe80::1%none0").unwrap_err();
    assert_eq!(unknown, "this host has no network interface 'none0'");
    for wrong in ["", "node07", "10.1.0.7%lo", "[::1", "fe80::1%", "%lo"] {
        assert!(listening(wrong).is_err(), "{wrong}");
    }
}
