"""What recompute.py says of curves over load: their knee, and the highest rate that keeps a limit.

METHOD.md, "Load".
"""

import math

from recompute_intervals import t_975


def point(run):
    """What a run says of its offered rate: whether it is known, falls short, power, the bound."""
    case, counts = run["case"], run["counts"]
    (kind, schedule), slo = next(iter(case["schedule"].items())), case["spec"]["slo"]
    rates = {r["metric"]: r["rate"] for r in run["rates"]}
    response = next(f["summary"] for f in run["figures"] if f["metric"] == "response")

    def bounds(p):
        """A quantile, and the ends of its interval."""
        found = next((q for q in response["quantiles"] if q["p"] == p), None)
        if not counts["received"] or not found or found["value"] is None:
            return math.nan, math.nan, math.nan
        both = found["interval"] or {"low": 0, "high": math.inf}
        return float(found["value"]), float(both["low"]), float(both["high"])

    def is_low(value, messages):
        return value < (0.99 - 1 / max(messages, 1)) * rates["offered_rate"]["value"]

    achieved, answers = rates["achieved_rate"]["value"], rates["message_rate"]["interval"]
    is_late = is_low(achieved, counts["sent"])
    answered = counts["received"] >= 0.99 * (counts["sent"] + counts["unsent"])
    piles_up = bool(answers) and is_low(float(answers["high"]), counts["received"])
    unknown = is_late and not counts["held_up"]
    short, p50 = is_late or not answered or piles_up, bounds(0.5)[0]
    value, low, high = bounds(slo["quantile"] if slo else 0.99)
    number = [q["p"] for q in response["quantiles"]].index(0.5)
    own = response["quantiles"][number]
    medians = [r["quantiles"][number] for r in response["rounds"]]
    sent = rates["achieved_rate"]
    power = None
    if not math.isnan(p50):
        as_rounds = lambda figure, values: figure["basis"] != "pooled" and values
        power = ratio(figure(own, as_rounds(own, medians)),
                      figure(sent, as_rounds(sent, sent["rounds"])))
    return {"run": run["index"], "offered": schedule["rate"], "short": short, "p50": p50,
            "known": not unknown and not math.isnan(p50), "power": power,
            "value": value, "low": low, "high": math.nan if unknown else high}


def figure(found, rounds):
    """A figure, the ends of its interval on logarithms, and of its rounds mean, error, freedom."""
    ends = found["interval"] and [float(found["interval"][end]) for end in ("low", "high")]
    logs = lambda x: math.log(x) if x > 0 else -math.inf
    rounds = [v for v in rounds or [] if isinstance(v, (int, float))]
    scatter = None
    if len(rounds) > 1 and min(rounds) > 0:
        mean = sum(map(math.log, rounds)) / len(rounds)
        squares = sum((math.log(v) - mean) ** 2 for v in rounds)
        scatter = mean, math.sqrt(squares / (len(rounds) - 1) / len(rounds)), len(rounds) - 1
    return logs(float(found["value"])), ends and [logs(end) for end in ends], scatter


def ratio(one, other):
    """The second figure over the first: its logarithm, and the ends of that."""
    if one[2] and other[2]:
        (a, va, fa), (b, vb, fb) = one[2], other[2]
        va, vb = va * va, vb * vb
        sums = va * va / fa + vb * vb / fb
        half = t_975((va + vb) ** 2 / sums if sums else min(fa, fb)) * math.sqrt(va + vb)
        return b - a, [b - a - half, b - a + half], None
    a, b = one[0], other[0]
    if math.isnan(b - a) or math.isinf(a):
        return None
    if not one[1] or not other[1]:
        return b - a, None, None
    down = math.hypot(max(b - other[1][0], 0), max(one[1][1] - a, 0))
    up = math.hypot(max(other[1][1] - b, 0), max(a - one[1][0], 0))
    return b - a, [b - a - down, b - a + up], None


def knee_of(points):
    """The rates whose power is not shown to be below the highest, and where the knee is."""
    known = [p for p in points if p["known"]]
    quietest = min((p["p50"] for p in known), default=math.inf)
    able = [p for p in known if not p["short"] and p["p50"] <= 10 * quietest and p["power"]]
    if not able or len(known) < 2 or len(points) < 3:
        return None
    best = max(able, key=lambda p: (p["power"][0], p["offered"]))

    def is_lower(p):
        found = ratio(best["power"], p["power"])
        return bool(found and found[1]) and found[1][1] < 0

    alike = [p for p in able if p is best or not is_lower(p)]
    edges = alike[0] is known[0], alike[-1] is known[-1]
    lies = {(True, True): "unresolved", (True, False): "at_most", (False, True): "at_least"}
    return {"run": best["run"], "offered": best["offered"],
            "alike": [alike[0]["offered"], alike[-1]["offered"]],
            "lies": lies.get(edges, "within")}


def landmarks(runs):
    """The knee of a curve, and the highest rate that keeps its limit; None: neither is known."""
    points = sorted(map(point, runs), key=lambda p: p["offered"])
    slo = runs[0]["case"]["spec"]["slo"]
    at = lambda p, lies: {"run": p["run"], "offered": p["offered"], "lies": lies}
    knee, highest, broken = knee_of(points), None, None
    may = False
    for one in [p for p in points if slo and not math.isnan(p["high"])]:
        if one["short"] or one["low"] >= slo["below"]:
            broken = one
            break
        if one["high"] < slo["below"]:
            highest = one
        else:
            may = may or one["value"] < slo["below"]
    if highest or broken and not may:
        lies = ("within" if broken else "at_least") if highest else "at_most"
        highest = at(highest or broken, lies)
    return {"knee": knee, "highest": highest} if knee or highest else None


def curves(record):
    """The details of each run of `load`: those of its curve stand in the first of it."""
    found, first = {}, {}
    for run in record["runs"]:
        case = run["case"]
        if case["pattern"] == "load" and not case["spec"]["probe"]:
            found[run["index"]] = None
            hosts = [rank["host"] for rank in case["topology"]["ranks"]]
            place = (case["transport"], case["wait"], case["size"], str(case["spec"]["buffers"]),
                     str(hosts), str(case["topology"]["wiring"]))
            first.setdefault(place, []).append(run)
    for runs in first.values():
        points = [run for run in runs if isinstance(run["case"]["schedule"], dict)]
        found[runs[0]["index"]] = landmarks(points) if points else None
    return found
