"""What the commands in bench/ have in common: their options, and the table at the end."""

import argparse
import sys
from pathlib import Path
from typing import Optional

from . import build, report, rows
from .rounds import Measured
from .subjects import Subject

# With fewer than 6 rounds no order statistic covers the median with 95 %.
ROUNDS = 7
# Others may take so much of the CPUs before a warning is printed.
MOST_ELSEWHERE = 0.05


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parser(about: str, patterns: str) -> argparse.ArgumentParser:
    """The options that all have; `patterns` are examples of rows."""
    made = argparse.ArgumentParser(description=about)
    add = made.add_argument
    add("--rounds", type=int, default=ROUNDS, help=f"how many (default {ROUNDS}; 6 at least)")
    add("--rows", metavar="PATTERN", help=f"rows that hold it, e.g. {patterns}")
    add("--quick", action="store_true", help="a tenth of the messages: to see that it works")
    add("--cpus", default="0,1", help="of the client and of the server (default 0,1)")
    add("--seed", type=int, default=1, help="of the order (default 1)")
    add("--binary", type=Path, help="a wiregauge that is built already")
    add("--out", type=Path, help="folder for the JSON (default bench/results)")
    return made


def parsed(made: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, checked; the two CPUs as `client` and `server`."""
    options = made.parse_args()
    try:
        options.client, options.server = (int(cpu) for cpu in options.cpus.split(","))
    except ValueError:
        made.error(f"--cpus takes two numbers as in 0,1, not '{options.cpus}'")
    if options.rounds < 1:
        made.error("--rounds takes 1 or more")
    return options


def chosen(
    options: argparse.Namespace, every_row: list[rows.Row], known: dict[str, Subject]
) -> tuple[list[rows.Row], list[Subject], set[str]]:
    """The rows that are asked for, the subjects that they need, and those subjects' names."""
    found = rows.chosen(every_row, options.rows)
    wanted = {name for row in found for name in (row.ours, *row.against)}
    return found, [subject for name, subject in known.items() if name in wanted], wanted


def begin() -> dict:
    """What is kept of the machine before the first round: later its load is the bench's own."""
    return {"started": report.now(), "environment": report.environment(build.ROOT)}


def results(options: argparse.Namespace) -> Path:
    """The folder for the JSON."""
    return options.out or build.ROOT / "bench" / "results"


def words_inside(options: argparse.Namespace, binary: Path) -> list[str]:
    """The options for the same command in the testbed: from what was understood, since an option
    may have been typed shorter than it is."""
    words = ["--emulated", "--binary", str(binary), "--out", "/out"]
    for name in ("rounds", "rows", "cpus", "seed", "device"):
        value = getattr(options, name)
        words += [f"--{name}", str(value)] if value is not None else []
    flags = [name for name in ("quick", "no_stall") if getattr(options, name)]
    return words + ["--" + name.replace("_", "-") for name in flags]


def wiregauge(options: argparse.Namespace) -> Path:
    return options.binary.resolve() if options.binary else build.wiregauge()


def conclude(
    options: argparse.Namespace,
    judged: list[rows.Result],
    measured: dict[str, Measured],
    known: dict[str, Subject],
    about: dict,
    more: Optional[str] = None,
) -> int:
    """Writes the JSON, prints the table and `more`; the exit code."""
    kept = ("rounds", "rows", "quick", "cpus", "seed")
    about = {
        **about,
        "finished": report.now(),
        "options": {name: getattr(options, name) for name in kept},
    }
    text = report.as_json(judged, measured, known, about)
    path = report.write(text, results(options), about["started"])
    print(report.table(judged, known))
    if more:
        print(f"\n{more}")
    elsewhere = max(about["busy_elsewhere"], default=0)
    if elsewhere > MOST_ELSEWHERE:
        print(f"warning: other processes used up to {elsewhere:.0%} of the CPUs before a round")
    tell(f"written to {path}")
    return 1 if any(result.verdict.startswith("not held") for result in judged) else 0
