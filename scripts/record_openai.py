#!/usr/bin/env python3
"""`python -m specdec.adapters` without the package: see python/specdec/adapters/_command.py."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python" / "specdec"))

from adapters._command import main  # noqa: E402: the package's folder comes first

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "record_openai"))
