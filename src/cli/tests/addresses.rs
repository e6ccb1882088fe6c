//! Interfaces and versions of IP.

use super::*;

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
