"""Recordings from two servers of vLLM."""

from __future__ import annotations

from ._engine import Engine

record = Engine("vllm").record
