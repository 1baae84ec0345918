"""compare and simulate answer in Python what the program prints, to the bit but for the time that they took."""

from __future__ import annotations

import json
import pathlib
import pickle
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import specdec
from test_questions import RECORDING, Words, command_line, option

SMALL: dict[str, Any] = {"source": "synthetic", "tokens": 512, "max_new_tokens": 32, "threads": 2}


def without_time(document: dict[str, Any]) -> dict[str, Any]:
    """The time that a run took is no other run's."""
    simulated = document["simulated"]
    assert simulated["seconds"] > 0
    assert simulated["tokens_per_second"] == simulated["tokens"] / simulated["seconds"]
    return {**document, "simulated": simulated["tokens"]}


def worded(question: dict[str, Any]) -> Words:
    words: Words = []
    for name, value in question.items():
        if name == "methods":
            words += list(value)
        elif name == "tree":
            option(words, name, "x".join(map(str, value)))
        elif name == "schedule":
            option(words, name, ",".join(f"{low}-{high}:{gamma}" for low, high, gamma in value))
        elif name == "verify_factor" and isinstance(value, dict):
            option(words, name, ",".join(f"{tokens}:{factor}" for tokens, factor in value.items()))
        else:
            option(words, name, ",".join(map(str, value)) if isinstance(value, list) else value)
    return words


def ask(command: str, question: dict[str, Any]) -> specdec.Answer:
    asked: Callable[..., specdec.Answer] = getattr(specdec, command)
    return asked(**question)


def require_one_answer(command: str, question: dict[str, Any]) -> None:
    words = [command, *worded(question)]
    printed = command_line([*words, "--format", "json"])
    assert printed.returncode == 0, printed.stderr
    expected = without_time(json.loads(printed.stdout))
    answer = ask(command, question)
    found = without_time(answer.to_dict())
    assert list(found) == list(expected)
    assert list(found["inputs"]) == list(expected["inputs"])
    for key in expected:
        assert found[key] == expected[key], (key, words)
    assert json.dumps(found) == json.dumps(expected)
    assert str(answer) == command_line(words).stdout


def random_question(seed: int) -> tuple[str, dict[str, Any]]:
    rng = random.Random(seed)
    command = rng.choice(["compare", "simulate"])
    question = {**SMALL, "seed": seed}
    if command == "compare" and rng.random() < 0.7:
        question["methods"] = rng.sample(
            ["algorithm1", "block", "lenient", "typical", "copy", "heuristic", "threshold", "tree", "plain", "oracle"],
            rng.randrange(1, 4),
        )
    if command == "simulate":
        question["verifier"] = rng.choice(["algorithm1", "block", "lenient", "typical", "tree"])
        question["draft"] = rng.choice(["model", "copy", "ngram"])
    several: list[tuple[str, Any]] = [
        ("gamma", rng.randrange(0, 7)),
        ("temperature", rng.choice([0, 0.7, 1.5])),
        ("c", rng.choice([0.0, 0.05, 0.3])),
        ("lenience", rng.choice([0.3, 1.0, 1.2])),
        ("tree", (2, 2)),
        ("tree_acceptance", [0.6, 0.3]),
        ("schedule", [(1, 8, 3), (9, 64, 1)]),
        ("vocab", rng.choice([1, 20])),
        ("noise", 0.5),
        ("alpha", 0.7),
        ("drafts", 2),
        ("until_error", 0.2),
        ("tasks", ["code"]),
    ]
    for name, value in several:
        if rng.random() < 0.12:
            question[name] = value
    if "c" in question and rng.random() < 0.5:
        question["verify_factor"] = {2: 1.02, 5: 1.1}
        question["overhead"] = 0.05
    return command, question


def test_120_random_questions_have_one_answer_in_python_and_on_the_command_line() -> None:
    refusals = 0
    for seed in range(120):
        command, question = random_question(seed)
        printed = command_line([command, *worded(question)])
        if printed.returncode == 0:
            require_one_answer(command, question)
            continue
        assert printed.returncode == 2, printed.stderr
        with pytest.raises(specdec.QuestionError) as refused:
            ask(command, question)
        # Parameters have the names of options.
        expected = re.sub("--([a-z-]+)", lambda option: option[1].replace("-", "_"), printed.stderr)
        assert expected.replace("METHOD", "methods") == f"specdec: error: {refused.value}\n", question
        refusals += 1
    assert 20 < refusals < 100


def test_the_shipped_pair_its_tables_and_recordings_are_run_alike(tmp_path: pathlib.Path) -> None:
    few = {"tokens": 48, "max_new_tokens": 16, "threads": 2}
    require_one_answer("compare", {**few, "methods": ["algorithm1", "eagle", "bigram", "ngram+block"], "tasks": ["code", "prose"]})
    require_one_answer("simulate", {**few, "draft_model": "unigram", "gamma": 2, "c": 0.1})
    require_one_answer("compare", {"source": "trace", "trace": str(RECORDING), "methods": ["algorithm1"], "gamma": 3, "threads": 2})
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "Once upon a time there was a little girl"}\n')
    require_one_answer("simulate", {**few, "draft": "ngram", "ngram_text": str(texts)})


@pytest.mark.parametrize(
    ("command", "question", "parameter"),
    [
        ("compare", {"gamma": 0}, "gamma"),
        ("compare", {"temperature": -1}, "temperature"),
        ("compare", {"temperature": float("nan")}, "temperature"),
        ("compare", {"lenience": 0}, "lenience"),
        ("compare", {"threads": 2000}, "threads"),
        ("compare", {"seed": -1}, "seed"),
        ("compare", {"methods": ["nothing"]}, "methods"),
        ("compare", {"methods": ["block", "block"]}, "methods"),
        ("compare", {"methods": ["block"], "lenience": 0.5}, "lenience"),
        ("compare", {"source": "nowhere"}, "source"),
        ("compare", {"laws": "nothing"}, "laws"),
        ("compare", {"source": "trace", "tokens": None, "max_new_tokens": None}, "source"),
        ("compare", {"tree": (9, 9)}, "tree"),
        ("compare", {"tree_acceptance": [0.3, 0.4]}, "tree_acceptance"),
        ("compare", {"schedule": [(2, 8, 3)]}, "schedule"),
        ("compare", {"overhead": 0.1}, "overhead"),
        ("simulate", {"draft": "nobody"}, "draft"),
        ("simulate", {"policy": "batch"}, "policy"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_parameter(command: str, question: dict[str, Any], parameter: str) -> None:
    with pytest.raises(specdec.QuestionError) as refused:
        ask(command, {**SMALL, **question})
    assert refused.value.parameter == parameter, str(refused.value)


def test_a_wrong_type_and_a_wrong_file_are_refused_as_what_they_are(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="gamma is '3', but must be an integer"):
        specdec.compare(gamma="3", **SMALL)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tree is 3, but must be"):
        specdec.compare(tree=3, **SMALL)  # type: ignore[arg-type]
    file = tmp_path / "trace.safetensors"
    file.write_bytes(b"nothing")
    with pytest.raises(specdec.FileError) as refused:
        specdec.simulate(source="trace", trace=file)
    assert refused.value.path == str(file)


def test_answers_of_methods_are_pickled_shown_and_made_into_tables() -> None:
    answer = specdec.compare(["algorithm1", "optimal-tree"], c=0.1, **SMALL)
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert answer.results[0].method == "algorithm1"
    assert not answer.partial
    assert repr(answer) == f"<Comparison: {' '.join(answer.decision.text)}>"
    words = ["compare", "algorithm1", "optimal-tree", "--c", "0.1", *worded(SMALL)]
    for table in ("results", "trees"):
        printed = command_line([*words, "--format", "csv", "--table", table]).stdout.splitlines()
        rows = answer.rows(table)
        assert list(rows[0]) == printed[0].split(",")
        assert len(rows) == len(printed) - 1


def test_ctrl_c_ends_a_comparison_with_what_there_is() -> None:
    told: list[float] = []
    specdec.compare("block", progress=told.append, **SMALL)
    assert (told[0], told[-1]) == (0, 1)
    long = {**SMALL, "tokens": 10**9}
    threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT)).start()
    started = time.monotonic()
    answer = specdec.compare("block", **long)
    assert time.monotonic() - started < 60
    assert answer.partial
    assert [warning.code for warning in answer.warnings][-2:].count("partial") == 1
    assert 0 < answer.results[0].tokens < 10**9


def test_other_threads_run_beside_a_simulation() -> None:
    done = threading.Event()
    ticks = 0

    def count() -> None:
        nonlocal ticks
        while not done.wait(0.01):
            ticks += 1

    counter = threading.Thread(target=count)
    counter.start()
    started = time.monotonic()
    specdec.simulate(**{**SMALL, "tokens": 2_000_000, "threads": 1})
    took = time.monotonic() - started
    done.set()
    counter.join()
    assert ticks > took / 0.01 / 10
