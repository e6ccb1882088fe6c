"""Response time against offered load, up to the knee.

    python load_curve.py RUN_DIRECTORY [PLOT.png]

RUN_DIRECTORY is one of `wiregauge load`. Prints a row for each rate and, where matplotlib is
installed, draws the median and p99 with their intervals.
"""

import math
import sys
from typing import Any

import wiregauge


def points(record: wiregauge.Record) -> list[wiregauge.Run]:
    """The open loops of the record, by rising rate."""
    runs = [run for run in record.runs if run.offered_per_s and "response" in run.figures]
    return sorted(runs, key=lambda run: (run.transport, run.wait, run.offered_per_s or 0.0))


def shown(quantile: wiregauge.Quantile) -> str:
    """A quantile in us with its interval."""
    if quantile.value is None:
        return "n too small"
    interval = quantile.interval
    ends = f" ({interval.low / 1e3:.1f}..{interval.high / 1e3:.1f})" if interval else ""
    return f"{quantile.value / 1e3:.1f}{ends}"


def knees(record: wiregauge.Record) -> dict[int, str]:
    """How far the knee is known, by the run with the highest ratio of rate to response."""

    def known(knee: dict[str, Any]) -> str:
        low, high = knee.get("alike") or [knee["offered"]] * 2
        ends = {"at_least": f"at least {low:.0f}", "at_most": f"at most {high:.0f}"}
        return ends.get(knee["lies"], f"{knee['lies']} {low:.0f}..{high:.0f}")

    found = [(run.raw.get("details") or {}).get("knee") for run in record.runs]
    return {knee["run"]: known(knee) for knee in found if knee}


def show(record: wiregauge.Record) -> None:
    """Prints a row for each rate."""
    at = knees(record)
    heads = f"{'offered/s':>10}{'achieved/s':>12}{'p50 us':>28}{'p99 us':>28}"
    print(f"{'case':<12}{heads}  knee")
    for run in points(record):
        achieved = run.rates["achieved_rate"].value or math.nan
        response = run.figures["response"]
        case, knee = f"{run.transport} {run.wait}", at.get(run.index, "")
        p50, p99 = shown(response.quantile(0.5)), shown(response.quantile(0.99))
        print(f"{case:<12}{run.offered_per_s:>10.0f}{achieved:>12.0f}{p50:>28}{p99:>28}  {knee}")


def plot(record: wiregauge.Record, path: str) -> None:
    """Draws quantiles of the response against the offered rate."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install matplotlib")
        return
    figure, axes = pyplot.subplots()
    for case in sorted({(run.transport, run.wait) for run in points(record)}):
        curve = [run for run in points(record) if (run.transport, run.wait) == case]
        for p in (0.5, 0.99):
            known = [(run, run.figures["response"].quantile(p)) for run in curve]
            known = [(run, q) for run, q in known if q.value and math.isfinite(q.value)]
            rates = [run.offered_per_s for run, _ in known]
            values = [(q.value or math.nan) / 1e3 for _, q in known]
            ends = [(q.interval.low, q.interval.high) if q.interval else (0, 0) for _, q in known]
            below = [max(v - low / 1e3, 0) for v, (low, _) in zip(values, ends)]
            above = [max(high / 1e3 - v, 0) for v, (_, high) in zip(values, ends)]
            above = [error if math.isfinite(error) else 0 for error in above]
            label = f"{' '.join(case)} p{p * 100:g}"
            axes.errorbar(rates, values, yerr=[below, above], capsize=3, label=label)
    axes.set(xscale="log", yscale="log", xlabel="offered requests/s", ylabel="response, us")
    axes.legend()
    figure.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    measured = wiregauge.read(sys.argv[1])
    show(measured)
    plot(measured, sys.argv[2] if len(sys.argv) > 2 else "load_curve.png")
