"""wiregauge beside its peers and beside bare loops, in one interleaved run.

The path: `subjects` (who is measured, by which command) -> `process` (run it) -> `parse` (its
figure) -> `rounds` (all of them, interleaved) -> `rows` (which figure against which, and the
limit) -> `ratios` (median, interval, verdict) -> `report` (table and JSON).
"""
