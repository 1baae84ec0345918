"""The target writes, both servers score what it wrote, and each request becomes a line."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

from ._prompts import Prompt, RecordingError
from ._servers import Score, Server


class Sampling(NamedTuple):
    """The target's sampling. Temperature is 1 or 0, `concurrency` requests at a time."""

    temperature: float = 1.0
    max_tokens: int = 256
    seed: int = 1
    concurrency: int = 8


def _seed_of(seed: int, name: str) -> int:
    """The request's own seed: the same for the same prompt in whatever order the prompts are sent."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:4], "big") >> 1


def _require_one_vocabulary(name: str, tokens: list[int], by_target: list[Score], by_draft: list[Score]) -> None:
    for token, one, other in zip(tokens, by_target, by_draft):
        if one.text is not None and other.text is not None and one.text != other.text:
            raise RecordingError(f"prompt {name}: token {token} is {one.text!r} to the target and {other.text!r} to the "
                                 "draft, but both models must have one vocabulary")


def _line_of(prompt: Prompt, target: Server, draft: Server, how: Sampling) -> dict[str, Any] | None:
    """One line of the output, or None where the target wrote nothing."""
    written = target.generate(prompt.content, how.max_tokens, how.temperature, _seed_of(how.seed, prompt.name))
    if not written.output_ids:
        return None
    by_target = written.scores or target.score(written.prompt_ids, written.output_ids)
    by_draft = draft.score(written.prompt_ids, written.output_ids)
    _require_one_vocabulary(prompt.name, written.output_ids, by_target, by_draft)
    line: dict[str, Any] = {"id": prompt.name}
    if prompt.task is not None:
        line["task"] = prompt.task
    # The same for all texts of one prompt, whatever their ids.
    line["prompt"] = hashlib.sha256(json.dumps(written.prompt_ids).encode()).hexdigest()[:16]
    line["prompt_tokens"] = len(written.prompt_ids)
    line["token_ids"] = written.output_ids
    for key, scored in (("target", by_target), ("draft", by_draft)):
        line[key] = {"logprobs": [entry.logprob for entry in scored], "ranks": [entry.rank for entry in scored]}
    return line


def _metadata_of(target: Server, draft: Server, how: Sampling) -> dict[str, Any]:
    return {"format": "specdec-record", "version": 1, "target_model": target.model, "draft_model": draft.model,
            "engine": target.engine, "draft_engine": draft.engine, "temperature": how.temperature, "top_k": 0,
            "top_p": 1.0, "max_tokens": how.max_tokens, "seed": how.seed, "logprob_space": "raw", "path": "target"}


def _resume(path: str, metadata: dict[str, Any]) -> set[str] | None:
    """Ids that the file already holds, None where it holds nothing; a last line that was cut off is removed."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise RecordingError(f"{path} is no file, but must be one that can be gone on with")
    try:
        with open(path, "rb") as existing:
            content = existing.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error}") from None
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].splitlines()
    if not lines:
        return None
    try:
        found = json.loads(lines[0])
        done = {json.loads(line)["id"] for line in lines[1:]}
    except (ValueError, KeyError, TypeError):
        raise RecordingError(f"{path} exists, but is not a recording of this script") from None
    if found != metadata:
        other = [key for key in metadata if not isinstance(found, dict) or found.get(key) != metadata[key]]
        raise RecordingError(f"{path} was recorded with another {', '.join(other) or 'command'}; "
                             "--output must name a new file")
    if whole != len(content):
        os.truncate(path, whole)
    return done


def _append(output: IO[str], line: dict[str, Any]) -> None:
    try:
        output.write(json.dumps(line, separators=(",", ":")) + "\n")
        output.flush()
        os.fsync(output.fileno())
    except OSError as error:
        raise RecordingError(f"{output.name} cannot be written: {error}") from None


def _record_all(prompts: Sequence[Prompt], target: Server, draft: Server, how: Sampling,
                use: Callable[[dict[str, Any]], None]) -> None:
    """use(line) of every prompt to which the target writes anything, in the order in which they are finished."""
    with concurrent.futures.ThreadPoolExecutor(how.concurrency) as pool:
        requests = [pool.submit(_line_of, prompt, target, draft, how) for prompt in prompts]
        try:
            for request in concurrent.futures.as_completed(requests):
                line = request.result()
                if line is not None:
                    use(line)
        except (RecordingError, KeyboardInterrupt):
            for request in requests:
                request.cancel()
            raise


def record(prompts: Sequence[Prompt], target: Server, draft: Server, path: str, how: Sampling,
           progress: Callable[[int, int], object] | None = None) -> int:
    """Writes JSON Lines, one request a line after a line of metadata, or goes on with them. One that records nothing leaves
    no file.

    Parameters
    ----------
    progress : callable, optional
        Told how many requests of how many are written.

    Returns
    -------
    int
        Requests that the file holds.

    Raises
    ------
    RecordingError
    """
    metadata = _metadata_of(target, draft, how)
    done = _resume(path, metadata)
    missing = [prompt for prompt in prompts if prompt.name not in (done or ())]
    written = len(prompts) - len(missing)
    try:
        output = open(path, "a" if done is not None else "w", encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from None

    def use(line: dict[str, Any]) -> None:
        nonlocal written
        if done is None and written == 0:
            _append(output, metadata)
        _append(output, line)
        written += 1
        if progress is not None:
            progress(written, len(prompts))

    try:
        _record_all(missing, target, draft, how, use)
        if written == 0:
            raise RecordingError(f"{target.url} wrote nothing to any of {len(prompts)} prompts")
    except RecordingError as error:
        raise RecordingError(f"{error}; {path} holds {written} of {len(prompts)} requests: run the same command again to "
                             "go on") if written else error
    finally:
        output.close()
        if done is None and written == 0:
            os.remove(path)
    return written
