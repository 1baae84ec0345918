"""A user's program that a strict type checker is to accept."""

from __future__ import annotations

import numpy as np
import specdec

best = specdec.theory.optimal_gamma(np.linspace(0.1, 0.9, 5), 0.05)
tokens = specdec.theory.expected_tokens(0.8, best.gamma)
print(best.attained, tokens, specdec.theory.tie_cost(specdec.theory.Rejection(1e-9), 4))
compared = specdec.compare(["algorithm1", "block"], source="synthetic", tokens=64, vocab=20)
alone = specdec.simulate(verifier="block", source="synthetic", tokens=64, schedule=None, progress=lambda share: None)
print(compared.summary, alone.results[0].lossless, compared.rows("trees"))
try:
    specdec.theory.expected_tokens(2.0, 3)
except specdec.QuestionError as error:
    print(error.parameter)
