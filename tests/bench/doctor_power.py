#!/usr/bin/env python3
"""How often `specdec doctor` finds a defect, by its size of evidence, and how often it alarms over files without one, for
docs/validation.md.

usage: doctor_power.py SPECDEC [DRAWS] [CLEAN_FILES_OF_EACH_KIND] [SEED]

Logs of vLLM are simulated: requests differ in log-odds by a standard deviation of 1.06, as published drafts do, four run
at once and each lasts some three windows. Sizes are windows of 10 seconds: 4, 16 and 64, of 40 rounds of each request; runs
of benchmarks and scrapes have 40, 400 and 4,000 rounds. Clean files are those of doctor_false_alarms.py and such logs. Exit
code 1 where a kind has an alarm in more than one of 100 clean files.
"""

import importlib.util
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable

HERE = pathlib.Path(__file__).resolve().parent
GAMMA, RUNNING, ROUNDS = 4, 4, 40
SIZES = (4, 16, 64)

Rates = list[list[float]]
"""By window: the probability of each draft, given those before it."""


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def window_counts(rng: random.Random, windows: int, mean: Callable[[int], float],
                  change: Callable[[int, int, float], float] = lambda _w, _j, rate: rate) -> list[list[int]]:
    """Rounds whose draft j was accepted, by window."""
    left = [0] * RUNNING
    offset = [0.0] * RUNNING
    counts = []
    for w in range(windows):
        at = [0] * GAMMA
        for r in range(RUNNING):
            if left[r] == 0:
                left[r], offset[r] = rng.randint(1, 5), rng.gauss(0, 1.06)
            left[r] -= 1
            for _ in range(ROUNDS):
                for j in range(GAMMA):
                    if rng.random() >= change(w, j, logistic(mean(w) + offset[r] - 0.2 * j)):
                        break
                    at[j] += 1
        counts.append(at)
    return counts


def log(counts: list[list[int]], slow_first: float = 1, kind: str = "") -> str:
    text = f"INFO [core.py:1] speculative_config=SpeculativeConfig(method='{kind}', num_spec_tokens={GAMMA})\n" if kind else ""
    rounds = RUNNING * ROUNDS
    for w, at in enumerate(counts):
        accepted, drafted, rates = sum(at), rounds * GAMMA, ", ".join(f"{n / rounds:.3f}" for n in at)
        tokens = (accepted + rounds) / 10 / (slow_first if w == 0 else 1)
        text += (f"INFO 07-02 10:00:00 [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
                 f"throughput: {tokens:.1f} tokens/s, Running: {RUNNING} reqs, Waiting: 0 reqs\n"
                 f"INFO 07-02 10:00:00 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: "
                 f"{1 + accepted / rounds:.2f}, Accepted throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: "
                 f"{drafted / 10:.2f} tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position "
                 f"acceptance rate: {rates}, Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%\n")
    return text


def usual(rng: random.Random) -> float:
    return rng.gauss(1.7, 0.5)


def sglang(tokens: float, rounds: int, length: float) -> str:
    return (f"sglang:generation_tokens_total {round(tokens)}\nsglang:spec_verify_calls_total {rounds}\n"
            f"sglang:spec_accept_length {length:.2f}\nsglang:spec_num_steps 4\n")


def vllm(rounds: int, mean: float) -> str:
    return (f"vllm:spec_decode_num_drafts_total {rounds}\nvllm:spec_decode_num_draft_tokens_total {GAMMA * rounds}\n"
            f"vllm:spec_decode_num_accepted_tokens_total {round(mean * rounds)}\n")


def runs(rng: random.Random, size: int, cost: float) -> list[str]:
    """A plain run and one with drafts, whose round costs so many plain steps."""
    mean, ms = rng.uniform(2.4, 3.4), rng.uniform(8, 30)
    noise = rng.gauss(1, 0.02)
    table = "concurrency,gamma,output_tokens_per_second,tokens_per_step\n"
    return [table + f"1,0,{1000 / ms:.2f},\n1,4,{1000 / ms * mean / cost * noise:.2f},{mean:.2f}\n" + "" * size]


Defect = tuple[str, str, Callable[[random.Random, int], list[str]]]


def of_log(change=lambda _w, _j, rate: rate, mean=None, **words) -> Callable[[random.Random, int], list[str]]:
    def files(rng: random.Random, windows: int) -> list[str]:
        level = usual(rng)
        return [log(window_counts(rng, windows, (lambda w: mean(w, windows, level)) if mean else (lambda _: level), change), **words)]

    return files


def last_stretch(windows: int) -> int:
    return windows - max(2, windows // 8)


def with_dead_end(rng: random.Random, windows: int) -> list[str]:
    level = usual(rng)
    return [log(window_counts(rng, windows, lambda _: level, lambda w, _j, rate: 0 if w >= last_stretch(windows) else rate))]


def scrapes(of: Callable[[random.Random, int], list[str]]) -> Callable[[random.Random, int], list[str]]:
    return lambda rng, windows: of(rng, {4: 40, 16: 400, 64: 4000}[windows])


def gauge_apart(rng: random.Random, rounds: int) -> list[str]:
    mean = rng.uniform(3.6, 4.6)
    return [sglang(1000, 400, mean / 2), sglang(1000 + mean * rounds, 400 + rounds, mean / 2)]


def restarted(rng: random.Random, rounds: int) -> list[str]:
    return [vllm(2 * rounds, rng.uniform(1, 2)), vllm(rounds, rng.uniform(1, 2))]


def cut_off(rng: random.Random, rounds: int) -> list[str]:
    return [vllm(rounds, 1.5), "".join(vllm(2 * rounds, 1.5).splitlines(True)[:rng.randint(1, 2)])]


DEFECTS: list[Defect] = [
    ("no draft is accepted", "draft_never_accepted", of_log(lambda *_: 0)),
    ("3% of first drafts are", "draft_hardly_accepted", of_log(lambda _w, j, rate: 0.03 if j == 0 else rate)),
    ("21% of an MTP head's are", "draft_hardly_accepted", of_log(lambda _w, j, rate: 0.21 if j == 0 else rate, kind="mtp")),
    ("nothing in the last eighth", "draft_never_accepted", with_dead_end),
    ("first drafts at half", "first_position_below_second", of_log(lambda _w, j, rate: rate / 2 if j == 0 else rate)),
    ("a fifth from draft 3 on", "drop_behind_position", of_log(lambda _w, j, rate: rate / 5 if j >= 2 else rate)),
    ("log-odds fall by 2.5", "acceptance_changes", of_log(mean=lambda w, n, level: level + 0.5 - 2.5 * w / n)),
    ("log-odds jump by 2", "acceptance_changes", of_log(mean=lambda w, n, level: level + 0.5 - (2 if w >= n // 2 else 0))),
    ("first window takes 1.6 as long", "server_warming_up", of_log(slow_first=1.6)),
    ("gauge of half the length", "figures_contradict", scrapes(gauge_apart)),
    ("restarted, or cut off", "refused", scrapes(lambda rng, n: (restarted if rng.random() < 0.5 else cut_off)(rng, n))),
    ("a round of 6 plain steps", "round_above_its_yield", scrapes(lambda rng, n: runs(rng, n, 6))),
]


def findings(specdec: str, files: list[pathlib.Path]) -> list[dict]:
    done = subprocess.run([specdec, "doctor", *map(str, files), "--format", "json"], capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.decode())
    return json.loads(done.stdout)["findings"]


def write(folder: pathlib.Path, texts: list[str]) -> list[pathlib.Path]:
    files = []
    for i, text in enumerate(texts):
        files.append(folder / f"file{i}")
        files[-1].write_text(text, encoding="utf-8")
    return files


def clean_kinds(specdec: str) -> dict[str, Callable[[pathlib.Path, random.Random], list[pathlib.Path]]]:
    sys.argv = [str(HERE / "doctor_false_alarms.py"), specdec]
    spec = importlib.util.spec_from_file_location("doctor_false_alarms", HERE / "doctor_false_alarms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SPECDEC = specdec
    kinds = dict(module.KINDS)
    kinds["logs of vLLM, requests of several windows"] = lambda folder, rng: write(
        folder, of_log()(rng, rng.choice([1, 2, 4, 10, 16, 40, 64])))
    return kinds


def main() -> int:
    specdec = sys.argv[1]
    draws, clean, seed = (int(word) for word in (*sys.argv[2:], *("30", "200", "1")[len(sys.argv) - 2:]))
    rng = random.Random(seed)
    print("| defect | finding | 4 | 16 | 64 |\n|---|---|---|---|---|")
    for name, code, make in DEFECTS:
        shares = []
        for windows in SIZES:
            found = 0
            for _ in range(draws):
                with tempfile.TemporaryDirectory() as folder:
                    codes = {finding["code"] for finding in findings(specdec, write(pathlib.Path(folder), make(rng, windows)))}
                found += code in codes
            shares.append(f"{100 * found / draws:.0f}%")
        print(f"| {name} | `{code}` | {' | '.join(shares)} |", flush=True)
    too_many = False
    print("\n| clean files | files | alarms |\n|---|---|---|")
    for kind, make in clean_kinds(specdec).items():
        alarms = []
        for _ in range(clean):
            with tempfile.TemporaryDirectory() as folder:
                found = findings(specdec, make(pathlib.Path(folder), rng))
            alarms += [f["code"] for f in found if f["severity"] != "note"][:1]
        too_many = too_many or len(alarms) > clean / 100
        print(f"| {kind} | {clean} | {len(alarms)}{' (' + ', '.join(alarms) + ')' if alarms else ''} |", flush=True)
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
