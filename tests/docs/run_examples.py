#!/usr/bin/env python3
"""Runs the examples of the documentation and compares what they print with what the pages show.

usage: run_examples.py [--write] SPECDEC EXAMPLES

--write puts what is printed now into the pages, for examples that print something else than they show: all lines where
an example shows all, and where lines `...` leave some out, those that still stand beside them. An error in the place of
an answer is not written.

Pages are README.md, those below docs and sim/models/README.md; EXAMPLES is the folder of the built programs that the pages call
build/release/examples. A fenced block of kind `console` holds commands (`$ specdec ...`, a line that ends in a backslash
goes on in the next) and their output. A line `...` stands for any lines. In a block of kind `console figures` numbers may
differ (timings do): each number and the spaces beside it are folded before the comparison. A block whose kind goes on
with `not run: REASON` is not run; every other block that holds a command of specdec is an error, so that none is left
out unseen. Commands run in a folder of their own that shows what the repository's root holds, so that what they write is
theirs alone; of a console block only those of specdec and its examples run.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

COMMAND = re.compile(r"(specdec|build/release/examples/\S+) ")
NOT_RUN = re.compile(r" ?not run: \S")
NUMBER = re.compile(r"[-+~]?\d[\d.,]*(e[-+]?\d+)?%?")

# A page's files for the first, which others may use at the same time, go to the second; as long, so that tables
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
    #: Numbers of the lines of `expected`, without those that are blank at its end.
    lines: list[int] = field(default_factory=list)
    #: What it prints, where that is something else.
    printed: list[str] = field(default_factory=list)


def logical_lines(page: pathlib.Path) -> list[tuple[int, str]]:
    """The lines of a page with their numbers; a command that ends in a backslash is joined with what follows."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if lines and lines[-1][1].startswith("$ ") and lines[-1][1].endswith("\\"):
            lines[-1] = (lines[-1][0], lines[-1][1][:-1].rstrip() + " " + line.strip())
        else:
            lines.append((number, line))
    return lines


def examples_of(page: pathlib.Path) -> tuple[list[Example], list[str]]:
    """The examples of a page that run, and complaints about those that neither run nor say why."""
    found: list[Example] = []
    complaints: list[str] = []
    kind: str | None = None
    for number, line in logical_lines(page):
        if line.startswith("```"):
            kind = line[3:].strip() if kind is None else None
        elif kind in ("console", "console figures"):
            if line.startswith("$ "):
                found.append(Example(page, number, line[2:], kind == "console figures"))
            elif found and found[-1].page == page:
                found[-1].expected.append(line)
                found[-1].lines.append(number)
        elif kind is not None and COMMAND.match(line.removeprefix("$ ")) and not NOT_RUN.search(kind):
            complaints.append(f"{page.name}:{number}: a command in a block of kind '{kind}': make it console, or say "
                              "'not run: REASON' behind the kind")
    return [example for example in found if COMMAND.match(example.command)], complaints


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


def run(example: Example, folder: pathlib.Path) -> str | None:
    """Runs one example in the folder, where specdec is on the path; returns what is wrong with it, or None."""
    command = f"PATH={shlex.quote(str(folder / OWN))}:$PATH; {example.command.replace(SHARED, OWN)}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    printed = example.printed = (done.stdout + done.stderr).replace(OWN, SHARED).splitlines()
    while example.expected and not example.expected[-1].strip():
        example.expected.pop()
        example.lines.pop()
    fold = [[folded(line, example.figures_vary) for line in lines] for lines in (example.expected, printed)]
    if matches(*fold):
        return None
    shown = "\n".join(printed)
    return f"{example.page.name}:{example.line}: $ {example.command}\nprinted (exit {done.returncode}):\n{shown}\n"


def runs_of(lines: list[str]) -> Iterator[list[str] | None]:
    """The stretches of lines between lines `...`, for each of which None stands."""
    run: list[str] = []
    for line in lines:
        if line == "...":
            yield run
            yield None
            run = []
        else:
            run.append(line)
    yield run


def cut_as(expected: list[str], printed: list[str]) -> list[str]:
    """What is printed, with lines left out as in what was expected: as many lines as stood before the first `...` and
    behind the last, and of those between two the lines behind the one that begins with the same word."""
    if "..." not in expected:
        return printed
    runs = list(runs_of(expected))
    head, tail = runs[0] or [], runs[-1] or []
    shown = printed[: len(head)]
    at = len(shown)
    for run in runs[1:-1]:
        if not run:
            shown += ["..."] if run is None else []
            continue
        first = next((i for i in range(at, len(printed)) if printed[i].split()[:1] == run[0].split()[:1]), None)
        if first is not None:
            at = min(first + len(run), len(printed))
            shown += printed[first:at]
    end = printed[max(at, len(printed) - len(tail)) :] if tail else []
    return shown + end


def is_error(lines: list[str]) -> bool:
    return any(line.startswith("specdec: error") for line in lines)


def write(examples: list[Example]) -> None:
    """Puts what the examples print into their pages."""
    for page in {example.page for example in examples}:
        lines = page.read_text(encoding="utf-8").splitlines()
        # From the last to the first, so that numbers of lines stay.
        for example in sorted((one for one in examples if one.page == page), key=lambda one: -one.line):
            behind = example.line
            while lines[behind - 1].endswith("\\"):
                behind += 1
            lines[behind : behind + len(example.lines)] = cut_as(example.expected, example.printed)
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("specdec", type=pathlib.Path)
    parser.add_argument("programs", type=pathlib.Path)
    options = parser.parse_args()
    specdec, programs = options.specdec.resolve(), options.programs.resolve()
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md")), root / "sim" / "models" / "README.md"]
    examples: list[Example] = []
    wrong: list[str] = []
    for page in pages:
        of_page, complaints = examples_of(page)
        examples += of_page
        wrong += complaints
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for entry in root.iterdir():
            if entry.name != "build":
                (folder / entry.name).symlink_to(entry)
        (folder / OWN).mkdir()
        (folder / OWN / "specdec").symlink_to(specdec)
        (folder / "build" / "release").mkdir(parents=True)
        (folder / "build" / "release" / "examples").symlink_to(programs)
        written = []
        for example in examples:
            problem = run(example, folder)
            if problem and options.write and not (is_error(example.printed) and not is_error(example.expected)):
                written.append(example)
            elif problem:
                wrong.append(problem)
    write(written)
    for problem in wrong:
        print(problem)
    print(f"{len(examples)} examples, {len(wrong)} problems, {len(written)} written")
    return 1 if wrong or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
