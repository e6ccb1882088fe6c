"""Who is measured, by which commands: the one table of command lines.

In a command, `{client}` and `{server}` are the two CPUs, `{port}` and `{port2}` are free ports
that no other command of the run gets, `{count}` is messages after the warm-up and `{seconds}` a
duration. A server runs on `{server}`'s CPU, a client on `{client}`'s; wiregauge and the bare loops
pin their two processes themselves.
"""

from dataclasses import dataclass
from typing import Callable, Mapping, Optional

from . import parse

ON_CLIENT = "taskset -c {client} "
ON_SERVER = "taskset -c {server} "


@dataclass(frozen=True)
class Subject:
    """A program with fixed options that yields one figure a time."""

    name: str
    # Subjects of a group run one after the other in a round, so that what drifts hits all alike.
    group: str
    client: str
    read: Callable[[str], float]
    unit: str
    # What the figure is: `p50` of single messages, the `mean` where a program has nothing else, or
    # the `best mean` of rounds.
    figure: str
    server: Optional[str] = None
    # The protocol whose bound {port} says that the server is ready.
    ready: str = "tcp"
    # Whether the server goes when its client has gone.
    server_ends: bool = False
    environment: Mapping[str, str] = None
    # Messages of an ordinary run, where the command takes a count ...
    count: int = 0
    # ... and of a quick one at least so many; of either a multiple of this.
    least: int = 1
    multiple_of: int = 1
    # Whether it sleeps for each message, so that its context switches are worth a line.
    sleeps: bool = False

    @property
    def program(self) -> str:
        return self.name.split()[0]

    def messages(self, quick: bool) -> int:
        """Messages of a run, a tenth of them where it is quick."""
        messages = max(self.count // 10, self.least) if quick else self.count
        return -(-messages // self.multiple_of) * self.multiple_of


# Long enough for a second or so of messages each.
COUNTS = {
    "busy": 200_000,
    "block": 30_000,
    "shm": 1_000_000,
    "ring": 20_000_000,
    "short ring": 100_000_000,
}


def _wiregauge_latency(transport: str, size: int, wait: str, count: int) -> Subject:
    return Subject(
        name=f"wiregauge {transport} {wait}",
        group=f"{transport} {wait}",
        client="{wiregauge} latency --transport " + transport + f" --size {size} --wait {wait}"
        " --count {count} --rounds 1 --cpus {client},{server} --json",
        read=parse.wiregauge_half_rtt_p50_ns,
        unit="ns",
        figure="p50",
        count=count,
    )


def _bare_latency(transport: str, program: str, size: int, wait: str, count: int) -> Subject:
    return Subject(
        name=f"bare {transport} {wait}",
        group=f"{transport} {wait}",
        client="{bare}/" + f"{program} {wait} {size} " + "{count} {client} {server}",
        read=parse.bare_p50_ns,
        unit="ns",
        figure="p50",
        count=count,
    )


def _sockperf(transport: str, wait: str) -> Subject:
    # sockperf receives by recvfrom on its one socket (no epoll: that is for -f); --nonblocked at
    # both ends makes both spin on it.
    options = "-i 127.0.0.1 -p {port}"
    options += " --tcp" if transport == "tcp" else ""
    options += " --nonblocked" if wait == "busy" else ""
    return Subject(
        name=f"sockperf {transport} {wait}",
        group=f"{transport} {wait}",
        server=ON_SERVER + f"sockperf sr {options}",
        client=ON_CLIENT + f"sockperf pp {options} -m 64 -t " + "{seconds2}",
        read=parse.sockperf_p50_ns,
        unit="ns",
        figure="p50",
        ready=transport,
    )


def _qperf(group: str, test: str, size: str, read: Callable, unit: str) -> Subject:
    # Blocking only: its polling option is for RDMA.
    return Subject(
        name=f"qperf {group}",
        group=group,
        server=ON_SERVER + "qperf -lp {port}",
        client=ON_CLIENT
        + "qperf 127.0.0.1 -lp {port} -ip {port2} -t {seconds}"
        + f" -m {size} -uu -e 6 {test}",
        read=read,
        unit=unit,
        figure="mean",
    )


def _bandwidth() -> list[Subject]:
    return [
        Subject(
            name="wiregauge tcp bandwidth",
            group="tcp bandwidth",
            client="{wiregauge} bandwidth --transport tcp --size 128KiB --wait block"
            " --time {seconds}s --rounds 1 --cpus {client},{server} --json",
            read=parse.wiregauge_bandwidth,
            unit="B/s",
            figure="mean",
        ),
        Subject(
            name="iperf3 tcp bandwidth",
            group="tcp bandwidth",
            server=ON_SERVER + "iperf3 -s -1 -B 127.0.0.1 -p {port}",
            client=ON_CLIENT + "iperf3 -c 127.0.0.1 -p {port} -P 1 -l 128K -t {seconds} -J",
            read=parse.iperf3_bandwidth,
            unit="B/s",
            figure="mean",
            server_ends=True,
        ),
        _qperf("tcp bandwidth", "tcp_bw", "128K", parse.qperf_bandwidth, "B/s"),
    ]


def _shared_memory() -> list[Subject]:
    count = COUNTS["shm"]
    shm_only = {"UCX_TLS": "shm,self", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    return [
        _wiregauge_latency("shm", 8, "busy", count),
        _bare_latency("shm", "shm_pingpong", 8, "busy", count),
        Subject(
            name="ucx_perftest shm busy",
            group="shm busy",
            server=ON_SERVER + "ucx_perftest -p {port}",
            client=ON_CLIENT
            + "ucx_perftest 127.0.0.1 -p {port} -t tag_lat -s 8 -n {count} -R 50 -v -f",
            read=parse.ucx_p50_ns,
            unit="ns",
            figure="p50",
            server_ends=True,
            environment=shm_only,
            count=count,
        ),
        Subject(
            name="fi_pingpong shm busy",
            group="shm busy",
            server=ON_SERVER + "fi_pingpong -B {port} -p shm -e rdm -S 8 -I {count}",
            client=ON_CLIENT + "fi_pingpong -P {port} -p shm -e rdm -S 8 -I {count} 127.0.0.1",
            read=parse.fi_pingpong_mean_ns,
            unit="ns",
            figure="mean",
            server_ends=True,
            count=count,
        ),
        Subject(
            name="wiregauge shm message rate",
            group="shm message rate",
            client="{wiregauge} bandwidth --transport shm --size 8 --wait busy"
            " --time {seconds}s --rounds 1 --cpus {client},{server} --json",
            read=parse.wiregauge_message_rate,
            unit="msg/s",
            figure="mean",
        ),
        Subject(
            name="bare shm message rate",
            group="shm message rate",
            client="{bare}/shm_ring busy 8 {count} {client} {server}",
            read=parse.bare_msg_per_s,
            unit="msg/s",
            figure="mean",
            count=COUNTS["ring"],
        ),
        Subject(
            name="bare shm short cells",
            group="shm message rate",
            client="{bare}/shm_ring_short busy 8 {count} {client} {server}",
            read=parse.bare_msg_per_s,
            unit="msg/s",
            figure="mean",
            count=COUNTS["short ring"],
        ),
    ]


def _instrument() -> list[Subject]:
    return [
        Subject(
            name="wiregauge recording",
            group="recording",
            client="{wiregauge} latency --transport shm --size 8 --wait busy --count {count}"
            " --rounds 1 --cpus {client},{server} --json",
            read=parse.wiregauge_recording_ns,
            unit="ns",
            figure="p50",
            count=100_000,
        ),
        # bench/stats.rs, built by `cargo bench`: whatever prints the same line of JSON will do.
        Subject(
            name="stats time",
            group="stats",
            client=ON_CLIENT + "{stats} --bench",
            read=lambda text: parse.stats_bench(text)[0],
            unit="s",
            figure="mean",
        ),
        Subject(
            name="stats memory",
            group="stats",
            client=ON_CLIENT + "{stats} --bench",
            read=lambda text: parse.stats_bench(text)[1],
            unit="",
            figure="mean",
        ),
    ]


def every_subject() -> dict[str, Subject]:
    """All of them by name."""
    found = []
    for transport in ("tcp", "udp", "unix", "unixgram"):
        for wait in ("busy", "block"):
            found.append(_wiregauge_latency(transport, 64, wait, COUNTS[wait]))
            found.append(_bare_latency(transport, transport, 64, wait, COUNTS[wait]))
    for transport in ("tcp", "udp"):
        found += [_sockperf(transport, "busy"), _sockperf(transport, "block")]
        found.append(
            _qperf(f"{transport} block", f"{transport}_lat", "64", parse.qperf_latency_ns, "ns")
        )
    found += _bandwidth() + _shared_memory() + _instrument()
    return {subject.name: subject for subject in found}


# The Debian package of each program that is not ours.
PACKAGES = {
    "sockperf": "sockperf",
    "qperf": "qperf",
    "iperf3": "iperf3",
    "ucx_perftest": "ucx-utils",
    "fi_pingpong": "libfabric-bin",
    "taskset": "util-linux",
    "cc": "gcc",
}
