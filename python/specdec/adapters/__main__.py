"""``python -m specdec.adapters``: records from two running servers."""

from __future__ import annotations

import sys

from ._command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "specdec.adapters"))
