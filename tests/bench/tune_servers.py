"""How many minutes does `specdec tune` take to find the right number of drafts, and what is its answer worth?

usage: tune_servers.py [--servers 300] [--enough 0.005,0.0075,0.01] [--jobs 2]

Simulated servers whose laws are not the planner's: a pass is weights and arithmetic joined by a power, in steps of kernels'
tiles; mixtures of experts read experts as tokens find them; drafts of five kinds cost what they like; requests differ in what
they accept, sometimes behind a cliff. Runs err by 1 to 5%, starts by up to 1.5%. Rivals: the grid of gammas 0 to 8 at each
batch, golden section over gamma at each batch, and optuna's TPE, which measures all batches a trial
(left out without `pip install optuna`).

Regret is speed lost against the best gamma from 0 to 8, a mean over the batches. Minutes are shares of the grid's.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import importlib.util
import math
import pathlib
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

GAMMAS = range(9)
BATCHES = (1, 8, 32)
OUTPUT, PROMPT = 256, 512
#: Requests of a run at each batch: the first so many of the same prompts.
REQUESTS = {1: 32, 8: 64, 32: 256}
KINDS = ("eagle", "mtp", "parallel", "model", "ngram")
#: Median and spread of ln of a draft's pass, in plain steps.
DRAFT = {"eagle": (0.07, 0.4), "mtp": (0.15, 0.5), "parallel": (0.02, 0.5), "model": (0.25, 0.5), "ngram": (0.004, 0.7)}


class Law:
    """A server as it is."""

    def __init__(self, seed: int) -> None:
        self.random = draw = random.Random(seed)
        self.kind = draw.choice(KINDS)
        self.experts = draw.choice((64, 128, 256)) if draw.random() < 0.35 else 0
        self.step = math.exp(draw.uniform(math.log(0.006), math.log(0.04)))
        self.knee = math.exp(draw.uniform(math.log(24), math.log(500)))
        self.power = draw.uniform(1.5, 6)
        self.cache = math.exp(draw.gauss(math.log(0.004), 0.7))
        self.fixed = max(0.0, draw.gauss(0.05, 0.05))
        median, spread = DRAFT[self.kind]
        self.draft = median * math.exp(draw.gauss(0, spread))
        self.once = draw.uniform(0.08, 0.25) if self.kind == "parallel" else 0.0
        self.tile, self.rise = draw.choice(((1, 0.0), (8, 0.0), (8, 0.12), (16, 0.15), (64, 0.1)))
        self.share = draw.uniform(0.5, 0.85)
        mean = draw.uniform(0.15, 0.7) if self.kind == "ngram" else draw.uniform(0.35, 0.9)
        self.rates = [min(0.99, max(0.02, draw.betavariate(6 * mean, 6 * (1 - mean)))) for _ in range(max(REQUESTS.values()))]
        self.decay = draw.uniform(0.9, 1.0)
        self.cliff = draw.choice((2, 3, 4)) if self.kind in ("eagle", "mtp") and draw.random() < 0.12 else 99
        self.noise, self.start_noise = draw.uniform(0.01, 0.05), draw.uniform(0, 0.015)
        self.start_minutes = draw.uniform(1, 5)

    def accepts(self, rate: float, position: int, gamma: int) -> float:
        """That draft `position` of a round of gamma is accepted, given all before it. Lookups copy a share of the tokens."""
        if self.kind == "ngram":
            copied = rate / (gamma + 1)
            return 1 if position else copied / (1 - rate + copied)
        return rate * self.decay**position * (0.5 if position >= self.cliff else 1)

    def tokens(self, gamma: int, requests: int | None = None) -> float:
        """Output tokens over rounds, of all requests or of the first so many."""
        rounds = 0.0
        rates = self.rates[:requests]
        for rate in rates:
            survival, tokens = 1.0, 1.0
            for position in range(gamma):
                survival *= self.accepts(rate, position, gamma)
                tokens += survival
            rounds += 1 / tokens
        return len(rates) / rounds

    def passed(self, tokens: float) -> float:
        """A pass of the target, in plain steps of one sequence."""
        reads = 1.0
        if self.experts:
            found = [1 - (1 - 8 / self.experts) ** n for n in (tokens, 1)]
            reads = 1 - self.share + self.share * found[0] / found[1]
        work: float = (reads**self.power + (tokens / self.knee) ** self.power) ** (1 / self.power)
        return work * (1 + self.rise * math.log2(max(1, math.ceil(tokens / self.tile))) / 3)

    def seconds(self, gamma: int, batch: int, requests: int | None = None) -> float:
        """Per token of a request."""
        tokens = self.tokens(gamma, requests)
        round_ = self.passed(batch * (gamma + 1)) + self.cache * batch
        if gamma > 0:
            dense: float = (1 + (batch / self.knee) ** self.power) ** (1 / self.power)
            round_ += self.fixed + (self.once + gamma * self.draft) * dense
        round_ += (batch - 1) * tokens * PROMPT / OUTPUT / self.knee
        return self.step * round_ / tokens

    def speed(self, gamma: int, batch: int) -> float:
        return self.seconds(0, batch) / self.seconds(gamma, batch)

    def regret(self, choice: dict[int, int]) -> float:
        best = {batch: max(self.speed(gamma, batch) for gamma in GAMMAS) for batch in BATCHES}
        return sum(1 - self.speed(choice[batch], batch) / best[batch] for batch in BATCHES) / len(BATCHES)

    def run_minutes(self, gamma: int, batch: int) -> float:
        return 0.1 + REQUESTS[batch] / batch * OUTPUT * self.seconds(gamma, batch) / 60

    def grid_minutes(self) -> float:
        return len(GAMMAS) * self.start_minutes + sum(self.run_minutes(g, b) for g in GAMMAS for b in BATCHES)


class Simulated:
    """A server for `specdec.tune`, and its clock in seconds."""

    def __init__(self, seed: int) -> None:
        self.law = Law(seed)
        self.now = 0.0
        self.gamma: int | None = None
        self.off = 1.0
        self.starts = self.runs = 0

    def start(self, gamma: int) -> None:
        self.gamma = gamma
        self.off = math.exp(self.law.random.gauss(0, self.law.start_noise))
        self.now += 60 * self.law.start_minutes
        self.starts += 1

    def seconds(self, batch: int) -> float:
        assert self.gamma is not None
        self.now += 60 * self.law.run_minutes(self.gamma, batch)
        self.runs += 1
        noise = math.exp(self.law.random.gauss(0, self.law.noise))
        return self.law.seconds(self.gamma, batch, REQUESTS[batch]) * self.off * noise

    def measure(self, batch: int) -> dict[str, Any]:
        seconds, gamma, requests = self.seconds(batch), self.gamma or 0, REQUESTS[batch]
        row: dict[str, Any] = {
            "ms_per_token": 1e3 * seconds,
            "output_tokens_per_second": batch / seconds,
            "requests": requests,
            "total_input_tokens": PROMPT * requests,
            "total_output_tokens": OUTPUT * requests,
            "model": "mixture-30b-a3b" if self.law.experts else "dense-8b",
        }
        if gamma == 0:
            return row
        rounds, at = 0, [0] * gamma
        draw = self.law.random
        for rate in self.law.rates[:requests]:
            left = OUTPUT - 1
            while left > 0:
                rounds, left = rounds + 1, left - 1
                for position in range(gamma):
                    if draw.random() >= self.law.accepts(rate, position, gamma):
                        break
                    at[position] += 1
                    left -= 1
        row |= {"num_drafts": rounds, "num_draft_tokens": gamma * rounds, "num_accepted_tokens": sum(at)}
        return row | {f"acceptance_at_pos_{position}": one / rounds for position, one in enumerate(at)}

    def stop(self) -> None:
        self.gamma = None

    def at(self, gamma: int, batch: int) -> float:
        if gamma != self.gamma:
            self.start(gamma)
        return self.seconds(batch)


@dataclasses.dataclass
class Outcome:
    """Shares of the grid's minutes at which the regret is at most 1% for good (None: never), and at the end."""

    reached: float | None
    ended: float
    regret: float
    starts: int
    runs: int
    said: float = math.nan
    held: tuple[bool, ...] = ()


def outcome(server: Simulated, trail: Sequence[tuple[float, dict[int, int]]], **more: Any) -> Outcome:
    grid = server.law.grid_minutes()
    reached: float | None = None
    for minutes, choice in trail:
        if server.law.regret(choice) > 0.01:
            reached = None
        elif reached is None:
            reached = minutes / grid
    return Outcome(reached, server.now / 60 / grid, server.law.regret(trail[-1][1]), server.starts, server.runs, **more)


def tuned(seed: int, enough: float) -> Outcome:
    from specdec import _tune

    server = Simulated(seed)
    trail: list[tuple[float, dict[int, int]]] = []

    class Recorded(_tune._Loop):
        def _planned(self, **more: Any) -> Any:
            plan = super()._planned(**more)
            trail.append((server.now / 60, {round(point.batch): point.gamma for point in plan.points}))
            return plan

    question = {"batch": list(BATCHES), "draft_kind": server.law.kind, "max_gamma": GAMMAS[-1], "min_gain": 0.0}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None) as folder:
        kept = _tune.Kept(pathlib.Path(folder), question)
        loop = Recorded(
            kept, question, enough=enough, budget=3 * server.law.grid_minutes(), clock=lambda: server.now,
            tell=lambda line: None,
        )
        answer = loop.run([server], None)
        kept.close()
    assert answer.plan is not None
    held = []
    for point in answer.plan.to_dict()["points"]:
        if point["gamma"] and point["speedup"]["ci95"]:
            low, high = point["speedup"]["ci95"]
            held.append(low <= server.law.speed(point["gamma"], round(point["batch"])) <= high)
    return outcome(server, trail, said=answer.regret or math.nan, held=tuple(held))


def best_of(times: dict[tuple[int, int], list[float]]) -> dict[int, int]:
    mean = {key: statistics.mean(values) for key, values in times.items()}
    return {batch: min((mean[g, b], g) for g, b in mean if b == batch)[1] if any(b == batch for _, b in mean) else 0
            for batch in BATCHES}


def grid(seed: int) -> Outcome:
    server = Simulated(seed)
    times = {(gamma, batch): [server.at(gamma, batch)] for gamma in GAMMAS for batch in BATCHES}
    return outcome(server, [(server.now / 60, best_of(times))])


def golden(seed: int) -> Outcome:
    server, times, trail = Simulated(seed), dict[tuple[int, int], list[float]](), []

    def time(gamma: int, batch: int) -> float:
        if (gamma, batch) not in times:
            times[gamma, batch] = [server.at(gamma, batch)]
            trail.append((server.now / 60, best_of(times)))
        return times[gamma, batch][0]

    for batch in BATCHES:
        low, high = GAMMAS[0], GAMMAS[-1]
        while high - low > 2:
            left = high - round((high - low) * 0.618)
            right = low + round((high - low) * 0.618)
            right = right if right > left else left + 1
            low, high = (low, right) if time(left, batch) < time(right, batch) else (left, high)
        for gamma in range(low, high + 1):
            time(gamma, batch)
    return outcome(server, trail)


def tpe(seed: int) -> Outcome:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    server, times, trail = Simulated(seed), dict[tuple[int, int], list[float]](), []

    def objective(trial: Any) -> float:
        gamma = trial.suggest_int("gamma", GAMMAS[0], GAMMAS[-1])
        for batch in BATCHES:
            times.setdefault((gamma, batch), []).append(server.at(gamma, batch))
        trail.append((server.now / 60, best_of(times)))
        return sum(math.log(times[gamma, batch][-1]) for batch in BATCHES)

    optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=4)).optimize(objective, n_trials=9)
    return outcome(server, trail)


def row(name: str, results: list[Outcome]) -> str:
    def at(values: Sequence[float], share: float) -> float:
        return sorted(values)[min(len(values) - 1, int(share * len(values)))]

    reached = [one.reached for one in results if one.reached is not None]
    ended, regret = [one.ended for one in results], [one.regret for one in results]
    all_reached = [math.inf if one.reached is None else one.reached for one in results]
    text = (
        f"| {name} | {at(all_reached, 0.5):.2f} | {len(reached) / len(results):.0%} | {statistics.mean(ended):.2f} | "
        f"{statistics.mean(one.starts for one in results):.1f} | {statistics.mean(one.runs for one in results):.1f} | "
        f"{statistics.mean(regret):.2%} | {at(regret, 0.95):.2%} |"
    )
    held = [one for result in results for one in result.held]
    if held:
        said = statistics.mean(one.said for one in results if not math.isnan(one.said))
        text += f"\n    says an expected regret of {said:.2%}; 95% intervals of the speedup hold {sum(held) / len(held):.1%}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=300)
    parser.add_argument("--enough", default="0.005,0.0075,0.01")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print("| method | minutes to 1%, median | reach it | minutes at the end, mean | starts | runs | regret | 95th percentile |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    seeds = range(1000, 1000 + options.servers)
    rivals: list[tuple[str, Callable[[int], Outcome]]] = [("grid", grid), ("golden section", golden)]
    if importlib.util.find_spec("optuna"):
        rivals.append(("optuna's TPE", tpe))
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for name, rival in rivals:
            print(row(name, list(pool.map(rival, seeds))), flush=True)
        for enough in map(float, options.enough.split(",")):
            results = list(pool.map(tuned, seeds, [enough] * len(seeds)))
            print(row(f"tune, enough {enough:.1%}", results), flush=True)


if __name__ == "__main__":
    main()
