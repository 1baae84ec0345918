"""Recordings from two servers of SGLang."""

from __future__ import annotations

from ._engine import Engine

record = Engine("sglang").record
