#!/usr/bin/env python3
"""Checks every link between pages, and every page and heading that code names.

usage: check_links.py
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/])docs/[\w/]+\.md(?:#[\w-]+)?")
CODE = (".hpp", ".cpp", ".py", ".cmake", ".txt", ".toml", ".ipynb", ".sh", ".js")


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and Sphinx make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return frozenset(re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in plain)


def is_there(target: Path, anchor: str) -> bool:
    return target.exists() and (not anchor or target.suffix != ".md" or anchor in anchors(target))


def main() -> int:
    listing = ["git", "ls-files", "-co", "--exclude-standard"]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    wrong, checked = [], 0
    for name in files.stdout.splitlines():
        file = ROOT / name
        if name == "CHANGELOG.md" or not file.is_file() or file.suffix not in (".md", *CODE):
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        targets = [(ROOT, found) for found in NAMED.findall(text)] if file.suffix != ".md" else []
        if file.suffix == ".md" and name != "docs/site/index.md":
            targets = [(file.parent, found) for found in LINK.findall(text) if "://" not in found]
        for folder, found in targets:
            path, _, anchor = found.partition("#")
            checked += 1
            if not is_there((folder / path).resolve() if path else file, anchor):
                wrong.append(f"{name}: {found}")
    print("\n".join(wrong) or f"{checked} links lead somewhere")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
