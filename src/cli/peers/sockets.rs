//! iperf3 (`src/iperf_api.c`, `src/units.c`), sockperf (`src/sockperf.cpp`), netperf
//! (`src/netsh.c`, `src/nettest_omni.c`).

use super::word::{Peer, Word, command, nothing, option};

const PORTS: &str = "wiregauge chooses free ports itself";
const REVERSED: &str = "the first host is the client, which sends";
const TABLES: &str = "figures carry their units, and the record has all of them in base units";

pub const IPERF3: Peer = Peer {
    name: "iperf3",
    about: "iperf3 prints the throughput of a byte stream. `bandwidth` counts whole messages that \
            arrived and prints MB/s (10^6 bytes) and Gb/s, which is 1000 of iperf3's Mbit/s. One \
            command starts both ends: `iperf3 -s` has no counterpart where ssh works. In `-l` and \
            `-w`, K and k are 2^10 to iperf3; here K is, and k alone is refused.",
    words: IPERF3_WORDS,
};

const IPERF3_WORDS: &[Word] = &[
    command(
        &["iperf3", "iperf"],
        "bandwidth --transport tcp --to HOST",
        "`Bitrate` of the receiver is the bandwidth; here with an interval over rounds by fresh \
         processes",
    ),
    command(&["-s", "--server"], "agent", "only for hosts without ssh; `--to` starts the server"),
    option(&["-c", "--client"], "--to HOST", "a name that ssh knows, or `agent:HOST`"),
    option(&["-t"], "--time TIME", "of each round, and with a unit: 10s; `-t 0` is `--forever`"),
    option(&["-n", "--bytes"], "--count N", "messages, not bytes: bytes divided by `--size`"),
    option(&["-k", "--blockcount"], "--count N", "messages of each round"),
    option(&["-l", "--length", "--len"], "--size SIZE", "iperf3's default for TCP is 128K"),
    option(&["-P", "--parallel"], "--threads N", "each with its own connection and CPU"),
    option(
        &["-u", "--udp"],
        "--transport udp",
        "with `--size 1472` or the like, so that each message is one packet",
    ),
    option(
        &["-b", "--bitrate", "--bandwidth"],
        "--rate RATE",
        "messages (`oneway`) or requests (`load`) per second, not bits; `bandwidth` always sends \
         as fast as it can",
    ),
    option(&["-R", "--reverse"], "--hosts HOST,here", REVERSED),
    option(&["--bidir"], "--direction bi", "both ways at once"),
    option(
        &["-w"],
        "--send-buffer SIZE",
        "and `--receive-buffer`; `--window` is the number of outstanding messages here",
    ),
    option(&["-C", "--linux-congestion"], "--congestion NAME", ""),
    option(&["-M", "--set-mss"], "--mss SIZE", ""),
    option(&["-N", "--no-delay"], "--nodelay on", "on by default here"),
    option(&["-S", "--tos"], "--dscp N", "the upper six bits: TOS divided by 4"),
    option(&["-Z"], "--zerocopy", "by MSG_ZEROCOPY, not by sendfile"),
    option(&["-A", "--affinity"], "--cpus A,B", "chosen where it is not given"),
    option(&["-B", "--bind", "--bind-dev"], "--interface NAME", "an interface, not an address"),
    option(&["-O", "--omit"], "--warmup N", "messages, not seconds; they stay in the record"),
    option(&["-J", "--json-stream"], "--json", ""),
    option(
        &["-i", "--interval"],
        "--report-every TIME",
        "a line on stdout in each such time, from 1s on; report.html shows each figure over time",
    ),
    nothing(&["-p", "--port", "--cport"], PORTS),
    option(&["-f", "--format"], "--unit UNIT", "Mb/s, Gb/s, MB/s, GB/s, MiB/s or GiB/s"),
    command(&["-D", "--daemon"], "agent", "it stays in the foreground: use systemd or `&`"),
    option(&["-V", "--verbose"], "--verbose", "the record and report.html have all of it"),
    option(&["-4", "--version4", "-6", "--version6"], "--family VERSION", "ipv4 or ipv6"),
    nothing(&["-F", "--file"], "payloads are generated, not read from a file"),
    nothing(&["--sctp", "--nstreams"], "SCTP is not measured"),
];

pub const SOCKPERF: Peer = Peer {
    name: "sockperf",
    about: "sockperf prints half of the round trip unless `--full-rtt` is given; `latency` prints \
            `half_rtt` and records `rtt`. Messages that were dropped or out of order are not in \
            sockperf's latency; here a lost one is a sample at infinity. Its default is UDP with \
            14 bytes: `--transport udp --size 14`.",
    words: SOCKPERF_WORDS,
};

const SOCKPERF_WORDS: &[Word] = &[
    command(
        &["ping-pong", "pp"],
        "latency --transport udp",
        "`avg-latency` is the mean of `half_rtt`, `percentile 99.000` its p99, `<MAX>` its max",
    ),
    command(
        &["under-load", "ul"],
        "load --transport udp --rate 10k",
        "sockperf stamps the actual send of every 100th message and halves the round trip; \
         `response` is whole, of every request, and counts from the intended send",
    ),
    command(
        &["throughput", "tp"],
        "bandwidth --transport udp --size 1472",
        "what arrived, not what was sent",
    ),
    command(&["playback", "pb"], "load --trace FILE", "a line a message: its time, and its size"),
    command(
        &["server", "sr"],
        "agent",
        "only for hosts without ssh; `--to HOST` starts the server and ends it",
    ),
    option(&["--tcp"], "--transport tcp", "the default here"),
    option(&["-i", "--ip", "--addr"], "--to HOST", "a host's name, which ssh reaches"),
    option(&["-t"], "--time TIME", "of each round, and with a unit: 10s"),
    option(&["-n", "--number-of-packets"], "--count N", "messages of each round"),
    option(&["-m", "--msg-size"], "--size SIZE", "sockperf's default is 14 bytes"),
    option(&["--mps", "--pps"], "--rate RATE", "of `oneway` and `load`"),
    option(&["-b"], "--burst N", ""),
    option(&["--full-rtt"], "--json", "`rtt` is in the record, beside `half_rtt`"),
    option(&["--full-log"], "--out DIR", "all samples are always kept: see `wiregauge export`"),
    option(&["--data-integrity"], "--check", ""),
    option(&["--buffer-size"], "--send-buffer SIZE", "and `--receive-buffer`"),
    option(&["--lls"], "--busy-poll TIME", "SO_BUSY_POLL, in microseconds there"),
    option(&["--sender-affinity", "--receiver-affinity", "--cpu-affinity"], "--cpus A,B", ""),
    option(&["--client-ip", "--client-addr"], "--interface NAME", "an interface, not an address"),
    option(&["--nonblocked"], "--wait busy", "the default; `--wait block` blocks"),
    option(&["--data-file"], "--trace FILE", ""),
    nothing(&["--reply-every"], "every request is answered and timed"),
    option(&["--dontwarmup", "--pre-warmup-wait"], "--warmup N", "messages, not seconds"),
    option(&["--no-rdtsc"], "--clock monotonic_raw", ""),
    nothing(&["--ci-sig-level"], "intervals are always at 95 %"),
    nothing(&["--load-vma", "--load-xlio"], "set LD_PRELOAD for both ends"),
];

pub const NETPERF: Peer = Peer {
    name: "netperf",
    about: "netperf's request-response tests print transactions per second, whose inverse is the \
            mean round trip: compare with `rtt`, or halve it for `half_rtt`. K, M and G are 2^10, \
            2^20 and 2^30 as here; in lower case they are powers of ten there and refused here \
            (64kB is 64000 bytes).",
    words: NETPERF_WORDS,
};

const NETPERF_WORDS: &[Word] = &[
    command(
        &["TCP_RR"],
        "latency --transport tcp --size 1",
        "transactions per second are 1 / mean `rtt`; `MEAN_LATENCY` and `P99_LATENCY` are of `rtt`",
    ),
    command(&["UDP_RR"], "latency --transport udp --size 1", "a lost request does not end the run"),
    command(&["STREAM_RR"], "latency --transport unix", "Unix stream sockets"),
    command(&["DG_RR"], "latency --transport unixgram", "Unix datagram sockets"),
    command(&["TCP_STREAM"], "bandwidth --transport tcp", "10^6 bits/s there; MB/s and Gb/s here"),
    command(
        &["UDP_STREAM"],
        "bandwidth --transport udp --size 1472",
        "what arrived, not what was sent",
    ),
    command(&["STREAM_STREAM"], "bandwidth --transport unix", ""),
    command(&["DG_STREAM"], "bandwidth --transport unixgram --size 1472", ""),
    command(&["TCP_MAERTS"], "bandwidth --transport tcp --hosts HOST,here", REVERSED),
    command(&["netserver"], "agent", "only for hosts without ssh; `--to` starts the server"),
    nothing(
        &["TCP_CRR", "TCP_CC"],
        "connections are made before a round; their rate is not measured",
    ),
    nothing(&["SCTP_RR", "SCTP_STREAM"], "SCTP is not measured"),
    option(&["-H"], "--to HOST", "a name that ssh knows, or `agent:HOST`"),
    option(&["-l"], "--time TIME", "of each round, and with a unit: 10s"),
    option(&["-T"], "--cpus A,B", ""),
    option(
        &["-I"],
        "--until WIDTH",
        "half of the interval at 95 %, such as 5%; netperf's is its whole width",
    ),
    option(&["-i"], "--rounds N", "rounds are fresh processes; with `--until`, at most"),
    option(&["-L"], "--interface NAME", "an interface, not an address"),
    option(&["-m", "-r"], "--size SIZE", "after `--` there; request and reply are of one size"),
    option(&["-s", "-S"], "--send-buffer SIZE", "after `--` there; and `--receive-buffer`"),
    option(&["-D"], "--nodelay on", "after `--` there; on by default here"),
    option(&["-K"], "--congestion NAME", "after `--` there"),
    nothing(&["-c", "-C"], "CPU time per message is always in the record"),
    nothing(&["-j"], "quantiles are always given"),
    nothing(&["-p"], PORTS),
    option(&["-v"], "--verbose", ""),
    nothing(&["-f", "-P"], TABLES),
];
