"""The recipe of docs/reference/formats.md runs, and transformers reads the shipped pair as specdec's own transformer does."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from models import SHIPPED, TOP, columns_of, naive_logprobs, shipped, shipped_prompts, shipped_tokenizer


def test_the_recipe_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (TOP / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    recipe = next(block for block in blocks if "from transformers" in block)
    (tmp_path / "sim").symlink_to(TOP / "sim")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(recipe, "docs/reference/formats.md", "exec"), {})
    assert 3 <= int(printed.getvalue()) <= 5


def test_tokens_and_probabilities_are_those_of_the_program(tmp_path: pathlib.Path) -> None:
    """4e-6 is the largest difference that was seen over 9.4 million probabilities."""
    prompts, new = shipped_prompts(every=12), 32
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts), encoding="utf-8")
    output = tmp_path / "greedy.safetensors"
    subprocess.run(
        [sys.executable, "-m", "specdec", "record", "--target", str(SHIPPED / "target"), "--draft", str(SHIPPED / "draft"),
         "--prompts", str(tmp_path / "prompts.jsonl"), "--temperature", "0", "--max-new-tokens", str(new), "--output",
         str(output)], check=True, capture_output=True)  # fmt: skip
    columns, tokenizer = columns_of(output), shipped_tokenizer()
    for name, column in (("target", "p.probs"), ("draft", "q.probs")):
        model = shipped(name)
        for number, prompt in enumerate(prompts):
            ids = tokenizer(prompt["text"]).input_ids
            assert tokenizer.decode(ids[1:]) == prompt["text"]
            chosen = columns["seq"] == number
            text = columns["token"][chosen].tolist()
            rows = np.exp(naive_logprobs(model, ids, text))
            if name == "target":
                assert rows.argmax(axis=1).tolist() == text
            np.testing.assert_allclose(columns[column][chosen], rows, atol=1e-5)
