"""The notebooks of python/examples run from front to end, and are kept without what they print."""

from __future__ import annotations

import pathlib
from typing import Any

import nbclient
import nbformat
import pytest
import specdec
from models import TOP

NOTEBOOKS = sorted((TOP / "python" / "examples").glob("*.ipynb"))


def executed(name: str, folder: pathlib.Path) -> str:
    """The output of all its cells."""
    notebook: Any = nbformat.read(TOP / "python" / "examples" / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_both_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["is_it_worth_it_on_my_server", "which_gamma_for_my_pair"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: pathlib.Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_which_gamma_for_my_pair(tmp_path: pathlib.Path) -> None:
    shown = executed("which_gamma_for_my_pair", tmp_path)
    assert "suspicious text: False" in shown
    assert "gamma 3: 1.6" in shown  # of the shipped recording it is 1.69


def test_is_it_worth_it_on_my_server(tmp_path: pathlib.Path) -> None:
    shown = executed("is_it_worth_it_on_my_server", tmp_path)
    acceptance = specdec.Acceptance.of_lengths({1: "1.68", 3: "2.31"}, rounds=5000)
    cost = specdec.Cost.of_hardware("h100", "llama-3.1-8b", draft_model="llama-3.2-1b")
    plan = specdec.plan(acceptance, cost, batch=[1, 8, 32, 64, 128, 256], context=1024)
    assert " ".join(plan.summary.split()) in " ".join(shown.split())
    assert '"num_speculative_tokens' in shown  # one for all batches, or by batch
    assert "vllm bench serve" in shown
    assert "<Capacity: 3 GPUs" in shown
