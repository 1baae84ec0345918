"""The prompts that a recording continues."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, SupportsIndex, Union, cast

#: A text, its token ids, or an object with "text" (or "prompt") or "tokens", and perhaps "id" and "task".
GivenPrompt = Union[str, Sequence[int], Mapping[str, object]]


class RecordingError(ValueError):
    """One line: what, where, found, expected."""


class Prompt(NamedTuple):
    """`content` is a text or token ids."""

    name: str
    task: str | None
    content: str | list[int]


def _refused(name: str, found: object, expected: str) -> RecordingError:
    return RecordingError(f"{name} is {str(found)[:40]!r}, but must be {expected}")


def _token(given: object) -> int:
    number = -1 if isinstance(given, bool) else operator.index(cast(SupportsIndex, given))
    if number < 0:
        raise ValueError
    return number


def _content(name: str, given: object) -> str | list[int]:
    if isinstance(given, str) and given:
        return given
    if isinstance(given, Collection) and not isinstance(given, (str, bytes, Mapping)) and len(given) > 0:
        try:
            return [_token(token) for token in given]
        except (ValueError, TypeError):
            pass
    raise _refused(name, given, "a text or token ids that are not empty")


def _prompt(place: int, given: Mapping[str, object]) -> Prompt:
    keys = [key for key in ("text", "prompt", "tokens") if given.get(key) is not None]
    if not keys:
        raise RecordingError('prompt is missing, but must be "text" or "tokens"')
    key = next((key for key in keys if given[key]), keys[0])
    task = given.get("task")
    return Prompt(str(given.get("id", place)), None if task is None else str(task), _content(key, given[key]))


def _text(place: int, given: object, name: str) -> Prompt:
    return Prompt(str(place), None, _content(name, given))


def _from_line(number: int, line: str) -> Prompt:
    try:
        given = json.loads(line)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise _refused("line", line.strip(), "a JSON object")
    return _prompt(number, given)


def _from_file(path: str) -> list[Prompt]:
    """JSON Lines, or one text a line in a .txt file."""
    found = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    is_text = path.endswith(".txt")
                    found.append(_text(number, line.rstrip("\n"), "line") if is_text else _from_line(number, line))
                except RecordingError as error:
                    raise RecordingError(f"{path}:{number}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from None
    return found


def _from_memory(given: Iterable[GivenPrompt]) -> list[Prompt]:
    found = []
    for number, one in enumerate(given, 1):
        name = f"prompts: number {number}"
        if not isinstance(one, Mapping):
            found.append(_text(number, one, name))
            continue
        try:
            found.append(_prompt(number, one))
        except RecordingError as error:
            raise RecordingError(f"{name}: {error}") from None
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
