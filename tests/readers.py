"""Reads samples with programs that are not ours and compares them with what was injected.

    readers.py EXPECTED.json FILE...

EXPECTED.json: {"tables": {TABLE: {NAME: [VALUE, ...]}}, "record": RECORD}; what is missing is null,
what is infinite "inf" or "-inf". A file is named TABLE.parquet, TABLE.csv or TABLE.json. Every
value is compared exactly. Exits with 1 and one line for each difference, with 2 where a module is
missing. Needs: pip install pyarrow duckdb polars pandas
"""

import csv
import json
import pathlib
import sys

failures = []


def never(token):
    raise ValueError(f"{token} is not JSON")


def number(value):
    return float(value) if value in ("inf", "-inf") else value


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


def metadata(path):
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_metadata(path).metadata
    for key, value in ((b"wiregauge.schema", b"wiregauge.samples"), (b"wiregauge.version", b"3")):
        if metadata.get(key) != value:
            failures.append(f"pyarrow: {key} is {metadata.get(key)}, expected {value}")
    if not metadata.get(b"wiregauge.epoch"):
        failures.append("pyarrow: wiregauge.epoch is missing")


def cell(text, like):
    """A field of a CSV as what is expected in its column."""
    if isinstance(like, bool):
        return {"true": True, "false": False}[text]
    if isinstance(like, str):
        return text
    if text == "":
        return None
    return int(text) if isinstance(like, int) else float(text)


def from_csv(path, expected):
    with open(path, newline="", encoding="utf-8") as file:
        text = file.read()
        if "\r" in text or not text.endswith("\n"):
            failures.append("csv: a line does not end in LF")
        file.seek(0)
        header, *rows = csv.reader(file, strict=True)
    if any(len(row) != len(header) for row in rows):
        failures.append("csv: rows of different lengths")
    like = {n: next((v for v in values if v is not None), 0.0) for n, values in expected.items()}
    got = {n: [cell(row[i], like.get(n, "")) for row in rows] for i, n in enumerate(header)}
    compare("csv", expected, got)


def from_json(path, expected, record):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file, parse_constant=never)
    if whole["record"] != record:
        failures.append("json: the record is not the one that was injected")
    if any(list(row) != list(expected) for row in whole["samples"]):
        failures.append("json: a sample has other fields")
    got = {n: [number(row[n]) for row in whole["samples"]] for n in expected}
    compare("json", expected, got)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        injected = json.load(file, parse_constant=never)
    for path in map(pathlib.Path, sys.argv[2:]):
        columns = injected["tables"][path.stem]
        columns = {n: [number(v) for v in values] for n, values in columns.items()}
        before = len(failures)
        try:
            if path.suffix == ".parquet":
                parquet(str(path), columns)
            elif path.suffix == ".csv":
                from_csv(path, columns)
            else:
                from_json(path, columns, injected["record"])
            if path.name == "samples.parquet":
                metadata(path)
        except ImportError as missing:
            print(f"{missing}; needs: pip install pyarrow duckdb polars pandas", file=sys.stderr)
            sys.exit(2)
        failures[before:] = [f"{path.name}: {failure}" for failure in failures[before:]]
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
