//! qperf (`src/help.txt`).

use super::word::{PORTS, Peer, Word, command, nothing, option};

pub const QPERF: Peer = Peer {
    name: "qperf",
    about: "qperf's `latency` is the elapsed time divided by the messages of both ways: half of \
            the mean round trip. Compare it with the mean of `half_rtt`, not with its p50. Its \
            socket tests block: `--wait block`. In sizes K is 2^10 and k is 10^3 to qperf; here K \
            is 2^10, and k alone is refused.",
    words: QPERF_WORDS,
};

const QPERF_WORDS: &[Word] = &[
    command(&["tcp_lat"], "latency --transport tcp --wait block", "mean of `half_rtt`"),
    command(&["udp_lat"], "latency --transport udp --wait block", "mean of `half_rtt`"),
    command(&["tcp_bw"], "bandwidth --transport tcp --wait block", "what arrived"),
    command(
        &["udp_bw"],
        "bandwidth --transport udp --wait block --size 1472",
        "`recv_bw`: what arrived",
    ),
    command(&["rc_lat"], "latency --transport verbs", "mean of `half_rtt`"),
    command(&["uc_lat"], "latency --transport verbs --service uc", "mean of `half_rtt`"),
    command(&["ud_lat"], "latency --transport verbs --service ud", "mean of `half_rtt`"),
    command(&["rc_bw"], "bandwidth --transport verbs", ""),
    command(&["uc_bw"], "bandwidth --transport verbs --service uc", ""),
    command(&["ud_bw"], "bandwidth --transport verbs --service ud --size 1K", ""),
    command(&["rc_bi_bw"], "bandwidth --transport verbs --direction bi", ""),
    command(&["uc_bi_bw"], "bandwidth --transport verbs --service uc --direction bi", ""),
    command(&["ud_bi_bw"], "bandwidth --transport verbs --service ud --size 1K --direction bi", ""),
    command(
        &["rc_rdma_write_lat", "rc_rdma_write_poll_lat"],
        "latency --transport verbs --operation write",
        "both ends poll memory, as qperf's `poll` test does",
    ),
    command(
        &["uc_rdma_write_lat", "uc_rdma_write_poll_lat"],
        "latency --transport verbs --service uc --operation write",
        "",
    ),
    command(&["rc_rdma_read_lat"], "latency --transport verbs --operation read", "`rtt`"),
    command(&["rc_rdma_write_bw"], "bandwidth --transport verbs --operation write", ""),
    command(
        &["uc_rdma_write_bw"],
        "bandwidth --transport verbs --service uc --operation write",
        "",
    ),
    command(&["rc_rdma_read_bw"], "bandwidth --transport verbs --operation read", ""),
    command(
        &["rc_fetch_add_mr"],
        "bandwidth --transport verbs --operation fetch_add --size 8",
        "`msg_rate` is the message rate",
    ),
    command(
        &["rc_compare_swap_mr"],
        "bandwidth --transport verbs --operation compare_swap --size 8",
        "`msg_rate` is the message rate",
    ),
    command(&["conf"], "hosts --hosts A,B", "what each host is, and what weakens figures there"),
    nothing(
        &["sctp_lat", "sctp_bw", "sdp_lat", "sdp_bw", "rds_lat", "rds_bw"],
        "SCTP, SDP and RDS are not measured",
    ),
    nothing(&["quit"], "servers end with their run"),
    option(&["-t"], "--time TIME", "of each round, and with a unit: 10s"),
    option(&["-n", "--no_msgs"], "--count N", "messages of each round"),
    option(&["-m", "--msg_size"], "--size SIZE", ""),
    option(&["-oo", "--loop"], "--size 1..64KiB*4", "lists and sweeps of `--size`"),
    option(&["-H", "--host"], "--to HOST", "a name that ssh knows, or `agent:HOST`"),
    option(&["-i", "--id"], "--device NAME", "and `--port`, with `--transport verbs`"),
    option(&["-P", "--poll"], "--wait block", "`-P 0`; `--wait busy` is `-P 1`"),
    option(&["-a", "--affinity"], "--cpus A,B", ""),
    option(&["-M", "--mtu_size"], "--mtu N", ""),
    option(&["-S", "--sock_buf_size"], "--send-buffer SIZE", "and `--receive-buffer`"),
    option(&["-T"], "--timeout TIME", ""),
    option(&["-f", "--flip"], "--hosts HOST,here", "the first host is the client"),
    option(&["-cm", "--use_cm"], "--connect cm", "with `--transport verbs`"),
    nothing(&["-p", "-lp", "--listen_port"], PORTS),
    option(&["-v", "-vv"], "--verbose", "the record and report.html have all of it"),
    nothing(&["-e", "--precision"], "the digits of a figure follow its interval"),
    option(&["-ub", "--use_bits_per_sec"], "--unit Gb/s", "else MB/s and Gb/s"),
    nothing(&["-uu", "--unify_units"], "a column has one unit"),
];
