"""The types that a user's editor and type checker see."""

from __future__ import annotations

import pathlib
import runpy
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "user_program.py"


def check(*arguments: str) -> None:
    api = pytest.importorskip("mypy.api")
    out, error, status = api.run(["--strict", "--python-executable", sys.executable, "--cache-dir=/dev/null", *arguments])
    assert status == 0, out + error


def test_the_package_and_a_users_program_pass_a_strict_type_checker() -> None:
    check("-p", "specdec")
    check(str(PROGRAM))


def test_that_program_runs() -> None:
    runpy.run_path(str(PROGRAM))
