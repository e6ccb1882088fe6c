#!/usr/bin/env python3
"""The harness's tables and documents, from rows of known figures."""

import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from sidebyside import report, rows, subjects  # noqa: E402
from sidebyside.rounds import Measured  # noqa: E402
from test_peers import measured  # noqa: E402


class Reports(unittest.TestCase):
    def test_a_mean_held_against_a_median_is_labelled(self):
        known = subjects.every_subject()
        row = next(r for r in rows.every_row() if "qperf tcp block" in r.against)
        seen = measured(
            **{row.ours: [9.0] * 7, "qperf tcp block": [8.0] * 7, "sockperf tcp block": [9.0] * 7}
        )
        text = report.table([rows.judge(row, seen)], known)
        self.assertIn("qperf tcp block (mean)", text)
        self.assertRegex(text, r"1\.125 .* not held$")

    def test_the_readme_has_the_ratio_or_the_cost_with_its_interval(self):
        ratio = {"median": 0.99422, "interval": [0.93559, 1.04418]}
        cost = {"median": 15.439, "interval": None}
        common = {"limit": {"value": 1.02, "at_most": True}, "verdict": "held?"}
        rows_of_json = [
            {"what": "a", "against": "b", "ours_median": 5, "theirs_median": 4, "seen": ratio},
            {"what": "c", "against": "", "ours_median": 15.439, "theirs_median": None,
             "seen": cost},
            {"what": "d", "against": "e", "ours_median": 1, "theirs_median": 1, "seen": None},
        ]
        table = report.markdown([{**row, **common} for row in rows_of_json])
        self.assertEqual(
            table.splitlines()[2:],
            ["| a | b | 0.994 | 0.936 .. 1.04 | <= 1.02 | held? |",
             "| c |  | 15.4 |  | <= 1.02 | held? |"],
        )
        old = "x\n<!-- peers -->\nhow\n\n| what |\n| old |\n\nwhy\n<!-- /peers -->\n"
        new = report.in_document(old, table, "peers")
        self.assertEqual(new, f"x\n<!-- peers -->\nhow\n\n{table}\nwhy\n<!-- /peers -->\n")
        self.assertEqual(report.in_document(new, table, "peers"), new)
        with self.assertRaises(ValueError):
            report.in_document("nothing", table, "peers")

    def test_a_reason_stands_once_below_the_table(self):
        pair = rows.every_row()[:2]
        seen = {row.ours: Measured(failures={0: "no"}) for row in pair}
        text = report.table([rows.judge(row, seen) for row in pair], subjects.every_subject())
        self.assertEqual(text.count("not measured (1)"), 2)
        self.assertTrue(text.endswith("(1) no"))

    def test_the_json_holds_every_round(self):
        row = rows.every_row()[0]
        seen = measured(**{row.ours: [2.0, 3.0], row.against[0]: [1.0, 1.0]})
        known = subjects.every_subject()
        value = json.loads(report.as_json([rows.judge(row, seen)], seen, known, {"seed": 1}))
        self.assertEqual(value["rows"][0]["values"], [2, 3])
        self.assertEqual(value["subjects"][row.ours]["figures"], {"0": 2.0, "1": 3.0})


if __name__ == "__main__":
    unittest.main()
