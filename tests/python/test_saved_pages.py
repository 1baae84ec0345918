"""Answers are saved and shown as the page of `specdec report`."""

from __future__ import annotations

import copy
import html.parser
import json
import pathlib
import pickle
import re
import subprocess
import sys
from typing import Any

import pytest
import specdec
from specdec import Acceptance, Cost
from test_figures import ANSWERS
from test_questions import RECORDING, command_line



class Reader(html.parser.HTMLParser):
    """The content of a page: tags with their attributes, headings, rows of tables, and the text of all."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag in ("h1", "h2"):
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        elif "h1" in self.open or "h2" in self.open:
            self.headings[-1] += data


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1772000000")


def saved(answer: specdec.Answer, folder: pathlib.Path) -> str:
    answer.save(folder / "report.html")
    return (folder / "report.html").read_text()


def without_drawings(page: str) -> str:
    """matplotlib names the parts of a drawing anew each time."""
    return re.sub('base64,[^"]*', "", page)


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_answer_is_saved_as_a_page_that_asks_for_nothing_else(kind: str, tmp_path: pathlib.Path) -> None:
    answer = ANSWERS[kind]()
    page = saved(answer, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    read = Reader(page)
    assert read.headings[0].startswith("Speculative decoding: ")
    assert "Numbers" in read.headings and "What this rests on" in read.headings
    figures = [attributes["id"] for tag, attributes in read.tags if tag == "figure"]
    assert figures == [f"figure-{name}" for name in answer.figures]
    images = [attributes["src"] or "" for tag, attributes in read.tags if tag == "img"]
    assert len(images) == len(figures)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in images)
    assert not [tag for tag, _ in read.tags if tag in ("script", "iframe", "object")]
    for tag, attributes in read.tags:
        assert not (attributes.get("href") or "").startswith("//") and "onload" not in attributes, tag
    for other in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert without_drawings(saved(other, tmp_path)) == without_drawings(page)


def test_a_plans_page_says_what_the_programs_page_says(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "program.html"
    ran = command_line(["report", "--static", "--alpha", "0.7:0.8", "--c", "0.05", "--gamma", "8", "--output", str(file)])
    assert ran.returncode == 0, ran.stderr
    expected, found = Reader(file.read_text()), Reader(saved(ANSWERS["rates"](), tmp_path))
    assert found.headings == [heading for heading in expected.headings if heading != "How to make this page again"]
    of_the_call = {"format", "quiet", "static", "every", "scrape_remote"}

    def rows(read: Reader) -> list[list[str]]:
        return [row for row in read.rows if row[0] not in of_the_call]

    assert rows(found) == rows(expected)


def test_a_notebook_shows_the_page_in_a_frame_and_names_as_they_are() -> None:
    answer = specdec.plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05, draft_model="<b>", draft_kind="model"), emit="vllm")
    ((tag, attributes), *more) = Reader(answer._repr_html_()).tags
    assert tag == "iframe" and not more
    shown = Reader(attributes["srcdoc"] or "")
    assert "<b>" in shown.text
    assert "b" not in [tag for tag, _ in shown.tags]
    assert answer.summary.split()[0] in shown.text


def test_a_page_is_refused_another_name_and_leaves_what_was_there(tmp_path: pathlib.Path) -> None:
    answer = ANSWERS["one rate"]()
    with pytest.raises(specdec.QuestionError, match="path is .*report.pdf, but must end in .html"):
        answer.save(tmp_path / "report.pdf")
    with pytest.raises(OSError):
        answer.save(tmp_path / "nowhere" / "report.html")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_data_stand_open_in_the_place_of_figures(tmp_path: pathlib.Path) -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
import specdec
specdec.analyze(sys.argv[1]).save(sys.argv[2])
"""
    file = tmp_path / "page.html"
    subprocess.run([sys.executable, "-c", code, str(RECORDING), str(file)], check=True)
    read = Reader(file.read_text())
    assert "img" not in [tag for tag, _ in read.tags]
    assert any(tag == "details" and "open" in attributes for tag, attributes in read.tags)
    assert "figures_not_drawn" in read.text
    assert json.dumps(specdec.analyze(RECORDING).alpha.value)[:4] in read.text
