"""Latency over time, round by round: do rounds agree, and when was it slow?

    python over_time.py RUN_DIRECTORY [RUN] [PLOT.png]

Prints ten pieces of each round with their median and slowest message and, where matplotlib is
installed, draws every message. RUN is the number or the label of a run, 0 if none is given.
"""

import math
import sys
from collections import defaultdict

import wiregauge

PIECES = 10


def show(run: wiregauge.Run, rows: list[tuple[int, float, float]]) -> None:
    """Prints the median and the maximum of each piece of each round."""
    rounds: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for number, time, value in rows:
        rounds[number].append((time, value))
    print(f"{run.label}: {run.headline} in us, {PIECES} pieces of each round in the order of time")
    print(f"{'round':>5} {'figure':<7}" + "".join(f"{piece:>10}" for piece in range(PIECES)))
    for number, pairs in sorted(rounds.items()):
        pairs.sort()
        cuts = [len(pairs) * piece // PIECES for piece in range(PIECES + 1)]
        pieces = [sorted(v for _, v in pairs[a:b]) for a, b in zip(cuts, cuts[1:]) if b > a]
        medians = "".join(f"{piece[(len(piece) - 1) // 2]:>10.3f}" for piece in pieces)
        longest = "".join(f"{piece[-1]:>10.3f}" for piece in pieces)
        print(f"{number:>5} {'p50':<7}{medians}\n{'':>5} {'max':<7}{longest}")


def plot(run: wiregauge.Run, rows: list[tuple[int, float, float]], path: str) -> None:
    """Draws every message that arrived, a colour for each round."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install matplotlib")
        return
    figure, axes = pyplot.subplots()
    for number in sorted({row[0] for row in rows}):
        points = [(time, value) for n, time, value in rows if n == number and math.isfinite(value)]
        axes.plot(*zip(*points), ".", markersize=2, label=f"round {number}")
    axes.set(yscale="log", xlabel="s since the start", ylabel=f"{run.headline}, us")
    axes.set_title(run.label)
    axes.legend()
    figure.savefig(path)
    print(f"wrote {path}")


def main() -> None:
    record = wiregauge.read(sys.argv[1])
    which = sys.argv[2] if len(sys.argv) > 2 else "0"
    run = record.run(int(which) if which.isdigit() else which)
    samples = record.samples(run=run.index)
    rounds, times, values = (wiregauge.column(samples, n) for n in ("round", "time_ns", "value"))
    rows = [(n, time / 1e9, value / 1e3) for n, time, value in zip(rounds, times, values)]
    show(run, rows)
    plot(run, rows, sys.argv[3] if len(sys.argv) > 3 else "over_time.png")


if __name__ == "__main__":
    main()
