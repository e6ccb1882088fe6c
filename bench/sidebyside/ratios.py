"""From paired figures to a ratio with its interval and a verdict. Pure."""

from dataclasses import dataclass
from math import comb
from typing import Optional, Sequence

CONFIDENCE = 0.95


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values: Sequence[float]) -> Optional[tuple[float, float]]:
    """The narrowest symmetric pair of order statistics that covers the true median with 95 %.

    Of n independent values, the number below the median is binomial(n, 1/2): the pair (k-th
    smallest, k-th largest) misses with probability 2 P(B < k). No distribution is assumed. Below
    6 values even the extremes miss too often: None.
    """
    n = len(values)
    ordered = sorted(values)
    rank = 0  # the largest k with 2 P(B <= k - 1) <= 5 %
    below = 0.0
    for k in range(1, n // 2 + 1):
        below += comb(n, k - 1) / 2**n
        if 2 * below > 1 - CONFIDENCE:
            break
        rank = k
    if rank == 0:
        return None
    return ordered[rank - 1], ordered[n - rank]


@dataclass(frozen=True)
class Limit:
    """What a row promises.

    `by_interval`: held when the 95 % interval reaches the allowed side, i.e. when the data do not
    show that the promise is broken. Otherwise the median itself must be on the allowed side.
    """

    value: float
    at_most: bool
    by_interval: bool = False

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.value:.2f}"

    def allows(self, value: float) -> bool:
        return value <= self.value if self.at_most else value >= self.value


@dataclass(frozen=True)
class Spread:
    """What the rounds say."""

    median: float
    least: float
    most: float
    interval: Optional[tuple[float, float]]
    rounds: int


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values), median_interval(values), len(values))


def verdict(limit: Limit, seen: Spread) -> str:
    """`held` or `not held`; with `?` where the interval has values on both sides of the limit."""
    if limit.by_interval:
        if seen.interval is None:
            return "too few rounds"
        held = any(limit.allows(end) for end in seen.interval)
    else:
        held = limit.allows(seen.median)
    ends = seen.interval or (seen.least, seen.most)
    unsure = len({limit.allows(end) for end in ends}) == 2
    return ("held" if held else "not held") + ("?" if unsure else "")


def paired(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """Ratios of the rounds in which both were measured, in the order of the rounds."""
    return [ours[r] / theirs[r] for r in sorted(ours.keys() & theirs.keys()) if theirs[r] > 0]
