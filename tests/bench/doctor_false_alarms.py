#!/usr/bin/env python3
"""The rate of alarms that `specdec doctor` raises over runs in which nothing is wrong, for docs/validation.md.

usage: doctor_false_alarms.py SPECDEC [RUNS_OF_EACH_KIND] [SEED]

Runs are files of servers whose law is known (answers, logs, scrapes and benchmark results, written by the scripts that
write the samples; a llama.cpp log), recordings of the shipped pair, synthetic recordings, and the samples that real
programs wrote. Rates of requests, gammas, loads and lengths are drawn anew for each run. An alarm is a finding above a
note; a run with several counts once. Exit code 1 where 5 or more of 200 runs have one, in proportion.
"""

import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from types import ModuleType

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "traces/samples"
MOST_ALARMS, OF_RUNS = 5, 200

Writer = Callable[[pathlib.Path, random.Random], list[pathlib.Path]]


def script(path: pathlib.Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SERVED = script(SAMPLES / "serving/make_samples.py")
BENCHED = script(ROOT / "tests/fixtures/make_bench_samples.py")


def written(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text(text, encoding="utf-8")
    return path


def vllm_answers(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    SERVED.GAMMA = rng.randint(1, 7)
    answers = [SERVED.request(number, rng) for number in range(rng.randint(10, 120))]
    return [written(folder / "answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))]


def vllm_logs(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    SERVED.GAMMA, SERVED.LOG_ALPHA = rng.randint(1, 6), rng.uniform(0.3, 0.9)
    SERVED.LOADS = sorted(rng.sample([1, 2, 4, 8, 16, 32, 64], rng.randint(1, 4)))
    return [
        written(folder / "speculative.log", SERVED.log(SERVED.GAMMA, rng)),
        written(folder / "plain.log", SERVED.log(0, rng)),
    ]


def vllm_scrapes(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    SERVED.GAMMA, SERVED.LOG_ALPHA = rng.randint(1, 6), rng.uniform(0.3, 0.9)
    SERVED.CLIENTS = rng.choice([1, 4, 16])
    server = SERVED.TimedServer(SERVED.GAMMA, rng)
    files = []
    for number in range(rng.randint(2, 6)):
        server.run(rng.uniform(5, 20))
        files.append(written(folder / f"{number}.prom", server.scrape()))
    return files


def benchmark_runs(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    gamma = rng.randint(1, 7)
    files = []
    for concurrency in rng.sample([1, 2, 4, 8, 16], 2):
        for drafts in (0, gamma):
            result = BENCHED.simulate(concurrency, drafts, rng.randrange(1 << 30))
            files.append(written(folder / f"c{concurrency}-k{drafts}.json", json.dumps(result) + "\n"))
    return files


def llamacpp_log(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    gamma = rng.randint(1, 8)
    pass_ms = rng.uniform(5, 40)
    lines = []
    for task in range(rng.randint(8, 40)):
        alpha = min(max(rng.gauss(0.6, 0.15), 0.05), 0.97)
        wanted, put_out, drafted, accepted, rounds = rng.randint(40, 400), 1, 0, 0, 0
        while put_out < wanted:
            most = min(gamma, wanted - put_out - 1)
            taken = 0
            while taken < most and rng.random() < alpha:
                taken += 1
            drafted, accepted, rounds = drafted + most, accepted + taken, rounds + (most > 0)
            put_out += taken + 1
        if drafted == 0:
            continue
        took = (wanted - 1 - accepted) * pass_ms * rng.gauss(1, 0.01)
        place = f"0.{task:02}.000.000 I slot print_timing: id  0 | task {task} |"
        lines += [
            f"{place}        eval time = {took:10.2f} ms / {wanted:5} tokens ({took / wanted:8.2f} ms per token, "
            f"{1000 * wanted / took:8.2f} tokens per second)\n",
            f"{place} draft acceptance = {accepted / drafted:.5f} ({accepted:5} accepted / {drafted:5} generated), "
            f"mean len = {1 + accepted / rounds:5.2f}\n",
        ]
    return [written(folder / "server.log", "".join(lines))]


def recording_of_pair(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    output = folder / "recording.safetensors"
    run([
        "record", "--sequences", str(rng.randint(6, 24)), "--max-new-tokens", str(rng.randint(24, 96)), "--temperature",
        rng.choice(["1", "1", "0.7", "0"]), "--seed", str(rng.randrange(1 << 30)), "--output", str(output), "--quiet",
    ])  # fmt: skip
    return [output]


def synthetic_recording(folder: pathlib.Path, rng: random.Random) -> list[pathlib.Path]:
    output = folder / "recording.safetensors"
    law = rng.choice(["beta", "markov", "logit-noise", "dirichlet"])
    run([
        "trace", "generate", "--law", law, *(["--alpha", f"{rng.uniform(0.4, 0.9):.3f}"] if law == "beta" else []),
        "--sequences", str(rng.randint(20, 100)), "--tokens", str(rng.randint(50, 300)), "--seed",
        str(rng.randrange(1 << 30)), "--output", str(output), "--quiet",
    ])  # fmt: skip
    return [output]


KINDS: dict[str, Writer] = {
    "answers of vLLM, simulated": vllm_answers,
    "logs of vLLM, simulated": vllm_logs,
    "scrapes of vLLM, simulated": vllm_scrapes,
    "benchmark runs, simulated": benchmark_runs,
    "logs of llama.cpp, simulated": llamacpp_log,
    "recordings of the shipped pair": recording_of_pair,
    "synthetic recordings": synthetic_recording,
}
REAL = [
    ["aiperf/records.jsonl"],
    ["aiperf/speculative.json", "aiperf/plain.json"],
    ["guidellm/speculative.json", "guidellm/plain.json"],
    ["llamacpp/server.log"],
    ["llamacpp/server-answers.jsonl"],
    ["llamacpp/server-before.prom", "llamacpp/server-after.prom"],
    ["llamacpp/speculative-simple.log"],
    ["serving/llamacpp_synthetic_before.prom", "serving/llamacpp_synthetic_after.prom"],
    ["serving/sglang_before.prom", "serving/sglang_after.prom"],
]


def run(arguments: list[str]) -> str:
    done = subprocess.run([SPECDEC, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"specdec {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def alarms(files: list[pathlib.Path]) -> list[str]:
    answer = json.loads(run(["doctor", *map(str, files), "--format", "json", "--quiet"]))
    return [f"{finding['code']}: {finding['message']}" for finding in answer["findings"] if finding["severity"] != "note"]


def count(name: str, runs: list[list[str]]) -> int:
    raised = [found for found in runs if found]
    print(f"{name:34} {len(runs):5} runs {len(raised):3} with alarms", flush=True)
    for code, times in Counter(one.split(":")[0] for found in raised for one in found).items():
        example = next(one for found in raised for one in found if one.startswith(code + ":"))
        print(f"    {times} {example}")
    return len(raised)


def main() -> None:
    total = raised = 0
    for kind, write in KINDS.items():
        found = []
        for number in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                found.append(alarms(write(pathlib.Path(folder), random.Random(f"{SEED} {kind} {number}"))))
        total, raised = total + len(found), raised + count(kind, found)
    real = [alarms([SAMPLES / name for name in names]) for names in REAL]
    total, raised = total + len(real), raised + count("samples of real programs", real)
    print(f"{'all':34} {total:5} runs {raised:3} with alarms")
    if raised * OF_RUNS >= MOST_ALARMS * total:
        raise SystemExit(1)


if __name__ == "__main__":
    SPECDEC = sys.argv[1]
    RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    main()
