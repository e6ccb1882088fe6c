//! perftest (`src/perftest_parameters.c`), qperf (`src/help.txt`) and the OSU micro-benchmarks
//! (their README).

use super::word::{Peer, Word, command, nothing, option};

const PORTS: &str = "wiregauge chooses free ports itself";

pub const PERFTEST: Peer = Peer {
    name: "perftest",
    about: "perftest's latencies are half of the time from one post to the next (of reads and \
            atomics, all of it), without the two largest samples: its `t_max` is the second \
            largest, and its `t_stdev` counts whole microseconds only. `half_rtt` is half \
            of the time from the post until the reply was seen, of every sample. Both ends get the \
            options from one command line. `-s 64K` is 65536 bytes in both.",
    words: PERFTEST_WORDS,
};

const PERFTEST_WORDS: &[Word] = &[
    command(
        &["ib_send_lat"],
        "latency --transport verbs",
        "`t_typical` is p50 of `half_rtt`, `t_avg` its mean, `99% percentile` its p99",
    ),
    command(
        &["ib_write_lat"],
        "latency --transport verbs --operation write",
        "as `ib_send_lat`; perftest waits for the completion of each write as well",
    ),
    command(
        &["ib_read_lat"],
        "latency --transport verbs --operation read",
        "`t_typical` is p50 of `rtt`: it is not halved in either",
    ),
    command(
        &["ib_atomic_lat"],
        "latency --transport verbs --operation fetch_add --size 8",
        "`t_typical` is p50 of `rtt`; CMP_AND_SWAP is `--operation compare_swap`",
    ),
    command(
        &["ib_send_bw"],
        "bandwidth --transport verbs",
        "`BW average` in MiB/s times 1.049 is MB/s; `BW peak`, the best of all intervals, has no \
         counterpart",
    ),
    command(&["ib_write_bw"], "bandwidth --transport verbs --operation write", "as `ib_send_bw`"),
    command(&["ib_read_bw"], "bandwidth --transport verbs --operation read", "as `ib_send_bw`"),
    command(
        &["ib_atomic_bw"],
        "bandwidth --transport verbs --operation fetch_add --size 8",
        "`MsgRate[Mpps]` is the message rate",
    ),
    nothing(
        &["raw_ethernet_lat", "raw_ethernet_bw", "raw_ethernet_burst_lat", "raw_ethernet_fs_rate"],
        "raw Ethernet is not measured",
    ),
    option(&["-n", "--iters"], "--count N", "messages of each round; there are 6 rounds"),
    option(&["-s"], "--size SIZE", "perftest's defaults are 2 bytes, and 64K for bandwidth"),
    option(&["-a", "--all"], "--size 2..8MiB*2", ""),
    option(&["-d", "--ib-dev"], "--device NAME", "with `--transport verbs`"),
    option(&["-i", "--ib-port"], "--port N", "with `--transport verbs`"),
    option(&["-x"], "--gid-index N", "with `--transport verbs`"),
    option(&["-c", "--connection"], "--service NAME", "rc, uc or ud, with `--transport verbs`"),
    option(&["-D", "--duration"], "--time TIME", "with a unit; quantiles are given as well"),
    option(&["-b", "--bidirectional"], "--direction bi", "both ways at once"),
    option(&["-e", "--events"], "--wait block", "sleep until a completion arrives"),
    option(&["-I", "--inline-size"], "--inline SIZE", ""),
    option(&["-m"], "--mtu N", ""),
    option(&["-q", "--qp"], "--queue-pairs N", "of each thread"),
    option(&["-Q", "--cq-mod"], "--signal-every N", ""),
    option(&["-l", "--post-list"], "--burst N", "messages posted together"),
    option(&["-t", "--tx-depth"], "--window N", "`--send-depth` is the queue's own depth"),
    option(&["-r", "--rx-depth"], "--receive-depth N", ""),
    option(&["-R", "--rdma-cm"], "--connect cm", "with `--transport verbs`"),
    option(&["-S", "--sl"], "--service-level N", ""),
    option(&["-T"], "--traffic-class N", ""),
    option(&["--outs"], "--window N", "outstanding operations"),
    option(&["-A", "--atomic-type"], "--operation NAME", "fetch_add or compare_swap"),
    option(&["-w", "--limit-bw"], "--fail-if LIMIT", "such as bandwidth<10Gb/s"),
    option(&["-y", "--limit-msgrate"], "--fail-if LIMIT", "such as message_rate<1M/s"),
    option(
        &["-H", "--report-histogram", "-U", "--report-unsorted"],
        "--out DIR",
        "all samples are always kept: see `wiregauge export`",
    ),
    option(&["--use-srq"], "--shared-receive-queue", "with `--transport verbs`"),
    option(&["--use-hugepages"], "--huge-pages", "with `--transport verbs`"),
    option(&["--perform-warm-up"], "--warmup N", "always done; the samples stay in the record"),
    option(&["--latency-gap"], "--pause TIME", "the pause is not part of the latency"),
    option(&["--rate-limit"], "--rate RATE", "of `oneway` and `load`, in messages per second"),
    option(&["--out-json", "--out-json-file"], "--json", ""),
    option(&["--reversed"], "--hosts HOST,here", "the first host is the client, which sends"),
    nothing(&["-p"], PORTS),
    nothing(&["-F", "--cpu-freq"], "the clock is measured; a wrong governor is a warning"),
    nothing(&["-C", "--report-cycles"], "times are in ns to s, never in cycles"),
    option(&["-f", "--margin"], "--warmup N", "messages at the start, not seconds"),
    nothing(&["-z", "--comm-rdma-cm"], "the ends exchange addresses by the control channel"),
    nothing(&["-g", "--mcg", "-M", "--mgid"], "multicast is not measured"),
    nothing(&["-N", "--nopeak"], "no peak is computed"),
    nothing(&["--cpu-util"], "CPU time per message is always in the record"),
    nothing(&["--report-gbits"], "the tables have MB/s and Gb/s"),
    option(&["--run-infinitely"], "--time TIME", "a run ends: use a long one"),
];

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
    nothing(&["-ub", "--use_bits_per_sec"], "the tables have MB/s and Gb/s"),
    nothing(&["-uu", "--unify_units"], "a column has one unit"),
];

pub const OSU: Peer = Peer {
    name: "OSU",
    about: "The OSU micro-benchmarks measure MPI, which is not a transport here: what corresponds \
            is the transport below it. `osu_latency` is half of the mean round trip. `osu_bw` \
            waits for an acknowledgement after each window; `bandwidth` keeps its window full.",
    words: OSU_WORDS,
};

const OSU_WORDS: &[Word] = &[
    command(&["osu_latency"], "latency --transport verbs", "the mean of `half_rtt`"),
    command(&["osu_bw"], "bandwidth --transport verbs", "MB/s are 10^6 bytes/s in both"),
    command(&["osu_bibw"], "bandwidth --transport verbs --direction bi", ""),
    command(&["osu_mbw_mr"], "bandwidth --threads N", "threads instead of pairs of ranks"),
    command(&["osu_multi_lat", "osu_latency_mt"], "latency --threads N", "threads, not ranks"),
    command(&["osu_put_latency"], "latency --transport verbs --operation write", ""),
    command(&["osu_get_latency"], "latency --transport verbs --operation read", "`rtt`"),
    command(&["osu_put_bw"], "bandwidth --transport verbs --operation write", ""),
    command(&["osu_get_bw"], "bandwidth --transport verbs --operation read", ""),
    command(
        &["osu_fop_latency"],
        "latency --transport verbs --operation fetch_add --size 8",
        "`rtt`",
    ),
    command(
        &["osu_cas_latency"],
        "latency --transport verbs --operation compare_swap --size 8",
        "`rtt`",
    ),
    nothing(
        &["osu_allreduce", "osu_alltoall", "osu_bcast", "osu_barrier", "osu_allgather"],
        "collectives are not measured",
    ),
    option(&["-m", "--message-size"], "--size MIN..MAX*2", "one size as `--size 64`"),
    option(&["-i", "--iterations"], "--count N", "messages of each round"),
    option(&["-x"], "--warmup N", "the samples stay in the record"),
    option(&["-W", "--window-size"], "--window N", ""),
    option(&["-c", "--validation"], "--check", ""),
    option(&["-t", "--num-threads"], "--threads N", ""),
    nothing(&["-z", "--report-percentiles"], "quantiles are always given, to p99.99"),
];
