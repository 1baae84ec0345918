"""specdec.record: what it writes is what the models say."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import specdec
import torch
import transformers
from models import (
    SHIPPED,
    VOCAB,
    columns_of,
    naive_logprobs,
    random_model,
    random_prompts,
    shipped,
    shipped_prompts,
    shipped_tokenizer,
)
from specdec import QuestionError

SHAPES = ["gpt2", "llama", "qwen2"]


def pair(shape: str) -> tuple[Any, Any]:
    return random_model(shape, 1), random_model(shape, 2)


def record_small(output: pathlib.Path, **options: Any) -> specdec.Recording:
    """Five texts of ten tokens in two batches."""
    target, draft = pair("llama")
    given: dict[str, Any] = {"max_new_tokens": 10, "batch_size": 3, **options}
    return specdec.record(target, draft, random_prompts(5), output=output, **given)


def texts_of(columns: dict[str, Any]) -> list[list[int]]:
    return [columns["token"][columns["seq"] == s].tolist() for s in np.unique(columns["seq"])]


def digests(folder: pathlib.Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_those_of_passes_without_batches_and_cache(shape: str, tmp_path: pathlib.Path) -> None:
    target, draft = pair(shape)
    prompts = random_prompts(5)
    recording = specdec.record(target, draft, prompts, output=tmp_path / "run", tier="full", max_new_tokens=12, batch_size=3)
    columns = columns_of(tmp_path / "run")
    assert columns["pos"].tolist() == list(range(12)) * 5
    for number, (prompt, text) in enumerate(zip(prompts, texts_of(columns), strict=True)):
        chosen = columns["seq"] == number
        for name, model in (("p.logprobs", target), ("q.logprobs", draft)):
            np.testing.assert_allclose(columns[name][chosen], naive_logprobs(model, prompt, text), atol=2e-5)
    assert recording.positions == 60
    assert recording.metadata["engine"] == "transformers"


def test_the_shipped_pair_says_what_naive_passes_say_and_numpy_finds_the_same_alpha(tmp_path: pathlib.Path) -> None:
    target, draft = shipped("target"), shipped("draft")
    prompts, tokenizer = shipped_prompts(every=12), shipped_tokenizer()
    recording = specdec.record(
        target, draft, prompts, tokenizer=tokenizer, output=tmp_path / "run", tier="full", max_new_tokens=24, batch_size=4
    )
    columns = columns_of(tmp_path / "run")
    by_hand = []
    for number, text in enumerate(texts_of(columns)):
        ids = tokenizer(prompts[number]["text"]).input_ids
        p, q = naive_logprobs(target, ids, text), naive_logprobs(draft, ids, text)
        np.testing.assert_allclose(np.exp(columns["p.logprobs"][columns["seq"] == number]), np.exp(p), atol=2e-5)
        np.testing.assert_allclose(np.exp(columns["q.logprobs"][columns["seq"] == number]), np.exp(q), atol=2e-5)
        by_hand.append(np.minimum(np.exp(p), np.exp(q)).sum(axis=1).mean())
    answer = specdec.analyze(recording, c=0.05)
    assert answer.alpha.value == pytest.approx(np.mean(by_hand), abs=1e-5)
    assert [task.task for task in answer.tasks] == ["prose", "docs", "code"]


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 20, "top_p": 0.8}, {"temperature": 1.3, "min_p": 0.05}])
def test_what_was_sampled_from_is_what_numpy_makes_of_whole_rows(options: dict[str, Any], tmp_path: pathlib.Path) -> None:
    record_small(tmp_path / "full", tier="full", **options)
    recording = record_small(tmp_path / "scalar", **options)
    full, scalar = columns_of(tmp_path / "full"), columns_of(tmp_path / "scalar")
    assert np.array_equal(full["token"], scalar["token"])
    rows = []
    for name in ("p", "q"):
        row = np.exp(full[f"{name}.logprobs"].astype(np.float64) / options.get("temperature", 1.0))
        order = np.argsort(-row, axis=1)
        ranked = np.take_along_axis(row, order, axis=1)
        ranked[:, options.get("top_k", VOCAB) :] = 0
        ranked /= ranked.sum(axis=1, keepdims=True)
        ranked[np.cumsum(ranked, axis=1) - ranked >= options.get("top_p", 1.0)] = 0
        ranked[ranked < options.get("min_p", 0.0) * ranked[:, :1]] = 0
        ranked /= ranked.sum(axis=1, keepdims=True)
        np.put_along_axis(row, order, ranked, axis=1)
        rows.append(row)
        at = np.take_along_axis(row, full["token"][:, None].astype(np.int64), axis=1)[:, 0]
        np.testing.assert_allclose(np.exp(scalar[f"{name}.token_logprob"]), at, atol=1e-5)
    np.testing.assert_allclose(scalar["overlap"], np.minimum(*rows).sum(axis=1), atol=1e-5)
    both = [specdec.analyze(one).alpha.value for one in (recording, tmp_path / "full")]
    assert both[0] == pytest.approx(both[1], abs=1e-5)


@pytest.mark.parametrize("tier", ["scalar", "topk"])
def test_a_tier_is_what_the_program_makes_of_whole_rows(tier: Any, tmp_path: pathlib.Path) -> None:
    record_small(tmp_path / "full", tier="full")
    record_small(tmp_path / "tier", tier=tier, k=7)
    words = ["--k", "7"] if tier == "topk" else []
    subprocess.run(
        [sys.executable, "-m", "specdec", "trace", "convert", str(tmp_path / "full"), "--tier", tier, *words, "--output",
         str(tmp_path / "made.safetensors")], check=True, capture_output=True)  # fmt: skip
    found, made = columns_of(tmp_path / "tier"), columns_of(tmp_path / "made.safetensors")
    assert found.keys() == made.keys()
    for name, column in made.items():
        np.testing.assert_allclose(found[name], column, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("how", [{}, {"temperature": 0.6, "top_k": 9, "top_p": 0.9}, {"temperature": 0}])
def test_the_text_is_that_of_generate(how: dict[str, Any], tmp_path: pathlib.Path) -> None:
    target, draft = pair("llama")
    prompt = random_prompts(1)
    specdec.record(target, draft, prompt, output=tmp_path / "run", max_new_tokens=20, seed=3, **how)
    torch.manual_seed(specdec._record._seed(3, 0))
    sampling = {"do_sample": True, "top_k": 0, "top_p": 1.0, **how} if how.get("temperature") != 0 else {"do_sample": False}
    text = target.generate(torch.tensor(prompt), max_new_tokens=20, **sampling)
    assert columns_of(tmp_path / "run")["token"].tolist() == text[0, len(prompt[0]) :].tolist()


def test_settings_of_the_target_change_nothing_unless_they_are_asked_for(tmp_path: pathlib.Path) -> None:
    target, draft = pair("llama")
    given: dict[str, Any] = {"max_new_tokens": 10}
    specdec.record(target, draft, random_prompts(3), output=tmp_path / "plain", **given)
    own = target.generation_config
    own.do_sample, own.temperature, own.top_k, own.repetition_penalty = True, 0.5, 2, 1.9
    specdec.record(target, draft, random_prompts(3), output=tmp_path / "still", **given)
    assert digests(tmp_path / "plain") == digests(tmp_path / "still")
    with pytest.raises(QuestionError, match=r"generation_config has repetition_penalty 1.9, but must have no settings"):
        specdec.record(target, draft, random_prompts(3), output=tmp_path / "refused", generation_config=own, **given)
    own.repetition_penalty = None
    recording = specdec.record(target, draft, random_prompts(3), output=tmp_path / "own", generation_config=own, **given)
    assert (recording.metadata["temperature"], recording.metadata["top_k"]) == ("0.5", "2")
    assert target.generation_config is own
    assert not (tmp_path / "refused").exists()


def test_an_end_token_ends_a_text_as_in_generate(tmp_path: pathlib.Path) -> None:
    target, draft = random_model("qwen2", 5, eos=7), random_model("qwen2", 6, eos=7)
    prompts = random_prompts(8)
    specdec.record(target, draft, prompts, output=tmp_path / "run", tier="full", max_new_tokens=60, batch_size=4, temperature=1.5)
    columns = columns_of(tmp_path / "run")
    lengths = []
    for number, text in enumerate(texts_of(columns)):
        assert text.index(7) + 1 == len(text) if 7 in text else len(text) == 60
        found = columns["q.logprobs"][columns["seq"] == number]
        np.testing.assert_allclose(found, naive_logprobs(draft, prompts[number], text), atol=2e-5)
        lengths.append(len(text))
    assert len(set(lengths)) > 2


def test_an_interrupted_recording_goes_on_and_is_the_same(tmp_path: pathlib.Path) -> None:
    record_small(tmp_path / "whole", batch_size=1)

    def stop(written: int, count: int) -> None:
        if written == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_small(tmp_path / "run", batch_size=1, progress=stop)
    assert len(digests(tmp_path / "run")) == 3
    (tmp_path / "run" / "shard-000003.safetensors.partial").write_bytes(b"half")
    told: list[tuple[int, int]] = []
    record_small(tmp_path / "run", batch_size=1, progress=lambda *both: told.append(both))
    assert told == [(4, 5), (5, 5)]
    assert digests(tmp_path / "run") == digests(tmp_path / "whole")


PROGRAM = """
import sys
from models import random_model, random_prompts
import specdec
recording = specdec.record(random_model("llama", 1), random_model("llama", 2), random_prompts(5), output=sys.argv[1],
                           max_new_tokens=10, batch_size=1)
print(recording.positions)
"""


def test_processes_of_torchrun_share_a_recording(tmp_path: pathlib.Path) -> None:
    record_small(tmp_path / "one", batch_size=1)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program),
         str(tmp_path / "two")], capture_output=True, text=True, timeout=200,
        env={**os.environ, "PYTHONPATH": ":".join([str(pathlib.Path(__file__).parent), *sys.path]),
             "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["50", "50"]
    assert digests(tmp_path / "one").keys() == digests(tmp_path / "two").keys()
    one, two = columns_of(tmp_path / "one"), columns_of(tmp_path / "two")
    assert np.array_equal(one["token"], two["token"])
    np.testing.assert_allclose(one["overlap"], two["overlap"], atol=1e-6)


def test_the_process_draws_the_same_random_numbers_as_without_it_and_models_stay_as_they_were(tmp_path: pathlib.Path) -> None:
    target, draft = pair("gpt2")  # with dropout, where it trains
    target.train()
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    specdec.record(target, draft, random_prompts(2), output=tmp_path / "run", tier="full", max_new_tokens=5)
    assert torch.equal(torch.rand(3), expected)
    assert target.training and not draft.training
    target.eval()
    columns = columns_of(tmp_path / "run")
    text = texts_of(columns)[0]
    np.testing.assert_allclose(columns["p.logprobs"][:5], naive_logprobs(target, random_prompts(2)[0], text), atol=2e-5)


def test_padded_vocabularies_are_cut_to_the_tokens(tmp_path: pathlib.Path) -> None:
    target, draft = random_model("llama", 1), random_model("llama", 2, vocab=VOCAB + 3)
    specdec.record(target, draft, random_prompts(2), output=tmp_path / "run", tier="full", max_new_tokens=5, vocab_size=VOCAB)
    columns = columns_of(tmp_path / "run")
    expected = naive_logprobs(draft, random_prompts(2)[0], texts_of(columns)[0])[:, :VOCAB]
    expected -= np.log(np.exp(expected).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(columns["q.logprobs"][:5], expected, atol=2e-5)


def shipped_recording(output: pathlib.Path, draft: Any, **options: Any) -> specdec.Recording:
    given = {"tokenizer": shipped_tokenizer(), "max_new_tokens": 64, "batch_size": 24, **options}
    return specdec.record(shipped("target"), draft, shipped_prompts(), output=output, **given)


def test_alpha_is_that_of_the_shipped_recording(tmp_path: pathlib.Path) -> None:
    """72 texts beside those that the program wrote with other random numbers. Were all errors independent, the difference
    would be beyond 4 of its standard errors in 6 of 100,000 runs; the prompts are the same, so it is in fewer."""

    def deviation(recording: specdec.Recording) -> float:
        both = [specdec.analyze(one).alpha for one in (recording, SHIPPED / "recording.safetensors")]
        errors = [(alpha.ci95[1] - alpha.ci95[0]) / (2 * 1.96) for alpha in both]
        return abs(both[0].value - both[1].value) / float(np.hypot(*errors))

    draft = shipped("draft")
    assert deviation(shipped_recording(tmp_path / "run", draft)) < 4
    draft.model.norm.weight.data *= 0.5  # the twin: another draft
    assert deviation(shipped_recording(tmp_path / "other", draft)) > 4


def test_the_text_is_found_to_be_the_targets_own(tmp_path: pathlib.Path) -> None:
    """By the two tests of `analyze`, each at 4 standard errors: false alarms in 1 of 8,000 runs."""
    shipped_recording(tmp_path / "run", shipped("draft"), tier="full", temperature=1.3)
    assert not specdec.analyze(tmp_path / "run").text_source.suspicious
    columns = columns_of(tmp_path / "run")  # the twin: these rows, were the text sampled from them at temperature 1
    twin = specdec.Recording.from_rows(
        columns["p.logprobs"], columns["q.logprobs"], columns["token"], columns["seq"], kind="logprobs",
        metadata={"temperature": "1", "path": "target"})  # fmt: skip
    assert specdec.analyze(twin).text_source.suspicious


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": []}, "prompts is empty, but must hold one at least"),
        ({"prompts": [[1, 2], []]}, "prompts: number 2 is '[]'"),
        ({"prompts": ["a text"]}, "tokenizer is missing: prompt 1 is a text"),
        ({"prompts": [[5, 61]]}, "prompts: 1 has token 61, but the models have 61 tokens"),
        ({"prompts": [[1] * 119]}, "prompts: number 1 has 119 tokens, but must have 118 at most: the target reads 128, and "),
        ({"draft": random_model("llama", 2, vocab=70)}, "draft has 70 tokens, but must have the target's vocabulary of 61"),
        ({"tier": "all"}, "tier is 'all', but must be one of full, topk, scalar"),
        ({"batch_size": 0}, "batch_size is 0, but must be an integer from 1 on"),
        ({"max_new_tokens": 1}, "max_new_tokens is 1, but must be an integer from 2 on"),
        ({"temperature": -1}, r"temperature is -1, but must be in [0, inf)"),
        ({"max_new_tokens": 128}, "max_new_tokens is 128, but must be less than 128, which the target reads"),
        ({"top_p": 0}, "top_p is 0, but must be in (0, 1]"),
        ({"vocab_size": 62}, "vocab_size is 62, but must be an integer in [1, 61]"),
        ({"output": "run.safetensors"}, "output is run.safetensors, but must be a folder"),
        (
            {"temperature": 1.0, "generation_config": transformers.GenerationConfig()},
            "temperature is given, but must not be beside generation_config",
        ),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(change: dict[str, Any], message: str, tmp_path: pathlib.Path) -> None:
    target, draft = pair("llama")
    given: dict[str, Any] = {
        "target": target, "draft": draft, "prompts": [[5, 6]], "output": tmp_path / "run", "max_new_tokens": 10, **change
    }  # fmt: skip
    with pytest.raises(QuestionError) as error:
        specdec.record(**given)
    assert message in str(error.value)
    assert not (tmp_path / "run").exists()


def test_models_without_weights_with_wrong_rows_and_what_are_none_are_refused(tmp_path: pathlib.Path) -> None:
    target, draft = pair("llama")
    with torch.device("meta"):
        empty = transformers.AutoModelForCausalLM.from_config(target.config)
    with pytest.raises(QuestionError, match="draft is on the meta device, which holds no weights"):
        specdec.record(target, empty, [[5]], output=tmp_path / "run")
    with pytest.raises(TypeError, match="draft is str, but must be a transformers.PreTrainedModel"):
        specdec.record(target, "gpt2", [[5]], output=tmp_path / "run")
    draft.lm_head.weight.data[3] = float("nan")
    with pytest.raises(QuestionError, match="draft gave a row that is no distribution"):
        specdec.record(target, draft, [[5]], output=tmp_path / "run", max_new_tokens=10)
    assert digests(tmp_path / "run") == {}


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"draft": random_model("llama", 3)}, "draft"),
        ({"target": random_model("llama", 3)}, "target"),
        ({"prompts": random_prompts(5, seed=4)}, "prompts"),
        ({"seed": 2}, "seed"),
        ({"temperature": 0.5}, "sampling"),
        ({"tier": "topk"}, "tier"),
    ],
)
def test_a_recording_of_others_is_not_gone_on_with(change: dict[str, Any], parameter: str, tmp_path: pathlib.Path) -> None:
    target, draft = pair("llama")
    given: dict[str, Any] = {
        "target": target, "draft": draft, "prompts": random_prompts(5), "output": tmp_path / "run", "max_new_tokens": 5,
        "batch_size": 3,
    }  # fmt: skip
    specdec.record(**given)
    before = digests(tmp_path / "run")
    with pytest.raises(QuestionError, match=f"was recorded with another {parameter}") as error:
        specdec.record(**{**given, **change})
    assert error.value.parameter == parameter
    assert digests(tmp_path / "run") == before


def test_a_folder_of_something_else_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(QuestionError, match="holds notes.txt, which is no shard of this recording"):
        record_small(tmp_path)
    shutil.copy(SHIPPED / "recording.safetensors", tmp_path / "shard-000000.safetensors")
    (tmp_path / "notes.txt").unlink()
    with pytest.raises(QuestionError, match="was recorded with another target, none and not"):
        record_small(tmp_path)


def test_two_tokenizers_are_told_apart(tmp_path: pathlib.Path) -> None:
    one, other = shipped_tokenizer(), shipped_tokenizer()
    other.add_tokens(["<more>"])
    target, draft = pair("llama")
    with pytest.raises(QuestionError, match="draft_tokenizer has '<more>' as token 2048, but must have the target's"):
        specdec.record(target, draft, ["a"], tokenizer=one, draft_tokenizer=other, output=tmp_path / "run")
