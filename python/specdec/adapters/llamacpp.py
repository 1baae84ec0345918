"""Recordings from two servers of llama.cpp's `llama-server`."""

from __future__ import annotations

from ._engine import Engine

record = Engine("llamacpp").record
