"""Many questions at once, and one table of their answers."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any, Literal

from specdec._answers import Sweep
from specdec._errors import QuestionError
from specdec._options import Path


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, (int, float)):
        return repr(value)
    text: str = os.fspath(value)
    if any(ord(character) < 32 for character in text):
        raise QuestionError(f"a value is {text!r}, but must be of one line")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _axis(name: str, value: Any) -> str:
    # A list stands for each of its values, a tuple is the one value of an option that takes several.
    return f"{name.replace('_', '-')} = {_value([value] if isinstance(value, tuple) else value)}\n"


def _answered(words: list[str]) -> str:
    program = pathlib.Path(__file__).parent / "bin" / "specdec"
    done = subprocess.run([os.fspath(program), "sweep", *words], capture_output=True, encoding="utf-8")
    # 1 says that no point could be priced, which the table says row by row.
    if done.returncode not in (0, 1):
        raise QuestionError(done.stderr.strip().removeprefix("specdec: error: "))
    return done.stdout


def sweep(
    command: Literal["plan", "capacity"],
    *sections: Mapping[str, Any],
    cache: Path | None = None,
    threads: int | None = None,
    **options: Any,
) -> Sweep:
    """Many plans or capacities at once: `specdec sweep`, which runs in a process of its own.

    Options have the names and the values of `specdec plan` or `specdec capacity`. A list stands for each of its values, and
    every combination is a point; a tuple is the one value of an option that takes several, for instance files.

    Parameters
    ----------
    command : {"plan", "capacity"}
    *sections : mapping of str to value, optional
        Options of some of the points: the sweep is that of all sections, one after the other.
    cache : path, optional
        Folder in which each answer is kept, and from which those that are there are taken.
    threads : int, optional
        Points that are answered at a time; the processors where it is not given.
    **options
        Of the points of all sections.

    Returns
    -------
    Sweep

    Raises
    ------
    QuestionError
        For a name that is no option, and for a value that is illegal whatever else is said. What cannot be priced is a row
        that says why.

    Examples
    --------
    >>> table = sweep("plan", alpha=[0.6, 0.8], c=0.05)
    >>> [(row["alpha"], row["recommended_gamma"]) for row in table.rows()]
    [('0.6', 4), ('0.8', 8)]
    """
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "sweep.toml"
        text = ""
        for section in sections or ({},):
            axes = {**options, **section}
            text += f"[[{command}]]\n" + "".join(_axis(name, value) for name, value in axes.items() if value is not None)
        file.write_text(text, encoding="utf-8")
        kept = os.fspath(cache) if cache is not None else os.fspath(pathlib.Path(scratch) / "cache")
        words = [os.fspath(file), "--cache", kept, "--quiet"]
        if threads is not None:
            words += ["--threads", str(threads)]
        document = json.loads(_answered([*words, "--format", "json"]))
        return Sweep(document, _answered(words))
