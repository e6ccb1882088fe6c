"""Samples: the same rows as the program's own exports, from each library.

``WIREGAUGE_RECORDS`` names a folder of run directories and of their exports, NAME.KIND.parquet,
where KIND is ``values``, ``stamps`` or a metric: ``tests/it/export.rs`` makes it.
"""

import contextlib
import io
import math
import os
import pathlib
import re
import unittest
from typing import Any

import wiregauge
from wiregauge.samples import LIBRARIES

README = pathlib.Path(__file__).parents[1] / "README.md"
FOLDER = pathlib.Path(os.environ.get("WIREGAUGE_RECORDS", ""))
Row = tuple[Any, ...]


def rows(table: Any, names: tuple[str, ...]) -> list[Row]:
    """Sorted rows; pandas has NaN for what is missing."""
    plain = [
        [None if value != value else value for value in wiregauge.column(table, name)]
        for name in names
    ]
    key = [names.index(name) for name in ("run", "round", "thread", "role", "sequence")]
    return sorted(zip(*plain), key=lambda row: [row[at] for at in key])


def nearest_rank(values: list[float], p: float) -> float:
    rank = math.ceil(round(p * len(values), 6))
    return sorted(values)[rank - 1]


@unittest.skipUnless("WIREGAUGE_RECORDS" in os.environ, "WIREGAUGE_RECORDS names no records")
class Samples(unittest.TestCase):
    def test_every_library_gives_the_rows_of_an_export(self) -> None:
        import pyarrow.parquet

        exports = sorted(FOLDER.glob("*.parquet"))
        self.assertTrue(exports)
        for export in exports:
            name, kind, _ = export.name.split(".")
            record = wiregauge.read(FOLDER / name)
            metric = None if kind in ("values", "stamps", "measured") else kind
            warmup = kind != "measured"
            is_stamps = kind == "stamps"
            names = wiregauge.STAMP_COLUMNS if is_stamps else wiregauge.COLUMNS
            wanted = pyarrow.parquet.read_table(export)
            self.assertEqual(tuple(wanted.column_names), names)
            # One that is not installed is an error: ``tests/it/export.rs`` has all of them.
            for library in LIBRARIES:
                with self.subTest(export=export.name, library=library):
                    got = record.samples(
                        metric=metric, stamps=is_stamps, warmup=warmup, library=library
                    )
                    self.assertEqual(rows(got, names), rows(wanted, names))

    def test_the_snippet_of_the_readme_runs(self) -> None:
        [snippet] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
        directory = re.search(r'read\("(.*?)"\)', snippet)
        assert directory is not None
        names: dict[str, Any] = {}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(snippet.replace(directory[1], str(FOLDER / "survey")), names)
        runs = names["record"].runs
        self.assertEqual(len(printed.getvalue().splitlines()), len(runs))
        self.assertEqual(names["medians"].height, len(runs[0].rounds))

    def test_quantiles_are_those_of_the_record(self) -> None:
        for name in ("lossy", "survey", "load", "stream"):
            record = wiregauge.read(FOLDER / name)
            for run in record.runs:
                samples = record.samples(run=run.label)
                values = wiregauge.column(samples, "value")
                figure = run.figures[run.headline]
                self.assertEqual(len(values), figure.count)
                rounds: dict[int, list[float]] = {}
                for number, value in zip(wiregauge.column(samples, "round"), values):
                    rounds.setdefault(number, []).append(value)
                for quantile in figure.quantiles:
                    if quantile.value is None:
                        continue
                    parts = [values] if quantile.basis == "pooled" else list(rounds.values())
                    found = [nearest_rank(part, quantile.p) for part in parts]
                    if quantile.basis == "geometric_mean":
                        wanted = math.exp(sum(map(math.log, found)) / len(found))
                    elif quantile.basis == "arithmetic_mean":
                        wanted = sum(found) / len(found)
                    else:
                        wanted = sorted(found)[(len(found) - 1) // 2]
                    same = math.isclose(wanted, quantile.value, rel_tol=1e-12)
                    self.assertTrue(same, (run.label, quantile, wanted))

    def test_what_is_not_there_is_refused(self) -> None:
        record = wiregauge.read(FOLDER / "survey")
        with self.assertRaisesRegex(wiregauge.RecordError, "no run has the metric 'response'"):
            record.samples(metric="response")
        with self.assertRaisesRegex(ValueError, "unknown library 'numpy': use polars"):
            record.samples(library="numpy")
        with self.assertRaisesRegex(ValueError, "stamps are of no metric"):
            record.samples(stamps=True, metric="rtt")


if __name__ == "__main__":
    unittest.main()
