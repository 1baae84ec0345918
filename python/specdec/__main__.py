"""The program `specdec`, as the console command and as `python -m specdec`. Its `tune` is Python."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    if sys.argv[1:2] == ["tune"]:
        from specdec._tune_command import main as tune

        sys.exit(tune(sys.argv[2:]))
    program = pathlib.Path(__file__).parent / "bin" / "specdec"
    os.execv(program, ["specdec", *sys.argv[1:]])


if __name__ == "__main__":
    main()
