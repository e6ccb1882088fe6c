//! hyperfine (its `--help`), and words that no program has alone.

use super::word::{Peer, Word, command, nothing, option};

pub const HYPERFINE: Peer = Peer {
    name: "hyperfine",
    about: "hyperfine times whole commands. What it calls a run is a round here: fresh processes, \
            each with many messages.",
    words: HYPERFINE_WORDS,
};

const HYPERFINE_WORDS: &[Word] = &[
    option(&["-r", "--runs", "-m", "--min-runs"], "--rounds N", "6 by default"),
    option(&["-M", "--max-runs"], "--rounds N", "at most, with `--until`"),
    option(&["-w"], "--warmup N", "messages at the start of each round"),
    option(&["-L", "--parameter-list"], "--size A,B,C", "most options take lists"),
    option(&["-P", "--parameter-scan"], "--size A..B+STEP", "or `*FACTOR`, or `/STEPS`"),
    option(&["--export-json"], "--json", ""),
    command(&["--export-csv"], "export DIR --format csv", "every sample, not a row a command"),
    option(&["--export-markdown"], "--markdown FILE", "of a comparison"),
    nothing(&["-N", "--shell"], "no shell is started"),
    option(&["--style"], "--color WHEN", "plain where the output is no terminal"),
];

pub const USUAL: Peer = Peer { name: "Other words", about: "", words: USUAL_WORDS };

const USUAL_WORDS: &[Word] = &[
    command(&["lat", "ping", "pingpong", "rtt", "rr"], "latency", ""),
    command(&["bw", "throughput-test", "goodput"], "bandwidth", ""),
    command(&["msgrate", "msg-rate", "message-rate", "pps"], "bandwidth --size 8", ""),
    command(&["one-way", "owd", "owl"], "oneway", ""),
    command(&["allreduce", "alltoall", "barrier", "collectives"], "collective", ""),
    command(&["loaded-latency", "saturation", "knee", "open-loop"], "load", ""),
    command(&["bench", "benchmark", "measure", "all", "test", "start"], "survey", ""),
    command(&["serve", "daemon", "listen", "responder"], "agent", ""),
    command(&["diff", "cmp"], "compare A B", ""),
    command(&["show", "plot", "view", "render", "html"], "report DIR", ""),
    command(&["convert", "dump", "csv", "parquet"], "export DIR --format csv", ""),
    command(&["study", "studies", "exec"], "run", "without a name, it lists the studies"),
    command(&["ls", "devices", "transports", "info", "caps"], "list", ""),
    command(&["check-hosts", "nodes"], "hosts --hosts A,B", ""),
    command(&["jitter", "ftq", "fwq"], "noise", "of the CPUs"),
    command(&["osnoise", "hwlat", "hwlatdetect"], "noise --together", "with the causes by name"),
    command(&["tuned-adm", "rtla"], "doctor", "what is wrong with a host, and what it costs"),
    command(
        &["perf", "bpftrace", "runqlat", "tthoma.py"],
        "explain latency",
        "stamps of each message on its way, which add up to what was measured",
    ),
    command(&["clock", "clock-sync", "offset"], "clocks --to HOST", ""),
    command(&["verify", "self-test"], "selftest", ""),
    command(&["netns", "mininet"], "testbed net -- COMMAND", "network namespaces"),
    command(&["vm", "qemu", "rxe"], "testbed rdma -- COMMAND", "a machine with Soft-RoCE"),
    command(&["completion"], "completions bash", ""),
    command(&["version"], "--version", ""),
    command(&["client"], "latency --to HOST", "`--to` starts the server"),
    option(&["--iterations", "--iter", "--messages", "--samples", "--num"], "--count N", ""),
    option(&["--seconds", "--secs", "--runtime"], "--time TIME", "of each round"),
    option(&["--bytes-per-message", "--payload", "--message-size", "--msgsize"], "--size SIZE", ""),
    option(&["--dev", "--hca", "--nic"], "--device NAME", "with `--transport verbs`"),
    option(&["--iface", "--intf", "--ifname", "--dev-name"], "--interface NAME", ""),
    option(&["--protocol", "--proto", "--provider", "--fabric"], "--transport NAME", ""),
    option(&["--remote", "--server-host", "--target", "--peer-host"], "--to HOST", ""),
    option(&["--hostfile", "--machinefile"], "--hosts-file FILE", ""),
    option(&["--streams", "--flows"], "--threads N", ""),
    option(&["--qps"], "--rate RATE", "of `load`; requests per second"),
    option(&["--depth", "--qd", "--iodepth", "--inflight", "--outstanding"], "--window N", ""),
    option(&["--pin", "--cpu", "--cores", "--taskset", "--numa"], "--cpus A,B", ""),
    option(&["-o", "--output", "--outdir", "--out-dir"], "--out DIR", ""),
    option(&["--repeat", "--repetitions", "--trials"], "--rounds N", ""),
    option(&["--bi", "--duplex", "--both-ways"], "--direction bi", ""),
    option(&["--polling", "--spin"], "--wait busy", ""),
    option(&["--sleep", "--interrupt"], "--wait block", ""),
    option(&["--validate", "--verify"], "--check", ""),
    option(&["rdma", "ib", "infiniband", "roce", "ibverbs"], "--transport verbs", ""),
    option(&["uds", "ipc", "af_unix"], "--transport unix", ""),
    option(&["memory", "shmem"], "--transport shm", ""),
    option(&["poll", "spin", "polling"], "--wait busy", ""),
    option(&["blocking", "event", "events", "epoll", "interrupt"], "--wait block", ""),
];
