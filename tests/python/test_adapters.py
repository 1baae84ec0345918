"""Recordings from servers, by stand-ins that answer as the engines do."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import specdec
from specdec.adapters import RecordingError, llamacpp, sglang, vllm

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "unit" / "scripts"))

import stub_servers  # noqa: E402: beside the script's own test

PROMPTS: list[Any] = ["abcd", [4, 5, 6], {"text": "ghi", "task": "chat"}]
ENGINES = {"vllm": vllm, "sglang": sglang, "llamacpp": llamacpp}


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(params=ENGINES)
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any, Any]]:
    """An engine's module, and a target and a draft of it."""
    pair = [stub_servers.Stub(request.param, flavour) for flavour in "pq"]
    yield ENGINES[request.param], *pair
    for server in pair:
        server.shutdown()
        server.server_close()


def test_an_engines_answers_become_a_recording(servers: tuple[Any, Any, Any], tmp_path: pathlib.Path) -> None:
    engine, target, draft = servers
    told: list[tuple[int, int]] = []
    path = tmp_path / "run.jsonl"
    recording = engine.record(target.url, draft.url, PROMPTS, output=path, max_tokens=20, progress=lambda *of: told.append(of))
    assert told == [(1, 3), (2, 3), (3, 3)]
    metadata, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert metadata["path"] == "target"
    last_of_prompt = {"1": 3, "2": 6, "3": 8}
    for line in lines:
        text = [last_of_prompt[line["id"]], *line["token_ids"]]
        for key, flavour in (("target", "p"), ("draft", "q")):
            expected = [stub_servers.logprobs(flavour, last)[token] for last, token in itertools.pairwise(text)]
            assert line[key]["logprobs"] == pytest.approx(expected, abs=1e-12)
    assert specdec.analyze(recording).positions == sum(len(line["token_ids"]) for line in lines)
    asked = len(target.requests)
    engine.record(target.url, draft.url, PROMPTS, output=path, max_tokens=20)
    assert len(target.requests) == asked


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompts": []}, "prompts is empty, but must hold one at least"),
        ({"prompts": ["a", ""]}, "prompts: number 2 is '', but must be a text or token ids that are not empty"),
        ({"prompts": [[0.5]]}, r"prompts: number 1 is '\[0.5\]', but must be a text or token ids"),
        ({"prompts": [{"id": 1, "text": "a"}, {"id": 1, "text": "b"}]}, "prompts: id is given twice"),
        ({"temperature": 0.7}, "temperature is 0.7, but must be 1 or 0"),
        ({"max_tokens": 0}, "max_tokens is 0, but must be an integer from 1 on"),
        ({"output": "."}, "is no file, but must be one that can be gone on with"),
        ({"target": "http://127.0.0.1:9"}, "http://127.0.0.1:9/v1/models cannot be reached"),
        ({"target": "foo"}, "foo/v1/models cannot be reached: unknown url type"),
    ],
)
def test_what_cannot_be_recorded_has_one_clear_line(given: dict[str, Any], message: str, tmp_path: pathlib.Path) -> None:
    server = stub_servers.Stub("vllm", "p")
    usual = {"target": server.url, "draft": server.url, "prompts": PROMPTS, "output": tmp_path / "run.jsonl"}
    with pytest.raises(RecordingError, match=message) as raised:
        vllm.record(**{**usual, **given})
    server.shutdown()
    server.server_close()
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_another_question_does_not_go_on_with_the_same_file(servers: tuple[Any, Any, Any], tmp_path: pathlib.Path) -> None:
    engine, target, draft = servers
    path = tmp_path / "run.jsonl"
    engine.record(target.url, draft.url, PROMPTS, output=path, max_tokens=5)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="was recorded with another seed; output must name a new file"):
        engine.record(target.url, draft.url, PROMPTS, output=path, max_tokens=5, seed=2)
    assert path.read_bytes() == before


def test_the_command_is_that_of_the_script() -> None:
    used = "import sys, specdec; assert 'specdec.adapters' not in sys.modules; specdec.adapters.vllm.record"
    subprocess.run([sys.executable, "-c", used], check=True)
    done = subprocess.run([sys.executable, "-m", "specdec.adapters", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: specdec.adapters")
    assert "--target-engine" in done.stdout
