"""Which figure is held against which, and what it may be."""

from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Optional

from .ratios import Limit, Spread, median, paired, spread, verdict
from .rounds import Measured


@dataclass(frozen=True)
class Row:
    """A promise. Without `against`, the limit is of the figure itself; with several, the best of
    them counts: the one with the best median over all rounds."""

    what: str
    ours: str
    against: tuple[str, ...]
    limit: Limit


@dataclass(frozen=True)
class Result:
    """A row with what was found."""

    row: Row
    against: str
    ours: Optional[float]
    theirs: Optional[float]
    # Of the ratio, or of the figure itself where nothing is held against it.
    seen: Optional[Spread]
    values: list[float]
    verdict: str
    # Why nothing, or not all of it, was measured.
    reason: str = ""


def every_row() -> list[Row]:
    rows = []
    for transport in ("tcp", "udp", "unix", "unixgram"):
        for wait in ("busy", "block"):
            rows.append(
                Row(
                    f"{transport} {wait} half_rtt p50 64 B",
                    f"wiregauge {transport} {wait}",
                    (f"bare {transport} {wait}",),
                    Limit(1.02, at_most=True),
                )
            )
    for transport in ("tcp", "udp"):
        for wait in ("busy", "block"):
            best = [f"sockperf {transport} {wait}"]
            if wait == "block":
                best.append(f"qperf {transport} {wait}")
            rows.append(
                Row(
                    f"{transport} {wait} half_rtt p50 64 B",
                    f"wiregauge {transport} {wait}",
                    tuple(best),
                    Limit(1.0, at_most=True, by_interval=True),
                )
            )
    shm = "shm busy half_rtt p50 8 B"
    ours = "wiregauge shm busy"
    return rows + [
        Row(shm, ours, ("bare shm busy",), Limit(1.10, at_most=True)),
        Row(shm, ours, ("ucx_perftest shm busy",), Limit(0.5, at_most=True)),
        Row(shm, ours, ("fi_pingpong shm busy",), Limit(0.5, at_most=True)),
        Row(
            "tcp bandwidth 128 KiB",
            "wiregauge tcp bandwidth",
            ("iperf3 tcp bandwidth", "qperf tcp bandwidth"),
            Limit(1.0, at_most=False, by_interval=True),
        ),
        Row(
            "shm message rate 8 B",
            "wiregauge shm message rate",
            ("bare shm message rate",),
            Limit(0.8, at_most=False),
        ),
        Row(
            "shm message rate 8 B",
            "wiregauge shm message rate",
            ("bare shm short cells",),
            Limit(0.5, at_most=False),
        ),
        Row("recording a sample, ns", "wiregauge recording", (), Limit(10, at_most=True)),
        Row("figures of 10^7 samples, s", "stats time", (), Limit(1, at_most=True)),
        Row("their memory / the samples", "stats memory", (), Limit(2, at_most=True)),
        Row("clean release build, min", "clean build", (), Limit(3, at_most=True)),
        Row("distributed binary, MB", "binary size", (), Limit(12, at_most=True)),
    ]


def chosen(rows: list[Row], pattern: Optional[str]) -> list[Row]:
    """Rows whose words hold the pattern (`*` and `?` as in file names)."""
    if not pattern:
        return rows
    return [r for r in rows if fnmatch(" ".join((r.what, r.ours, *r.against)), f"*{pattern}*")]


def judge(row: Row, measured: dict[str, Measured]) -> Result:
    """A row's verdict from what was measured."""
    ours = measured.get(row.ours, Measured())
    if not ours.figures:
        return _nothing(row, ours.reason)
    if not row.against:
        values = list(ours.figures.values())
        seen = spread(values)
        return Result(row, "", seen.median, None, seen, values, verdict(row.limit, seen))
    there = [name for name in row.against if measured.get(name, Measured()).figures]
    if not there:
        reason = measured.get(row.against[0], Measured()).reason
        return _nothing(row, reason)
    pick = min if row.limit.at_most else max
    best = pick(there, key=lambda name: median(list(measured[name].figures.values())))
    values = paired(ours.figures, measured[best].figures)
    if not values:
        return _nothing(row, "no round has both figures")
    seen = spread(values)
    absent = [name for name in row.against if name not in there]
    reason = ""
    if absent:
        why = measured.get(absent[0], Measured()).reason
        reason = f"without {', '.join(absent)}: {why}"
    return Result(
        row,
        best,
        median(list(ours.figures.values())),
        median(list(measured[best].figures.values())),
        seen,
        values,
        verdict(row.limit, seen),
        reason,
    )


def _nothing(row: Row, reason: str) -> Result:
    return Result(row, " | ".join(row.against), None, None, None, [], "not measured", reason)
