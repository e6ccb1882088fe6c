"""What recompute.py says of curves over load: their knee, and the highest rate that keeps a limit.

METHOD.md, "Load".
"""

import math


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
        chance = 3 / math.sqrt(max(messages, 1)) if kind in ("poisson", "on_off") else 0
        return value < (0.99 - chance) * schedule["rate"]

    achieved, answers = rates["achieved_rate"]["value"], rates["message_rate"]["interval"]
    is_late = is_low(achieved, counts["sent"])
    answered = counts["received"] >= 0.99 * (counts["sent"] + counts["unsent"])
    piles_up = bool(answers) and is_low(float(answers["high"]), counts["received"])
    unknown = is_late and not counts["held_up"]
    short, p50 = is_late or not answered or piles_up, bounds(0.5)[2]
    value, low, high = bounds(slo["quantile"] if slo else 0.99)
    return {"run": run["index"], "offered": schedule["rate"], "short": short,
            "known": not unknown and not math.isnan(p50),
            "power": 0 if short or math.isnan(p50) else achieved / p50,
            "value": value, "low": low, "high": math.nan if unknown else high}


def landmarks(runs):
    """The knee of a curve, and the highest rate that keeps its limit; None: neither is known."""
    points = sorted(map(point, runs), key=lambda p: p["offered"])
    slo = runs[0]["case"]["spec"]["slo"]
    at = lambda p, lies: {"run": p["run"], "offered": p["offered"], "lies": lies}
    known, knee, highest, broken = [p for p in points if p["known"]], None, None, None
    best = max(range(len(known)), key=lambda i: (known[i]["power"], i), default=None)
    if best is not None and known[best]["power"] > 0 and len(known) > 1 and len(points) > 2:
        lies = {0: "at_most", len(known) - 1: "at_least"}.get(best, "within")
        knee = at(known[best], lies)
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
