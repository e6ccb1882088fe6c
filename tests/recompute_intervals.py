"""Student's t, for recompute.py and recompute_curves.py."""

import math


def incomplete_beta(a, b, x):
    """Regularised, by Lentz's continued fraction."""
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= d * c
    return front * value


def t_975(freedom):
    low, high = 1.0, 13.0
    for _ in range(60):
        t = (low + high) / 2
        above = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
        low, high = (t, high) if above > 0.025 else (low, t)
    return (low + high) / 2
