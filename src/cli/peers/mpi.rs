//! Programs that measure MPI: the OSU micro-benchmarks (their README), IMB (its user guide), Presta
//! (its README) and GPCNeT (its README).

use super::word::{Peer, Word, command, nothing, option};

pub const OSU: Peer = Peer {
    name: "OSU",
    about: "The OSU micro-benchmarks measure MPI, as `--transport mpi` does ([mpi.md](mpi.md) says \
            what differs). `osu_latency` is half of the mean round trip. `osu_bw` \
            waits for an acknowledgement after each window; `bandwidth` keeps its window full.",
    words: OSU_WORDS,
};

const OSU_WORDS: &[Word] = &[
    command(&["osu_latency"], "latency --transport mpi", "the mean of `half_rtt`"),
    command(&["osu_bw"], "bandwidth --transport mpi", "MB/s are 10^6 bytes/s in both"),
    command(&["osu_bibw"], "bandwidth --transport mpi --direction bi", ""),
    command(
        &["osu_allreduce"],
        "collective --collective allreduce",
        "first entry to last exit, not the mean of ranks after a barrier",
    ),
    command(&["osu_bcast"], "collective --collective bcast", ""),
    command(&["osu_barrier"], "collective --collective barrier", ""),
    command(&["osu_reduce"], "collective --collective reduce", ""),
    command(&["osu_gather", "osu_gatherv"], "collective --collective gather", "or `gatherv`"),
    command(&["osu_scatter", "osu_scatterv"], "collective --collective scatter", "or `scatterv`"),
    command(
        &["osu_allgather", "osu_allgatherv"],
        "collective --collective allgather",
        "or `allgatherv`",
    ),
    command(
        &["osu_alltoall", "osu_alltoallv"],
        "collective --collective alltoall",
        "or `alltoallv`",
    ),
    command(&["osu_reduce_scatter"], "collective --collective reduce_scatter", ""),
    command(
        &["osu_iallreduce", "osu_ibcast", "osu_ibarrier", "osu_iallgather", "osu_ialltoall"],
        "collective --nonblocking --collective allreduce",
        "or `bcast` and so on: the time, and how much of it overlaps",
    ),
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

pub const IMB: Peer = Peer {
    name: "IMB",
    about: "The Intel MPI benchmarks print the mean, least and most of the ranks' averages. Here \
            each collective operation is from its first entry to its last exit.",
    words: IMB_WORDS,
};

const IMB_WORDS: &[Word] = &[
    command(&["IMB-MPI1"], "latency --transport mpi --size 1..4MiB*2", "of `PingPong`"),
    command(&["PingPong"], "latency --transport mpi --size 1..4MiB*2", "the mean of `half_rtt`"),
    command(&["Uniband"], "bandwidth --transport mpi", ""),
    command(&["Biband"], "bandwidth --transport mpi --direction bi", ""),
    command(
        &["PingPing"],
        "bandwidth --transport mpi --direction bi --window 1",
        "the payload of both ranks per second",
    ),
    command(
        &["Sendrecv"],
        "exchange --transport mpi --chaotic --schedule fixed --queue 1",
        "without steps; or by slots",
    ),
    command(
        &["Exchange"],
        "exchange --transport mpi --chaotic --schedule fixed --queue 2",
        "to the next alone, with two messages on the way",
    ),
    command(&["Allreduce"], "collective --collective allreduce", ""),
    command(&["Reduce"], "collective --collective reduce", ""),
    command(&["Reduce_scatter"], "collective --collective reduce_scatter", ""),
    command(&["Bcast"], "collective --collective bcast", ""),
    command(&["Barrier"], "collective --collective barrier", ""),
    command(&["Gather", "Gatherv"], "collective --collective gather", "or `gatherv`"),
    command(&["Scatter", "Scatterv"], "collective --collective scatter", "or `scatterv`"),
    command(&["Allgather", "Allgatherv"], "collective --collective allgather", "or `allgatherv`"),
    command(&["Alltoall", "Alltoallv"], "collective --collective alltoall", "or `alltoallv`"),
    command(
        &["Iallreduce", "Ibcast", "Ibarrier", "Iallgather", "Ialltoall"],
        "collective --nonblocking --collective allreduce",
        "or `bcast` and so on",
    ),
    command(&["Unidir_put"], "bandwidth --transport mpi --operation write", ""),
    command(&["Unidir_get"], "bandwidth --transport mpi --operation read", ""),
    option(&["-npmin"], "--nodes N,N", "the number of ranks, or a list of numbers"),
    option(&["-warmup"], "--warmup N", "counted, and kept in the samples"),
    option(&["-msglog"], "--size MIN..MAX*2", ""),
    option(&["-iter"], "--count N", "operations of each round"),
];

pub const PRESTA: Peer = Peer {
    name: "Presta",
    about: "Presta measures MPI by four programs. Its \"maximum latency\" is the largest of the \
            means of its pairs of ranks. `run mpi/presta-collectives` has its collective ones.",
    words: PRESTA_WORDS,
};

const PRESTA_WORDS: &[Word] = &[
    command(&["laten"], "latency --transport mpi --size 16", "a mean there, every one here"),
    command(&["com"], "bandwidth --transport mpi", "and `--direction bi`"),
    command(&["allred"], "run mpi/presta-collectives", "`collective --collective allreduce`"),
    command(&["globalop"], "run mpi/presta-collectives", "with and without computing before"),
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
