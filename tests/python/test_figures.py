"""Answers that draw themselves show what `specdec plot` shows."""

from __future__ import annotations

import copy
import json
import pathlib
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import specdec
from specdec import Acceptance, Cost, Recording
from test_questions import BENCH, RECORDING, command_line

matplotlib = pytest.importorskip("matplotlib")

HARDWARE = Cost.of_hardware("h100", "llama-3.3-70b", draft_model="eagle3-llama-3.3-70b", tensor_parallel_size=4)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def of_rates() -> specdec.Plan:
    return specdec.plan(Acceptance.of_interval(0.7, 0.8), Cost.of_constants(0.05), gamma=8)


def of_rows() -> specdec.Analysis:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(40), (2, 400)).astype(np.float32)
    tokens = [rng.choice(40, p=row / row.sum()) for row in p.astype(float)]
    recording = Recording.from_rows(p, q, tokens, sequences=np.repeat(np.arange(8), 50))
    return specdec.analyze(recording, lenience=[i / 20 for i in range(1, 21)], gamma=range(1, 9))  # type: ignore[arg-type]


ANSWERS: dict[str, Any] = {
    "rates": of_rates,
    "one rate": lambda: specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05)),
    "batches": lambda: specdec.plan(Acceptance.of_rate(0.8), HARDWARE, batch=[1, 8, 64], context=[500, 8000]),
    "drafts": lambda: specdec.plan(
        drafts={
            "$mall": (Acceptance.of_interval(0.5, 0.6), Cost.of_constants(0.02)),
            "_large": (Acceptance.of_rate(0.85), Cost.of_constants(0.2)),
        }
    ),
    "runs": lambda: specdec.plan_runs(BENCH),
    "recording": lambda: specdec.analyze(RECORDING),
    "rows": of_rows,
    "load": lambda: of_load(),
}


def printed(name: str, *words: str) -> dict[str, Any]:
    ran = command_line(["plot", name, *words, "--format", "json"])
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    return {"figure": document["figure"], "data": document["data"]}


@pytest.mark.parametrize("name", ["speedup-over-gamma", "speedup-map"])
def test_a_plans_figures_are_those_of_the_command_line(name: str) -> None:
    assert of_rates().figure_data(name) == printed(
        name, "--alpha", "0.7:0.8", "--c", "0.05", *([] if name == "speedup-map" else ["--gamma", "8"])
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("position-acceptance", ["--max-gamma", "8"]),
        ("tokens-over-gamma", ["--max-gamma", "8"]),
        ("lenience", []),
        ("calibration", []),
    ],
)
def test_a_recordings_figures_are_those_of_the_command_line(name: str, words: list[str], tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(40), (2, 400)).astype(np.float32)
    tokens = [rng.choice(40, p=row / row.sum()) for row in p.astype(float)]
    file = tmp_path / "run.safetensors"
    Recording.from_rows(p, q, tokens, sequences=np.repeat(np.arange(8), 50)).save(file)
    answer = specdec.analyze(file, lenience=[i / 20 for i in range(1, 21)], gamma=range(1, 9))  # type: ignore[arg-type]
    assert answer.figure_data(name) == printed(name, "--trace", str(file), *words)


SERVICE: dict[str, Any] = {
    **{"prompt_tokens": 500, "output_tokens": 60, "gamma": 2, "num_requests": 100, "replications": 2, "arrival_rate": 9.0},
    **{"price": 2.5, "ttft_ms": 2000.0, "tpot_ms": 30.0},
}


def of_load(**more: Any) -> specdec.Capacity:
    cost = Cost.of_hardware("h100", "llama-3.1-8b", draft_model="llama-3.2-1b")
    return specdec.capacity(Acceptance.of_rate(0.8), cost, **{**SERVICE, **more})


def test_a_capacitys_figures_are_those_of_the_command_line() -> None:
    name = "cost-and-time-per-token"
    words = ["--alpha", "0.8", "--hardware", "h100", "--model", "llama-3.1-8b", "--draft-model", "llama-3.2-1b"]
    for key, value in SERVICE.items():
        words += [f"--{key.replace('_', '-')}", str(value)]
    assert of_load().figure_data(name) == printed(name, *words)


def test_a_capacity_has_the_figures_that_its_question_allows() -> None:
    assert of_load(price=None).figures == []
    assert of_load(replicas=2).figures == []


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_figure_of_an_answer_is_drawn(kind: str, tmp_path: pathlib.Path) -> None:
    answer = ANSWERS[kind]()
    assert answer.figures
    for name in answer.figures:
        figure = answer.plot(name)
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
        figure.savefig(tmp_path / f"{name}.svg")
        chart = answer.figure_data(name)["figure"]
        words = {text.get_text().replace("\n", " ") for text in figure.findobj(matplotlib.text.Text)}
        assert {chart["title"], chart["caption"]} <= words
        for panel in chart["panels"]:
            assert {panel["x"]["label"], panel["y"]["label"]} <= words


def test_every_figure_of_the_program_can_be_drawn(tmp_path: pathlib.Path) -> None:
    from specdec import _drawing

    names = [line.split(",")[0] for line in command_line(["plot", "--format", "csv"]).stdout.splitlines()[1:]]
    few = {
        "cost-and-time-per-token": ["--num-requests", "100"],
    }
    marks = set()
    for name in sorted(set(names) - {"steps"}):
        chart = printed(name, *few.get(name, []))
        marks |= {series["mark"] for panel in chart["figure"]["panels"] for series in panel["series"]}
        _drawing.draw(chart).savefig(tmp_path / "figure.png")
    assert marks == {"line", "steps", "points", "bars", "band", "box", "cells", "vertical", "horizontal", "text"}


def test_lines_are_at_the_places_of_the_data() -> None:
    answer = of_rates()
    (ax,) = answer.plot("speedup-over-gamma").axes
    rows = [row for row in answer.figure_data("speedup-over-gamma")["data"] if row["series"] == "speedup"]
    drawn = [line.get_xydata().tolist() for line in ax.lines]  # type: ignore[union-attr]
    assert [[row["gamma"], row["speedup"]] for row in rows] in drawn


def test_a_box_without_an_end_goes_to_the_edge_of_its_panel() -> None:
    (ax,) = of_rates().plot("speedup-over-gamma").axes
    (box,) = ax.patches
    low, high = ax.get_ylim()
    assert (box.get_y(), box.get_y() + box.get_height()) == pytest.approx((low, high))  # type: ignore[attr-defined]


def test_names_are_shown_as_they_are(tmp_path: pathlib.Path) -> None:
    from specdec import _drawing

    hostile = "_it's $x^2$ \\alpha {a} 100% <b>\n\x1b"
    chart = ANSWERS["drafts"]().figure_data("drafts")
    (panel,) = chart["figure"]["panels"]
    panel["x"]["categories"][0] = panel["series"][0]["name"] = hostile
    chart["data"][0]["draft"] = hostile
    figure = _drawing.draw(chart)
    figure.savefig(tmp_path / "figure.svg")
    shown = "_it's $x^2$ \\alpha {a} 100% <b>\\n\\x1b"
    found = {text.get_text() for text in figure.findobj(matplotlib.text.Text)}
    assert shown in found


def test_a_figure_of_one_panel_is_drawn_into_given_axes() -> None:
    figure = matplotlib.figure.Figure(figsize=(14, 5))
    left, right = figure.subplots(1, 2)
    assert of_rates().plot("speedup-over-gamma", ax=right) is figure
    assert right.lines and not left.lines
    with pytest.raises(ValueError, match="ax is given, but lenience has 2 panels"):
        of_rows().plot("lenience", ax=left)


def test_an_unknown_figure_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="figure is pie, but must be one of speedup-over-gamma, speedup-map"):
        of_rates().plot("pie")


def test_a_pickled_answer_keeps_its_figures() -> None:
    answer = of_rates()
    for other in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert other == answer
        assert other.figures == answer.figures
        for name in answer.figures:
            assert other.figure_data(name) == answer.figure_data(name)


def test_a_notebook_shows_a_drawing() -> None:
    assert of_rates().plot()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_matplotlib_is_imported_where_something_is_drawn() -> None:
    ask = "specdec.plan(specdec.Acceptance.of_rate(0.8), specdec.Cost.of_constants(0.05))"
    code = f"""
import sys, specdec
answer = {ask}
assert answer.figures and "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
try:
    answer.plot()
except ImportError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "plot() draws with matplotlib, which is not there: pip install matplotlib\n"
