"""Questions asked in Python and on the command line have one answer, to the bit."""

from __future__ import annotations

import concurrent.futures
import copy
import json
import math
import multiprocessing
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from typing import Any, Callable

import numpy as np
import pytest
import specdec
from specdec import Acceptance, Cost, Recording

TOP = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = TOP / "traces" / "samples"
PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "specdec"
RECORDING = pathlib.Path(specdec.__file__).parent / "share" / "specdec" / "models" / "recording.safetensors"
COUNTERS = str(SAMPLES / "serving" / "vllm_requests.jsonl")
BENCH = [str(path) for path in sorted((SAMPLES / "bench").glob("*.json"))]

Words = list[str]
# A question in Python and on the command line.
Asked = tuple[Callable[[], Any], Words]


def command_line(words: Words) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PROGRAM), *words], capture_output=True, text=True, timeout=300)


def require_one_answer(asked: Asked) -> None:
    ask, words = asked
    printed = command_line([*words, "--format", "json"])
    assert printed.returncode in (0, 1), printed.stderr
    expected = json.loads(printed.stdout)
    answer = ask()
    found = answer.to_dict()
    assert list(found) == list(expected)
    assert list(found["inputs"]) == list(expected["inputs"])
    for key in expected:
        assert found[key] == expected[key], (key, words)
    assert str(answer) == command_line(words).stdout
    assert json.dumps(found) == json.dumps(expected)


def option(words: Words, name: str, value: object) -> None:
    words += [f"--{name.replace('_', '-')}", str(value)]


def some_acceptance(rng: random.Random) -> tuple[Acceptance, Words, bool]:
    """An acceptance, the same in words, and whether it is stated."""
    kind = rng.randrange(8)
    first, second = sorted(round(rng.uniform(0.2, 0.95), 3) for _ in range(2))
    if kind == 0:
        return Acceptance.of_rate(first), ["--alpha", str(first)], True
    if kind == 1:
        return Acceptance.of_interval(first, second), ["--alpha", f"{first}:{second}"], True
    if kind == 2:
        return Acceptance.of_rejection(first, second), ["--rejection", f"{first}:{second}"], True
    if kind == 3:
        gamma = rng.randrange(2, 8)
        length = round(1 + gamma * first, 2)
        made = Acceptance.of_lengths({gamma: length}, rounds=500)
        return made, ["--acceptance-length", str(length), "--at", str(gamma), "--rounds", "500"], True
    if kind == 4:
        lengths = {1: "1.80", 2: 2.41, 3: 2.87}
        return Acceptance.of_lengths(lengths), ["--acceptance-length", "1:1.80,2:2.41,3:2.87"], True
    if kind == 5:
        rates = [0.8, 0.62, 0.41]
        conditional = rng.random() < 0.5
        words = ["--acceptance-per-position", "0.8,0.62,0.41"] + (["--conditional"] if conditional else [])
        return Acceptance.of_positions(rates, conditional=conditional), words, True
    if kind == 6:
        return Acceptance.from_counters(COUNTERS), ["--counters", COUNTERS], False
    return Acceptance.from_recording(RECORDING), ["--trace", str(RECORDING)], False


def some_constants(rng: random.Random) -> tuple[Cost, Words]:
    c = rng.choice([0.0, 0.02, 0.1, 0.35])
    words = ["--c", str(c)]
    more: dict[str, Any] = {}
    if rng.random() < 0.4:
        more["verify_factor"] = rng.choice([1.1, {2: 1.02, 5: 1.1, 9: 1.31}])
        option(words, "verify-factor", 1.1 if more["verify_factor"] == 1.1 else "2:1.02,5:1.1,9:1.31")
    if rng.random() < 0.3:
        more["overhead"] = 0.05
        option(words, "overhead", 0.05)
    return Cost.of_constants(c, **more), words


def some_hardware(rng: random.Random) -> tuple[Cost, Words]:
    more: dict[str, Any] = {}
    target, draft = rng.choice([("llama-3.1-8b", "llama-3.2-1b"), ("llama-3.3-70b", "eagle3-llama-3.3-70b")])
    hardware = rng.choice(["h100", "h200-sxm", "b200"])
    if rng.random() < 0.5 or target == "llama-3.3-70b":
        more["tensor_parallel_size"] = 4
    if rng.random() < 0.5:
        more["weight_dtype"] = "fp8"
    if rng.random() < 0.3:
        more["bandwidth_efficiency"] = (0.6, 0.9)
    if rng.random() < 0.3:
        more["all_reduce_latency_us"] = 12.5
    if rng.random() < 0.3:
        more["calibrate"] = [{"batch": 8, "tpot_ms": 15.9}, {"batch": 32, "tpot_ms": 21.5, "context": 1000}]
    words = ["--hardware", hardware, "--model", target, "--draft-model", draft]
    for name, value in more.items():
        if name == "calibrate":
            words += ["--calibrate", "batch=8,tpot_ms=15.9", "batch=32,tpot_ms=21.5,context=1000"]
        else:
            option(words, name, ":".join(map(str, value)) if isinstance(value, tuple) else value)
    return Cost.of_hardware(hardware, target, draft_model=draft, **more), words


def some_plan_question(rng: random.Random, stated_and_constant: bool) -> tuple[dict[str, Any], Words]:
    question: dict[str, Any] = {}
    if rng.random() < 0.4:
        question["batch"] = [1, 8, 64.5]
    if rng.random() < 0.2:
        question["context"] = [500, 4000]
    for name, value in [("max_gamma", 6), ("min_gain", 0.2), ("max_num_seqs", 128), ("emit", "vllm")]:
        if rng.random() < 0.2:
            question[name] = value
    if rng.random() < 0.3:
        question["gamma"] = rng.randrange(0, 5)
        if rng.random() < 0.5:
            question["max_regret"] = 0.02
    elif rng.random() < 0.2:
        question["schedule"] = [(1, 16, 4), (17, 65536, 1)]
    if stated_and_constant and not question.keys() & {"batch", "context", "max_num_seqs", "schedule", "emit"}:
        if rng.random() < 0.3:
            question["tokens"] = 100
        if rng.random() < 0.3:
            question["c_hat"] = 0.01
    words: Words = []
    for name, value in question.items():
        if name == "schedule":
            option(words, name, ",".join(f"{low}-{high}:{gamma}" for low, high, gamma in value))
        else:
            option(words, name, ",".join(map(str, value)) if isinstance(value, list) else value)
    return question, words


def random_plan(seed: int) -> Asked:
    rng = random.Random(seed)
    acceptance, acceptance_words, stated = some_acceptance(rng)
    constant = rng.random() < 0.6
    cost, cost_words = some_constants(rng) if constant else some_hardware(rng)
    question, words = some_plan_question(rng, stated and constant)
    ask = lambda: specdec.plan(acceptance, cost, **question)  # noqa: E731
    return ask, ["plan", *acceptance_words, *cost_words, *words]


def random_capacity(seed: int) -> Asked:
    rng = random.Random(seed)
    cost, words = some_hardware(rng)
    acceptance, acceptance_words, _ = some_acceptance(rng)
    if cost == Cost.of_hardware("b200", "llama-3.1-8b"):
        acceptance = None  # type: ignore[assignment]
    question: dict[str, Any] = {
        "prompt_tokens": (500, 0.5),
        "output_tokens": 60,
        "num_requests": 100,
        "replications": 2,
        "gamma": [2, 4],
        "seed": seed,
        "threads": 2,
    }
    if rng.random() < 0.5:
        question.update(arrival_rate=4.5, ttft_ms=2000, price=2.5)
    words = ["capacity", *acceptance_words, *words]
    for name, value in question.items():
        joined = ":" if isinstance(value, tuple) else ","
        option(words, name, joined.join(map(str, value)) if isinstance(value, (tuple, list)) else value)
    return lambda: specdec.capacity(acceptance, cost, **question), words


def random_analysis(seed: int) -> Asked:
    rng = random.Random(seed)
    question: dict[str, Any] = {"threads": 2}
    several: list[tuple[str, Any]] = [
        ("c", rng.choice([0.0, 0.05, 0.4])),
        ("overhead", 0.02),
        ("gamma", rng.choice([[1, 2, 3], [4, 8, 600], [5, 5]])),
        ("rule", rng.choice(["rejection", "greedy-draft", "greedy"])),
        ("lenience", rng.choice([[0.5, 0.1], [0.0], [1.0]])),
        ("row_tolerance", rng.choice([0.01, 2.0])),
        ("force_replay", True),
        ("assume_processed", True),
    ]
    for name, value in several:
        if rng.random() < 0.3:
            question[name] = value
    arrays = [SAMPLES / "numpy" / "stored.npz", SAMPLES / "numpy" / "deflated.npz"]
    file = rng.choice([RECORDING, RECORDING, RECORDING, *arrays, TOP / "README.md"])
    words = ["analyze", str(file)]
    for name, value in question.items():
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        else:
            option(words, {"rule": "acceptance"}.get(name, name), ",".join(map(str, value)) if isinstance(value, list) else value)
    return lambda: specdec.analyze(file, **question), words


def answered(seed: int) -> str | None:
    """Python refuses a question that the command line refuses; else they have one answer. None if it was answered."""
    ask, words = random_plan(seed) if seed < 140 else random_capacity(seed) if seed < 160 else random_analysis(seed)
    printed = command_line([*words, "--format", "json"])
    if printed.returncode == 2:
        with pytest.raises((ValueError, specdec.FileError)) as refused:
            ask()
        return str(refused.value)
    require_one_answer((ask, words))
    return None


def test_200_random_questions_have_one_answer_in_python_and_on_the_command_line() -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        refusals = [refusal for refusal in pool.map(answered, range(200)) if refusal is not None]
    assert len(refusals) < 100


TIMINGS = "batch,tokens,context,seconds\n1,1,500,0.0100\n1,5,500,0.0108\n4,1,500,0.0104\n4,5,500,0.0125\n"


def test_files_of_servers_are_planned_from_alike(tmp_path: pathlib.Path) -> None:
    timings = tmp_path / "timings.csv"
    timings.write_text(TIMINGS)
    counted = Acceptance.from_counters(SAMPLES / "serving" / "vllm_after.prom")
    words = ["plan", "--counters", str(SAMPLES / "serving" / "vllm_after.prom"), "--cost", str(timings), "--c", "0.1"]
    timed = Cost.of_timings(timings, c=0.1)
    require_one_answer((lambda: specdec.plan(counted, timed, batch=[1, 4]), [*words, "--batch", "1,4"]))
    require_one_answer(
        (
            lambda: specdec.plan(counted, timed, batch=[1, 8], emit="vllm"),
            [*words, "--batch", "1,8", "--emit", "vllm"],
        )
    )
    logs = [str(SAMPLES / "serving" / name) for name in ("vllm_plain.log", "vllm_k4.log")]
    of_logs = Cost.of_logs(logs, at=4)
    asked = lambda: specdec.plan(Acceptance.of_rate(0.7), of_logs)  # noqa: E731
    printed = command_line(["plan", "--alpha", "0.7", "--cost", *logs, "--at", "4"])
    if printed.returncode == 0:
        require_one_answer((asked, ["plan", "--alpha", "0.7", "--cost", *logs, "--at", "4"]))


def test_a_head_without_an_acceptance_has_its_prior() -> None:
    cost = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="eagle3-llama-3.1-8b")
    words = ["plan", "--hardware", "h100", "--model", "llama-3.1-8b", "--draft-model", "eagle3-llama-3.1-8b"]
    require_one_answer((lambda: specdec.plan(cost=cost, batch=[1, 8]), [*words, "--batch", "1,8"]))
    with pytest.raises(specdec.QuestionError, match="acceptance is missing"):
        specdec.plan(cost=Cost.of_constants(0.05))


def test_a_plan_of_a_recording_follows_the_rule_of_the_engine_it_is_written_for() -> None:
    recorded = Acceptance.from_recording(RECORDING)
    ask = lambda: specdec.plan(recorded, Cost.of_constants(0.05, draft_model="org/d", model="org/t"), emit="llamacpp")  # noqa: E731
    words = ["--trace", str(RECORDING), "--c", "0.05", "--draft-model", "org/d", "--model", "org/t", "--emit", "llamacpp"]
    require_one_answer((ask, ["plan", *words]))
    assert "rule_of_engine" in [warning.code for warning in ask().warnings]


def test_a_mix_of_traffic_is_planned_for_alike() -> None:
    counted = Acceptance.from_counters(COUNTERS, mix={"code": 0.6, "chat": 0.4}, mix_by="requests")
    words = ["plan", "--counters", COUNTERS, "--mix", "code=0.6,chat=0.4", "--mix-by", "requests", "--c", "0.05"]
    require_one_answer((lambda: specdec.plan(counted, Cost.of_constants(0.05), batch=1), [*words, "--batch", "1"]))
    with pytest.raises(specdec.QuestionError, match="needs mix beside it"):
        Acceptance.from_counters(COUNTERS, by="category")
    with pytest.raises(specdec.QuestionError, match="names sports"):
        Acceptance.from_counters(COUNTERS, mix={"sports": 1})


def test_acceptance_by_context_enters_plans_and_capacities_alike() -> None:
    recorded = Acceptance.from_recording(RECORDING, by="context:16,32")
    words = ["--trace", str(RECORDING), "--by", "context:16,32"]
    constants = Cost.of_constants(0.05)
    require_one_answer(
        (
            lambda: specdec.plan(recorded, constants, batch=1, context=[0, 20, 40]),
            ["plan", *words, "--c", "0.05", "--batch", "1", "--context", "0,20,40"],
        )
    )
    hardware = ["--hardware", "h100", "--model", "llama-3.1-8b", "--draft-kind", "ngram"]
    load = ["--prompt-tokens", "20", "--output-tokens", "30", "--num-requests", "100", "--replications", "2", "--gamma", "2"]
    priced = Cost.of_hardware("h100", "llama-3.1-8b", draft_kind="ngram")
    asked = {"prompt_tokens": 20, "output_tokens": 30, "num_requests": 100, "replications": 2, "gamma": [2]}
    require_one_answer(
        (lambda: specdec.capacity(recorded, priced, **asked), ["capacity", *hardware, *words, *load])  # type: ignore[arg-type]
    )
    with pytest.raises(specdec.QuestionError, match="needs context beside it"):
        specdec.plan(recorded, constants)
    with pytest.raises(specdec.QuestionError, match="context:N1,N2,... with places above 0"):
        specdec.plan(Acceptance.from_recording(RECORDING, by="task"), constants)


@pytest.mark.parametrize("emit", [None, "vllm", "sglang", "trtllm", "llamacpp"])
def test_synthetic_acceptance_is_written_alike(emit: Any) -> None:
    sources: list[tuple[Acceptance, Words]] = [
        (Acceptance.of_rate(0.8), ["--alpha", "0.8"]),
        (Acceptance.of_lengths({4: 2.5}), ["--acceptance-length", "2.5", "--at", "4"]),
        (Acceptance.from_counters(COUNTERS), ["--counters", COUNTERS]),
        (Acceptance.from_recording(RECORDING), ["--trace", str(RECORDING)]),
    ]
    for acceptance, words in sources:
        words = ["synthetic", *words, "--gamma", "4", *(["--emit", emit] if emit else [])]
        require_one_answer((lambda: specdec.synthetic(acceptance, 4, emit=emit), words))
    answer = specdec.synthetic(Acceptance.of_rate(0.5), 2)
    assert answer.law[1].unconditional == 0.25
    assert [setting.engine for setting in answer.settings] == ["vllm", "sglang", "trtllm", "llamacpp"]


def test_synthetic_acceptance_refuses_what_the_command_line_refuses() -> None:
    acceptance = Acceptance.of_rate(0.8)
    assert command_line(["synthetic", "--alpha", "0.8", "--gamma", "0"]).returncode == 2
    with pytest.raises(specdec.QuestionError):
        specdec.synthetic(acceptance, 0)
    with pytest.raises(TypeError, match="acceptance is 0.8"):
        specdec.synthetic(0.8, 3)  # type: ignore[arg-type]


def test_two_runs_differ_alike(tmp_path: pathlib.Path) -> None:
    requests, after = str(SAMPLES / "serving" / "vllm_requests.jsonl"), str(SAMPLES / "serving" / "vllm_after.prom")
    again = str(shutil.copy(requests, tmp_path / "again.jsonl"))
    assert "same_content" in [warning["code"] for warning in specdec.difference(requests, again).warnings]
    require_one_answer((lambda: specdec.difference(after, requests), ["diff", after, requests]))
    words = ["diff", requests, again]
    require_one_answer((lambda: specdec.difference(requests, again), words))
    require_one_answer(
        (
            lambda: specdec.difference(requests, again, by="category", unpaired=True),
            [*words, "--by", "category", "--unpaired"],
        )
    )
    runs = [str(tmp_path / f"{name}.safetensors") for name in "ab"]
    for seed, run in enumerate(runs):
        rng = np.random.default_rng(seed)
        draft = 0.5 * rng.uniform(0.5, 0.9 + 0.1 * seed, 300)
        Recording.from_rows(np.full(300, 0.5), draft, sequences=np.repeat(np.arange(10), 30)).save(run)
    require_one_answer((lambda: specdec.difference(*runs, gamma=3), ["diff", *runs, "--gamma", "3"]))
    with pytest.raises(specdec.QuestionError, match="nothing differs"):
        specdec.difference(requests, requests)
    with pytest.raises(specdec.FileError):
        specdec.difference(requests, tmp_path / "none.prom")


def test_files_are_checked_alike(tmp_path: pathlib.Path) -> None:
    before, after = (str(SAMPLES / "serving" / f"vllm_{when}.prom") for when in ("before", "after"))
    require_one_answer((lambda: specdec.doctor([before, after]), ["doctor", before, after]))
    require_one_answer((lambda: specdec.doctor(RECORDING, threads=2), ["doctor", str(RECORDING), "--threads", "2"]))
    assert specdec.doctor([before, after]).passed
    slow = tmp_path / "draft.csv"
    slow.write_text("batch,tokens,context,seconds\n1,1,100,0.05\n")
    models = ["--hardware", "h100", "--model", "llama-3.1-8b", "--draft-model", "llama-3.2-1b"]
    require_one_answer(
        (
            lambda: specdec.doctor(draft_cost=slow, hardware="h100", model="llama-3.1-8b", draft_model="llama-3.2-1b"),
            ["doctor", "--draft-cost", str(slow), *models],
        )
    )
    with pytest.raises(specdec.QuestionError, match="needs hardware and model"):
        specdec.doctor(draft_cost=slow)
    with pytest.raises(specdec.QuestionError, match="needs draft_cost"):
        specdec.doctor(before, hardware="h100")
    # A percentage where a share is due, as people's own files have it.
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"num_drafts": 100, "num_draft_tokens": 300, "num_accepted_tokens": 900}\n')
    words = ["doctor", str(broken), "--gamma", "3"]
    printed = command_line([*words, "--format", "json"])
    if printed.returncode == 2:
        with pytest.raises((specdec.QuestionError, specdec.FileError)):
            specdec.doctor(broken, gamma=3)
    else:
        require_one_answer((lambda: specdec.doctor(broken, gamma=3), words))
    with pytest.raises(specdec.QuestionError, match="give both"):
        specdec.doctor(target=before)
    with pytest.raises(specdec.QuestionError) as refused:
        specdec.doctor([before, before])
    assert refused.value.parameter is not None or "twice" in str(refused.value)
    with pytest.raises(specdec.QuestionError):
        specdec.doctor()


def test_runs_of_benchmarks_are_planned_from_alike() -> None:
    require_one_answer((lambda: specdec.plan_runs(BENCH), ["plan", "--bench", *BENCH]))
    require_one_answer(
        (
            lambda: specdec.plan_runs(BENCH, emit="vllm", draft_model="org/draft", max_num_seqs=64, gamma=3),
            [*["plan", "--bench", *BENCH, "--emit", "vllm", "--draft-model", "org/draft", "--max-num-seqs", "64"], "--gamma", "3"],
        )
    )
    require_one_answer(
        (
            lambda: specdec.plan_runs(BENCH, Acceptance.of_rate(0.6)),
            ["plan", "--bench", *BENCH, "--alpha", "0.6"],
        )
    )


def test_drafts_are_chosen_among_alike() -> None:
    drafts = {
        "small": (Acceptance.of_rate(0.6), Cost.of_constants(0.02)),
        "large": (Acceptance.of_rate(0.85), Cost.of_constants(0.2)),
    }
    require_one_answer(
        (
            lambda: specdec.plan(drafts=drafts, batch=[1, 8]),
            ["plan", "--draft", "small:alpha=0.6,c=0.02", "large:alpha=0.85,c=0.2", "--batch", "1,8"],
        )
    )


@pytest.mark.parametrize(
    ("ask", "words", "parameter"),
    [
        (lambda: Acceptance.of_rate(1.2), ["plan", "--alpha", "1.2", "--c", "0.1"], "alpha"),
        (lambda: Acceptance.of_interval(0.8, 0.7), ["plan", "--alpha", "0.8:0.7", "--c", "0.1"], "low"),
        (lambda: Acceptance.of_lengths({3: 5.0}), ["plan", "--acceptance-length", "5.0", "--at", "3", "--c", "1"], "acceptance_length"),
        (lambda: Acceptance.published("nobody"), ["plan", "--published", "nobody", "--c", "0.1"], "published"),
        (lambda: Cost.of_constants(), ["plan", "--alpha", "0.8"], "c"),
        (lambda: Cost.of_constants(-1.0), ["plan", "--alpha", "0.8", "--c", "-1"], "c"),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_hardware("h1000", "llama-3.1-8b", draft_model="llama-3.2-1b")),
            [*["plan", "--alpha", "0.8", "--hardware", "h1000", "--model", "llama-3.1-8b"], "--draft-model", "llama-3.2-1b"],
            "hardware",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_hardware("h100", "llama-3.1-8b")),
            ["plan", "--alpha", "0.8", "--hardware", "h100", "--model", "llama-3.1-8b"],
            "draft_model",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), batch=[8, 1]),
            ["plan", "--alpha", "0.8", "--c", "0.1", "--batch", "8,1"],
            "batch",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), batch=0),
            ["plan", "--alpha", "0.8", "--c", "0.1", "--batch", "0"],
            "batch",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), context=-1.0),
            ["plan", "--alpha", "0.8", "--c", "0.1", "--context", "-1"],
            "context",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), schedule=[(2, 8, 3)]),
            ["plan", "--alpha", "0.8", "--c", "0.1", "--schedule", "2-8:3"],
            "schedule",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), max_gamma=0),
            ["plan", "--alpha", "0.8", "--c", "0.1", "--max-gamma", "0"],
            "max_gamma",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), gamma=3, max_gamma=2),
            ["plan", "--alpha", "0.8", "--c", "0.1", "--gamma", "3", "--max-gamma", "2"],
            "gamma",
        ),
        (
            lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), emit="tgi"),  # type: ignore[arg-type]
            ["plan", "--alpha", "0.8", "--c", "0.1", "--emit", "tgi"],
            "emit",
        ),
        (
            lambda: specdec.capacity(None, Cost.of_constants(0.1), prompt_tokens=100, output_tokens=10),
            ["capacity", "--c", "0.1", "--prompt-tokens", "100", "--output-tokens", "10"],
            "cost",
        ),
        (
            lambda: specdec.capacity(None, Cost.of_hardware("h100", "llama-3.1-8b"), prompt_tokens=100),
            ["capacity", "--hardware", "h100", "--model", "llama-3.1-8b", "--prompt-tokens", "100"],
            "output_tokens",
        ),
        (
            lambda: specdec.capacity(
                None, Cost.of_hardware("h100", "llama-3.1-8b"), prompt_tokens=100, output_tokens=10, percentile=100.0
            ),
            [
                *["capacity", "--hardware", "h100", "--model", "llama-3.1-8b", "--prompt-tokens", "100"],
                *["--output-tokens", "10", "--percentile", "100"],
            ],
            "percentile",
        ),
    ],
)
def test_what_the_command_line_refuses_python_refuses_with_the_parameter(
    ask: Callable[[], Any], words: Words, parameter: str
) -> None:
    assert command_line(words).returncode == 2
    with pytest.raises(ValueError) as refused:
        ask()
    assert isinstance(refused.value, specdec.QuestionError), repr(refused.value)
    assert refused.value.parameter == parameter, str(refused.value)
    assert "--" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_requests": 50}, "num_requests is 50, but must be an integer in [100, 1000000]"),
        ({"ttft_ms": -1.0}, "ttft_ms is -1, but must be a number in (0, 1000000000000]"),
        ({"arrival_rate": -1.0}, "arrival_rate is -1, but must be a number in [1e-06, 1000000000000]"),
        ({"concurrency": 0}, "concurrency is 0, but must be an integer in [1, 1073741824]"),
        ({"gpu_memory_utilization": 2.0}, "gpu_memory_utilization is 2, but must be a number in (0, 1]"),
        ({"gamma": [2, 99]}, "gamma is 99, but must be an integer in [3, 64]"),
        ({"kv_cache_tokens": 0}, "kv_cache_tokens is 0, but must be an integer in [1, 1099511627776]"),
        ({"seed": -1}, "seed is -1, but must be an integer in [0, 9000000000000000000]"),
    ],
)
def test_a_number_out_of_range_is_told_by_its_parameter_and_its_range(given: dict[str, Any], message: str) -> None:
    cost = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="llama-3.2-1b")
    with pytest.raises(specdec.QuestionError) as refused:
        specdec.capacity(Acceptance.of_rate(0.8), cost, prompt_tokens=500, output_tokens=60, **given)
    assert str(refused.value) == message
    assert refused.value.parameter == next(iter(given))


def test_a_capacity_of_a_head_without_an_acceptance_takes_its_prior_as_the_command_line_does() -> None:
    head = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="eagle3-llama-3.1-8b")
    load: dict[str, Any] = {"prompt_tokens": 100, "output_tokens": 20, "num_requests": 100, "replications": 2, "threads": 1}
    answer = specdec.capacity(cost=head, gamma=[3], **load)
    assert [one["name"] for one in answer.scenarios] == ["plain", "gamma 3"]
    assert "acceptance_from_prior" in [warning.code for warning in answer.warnings]
    assert [one["name"] for one in specdec.capacity(cost=head, gamma=0, **load).scenarios] == ["plain"]
    with pytest.raises(specdec.QuestionError, match="cost is missing"):
        specdec.capacity(**load)


def test_a_factor_out_of_range_is_told_by_its_parameter() -> None:
    for factor in (-1.0, {}, [(5, 1.0), (2, 1.0)]):
        with pytest.raises(specdec.QuestionError, match="^verify_factor is .*, but must be a factor above 0, or") as refused:
            Cost.of_constants(0.1, verify_factor=factor)  # type: ignore[arg-type]
        assert refused.value.parameter == "verify_factor"


def test_a_bad_file_is_told_with_its_place(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "timings.csv"
    file.write_text(TIMINGS + "4,5,x,1\n")
    with pytest.raises(specdec.FileError) as raised:
        Cost.of_timings(file, c=0.1)
    error = raised.value
    assert (error.path, error.place) == (str(file), ("line", 6))
    assert error.found in str(error)
    assert error.expected in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.place) == (str(error), error.path, error.place)
    printed = command_line(["plan", "--alpha", "0.8", "--cost", str(file), "--c", "0.1"])
    assert printed.stderr == f"specdec: error: {error}\n"
    with pytest.raises(specdec.FileError) as missing:
        Acceptance.from_recording(tmp_path / "none.safetensors")
    assert missing.value.place is None


def test_a_wrong_type_is_told_with_its_parameter() -> None:
    with pytest.raises(TypeError, match="gamma is '3', but must be an integer"):
        specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), gamma="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="gamma is 2.5, but must be an integer"):
        specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.1), gamma=2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^alpha is None, but must be a number$"):
        Acceptance.of_rate(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^lengths is 'x', but must be a number$"):
        Acceptance.of_lengths({3: "x"})
    with pytest.raises(TypeError, match="^acceptance is 0.8, but must be a specdec.Acceptance$"):
        specdec.plan(0.8, Cost.of_constants(0.1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^cost is 0.1, but must be a specdec.Cost$"):
        specdec.capacity(None, 0.1, prompt_tokens=1, output_tokens=1)  # type: ignore[arg-type]


def plan_of(acceptance: Acceptance) -> dict[str, Any]:
    return specdec.plan(acceptance, Cost.of_constants(0.05)).to_dict()


def test_questions_and_answers_can_be_pickled_and_asked_in_other_processes() -> None:
    acceptance = Acceptance.of_lengths({3: 2.92}, rounds=100)
    cost = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="llama-3.2-1b")
    answer = specdec.plan(acceptance, cost, batch=[1, 8])
    assert pickle.loads(pickle.dumps((acceptance, cost, answer))) == (acceptance, cost, answer)
    assert copy.deepcopy(answer) == answer
    assert str(pickle.loads(pickle.dumps(answer))) == str(answer)
    everywhere = [Acceptance.of_rate(0.8), acceptance, Acceptance.from_recording(RECORDING)]
    here = [plan_of(one) for one in everywhere]
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(plan_of, everywhere) == here


def test_threads_ask_at_once() -> None:
    everywhere = [Acceptance.of_rate(0.5 + 0.01 * i) for i in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(plan_of, everywhere)) == [plan_of(one) for one in everywhere]


def test_an_answer_shows_its_keys_as_attributes() -> None:
    answer = specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05), gamma=3)
    assert answer.gamma == answer.decision.gamma == 8
    assert answer.speedup == pytest.approx(3.0921, abs=1e-4)
    assert answer.points[0].deployed.gamma == answer.decision.over.gamma == 3
    assert answer.decision.verdict == answer.points[0].verdict == "sure"
    assert answer.points[0]["verdict"] == "sure"
    assert answer.closed_form.alpha == 0.8
    assert "decision" in dir(answer)
    with pytest.raises(AttributeError, match="Plan has no nothing"):
        _ = answer.nothing
    with pytest.raises(AttributeError, match="there is no nothing"):
        _ = answer.decision.nothing
    assert repr(answer) == f"<Plan: {' '.join(answer.decision.text)}>"
    assert repr(answer).startswith("<Plan: Draft 8 tokens: about 3.09x plain decoding.")
    over = specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05), context=[0, 8])
    assert (over.gamma, over.decision.gamma, over.closed_form) == (8, 8, None)
    configured = specdec.plan(
        Acceptance.of_rate(0.8), Cost.of_constants(0.05, model="org/target", draft_model="org/draft"), emit="vllm"
    )
    assert json.loads(configured.config_text or "")["num_speculative_tokens"] == 8


def test_tables_are_those_of_csv() -> None:
    pandas = pytest.importorskip("pandas")
    answer = specdec.plan(Acceptance.of_interval(0.7, 0.8), Cost.of_constants(0.05), context=[0, 8])
    words = ["plan", "--alpha", "0.7:0.8", "--c", "0.05", "--context", "0,8"]
    for table in answer.tables:
        if not answer.rows(table):
            continue
        printed = command_line([*words, "--format", "csv", "--table", table]).stdout.splitlines()
        frame = answer.to_dataframe(table)
        assert list(frame.columns) == printed[0].split(",")
        assert len(frame) == len(printed) - 1
    assert isinstance(answer.to_dataframe(), pandas.DataFrame)
    with pytest.raises(ValueError, match="table is nothing, but must be one of points, rows"):
        answer.to_dataframe("nothing")




def test_progress_of_a_simulation_is_told_and_ctrl_c_before_its_first_scenario_raises() -> None:
    told: list[float] = []
    cost = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="llama-3.2-1b")
    load = {"prompt_tokens": 500, "output_tokens": 100, "gamma": [2]}
    specdec.capacity(Acceptance.of_rate(0.8), cost, num_requests=100, replications=2, progress=told.append, **load)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 1)
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    started = time.monotonic()
    load.update(num_requests=20_000, replications=20, gamma=list(range(1, 30)), max_num_seqs=[1, 256])
    with pytest.raises(KeyboardInterrupt):
        specdec.capacity(Acceptance.of_rate(0.8), cost, **load)
    assert time.monotonic() - started < 60


def test_ctrl_c_ends_a_capacity_with_what_there_is() -> None:
    cost = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="llama-3.2-1b")

    def interrupted_after(seconds: float) -> specdec.Capacity | None:
        threading.Timer(seconds, lambda: signal.raise_signal(signal.SIGINT)).start()
        try:
            return specdec.capacity(
                Acceptance.of_rate(0.8), cost, prompt_tokens=100, output_tokens=20, num_requests=200, replications=100,
                gamma=list(range(1, 65)), max_num_seqs=[1, 2, 4],
            )
        except KeyboardInterrupt:
            return None

    # A busy machine may not have simulated a scenario by then.
    answers = (interrupted_after(seconds) for seconds in (1, 4, 16, 64))
    answer = next(answer for answer in answers if answer is not None)
    assert answer.partial
    assert answer.decision.verdict == "open"
    assert 0 < len(answer.scenarios) < 3 * 65
    assert answer.scenarios[0].requests_per_second_per_replica.ci95 == [0, None]


def test_python_does_not_start_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(subprocess, "Popen", None)
    assert specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05)).gamma == 8
    assert not math.isnan(specdec.theory.tie_cost(0.8, 2))
    assert sys.version_info >= (3, 11)
