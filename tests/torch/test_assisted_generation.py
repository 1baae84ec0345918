"""The counts of transformers' `generate(..., assistant_model=...)` are those that specdec predicts from a recording."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import specdec
import torch
from models import columns_of, shipped, shipped_prompts, shipped_tokenizer

NEW_TOKENS = 64


class Pair:
    """The shipped pair, and what its assisted generation does."""

    def __init__(self) -> None:
        self.target, self.draft = shipped("target"), shipped("draft")
        self.tokenizer = shipped_tokenizer()
        self.prompts = shipped_prompts(every=2)
        # An end token would end some texts before.
        self.target.generation_config.eos_token_id = None

    def record(self, output: pathlib.Path, **options: Any) -> specdec.Recording:
        return specdec.record(
            self.target, self.draft, self.prompts, tokenizer=self.tokenizer, output=output, max_new_tokens=NEW_TOKENS,
            batch_size=36, **options)  # fmt: skip

    def count(self, gamma: int, **sampling: Any) -> np.ndarray[Any, Any]:
        """Rounds of the text of each prompt: calls of the target."""
        how = self.draft.generation_config
        how.num_assistant_tokens, how.num_assistant_tokens_schedule = gamma, "constant"
        how.assistant_confidence_threshold = 0.0
        rounds = np.zeros(len(self.prompts))
        place = 0

        def called(*_: Any) -> None:
            rounds[place] += 1

        hook = self.target.register_forward_hook(called)
        for place, prompt in enumerate(self.prompts):
            ids = self.tokenizer(prompt["text"], return_tensors="pt").input_ids
            text = self.target.generate(ids, assistant_model=self.draft, max_new_tokens=NEW_TOKENS, **sampling)
            assert text.shape[1] - ids.shape[1] == NEW_TOKENS
        hook.remove()
        return rounds


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    yield Pair()


def predicted(recording: specdec.Recording, gamma: int) -> tuple[float, float]:
    """Tokens per step, and the standard error of its interval."""
    answer = specdec.analyze(recording, gamma=[gamma])
    found = answer.gammas[0].tokens_per_step
    return found.replay.value, (found.replay.ci95[1] - found.replay.ci95[0]) / (2 * 1.96)


def deviation(rounds: np.ndarray[Any, Any], prediction: tuple[float, float]) -> float:
    """Counted less predicted tokens per step, in standard errors of their difference: of the count by prompts."""
    tokens = NEW_TOKENS / rounds.mean()
    error = tokens * rounds.std(ddof=1) / np.sqrt(len(rounds)) / rounds.mean()
    return float(abs(tokens - prediction[0]) / np.hypot(error, prediction[1]))


def test_sampled_rounds_lie_inside_the_predicted_interval(pair: Pair, tmp_path: pathlib.Path) -> None:
    """36 texts of each: beyond 4 standard errors in 3 of 10,000 runs at most, by Student's t of 35 degrees."""
    recording = pair.record(tmp_path / "run")
    torch.manual_seed(2)
    rounds = pair.count(3, do_sample=True, temperature=1.0, top_k=0, top_p=1.0)
    assert deviation(rounds, predicted(recording, 3)) < 4
    # The twins: another gamma, and another draft.
    assert deviation(rounds, predicted(recording, 1)) > 4
    pair.draft.model.norm.weight.data /= 2
    other = pair.record(tmp_path / "other")
    pair.draft.model.norm.weight.data *= 2
    assert deviation(rounds, predicted(other, 3)) > 4


def test_greedy_rounds_are_those_of_the_replay(pair: Pair, tmp_path: pathlib.Path) -> None:
    """No chance is left: each text has the rounds of its replay, where the numbers' rounding turns no choice around."""
    pair.record(tmp_path / "run", temperature=0)
    rounds = pair.count(3, do_sample=False)
    columns = columns_of(tmp_path / "run")
    agreed = (columns["q.token_rank"] == 1).reshape(len(pair.prompts), NEW_TOKENS)
    replayed = [rounds_of(row, 3) for row in agreed]
    assert np.mean(rounds == replayed) > 0.9
    assert abs(rounds.sum() - np.sum(replayed)) <= 3
    assert abs(rounds.sum() - sum(rounds_of(row, 2) for row in agreed)) > 30  # the twin: another gamma


def rounds_of(agreed: np.ndarray[Any, Any], gamma: int) -> int:
    """Rounds of a text by hand: up to gamma tokens that both models choose, and one of the target."""
    place = rounds = 0
    while place < len(agreed):
        drafted = 0
        while drafted < gamma and place + drafted < len(agreed) and agreed[place + drafted]:
            drafted += 1
        place += drafted + 1
        rounds += 1
    return rounds
