#!/usr/bin/env python3
"""What it loses to set the gamma that `specdec plan` recommends, on the servers of published_rounds.csv, beside a straight
line and the fastest run; for docs/validation.md.

usage: published_regret.py SPECDEC [--no-kind]

Told are the plain run and one gamma, the plain run and two gammas, or all runs at two batches; asked is the best of the
gammas that ran at that batch, or at a third one. Regret is the throughput lost to the best of them, in percent. The line
goes through the rounds' seconds over gamma, with tokens per step by Theorem 3.8's constant alpha, or over the batch.
Means are over decisions and over sources, each of which counts once there. Later sources were transcribed after priors and
noise were chosen. --no-kind keeps the kind of draft back.
"""
from __future__ import annotations

import collections
import csv
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROUNDS = pathlib.Path(__file__).with_name("published_rounds.csv")
Run = collections.namedtuple("Run", "throughput tokens")
Server = collections.namedtuple("Server", "source deployment kind use")


def servers() -> dict[Server, dict[int, dict[int, Run]]]:
    """Runs by server, batch and gamma."""
    found: dict[Server, dict[int, dict[int, Run]]] = {}
    with open(ROUNDS, encoding="utf-8") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            batches = found.setdefault(Server(row["source"], row["deployment"], row["kind"], row["use"]), {})
            run = Run(float(row["output_tokens_per_second"]), float(row["tokens_per_step"]))
            batches.setdefault(int(row["batch"]), {})[int(row["gamma"])] = run
    return found


def recommended(specdec: str, told: list[tuple[int, int, Run]], options: list[int], server: Server, extra: list[str]) -> int:
    """Of the options, the gamma of least expected regret."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
        table.write("model,concurrency,gamma,tok/s,accept length\n")
        for batch, gamma, run in told:
            table.write(f"{server.source.split()[-1]},{batch},{gamma},{run.throughput},{run.tokens if gamma else ''}\n")
        table.flush()
        answer = subprocess.run([specdec, "plan", "--bench", table.name, "--format", "json", "--max-gamma", str(max(options)), *extra],
                                capture_output=True, check=True)
    regrets = {row["gamma"]: row["regret"] for row in json.loads(answer.stdout)["points"][0]["rows"]}
    return min(options, key=lambda gamma: regrets[gamma])


def tokens_of(alpha: float, gamma: int) -> float:
    return float(np.sum(alpha ** np.arange(gamma + 1)))


def alpha_of(tokens: float, gamma: int) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tokens_of(middle, gamma) < tokens else (low, middle)
    return low


def line_over_gamma(told: dict[int, Run], options: list[int]) -> int:
    gammas = np.array(sorted(told))
    slope, intercept = np.polyfit(gammas, [told[g].tokens / told[g].throughput for g in gammas], 1)

    def speed(gamma: int) -> float:
        if gamma in told:
            tokens = told[gamma].tokens
        else:
            nearest = min((g for g in gammas if g), key=lambda g: abs(g - gamma))
            tokens = tokens_of(alpha_of(told[nearest].tokens, nearest), gamma)
        return tokens / max(1e-9, intercept + slope * gamma)

    return max(options, key=speed)


def line_over_batch(told: dict[int, dict[int, Run]], batch: int, options: list[int]) -> int:
    (first, second) = sorted(told)

    def speed(gamma: int) -> float:
        if gamma not in told[first] or gamma not in told[second]:
            return 0
        seconds = [told[b][gamma].tokens * b / told[b][gamma].throughput for b in (first, second)]
        at = seconds[0] + (seconds[1] - seconds[0]) * (batch - first) / (second - first)
        return told[first][gamma].tokens / max(1e-9, at)

    return max(options, key=speed)


def decisions(specdec: str, gammas_told: int, later: bool, with_kind: bool):
    """(source, regrets of specdec, of the line and of the fastest run); at a third batch where gammas_told is 0."""
    for server, batches in servers().items():
        if (server.use == "later") != later:
            continue
        extra = ["--draft-kind", server.kind] if with_kind and server.kind else []
        if gammas_told == 0:
            for pair in itertools.combinations(sorted(batches), 2):
                for batch in sorted(set(batches) - set(pair)):
                    its, options = batches[batch], sorted(batches[batch])
                    told = {b: batches[b] for b in pair}
                    near = told[min(pair, key=lambda b: abs(np.log(b / batch)))]
                    runs = [(b, g, run) for b in pair for g, run in batches[b].items()]
                    chosen = (recommended(specdec, runs, options, server, [*extra, "--batch", str(batch)]),
                              line_over_batch(told, batch, options), max(set(near) & set(its), key=lambda g: near[g].throughput))
                    yield server.source, [100 * (1 - its[g].throughput / max(r.throughput for r in its.values())) for g in chosen]
            continue
        for batch, its in batches.items():
            options = sorted(its)
            drafted = [g for g in options if g]
            if 0 not in its or len(drafted) <= gammas_told:
                continue
            for gammas in itertools.combinations(drafted, gammas_told):
                told = {g: its[g] for g in (0, *gammas)}
                chosen = (recommended(specdec, [(batch, g, run) for g, run in told.items()], options, server, extra),
                          line_over_gamma(told, options), max(told, key=lambda g: told[g].throughput))
                yield server.source, [100 * (1 - its[g].throughput / max(r.throughput for r in its.values())) for g in chosen]


def main() -> None:
    specdec = str(pathlib.Path(sys.argv[1]).resolve())
    print("| told | decisions | specdec: mean, by source, 95% | line | fastest run |\n|---|---|---|---|---|")
    for what, gammas, later in (("plain and one gamma", 1, False), ("plain and two gammas", 2, False),
                                ("two batches, a third asked", 0, False),
                                ("later sources: plain and one gamma", 1, True), ("later sources: plain and two gammas", 2, True)):
        by_source: dict[str, list[list[float]]] = {}
        for source, regrets in decisions(specdec, gammas, later, "--no-kind" not in sys.argv):
            by_source.setdefault(source, []).append(regrets)
        every = np.array([regrets for some in by_source.values() for regrets in some])
        means = np.mean([np.mean(some, axis=0) for some in by_source.values()], axis=0)
        cells = [f"{every[:, i].mean():.2f}, {means[i]:.2f}, {np.quantile(every[:, i], 0.95):.1f}" for i in range(3)]
        print(f"| {what} | {len(every)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
