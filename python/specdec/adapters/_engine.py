"""The recorder of one engine, for its module."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ._prompts import GivenPrompt, RecordingError, read_prompts
from ._recording import Sampling, record
from ._servers import connect

if TYPE_CHECKING:
    from specdec import Recording


class Engine:
    """An engine by its name in the command `python -m specdec.adapters`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def record(
        self,
        target: str,
        draft: str,
        prompts: str | os.PathLike[str] | Iterable[GivenPrompt],
        *,
        output: str | os.PathLike[str],
        temperature: float = 1.0,
        max_tokens: int = 256,
        seed: int = 1,
        concurrency: int = 8,
        timeout: float = 600.0,
        target_model: str = "",
        draft_model: str = "",
        api_key: str = "",
        progress: Callable[[int, int], object] | None = None,
    ) -> Recording:
        """Lets a server's model write, asks it and a second server how probable they find what was written, and records
        that. The same call again goes on where one was stopped.

        Parameters
        ----------
        target, draft : str
            URLs: ``"http://localhost:8000"``. Both models have one vocabulary.
        prompts : path, or iterable of str, token ids or mappings
            A file as `specdec record --prompts` reads it, or texts, token ids, or objects with "text" or "tokens" and
            perhaps "id" and "task".
        output : path
            JSON Lines, one request a line.
        temperature : float
            1 or 0: what servers return are the model's own log-probabilities. At 0 their ranks count.
        max_tokens : int
            Longest output, >= 1.
        seed : int
            Of the target's sampler; with the prompt's id it gives the request's own.
        concurrency : int
            Requests at a time, >= 1.
        timeout : float
            Longest wait for an answer, seconds.
        target_model, draft_model : str
            Where a server has several; by default the first that it lists.
        api_key : str
        progress : callable, optional
            Told how many requests of how many are written.

        Returns
        -------
        Recording

        Raises
        ------
        RecordingError
            A ValueError of one line: a server that cannot be reached or answers otherwise, two vocabularies, a file of
            something else, a value outside its range.
        """
        how = _sampling(temperature, max_tokens, seed, concurrency)
        found = read_prompts(prompts)
        one, other = (
            connect(url, model=model, engine=self._name, timeout=timeout, api_key=api_key)
            for url, model in ((target, target_model), (draft, draft_model))
        )
        try:
            record(found, one, other, os.fspath(output), how, progress)
        except RecordingError as error:
            raise RecordingError(str(error).replace("--output", "output")) from None
        from specdec import Recording

        return Recording.from_files(output)


def _sampling(temperature: float, max_tokens: int, seed: int, concurrency: int) -> Sampling:
    if temperature not in (0, 1):
        raise RecordingError(f"temperature is {temperature}, but must be 1 or 0: servers return log-probabilities of the "
                             "model itself")
    for name, value in (("max_tokens", max_tokens), ("concurrency", concurrency)):
        if value < 1:
            raise RecordingError(f"{name} is {value}, but must be an integer from 1 on")
    return Sampling(float(temperature), max_tokens, seed, concurrency)
