"""Reads samples with programs that are not ours and compares them with what was injected.

    readers.py EXPECTED.json SAMPLES.parquet [SAMPLES.csv [SAMPLES.json]]

EXPECTED.json: {"columns": {NAME: [VALUE, ...]}, "record": RECORD}; a missing stamp is null, an
infinite one "inf" or "-inf". Every value is compared exactly. Exits with 1 and one line for each
difference, with 2 where a module is missing. Needs: pip install pyarrow duckdb polars pandas
"""

import csv
import json
import sys

failures = []


def never(token):
    raise ValueError(f"{token} is not JSON")


def number(value):
    return float(value) if value in ("inf", "-inf") else value


def flags_signed(name, value):
    """INT32 in the file: the highest bit is the sign."""
    return value - (1 << 32) if name == "flags" and value >= 1 << 31 else value


def compare(reader, expected, got):
    if list(got) != list(expected):
        failures.append(f"{reader}: columns {list(got)}, expected {list(expected)}")
        return
    for name, values in expected.items():
        if len(got[name]) != len(values):
            failures.append(f"{reader}: {len(got[name])} rows of {name}, expected {len(values)}")
            continue
        for row, (want, have) in enumerate(zip(values, got[name])):
            same = want == have and (want is None) == (have is None)
            if not same:
                failures.append(f"{reader}: {name}[{row}] is {have!r}, expected {want!r}")
                break


def parquet(path, expected):
    import duckdb
    import pandas
    import polars
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    compare("pyarrow", expected, {n: table[n].to_pylist() for n in table.column_names})
    frame = polars.read_parquet(path)
    compare("polars", expected, {n: frame[n].to_list() for n in frame.columns})
    relation = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
    rows = relation.fetchall()
    columns = {n: [r[i] for r in rows] for i, n in enumerate(relation.columns)}
    compare("duckdb", expected, columns)
    frame = pandas.read_parquet(path)
    plain = {n: [None if v != v else v for v in frame[n].tolist()] for n in frame.columns}
    compare("pandas", expected, plain)
    metadata = pyarrow.parquet.read_metadata(path).metadata
    for key, value in ((b"wiregauge.schema", b"wiregauge.samples"), (b"wiregauge.version", b"3")):
        if metadata.get(key) != value:
            failures.append(f"pyarrow: {key} is {metadata.get(key)}, expected {value}")
    if not metadata.get(b"wiregauge.epoch"):
        failures.append("pyarrow: wiregauge.epoch is missing")


def from_csv(path, expected):
    with open(path, newline="", encoding="ascii") as file:
        text = file.read()
        if text.replace("\r\n", "").count("\n") or not text.endswith("\r\n"):
            failures.append("csv: a line does not end in CR LF")
        file.seek(0)
        header, *rows = csv.reader(file, strict=True)
    whole = lambda name: not name.endswith("_ns")
    read = lambda name, text: int(text) if whole(name) else float(text) if text else None
    got = {n: [read(n, row[i]) for row in rows] for i, n in enumerate(header)}
    got = {n: [flags_signed(n, v) for v in values] for n, values in got.items()}
    if any(len(row) != len(header) for row in rows):
        failures.append("csv: rows of different lengths")
    compare("csv", {"size_bytes" if n == "size" else n: v for n, v in expected.items()}, got)


def from_json(path, expected, record):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file, parse_constant=never)
    if whole["record"] != record:
        failures.append("json: the record is not the one that was injected")
    names = ["size_bytes" if n == "size" else n for n in expected]
    if any(list(row) != names for row in whole["samples"]):
        failures.append("json: a sample has other fields")
    got = {n: [flags_signed(n, number(row[n])) for row in whole["samples"]] for n in names}
    compare("json", {"size_bytes" if n == "size" else n: v for n, v in expected.items()}, got)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        injected = json.load(file, parse_constant=never)
    columns = {n: [number(v) for v in values] for n, values in injected["columns"].items()}
    try:
        parquet(sys.argv[2], columns)
    except ImportError as missing:
        print(f"{missing}; needs: pip install pyarrow duckdb polars pandas", file=sys.stderr)
        sys.exit(2)
    if len(sys.argv) > 3:
        from_csv(sys.argv[3], columns)
    if len(sys.argv) > 4:
        from_json(sys.argv[4], columns, injected["record"])
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
