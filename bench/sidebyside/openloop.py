"""Messages that come by a clock of their own: what wiregauge promises of them, held against its own
closed loops where there is one. All are wiregauge, so that only the loops differ."""

from functools import partial

from . import parse
from .ratios import Limit
from .rows import Row
from .subjects import ON_CLIENT, Subject

# Requests of a closed loop, a second or so.
COUNT = 30_000
# More than any transport here takes: the sender is late from the first message on.
BEYOND = "50M"
# 100 kHz of these are 226 MB/s.
FILE_VALUES = 280
FILE_RATE = "100k"
ALONE = " --rounds 1 --json"
# Lengths of the workload w3, up to those of which a thousand are measured in little time.
LENGTHS = (17, 59, 133, 290, 717, 2282, 6834, 18766, 54617)
PINNED = " --cpus {client},{server}" + ALONE


def _ours(name: str, group: str, words: str, read, unit: str, **more) -> Subject:
    client = "{wiregauge} " + words + more.pop("end", PINNED)
    return Subject(name, group, client, read, unit, figure=more.pop("figure", "mean"), **more)


def _rates(transport: str) -> list[Subject]:
    group = f"{transport} message rate"
    words = f"--transport {transport} --size 64 --wait busy --time "
    rate = parse.wiregauge_message_rate
    return [
        _ours(f"oneway {group}", group, f"oneway {words}100ms --rate {BEYOND}", rate, "msg/s"),
        _ours(f"bandwidth {group}", group, f"bandwidth {words}500ms", rate, "msg/s"),
    ]


def _streams() -> list[Subject]:
    shm = f"stream --transport shm --rate {FILE_RATE} --time {{seconds2}}s --values "
    missed = parse.wiregauge_missed_percent
    kept = f"{shm}{FILE_VALUES} --file out.bin --format villas.binary"
    return [
        _ours("stream of 8", "stream", f"{shm}8", missed, "%"),
        _ours(f"stream of {FILE_VALUES}", "stream", f"{shm}{FILE_VALUES}", missed, "%"),
        _ours("stream to a file, missed", "stream", kept, missed, "%"),
        _ours("stream to a file", "stream", kept, parse.wiregauge_kept_megabytes_per_s, "MB/s"),
        # What the machine takes from a program that only reads the clock: 2 s, as the streams.
        Subject(
            name="noise",
            group="stream",
            client="{wiregauge} noise --time {seconds2}s --cpus {client} --json",
            read=parse.wiregauge_noise_percent,
            unit="%",
            figure="mean",
        ),
    ]


def _many() -> list[Subject]:
    words = (
        "rpc --workload 100B --ports 8 --server-ports 1 --connections 125 --wait block"
        " --time {seconds2}s --no-unloaded "
    )
    lost = parse.wiregauge_lost
    group = "1000 connections"
    return [
        _ours(f"{group}, closed loop", group, f"{words}--clients 8", lost, "requests", end=ALONE),
        _ours(f"{group}, open loop", group, f"{words}--rps 40k", lost, "requests", end=ALONE),
    ]


def _unloaded() -> list[Subject]:
    """The base of a length's slowdown, measured among all lengths; and the length alone."""
    rpc = "rpc --transport tcp --wait busy "
    # The loaded requests do not matter here: the unloaded run beside them does.
    among = rpc + "--workload w3 --rps 1k --count 100"
    alone = rpc + "--workload {}B --clients 1 --no-unloaded --count {{count}}"
    found = []
    for size in LENGTHS:
        group = f"{size} B unloaded"
        read = partial(parse.wiregauge_unloaded_p50_ns, size=size)
        words = alone.format(size)
        p50 = parse.wiregauge_rtt_p50_ns
        found += [
            _ours(f"{size} B of w3", group, among, read, "ns", figure="p50"),
            _ours(f"{size} B alone", group, words, p50, "ns", count=10_000, figure="p50"),
        ]
    return found


def every_subject() -> dict[str, Subject]:
    """All of them by name."""
    p50 = parse.wiregauge_rtt_p50_ns
    words = "--transport tcp {} --wait busy --count {{count}}"
    latency = "latency " + words.format("--size 100")
    rpc = "rpc --clients 1 --no-unloaded " + words.format("--workload 100B")
    found = [
        _ours("rpc, one client", "closed loop", rpc, p50, "ns", count=COUNT, figure="p50"),
        _ours("latency tcp 100 B", "closed loop", latency, p50, "ns", count=COUNT, figure="p50"),
        *_rates("tcp"),
        *_rates("shm"),
        *_streams(),
        *_many(),
        *_unloaded(),
        Subject(
            name="generator",
            group="generator",
            client=ON_CLIENT + "{generator} --bench",
            read=parse.generator_bench,
            unit="ns",
            figure="mean",
        ),
    ]
    return {subject.name: subject for subject in found}


def every_row() -> list[Row]:
    """The promises."""
    rows = [
        Row("rtt p50 100 B", "rpc, one client", ("latency tcp 100 B",), Limit(1.05, at_most=True))
    ]
    for transport in ("tcp", "shm"):
        name = f"{transport} message rate"
        against = (f"bandwidth {name}",)
        rows.append(Row(f"{name} 64 B", f"oneway {name}", against, Limit(0.8, at_most=False)))
    same = Limit(1.1, at_most=True, by_interval=True)
    for size in LENGTHS:
        rows.append(Row(f"unloaded p50 of {size} B", f"{size} B of w3", (f"{size} B alone",), same))
    few = Limit(0.5, at_most=True)
    none = Limit(0, at_most=True)
    steps = "steps missed at 100 kHz, %"
    kinds = {
        "8 values": "stream of 8",
        f"{FILE_VALUES} values": f"stream of {FILE_VALUES}",
        f"{FILE_VALUES} values, a file": "stream to a file, missed",
    }
    for kind, name in kinds.items():
        rows.append(Row(f"{steps}: {kind}", name, (), few))
        # A step is missed where the source has no CPU: no more of them than of the time.
        rows.append(Row(f"{steps}: {kind}", name, ("noise",), Limit(1, at_most=True)))
    return rows + [
        Row("samples kept in a file, MB/s", "stream to a file", (), Limit(200, at_most=False)),
        Row("requests lost, closed loop", "1000 connections, closed loop", (), none),
        Row("requests lost, open loop", "1000 connections, open loop", (), none),
        Row("of a message beyond a clock reading, ns", "generator", (), Limit(25, at_most=True)),
    ]
