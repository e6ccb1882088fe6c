//! qperf (`src/help.txt`) and the OSU micro-benchmarks (their README).

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

pub const OSU: Peer = Peer {
    name: "OSU",
    about: "The OSU micro-benchmarks measure MPI, as `--transport mpi` does ([mpi.md](mpi.md) has \
            IMB, Presta and others too). `osu_latency` is half of the mean round trip. `osu_bw` \
            waits for an acknowledgement after each window; `bandwidth` keeps its window full.",
    words: OSU_WORDS,
};

const OSU_WORDS: &[Word] = &[
    command(&["osu_latency"], "latency --transport mpi", "the mean of `half_rtt`"),
    command(&["osu_bw"], "bandwidth --transport mpi", "MB/s are 10^6 bytes/s in both"),
    command(&["osu_bibw"], "bandwidth --transport mpi --direction bi", ""),
    command(
        &["osu_allreduce", "osu_bcast", "osu_barrier", "osu_allgather", "osu_alltoall"],
        "collective --collective allreduce",
        "first entry to last exit, not the mean of ranks after a barrier",
    ),
    command(&["osu_iallreduce", "osu_ialltoall"], "collective --nonblocking", ""),
    command(&["osu_mbw_mr"], "bandwidth --threads N", "threads instead of pairs of ranks"),
    command(&["osu_multi_lat", "osu_latency_mt"], "latency --threads N", "threads, not ranks"),
    command(
        &["osu_put_latency"],
        "latency --transport mpi --operation write",
        "a ping-pong that the other end sees, not the time of one put and its flush",
    ),
    command(&["osu_get_latency"], "latency --transport mpi --operation read", "`rtt`"),
    command(&["osu_put_bw"], "bandwidth --transport mpi --operation write", ""),
    command(&["osu_get_bw"], "bandwidth --transport mpi --operation read", ""),
    command(
        &["osu_fop_latency"],
        "latency --transport mpi --operation fetch_add --size 8",
        "`rtt`",
    ),
    command(
        &["osu_cas_latency"],
        "latency --transport mpi --operation compare_swap --size 8",
        "`rtt`",
    ),
    command(
        &["osu_bw_fan_in", "osu_bw_fan_out"],
        "exchange --chaotic --schedule all-to-one",
        "or `one-to-all`, or `incast` with `--degree N`: the sum, and each connection",
    ),
    option(&["-m", "--message-size"], "--size MIN..MAX*2", "one size as `--size 64`"),
    option(&["-i", "--iterations"], "--count N", "messages of each round"),
    option(&["-x"], "--warmup N", "the samples stay in the record"),
    option(&["-W", "--window-size"], "--window N", ""),
    option(&["-c", "--validation"], "--check", ""),
    option(&["-t", "--num-threads"], "--threads N", ""),
    nothing(&["-z", "--report-percentiles"], "quantiles are always given, to p99.99"),
];

pub const GPCNET: Peer = Peer {
    name: "GPCNeT",
    about: "GPCNeT measures random rings alone and beside congestors, over MPI. `impact` measures \
            any command so, and gives factors with intervals.",
    words: GPCNET_WORDS,
};

const GPCNET_WORDS: &[Word] = &[
    command(
        &["natural ring"],
        "exchange --schedule fixed --slot TIME",
        "one-way times, each node to the next",
    ),
    command(
        &["random ring"],
        "exchange --schedule permutations --slot TIME",
        "another neighbour in each slot",
    ),
    command(&["all-to-all congestor"], "exchange --chaotic", ""),
    command(&["incast congestors"], "exchange --chaotic --schedule incast --degree N", ""),
    command(
        &["congestion impact factor"],
        "impact latency",
        "with an interval; `--size 8` for its messages; allreduce: `impact collective`",
    ),
];
