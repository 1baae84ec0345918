#!/usr/bin/env python3
"""Asks the program random questions and holds its answers to what is true of every answer.

usage: random_questions.py SPECDEC [--questions N] [--seed N] [--only INDEX] [--keep FOLDER]

Each question is drawn from (seed, index) alone: an acceptance (rates, intervals, lengths, positions, published, what
servers counted), a cost (constants, tables of times, hardware, benchmark runs) and what is asked of plan, counters,
synthetic or capacity. An answer in itself: intervals hold their values, ranges are ordered, rows hold the arithmetic of
docs/theory.md, the verdict and the recommendation are those of the rows, and text, CSV and the emitted configuration say
what the JSON says. Two answers: the question printed by the program, and files in another order, give the same one;
more acceptance gains no less, and dearer drafts no more. --only answers for one question, --keep leaves its files.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import io
import json
import math
import os
import random
import shlex
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[3] / "traces" / "samples"
SECONDS = 120
TOLERANCE = 1e-9  # relative: sums in another order
SCATTER = 0.06  # of fits between benchmark runs, by which runs themselves may differ


class Violation(Exception):
    pass


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Violation(message)


def at_most(low: float, high: float) -> bool:
    return low <= high + TOLERANCE * max(1.0, abs(high))


def same(one: float, other: float, tolerance: float = TOLERANCE) -> bool:
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


# ---------------------------------------------------------------------------------------------------------- the question


@dataclass(frozen=True)
class Question:
    command: str
    options: dict[str, list[str]] = field(default_factory=dict)  # positional files under ""
    files: dict[str, str] = field(default_factory=dict)

    def words(self, **more: str) -> list[str]:
        listed = [self.command]
        for name, values in {**self.options, **{k.replace("_", "-"): [v] for k, v in more.items()}}.items():
            listed += ([f"--{name}"] if name else []) + values
        return listed

    def with_option(self, name: str, *values: str) -> Question:
        return replace(self, options={**self.options, name: list(values)})

    def with_file(self, name: str, content: str) -> Question:
        return replace(self, files={**self.files, name: content})


def number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}"


def survival(draw: random.Random, length: int) -> list[float]:
    """The rates at which the first, second, ... draft is accepted, of all rounds; each draft's own rate falls a little."""
    rate, kept, rates = draw.uniform(0.2, 0.97), 1.0, []
    for _ in range(length):
        kept *= rate
        rates.append(kept)
        rate *= draw.uniform(0.9, 1.0)
    return rates


def counted_requests(draw: random.Random, gamma: int) -> str:
    """What vLLM says of each request: how many rounds accepted 0, 1, ... drafts."""
    lines = []
    for request in range(draw.choice([1, 2, 5, 20, 40])):
        rates = [1.0, *survival(draw, gamma), 0.0]
        shares = [before - after for before, after in zip(rates, rates[1:])]
        rounds = draw.choices(range(gamma + 1), shares, k=draw.randint(1, 200))
        histogram = [rounds.count(accepted) for accepted in range(gamma + 1)]
        accepted = sum(index * count for index, count in enumerate(histogram))
        lines.append(json.dumps({"id": f"cmpl-{request}", "model": "target", "metrics": {"speculative_decoding": {
            "acceptance_histogram": histogram, "num_spec_steps": len(rounds), "num_accepted_draft_tokens": accepted,
            "num_draft_tokens": len(rounds) * gamma, "num_spec_tokens": gamma}}}))
    return "\n".join(lines) + "\n"


def scrapes(draw: random.Random, gamma: int, count: int) -> list[str]:
    """Counters of vLLM after 0, 1, ... windows."""
    totals, pages, alike = [0] * (gamma + 1), [], draw.random() < 0.2
    rounds, rates = draw.randint(50, 5000), survival(draw, gamma)
    for _ in range(count + 1):
        name = 'vllm:spec_decode_num_{}_total{{engine="0",model_name="target"{}}} {}\n'
        page = name.format("drafts", "", totals[0]) + name.format("draft_tokens", "", totals[0] * gamma)
        page += name.format("accepted_tokens", "", sum(totals[1:]))
        for position in range(gamma):
            page += name.format("accepted_tokens_per_pos", f',position="{position}"', totals[position + 1])
        pages.append(page)
        if not alike:
            rounds, rates = draw.randint(50, 5000), survival(draw, gamma)
        for position, rate in enumerate([1.0, *rates]):
            totals[position] += round(rounds * rate)
    return pages


def acceptance(draw: random.Random, question: Question) -> Question:
    kind = draw.choice(["alpha", "alpha", "interval", "rejection", "length", "lengths", "positions", "conditional",
                        "published", "requests", "scrapes"])
    gamma = draw.randint(1, 7)
    rates = survival(draw, gamma)
    if kind == "alpha":
        return question.with_option("alpha", number(draw.choice([0, 1, *(draw.random() for _ in range(8))])))
    if kind == "interval":
        low, high = sorted((draw.random(), draw.random()))
        return question.with_option("alpha", f"{low:.4f}:{high:.4f}")
    if kind == "rejection":
        return question.with_option("rejection", number(draw.uniform(0, 1) ** draw.choice([1, 4])))
    if kind == "published":
        return question.with_option("published", draw.choice(
            ["ende-t5-small-t0", "dialog-lamda-8b-t0", "lm1b-bigram-t1", "cnndm-t5-base-t1"]))
    if kind == "requests":
        for index in range(draw.choice([1, 1, 2, 3])):
            name = f"requests{index}.jsonl"
            question = question.with_file(name, counted_requests(draw, gamma))
            listed = question.options.get("counters", [])
            question = question.with_option("counters", *listed, name)
        return question
    if kind == "scrapes":
        pages = scrapes(draw, gamma, draw.choice([1, 2, 5, 20]))
        for index, page in enumerate(pages):
            question = question.with_file(f"scrape{index:02}.prom", page)
        return question.with_option("counters", *(f"scrape{index:02}.prom" for index in range(len(pages))))
    if kind == "length":
        question = question.with_option("acceptance-length", f"{1 + sum(rates):.{draw.choice([2, 3])}f}")
        question = question.with_option("at", str(gamma))
    if kind == "lengths":
        kept = sorted(draw.sample(range(1, gamma + 1), draw.randint(1, gamma)))
        question = question.with_option("acceptance-length", ",".join(f"{g}:{1 + sum(rates[:g]):.2f}" for g in kept))
    if kind == "positions":
        question = question.with_option("acceptance-per-position", ",".join(f"{rate:.3f}" for rate in rates))
    if kind == "conditional":
        own = [after / before for before, after in zip([1.0, *rates], rates)]
        question = question.with_option("acceptance-per-position", ",".join(f"{rate:.3f}" for rate in own))
        question = question.with_option("conditional")
    return question.with_option("rounds", number(10 ** draw.uniform(1, 5), 3)) if draw.random() < 0.5 else question


BATCHES = [1, 2, 4, 8, 16, 32, 64, 128]


def times(draw: random.Random, passes: list[int], noise: float, scale: float) -> str:
    """A roofline's times by batch, positions of a sequence and context, as somebody would have measured them."""
    weights, position, cache = scale * 10 ** draw.uniform(-3, -1.7), 10 ** draw.uniform(-2.6, -1), draw.uniform(0, 2e-5)
    lines = ["batch,tokens,context,seconds"]
    for context in draw.choice([[1000], [500, 4000]]):
        for batch in BATCHES:
            for tokens in passes:
                seconds = weights * (max(1.0, position * batch * tokens) + cache * batch * context ** 0.9)
                lines.append(f"{batch},{tokens},{context},{seconds * math.exp(draw.gauss(0, noise)):.6g}")
    return "\n".join(lines) + "\n"


def benchmark(draw: random.Random) -> str:
    """Runs with and without drafts, whose speed scatters by a percent."""
    lines = ["concurrency,gamma,output_tokens_per_second,tokens_per_step,rounds,input_tokens,output_tokens"]
    rates, c, position = survival(draw, 8), draw.uniform(0.02, 0.3), draw.uniform(0.002, 0.06)
    for batch in draw.choice([[1], [1, 8], [2, 16, 64], [1, 4, 16, 64]]):
        for gamma in [0, *sorted(draw.sample(range(1, 8), draw.randint(1, 3)))]:
            tokens = 1 + sum(rates[:gamma])
            seconds = 0.006 * (max(1, position * batch * (gamma + 1)) + c * gamma) * math.exp(draw.gauss(0, 0.01))
            counted = f"{tokens:.3f},{draw.randint(500, 20000)}" if gamma else ","
            lines.append(f"{batch},{gamma},{batch * tokens / seconds:.1f},{counted},1024,{draw.randint(240, 260)}")
    return "\n".join(lines) + "\n"


def hardware(draw: random.Random, question: Question) -> Question:
    device = draw.choice(["h100-sxm", "h200-sxm", "a100-80gb-sxm", "mi300x", "l40s", "gh200-96gb", "b200"])
    target, draft = draw.choice([("llama-3.1-8b", "llama-3.2-1b"), ("qwen3-8b", "qwen3-0.6b"),
                                 ("llama-3.3-70b", "llama-3.2-1b"), ("qwen3-30b-a3b", "qwen3-0.6b")])
    question = question.with_option("hardware", device).with_option("model", target).with_option("draft-model", draft)
    if target == "llama-3.3-70b" or draw.random() < 0.2:
        question = question.with_option("tp", draw.choice(["4", "8"]))
    if draw.random() < 0.15:
        milliseconds = number(draw.uniform(5, 12), 3)
        question = question.with_option("calibrate", f"batch=4,tpot_ms={milliseconds},context=1000")
    return question


def cost(draw: random.Random, question: Question) -> Question:
    kind = draw.choice(["constant", "constant", "table", "hardware", "hardware"])
    if kind == "hardware":
        return hardware(draw, question)
    if kind == "constant":
        question = question.with_option("c", number(draw.choice([0, draw.uniform(0, 0.4), draw.uniform(0, 1.2)])))
        if draw.random() < 0.3:
            steps = sorted(draw.uniform(1, 1.6) for _ in range(3))
            question = question.with_option("verify-factor", ",".join(
                f"{n}:{v:.3f}" for n, v in zip([2, 5, 9], steps)))
        return question.with_option("overhead", number(draw.uniform(0, 0.2))) if draw.random() < 0.3 else question
    noise = draw.choice([0, 0.02])
    question = question.with_file("target.csv", times(draw, [1, 2, 4, 6, 9], noise, 1.0))
    question = question.with_file("draft.csv", times(draw, [1], noise, draw.uniform(0.05, 0.5)))
    return question.with_option("cost", "target.csv").with_option("draft-cost", "draft.csv")


def some(draw: random.Random, values: list, most: int) -> str:
    return ",".join(map(str, sorted(draw.sample(values, draw.randint(1, most)))))


def asked_of_plan(draw: random.Random, question: Question) -> Question:
    if draw.random() < 0.7:
        question = question.with_option("batch", some(draw, BATCHES, 4))
        if "c" not in question.options and draw.random() < 0.7:
            question = question.with_option("context", some(draw, [600, 1000, 2000, 3500], 2))
    if draw.random() < 0.3:
        question = question.with_option("max-gamma", str(draw.randint(1, 12)))
    if draw.random() < 0.3:
        question = question.with_option("min-gain", number(draw.choice([0, draw.uniform(0, 0.5)]), 2))
    if draw.random() < 0.3:
        question = question.with_option("gamma", str(draw.randint(0, 5)))
    if draw.random() < 0.5:
        question = question.with_option("emit", "vllm")
        for name, value in [("model", "org/target"), ("draft-model", "org/draft")]:
            if name not in question.options:
                question = question.with_option(name, value)
    return question


def draw_question(seed: int, index: int) -> Question:
    draw = random.Random(f"{seed}/{index}")
    command = draw.choices(["plan", "counters", "synthetic", "capacity"], [14, 2, 2, 1])[0]
    question = Question(command)
    if command == "plan":
        if draw.random() < 0.2:
            question = question.with_file("runs.csv", benchmark(draw)).with_option("bench", "runs.csv")
        else:
            question = cost(draw, acceptance(draw, question))
        return asked_of_plan(draw, question)
    if command == "counters":
        while "counters" not in question.options:
            question = acceptance(draw, Question(command))
        listed = question.options.pop("counters")
        return question.with_option("max-gamma", str(draw.randint(1, 12))).with_option("", *listed)
    if command == "synthetic":
        return acceptance(draw, question).with_option("gamma", str(draw.randint(1, 9)))
    question = hardware(draw, question.with_option("alpha", number(draw.random())))
    gammas = sorted(draw.sample(range(1, 7), draw.randint(1, 2)))
    asked = {"prompt-tokens": f"{draw.randint(50, 2000)}:0.5", "output-tokens": f"{draw.randint(20, 300)}:0.5",
             "gamma": ",".join(map(str, gammas)), "price": "2", "replications": draw.choice(["2", "3"]), "num-requests": "100",
             "threads": "1"}
    if draw.random() < 0.5:
        asked["arrival-rate"] = number(10 ** draw.uniform(0, 2), 3)
    for name, value in asked.items():
        question = question.with_option(name, value)
    return question.with_option("tpot-ms", "60") if draw.random() < 0.5 else question


# ------------------------------------------------------------------------------------------------------------ the answer


class Folder:
    """The files of one question, and the program in their folder."""

    def __init__(self, specdec: str, path: Path):
        self.specdec, self.path = specdec, path

    def run(self, question: Question, **more: str) -> str | None:
        """What the program prints, or none if it refuses the question."""
        for name, content in question.files.items():
            (self.path / name).write_text(content, encoding="utf-8")
        return self.run_words(question.words(**more))

    def run_words(self, words: list[str]) -> str | None:
        done = subprocess.run([self.specdec, *words], cwd=self.path, capture_output=True, text=True, timeout=SECONDS,
                              encoding="utf-8")
        require(done.returncode in (0, 1, 2), f"exit {done.returncode}: {done.stderr[-500:]}")
        return None if done.returncode == 2 else done.stdout

    def answer(self, question: Question, **more: str) -> dict | None:
        printed = self.run(question, format="json", **more)
        return None if printed is None else json.loads(printed)


def walk(value, path: str = ""):
    yield path, value
    if isinstance(value, dict):
        for key, member in value.items():
            yield from walk(member, f"{path}.{key}")
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from walk(member, f"{path}[{index}]")


# What bounds lie around, where they are not called after it.
BOUNDED = {"ci95": ["value"], "bounds": ["value"]}


def check_intervals(answer: dict) -> None:
    for path, holder in walk({key: value for key, value in answer.items() if key not in ("inputs", "assumptions")}):
        if not isinstance(holder, dict):
            continue
        for key, names in BOUNDED.items():
            ends = holder.get(key)
            if not isinstance(ends, list) or len(ends) != 2:
                continue
            low, high = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
            require(low <= high, f"{path}.{key} is {ends}")
            for name in names:
                value = holder.get(name)
                if value is not None:
                    require(at_most(low, value) and at_most(value, high), f"{path}.{name} is {value}, outside {ends}")


def is_one_world(figure: dict) -> bool:
    """Whether a figure is exact. Others are middles of many worlds, of which sums and ratios are not quite those."""
    return figure["value"] is not None and figure["ci95"] is None


def check_rows(rows: list[dict], where: str) -> None:
    for row in rows:
        gamma, tokens, speedup = row["gamma"], row["tokens_per_step"]["value"], row["speedup"]["value"]
        if tokens is not None:
            require(at_most(1, tokens) and at_most(tokens, gamma + 1), f"{where}: {tokens} tokens at gamma {gamma}")
        if gamma == 0:
            require(speedup is None or same(speedup, 1), f"{where}: speedup {speedup} at gamma 0")
        if speedup is not None:
            require(speedup >= 0, f"{where}: speedup {speedup}")
    for before, after in zip(rows, rows[1:]):
        low, high = before["tokens_per_step"]["value"], after["tokens_per_step"]["value"]
        if low is not None and high is not None:
            require(at_most(low, high), f"{where}: tokens fall at gamma {after['gamma']}")


def check_rounds(rows: list[dict], where: str, scatter: float) -> None:
    plain = rows[0]
    for row in rows:
        if row["round_steps"] is None or not is_one_world(row["speedup"]):
            continue
        if row["target_steps"] is not None:
            parts = row["target_steps"] + row["draft_steps"] + row["overhead_steps"]
            require(same(parts, row["round_steps"]), f"{where}: the parts of a round at gamma {row['gamma']}: {parts}")
        planned = row["tokens_per_step"]["value"] * plain["round_steps"] / row["round_steps"]
        speedup = row["speedup"]["value"]
        require(same(planned, speedup), f"{where}: speedup {speedup} at gamma {row['gamma']}, not {planned}")
    priced = [row for row in rows if row["round_steps"] is not None]
    for before, after in zip(priced, priced[1:]):
        require(at_most(before["round_steps"], after["round_steps"] * (1 + scatter)),
                f"{where}: a round is cheaper at gamma {after['gamma']}")
        require(at_most(plain["round_steps"], after["round_steps"] * (1 + scatter)),
                f"{where}: gamma {after['gamma']} below a plain step")


# Regrets that are alike, and what a schedule gives up for fewer changes.
ALIKE, ALIKE_IN_SCHEDULES = 0.0026, 0.013
# The share of worlds that each word stands for.
SHARES = {"sure": (0.95, 1), "likely": (0.75, 0.95), "open": (0.25, 0.75), "unlikely": (0.05, 0.25), "no": (0, 0.05)}


def check_choice(point: dict, alike: float, where: str) -> None:
    rows = {row["gamma"]: row for row in point["rows"]}
    if point["gamma"] is None:
        require(point["verdict"] == "open", f"{where}: {point['verdict']} without a gamma")
        return
    row = rows[point["gamma"]]
    regrets = [r["regret"] for r in rows.values() if r["regret"] is not None]
    require(all(0 <= regret <= 1 for regret in regrets), f"{where}: regrets {regrets}")
    require(row["regret"] <= min(regrets) + alike, f"{where}: gamma {point['gamma']} loses {row['regret']}, another {min(regrets)}")
    low, high = SHARES[point["verdict"]]
    require(low <= point["share"] <= high or point["doubt"], f"{where}: {point['verdict']} at a share of {point['share']}")
    if is_one_world(row["speedup"]) and alike == ALIKE:
        fastest = max(r["speedup"]["value"] for r in rows.values() if r["speedup"]["value"] is not None)
        require(at_most(fastest * (1 - ALIKE), row["speedup"]["value"]) or point["gamma"] == 0, f"{where}: {point['gamma']} is not the fastest")


def check_times(point: dict, where: str) -> None:
    seconds, speed = point["seconds_per_output_token"], point["output_tokens_per_second"]
    if seconds is None or point["gamma"] is None:
        return
    for kind in ("baseline", "speculative"):
        if seconds[kind] is not None:
            require(same(seconds[kind] * speed[kind], point["batch"]), f"{where}: {kind} time and throughput")
    row = next(row for row in point["rows"] if row["gamma"] == point["gamma"])
    if is_one_world(row["speedup"]) and None not in (seconds["baseline"], seconds["speculative"]):
        require(same(seconds["baseline"] / seconds["speculative"], row["speedup"]["value"]), f"{where}: times and speedup")


def check_over_points(points: list[dict], scatter: float) -> None:
    for one in points:
        for other in points:
            larger = (one["batch"] <= other["batch"] and one["context"] == other["context"]) or (
                one["context"] <= other["context"] and one["batch"] == other["batch"])
            if not larger:
                continue
            for before, after in zip(one["rows"], other["rows"]):
                if before["round_seconds"] is None or after["round_seconds"] is None or before["gamma"] != after["gamma"]:
                    continue
                require(at_most(before["round_seconds"], after["round_seconds"] * (1 + scatter)),
                        f"a round of gamma {before['gamma']} takes less at batch {other['batch']}, context "
                        f"{other['context']} than at {one['batch']}, {one['context']}")


def check_schedule(answer: dict) -> None:
    schedule = answer["decision"]["schedule"]
    for before, after in zip(schedule, schedule[1:]):
        require(before["to"] + 1 == after["from"], "the schedule leaves out batches")
    if len({point["context"] for point in answer["points"]}) != 1:
        return
    for point in answer["points"]:
        batch = point["batch"]
        planned = [one["gamma"] for one in schedule if one["from"] <= batch <= one["to"]]
        if batch == round(batch) and planned:
            require(planned == [point["gamma"]], f"batch {batch}: gamma {point['gamma']}, and {planned} in the schedule")


def check_config(answer: dict) -> None:
    config, schedule = answer["config"], answer["decision"]["schedule"]
    if config is None or schedule is None:
        return
    if not config["text"].lstrip().startswith("{"):
        return
    text = json.loads(config["text"])
    drafted = text.get("num_speculative_tokens_per_batch_size")
    if drafted is None:
        gammas = [one["gamma"] for one in schedule]
        require(gammas == [text["num_speculative_tokens"]], f"{config['text']} for {gammas}")
        return
    planned = [[one["from"], one["to"], one["gamma"]] for one in schedule]
    require(drafted == planned, f"{drafted} for {planned}")


def check_plan(answer: dict) -> None:
    scatter = SCATTER if answer["bench"] is not None else 0.0
    for point in answer["points"]:
        where = f"batch {point['batch']}, context {point['context']}"
        if not point["rows"]:
            continue
        check_rows(point["rows"], where)
        check_rounds(point["rows"], where, scatter)
        contexts = {other["context"] for other in answer["points"]}
        # At several contexts a batch has the gammas' largest regrets, and an engine's schedules may be of one length.
        of_engine = answer["config"] is not None or any(one["name"] == "a schedule by batch" for one in answer["assumptions"])
        alike = ALIKE if len(answer["points"]) == 1 else 1 if of_engine or len(contexts) > 1 else ALIKE_IN_SCHEDULES
        check_choice(point, alike, where)
        check_times(point, where)
    check_over_points(answer["points"], scatter)
    check_schedule(answer)
    check_config(answer)


def check_counters(answer: dict) -> None:
    for group in answer["groups"]:
        rows = group["gammas"]
        tokens = group["tokens_per_step"]
        if tokens["ci95"] is not None and 1 < tokens["value"] < group["longest_draft"] + 1:
            require(tokens["ci95"][0] < tokens["ci95"][1], "an interval without width")
        for row in rows:
            value = row["tokens_per_step"]["value"]
            require(value is None or (at_most(1, value) and at_most(value, row["gamma"] + 1)), f"{value} tokens at {row['gamma']}")
        # What was counted at one gamma stands beside what worlds say of the others, and may lie within their interval.
        for before, after in zip(rows, rows[1:]):
            low, high = before["tokens_per_step"]["ci95"] or [before["tokens_per_step"]["value"]] * 2, after["tokens_per_step"]["value"]
            require(None in (*low, high) or at_most(low[0], high), f"tokens fall at gamma {after['gamma']}")
        kept = [position["unconditional"]["value"] for position in group["positions"] or []]
        require(all(at_most(a, b) for b, a in zip(kept, kept[1:])), "positions rise")
        if kept and group["gamma"] is not None:
            require(same(1 + sum(kept), group["tokens_per_step"]["value"]), "tokens are not one more than the positions")


def check_synthetic(answer: dict) -> None:
    law = [row["unconditional"] for row in answer["law"]]
    require(all(at_most(after, before) for before, after in zip([1.0, *law], law)), f"the law rises: {law}")
    require(same(1 + sum(law), answer["tokens_per_step"]["value"], 1e-6), "tokens are not one more than the law")
    for setting in answer["settings"]:
        require(same(1 + sum(setting["survival"]), setting["tokens_per_step"], 1e-5), f"{setting['engine']}: its survival")
        off = abs(setting["tokens_per_step"] - answer["tokens_per_step"]["value"])
        require(off < 0.02 or setting["notes"], f"{setting['engine']} accepts {setting['tokens_per_step']} without a note")


def check_capacity(answer: dict) -> None:
    scenarios = answer["scenarios"]
    for scenario in scenarios:
        where = scenario["name"]
        served, most = scenario["requests_per_second_per_replica"]["value"], scenario["saturated_requests_per_second_per_replica"]["value"]
        if served is not None and most is not None:
            require(at_most(served, most), f"{where}: {served} requests/s within limits, {most} without")
        for kind in ("ttft_seconds", "tpot_seconds", "gap_seconds"):
            values = [scenario[kind][name]["value"] for name in ("p50", "p90", "p99")]
            if None not in values:
                require(values == sorted(values), f"{where}: {kind} {values}")
            for name, figure in scenario[kind].items():
                known = figure["value"] is not None and figure["ci95"][1] is not None
                require(not known or figure["ci95"][0] > 0, f"{where}: {kind} {name} from {figure['ci95']}")
        cost, speed = scenario["cost_per_million_tokens"], scenario["output_tokens_per_second_per_gpu"]["value"]
        if cost is not None and speed:
            require(same(cost, 2e6 / 3600 / speed), f"{where}: {cost} a million tokens at {speed} tokens/s of each GPU")
    chosen = answer["recommended"]
    if chosen is not None:
        require(chosen["gpus"] == scenarios[chosen["scenario"]]["gpus"]["value"], "the recommendation's GPUs")
        fewest = min(s["gpus"]["value"] for s in scenarios if s["gpus"]["value"] is not None and s["meets_load"])
        require(chosen["gpus"] == fewest, f"{chosen['gpus']} GPUs are recommended, and {fewest} are enough")


CHECKS = {"plan": check_plan, "counters": check_counters, "synthetic": check_synthetic, "capacity": check_capacity}

# -------------------------------------------------------------------------------------------- other forms of the answer


def flattened(row: dict, prefix: str = "") -> dict:
    cells: dict = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells.update(flattened(value, f"{prefix}{key}_"))
        elif isinstance(value, list) and len(value) == 2 and not isinstance(value[0], dict):
            cells[f"{prefix}{key}_low"], cells[f"{prefix}{key}_high"] = value
            cells[prefix + key] = value
        else:
            cells[prefix + key] = value
    return cells


def check_csv(printed: str, rows: list[dict]) -> None:
    lines = list(csv.DictReader(io.StringIO(printed)))
    require(len(lines) == len(rows), f"CSV has {len(lines)} rows, JSON {len(rows)}")
    for line, row in zip(lines, rows):
        cells = flattened(row)
        for name, text in line.items():
            if name not in cells or isinstance(cells[name], (list, bool)):
                continue
            value = cells[name]
            read = float(text) if isinstance(value, (int, float)) and text else text
            require(read == value or (value is None and not text), f"CSV says {name} {text}, JSON {value}")


def main_rows(command: str, answer: dict) -> tuple[str, list[dict]]:
    """The table that CSV prints, and its rows."""
    if command == "plan":
        return "rows", [{"batch": point["batch"], "context": point["context"], **row} for point in answer["points"] for row in point["rows"]]
    table = {"counters": "groups", "synthetic": "settings", "capacity": "scenarios"}[command]
    return table, answer[table]


def shown(text: str, value: float) -> bool:
    """Whether a number as it is printed may be this one, rounded."""
    digits = text.rstrip("x").replace("%", "")
    try:
        printed = float(digits)
    except ValueError:
        return True
    mantissa = digits.split("e")[0]
    unit = 10.0 ** -(len(mantissa.split(".")[1]) if "." in mantissa else 0)
    return abs(printed - value) <= 0.501 * unit + 1e-9 * abs(value) or same(printed, value, 5e-4)


def check_text(printed: str, answer: dict) -> None:
    """The numbers of the table of gammas, and the gamma of the first words."""
    if len(answer["points"]) != 1 or answer["points"][0]["gamma"] is None:
        return
    point = answer["points"][0]
    rows = {row["gamma"]: row for row in point["rows"]}
    tabled = printed.split("draft tokens  tokens/step  speedup", 1)
    for line in tabled[1].split("\n\n")[0].split("\n")[1:] if len(tabled) > 1 else []:
        if not line:
            continue
        gamma, tokens, speedup, *_ = line.split()
        row = rows[int(gamma)]
        for text, key in ((tokens, "tokens_per_step"), (speedup, "speedup")):
            require(row[key]["value"] is None or shown(text, row[key]["value"]), f"{line} for {row}")
    starts = "Do not draft" if point["gamma"] == 0 else f"Draft {point['gamma']} token"
    require(printed.startswith(starts), f"gamma {point['gamma']}, and the text begins {printed[:80]!r}")


def check_forms(folder: Folder, question: Question, answer: dict) -> None:
    table, rows = main_rows(question.command, answer)
    printed = folder.run(question, format="csv", table=table)
    require(printed is not None, "CSV is refused")
    check_csv(printed, rows)
    if question.command == "plan":
        check_text(folder.run(question) or "", answer)


# ----------------------------------------------------------------------------------------------------- another question


def essence(answer: dict) -> dict:
    """An answer without what it was asked by."""
    return {key: value for key, value in answer.items() if key not in ("inputs", "warnings", "assumptions", "backtest", "runs")}


def differences(one, other, path: str = "", tolerance: float = 1e-9) -> str | None:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return next(filter(None, (differences(one[key], other[key], f"{path}.{key}", tolerance) for key in one)), None)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(filter(None, (differences(a, b, f"{path}[{i}]", tolerance) for i, (a, b) in enumerate(zip(one, other)))), None)
    if isinstance(one, float) and isinstance(other, float) and same(one, other, tolerance):
        return None
    return None if one == other else f"{path}: {str(one)[:120]} and {str(other)[:120]}"


def printed_question(folder: Folder, question: Question, answer: dict) -> None:
    printed = folder.run_words([*question.words(), "--print-config"])
    require(printed is not None, "--print-config is refused")
    (folder.path / "question.toml").write_text(printed, encoding="utf-8")
    again = folder.run_words([question.command, "--config", "question.toml", "--format", "json"])
    require(again is not None, "the printed question is refused")
    found = differences(essence(answer), essence(json.loads(again)))
    require(found is None, f"the printed question is answered otherwise: {found}")


def other_order(folder: Folder, question: Question, answer: dict) -> None:
    for name in ("counters", ""):
        listed = question.options.get(name, [])
        if len(listed) < 2 or not listed[0].startswith("requests"):
            continue
        turned = folder.answer(question.with_option(name, *reversed(listed)))
        require(turned is not None, "files in another order are refused")
        one, other = essence(answer), essence(turned)
        for said in (one, other):
            said["decision"]["next"] = None
        for group in [*one.get("groups", []), *other.get("groups", [])]:
            group["files"] = sorted(group["files"])
        found = differences(one, other)
        require(found is None, f"files in another order are answered otherwise: {found}")
    for name in ("target.csv", "draft.csv", "runs.csv"):
        if name in question.files:
            head, *lines = question.files[name].splitlines()
            turned = folder.answer(question.with_file(name, "\n".join([head, *reversed(lines)]) + "\n"))
            require(turned is not None, "rows in another order are refused")
            found = differences(essence(answer), essence(turned), tolerance=1e-6)
            require(found is None, f"rows of {name} in another order are answered otherwise: {found}")
            folder.answer(question)


def no_faster(slower: dict, faster: dict, what: str) -> None:
    for one, other in zip(slower["points"], faster["points"]):
        rows = {row["gamma"]: row for row in other["rows"]}
        for row in one["rows"]:
            against = rows.get(row["gamma"])
            if against is None or row["speedup"]["value"] is None or against["speedup"]["value"] is None:
                continue
            # Worlds are drawn anew for other figures.
            drawn = 1 if is_one_world(row["speedup"]) else 1.03
            low, high = row["speedup"]["value"], against["speedup"]["value"]
            require(at_most(low, high * drawn), f"{what}: {low} at gamma {row['gamma']}, {high} with it")


def more_acceptance(folder: Folder, question: Question, answer: dict) -> None:
    if question.command != "plan":
        return
    options = question.options
    if "alpha" in options:
        raised = ":".join(number(1 - 0.9 * (1 - float(end)), 8) for end in options["alpha"][0].split(":"))
        better = folder.answer(question.with_option("alpha", raised))
    elif "acceptance-per-position" in options:
        raised = ",".join(number(float(end) ** 0.9, 6) for end in options["acceptance-per-position"][0].split(","))
        better = folder.answer(question.with_option("acceptance-per-position", raised))
    else:
        return
    require(better is not None, "more acceptance is refused")
    no_faster(answer, better, "more acceptance gains less")


def dearer_drafts(folder: Folder, question: Question, answer: dict) -> None:
    if question.command != "plan":
        return
    if "c" in question.options:
        dearer = folder.answer(question.with_option("c", number(float(question.options["c"][0]) * 1.1 + 0.001, 8)))
    elif "draft.csv" in question.files:
        head, *lines = question.files["draft.csv"].splitlines()
        raised = [",".join([*line.split(",")[:3], number(1.1 * float(line.split(",")[3]), 8)]) for line in lines]
        dearer = folder.answer(question.with_file("draft.csv", "\n".join([head, *raised]) + "\n"))
        folder.answer(question)
    else:
        return
    require(dearer is not None, "dearer drafts are refused")
    no_faster(dearer, answer, "dearer drafts gain more")


def other_commands(folder: Folder, question: Question, answer: dict) -> None:
    """A plan and a law by the same files say tokens per step that counters holds possible."""
    files = question.options.get("counters")
    if question.command not in ("plan", "synthetic") or not files or question.options.get("bench"):
        return
    counted = folder.answer(Question("counters", {"": files}))
    require(counted is not None, "counters refuses what plan reads")
    tokens = {row["gamma"]: row["tokens_per_step"]["ci95"] for row in counted["groups"][0]["gammas"]}
    if question.command == "synthetic":
        said = {answer["gamma"]: answer["tokens_per_step"]["value"]}
    else:
        said = {row["gamma"]: row["tokens_per_step"]["value"] for row in answer["points"][0]["rows"]
                if row["gamma"] and not row["extrapolated"]}
    for gamma, value in said.items():
        if gamma in tokens and value is not None and tokens[gamma] is not None:
            low, high = tokens[gamma]
            require(at_most(low, value) and at_most(value, high), f"{value} tokens at gamma {gamma}, {low} to {high} by counters")


RELATIONS = [printed_question, other_order, more_acceptance, dearer_drafts, other_commands]


def check(specdec: str, seed: int, index: int, folder: Path) -> str | None:
    """What is wrong with the answer to a question, or "refused" if it has none."""
    question = draw_question(seed, index)
    asked = Folder(specdec, folder)
    try:
        answer = asked.answer(question)
        if answer is None:
            return "refused"
        check_intervals(answer)
        CHECKS[question.command](answer)
        check_forms(asked, question, answer)
        for relation in RELATIONS:
            relation(asked, question, answer)
    except (Violation, KeyError, TypeError, ValueError, IndexError, StopIteration) as violation:
        where = "" if isinstance(violation, Violation) else "".join(traceback.format_exc().splitlines(True)[-3:])
        return f"{index}: {violation}\n    {shlex.join(question.words())}\n{where}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specdec", type=os.path.abspath)
    parser.add_argument("--questions", type=int, default=90)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    indices = range(options.questions) if options.only is None else [options.only]

    def one(index: int) -> str | None:
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            return check(options.specdec, options.seed, index, options.keep)
        with tempfile.TemporaryDirectory() as folder:
            return check(options.specdec, options.seed, index, Path(folder))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(one, indices))
    refused = found.count("refused")
    wrong = [message for message in found if message not in (None, "refused")]
    print("\n".join(wrong) + ("\n" if wrong else "") + f"{len(found)} questions, {refused} refused, {len(wrong)} answered wrongly")
    return 1 if wrong or 3 * refused > len(found) else 0


if __name__ == "__main__":
    sys.exit(main())
