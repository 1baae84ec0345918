#!/usr/bin/env python3
"""Holds what specdec predicts of llama.cpp's speculative decoding against llama-speculative-simple.

Predicted from passes that llama-bench times, and from a recording of what both models say of the target's text:

  plan --trace RECORDING --acceptance greedy-draft --cost PASSES --draft-cost PASSES

Predicted from runs: a plain run and those of two gammas, as a table, say what the other gammas take (`plan --bench`).
Measured: llama-speculative-simple continues prompts at each gamma, on one thread, one prompt at a time.

Everything is timed in turn, once in each repetition, and figures are medians over the repetitions. A repetition whose plain
step took 1.2 times the least or more is left out: the machine did something else. The models are GGUF files of the
checkpoints that wrote the recording; docs/validation.md says how to get them, and the programs of llama.cpp.

  tests/bench/predict_llamacpp.py --specdec build/release/specdec --llamacpp FOLDER --target target.gguf \\
      --draft draft.gguf --recording recording.safetensors --prompts sim/models/prompts.jsonl --work FOLDER
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
from typing import Any

GAMMAS = range(1, 9)
GIVEN_GAMMAS = (1, 4)
# Over the least plain step.
DISTURBED = 1.2


def run(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def counts_in(printed: str) -> dict[str, float] | None:
    """Figures of one decoding; None where the program ended before its log was written, which happens."""
    figures = {
        "tokens": r"decoded +(\d+) tokens",
        "seconds": r"decoded +\d+ tokens in +([\d.]+) seconds",
        "prompt_seconds": r"encoded +\d+ tokens in +([\d.]+) seconds",
        "accepted": r"n_accept += (\d+)",
        "target_ms": r"prompt eval time = +([\d.]+) ms",
    }
    found = {name: re.search(pattern, printed) for name, pattern in figures.items()}
    if None in found.values():
        return None
    return {name: float(match[1]) for name, match in found.items()}


class Measurement:
    """Times of every repetition, kept as lines of JSON so that later calls add to them."""

    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.file = arguments.work / "times.jsonl"
        self.prompts = read_prompts(arguments.prompts, arguments.per_task)

    def passes(self) -> list[dict[str, Any]]:
        sizes = ",".join(str(gamma + 1) for gamma in [0, *GAMMAS])
        models = ["-m", str(self.arguments.target), "-m", str(self.arguments.draft)]
        # Both prompt passes of N tokens and generation begin behind as many tokens as a text has halfway.
        options = ["-t", "1", "-p", sizes, "-n", "32", "-d", str(self.arguments.depth), "-r", "5", "-o", "jsonl"]
        lines = run([str(self.arguments.llamacpp / "llama-bench"), *models, *options]).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def decode(self, gamma: int, seed: int) -> dict[str, Any]:
        """All prompts at one gamma: tokens, rounds and seconds of decoding."""
        sums = {"gamma": gamma, "tokens": 0.0, "rounds": 0.0, "seconds": 0.0, "target_seconds": 0.0}
        for number, prompt in enumerate(self.prompts):
            models = ["-m", str(self.arguments.target), "-md", str(self.arguments.draft)]
            drafting = ["--spec-type", "draft-simple", "--spec-draft-n-max", str(gamma)]
            sampling = ["--samplers", "temperature", "--temp", "1", "--seed", str(1000 * seed + number)]
            text = ["-t", "1", "-n", str(self.arguments.tokens), "--no-escape", "-p", prompt]
            program = str(self.arguments.llamacpp / "llama-speculative-simple")
            counts = None
            while counts is None:
                counts = counts_in(run([program, *models, *drafting, *sampling, *text, "-lv", "4", "--perf"]))
            sums["tokens"] += counts["tokens"]
            sums["rounds"] += counts["tokens"] - counts["accepted"]
            sums["seconds"] += counts["seconds"]
            # The program counts the prompt among the passes of more than a token.
            sums["target_seconds"] += 1e-3 * counts["target_ms"] - counts["prompt_seconds"]
        return sums

    def repeat(self) -> None:
        done = len(self.repetitions())
        for repetition in range(done, done + self.arguments.repetitions):
            record = {"passes": self.passes(), "runs": [self.decode(gamma, repetition) for gamma in GAMMAS]}
            with self.file.open("a") as file:
                file.write(json.dumps(record) + "\n")

    def repetitions(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]


def read_prompts(file: pathlib.Path, per_task: int) -> list[str]:
    by_task: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        prompt = json.loads(line)
        by_task.setdefault(prompt["task"], []).append(prompt["text"])
    return [text for texts in by_task.values() for text in texts[:per_task]]


def plain_step(repetition: dict[str, Any]) -> float:
    """Seconds of a token of the target, one after another."""
    generation = next(one for one in repetition["passes"] if one["n_gen"] > 0)
    return statistics.median(generation["samples_ns"]) * 1e-9 / generation["n_gen"]


def calm(repetitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    least = min(plain_step(repetition) for repetition in repetitions)
    return [repetition for repetition in repetitions if plain_step(repetition) < DISTURBED * least]


def write_passes(repetitions: list[dict[str, Any]], file: pathlib.Path) -> None:
    """llama-bench's lines with a sample a repetition, the median of its five."""
    with file.open("w") as stream:
        for alike in zip(*(repetition["passes"] for repetition in repetitions), strict=True):
            samples = [statistics.median(one["samples_ns"]) for one in alike]
            merged = {**alike[0], "samples_ns": samples, "avg_ns": statistics.median(samples)}
            merged["stddev_ns"] = statistics.stdev(samples) if len(samples) > 1 else 0
            merged.pop("samples_ts", None)
            stream.write(json.dumps(merged) + "\n")


def medians(repetitions: list[dict[str, Any]]) -> dict[int, dict[str, float]]:
    """By gamma: tokens per step over all repetitions, and the medians of seconds per token and per round."""
    figures = {}
    for runs in zip(*(repetition["runs"] for repetition in repetitions), strict=True):
        figures[runs[0]["gamma"]] = {
            "tokens_per_step": sum(run["tokens"] for run in runs) / sum(run["rounds"] for run in runs),
            "rounds": sum(run["rounds"] for run in runs),
            "seconds_per_token": statistics.median(run["seconds"] / run["tokens"] for run in runs),
            "target_seconds_per_round": statistics.median(run["target_seconds"] / run["rounds"] for run in runs),
        }
    return figures


def rows_of(answer: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {row["gamma"]: row for row in answer["points"][0]["rows"]}


def by_passes(arguments: argparse.Namespace, passes: pathlib.Path) -> dict[int, dict[str, Any]]:
    recording = ["--trace", str(arguments.recording), "--acceptance", "greedy-draft"]
    times = ["--cost", str(passes), "--draft-cost", str(passes)]
    models = ["--model", arguments.target.name, "--draft-model", arguments.draft.name]
    limits = ["--context", str(arguments.depth), "--max-gamma", str(max(GAMMAS)), "--format", "json", "--quiet"]
    return rows_of(json.loads(run([str(arguments.specdec), "plan", *recording, *times, *models, *limits])))


def by_runs(arguments: argparse.Namespace, measured: dict[int, dict[str, float]], plain: float) -> dict[int, Any]:
    table = arguments.work / "runs.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["batch", "gamma", "ms_per_token", "tokens_per_step", "rounds"])
        writer.writerow([1, 0, 1e3 * plain, "", ""])
        for gamma in GIVEN_GAMMAS:
            run_ = measured[gamma]
            writer.writerow([1, gamma, 1e3 * run_["seconds_per_token"], run_["tokens_per_step"], run_["rounds"]])
    options = ["--draft-kind", "mirrored", "--max-gamma", str(max(GAMMAS)), "--format", "json", "--quiet"]
    return rows_of(json.loads(run([str(arguments.specdec), "plan", "--bench", str(table), *options])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specdec", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--llamacpp", required=True, type=pathlib.Path, help="folder of llama.cpp's programs")
    parser.add_argument("--target", required=True, type=pathlib.Path, help="GGUF file")
    parser.add_argument("--draft", required=True, type=pathlib.Path, help="GGUF file")
    parser.add_argument("--recording", required=True, type=pathlib.Path, help="of the same two models")
    parser.add_argument("--prompts", required=True, type=pathlib.Path, help="JSON lines: task, text")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder that times are kept in")
    parser.add_argument("--per-task", type=int, default=4, help="prompts of each task [4]")
    parser.add_argument("--tokens", type=int, default=128, help="that each prompt is continued by [128]")
    parser.add_argument("--depth", type=int, default=160, help="tokens in the cache of passes that are timed [160]")
    parser.add_argument("--repetitions", type=int, default=5, help="to time now, 0 for those kept alone [5]")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    measurement = Measurement(arguments)
    measurement.repeat()
    repetitions = measurement.repetitions()
    if not repetitions:
        sys.exit(f"{measurement.file} holds no repetition")
    used = calm(repetitions)
    print(f"{len(used)} of {len(repetitions)} repetitions, those in which a plain step took about the least\n")
    repetitions = used
    passes = arguments.work / "passes.jsonl"
    write_passes(repetitions, passes)
    plain = statistics.median(plain_step(repetition) for repetition in repetitions)
    measured = medians(repetitions)
    return report(measured, plain, by_passes(arguments, passes), by_runs(arguments, measured, plain))


def held(row: dict[str, Any], speedup: float) -> str:
    low, high = row["speedup"]["ci95"]
    return "yes" if low <= speedup <= high else "no"


def report(measured: dict[int, dict[str, float]], plain: float, passes: dict[int, Any], runs: dict[int, Any]) -> int:
    """One line a gamma: what was measured, and by how much each prediction misses it."""
    given = " and ".join(str(gamma) for gamma in GIVEN_GAMMAS)
    print(f"| gamma | tokens/step | recording | ms/token | passes, recording | held | runs of gamma 0, {given} | held |")
    print("|---|---|---|---|---|---|---|---|")
    misses: dict[str, list[float]] = {"tokens": [], "passes": [], "runs": []}

    def miss(name: str, predicted: float, found: float) -> str:
        misses[name].append(abs(predicted / found - 1))
        return f"{predicted / found - 1:+.1%}"

    for gamma, figures in measured.items():
        seconds, tokens = figures["seconds_per_token"], figures["tokens_per_step"]
        recorded = miss("tokens", passes[gamma]["tokens_per_step"]["value"], tokens)
        by_passes = passes[gamma]["round_seconds"] / passes[gamma]["tokens_per_step"]["value"]
        by_runs = runs[gamma]["round_seconds"] / runs[gamma]["tokens_per_step"]["value"]
        of_passes = f"{miss('passes', by_passes, seconds)} | {held(passes[gamma], plain / seconds)}"
        of_runs = "given | -"
        if gamma not in GIVEN_GAMMAS:
            of_runs = f"{miss('runs', by_runs, seconds)} | {held(runs[gamma], plain / seconds)}"
        print(f"| {gamma} | {tokens:.3f} | {recorded} | {1e3 * seconds:.3f} | {of_passes} | {of_runs} |")
    print(f"\nplain: {1e3 * plain:.3f} ms/token by llama-bench")
    ratios = [measured[gamma]["target_seconds_per_round"] / passes[gamma]["target_seconds"] for gamma in measured]
    print(f"passes of the target in rounds over those of llama-bench: {min(ratios):.2f} to {max(ratios):.2f}")
    for name, values in misses.items():
        print(f"{name}: median miss {statistics.median(values):.1%}, largest {max(values):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
