"""The table for people, the JSON for everything else."""

import json
import math
import os
import platform
import subprocess
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from .ratios import median
from .rounds import Measured
from .rows import Result
from .subjects import PACKAGES, Subject

HEADINGS = ("what", "against", "ours", "theirs", "ratio", "least", "most", "95 % interval")


def short(value: Optional[float]) -> str:
    """Four digits that count, without an exponent below a million."""
    if value is None:
        return ""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.4g}M"
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def line_of(result: Result, subjects: dict[str, Subject]) -> tuple[str, ...]:
    against = result.against
    if against in subjects and subjects[against].figure == "mean" and "p50" in result.row.what:
        against += " (mean)"
    seen = result.seen
    cells = [result.row.what, against, short(result.ours), short(result.theirs)]
    if seen is None:
        cells += ["", "", "", ""]
    elif result.theirs is None:
        cells += ["", short(seen.least), short(seen.most), _interval(seen.interval, short)]
    else:
        three = "{:.3f}".format
        cells += [three(seen.median), three(seen.least), three(seen.most)]
        cells.append(_interval(seen.interval, three))
    return (*cells, str(result.row.limit), result.verdict)


def _interval(interval, tell) -> str:
    return f"{tell(interval[0])} .. {tell(interval[1])}" if interval else "too few"


def table(results: list[Result], subjects: dict[str, Subject]) -> str:
    """Reasons for which a row was not measured stand below it, once each."""
    rows = [(*HEADINGS, "limit", "verdict")]
    reasons: list[str] = []
    for result in results:
        *cells, told = line_of(result, subjects)
        if result.reason:
            if result.reason not in reasons:
                reasons.append(result.reason)
            told = f"{told} ({reasons.index(result.reason) + 1})"
        rows.append((*cells, told))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    lines += [f"({number}) {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines)


def switches(results: list[Result], measured: dict[str, Measured]) -> Optional[str]:
    """Of the rows whose subjects sleep, the voluntary context switches of a message."""
    lines = []
    for result in results:
        ours, theirs = (
            median(list(measured.get(name, Measured()).switches.values()) or [math.nan])
            for name in (result.row.ours, result.against)
        )
        lines.append(f"{result.row.what:32} {ours:8.2f} {theirs:8.2f}")
    head = "Voluntary context switches for each message, both ends, set-up included"
    return "\n".join([f"{head}\n{'what':32} {'ours':>8} {'theirs':>8}", *lines]) if lines else None


def _read(path: str) -> Optional[str]:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _said(*command: str) -> Optional[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def environment(root: Path) -> dict:
    """What the figures depend on."""
    cpuinfo = (_read("/proc/cpuinfo") or "").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in cpuinfo if "model name" in line), None)
    governors = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    packages = sorted({*PACKAGES.values(), "libucx0", "libfabric1"})
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "governors": sorted({_read(str(path)) or "" for path in governors}),
        "clocksource": _read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "smt": _read("/sys/devices/system/cpu/smt/active"),
        "hypervisor": any("hypervisor" in line for line in cpuinfo if line.startswith("flags")),
        "transparent_hugepages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "tcp_congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "tcp_rmem": _read("/proc/sys/net/ipv4/tcp_rmem"),
        "tcp_wmem": _read("/proc/sys/net/ipv4/tcp_wmem"),
        "busy_poll": _read("/proc/sys/net/core/busy_poll"),
        "load_average": os.getloadavg(),
        "rustc": _said("rustc", "--version"),
        "cc": (_said("cc", "--version") or "").split("\n")[0],
        "packages": {
            name: _said("dpkg-query", "-W", "-f", "${Version}", name) for name in packages
        },
        "commit": _said("git", "-C", str(root), "rev-parse", "HEAD"),
        "changed": bool(_said("git", "-C", str(root), "status", "--porcelain")),
    }


def as_json(
    results: list[Result],
    measured: dict[str, Measured],
    subjects: dict[str, Subject],
    about: dict,
) -> str:
    value = {
        "schema": "wiregauge.sidebyside",
        "version": 1,
        **about,
        "rows": [
            {
                "what": result.row.what,
                "ours": result.row.ours,
                "candidates": result.row.against,
                "against": result.against,
                "ours_median": result.ours,
                "theirs_median": result.theirs,
                "limit": asdict(result.row.limit),
                "seen": asdict(result.seen) if result.seen else None,
                "values": result.values,
                "verdict": result.verdict,
                "reason": result.reason,
            }
            for result in results
        ],
        "subjects": {
            name: {
                "figures": into.figures,
                "failures": into.failures,
                "switches_per_message": into.switches,
                **(
                    {
                        "unit": subjects[name].unit,
                        "figure": subjects[name].figure,
                        "server": subjects[name].server,
                        "client": subjects[name].client,
                        "environment": subjects[name].environment,
                    }
                    if name in subjects
                    else {}
                ),
            }
            for name, into in measured.items()
        },
    }
    return json.dumps(value, indent=1)


def markdown(rows: list[dict]) -> str:
    """The measured rows of the JSON as a table: a ratio or a cost, with its interval."""
    lines = [
        "| what | compared with | ratio | 95 % interval | limit | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["seen"] is None:
            continue
        is_cost = row["theirs_median"] is None
        value = row["ours_median"] if is_cost else row["seen"]["median"]
        interval = row["seen"]["interval"]
        cells = [
            row["what"],
            "" if is_cost else row["against"],
            f"{value:.3g}",
            "{:.3g} .. {:.3g}".format(*interval) if interval else "",
            f"{'<=' if row['limit']['at_most'] else '>='} {row['limit']['value']:.2f}",
            row["verdict"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def in_document(text: str, table: str, mark: str) -> str:
    """The document with this table instead of the first one behind the mark, such as
    `<!-- peers -->`."""
    before, mark, rest = text.partition(f"<!-- {mark} -->\n")
    head, begin, old = rest.partition("| what |")
    _, end, after = old.partition("\n\n")
    if not (mark and begin and end):
        raise ValueError("the page has no such mark with a table behind it")
    return before + mark + head + table + end[1:] + after


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(text: str, directory: Path, started: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{started.replace(':', '')}.json"
    path.write_text(text + "\n", encoding="utf-8")
    return path
