"""Recordings of files and of arrays, and what they say."""

from __future__ import annotations

import concurrent.futures
import csv
import io
import json
import multiprocessing
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest
import specdec
from specdec import Acceptance, Cost, FileError, QuestionError, Recording, analyze
from test_questions import RECORDING, command_line, require_one_answer

SEQUENCES = np.repeat(np.arange(8), 50)


def rows(vocab: int = 40, positions: int = 400, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two models' distributions, and tokens drawn from the first."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(vocab), (2, positions)).astype(np.float32)
    tokens = np.array([rng.choice(vocab, p=row / row.sum()) for row in p.astype(float)])
    return p, q, tokens


def without_files(answer: specdec.Analysis) -> dict[str, Any]:
    found = answer.to_dict()
    del found["inputs"]
    return found


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, []),
        ({"c": 0.05, "gamma": [2, 4, 8]}, ["--c", "0.05", "--gamma", "2,4,8"]),
        ({"rule": "greedy"}, ["--acceptance", "greedy"]),
        (
            {"c": 0.1, "verify_factor": {2: 1.1, 5: 1.2}, "overhead": 0.02, "force_replay": True},
            ["--c", "0.1", "--verify-factor", "2:1.1,5:1.2", "--overhead", "0.02", "--force-replay"],
        ),
    ],
)
def test_an_analysis_is_the_command_lines_to_the_bit(given: dict[str, Any], words: list[str]) -> None:
    both = {"threads": 2, **given}
    require_one_answer((lambda: analyze(RECORDING, **both), ["analyze", str(RECORDING), "--threads", "2", *words]))


def test_rows_are_the_command_lines_columns() -> None:
    answer = analyze(RECORDING, c=0.05)
    for table in answer.tables:
        printed = command_line(["analyze", str(RECORDING), "--c", "0.05", "--format", "csv", "--table", table]).stdout
        shown = list(csv.DictReader(io.StringIO(printed)))
        found = answer.rows(table)
        assert len(found) == len(shown), table
        if found:
            assert list(found[0]) == list(shown[0]), table


def test_arrays_answer_as_the_file_that_they_are_saved_to(tmp_path: pathlib.Path) -> None:
    p, q, tokens = rows()
    prompts = [f"prompt {i // 2}" for i in SEQUENCES]
    recording = Recording.from_rows(p, q, tokens, SEQUENCES, prompts, task="chat", metadata={"path": "target"})
    path = tmp_path / "rows.safetensors"
    recording.save(path)
    sampling: Any = [{"temperature": 0.5, "top_k": 3}, {"model": "draft", "top_p": 0.8}]
    given: dict[str, Any] = {"c": 0.1, "lenience": [0.5], "standardise": sampling}
    words = ["--c", "0.1", "--lenience", "0.5", "--standardise", "temperature=0.5,top_k=3;draft:top_p=0.8"]
    require_one_answer(
        (lambda: analyze(path, threads=2, **given), ["analyze", str(path), "--threads", "2", *words])
    )
    assert without_files(analyze(recording, **given)) == without_files(analyze(path, **given))
    assert without_files(analyze(pickle.loads(pickle.dumps(recording)))) == without_files(analyze(recording))
    plans = [specdec.plan(Acceptance.from_recording(one), Cost.of_constants(0.1)) for one in (recording, path)]
    assert plans[0].points[0].rows == plans[1].points[0].rows


def test_a_recording_says_what_it_says_of_itself() -> None:
    p, q, tokens = rows()
    arrays = Recording.from_rows(p, q, tokens, metadata={"path": "target", "temperature": "0.50", "record.seed": "3"})
    said = {"format": "specdec-trace", "version": "1", "path": "target", "temperature": "0.5", "record.seed": "3"}
    assert {name: arrays.metadata.get(name) for name in said} == said
    assert Recording.from_files(RECORDING).metadata["engine"] == "specdec record"


def test_recording_without_torch_says_what_is_missing(tmp_path: pathlib.Path) -> None:
    program = textwrap.dedent("""
        import sys
        sys.modules["transformers"] = None
        import specdec
        specdec.record(None, None, ["a"], output="run")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "ImportError: specdec.record needs transformers, which cannot be imported" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_pieces_are_one_recording_and_what_is_refused_leaves_it_as_it_was() -> None:
    p, q, tokens = rows()
    whole = Recording.from_rows(p, q, tokens, SEQUENCES)
    pieces = Recording.from_rows(p[:70], q[:70], tokens[:70], SEQUENCES[:70])
    with pytest.raises(QuestionError, match=r"sequences is 0 again, but must be one run"):
        pieces.append(p[:5], q[:5], tokens[:5], SEQUENCES[:5])
    pieces.append(p[70:], q[70:], tokens[70:], SEQUENCES[70:])
    assert (pieces.positions, pieces.sequences) == (whole.positions, whole.sequences) == (400, 8)
    assert without_files(analyze(pieces)) == without_files(analyze(whole))
    texts = Recording.from_rows(p[:50], q[:50], tokens[:50])
    texts.append(p[50:], q[50:], tokens[50:])
    assert texts.sequences == 2


def test_every_type_and_kind_says_the_same_within_its_rounding() -> None:
    p, q, tokens = rows()
    exact = analyze(Recording.from_rows(p, q, tokens, SEQUENCES)).alpha.value
    assert exact == pytest.approx(np.minimum(p, q).sum(axis=1).mean(), rel=1e-6)

    def alpha(kind: Any, of: Any, tolerance: float | None = None) -> float:
        found = analyze(Recording.from_rows(of(p), of(q), tokens, SEQUENCES, kind=kind), row_tolerance=tolerance)
        value: float = found.alpha.value
        return value

    assert alpha("probs", lambda x: x.astype(np.float64)) == exact
    assert alpha("probs", lambda x: x.astype(np.float16), 0.01) == pytest.approx(exact, rel=1e-3)
    assert alpha("logprobs", np.log) == pytest.approx(exact, rel=1e-6)
    assert alpha("logits", lambda x: np.log(x) + 7) == pytest.approx(exact, rel=1e-5)
    i = np.arange(400)
    numbers = analyze(Recording.from_rows(p[i, tokens], q[i, tokens], tokens, SEQUENCES))
    both = analyze(Recording.from_rows(p, q, tokens, SEQUENCES))
    assert numbers.alpha_emitted.value == pytest.approx(both.alpha_emitted.value, rel=1e-6)


def test_bfloat16_is_read_where_it_lies() -> None:
    jnp = pytest.importorskip("jax.numpy")
    p, q, tokens = rows()
    given = [jnp.asarray(one, dtype=jnp.bfloat16) for one in (p, q)]
    found = analyze(Recording.from_rows(*given, tokens, SEQUENCES), row_tolerance=0.05)
    assert found.alpha.value == pytest.approx(np.minimum(p, q).sum(axis=1).mean(), rel=1e-2)


def test_rows_are_not_copied() -> None:
    asked = """
        import numpy as np, resource
        from specdec import Recording, analyze
        rows = np.full((2, 2500, 32000), 1 / 32000, dtype=np.float32)
        tokens = np.zeros(2500, dtype=np.int64)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        recording = Recording.from_rows(*rows, tokens, np.arange(2500) // 100)
        analyze(recording, standardise=[], lenience=[], threads=1)
        print(rows.nbytes // 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(asked)], capture_output=True, text=True, check=True)
    size, grown = map(int, run.stdout.split())
    assert grown < size / 5


def test_a_pair_of_files_is_opened_by_its_two_names(tmp_path: pathlib.Path) -> None:
    p, q, _ = rows()
    for name, one in (("p", p), ("q", q)):
        np.save(tmp_path / f"{name}_probs.npy", one)
    pair = {"target": tmp_path / "p_probs.npy", "draft": tmp_path / "q_probs.npy"}
    words = ["analyze", "--target", str(pair["target"]), "--draft", str(pair["draft"]), "--threads", "1"]
    require_one_answer((lambda: analyze(Recording.from_files(**pair), threads=1), words))  # type: ignore[arg-type]


P, Q, TOKENS = rows(positions=20)


@pytest.mark.parametrize(
    ("ask", "parameter", "message"),
    [
        (lambda: Recording.from_rows(P, Q[:3]), "q", r"q is of shape \(3, 40\), but must be of \(20, 40\), as p is"),
        (lambda: Recording.from_rows(P, Q.astype(float)), "q", "q is of another type than p, but must be of the same"),
        (lambda: Recording.from_rows(P[:, ::2], Q[:, ::2]), "p", "p is not contiguous, but must be C-contiguous"),
        (lambda: Recording.from_rows(P.astype(int), Q.astype(int)), "p", "but must be of float64, float32, float16"),
        (lambda: Recording.from_rows(P[:0], Q[:0]), "p", "p is empty"),
        (lambda: Recording.from_rows(P[None], Q[None]), "p", "p is 3-dimensional"),
        (lambda: Recording.from_rows(P, Q, TOKENS + 40), "tokens", r"but must be in \[0, 39\], or -1 where unknown"),
        (lambda: Recording.from_rows(P, Q, TOKENS[:3]), "tokens", "tokens is 3 long, but must be 20 long"),
        (lambda: Recording.from_rows(P, Q, TOKENS * 1.0), "tokens", "but must be integers, one for each position"),
        (lambda: Recording.from_rows(P, Q, None, [0, 1] * 10), "sequences", "sequences is 0 again"),
        (lambda: Recording.from_rows(P, Q, None, None, list(range(20))), "prompt", "the same for all of a sequence"),
        (lambda: Recording.from_rows(P, Q, prompt=2**64), "prompt", "but must be an integer of 64 bits or a name"),
        (lambda: Recording.from_rows(P, Q, np.full(20, 2**63, np.uint64)), "tokens", "holds 9223372036854775808, but must"),
        (lambda: Recording.from_rows(P, Q, kind="prob"), "kind", "but must be one of probs, logprobs, logits"),  # type: ignore[arg-type]
        (lambda: Recording.from_rows(P, Q, metadata={"acceptance": "no"}), None, "rejection, greedy-draft, greedy"),
        (lambda: analyze(Recording.from_rows(P * 1.5, Q)), None, "the target's row at position 0 is a sum of 1.5"),
        (lambda: analyze(Recording.from_rows(P, Q * np.nan)), None, "the draft's row at position 0"),
        (lambda: analyze(RECORDING, row_tolerance=0.0), "row_tolerance", r"row_tolerance is 0, but must be a number in \(0, 1\]"),
        (lambda: analyze(RECORDING, gamma=[3, 3]), "gamma", r"gamma is 3, but must be an integer in \[4, 512\]"),
        (lambda: analyze(RECORDING, overhead=0.1), "overhead", "overhead is given, but needs c beside it"),
        (lambda: analyze(RECORDING, standardise=[{"heat": 1}]), "standardise", "standardise is heat, but must be one of"),
        (lambda: Recording.from_files(), "files", "files is missing"),
        (lambda: Recording.from_files("a", target="b", draft="c"), "files", "must not be beside target and draft"),
        (lambda: Recording.from_files(RECORDING).append(P, Q), None, "append is for recordings of arrays"),
        (lambda: Recording.from_files(RECORDING).save(RECORDING), "path", "but must be none that is read"),
    ],
)
def test_bad_input_has_one_clear_line(ask: Any, parameter: str | None, message: str) -> None:
    with pytest.raises(QuestionError, match=message) as raised:
        ask()
    assert raised.value.parameter == parameter
    assert "\n" not in str(raised.value)


def test_what_is_no_array_is_a_type_error() -> None:
    for wrong in (P.astype(">f4"), "text", None):
        with pytest.raises(TypeError, match="p is .*, but must be an array of floats"):
            Recording.from_rows(wrong, Q)
    with pytest.raises(TypeError, match="^task is 3, but must be a text$"):
        Recording.from_rows(P, Q, task=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^metadata\['temperature'\] is 1, but must be a text$"):
        Recording.from_rows(P, Q, metadata={"temperature": 1})  # type: ignore[dict-item]


def test_a_bad_recording_is_not_half_written(tmp_path: pathlib.Path) -> None:
    bad = np.vstack([P, P * 2])
    with pytest.raises(QuestionError, match="row at position 20"):
        Recording.from_rows(bad, bad).save(tmp_path / "bad.safetensors")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileError):
        analyze(tmp_path / "missing.safetensors")


def test_progress_is_told_and_an_interruption_ends_it_with_what_there_is() -> None:
    told: list[float] = []
    whole = analyze(RECORDING, progress=told.append)
    assert told and told[-1] == 1
    assert not whole.partial

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    several = Recording.from_rows(*rows())
    several.append(*rows())
    answer = analyze(several, progress=interrupt)
    assert answer.partial
    assert answer.positions == 400

    def fail(share: float) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="^no$"):
        analyze(RECORDING, progress=fail)


def test_ctrl_c_ends_an_analysis_with_what_was_read() -> None:
    # The appended rows are read batch by batch; so many take seconds at so many gammas.
    text = rows()
    several = Recording.from_rows(*text)
    for _ in range(5000):
        several.append(*text)
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    answer = analyze(several, c=0.1, gamma=[512], standardise=[], lenience=[])
    assert answer.partial
    assert [warning.code for warning in answer.warnings].count("partial") == 1
    assert 0 < answer.positions < 5001 * 400


@pytest.mark.parametrize("shards", [1, 3, 7])
def test_an_executor_answers_as_one_process_does(shards: int) -> None:
    given: dict[str, Any] = {"c": 0.05, "gamma": [1, 4]}
    in_memory = Recording.from_rows(*rows(), SEQUENCES)
    told: list[float] = []
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        for recording in (RECORDING, in_memory):
            by_executor = analyze(recording, executor=executor, shards=shards, progress=told.append, **given)
            assert without_files(by_executor) == without_files(analyze(recording, **given))
        assert told == [(i + 1) / shards for i in range(shards)] * 2
        with pytest.raises(FileError, match="missing.safetensors"):
            analyze("missing.safetensors", executor=executor)
        with pytest.raises(QuestionError, match="gamma"):
            analyze(RECORDING, gamma=[4, 2], executor=executor)
    with pytest.raises(QuestionError, match="needs executor"):
        analyze(RECORDING, shards=2)
