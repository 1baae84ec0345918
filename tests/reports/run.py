#!/usr/bin/env python3
"""Runs the command of every row of README.md beside its inputs, and requires that it says what the row says.

A row's command stands in `backticks` behind the truth, and what it must say in `backticks` in the next column: pieces of
its output, in which blanks and line ends do not matter. An exit code other than 0 stands before them, `exit 1`.
"""

import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
COMMAND, SAYS = 4, 5


def rows():
    for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) > SAYS and cells[COMMAND].startswith("`specdec "):
            yield cells


def fault_of(program, cells):
    command = shlex.split(cells[COMMAND].strip("`"))
    run = subprocess.run([program] + command[1:], cwd=FOLDER / "inputs", capture_output=True, text=True, timeout=60)
    output = " ".join((run.stdout + run.stderr).split())
    wanted = re.findall(r"`([^`]+)`", cells[SAYS])
    exits = [int(piece.split()[1]) for piece in wanted if re.fullmatch(r"exit \d+", piece)] or [0]
    missing = [piece for piece in wanted if not re.fullmatch(r"exit \d+", piece) and " ".join(piece.split()) not in output]
    if run.returncode == exits[0] and not missing:
        return None
    return f"row {cells[0]}: {cells[COMMAND]}\n  exit {run.returncode}, missing: {missing}\n  said: {output[:600]}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = list(pool.map(lambda cells: fault_of(program, cells), rows()))
    if len(faults) < 20:
        sys.exit(f"README.md has {len(faults)} rows with a command, but must have 20 at least")
    for fault in filter(None, faults):
        print(fault)
    sys.exit(any(faults))


if __name__ == "__main__":
    main()
