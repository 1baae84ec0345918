#!/usr/bin/env python3
"""Runs the examples of the documentation and compares what they print with what the page shows.

usage: run_examples.py SPECDEC FILE.md...

A fenced block of kind `console` holds commands (`$ specdec ...`) and their output. A line `...` stands for any
lines. In a block of kind `console figures` numbers may differ (timings do): each number and the spaces beside it
are folded before the comparison. Commands run in a folder of their own that shows what the repository's root holds, so
that what they write is theirs alone; only those that begin with `specdec` run.
"""

from __future__ import annotations

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

NUMBER = re.compile(r"[-+~]?\d[\d.,]*(e[-+]?\d+)?%?")

# What a page writes to the first, which others may use at the same time, goes to the second; as long, so that tables
# keep their widths.
SHARED, OWN = "/tmp/", ".tmp/"


@dataclass
class Example:
    """One command of a page, with the lines that the page says it prints."""

    page: pathlib.Path
    line: int
    command: str
    figures_vary: bool
    expected: list[str] = field(default_factory=list)


def examples_of(page: pathlib.Path) -> list[Example]:
    found: list[Example] = []
    kind: str | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            kind = line[3:].strip() if kind is None else None
        elif kind in ("console", "console figures"):
            if line.startswith("$ "):
                found.append(Example(page, number, line[2:], kind == "console figures"))
            elif found and found[-1].page == page:
                found[-1].expected.append(line)
    return [example for example in found if example.command.startswith("specdec")]


def folded(line: str, figures_vary: bool) -> str:
    if figures_vary:
        line = re.sub(r"\s+", " ", NUMBER.sub("#", line))
    return line.rstrip()


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether printed lines follow the expected ones, `...` standing for any number of lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(matches(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and expected[0] == printed[0] and matches(expected[1:], printed[1:])


def run(example: Example, specdec: str, folder: pathlib.Path) -> str | None:
    """Runs one example in the folder; returns what is wrong with it, or None."""
    command = shlex.quote(specdec) + example.command[len("specdec"):].replace(SHARED, OWN)
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    printed = (done.stdout + done.stderr).replace(OWN, SHARED).splitlines()
    while example.expected and not example.expected[-1].strip():
        example.expected.pop()
    fold = [[folded(line, example.figures_vary) for line in lines] for lines in (example.expected, printed)]
    if matches(*fold):
        return None
    shown = "\n".join(printed)
    return f"{example.page.name}:{example.line}: $ {example.command}\nprinted (exit {done.returncode}):\n{shown}\n"


def main() -> int:
    specdec = str(pathlib.Path(sys.argv[1]).resolve())
    root = pathlib.Path(__file__).resolve().parents[2]
    examples = [example for page in sys.argv[2:] for example in examples_of(root / page)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for entry in root.iterdir():
            (folder / entry.name).symlink_to(entry)
        (folder / OWN).mkdir()
        wrong = [problem for problem in (run(example, specdec, folder) for example in examples) if problem]
    for problem in wrong:
        print(problem)
    print(f"{len(examples) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
