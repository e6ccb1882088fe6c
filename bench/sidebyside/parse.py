"""From what a program printed to its figure. Pure.

Latencies are half round trips in nanoseconds, bandwidths bytes per second, rates messages per
second. What cannot be read raises `Unreadable` with a sentence.
"""

import json
import math
import re


class Unreadable(Exception):
    """The output does not hold the figure that was asked for."""


def _json(text: str) -> dict:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable("JSON, but not an object")
    return value


def _number(value, what: str) -> float:
    known = not isinstance(value, bool) and isinstance(value, (int, float))
    # perftest prints inf where it has taken the cycle counter to stand still.
    if not known or not 0 < value < math.inf:
        raise Unreadable(f"{what} is {value!r}, not a positive number")
    return float(value)


def _match(pattern: str, text: str, what: str) -> re.Match:
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise Unreadable(f"no {what} in its output")
    return found


def bare_p50_ns(text: str) -> float:
    return _number(_json(text).get("p50_ns"), "p50_ns")


def bare_msg_per_s(text: str) -> float:
    return _number(_json(text).get("msg_per_s"), "msg_per_s")


def bare_bytes_per_s(text: str) -> float:
    return _number(_json(text).get("bytes_per_s"), "bytes_per_s")


def netpipe_bandwidth(text: str, size: int) -> float:
    """Its Mbps are 2^20 bits per second.

    The launcher may put another rank's lines between a line's beginning and its rate."""
    line = rf"(?<!\d){size} bytes\s+\d+ times -->[\s\S]*?([\d.]+) Mbps"
    rate = float(_match(line, text, "rate").group(1))
    return _number(rate, "the rate") * 2**20 / 8


def netpipe_half_rtt_ns(text: str, size: int) -> float:
    """From the rate, which has more digits than the time."""
    return size / netpipe_bandwidth(text, size) * 1e9


def _run(record: dict) -> dict:
    runs = record.get("runs") or []
    if not runs:
        reasons = [u.get("reason", "") for u in record.get("unavailable", [])]
        raise Unreadable("; ".join(reasons + record.get("faults", [])) or "a record without runs")
    return runs[0]


def wiregauge_summary(text: str, metric: str) -> dict:
    for figure in _run(_json(text)).get("figures", []):
        if figure.get("metric") == metric:
            return figure["summary"]
    raise Unreadable(f"no {metric} in the record")


def _wiregauge_p50(text: str, metric: str) -> float:
    for quantile in wiregauge_summary(text, metric)["quantiles"]:
        if quantile["p"] == 0.5:
            return _number(quantile["value"], f"{metric} p50")
    raise Unreadable(f"no {metric} p50 in the record")


def wiregauge_half_rtt_p50_ns(text: str) -> float:
    return _wiregauge_p50(text, "half_rtt")


def wiregauge_rtt_p50_ns(text: str) -> float:
    return _wiregauge_p50(text, "rtt")


def wiregauge_collective_p50_ns(text: str) -> float:
    return _wiregauge_p50(text, "collective")


def wiregauge_unloaded_p50_ns(text: str, size: int) -> float:
    """The unloaded median of one length of a workload."""
    for length in (_run(_json(text)).get("details") or {}).get("sizes", []):
        if length["size"] == size:
            return _number(length["unloaded"].get("p50_ns"), f"unloaded p50 of {size} B")
    raise Unreadable(f"no unloaded time of {size} B in the record")


def _wiregauge_rate(text: str, metric: str) -> dict:
    for rate in _run(_json(text)).get("rates", []):
        if rate.get("metric") == metric:
            return rate["rate"]
    raise Unreadable(f"no {metric} in the record")


def wiregauge_bandwidth(text: str) -> float:
    return _number(_wiregauge_rate(text, "bandwidth")["value"], "bandwidth")


def wiregauge_best_bandwidth(text: str, rounds: int) -> float:
    """The best of all rounds, of which there must be so many."""
    found = _wiregauge_rate(text, "bandwidth").get("rounds", [])
    if len(found) != rounds:
        raise Unreadable(f"bandwidth of {len(found)} rounds and not {rounds}")
    return max(_number(value, "bandwidth") for value in found)


def wiregauge_message_rate(text: str) -> float:
    return _number(_wiregauge_rate(text, "message_rate")["value"], "message_rate")


def _count(text: str, name: str) -> int:
    value = _run(_json(text)).get("counts", {}).get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unreadable(f"counts.{name} is {value!r}")
    return value


def wiregauge_lost(text: str) -> float:
    """Requests that were sent and not answered. A run without an answer is no measurement."""
    _number(_count(text, "received"), "counts.received")
    return float(_count(text, "lost"))


def wiregauge_missed_percent(text: str) -> float:
    missed, sent = _count(text, "missed_steps"), _count(text, "sent")
    return 100 * missed / _number(missed + sent, "the number of steps")


# A machine that takes nothing would give no ratio.
LEAST_NOISE_PERCENT = 0.01


def wiregauge_noise_percent(text: str) -> float:
    """Of the time of a CPU, what others took; no less than LEAST_NOISE_PERCENT."""
    try:
        [cpu] = json.loads(text)
        lost = 100 * float(cpu["lost_ns"]) / _number(cpu["observed_ns"], "observed_ns")
        return max(lost, LEAST_NOISE_PERCENT)
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"no noise of one CPU: {error}") from error


def wiregauge_kept_megabytes_per_s(text: str) -> float:
    """Bytes of the samples that are in the file, as the stream carries them, a second of the
    stream."""
    run = _run(_json(text))
    steps = _count(text, "missed_steps") + _count(text, "sent")
    rate = run.get("case", {}).get("schedule", {}).get("periodic", {}).get("rate")
    rounds = run.get("rounds") or [{}]
    kept = rounds[0].get("server", {}).get("final_counters", {}).get("file.samples")
    if not isinstance(kept, str) or not kept.isdigit():
        raise Unreadable(f"file.samples is {kept!r}")
    seconds = steps / _number(rate, "the rate")
    return int(kept) * _number(run["case"].get("size"), "the size") / seconds / 1e6


def generator_bench(text: str) -> float:
    """What a message by a Poisson schedule costs beyond one reading of the clock, ns."""
    for line in text.splitlines():
        if line.startswith("{"):
            row = _json(line)
            least = (row.get("message_ns") or {}).get("poisson") or [None]
            reading = _number(row.get("clock_reading_ns"), "clock_reading_ns")
            return _number(least[0], "message_ns.poisson") - reading
    raise Unreadable("no line of JSON in its output")


def wiregauge_recording_ns(text: str) -> float:
    value = _json(text).get("instrument", {}).get("recording_ns")
    # A cost below what can be told apart from nothing may come out as 0 or under it.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unreadable(f"instrument.recording_ns is {value!r}")
    return float(value)


def sockperf_p50_ns(text: str) -> float:
    """sockperf halves the round trip itself. A run that lost messages is no measurement."""
    dropped = _match(r"# dropped messages = (\d+)", text, "count of dropped messages").group(1)
    if dropped != "0":
        raise Unreadable(f"sockperf dropped {dropped} messages")
    found = _match(r"percentile 50\.000 = +([\d.]+)", text, "percentile 50.000")
    return _number(float(found.group(1)), "percentile 50") * 1e3


def qperf_latency_ns(text: str) -> float:
    """The mean of half round trips (qperf has no percentile), with -uu in ns."""
    found = _match(r"^ +latency += +([\d.]+) ns$", text, "latency in ns")
    return _number(float(found.group(1)), "latency")


def qperf_bandwidth(text: str) -> float:
    found = _match(r"^ +bw += +([\d.]+) bytes/sec$", text, "bw in bytes/sec")
    return _number(float(found.group(1)), "bw")


def iperf3_bandwidth(text: str) -> float:
    """What the receiver got."""
    record = _json(text)
    if "error" in record:
        raise Unreadable(f"iperf3: {record['error']}")
    received = record.get("end", {}).get("sum_received", {})
    return _number(received.get("bits_per_second"), "sum_received.bits_per_second") / 8


def ucx_p50_ns(text: str) -> float:
    """The CSV of -v -f. ucx_perftest halves the round trip; its p50 is of the last 2048 of them."""
    lines = [line.split(",") for line in text.split()]
    for names, values in zip(lines, lines[1:]):
        if names[0] == "iterations" and len(values) == len(names):
            row = dict(zip(names, values))
            if "50.0_percentile_lat" in row:
                return _number(float(row["50.0_percentile_lat"]), "50.0_percentile_lat") * 1e3
    raise Unreadable("no 50.0_percentile_lat in its output")


def fi_pingpong_mean_ns(text: str) -> float:
    """The mean of half round trips. usec/xfer has two digits only; MB/sec says the same with four:
    a transfer of SIZE bytes takes SIZE / (MB/sec) microseconds."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[0].isdigit():
            size, mb_per_s, us = float(fields[0]), float(fields[5]), float(fields[6])
            ns = _number(size / _number(mb_per_s, "MB/sec"), "latency") * 1e3
            if abs(ns - us * 1e3) > 10:
                raise Unreadable(f"MB/sec and usec/xfer disagree: {line!r}")
            return ns
    raise Unreadable("no line of figures in its output")


# What perftest prints above its one line of figures.
_PERFTEST_LATENCY = re.compile(
    r"#bytes +#iterations +t_min\[usec\] +t_max\[usec\] +t_typical\[usec\]"
)
_PERFTEST_RATE = re.compile(
    r"#bytes +#iterations +BW peak\[MB/sec\] +BW average\[MB/sec\] +MsgRate\[Mpps\]"
)


def _perftest(text: str, heading: re.Pattern) -> list[str]:
    """The words of the line below the heading."""
    lines = text.splitlines()
    for above, line in zip(lines, lines[1:]):
        words = line.split()
        if heading.search(above) and len(words) >= 5 and words[0].isdigit():
            return words
    raise Unreadable("no line of figures in perftest's output")


def _perftest_number(word: str, what: str) -> float:
    try:
        return _number(float(word), what)
    except ValueError as error:
        raise Unreadable(f"{what} is {word!r}, not a number") from error


def perftest_typical_ns(text: str) -> float:
    """The median of half round trips, which perftest halves itself."""
    return _perftest_number(_perftest(text, _PERFTEST_LATENCY)[4], "t_typical") * 1e3


def perftest_spread_us(text: str) -> tuple[str, str]:
    """t_max and t_stdev as printed."""
    words = _perftest(text, _PERFTEST_LATENCY)
    if len(words) < 7:
        raise Unreadable("no t_stdev in perftest's output")
    _perftest_number(words[3], "t_max")
    return words[3], words[6]


def perftest_samples_us(text: str) -> list[float]:
    """What -U prints: each half round trip, in the order of time."""
    found = re.findall(r"^(\d+), ([\d.]+)$", text, re.MULTILINE)
    if not found:
        raise Unreadable("no samples in perftest's output")
    return [float(value) for _, value in found]


def perftest_bandwidth(text: str) -> float:
    """Its MB are 2^20 B."""
    return _perftest_number(_perftest(text, _PERFTEST_RATE)[3], "BW average") * 2**20


def perftest_message_rate(text: str) -> float:
    return _perftest_number(_perftest(text, _PERFTEST_RATE)[4], "MsgRate") * 1e6


def stats_bench(text: str) -> tuple[float, float]:
    """Seconds for the figures of all samples, and memory over that of the samples alone."""
    for line in text.splitlines():
        if line.startswith("{"):
            row = _json(line)
            seconds = _number(row.get("summarize_s"), "summarize_s")
            if "extra_memory_over_samples" not in row:
                raise Unreadable("no extra_memory_over_samples in its output")
            return seconds, 1 + float(row["extra_memory_over_samples"])
    raise Unreadable("no line of JSON in its output")
