#!/usr/bin/env python3
"""Writes analysis/estimate/population_priors.hpp: what is known of a population of requests before it is measured.

  pip install numpy
  scripts/fit_acceptance_priors.py [--output FILE] [--left-out FILE]

Draft j of a round of request i, given that all before were accepted, is accepted with log-odds

  a_i - delta (j - 1),   a_i ~ N(mu, sigma^2),   tokens per step 1 / E[1 / tau_i]

The law of (mu, ln sigma, delta) over drafts, a normal, is fitted by expectation maximisation to the published curves of
three lengths or more (analysis/planning/presets/lengths), each with noise of its own: 1.2% of a length, and a walk of
0.6% a draft. Methods with few curves are drawn towards that of all. Drops of the log-odds behind a depth are fitted
beside it; those that a measured curve cannot show, because it ends there, are given below with their reason.

--left-out writes the same for each target from the curves of all others, for tests/bench/acceptance_worlds.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from dataclasses import dataclass

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
METHODS = {"eagle3": "eagle3", "mtp": "mtp", "dspark": "parallel", "dflash": "parallel", "dfly": "parallel"}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(10)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LONGEST = 8
NOISE, WALK = 0.012, 0.006
# Curves that a method's own law is drawn towards that of all with.
SHRINKAGE = 3
# A law is not narrower than this, whatever few curves say.
FLOOR = np.diag([0.2, 0.15, 0.04]) ** 2
# Drops behind the trained depth, which curves that end there cannot show: of 94 eagle3 curves 12% are fitted better
# with one, of 9 mtp curves a third, but of 4 targets only one and of another one engine.
CLIFFS = {"any": 0.15, "eagle3": 0.12, "mtp": 0.25, "parallel": 0.15}
# Without published curves. Draft models: as all, but falling less with depth, and wider. Lookups: a stretch of text is
# copied whole or not at all, as where requests differ beyond measure (docs/theory.md, drafts that are looked up).
ASSUMED = {
    "model": ((1.739, 0.056, 0.15), (1.2, 0.6, 0.15), (0.47, 0.16, 0.41), 0.02),
    "n-gram": ((-3.0, 1.8, 0.0), (8.0, 0.5, 0.15), (0.0, 0.0, 0.0), 0.02),
}


@dataclass
class Curve:
    target: str
    method: str
    lengths: dict[int, float]


@dataclass
class Law:
    mean: np.ndarray
    covariance: np.ndarray
    cliff: float


@dataclass
class Points:
    """Populations that give a curve, with their logarithmic likelihoods."""

    places: np.ndarray
    likelihoods: np.ndarray
    with_cliff: np.ndarray


def curves() -> list[Curve]:
    found = []
    for file in sorted((ROOT / "analysis/planning/presets/lengths").glob("*.json")):
        document = json.loads(file.read_text())
        for setting in document["settings"]:
            lengths = {int(gamma): float(length) for gamma, length in setting["lengths"].items()}
            if len(lengths) >= 3:
                found.append(Curve(setting["target"], METHODS[setting.get("method", document.get("method"))], lengths))
    return found


class Shapes:
    """ln(tokens per step) by mu, of a grid of (ln sigma, delta, drop)."""

    def __init__(self) -> None:
        self.mu = np.linspace(-3, 9, 61)
        cliffs = [(0, 0.0)] + [(depth, drop) for depth in (3, 4, 5, 7) for drop in (1.5, 3.0)]
        grid = np.meshgrid(np.linspace(np.log(0.1), np.log(2.6), 10), np.linspace(-0.5, 1.3, 37),
                           np.arange(len(cliffs)), indexing="ij")
        self.log_sigma, self.delta = grid[0].ravel(), grid[1].ravel()
        depth = np.array([cliff[0] for cliff in cliffs])[grid[2].ravel()]
        drop = np.array([cliff[1] for cliff in cliffs])[grid[2].ravel()]
        self.with_cliff = depth > 0
        draft = np.arange(LONGEST)
        fall = self.delta[:, None] * draft + drop[:, None] * ((draft >= depth[:, None]) & self.with_cliff[:, None])
        spread = np.exp(self.log_sigma)[:, None, None] * NODES[:, None]
        self.log_tokens = np.empty((len(self.mu), len(depth), LONGEST))
        for i, mu in enumerate(self.mu):
            alive = np.cumprod(1 / (1 + np.exp(-(mu + spread - fall[:, None, :]))), -1)
            self.log_tokens[i] = -np.log(np.einsum("z,szg->sg", WEIGHTS, 1 / (1 + np.cumsum(alive, -1))))

    def points(self, curve: Curve) -> Points:
        """mu is solved from the middle length, at five places of its error."""
        gammas = sorted(curve.lengths)
        observed = np.log([curve.lengths[gamma] for gamma in gammas])
        covariance = NOISE**2 * np.eye(len(gammas)) + WALK**2 * np.minimum.outer(gammas, gammas)
        precision = np.linalg.inv(covariance)
        middle = len(gammas) // 2
        errors, error_weights = np.polynomial.hermite_e.hermegauss(5)
        by_mu = self.log_tokens[:, :, gammas[middle] - 1]
        shape = np.arange(by_mu.shape[1])
        places, likelihoods = [], []
        for error, weight in zip(errors, error_weights):
            wanted = observed[middle] + error * np.sqrt(covariance[middle, middle])
            above = np.clip((by_mu < wanted).sum(0), 1, len(self.mu) - 1)
            low, high = by_mu[above - 1, shape], by_mu[above, shape]
            share = (wanted - low) / np.maximum(high - low, 1e-12)
            between = (1 - share)[:, None] * self.log_tokens[above - 1, shape]
            off = between + share[:, None] * self.log_tokens[above, shape]
            off = off[:, [gamma - 1 for gamma in gammas]] - observed
            step = self.mu[1] - self.mu[0]
            likelihood = error**2 / 2 - np.einsum("si,ij,sj->s", off, precision, off) / 2
            likelihood += np.log(weight) + np.log(step / np.maximum(high - low, 1e-9))
            likelihood[(share < 0) | (share > 1)] = -np.inf
            places.append(np.stack([self.mu[above - 1] + share * step, self.log_sigma, self.delta], 1))
            likelihoods.append(likelihood)
        all_likelihoods = np.concatenate(likelihoods)
        kept = all_likelihoods > all_likelihoods.max() - 12
        return Points(np.concatenate(places)[kept], all_likelihoods[kept] - all_likelihoods.max(),
                      np.tile(self.with_cliff, len(errors))[kept])


def log_normal(places: np.ndarray, law: Law) -> np.ndarray:
    root = np.linalg.cholesky(law.covariance)
    scaled = np.linalg.solve(root, (places - law.mean).T)
    return -(scaled * scaled).sum(0) / 2 - np.log(np.diag(root)).sum()


def fitted(points: list[Points], start: Law, rounds: int, towards: Law | None = None) -> Law:
    law = start
    for _ in range(rounds):
        count, first, second, cliff = 0.0, np.zeros(3), np.zeros((3, 3)), 0.0
        for its in points:
            of_cliff = np.where(its.with_cliff, np.log(law.cliff / 8 + 1e-9), np.log(1 - law.cliff))
            weights = its.likelihoods + log_normal(its.places, law) + of_cliff
            weights = np.exp(weights - weights.max())
            weights /= weights.sum()
            count += 1
            first += weights @ its.places
            second += (weights[:, None] * its.places).T @ its.places
            cliff += weights[its.with_cliff].sum()
        if towards is not None:
            count += SHRINKAGE
            first += SHRINKAGE * towards.mean
            second += SHRINKAGE * (towards.covariance + np.outer(towards.mean, towards.mean))
            cliff += SHRINKAGE * towards.cliff
        mean = first / count
        law = Law(mean, second / count - np.outer(mean, mean) + FLOOR, cliff / count)
    return law


def row(law: Law) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    deviation = np.sqrt(np.diag(law.covariance))
    correlation = law.covariance / np.outer(deviation, deviation)
    return law.mean, deviation, correlation[np.triu_indices(3, 1)]


def header(laws: dict[str, Law], counts: dict[str, int]) -> str:
    rows = []

    def braces(values: np.ndarray | tuple[float, ...], digits: int) -> str:
        return "{" + ", ".join(f"{value:.{digits}f}" for value in values) + "}"

    for method, law in laws.items():
        mean, deviation, correlation = row(law)
        rows.append(f'    {{"{method}", {counts[method]}, {braces(mean, 3)}, {braces(deviation, 3)}, '
                    f"{braces(correlation, 2)}, {CLIFFS[method]:.2f}}},")
    for method, (mean, deviation, correlation, cliff) in ASSUMED.items():
        rows.append(f'    {{"{method}", 0, {braces(mean, 3)}, {braces(deviation, 3)}, {braces(correlation, 2)}, '
                    f"{cliff:.2f}}},")
    path = ROOT / "analysis/estimate/population_priors.hpp"
    text = path.read_text()
    begin = text.index("population_prior_rows[] = {\n") + len("population_prior_rows[] = {\n")
    return text[:begin] + "\n".join(rows) + "\n" + text[text.index("};\n\n}  // namespace"):]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, help="the header to write")
    parser.add_argument("--left-out", type=pathlib.Path, help="priors for each target from all others")
    arguments = parser.parse_args()
    all_curves = curves()
    shapes = Shapes()
    points = [shapes.points(curve) for curve in all_curves]
    start = Law(np.array([1.2, np.log(0.7), 0.12]), np.diag([1.3, 0.7, 0.2]) ** 2, 0.15)

    def laws_of(kept: list[int], methods: list[str], start: Law, rounds: int) -> dict[str, Law]:
        laws = {"any": fitted([points[i] for i in kept], start, rounds)}
        for method in methods:
            own = [points[i] for i in kept if all_curves[i].method == method]
            laws[method] = fitted(own, laws["any"], 20, laws["any"]) if own else laws["any"]
        return laws

    methods = ["eagle3", "mtp", "parallel"]
    laws = laws_of(list(range(len(points))), methods, start, 60)
    counts = {method: sum(curve.method == method for curve in all_curves) for method in methods}
    counts["any"] = len(all_curves)
    for method, law in laws.items():
        print(method, counts[method], *(np.round(part, 3).tolist() for part in row(law)), f"cliffs fitted {law.cliff:.2f}")
    if arguments.output:
        arguments.output.write_text(header(laws, counts))
    if not arguments.left_out:
        return
    lines = []
    for target in sorted({curve.target for curve in all_curves}):
        kept = [i for i, curve in enumerate(all_curves) if curve.target != target]
        own = sorted({curve.method for curve in all_curves if curve.target == target})
        for method, law in laws_of(kept, own, laws["any"], 12).items():
            if method != "any":
                numbers = [f"{value:.4f}" for part in row(law) for value in part]
                lines.append(" ".join([target, method, *numbers, f"{CLIFFS[method]}"]))
    arguments.left_out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
