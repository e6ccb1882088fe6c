//! doca-perftest, NVIDIA's own (from its guide for version 3.3; the source is closed).

use super::word::{Peer, Word, command, nothing, option};

pub const DOCA: Peer = Peer {
    name: "doca-perftest",
    about: "doca_perftest is NVIDIA's own, for its adapters (from its guide for version 3.3; the \
            source is closed). As here, one command starts the server by ssh, and picks CPUs by \
            NUMA at both ends. It gives averages, and quantiles of latencies; the figures here \
            have intervals, on any vendor's adapter.",
    words: DOCA_WORDS,
};

/// Short options stand with their values, which nobody types as one word: they are those of other
/// programs too, of which a suggestion is.
const DOCA_WORDS: &[Word] = &[
    command(
        &["doca_perftest"],
        "bandwidth --transport verbs --operation write --to HOST",
        "its default is RC, write, 64 KiB, 10 s: `--size 64KiB --time 10s`",
    ),
    command(
        &["doca_perftest -m lat"],
        "latency --transport verbs --operation write --to HOST",
        "`half_rtt`; of reads `rtt`",
    ),
    command(
        &["JSON files of many hosts and tests"],
        "run FILE",
        "a study whose entries run together on the hosts that they name",
    ),
    command(
        &["trafficPattern BISECTION"],
        "bandwidth --transport verbs --hosts-file FILE --bisection 20",
        "random perfect matchings; the file has the device of each host",
    ),
    command(
        &["trafficPattern ALL_TO_ALL, ONE_TO_MANY, MANY_TO_ONE"],
        "exchange --transport verbs --chaotic --schedule round-robin,one-to-all,all-to-one",
        "with full queues, or by slots of common time (`--rate` in the place of `--chaotic`)",
    ),
    option(&["-d DEVICE"], "--device NAME", "with `--transport verbs`"),
    option(&["-n HOST"], "--to HOST", "the server's host"),
    option(&["-N N"], "--threads N", "threads and not processes, each with a CPU of its own"),
    option(&["-C CORES"], "--cpus A,B", "of both ends, such as `0-3/4-7`"),
    option(&["-c TYPE"], "--service NAME", "with `--transport verbs`"),
    option(&["-v VERB"], "--operation NAME", "with `--transport verbs`"),
    option(&["-s SIZE"], "--size SIZE", ""),
    option(&["-D SECONDS"], "--time TIME", "with a unit"),
    option(&["-b"], "--direction bi", "both ways at once"),
    option(&["-q N"], "--queue-pairs N", "of each thread"),
    option(&["-M TYPE"], "--memory KIND", "host, device, cuda:N, rocm:N"),
    option(&["-G ID"], "--memory cuda:N", "the number of the GPU"),
    option(&["--use-ece"], "--ece", "with `--transport verbs`"),
    option(&["--server-device"], "--device A,B", "client A, server B"),
    option(&["--server-cores"], "--cpus A,B", "client A, server B"),
    option(&["--server-mem-type"], "--memory A,B", "client A, server B"),
    option(&["--server-username"], "--to HOST", "USER@HOST"),
    option(&["--launch-server"], "--to HOST", "agent:HOST where no ssh is to start it"),
    nothing(&["-m METRIC"], "the metric is that of the command: latency or bandwidth"),
    nothing(&["-r DRIVER"], "libibverbs; DC and SRD by their vendors' libraries"),
    nothing(&["--ph", "--tph-core-id", "--tph-mem"], "settings of one vendor's adapters"),
];
