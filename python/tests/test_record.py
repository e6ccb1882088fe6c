"""Records: those that older versions left, and files that are no records."""

import json
import math
import pathlib
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

import wiregauge

RECORDS = pathlib.Path(__file__).parents[2] / "tests/records"


class OldRecords(unittest.TestCase):
    def test_each_is_read(self) -> None:
        folders = sorted(RECORDS.glob("v*/*"))
        self.assertGreaterEqual(len(folders), 6)
        for folder in folders:
            with self.subTest(folder=folder.name):
                record = wiregauge.read(folder)
                self.assertEqual(record.runs[0].pattern, folder.name)
                self.assertIn("not_isolated", [warning.kind for warning in record.warnings])
                for run in record.runs:
                    main = run.figures.get(run.headline) or run.rates[run.headline]
                    self.assertIn(main.unit, ("ns", "B/s"))
                    self.assertEqual(run.raw["label"], run.label)
                    self.assertEqual(record.run(run.label), run)

    def test_figures_are_those_of_the_file(self) -> None:
        run = wiregauge.read(RECORDS / "v1/latency").runs[0]
        raw = run.raw["figures"][0]["summary"]
        figure = run.figures["half_rtt"]
        self.assertEqual(run.headline, "half_rtt")
        self.assertEqual((figure.count, figure.lost), (raw["count"], raw["lost"]))
        self.assertEqual(figure.quantile(0.1).value, raw["quantiles"][0]["value"])
        interval = figure.quantile(0.1).interval
        assert interval is not None
        self.assertEqual(interval.low, raw["quantiles"][0]["interval"]["low"])
        with self.assertRaisesRegex(wiregauge.RecordError, "no quantile 0.42: use 0.1, 0.5"):
            figure.quantile(0.42)

    def test_what_is_infinite_is_infinite(self) -> None:
        run = wiregauge.read(RECORDS / "v1/load").runs[0]
        interval = run.figures["response"].quantile(0.1).interval
        self.assertEqual(interval, wiregauge.Interval(-math.inf, math.inf))
        self.assertEqual((run.offered_per_s, run.clients), (2000.0, None))


class Refusals(unittest.TestCase):
    def refused(self, content: str, says: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "record.json")
            path.write_text(content, encoding="utf-8")
            with self.assertRaisesRegex(wiregauge.RecordError, says):
                wiregauge.read(folder)

    def test_what_is_no_record_is_one_sentence(self) -> None:
        self.refused("{", "is not JSON")
        self.refused("[]", "is no record of wiregauge")
        self.refused('{"schema": "other"}', "is no record of wiregauge")
        self.refused('{"schema": "wiregauge.record", "version": 9}', "is of version 9")
        self.refused('{"schema": "wiregauge.record", "version": 3}', "lacks what a record has")
        old = json.loads((RECORDS / "v1/latency/record.json").read_text(encoding="utf-8"))
        del old["runs"][0]["case"]["size"]
        self.refused(json.dumps(old), "lacks what a record has: KeyError")

    def test_a_wrong_value_is_refused_with_the_name_of_the_file(self) -> None:
        text = (RECORDS / "v1/latency/record.json").read_text(encoding="utf-8")

        def refused(says: str, change: Callable[[Any, Any], None]) -> None:
            with self.subTest(says=says):
                record = json.loads(text)
                run = record["runs"][0]
                change(run, run["figures"][0]["summary"])
                self.refused(json.dumps(record), f"record.json has a value .*: {says}")

        def mean(value: object) -> Callable[[Any, Any], None]:
            return lambda run, summary: summary.update(mean=value)

        def interval(value: object) -> Callable[[Any, Any], None]:
            return lambda run, summary: summary["quantiles"][0].update(interval=value)

        refused("'abc' is not a number", mean("abc"))
        refused("True is not a number", mean(True))
        refused(r"\[1\] is not a number", mean([1]))
        refused("int too large", mean(10**400))
        refused("list indices", interval([]))
        refused("list indices", interval([1, 2]))
        refused("string indices", interval(""))
        refused("'int' object", interval(0))
        refused("null is not a number", interval({"low": None, "high": 1}))
        refused(
            "the schedule {} is not one kind", lambda run, summary: run["case"].update(schedule={})
        )

    def test_a_version_is_a_whole_number(self) -> None:
        record = json.loads((RECORDS / "v1/latency/record.json").read_text(encoding="utf-8"))
        for version in (True, 1.0, "1", [1], None):
            record["version"] = version
            self.refused(json.dumps(record), "is of version ")

    def test_an_unknown_run_is_refused_with_those_there_are(self) -> None:
        record = wiregauge.read(RECORDS / "v1/latency")
        with self.assertRaisesRegex(wiregauge.RecordError, "no run 9: use one of 0"):
            record.run(9)


if __name__ == "__main__":
    unittest.main()
