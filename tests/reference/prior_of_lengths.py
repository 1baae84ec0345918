#!/usr/bin/env python3
"""Priors of acceptance from the published lengths, by sums over a grid of mean and spread, for published_lengths_test.

    tests/reference/prior_of_lengths.py analysis/planning/presets/lengths/*.json

It shares no formula with the library beyond the model of docs/theory.md#priors-of-acceptance: rates are found by bisection
of the sum of powers, and the common mean is summed over, not integrated out.
"""

import json
import math
import statistics
import sys

KINDS = {"eagle3": {"eagle3"}, "mtp": {"mtp"}, "parallel": {"dflash", "dfly", "dspark"}}


def tokens(rate, gamma):
    return sum(rate**j for j in range(gamma + 1))


def log_odds(length, gamma):
    lo, hi = 0.0, 1.0
    for _ in range(200):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if tokens(middle, gamma) < length else (lo, middle)
    return math.log(hi / (1 - hi))


def near(lengths, gamma):
    at = min((int(key) for key in lengths), key=lambda key: (abs(key - gamma), key))
    return log_odds(lengths[str(at)], at)


def settings(files, methods):
    for name in files:
        with open(name) as file:
            document = json.load(file)
        for one in document["settings"]:
            if one.get("method", document.get("method")) in methods:
                yield one["target"], (one["draft"], one.get("source", document.get("source"))), one["lengths"]


def normal_below(x, mean, variance):
    return 0.5 * math.erfc((mean - x) / math.sqrt(2 * variance))


def prior(files, kind, gamma, target=None):
    figures = {}
    for its_target, deployment, lengths in settings(files, KINDS[kind]):
        figures.setdefault(its_target, {}).setdefault(deployment, []).append(near(lengths, gamma))
    groups = [values for deployments in figures.values() for values in deployments.values()]
    within = sum((y - statistics.fmean(v)) ** 2 for v in groups for y in v) / sum(len(v) - 1 for v in groups)
    excess = scale = 0.0
    for deployments in figures.values():
        if len(deployments) < 2:
            continue
        weights = [len(v) / within for v in deployments.values()]
        means = [statistics.fmean(v) for v in deployments.values()]
        mean = sum(w * m for w, m in zip(weights, means)) / sum(weights)
        excess += sum(w * (m - mean) ** 2 for w, m in zip(weights, means)) - (len(means) - 1)
        scale += sum(weights) - sum(w * w for w in weights) / sum(weights)
    between = max(0.0, excess / scale)
    values, variances = [], []
    for deployments in figures.values():
        weights = [1 / (between + within / len(v)) for v in deployments.values()]
        values.append(sum(w * statistics.fmean(v) for w, v in zip(weights, deployments.values())) / sum(weights))
        variances.append(1 / sum(weights))
    own = list(figures).index(target) if target else None
    parts = []
    for i in range(200):
        t2 = ((i + 0.5) / 100) ** 2
        for k in range(601):
            m = -2 + k * 0.01
            log = sum(-0.5 * math.log(v + t2) - (y - m) ** 2 / (2 * (v + t2)) for y, v in zip(values, variances))
            if own is None:
                parts.append((log, m, t2))
            else:
                y, v = values[own], variances[own]
                parts.append((log, (m / t2 + y / v) / (1 / t2 + 1 / v), 1 / (1 / t2 + 1 / v)))
    largest = max(part[0] for part in parts)
    parts = [(math.exp(log - largest), m, v + within + between) for log, m, v in parts if log > largest - 40]
    total = sum(part[0] for part in parts)

    def quantile(p):
        lo, hi = -20.0, 20.0
        for _ in range(60):
            middle = (lo + hi) / 2
            below = sum(w * normal_below(middle, m, v) for w, m, v in parts) / total
            lo, hi = (middle, hi) if below < p else (lo, middle)
        return tokens(1 / (1 + math.exp(-hi)), gamma)

    return [quantile(p) for p in (0.5, 0.025, 0.975)]


def main():
    files = sys.argv[1:]
    for kind, gamma, target in [
        ("eagle3", 3, None),
        ("eagle3", 7, "llama-3.3-70b"),
        ("mtp", 3, "deepseek-v3"),
        ("parallel", 7, None),
    ]:
        print(kind, gamma, target or "-", *(f"{value:.4f}" for value in prior(files, kind, gamma, target)))


if __name__ == "__main__":
    main()
