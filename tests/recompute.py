"""Computes the figures of runs again, from samples.parquet and METHOD.md alone.

    recompute.py RUN_DIRECTORY...

Every figure, rate, interval and knee of record.json is computed from the samples and from what the
record says of the case (schedule, lengths, CPU times), and compared. Shares no code with the
program. Prints how many numbers were compared. Exits with 1 and a line for each that differs, with
2 where a module is missing. Needs: pip install pyarrow pandas
"""

import json
import math
import sys
from fractions import Fraction

try:
    import numpy as np
    import pyarrow.parquet
except ImportError as missing:
    print(f"{missing}; needs: pip install pyarrow pandas", file=sys.stderr)
    sys.exit(2)

from recompute_curves import curves  # noqa: E402
from recompute_intervals import t_975  # noqa: E402

TOLERANCE = 1e-9
WARMUP, LOST, REVERSE, MISSED = 1, 2, 64, 128
NORMAL_975 = 1.959963984540054
P = ["0.1", "0.5", "0.9", "0.99", "0.999", "0.9999"]
INF = math.inf
GRID = 256


# The binomial distribution


def binomial_bounds(m, p):
    """The largest l with P(B < l) <= 2.5 % and the smallest u with P(B >= u) <= 2.5 %."""
    k = np.arange(m + 1)
    logs = np.concatenate(([0], np.cumsum(np.log(np.arange(1, m + 1)))))
    weights = logs[m] - logs[k] - logs[m - k] + k * math.log(p) + (m - k) * math.log1p(-p)
    weights = np.exp(weights)
    below = np.concatenate(([0], np.cumsum(weights)))  # P(B < l)
    above = np.concatenate((np.cumsum(weights[::-1])[::-1], [0]))  # P(B >= u)
    return int(np.flatnonzero(below <= 0.025)[-1]), int(np.flatnonzero(above <= 0.025)[0])


# Effective number


def window(c, lags, n):
    """tau by Sokal's window, whether it closed, degrees of freedom."""
    if lags == 0:
        return 1.0, False, n
    tau, largest, last, closed = 1.0, 1.0, lags, False
    for k in range(1, lags + 1):
        tau += 2 * c(k) / c(0)
        largest = max(largest, tau)
        if k >= 5 * tau:
            last, closed = k, True
            break
    share = (2 * last + 1) / n
    return (tau if closed else largest) * (1 + share), closed, 1 / share


def products(rounds, k):
    return sum(float(np.dot(x[: len(x) - k], x[k:])) for x in rounds)


def effective_n(rounds, q):
    rounds = [r for r in rounds if len(r)]
    ones = [(r <= min(q, sys.float_info.max)).astype(float) for r in rounds]
    n, shortest = sum(map(len, ones)), min(map(len, ones))
    if n < 2:
        return n
    centred = [x - x.mean() for x in ones]
    c = lambda k: products(centred, k) / (n - k * len(ones))
    if c(0) <= 1e-15:
        return n
    lags = min(1024, max(64, 2**22 // -(-n // 64)), shortest // 4)
    tau, closed, freedom = window(c, lags, n)
    size = 64
    while True:
        cut = [x[: len(x) // size * size].reshape(-1, size).sum(axis=1) for x in ones]
        m = sum(map(len, cut))
        if m < max(64, 16 * len(cut)):
            break
        sums = [x - x.mean() for x in cut]
        pairs = lambda k: sum(max(len(x) - k, 0) for x in sums)
        variance = products(sums, 0) / (m - len(sums))
        ratio = variance / (size * c(0))
        if not closed or ratio > max(tau, 1) * (1 + 3 * math.sqrt(2 / m)):
            of = lambda k: products(sums, k) / pairs(k) if k else variance
            inner, closed, freedom = window(of, min(64, shortest // size // 4), m)
            tau = ratio * max(inner, 1)
        size *= 8
    tau = max(tau, 1)
    count = sum(float(x.sum()) for x in ones)
    freedom = max(1, min(freedom, min(count, n - count) / tau))
    z2 = NORMAL_975**2
    factor = 1 + (z2 + 1) / (2 * freedom) if freedom > 200 else t_975(freedom) ** 2 / z2
    return min(max(n / (tau * factor), 1), n)


# Quantiles and rates


def quantile(ordered, p):
    """Nearest rank; None: n too small."""
    n, p = len(ordered), Fraction(p)
    return ordered[math.ceil(p * n) - 1] if n * min(p, 1 - p) >= 10 else None


def order_statistics(values):
    """Of a few independent values, the interval of the median of what they are drawn from."""
    l, u = binomial_bounds(len(values), 0.5)
    rising = sorted(values)
    return rising[max(l, 1) - 1], rising[min(u, len(values)) - 1]


def union(*intervals):
    known = [i for i in intervals if i]
    return (min(i[0] for i in known), max(i[1] for i in known)) if known else None


def within(ordered, p, effective):
    n, m = len(ordered), max(1, math.floor(effective))
    l, u = binomial_bounds(m, float(p))
    low = ordered[(l - 1) * n // m] if l > 0 else -INF
    return low, ordered[-(-u * n // m) - 1] if u <= m else INF


def between(rounds, ordered, p):
    """Inverts the test of the shares: on a grid of every round's samples, then sample by sample."""
    rounds = [np.sort(r) for r in rounds if len(r)]
    if len(rounds) < 2:
        return None
    t, many, p = t_975(len(rounds) - 1), len(rounds), float(p)
    lengths = np.array([[len(r)] for r in rounds], float)

    def shares(values):
        counts = np.array([np.searchsorted(r, values, "right") for r in rounds], float)
        share = counts.sum(axis=0) / lengths.sum()
        squares = ((counts - share * lengths) ** 2).sum(axis=0)
        return share, t * np.sqrt(many / (many - 1) * squares) / lengths.sum()

    steps = min(max(64 * GRID // many, 16), GRID)
    grid = [r[max(-(-len(r) * k // steps), 1) - 1] for r in rounds for k in range(steps + 1)]
    grid = np.unique(grid)
    share, error = shares(grid)
    low = np.flatnonzero(share + error >= p)[0]
    high = np.append(-1, np.flatnonzero(share - error <= p))[-1]
    distinct = np.unique(ordered)
    cell = distinct[(distinct > (grid[low - 1] if low else -INF)) & (distinct <= grid[low])]
    share, error = shares(cell)
    lower = cell[np.flatnonzero(share + error >= p)[0]]
    if high + 1 == len(grid):
        return lower, grid[-1]
    cell = distinct[(distinct > (grid[high] if high >= 0 else -INF)) & (distinct <= grid[high + 1])]
    share, error = shares(cell)
    return lower, cell[np.append(-1, np.flatnonzero(share - error <= p))[-1] + 1]


def mean_sd(values):
    values = np.array([v for v in values if math.isfinite(v)])
    sd = float(values.std(ddof=1)) if len(values) > 1 else None
    return (float(values.mean()) if len(values) else None), sd


def pair(interval):
    return interval and {"low": interval[0], "high": interval[1]}


def typical(values):
    """Of each round's own figure: that of a typical round, its interval, and how it was found."""
    many, low = len(values), min(values, default=0)
    if many < 2:
        return (values[0] if values else None), None, "one_round"
    on_logs, finite = low > 0, max(values) < INF
    scaled = [math.log(v) if on_logs else v for v in sorted(values)] if finite else []
    gaps = [b - a for a, b in zip(scaled, scaled[1:])]
    spread = scaled[-1] - scaled[0] if finite else 0
    if not finite or many >= 6 and max(gaps) > (0.1 + 1.5 / math.sqrt(many)) * spread > 0:
        bounds = order_statistics(values) if many >= 6 else (-INF, INF)
        return sorted(values)[(many - 1) // 2], bounds, "median"
    back = math.exp if on_logs else float
    middle = sum(scaled) / many
    squares = sum((v - middle) ** 2 for v in scaled)
    half = t_975(many - 1) * math.sqrt(squares / (many - 1) / many)
    bounds = max(back(middle - half), min(low, 0)), back(middle + half)
    return back(middle), bounds, "geometric_mean" if on_logs else "arithmetic_mean"


def level_reach(rounds, share):
    """How far the level of another round may lie from those of these, on logarithms."""
    rounds = [np.sort(r) for r in rounds if len(r)]
    medians = [r[math.ceil(Fraction("0.5") * len(r)) - 1] for r in rounds]
    if len(rounds) < 2 or min(medians) <= 0 or max(medians) == INF:
        return 0.0
    variance, chance = float(np.var(np.log(medians), ddof=1)), 0.0
    for r in rounds:
        low, high = within(r, "0.5", min(max(share * len(r), 1), len(r)))
        if low > 0 and high < INF:
            chance += (math.log(high / low) / (2 * NORMAL_975)) ** 2
    excess = variance - chance / len(rounds)
    many = len(rounds)
    return t_975(many - 1) * math.sqrt((1 + 1 / many) * excess) if excess > 0 else 0.0


def one_quantile(rounds, ordered, of_rounds, p):
    of_all, effective = quantile(ordered, p), effective_n(rounds, ordered[math.ceil(
        Fraction(p) * len(ordered)) - 1])
    inside = within(ordered, p, effective) if of_all is not None else None
    if of_rounds and None not in of_rounds:
        value, interval, basis = typical(of_rounds)
    elif len(of_rounds) < 2:
        value, interval, basis = of_all, None, "one_round"
    else:
        value, interval, basis = of_all, None, "pooled"
        if value is not None:
            low, high = union(inside, between(rounds, ordered, p))
            median = ordered[math.ceil(Fraction("0.5") * len(ordered)) - 1]
            factor = math.exp(level_reach(rounds, effective_n(rounds, median) / len(ordered)))
            interval = low / factor if low > 0 else low, high * factor if high > 0 else high
    return {"p": float(p), "value": value, "interval": pair(interval), "basis": basis,
            "within": pair(inside), "effective_n": effective}


def summary(rounds, threshold):
    """The distribution of durations, an array a round."""
    every = np.concatenate(rounds)
    ordered, finite = np.sort(every), every[np.isfinite(every)]
    rising = [np.sort(r) for r in rounds]
    at = lambda r, p: r[math.ceil(Fraction(p) * len(r)) - 1]
    ends = lambda r: {"min": r[0] if len(r) else None, "max": r[-1] if len(r) else None}
    of_rounds = [{"count": len(r), "quantiles": [quantile(r, p) if len(r) else None for p in P],
                  **ends(r)} for r in rising]
    sd, medians = mean_sd(finite)[1], [at(r, "0.5") for r in rising if len(r)]
    means = [mean_sd(r)[0] for r in rounds]
    mean, mean_bounds, _ = typical([m for m in means if m is not None])
    spread = lambda r: INF if at(r, "0.25") == INF else at(r, "0.75") - at(r, "0.25")
    sampled = [r for r in of_rounds if r["count"]]
    quantiles = [one_quantile(rounds, ordered, [r["quantiles"][i] for r in sampled], p)
                 for i, p in enumerate(P)]
    return {"count": len(every), "lost": len(every) - len(finite), **ends(ordered), "mean": mean,
            "mean_interval": pair(mean_bounds),
            "max_finite": finite.max() if len(finite) else None, "sd": sd, "quantiles": quantiles,
            "threshold": threshold, "above_threshold": int((every > threshold).sum()),
            "rounds": of_rounds, "sd_between": mean_sd(medians)[1],
            "iqr_within": at(sorted(spread(r) for r in rising if len(r)), "0.5")}


def rate(work):
    """The rate of a typical round, from pairs of a round's work and its seconds."""
    rates = [w / s for w, s in work if s > 0]
    value, interval, basis = typical(rates)
    return {"value": value, "interval": pair(interval), "basis": basis, "rounds": rates}


def with_known_error(found, figure, run, instrument):
    """The same with intervals that have the clocks' bound and what the instrument adds in them."""
    shares = {"half_rtt": 0.5, "lateness": 0, "post": 0, "jitter": 0}
    added = shares.get(figure["metric"], 1) * (instrument["overhead_p50_ns"] or 0)
    added = 0 if run["case"]["transport"] in ("null", "synthetic") else added
    clock = figure["clock_bound_ns"] or 0

    def widen(interval):
        if interval:
            low, high = interval["low"], interval["high"]
            low = max(low - clock - added, min(low, 0))
            interval = {"low": low, "high": high + clock}
        return interval

    for quantile in found["quantiles"]:
        quantile["interval"] = widen(quantile["interval"])
        quantile["within"] = widen(quantile["within"])
    found["mean_interval"] = widen(found["mean_interval"])
    return {**found, "known_error": {"clock_ns": clock, "instrument_ns": added}}


# From samples to durations and work


def durations(rows, metric):
    """Of one round, in the order of sending, without the warm-up."""
    # Entered late by a rank, or overlapped with computing.
    left_out = 1024 | 2048 if metric == "collective" else 0
    rows = rows[(rows["flags"] & (WARMUP | MISSED | left_out)) == 0]
    first = "intended_ns" if metric in ("response", "lateness") else "submit_ns"
    last = {"lateness": "submit_ns", "complete": "complete_ns", "post": "complete_ns"}
    first = "send_ns" if metric == "transfer" else first
    last = last.get(metric, "receive_ns")
    rows = rows[rows[first].notna()]
    if last != "receive_ns":
        rows = rows[rows[last].notna()]
    took = (rows[last] - rows[first]).to_numpy() / (2 if metric == "half_rtt" else 1)
    if last == "receive_ns":
        took[rows[last].isna() | (rows["flags"] & LOST != 0)] = INF
    return np.abs(np.diff(took[np.isfinite(took)])) if metric == "jitter" else took


def span(stamps):
    """Messages after the first stamp, and seconds from the first to the last."""
    stamps = stamps.dropna()
    return max(len(stamps) - 1, 0), (stamps.max() - stamps.min()) / 1e9 if len(stamps) else 0.0


def in_window(case, rows, record):
    """What was intended, sent and answered in the window of an open loop, each with its length."""
    (kind, schedule), = case["schedule"].items()
    gap, random = 1e9 / schedule["rate"], kind in ("poisson", "on_off")
    rows = rows[rows["intended_ns"].notna()]
    counted = rows[rows["flags"] & WARMUP == 0]
    begin = float(counted.groupby("thread")["intended_ns"].min().max())
    if record["ended"] == "time" and not record["samples_in_histogram_only"]:
        end = rows["intended_ns"].min() + case["bound"]["time"] - (gap if random else 0)
    else:
        end = rows["intended_ns"].max() + (0 if random else gap)
    if kind == "on_off":
        period = schedule["on"] + schedule["off"]
        whole = math.floor((end - begin) / period) * period
        end = begin + whole if whole > 0 else end
    inside = lambda x: (x > begin) & (x <= end) if random else (x >= begin) & (x < end)
    seconds = (end - begin) / 1e9
    intended = inside(rows["intended_ns"])
    arrived = inside(rows["receive_ns"])
    if case["pattern"] in ("oneway", "stream"):
        arrived = intended & rows["receive_ns"].notna()
    return [(int(which.sum()), seconds) for which in (intended, inside(rows["submit_ns"]), arrived)]


def delivered(rows, stride):
    """Of a bandwidth round: messages in the time that all flows share, and that time."""
    flows = []
    for _, flow in rows.groupby(["thread", rows["flags"] & REVERSE]):
        warm = np.flatnonzero(flow["flags"] & WARMUP)
        stamps = flow["receive_ns"].to_numpy()[warm[-1] if len(warm) else 0 :]
        flows.append(np.sort(stamps[~np.isnan(stamps)]))
    begin, end = max(f[0] for f in flows), min(f[-1] for f in flows)
    if end <= begin:
        return 0.0, 0.0
    at = lambda flow, ns: float(np.interp(ns, flow, np.arange(len(flow))))
    return stride * sum(at(f, end) - at(f, begin) for f in flows), (end - begin) / 1e9


def pattern_rates(run, rounds):
    """Every rate of a run but the slowdown, by its name."""
    case, records = run["case"], run["rounds"]
    if case["pattern"] == "bandwidth":
        work = [delivered(rows, r["stride"]) for rows, r in zip(rounds, records)]
        sized = [(w * case["size"], s) for w, s in work]
        found = {"bandwidth": rate(sized), "message_rate": rate(work)}
        if any((rows["flags"] & REVERSE != 0).any() for rows in rounds):
            for name, flag in (("bandwidth_there", 0), ("bandwidth_back", REVERSE)):
                ways = [rows[rows["flags"] & REVERSE == flag] for rows in rounds]
                work = [delivered(rows, r["stride"]) for rows, r in zip(ways, records)]
                found[name] = rate([(w * case["size"], s) for w, s in work])
        return found
    counted = [rows[rows["flags"] & WARMUP == 0] for rows in rounds]
    if isinstance(case["schedule"], dict):
        offered = next(iter(case["schedule"].values()))["rate"]
        each = [in_window(case, rows, r) for rows, r in zip(rounds, records)]
        intended, sent, received = ([one[i] for one in each] for i in range(3))
        found = {"offered_rate": rate(intended), "achieved_rate": rate(sent)}
    else:
        received, found = [span(rows["receive_ns"]) for rows in counted], {}
    found["message_rate"] = rate(received)
    if case["pattern"] == "stream":
        steps = [(len(rows), int((rows["flags"] & MISSED != 0).sum())) for rows in rounds]
        found["ceiling"] = rate([((a - m) / a * offered * case["size"], 1.0) for a, m in steps])
        found["missed"] = rate([(m, a) for a, m in steps])
    for role in ("client", "server") if case["pattern"] in ("load", "rpc") else ():
        cost = [(r[role]["cpu_ns"], r["counts"]["received"]) for r in records]
        found[f"cpu_{role}"] = rate([one for one in cost if one[1]])
    if case["pattern"] == "rpc":
        metric = run["details"]["metric"]
        answered = [r[np.isfinite(times(r, metric))] for r in counted]
        found["bandwidth"] = rate([(rows["size"].mean() * w, s)
                                   for rows, (w, s) in zip(answered, received)])
    return found


# Requests by their lengths


def times(rows, metric):
    return rows["receive_ns"] - rows["submit_ns" if metric == "rtt" else "intended_ns"]


def of_lengths(rounds, metric, lengths):
    """The durations of requests of these lengths, an array a round, up to the last that has any."""
    found = [durations(rows[rows["size"].isin(lengths)], metric) for rows in rounds]
    last = max(i for i, one in enumerate(found) if len(one))
    return found[: last + 1]


def with_base_error(mean, sizes, each):
    """The interval of a mean slowdown with that of the medians that it divides by."""
    if not mean["interval"]:
        return None
    shares, bases = [], [s["unloaded"] for s in sizes]
    for s, base in zip(sizes, bases):
        times = np.concatenate(each[s["size"]])
        shares.append(float((times[np.isfinite(times)] / base["p50_ns"]).sum()))
    known = [(w / sum(shares), b["p50_ns"], b["p50_interval"]) for w, b in zip(shares, bases)
             if b["p50_interval"]]
    less = math.hypot(*[w * (1 - p / i["high"]) for w, p, i in known]) * mean["value"]
    beyond = lambda p, low: p / low - 1 if low > 0 else INF
    more = math.hypot(*[w * beyond(p, i["low"]) for w, p, i in known]) * mean["value"]
    value, ends = mean["value"], mean["interval"]
    return {"low": max(value - math.hypot(value - ends["low"], less), 0),
            "high": value + math.hypot(ends["high"] - value, more)}


def rpc_details(run, rounds, baseline, threshold):
    """Sizes and slowdowns; the figure of the shortest tenth and the slowdown."""
    spec, metric = run["case"]["spec"], run["details"]["metric"]
    reply = lambda size: size if spec["reply"] == "echo" else spec["reply"]["short"]
    all_lengths = sorted(set(np.concatenate([r["size"][r["flags"] & WARMUP == 0] for r in rounds])))
    lengths = [int(size) for size in all_lengths]
    each = {size: of_lengths(rounds, metric, [size]) for size in lengths}
    total, before, sizes = sum(sum(map(len, e)) for e in each.values()), 0, []
    base = {size: np.sort(np.concatenate(e)) for size, e in baseline.items()}
    p50 = lambda size: summary(baseline[size], threshold)["quantiles"][1]["value"]
    shortest, longest = (min(base), max(base)) if base else (None, None)
    link = spec["link"]
    if base and link is None:
        bytes_more = longest + reply(longest) - shortest - reply(shortest)
        link = bytes_more / (p50(longest) - p50(shortest)) * 1e9
        link = link if bytes_more > 0 and link > 0 else None
    for size in lengths:
        before += sum(map(len, each[size]))
        names = ("p50_ns", "p50_interval", "min_ns", "serialisation_ns")
        cperf_ns = spec["baseline_rtt"] + size / (spec["link"] or 25e9 / 8) * 1e9
        unloaded = {**dict.fromkeys(names), "cperf_ns": cperf_ns}
        if size in base:
            median = summary(baseline[size], threshold)["quantiles"][1]
            unloaded = {**unloaded, "p50_ns": median["value"], "p50_interval": median["interval"],
                        "min_ns": base[size][0]}
        if base and link:
            moved = (size + reply(size)) / link * 1e9
            unloaded["serialisation_ns"] = p50(shortest) + moved
        sizes.append({"size": size, "reply": reply(size), "share": before / total,
                      "summary": summary(each[size], threshold), "unloaded": unloaded})
    means, short = [], None
    for by, name in (("unloaded_p50", "p50_ns"), ("unloaded_min", "min_ns"),
                     ("serialisation", "serialisation_ns"), ("cperf", "cperf_ns")):
        is_alone = by == spec["slowdown"] == "cperf" and not spec["unloaded"]
        if not (base or is_alone) or any(not s["unloaded"][name] for s in sizes):
            continue
        sums = [[0.0, 0.0] for _ in range(max(map(len, each.values())))]
        for s in sizes:
            for both, one in zip(sums, each[s["size"]]):
                one = one[np.isfinite(one)]
                both[0] += float((one / s["unloaded"][name]).sum())
                both[1] += len(one)
        mean = rate(sums)
        if by == "unloaded_p50":
            mean["interval"] = with_base_error(mean, sizes, each)
        means.append({"by": by, "mean": mean})
    if not spec["unloaded"]:
        last = next(i for i, s in enumerate(sizes) if s["share"] >= 0.1)
        short = [durations(r[r["size"].isin(lengths[: last + 1])], metric) for r in rounds]
    return {"metric": metric, "sizes": sizes, "slowdowns": means, "link": link}, short


# Comparison


def differences(path, want, have):
    """Numbers compared, and a line for each that differs."""
    if isinstance(want, dict):
        have = have if isinstance(have, dict) else {}
        lines = [f"{path}.{k} is missing" for k in want if k not in have]
        parts = [differences(f"{path}.{k}", v, have[k]) for k, v in want.items() if k in have]
    elif isinstance(want, list):
        lines = [f"{path}: {len(want)} and not {len(have)}"] if len(want) != len(have) else []
        parts = [differences(f"{path}[{i}]", *both) for i, both in enumerate(zip(want, have))]
    else:
        have = float(have) if have in ("inf", "-inf") else have
        number = isinstance(want, (int, float, np.number)) and isinstance(have, (int, float))
        same = want == have or number and math.isclose(want, have, rel_tol=TOLERANCE)
        return 1, [] if same else [f"{path} is {have}, recomputed {want}"]
    return sum(p[0] for p in parts), lines + [line for p in parts for line in p[1]]


def check(folder):
    with open(f"{folder}/record.json", encoding="utf-8") as file:
        record = json.load(file)
    table = pyarrow.parquet.read_table(f"{folder}/samples.parquet").to_pandas()
    threshold, compared, lines = record["plan"]["threshold"], 0, []
    rows_of = lambda run: [table[(table["run"] == run["index"]) & (table["round"] == r["index"])]
                           for r in run["rounds"]]
    of_curves = curves(record)
    for run in record["runs"]:
        rounds, label = rows_of(run), f"{folder} {run['label']}"
        wanted, short = {}, None
        if run["index"] in of_curves:
            wanted["details"] = of_curves[run["index"]]
        elif run["details"]:
            from_run = run["details"]["baseline"]
            baseline = {}
            if from_run is not None:
                other = record["runs"][from_run]
                metric, unloaded = other["details"]["metric"], rows_of(other)
                lengths = set(np.concatenate([rows["size"].unique() for rows in unloaded]))
                baseline = {int(s): of_lengths(unloaded, metric, [s]) for s in lengths}
            wanted["details"], short = rpc_details(run, rounds, baseline, threshold)
        is_single = run["case"]["pattern"] in ("latency", "oneway", "stream")
        if is_single and not any(r["samples_in_histogram_only"] for r in run["rounds"]):
            lost = sum(int((rows["flags"] & LOST != 0).sum()) for rows in rounds)
            wanted["counts"] = {"lost": lost}
        rates = pattern_rates(run, rounds) if run["rates"] else {}
        for mean in (wanted.get("details") or {}).get("slowdowns", []):
            if mean["by"] == run["case"]["spec"]["slowdown"]:
                rates["slowdown"] = mean["mean"]
        wanted["rates"] = [{"metric": r["metric"], "rate": rates[r["metric"]]}
                           for r in run["rates"]]
        wanted["figures"] = []
        for figure in run["figures"]:
            series = [durations(rows, figure["metric"]) for rows in rounds]
            series = short if figure["metric"] == "short" else [s for s in series if len(s)]
            own = with_known_error(summary(series, threshold), figure, run, record["instrument"])
            wanted["figures"].append({"metric": figure["metric"], "summary": own})
        numbers, found = differences(label, wanted, run)
        compared, lines = compared + numbers, lines + found
    return compared, lines


def main():
    compared, lines = 0, []
    for folder in sys.argv[1:]:
        numbers, found = check(folder)
        compared, lines = compared + numbers, lines + found
    print(f"{compared} numbers compared, {len(lines)} differ")
    for line in lines[:40]:
        print(line, file=sys.stderr)
    sys.exit(1 if lines or not compared else 0)


main()
