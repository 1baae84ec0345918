"""The program `specdec`, as the console command and as `python -m specdec`."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = pathlib.Path(__file__).parent / "bin" / "specdec"
    os.execv(program, ["specdec", *sys.argv[1:]])


if __name__ == "__main__":
    main()
