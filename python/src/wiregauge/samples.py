"""``samples.parquet`` as a table: one row a measured value, with its context in columns.

The columns are those of ``wiregauge export``. pyarrow and polars read the file, each by itself;
pandas gets the table of pyarrow.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from .record import RecordError, Run

CASE = ("run", "case", "pattern", "transport", "wait", "size_bytes", "offered_per_s", "clients")
MESSAGE = ("round", "role", "thread", "sequence", "messages")
VALUE = ("time_ns", "metric", "value", "unit")
STAMPS = ("intended_ns", "submit_ns", "send_ns", "receive_ns", "complete_ns")
FATE = ("warmup", "outcome", "flags")
#: The columns of a table of values.
COLUMNS = CASE + MESSAGE + VALUE + FATE
#: The columns of a table of messages.
STAMP_COLUMNS = CASE + MESSAGE + STAMPS + FATE

LIBRARIES = ("polars", "pandas", "pyarrow")
WARMUP, LOST, REVERSE, MISSED, UNSENT, UNFINISHED = 1, 2, 64, 128, 256, 512
#: Operations of all ranks that a rank entered late, or that were to overlap with computing.
NOT_COLLECTIVE = 1024 | 2048
OUTCOMES = ((MISSED, "missed"), (UNSENT, "unsent"), (UNFINISHED, "unfinished"), (LOST, "lost"))

#: First stamp, last stamp, and whether a message that never arrived is infinite.
SPANS = {
    "half_rtt": ("submit_ns", "receive_ns", True),
    "rtt": ("submit_ns", "receive_ns", True),
    "one_way": ("submit_ns", "receive_ns", True),
    "service": ("submit_ns", "receive_ns", True),
    "jitter": ("submit_ns", "receive_ns", True),
    "response": ("intended_ns", "receive_ns", True),
    "transfer": ("send_ns", "receive_ns", True),
    "collective": ("submit_ns", "receive_ns", True),
    "after_barrier": ("submit_ns", "receive_ns", True),
    "lateness": ("intended_ns", "submit_ns", False),
    "post": ("submit_ns", "complete_ns", False),
    "complete": ("submit_ns", "complete_ns", False),
}
#: Of these the sender has both stamps.
OF_SENDER = ("lateness", "post", "complete")
INTERARRIVAL = "interarrival"


def column(samples: Any, name: str) -> list[Any]:
    """A column of a table of any of the libraries, as a list."""
    values = samples[name]
    for method in ("to_pylist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    raise TypeError(f"{type(samples).__name__} is no table of {', '.join(LIBRARIES)}")


def main_metric(run: Run) -> str:
    """What a row of a run is where nothing else is asked for."""
    return INTERARRIVAL if run.headline in run.rates else run.headline


def metrics(run: Run) -> list[str]:
    """What the samples of a run show, the main metric first. ``short`` is the response of some."""
    found = [main_metric(run), *run.figures]
    return [name for name in dict.fromkeys(found) if name in SPANS or name == INTERARRIVAL]


def has_installed(name: str) -> bool:
    """Whether a library is there, with what it needs to read the file."""
    needs = ("pandas", "pyarrow") if name == "pandas" else (name,)
    return all(importlib.util.find_spec(module) is not None for module in needs)


def read_samples(
    path: Path,
    runs: Sequence[Run],
    metric: str | None,
    warmup: bool,
    stamps: bool,
    library: str | None,
) -> Any:
    """Reads the samples of runs; ``Record.samples`` describes the arguments."""
    if library is None:
        library = next(filter(has_installed, LIBRARIES), None)
    if library is None or (library in LIBRARIES and not has_installed(library)):
        missing = library or "pyarrow"
        raise ImportError(f"samples need {missing}: pip install 'wiregauge[{missing}]'")
    if library not in LIBRARIES:
        raise ValueError(f"unknown library {library!r}: use {', '.join(LIBRARIES)}")
    if stamps and metric is not None:
        raise ValueError("stamps are of no metric: use one of both")
    if metric is not None:
        runs = [run for run in runs if metric in metrics(run)]
        if not runs:
            raise RecordError(f"no run has the metric {metric!r}: use Run.headline or Run.figures")
    engine = _polars(path) if library == "polars" else _pyarrow(path)
    parts = [
        engine.table(run, None if stamps else metric or main_metric(run), warmup) for run in runs
    ]
    table = engine.whole(parts, STAMP_COLUMNS if stamps else COLUMNS)
    return table.to_pandas() if library == "pandas" else table


class _Engine(Protocol):
    """What reads the file."""

    def table(self, run: Run, metric: str | None, warmup: bool) -> Any: ...

    def whole(self, parts: Iterable[Any], columns: Sequence[str]) -> Any: ...


def _context(run: Run) -> dict[str, Any]:
    """What all rows of a run have in common."""
    return {
        "case": run.label,
        "pattern": run.pattern,
        "transport": run.transport,
        "wait": run.wait,
        "offered_per_s": run.offered_per_s,
        "clients": run.clients,
        "unit": "ns",
    }


def _is_first_role_server(run: Run, metric: str | None) -> bool:
    """Whether the server took the last stamp of what went from client to server."""
    is_received = metric not in OF_SENDER
    is_one_way = "one_way" in metrics(run) or run.headline in run.rates
    return is_received and is_one_way and not run.is_one_sided


def _polars(path: Path) -> _Engine:
    import polars as pl

    class Polars:
        def __init__(self) -> None:
            self.rows = pl.read_parquet(path)

        def table(self, run: Run, metric: str | None, warmup: bool) -> Any:
            rows = self.rows.filter(pl.col("run") == run.index)

            def flag(bit: int) -> Any:
                return (pl.col("flags").cast(pl.Int64) & bit) != 0

            role = ("server", "client") if _is_first_role_server(run, metric) else (
                "client", "server")
            outcome = pl.lit("received")
            for bit, name in reversed(OUTCOMES):
                outcome = pl.when(flag(bit)).then(pl.lit(name)).otherwise(outcome)
            strides = {round.index: max(round.stride, 1) for round in run.rounds}
            rows = rows.with_columns(
                flag(WARMUP).alias("warmup"),
                outcome.alias("outcome"),
                pl.when(flag(REVERSE)).then(pl.lit(role[1])).otherwise(pl.lit(role[0]))
                .alias("role"),
                pl.col("size").cast(pl.Int64).alias("size_bytes"),
                pl.col("round").replace_strict(strides, default=1, return_dtype=pl.Int64)
                .alias("messages"),
                pl.lit(metric).alias("metric"),
            )
            kinds = {"offered_per_s": pl.Float64, "clients": pl.Int64}
            rows = rows.with_columns(
                pl.lit(value, dtype=kinds.get(name, pl.String)).alias(name)
                for name, value in _context(run).items()
            )
            if metric is not None:
                rows = self.values(rows, metric, flag)
            return rows if warmup else rows.filter(~pl.col("warmup"))

        def values(self, rows: Any, metric: str, flag: Any) -> Any:
            if metric == INTERARRIVAL:
                rows = rows.filter(pl.col("receive_ns").is_not_null())
                flow = ["round", "thread", flag(REVERSE)]
                rows = rows.with_columns(pl.col("receive_ns").diff().over(flow).alias("value"))
                rows = rows.filter(pl.col("value").is_not_null())
                start = pl.col("receive_ns") - pl.col("value")
                return rows.with_columns(start.alias("time_ns"))
            first, last, is_infinite = SPANS[metric]
            left_out = MISSED | (NOT_COLLECTIVE if metric == "collective" else 0)
            rows = rows.filter(pl.col(first).is_not_null() & ~flag(left_out))
            value = pl.col(last) - pl.col(first)
            if not is_infinite:
                rows = rows.filter(pl.col(last).is_not_null())
            else:
                never = pl.col(last).is_null() | flag(LOST)
                value = value / 2 if metric == "half_rtt" else value
                value = pl.when(never).then(math.inf).otherwise(value)
            rows = rows.with_columns(value.alias("value"), pl.col(first).alias("time_ns"))
            if metric == "jitter":
                rows = rows.filter(pl.col("value").is_finite())
                change = pl.col("value").diff().over(["round", "warmup"]).abs()
                rows = rows.with_columns(change.alias("value"))
                rows = rows.filter(pl.col("value").is_not_null())
            return rows

        def whole(self, parts: Iterable[Any], columns: Sequence[str]) -> Any:
            return pl.concat([part.select(columns) for part in parts])

    return Polars()


def _pyarrow(path: Path) -> _Engine:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    class PyArrow:
        def __init__(self) -> None:
            self.rows = pq.read_table(path)

        def table(self, run: Run, metric: str | None, warmup: bool) -> Any:
            rows = self.rows.filter(pc.equal(self.rows["run"], run.index))
            if metric is not None:
                rows = self.values(rows, metric)

            def flag(bit: int) -> Any:
                return self.flag(rows, bit)

            role = ("server", "client") if _is_first_role_server(run, metric) else (
                "client", "server")
            outcome = pa.scalar("received")
            for bit, name in reversed(OUTCOMES):
                outcome = pc.if_else(flag(bit), name, outcome)
            messages = pa.scalar(1, pa.int64())
            for round in run.rounds:
                is_it = pc.equal(rows["round"], round.index)
                messages = pc.if_else(is_it, pa.scalar(max(round.stride, 1), pa.int64()), messages)
            added = {
                "warmup": flag(WARMUP),
                "outcome": outcome,
                "role": pc.if_else(flag(REVERSE), role[1], role[0]),
                "size_bytes": pc.cast(rows["size"], pa.int64()),
                "messages": messages,
                "metric": pa.scalar(metric, pa.string()),
            }
            kinds = {"offered_per_s": pa.float64(), "clients": pa.int64()}
            for name, value in _context(run).items():
                added[name] = pa.scalar(value, kinds.get(name, pa.string()))
            for name, value in added.items():
                is_one = isinstance(value, pa.Scalar)
                value = pa.repeat(value, rows.num_rows) if is_one else value
                rows = rows.append_column(name, value)
            return rows if warmup else rows.filter(pc.invert(rows["warmup"]))

        def flag(self, rows: Any, bit: int) -> Any:
            return pc.not_equal(pc.bit_wise_and(rows["flags"], bit), 0)

        def values(self, rows: Any, metric: str) -> Any:
            if metric == INTERARRIVAL:
                rows = rows.filter(pc.is_valid(rows["receive_ns"]))
                rows = rows.append_column("way", self.flag(rows, REVERSE))
                rows = rows.append_column("time_ns", rows["receive_ns"])
                return self.changes(rows, ["round", "thread", "way"], "receive_ns")
            first, last, is_infinite = SPANS[metric]
            left_out = MISSED | (NOT_COLLECTIVE if metric == "collective" else 0)
            is_missed = self.flag(rows, left_out)
            rows = rows.filter(pc.and_(pc.is_valid(rows[first]), pc.invert(is_missed)))
            if not is_infinite:
                rows = rows.filter(pc.is_valid(rows[last]))
            value = pc.subtract(rows[last], rows[first])
            if is_infinite:
                never = pc.or_(pc.is_null(rows[last]), self.flag(rows, LOST))
                value = pc.divide(value, 2.0) if metric == "half_rtt" else value
                value = pc.if_else(never, math.inf, value)
            rows = rows.append_column("value", value).append_column("time_ns", rows[first])
            if metric == "jitter":
                rows = rows.filter(pc.is_finite(rows["value"]))
                rows = rows.append_column("one_way", rows["value"]).drop_columns(["value"])
                rows = rows.append_column("cut", self.flag(rows, WARMUP))
                rows = self.changes(rows, ["round", "cut"], "one_way")
                change = pc.abs(rows["value"])
                rows = rows.drop_columns(["value"]).append_column("value", change)
            return rows

        def changes(self, rows: Any, keys: list[str], of: str) -> Any:
            """Adds by how much a column differs from the row before of its group.

            Of a time that began with the row before, that is the begin.
            """
            groups = rows.group_by(keys).aggregate([]).to_pylist()
            parts = [rows.slice(0, 0).append_column("value", pa.array([], pa.float64()))]
            for group in groups:
                mask = pa.scalar(True)
                for key in keys:
                    mask = pc.and_(mask, pc.equal(rows[key], group[key]))
                part = rows.filter(mask).combine_chunks()
                change = pc.subtract(part[of].slice(1), part[of].slice(0, len(part) - 1))
                times = part["time_ns"].slice(0, len(part) - 1)
                part = part.slice(1)
                if of == "receive_ns":
                    at = part.schema.get_field_index("time_ns")
                    part = part.set_column(at, "time_ns", times)
                parts.append(part.append_column("value", change))
            return pa.concat_tables(parts)

        def whole(self, parts: Iterable[Any], columns: Sequence[str]) -> Any:
            return pa.concat_tables([part.select(columns) for part in parts])

    return PyArrow()
