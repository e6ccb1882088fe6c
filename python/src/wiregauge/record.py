"""``record.json``: what was measured, and the figures with their errors.

``docs/record.md`` of wiregauge describes every field; those without an attribute here are in
``raw``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "wiregauge.record"
VERSIONS = (1, 2, 3)


class RecordError(ValueError):
    """A file is no record, or has not what was asked for."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of 95 %. An end that the samples cannot give is infinite."""

    low: float
    high: float


@dataclass(frozen=True)
class Quantile:
    """A quantile of a typical round. Its value is None where there are too few samples.

    basis says how it follows from the rounds: their geometric_mean, arithmetic_mean or median,
    pooled (of all samples together, by nearest rank) or one_round.
    """

    p: float
    value: float | None
    interval: Interval | None
    basis: str
    effective_n: float | None


@dataclass(frozen=True)
class Figure:
    """The distribution of a metric, without the warm-up, in nanoseconds.

    A lost message counts as infinite. The quantiles and the mean are those of a typical round;
    count, extremes and sd are of all samples. mean_interval is None where the record has none.
    """

    metric: str
    unit: str
    count: int
    lost: int
    min: float | None
    max: float | None
    max_finite: float | None
    mean: float | None
    mean_interval: Interval | None
    sd: float | None
    quantiles: tuple[Quantile, ...]
    clock_bound_ns: float | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def quantile(self, p: float) -> Quantile:
        """The quantile of this p, one of those in the record."""
        for quantile in self.quantiles:
            if quantile.p == p:
                return quantile
        known = ", ".join(str(quantile.p) for quantile in self.quantiles)
        raise RecordError(f"{self.metric} has no quantile {p}: use {known}")


@dataclass(frozen=True)
class Rate:
    """The rate of a typical round, in its unit. basis is as that of a Quantile."""

    metric: str
    unit: str
    value: float | None
    interval: Interval | None
    basis: str
    rounds: tuple[float, ...]


@dataclass(frozen=True)
class RecordWarning:
    """What weakens a figure, and what to do."""

    kind: str
    severity: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class Round:
    """One repetition by new processes. ``stride``: messages that a sample stands for."""

    index: int
    position: int
    started_ns: float
    length_ns: float
    samples: int
    stride: int


@dataclass(frozen=True)
class Run:
    """One case that was measured. ``headline`` names its main figure or rate."""

    index: int
    label: str
    pattern: str
    transport: str
    wait: str
    size_bytes: int
    offered_per_s: float | None
    clients: int | None
    is_one_sided: bool
    headline: str
    complete: bool
    rounds: tuple[Round, ...]
    figures: Mapping[str, Figure]
    rates: Mapping[str, Rate]
    warnings: tuple[RecordWarning, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Record:
    """Everything that a run directory holds."""

    path: Path
    name: str
    tool: str
    host: str
    started: str
    finished: str
    complete: bool
    runs: tuple[Run, ...]
    warnings: tuple[RecordWarning, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def run(self, which: int | str) -> Run:
        """The run of a number or of a label."""
        for run in self.runs:
            if which in (run.index, run.label):
                return run
        known = ", ".join(f"{run.index} ({run.label})" for run in self.runs)
        raise RecordError(f"{self.path} has no run {which!r}: use one of {known}")

    def samples(
        self,
        *,
        run: int | str | None = None,
        metric: str | None = None,
        warmup: bool = False,
        stamps: bool = False,
        library: str | None = None,
    ) -> Any:
        """The samples as a table of ``library``: ``polars``, ``pandas`` or ``pyarrow``.

        One row is one value of ``metric`` (default: the main one of each run) with its context in
        columns, as ``wiregauge export`` writes them; with ``stamps`` one message with its raw
        timestamps. The warm-up is left out unless asked for. The default library is the first of
        the three that is installed.
        """
        from .samples import read_samples

        runs = self.runs if run is None else (self.run(run),)
        path = self.path / "samples.parquet"
        return read_samples(path, runs, metric, warmup, stamps, library)


def read(path: str | os.PathLike[str]) -> Record:
    """Reads a run directory, or its ``record.json``."""
    path = Path(path)
    file = path / "record.json" if path.is_dir() else path
    with open(file, encoding="utf-8") as opened:
        try:
            raw = json.load(opened)
        except ValueError as error:
            raise RecordError(f"{file} is not JSON: {error}") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise RecordError(f"{file} is no record of wiregauge: use a run directory")
    version = raw.get("version")
    # True and 1.0 are equal to 1.
    if type(version) is not int or version not in VERSIONS:
        allowed = ", ".join(map(str, VERSIONS))
        raise RecordError(f"{file} is of version {version!r}; this reader knows {allowed}")
    try:
        return _record(file.parent, raw)
    except KeyError as error:
        raise RecordError(f"{file} lacks what a record has: {error!r}") from error
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise RecordError(f"{file} has a value that no record has: {error}") from error


def _value(value: Any) -> float | None:
    """A number, or an infinite one as the record writes it."""
    if value is None:
        return None
    if value in ("inf", "-inf"):
        return float(value)
    # A bool is an int.
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _number(value: Any) -> float:
    found = _value(value)
    if found is None:
        raise TypeError("null is not a number")
    return found


def _interval(raw: Any) -> Interval | None:
    return None if raw is None else Interval(_number(raw["low"]), _number(raw["high"]))


def _quantile(raw: Any) -> Quantile:
    # Records that do not say it have figures of all samples.
    return Quantile(
        p=_number(raw["p"]),
        value=_value(raw["value"]),
        interval=_interval(raw["interval"]),
        basis=raw.get("basis", "pooled"),
        effective_n=_value(raw["effective_n"]),
    )


def _figure(raw: Any) -> Figure:
    summary = raw["summary"]
    return Figure(
        metric=raw["metric"],
        unit=raw["unit"],
        count=summary["count"],
        lost=summary["lost"],
        min=_value(summary["min"]),
        max=_value(summary["max"]),
        max_finite=_value(summary["max_finite"]),
        mean=_value(summary["mean"]),
        mean_interval=_interval(summary.get("mean_interval")),
        sd=_value(summary["sd"]),
        quantiles=tuple([_quantile(one) for one in summary["quantiles"]]),
        clock_bound_ns=_value(raw.get("clock_bound_ns")),
        raw=raw,
    )


def _rate(raw: Any) -> Rate:
    rate = raw["rate"]
    rounds = tuple([_number(value) for value in rate["rounds"]])
    value, interval = _value(rate["value"]), _interval(rate["interval"])
    basis = rate.get("basis", "pooled")
    return Rate(raw["metric"], raw["unit"], value, interval, basis, rounds)


def _warnings(raw: Any) -> tuple[RecordWarning, ...]:
    """In records of version 1 a doubt, which is a sentence."""
    old = [
        RecordWarning(doubt["kind"], "warning", doubt["text"], "")
        for doubt in raw.get("doubts", ())
    ]
    new = [
        RecordWarning(one["kind"], one["severity"], one["sentence"], one["advice"])
        for one in raw.get("warnings", ())
    ]
    return (*old, *new)


def _round(raw: Any) -> Round:
    names = ("index", "position", "started_ns", "length_ns", "samples", "stride")
    return Round(**{name: raw[name] for name in names})


def _case_of_version_1(case: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """Pattern and axes of a case: one flat structure was that of all patterns."""
    pattern, schedule, axes = case["pattern"], case["schedule"], {}
    if pattern == "oneway" and case.get("stream"):
        pattern = "stream"
    if pattern == "load" and case.get("rpc"):
        pattern = "rpc"
    if isinstance(schedule, dict):
        if len(schedule) != 1:
            raise ValueError(f"the schedule {schedule!r} is not one kind with its rate")
        [kind] = schedule.values()
        axes["rate"] = kind["rate"]
    elif (case.get("load") or {}).get("clients"):
        axes["clients"] = case["load"]["clients"]
    return pattern, axes


def _run(raw: Any) -> Run:
    case = raw["case"]
    pattern, axes = (
        (case["pattern"], case["axes"]) if "axes" in case else _case_of_version_1(case)
    )
    figures = {figure.metric: figure for figure in map(_figure, raw["figures"])}
    rates = {rate.metric: rate for rate in map(_rate, raw["rates"])}
    main = rates if pattern == "bandwidth" else figures
    clients = axes.get("clients")
    return Run(
        index=raw["index"],
        label=raw["label"],
        pattern=pattern,
        transport=case["transport"],
        wait=case["wait"],
        size_bytes=case["size"],
        offered_per_s=axes.get("rate"),
        clients=None if clients is None else int(clients),
        is_one_sided=case.get("is_one_sided", False),
        headline=raw.get("headline", next(iter(main), "")),
        complete=raw["complete"],
        rounds=tuple([_round(one) for one in raw["rounds"]]),
        figures=figures,
        rates=rates,
        warnings=_warnings(raw),
        raw=raw,
    )


def _record(path: Path, raw: dict[str, Any]) -> Record:
    return Record(
        path=path,
        name=raw["plan"]["name"],
        tool=raw["tool"],
        host=raw["environment"]["host"],
        started=raw["started"],
        finished=raw["finished"],
        complete=raw["complete"],
        # A list comprehension: a StopIteration within would end a tuple of map() early.
        runs=tuple([_run(one) for one in raw["runs"]]),
        warnings=_warnings(raw),
        raw=raw,
    )
