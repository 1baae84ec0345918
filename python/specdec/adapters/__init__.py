"""Recordings from running servers: :mod:`specdec.adapters.vllm`, :mod:`specdec.adapters.sglang` and
:mod:`specdec.adapters.llamacpp`, and the command `python -m specdec.adapters`. Needs nothing beside Python.
"""

from __future__ import annotations

from . import llamacpp, sglang, vllm
from ._prompts import RecordingError

__all__ = ["RecordingError", "llamacpp", "sglang", "vllm"]
