"""All subjects, interleaved: each once a round, in an order drawn anew for each round."""

import random
import time
from dataclasses import dataclass, field
from typing import Callable, Iterable

from .process import NotMeasured, Run
from .subjects import Subject

# A subject that never worked is not tried a third time.
MOST_FAILURES = 2


@dataclass
class Measured:
    """What came out of one subject."""

    figures: dict[int, float] = field(default_factory=dict)  # by round
    failures: dict[int, str] = field(default_factory=dict)  # by round
    # Voluntary context switches for each message, by round.
    switches: dict[int, float] = field(default_factory=dict)

    @property
    def hopeless(self) -> bool:
        return not self.figures and len(self.failures) >= MOST_FAILURES

    @property
    def reason(self) -> str:
        return list(self.failures.values())[-1] if self.failures else "it was not run"


def order(subjects: Iterable[Subject], seed: int, number: int) -> list[Subject]:
    """The order of one round: groups shuffled, and the subjects within each. Those of a group stay
    together, since their figures are divided by one another."""
    draw = random.Random(f"{seed}/{number}")
    groups: dict[str, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(subject.group, []).append(subject)
    names = sorted(groups)
    draw.shuffle(names)
    result = []
    for name in names:
        members = sorted(groups[name], key=lambda s: s.name)
        draw.shuffle(members)
        result += members
    return result


def busy_elsewhere(seconds: float = 0.3, table: str = "/proc/stat") -> float:
    """The share of all CPUs' time that others take while this program sleeps."""

    def read() -> tuple[int, int]:
        with open(table, encoding="ascii") as lines:
            fields = [int(x) for x in lines.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]  # idle, iowait

    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def run(
    subjects: list[Subject],
    count: int,
    seed: int,
    measure: Callable[[Subject], Run],
    tell: Callable[[str], None],
) -> tuple[dict[str, Measured], list[float]]:
    """All rounds; by subject what was measured, and by round how busy the machine was before."""
    measured = {subject.name: Measured() for subject in subjects}
    elsewhere = []
    for number in range(count):
        elsewhere.append(busy_elsewhere())
        tell(f"round {number + 1} of {count}; others take {elsewhere[-1]:.0%} of the CPUs")
        for subject in order(subjects, seed, number):
            into = measured[subject.name]
            if into.hopeless:
                continue
            try:
                run = measure(subject)
                into.figures[number], into.switches[number] = run.figure, run.switches
                tell(f"  {subject.name:28} {into.figures[number]:.6g} {subject.unit}")
            except NotMeasured as error:
                into.failures[number] = str(error)
                tell(f"  {subject.name:28} not measured: {error}")
    return measured, elsewhere
