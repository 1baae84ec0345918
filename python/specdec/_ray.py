"""Ray as an executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Promise:
    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray = ray
        self._reference = reference

    def result(self) -> Any:
        try:
            return self._ray.get(self._reference)
        except self._ray.exceptions.RayTaskError as error:
            # Ray wraps what the call raised.
            raise error.cause from None

    def cancel(self) -> None:
        self._ray.cancel(self._reference, force=True)


class RayExecutor:
    """Runs calls as tasks of Ray, for :func:`specdec.analyze`. Ray starts a task again whose worker died.

    Parameters
    ----------
    **options
        Those of a task: ``num_cpus``, ``max_retries``, ``resources``, ``runtime_env`` and so on.

    Raises
    ------
    ModuleNotFoundError
        Where `ray` is not installed.
    """

    def __init__(self, **options: Any) -> None:
        import ray  # type: ignore[import-not-found,unused-ignore]

        self._ray: Any = ray
        self._options = {"max_retries": 3, **options}

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> _Promise:
        """A promise, whose ``result`` waits for what the call returns, or raises what it raises."""
        task = self._ray.remote(**self._options)(fn)
        return _Promise(self._ray, task.remote(*args))
