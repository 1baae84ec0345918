"""What a recording continues."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Union

#: A text, its token ids, or an object with "text" (or "prompt") or "tokens", and perhaps "id" and "task".
GivenPrompt = Union[str, Sequence[int], Mapping[str, object]]


class RecordingError(ValueError):
    """One line: what, where, found, expected."""


class Prompt(NamedTuple):
    """`content` is a text or token ids."""

    name: str
    task: str | None
    content: str | list[int]


def _content(given: object) -> str | list[int]:
    """Raises ValueError or TypeError where it is none."""
    if isinstance(given, str) and given:
        return given
    if isinstance(given, Collection) and not isinstance(given, (str, bytes, Mapping)) and len(given) > 0:
        return [operator.index(token) for token in given]
    raise ValueError


def _prompt(place: int, given: object) -> Prompt:
    if not isinstance(given, Mapping):
        return Prompt(str(place), None, _content(given))
    content = given.get("text") or given.get("prompt") or given.get("tokens")
    task = given.get("task")
    return Prompt(str(given.get("id", place)), None if task is None else str(task), _content(content))


def _from_file(path: str) -> list[Prompt]:
    """JSON Lines, or one text a line in a .txt file."""
    found = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    found.append(_prompt(number, line.rstrip("\n") if path.endswith(".txt") else dict(json.loads(line))))
                except (ValueError, TypeError):
                    raise RecordingError(f'{path}:{number}: prompt is missing, but must be "text" or "tokens"') from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from None
    return found


def _from_memory(given: Iterable[GivenPrompt]) -> list[Prompt]:
    found = []
    for number, one in enumerate(given, 1):
        try:
            found.append(_prompt(number, one))
        except (ValueError, TypeError):
            raise RecordingError(f"prompts: number {number} is {str(one)[:40]!r}, but must be a text or token ids that are "
                                 'not empty, or "text" or "tokens" of an object') from None
    return found


def read_prompts(given: str | os.PathLike[str] | Iterable[GivenPrompt]) -> list[Prompt]:
    """A file's prompts, or those of a list.

    Raises
    ------
    RecordingError
    """
    is_file = isinstance(given, (str, os.PathLike))
    prompts = _from_file(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else _from_memory(given)
    said = os.fspath(given) if isinstance(given, (str, os.PathLike)) else "prompts"
    if not prompts:
        raise RecordingError(f"{said} holds no prompt" if is_file else "prompts is empty, but must hold one at least")
    if len({prompt.name for prompt in prompts}) != len(prompts):
        raise RecordingError(f"{said}: id is given twice, but must be a prompt's own")
    return prompts
