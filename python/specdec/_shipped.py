"""The models that come with the package."""

from __future__ import annotations

import pathlib


def shipped_models() -> pathlib.Path:
    """The folder of the shipped pair: ``target`` and ``draft`` as transformers and the program read them, and held-out
    ``prompts.jsonl``.

    Examples
    --------
    >>> sorted(path.name for path in shipped_models().iterdir() if path.is_dir())
    ['draft', 'target']
    """
    return pathlib.Path(__file__).parent / "share" / "specdec" / "models"
