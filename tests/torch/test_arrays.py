"""Recordings of torch's tensors: read where they lie, or refused in one line."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest
import specdec
import torch

SEQUENCES = np.repeat(np.arange(4), 10)


def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(30), (2, 40)).astype(np.float32)
    return p, q, np.array([rng.choice(30, p=row / row.sum()) for row in p.astype(float)])


def alpha(p: Any, q: Any, tokens: Any, tolerance: float | None = None) -> float:
    recording = specdec.Recording.from_rows(p, q, tokens, SEQUENCES)
    found: float = specdec.analyze(recording, row_tolerance=tolerance).alpha.value
    return found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_tensor_says_what_its_numbers_say_in_numpy(dtype: torch.dtype) -> None:
    p, q, tokens = rows()
    tensors = [torch.from_numpy(one).to(dtype) for one in (p, q)]
    exact = [tensor.double().numpy() for tensor in tensors]
    assert alpha(*tensors, torch.from_numpy(tokens), 0.05) == pytest.approx(alpha(*exact, tokens, 0.05), rel=1e-6)


def test_a_tensor_is_not_copied() -> None:
    tensors = [torch.full((1500, 32000), 1 / 32000) for _ in range(2)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    recording = specdec.Recording.from_rows(*tensors, torch.zeros(1500, dtype=torch.int64), np.arange(1500) // 100)
    specdec.analyze(recording, standardise=[], lenience=[], threads=1)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2 * 1500 * 32000 * 4 // 1024 / 5


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda row: row.to("meta"), (TypeError, ValueError), "p is "),
        (lambda row: row.to(torch.int64), specdec.QuestionError, "p is of another type, but must be of float64, float32, float16"),
        (lambda row: row.T.contiguous().T, specdec.QuestionError, "p is not contiguous, but must be C-contiguous"),
        (lambda row: row.to_sparse(), (TypeError, ValueError), "p is "),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(change: Any, error: Any, message: str) -> None:
    p, q, tokens = (torch.from_numpy(one) for one in rows())
    with pytest.raises(error) as refused:
        specdec.Recording.from_rows(change(p), change(q), tokens)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_tensor_that_learns_is_read_like_any_other() -> None:
    p, q, tokens = rows()
    learning = [torch.from_numpy(one).requires_grad_() for one in (p, q)]
    assert alpha(*learning, tokens) == alpha(p, q, tokens)
