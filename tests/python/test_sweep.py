"""Sweeps answer as single questions do."""

from __future__ import annotations

import pathlib

import pytest
import specdec
from specdec import Acceptance, Cost


def test_every_combination_is_a_row_as_plan_answers_it(tmp_path: pathlib.Path) -> None:
    hardware, batches = ["h100", "l4"], [1, 32]
    table = specdec.sweep(
        "plan", model="llama-3.1-8b", draft_kind="ngram", alpha=0.7, hardware=hardware, batch=batches, cache=tmp_path / "kept"
    )
    assert table.points == 4
    rows = table.rows()
    assert [(row["hardware"], row["batch"]) for row in rows] == [(device, batch) for device in hardware for batch in batches]
    for row in rows:
        cost = Cost.of_hardware(row["hardware"], "llama-3.1-8b", draft_kind="ngram")
        point = specdec.plan(Acceptance.of_rate(0.7), cost, batch=row["batch"]).points[0]
        assert row["verdict"] == point.verdict
        assert row["plain_seconds_per_output_token"] == point.seconds_per_output_token.baseline
    again = specdec.sweep(
        "plan", model="llama-3.1-8b", draft_kind="ngram", alpha=0.7, hardware=hardware, batch=batches, cache=tmp_path / "kept"
    )
    assert again.from_cache == 4
    assert again.rows() == rows
    assert str(table).startswith("Fastest: hardware h100, batch 1, ")


def test_sections_are_asked_one_after_the_other() -> None:
    table = specdec.sweep("plan", {"alpha": 0.6, "c": 0.05}, {"alpha": 0.8, "c": [0.05, 0.1]}, min_gain=0.1)
    assert [(row["alpha"], row["c"]) for row in table.rows()] == [("0.6", 0.05), ("0.8", 0.05), ("0.8", 0.1)]


def test_what_cannot_be_priced_is_a_row_and_what_is_no_option_an_error() -> None:
    table = specdec.sweep("plan", alpha=[0.5, 2], c=0.1)
    assert table.unpriced == 1
    assert "--alpha is 2" in table.rows()[1]["why"]
    with pytest.raises(specdec.QuestionError, match="alfa is not an option of specdec plan"):
        specdec.sweep("plan", alfa=0.5)


def test_the_table_is_written_as_parquet(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = specdec.sweep("plan", alpha=[0.5, 0.6], c=0.1)
    table.to_parquet(tmp_path / "t.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist() == table.rows()
