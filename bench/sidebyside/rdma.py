"""RDMA: wiregauge's verbs beside perftest, who is measured and which figure against which.

The same size, depths, inline limit, signalling and CPUs for both. `{device}` is the RDMA device.
"""

from typing import Mapping

from . import parse
from .ratios import Limit
from .rows import Row
from .subjects import ON_CLIENT, ON_SERVER, Subject

# Messages of a round: seconds on an adapter, and seconds where the processor is emulated.
COUNTS: Mapping[str, Mapping[str, int]] = {
    "adapter": {"busy": 500_000, "block": 100_000, "stream": 50_000, "rate": 2_000_000},
    "emulated": {"busy": 1_000, "block": 2_000, "stream": 500, "rate": 10_000},
}

LATENCY_SIZE = 64
STREAM_SIZE = 65_536
RATE_SIZE = 8
# Sends on their way in a stream, and receives that are posted for it.
DEPTH = 128
# Messages of a quick stream. One that fits into the queue may be seen to complete all at once,
# which says nothing about a rate.
LEAST_OF_STREAM = 4 * DEPTH
# Receives that are posted in a ping-pong.
FEW = 16
# Messages in one list.
LIST = 16
# Bytes in a work request, where the adapter is known to perftest to be able to: Soft-RoCE is not.
INLINE = 128

# Service, operation, wait.
LATENCIES = [
    ("rc", "send", "busy"),
    ("uc", "send", "busy"),
    ("ud", "send", "busy"),
    ("rc", "write", "busy"),
    ("rc", "read", "busy"),
    ("rc", "fetch_add", "busy"),
    ("rc", "send", "block"),
]
# What a doorbell by a system call costs more in a process of several threads, as wiregauge is,
# perftest has too with this before it. An adapter's doorbell is a store.
THREADED = "env LD_PRELOAD={idle_thread} "
# Of which a round trip is halved: of the others a message is the whole of one.
HALVED = ("send", "write")
# An atomic is of eight bytes.
SIZES = {"fetch_add": 8}
PROGRAMS = {"fetch_add": "ib_atomic_lat -A FETCH_AND_ADD"}
OPERATIONS = ("send", "write", "read")


def _name(program: str, group: str, threaded: bool = False) -> str:
    """Of a subject of perftest."""
    return f"{program.split()[0]} {group}" + (", two threads" if threaded else "")


def _perftest(
    program: str, group: str, options: str, read, unit: str, figure: str, count: int,
    threaded: bool = False, **more,
):
    words = f"{program} -d " + "{device} -F -p {port} -n {count} " + options
    if threaded:
        words = THREADED + words
    return Subject(
        name=_name(program, group, threaded),
        group=group,
        server=ON_SERVER + words,
        client=ON_CLIENT + words + " 127.0.0.1",
        read=read,
        unit=unit,
        figure=figure,
        server_ends=True,
        count=count,
        **more,
    )


def _wiregauge(
    pattern: str, group: str, options: str, read, unit: str, figure: str, count: int, **more
):
    return Subject(
        name=f"wiregauge {group}",
        group=group,
        client="{wiregauge} " + pattern + " --transport verbs --device {device} " + options
        + " --count {count} --rounds 1 --cpus {client},{server} --clock tsc --json",
        read=read,
        unit=unit,
        figure=figure,
        count=count,
        **more,
    )


def _inline(bytes_inline: int) -> tuple[str, str]:
    """How wiregauge and perftest are told."""
    return f" --inline {bytes_inline or 'off'}", f" -I {bytes_inline}"


def _threaded(wait: str, software: bool) -> tuple[bool, ...]:
    """Whether perftest is measured as it is, and with a second thread too."""
    return (False, True) if software and wait == "busy" else (False,)


def _latency(
    service: str, operation: str, wait: str, bytes_inline: int, count: int, software: bool
) -> list[Subject]:
    group = f"{service} {operation} {wait}"
    is_halved = operation in HALVED
    # What only asks for data puts none into the work request.
    ours, theirs = _inline(bytes_inline) if is_halved else ("", "")
    size = SIZES.get(operation, LATENCY_SIZE)
    events = " -e" if wait == "block" else ""
    sleeps = wait == "block"
    receives = operation == "send"
    depth = f" --receive-depth {FEW}" if receives else ""
    return [
        _wiregauge(
            "latency",
            group,
            f"--service {service} --operation {operation} --size {size} --wait {wait}"
            f"{ours}{depth}",
            parse.wiregauge_half_rtt_p50_ns if is_halved else parse.wiregauge_rtt_p50_ns,
            "ns",
            "p50",
            count,
            sleeps=sleeps,
        ),
        *(_perftest(
            PROGRAMS.get(operation, f"ib_{operation}_lat"),
            group,
            f"-c {service.upper()}"
            + (f" -s {size}" if operation not in SIZES else "")
            + theirs
            + (f" -r {FEW}" if receives else "")
            + events,
            parse.perftest_typical_ns,
            "ns",
            "p50",
            count,
            threaded=threaded,
            sleeps=sleeps,
        )
        for threaded in _threaded(wait, software)),
    ]


def _stream(operation: str, count: int) -> list[Subject]:
    group = f"{operation} bandwidth"
    receives = operation == "send"
    return [
        _wiregauge(
            "bandwidth",
            group,
            f"--operation {operation} --size {STREAM_SIZE} --window {DEPTH} --send-depth {DEPTH}"
            + (f" --receive-depth {DEPTH}" if receives else "")
            # perftest sends all messages from one buffer and receives them into another.
            + " --same-buffer --signal-every 1 --wait busy",
            parse.wiregauge_bandwidth,
            "B/s",
            "mean",
            count,
            least=LEAST_OF_STREAM,
        ),
        _perftest(
            f"ib_{operation}_bw",
            group,
            f"-s {STREAM_SIZE} -t {DEPTH} -Q 1 -N" + (f" -r {DEPTH}" if receives else ""),
            parse.perftest_bandwidth,
            "B/s",
            "mean",
            count,
            least=LEAST_OF_STREAM,
        ),
    ]


def _rate(bytes_inline: int, count: int) -> list[Subject]:
    ours, theirs = _inline(bytes_inline)
    group = "message rate"
    return [
        _wiregauge(
            "bandwidth",
            group,
            f"--operation send --size {RATE_SIZE} --burst {LIST} --window {DEPTH}"
            f" --send-depth {DEPTH} --receive-depth {4 * DEPTH} --signal-every {LIST}"
            f"{ours} --wait busy",
            parse.wiregauge_message_rate,
            "msg/s",
            "mean",
            count,
            # ib_send_bw sends whole lists.
            multiple_of=LIST,
        ),
        _perftest(
            "ib_send_bw",
            group,
            f"-s {RATE_SIZE} -l {LIST} -t {DEPTH} -r {4 * DEPTH} -Q {LIST}{theirs} -N",
            parse.perftest_message_rate,
            "msg/s",
            "mean",
            count,
            # ib_send_bw sends whole lists.
            multiple_of=LIST,
        ),
    ]


def every_subject(
    counts: Mapping[str, int], bytes_inline: int, software: bool
) -> dict[str, Subject]:
    """All of them by name; `software` where there is no adapter below the device."""
    found = []
    for service, operation, wait in LATENCIES:
        found += _latency(service, operation, wait, bytes_inline, counts[wait], software)
    for operation in OPERATIONS:
        found += _stream(operation, counts["stream"])
    found += _rate(bytes_inline, counts["rate"])
    return {subject.name: subject for subject in found}


def every_row(software: bool) -> list[Row]:
    rows = []
    for service, operation, wait in LATENCIES:
        group = f"{service} {operation} {wait}"
        limit = Limit(1.02 if wait == "busy" else 1.05, at_most=True)
        program = PROGRAMS.get(operation, f"ib_{operation}_lat")
        metric = "half_rtt" if operation in HALVED else "rtt"
        what = f"{group} {metric} p50 {SIZES.get(operation, LATENCY_SIZE)} B"
        for threaded in _threaded(wait, software):
            against = (_name(program, group, threaded),)
            rows.append(Row(what, f"wiregauge {group}", against, limit))
    for operation in OPERATIONS:
        group = f"{operation} bandwidth"
        limit = Limit(0.98, at_most=False)
        rows.append(
            Row(f"{group} 64 KiB", f"wiregauge {group}", (f"ib_{operation}_bw {group}",), limit)
        )
    what = f"message rate {RATE_SIZE} B, lists of {LIST}"
    peers = ("ib_send_bw message rate",)
    return rows + [Row(what, "wiregauge message rate", peers, Limit(1.0, at_most=False))]
