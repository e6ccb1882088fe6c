"""The distribution of each run's latency: which transport is faster, and for how many messages.

    python cdf.py RUN_DIRECTORY [PLOT.png]

Prints a table and, where matplotlib is installed, draws the share of slower messages.
"""

import math
import sys

import wiregauge

QUANTILES = (0.1, 0.5, 0.9, 0.99, 0.999)


def nearest_rank(rising: list[float], p: float) -> float:
    """The sample of rank ceil(p n), as wiregauge has it: nothing is interpolated."""
    return rising[max(math.ceil(p * len(rising)) - 1, 0)]


def show(record: wiregauge.Record) -> dict[str, list[float]]:
    """Prints the quantiles of every run and gives its samples in us, rising."""
    samples = record.samples()
    names = ("case", "metric", "value")
    cases, metrics, values = (wiregauge.column(samples, name) for name in names)
    runs: dict[str, list[float]] = {}
    for case, metric, value in zip(cases, metrics, values):
        runs.setdefault(f"{case}: {metric}", []).append(value / 1e3)
    heads = "".join(f"{f'p{p * 100:g}':>10}" for p in QUANTILES)
    print(f"{'us':<40}{'n':>9}{heads}{'max':>10}")
    for name, values in runs.items():
        values.sort()
        shown = "".join(f"{nearest_rank(values, p):>10.3f}" for p in QUANTILES)
        print(f"{name:<40}{len(values):>9}{shown}{values[-1]:>10.3f}")
    return runs


def plot(runs: dict[str, list[float]], path: str) -> None:
    """Draws the share of slower messages against the latency, both axes logarithmic."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install matplotlib")
        return
    figure, axes = pyplot.subplots()
    for name, values in runs.items():
        finite = [value for value in values if math.isfinite(value)]
        shares = [1 - rank / len(values) for rank in range(len(finite))]
        axes.step(finite, shares, where="post", label=name)
    axes.set(xscale="log", yscale="log", xlabel="us", ylabel="share of slower messages")
    axes.legend()
    figure.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    plot(show(wiregauge.read(sys.argv[1])), sys.argv[2] if len(sys.argv) > 2 else "cdf.png")
