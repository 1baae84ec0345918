"""The examples of the pages for Python print what these show."""

from __future__ import annotations

import contextlib
import doctest
import io
import pathlib
import re

import pytest
import specdec
import specdec._acceptance
import specdec._answers
import specdec._cost
import specdec._methods
import specdec._questions
import specdec._recording
import specdec._shipped

TOP = pathlib.Path(__file__).resolve().parents[2]


def blocks(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/guide/build_on_it.md", "docs/guide/paper.md"])
def test_the_examples_of_a_page_print_what_it_shows(page: str) -> None:
    found = blocks(TOP / page)
    assert found
    for block in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), {})
        shown = [line.split("  # ")[1] for line in block.splitlines() if line.startswith("print(")]
        assert printed.getvalue().splitlines() == shown


@pytest.mark.parametrize(
    "module", [
        *(specdec, specdec._acceptance, specdec._answers, specdec._cost, specdec._methods, specdec._questions),
        *(specdec._recording, specdec._shipped),
    ],
    ids=lambda m: m.__name__,
)
def test_the_examples_of_docstrings_print_what_they_show(module: object) -> None:
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)  # type: ignore[arg-type]
    assert tried > 0
    assert failed == 0
