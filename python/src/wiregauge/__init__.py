"""Reads what wiregauge measured.

    import wiregauge

    record = wiregauge.read("wiregauge-runs/20261121T055243Z-latency")
    for run in record.runs:
        print(run.label, run.figures["half_rtt"].quantile(0.99))
    samples = record.samples(run=0)  # of pyarrow, polars or pandas

The figures need nothing but Python; samples need pyarrow or polars. Times are in nanoseconds.
"""

from .record import (
    Figure,
    Interval,
    Quantile,
    Rate,
    Record,
    RecordError,
    RecordWarning,
    Round,
    Run,
    read,
)
from .samples import COLUMNS, STAMP_COLUMNS, column

__all__ = [
    "COLUMNS",
    "STAMP_COLUMNS",
    "Figure",
    "Interval",
    "Quantile",
    "Rate",
    "Record",
    "RecordError",
    "RecordWarning",
    "Round",
    "Run",
    "column",
    "read",
]
__version__ = "0.1.0"
