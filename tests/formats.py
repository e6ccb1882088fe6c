"""Reads exports of a run directory with programs that are not ours and compares them with it.

    formats.py RUN_DIRECTORY FILE...

A file is named *.hlog, *.openmetrics or *.trace. Histograms and spans are compared with
samples.parquet, metrics with record.json. Exits with 1 and one line for each difference, with 2
where a module is missing. Needs: pip install pyarrow pandas hdrhistogram prometheus_client
"""

import collections
import json
import math
import pathlib
import sys

try:
    import pyarrow.parquet
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as prometheus
except ImportError as missing:
    needs = "pip install pyarrow pandas hdrhistogram prometheus_client"
    print(f"{missing}; needs: {needs}", file=sys.stderr)
    sys.exit(2)

NEVER_NS = 24 * 3600 * 10**9
FIRST = {"response": "intended_ns", "lateness": "intended_ns", "transfer": "send_ns"}
LAST = {"lateness": "submit_ns", "complete": "complete_ns", "post": "complete_ns"}
compared = 0
failures = []


def same(what, got, want, tolerance=0.0):
    global compared
    compared += 1
    if got != want and not abs(got - want) <= tolerance:
        failures.append(f"{what} is {got!r}, expected {want!r}")


def durations(rows, metric):
    """In ns, by the row's position; infinite where the message never arrived."""
    first, last = FIRST.get(metric, "submit_ns"), LAST.get(metric, "receive_ns")
    rows = rows[rows[first].notna() & (rows["flags"] & 128 == 0)]
    if metric in LAST:
        rows = rows[rows[last].notna()]
        return rows[last] - rows[first]
    value = (rows[last] - rows[first]).where(rows["flags"] & 2 == 0).fillna(math.inf)
    return value / 2 if metric == "half_rtt" else value


def hlog(path, record, rows):
    reader = HistogramLogReader(str(path), HdrHistogram(1, NEVER_NS, 3))
    found = collections.defaultdict(list)
    while (interval := reader.get_next_interval_histogram()) is not None:
        found[interval.get_tag()].append(interval)
    for run in record["runs"]:
        of_run = rows[(rows["run"] == run["index"]) & (rows["flags"] & 1 == 0)]
        for figure in run["figures"]:
            metric = figure["metric"]
            if metric in ("jitter", "short"):
                continue
            intervals = found.pop(f"{run['label']}:{metric}".replace(" ", "_"), [])
            rounds = {number: durations(part, metric) for number, part in of_run.groupby("round")}
            rounds = {number: each for number, each in rounds.items() if len(each)}
            same(f"{path.name}: rounds of {metric}", len(intervals), len(rounds))
            for interval, (number, each) in zip(intervals, rounds.items()):
                values = sorted(min(round(value), NEVER_NS) if math.isfinite(value) else NEVER_NS
                                for value in each)
                values = [max(value, 0) for value in values]
                what = f"{path.name}: {metric} of round {number}"
                same(what, interval.get_total_count(), len(values))
                for p in (0.1, 0.5, 0.9, 0.99):
                    # That reader rounds the rank to the nearest.
                    rank = int(p * len(values) + 0.5)
                    want = values[max(rank, 1) - 1]
                    got = interval.get_value_at_percentile(100 * p)
                    same(f"{what}, p{100 * p:g}", got, want, 1 + want / 1000)
    for tag in found:
        metric = tag.rsplit(":", 1)[-1]
        if metric not in ("jitter", "interarrival"):
            failures.append(f"{path.name}: nothing in the record is {tag}")


def metrics(path, record):
    text = path.read_text(encoding="utf-8")
    points = {}
    for family in openmetrics(text):
        if family.unit and not family.name.endswith(f"_{family.unit}"):
            failures.append(f"{family.name}: its unit is {family.unit}")
        if not family.documentation:
            failures.append(f"{family.name} has no help")
        for sample in family.samples:
            points[sample.name, frozenset(sample.labels.items())] = sample.value
    older = sum(len(family.samples) for family in prometheus(text))
    same("points in the older format", older, len(points))
    number = lambda value: float(value)  # It reads "inf" as well.
    for run in record["runs"]:
        case = run["case"]
        labels = {"run": str(run["index"]), "case": run["label"], "pattern": case["pattern"],
                  "transport": case["transport"], "wait": case["wait"],
                  "size_bytes": str(case["size"])}
        if "rate" in case["axes"]:
            labels["offered_per_s"] = f"{case['axes']['rate']:g}"

        def point(name, want, **more):
            key = (f"wiregauge_{name}", frozenset({**labels, **more}.items()))
            if key not in points:
                failures.append(f"{key} is missing")
                return
            same(str(key), points.pop(key), want, abs(want) * 1e-12)

        for figure in run["figures"]:
            name, summary = figure["metric"], figure["summary"]
            point(f"{name}_samples", summary["count"])
            point(f"{name}_max_seconds", number(summary["max"]) / 1e9)
            for quantile in summary["quantiles"]:
                if quantile["value"] is None:
                    continue
                p = f"{quantile['p']:g}"
                point(f"{name}_seconds", number(quantile["value"]) / 1e9, quantile=p)
                for end in ("low", "high"):
                    want = number(quantile["interval"][end]) / 1e9
                    point(f"{name}_{end}_seconds", want, quantile=p)
        units = {"B/s": ("bytes_per_second", 1), "msg/s": ("messages_per_second", 1),
                 "ns/msg": ("seconds_per_message", 1e9)}
        for rate in run["rates"]:
            unit, divisor = units.get(rate["unit"], ("ratio", 1))
            point(f"{rate['metric']}_{unit}", number(rate["rate"]["value"]) / divisor)
        point("messages", run["counts"]["sent"], outcome="sent")


def nested(path, events):
    """Spans of a track lie within each other or apart."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = round(event["ts"] * 16000)
            end = start + round(event["dur"] * 16000)
            tracks[event["pid"], event["tid"]].append((start, -end))
    for track, spans in tracks.items():
        ends = []
        for start, end in sorted(spans):
            ends = [other for other in ends if other > start]
            if ends and -end > ends[-1]:
                failures.append(f"{path.name}: spans of {track} overlap in part at {start}")
                return
            ends.append(-end)


def trace(path, record, rows):
    whole = json.loads(path.read_text(encoding="utf-8"))
    about, events = whole["otherData"], whole["traceEvents"]
    run = record["runs"][about["run"]]
    same("displayTimeUnit", whole["displayTimeUnit"], "ns")
    rows = rows[(rows["run"] == run["index"]) & (rows["round"] == about["round"])]
    names = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"]
    role = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    same("processes", len(set(names)), len(names))
    nested(path, events)
    found, begun = collections.defaultdict(dict), {}
    for event in (event for event in events if event["ph"] != "M"):
        if event["ph"] == "b":
            begun[event["id"]] = event
            continue
        if event["ph"] == "e":
            end, event = event["ts"], begun.pop(event["id"])
            event = {**event, "dur": end - event["ts"]}
        ns = math.inf if event["ph"] == "i" else event["dur"] * 1e3
        key = (event["tid"], event["args"]["sequence"])
        start = event["ts"] * 1e3 + about["ts_0_ns"]
        found[event["name"]][key] = (start, ns, role[event["pid"]])
    same("spans without an end", len(begun), 0)
    one_way = any(figure["metric"] == "one_way" for figure in run["figures"])
    for name, spans in found.items():
        sender = name in ("lateness", "post", "complete")
        wanted = durations(rows, name)
        same(f"{path.name}: spans of {name}", len(spans), len(wanted))
        keys = zip(rows.loc[wanted.index, "thread"], rows.loc[wanted.index, "sequence"])
        starts = rows.loc[wanted.index, FIRST.get(name, "submit_ns")]
        for key, ns, start in zip(keys, wanted, starts):
            got = spans.get(key, (math.nan, math.nan, ""))
            same(f"{path.name}: {name} of {key}", got[1], ns, 0.01)
            same(f"{path.name}: start of {name} of {key}", got[0], start, 0.01)
            same("its role", got[2], "server" if one_way and not sender else "client")


def main():
    folder = pathlib.Path(sys.argv[1])
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    rows = pyarrow.parquet.read_table(folder / "samples.parquet").to_pandas()
    for path in map(pathlib.Path, sys.argv[2:]):
        if path.suffix == ".hlog":
            hlog(path, record, rows)
        elif path.suffix == ".openmetrics":
            metrics(path, record)
        else:
            trace(path, record, rows)
    print(f"{compared} numbers compared, {len(failures)} differ")
    for failure in failures[:40]:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures or not compared else 0)


main()
