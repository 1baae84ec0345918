"""Recordings of what two models said of a text, and what they say of drafting."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

from specdec import _arrow, _core, _options
from specdec._answers import Analysis
from specdec._errors import QuestionError
from specdec._options import Options, Path, Paths, VerifyFactor, as_float, factors, given_only, listed, number, paths, plain
from specdec._options import require_type

if TYPE_CHECKING:
    from specdec._acceptance import Rule

#: What the numbers of rows are.
Kind = Literal["probs", "logprobs", "logits"]
Numbers = Literal["auto", "probabilities", "logprobs", "logits"]
#: A prompt by its number or name, or one for each position.
Prompt = Union[int, str, Sequence[int], Sequence[str]]


class Recording:
    """A recording of what two models said of a text: in files, or in arrays.

    Examples
    --------
    >>> import numpy as np
    >>> p, q = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.7, 0.3], [0.9, 0.1]])
    >>> recording = Recording.from_rows(p, q, tokens=[0, 0])
    >>> recording.positions, recording.sequences
    (2, 1)
    """

    #: The folder of columns of Arrow, which goes with the recording.
    _spilled: tempfile.TemporaryDirectory[str] | None = None

    def __init__(self, options: Options, pieces: Sequence[tuple[Any, ...]] = ()) -> None:
        self._options = options
        self._pieces: list[tuple[Any, ...]] = []
        if "metadata" in options:
            self._core = _core.recording_in_memory(options["metadata"])
            for piece in pieces:
                self._append(*piece)
        else:
            self._core = _core.recording_of_files(options)

    def __reduce__(self) -> tuple[Callable[..., Recording], tuple[Options, list[tuple[Any, ...]]]]:
        return Recording, (self._options, self._pieces)

    def __repr__(self) -> str:
        if self._spilled is not None:
            return f"<Recording: {self.positions} positions of columns>"
        if not self._in_memory:
            return f"<Recording: {', '.join(self._files)}>"
        return f"<Recording: {self.positions} positions in {self.sequences} sequences in memory>"

    @property
    def _in_memory(self) -> bool:
        return "metadata" in self._options

    @property
    def _files(self) -> list[str]:
        """As they are told."""
        if "columns" in self._options:
            return []
        pair = [self._options[name] for name in ("target", "draft") if name in self._options]
        found: list[str] = self._options.get("files", []) or pair
        return found

    @classmethod
    def from_files(
        cls,
        files: Paths = (),
        *,
        target: Path | None = None,
        draft: Path | None = None,
        numbers: Numbers = "auto",
        target_array: str | None = None,
        draft_array: str | None = None,
        salvage: bool = False,
    ) -> Recording:
        """A recording in any format of docs/reference/formats.md.

        Parameters
        ----------
        files : path or iterable of paths
            Files or a folder.
        target, draft : path, optional
            Instead: the two files of a pair that was recorded separately.
        numbers : {"auto", "probabilities", "logprobs", "logits"}
            What the numbers of NPY and NPZ files and token pairs are.
        target_array, draft_array : str, optional
            Names of arrays or columns.
        salvage : bool
            Leave out shards that cannot be read.

        Raises
        ------
        QuestionError, FileError
        """
        named = paths(files)
        if (target is None) != (draft is None):
            missing = "target" if target is None else "draft"
            raise QuestionError(f"{missing} is missing: a pair is two files", missing)
        if bool(named) == (target is not None):
            raise QuestionError("files is missing: a recording, or target and draft" if not named else
                                "files is given, but must not be beside target and draft", "files")
        options = given_only(
            {
                "files": named or None,
                "target": None if target is None else os.fspath(target),
                "draft": None if draft is None else os.fspath(draft),
                "numbers": numbers,
                "target_array": target_array,
                "draft_array": draft_array,
                "salvage": salvage,
            }
        )
        return cls(options)

    @classmethod
    def from_rows(
        cls,
        p: Any,
        q: Any,
        tokens: Any = None,
        sequences: Any = None,
        prompt: Prompt | None = None,
        *,
        kind: Kind = "probs",
        task: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> Recording:
        """A recording of arrays: NumPy's, or any that speak DLPack (torch, JAX), in the memory of the CPU.

        Rows of float32, float16 and bfloat16 are read where they lie, so that they must not change; float64 is read in
        float32, piece by piece.

        Parameters
        ----------
        p, q : array, shape (positions, vocabulary) or (positions)
            What the target and the draft give each next token; or what they give the token that was emitted.
            C-contiguous.
        tokens : sequence of int, shape (positions), optional
            The emitted tokens, -1 where unknown.
        sequences : sequence of int, shape (positions), optional
            The sequence of each position; those of one stand together. Without it all is one sequence.
        prompt : int, str, or sequence of them, shape (positions), optional
            What the sequences continue. Texts of one prompt are no independent observations.
        kind : {"probs", "logprobs", "logits"}
            What the numbers are.
        task : str
            A name for what the texts are; answers are told by it.
        metadata : mapping of str to str, optional
            What docs/reference/formats.md lists: {"temperature": "0.7", "acceptance": "rejection", "path": "target", ...}.

        Raises
        ------
        QuestionError
            Where shapes, labels or tokens do not go together. That a row is no distribution is found when it is read.
        TypeError
            Where something is no such array.
        """
        said = dict(metadata or {})
        for key, value in said.items():
            require_type(f"metadata[{key!r}]", value, str, "a text")
        recording = cls({"metadata": said})
        recording.append(p, q, tokens, sequences, prompt, kind=kind, task=task)
        return recording

    @classmethod
    def from_arrow(cls, columns: Any, *, metadata: Mapping[str, str] | None = None) -> Recording:
        """A recording in columns of Arrow: a pyarrow table, a ``RecordBatchReader``, a polars or pandas frame, or whatever
        else has ``__arrow_c_stream__``. A stream is read once, batch by batch, and kept in a folder for temporary files as
        long as the recording lives, so that it may be larger than memory. Needs pyarrow.

        Parameters
        ----------
        columns : object with ``__arrow_c_stream__``
            Columns have the names of docs/reference/formats.md: "p.token_logprob" and "q.token_logprob" at least, or lists of
            one length, "p.topk_ids" and "p.topk_logprobs", or whole rows. "task" and "prompt" may be texts. Without
            "seq" all is one sequence; without "token" no token is known.
        metadata : mapping of str to str, optional
            As for :meth:`from_rows`; it goes before what the schema's metadata says by the same keys.

        Raises
        ------
        QuestionError
            Where a column is none of the format, or not as it must be.
        ImportError
            Without pyarrow.
        """
        if not _arrow.is_stream(columns):
            raise TypeError(f"columns is {type(columns).__name__}, but must have __arrow_c_stream__: a table, a reader or a frame")
        folder = tempfile.TemporaryDirectory(prefix="specdec-")
        _arrow.write(columns, pathlib.Path(folder.name), metadata or {})
        recording = cls({"files": [folder.name], "numbers": "auto", "columns": True})
        recording._spilled = folder
        return recording

    def append(
        self,
        p: Any,
        q: Any,
        tokens: Any = None,
        sequences: Any = None,
        prompt: Prompt | None = None,
        *,
        kind: Kind = "probs",
        task: str = "",
    ) -> None:
        """More positions, with the parameters of :meth:`from_rows`. Without `sequences` they are a sequence of their own;
        with it the last sequence goes on where its number does. What is refused leaves the recording as it was."""
        if not self._in_memory:
            raise QuestionError("append is for recordings of arrays, but this one is of files")
        self._append(p, q, tokens, sequences, prompt, kind, task)

    def _append(self, p: Any, q: Any, tokens: Any, sequences: Any, prompt: Any, kind: str, task: str) -> None:
        prompts = _prompts(prompt, p)
        require_type("task", task, str, "a text")
        self._core.append(p, q, _integers("tokens", tokens), _integers("sequences", sequences), prompts, kind, task)
        self._pieces.append((p, q, tokens, sequences, prompt, kind, task))

    def save(self, path: Path) -> None:
        """Writes it as docs/reference/formats.md has it: one file if `path` ends in ".safetensors", else a folder.

        Raises
        ------
        FileError
            Where the place cannot be written; nothing half-written is left.
        QuestionError
            Where a row is no distribution.
        """
        self._core.save(os.fspath(path))

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata, by the keys of docs/reference/formats.md."""
        return self._core.metadata

    @property
    def positions(self) -> int | None:
        """The number of positions; None where only reading it to its end tells."""
        return self._core.positions

    @property
    def sequences(self) -> int | None:
        """The number of sequences of a recording of arrays; None of files."""
        return self._core.sequences if self._in_memory else None


def _integers(name: str, given: Any) -> Any:
    """As int64 that lie together."""
    if given is None:
        return None
    import numpy as np

    found = np.asarray(given)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise QuestionError(f"{name} is an array of {found.dtype} of shape {found.shape}, but must be integers, "
                            "one for each position", name)
    if found.dtype == np.uint64 and found.size and found.max() >= 2**63:
        raise QuestionError(f"{name} holds {found.max()}, but must be integers of 64 bits with a sign", name)
    return np.ascontiguousarray(found, dtype=np.int64)


def _prompts(prompt: Any, p: Any) -> Any:
    if prompt is None:
        return None
    import numpy as np

    def number_of(one: Any) -> int:
        if not hasattr(one, "__index__"):
            return _core.prompt_id(str(one))
        if not -(2**63) <= one < 2**63:
            raise QuestionError(f"prompt is {one}, but must be an integer of 64 bits or a name", "prompt")
        return int(one)

    if isinstance(prompt, str) or hasattr(prompt, "__index__"):
        return np.full(len(p), number_of(prompt), dtype=np.int64)
    return np.array([number_of(one) for one in prompt], dtype=np.int64)


#: {"temperature": 0.7, "top_p": 0.9} of both models, or of one with "model": "target" or "draft".
Sampling = Mapping[str, Any]


def _sampling_text(sampling: Sampling) -> str:
    of = sampling.get("model", "both")
    said = ",".join(
        f"{name}={number(value) if not isinstance(value, bool) else str(value).lower()}"
        for name, value in sampling.items()
        if name != "model"
    )
    return said if of == "both" else f"{of}:{said}"


class Executor(Protocol):
    """A runner of calls elsewhere: an executor of :mod:`concurrent.futures`, or anything with the same two methods,
    such as a client of Dask."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """A promise, whose method ``result`` waits for what the call returns, or raises what it raises."""


def _summary(recording: Recording, question: Options, index: int, of: int, kept: _Kept | None) -> bytes:
    """The summary of one of several equal shares of the sequences."""
    if kept is None:
        return _core.summary(recording._core, question, index, of)
    folder, origin = kept
    files = [_options.file_facts(file, i % of == index) for i, file in enumerate(recording._core.files)]
    return _core.kept_summary(recording._core, question, index, of, folder, json.dumps({**origin, "files": files}))


#: A folder for shares that are done, and the options that say of what they are.
_Kept = tuple[str, Options]
#: Options that decide nothing of an answer.
_NOT_DECIDING = ("threads", "target", "draft", "traces", "shard", "part")


def _kept_in(checkpoint: Path, recording: Recording, inputs: Options) -> _Kept:
    if recording._in_memory:
        raise QuestionError("checkpoint is given, but goes with recordings in files only", "checkpoint")
    for file in recording._core.files:
        if os.path.dirname(os.path.realpath(file)) == os.path.realpath(checkpoint):
            why = f"{file} lies there, and a recording's folder holds no other files"
            raise QuestionError(f"checkpoint is {os.fspath(checkpoint)}, but must be elsewhere: {why}", "checkpoint")
    os.makedirs(checkpoint, exist_ok=True)
    deciding = {name: value for name, value in inputs.items() if name not in (*_NOT_DECIDING, *_options.OUTPUT)}
    other = {name: inputs[name] for name in _NOT_DECIDING}
    return os.fspath(checkpoint), {"options": deciding, "other_options": other}


def _analyzed_by(
    executor: Executor, shards: int, recording: Recording, question: Options, kept: _Kept | None, progress: Any
) -> Any:
    """The answer from shares that the executor's workers do with one thread each."""
    question = {**question, "threads": 1}
    promises = [executor.submit(_summary, recording, question, index, shards, kept) for index in range(shards)]
    try:
        summaries = []
        for promise in promises:
            summaries.append(promise.result())
            if progress is not None:
                progress(len(summaries) / shards)
    except BaseException:
        for promise in promises:
            promise.cancel()
        raise
    return _core.merged(recording._core, summaries)


def as_recording(given: Any) -> Recording:
    """Files and columns as a recording."""
    if isinstance(given, Recording):
        return given
    return Recording.from_arrow(given) if _arrow.is_stream(given) else Recording.from_files(given)


def analyze(
    recording: Recording | Paths | Any,
    *,
    c: float | None = None,
    verify_factor: VerifyFactor = None,
    overhead: float | None = None,
    gamma: int | Sequence[int] | None = None,
    lenience: Sequence[float] | None = None,
    standardise: Sequence[Sampling] | None = None,
    rule: Rule | None = None,
    assume_processed: bool = False,
    force_replay: bool = False,
    row_tolerance: float | None = None,
    by: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
    executor: Executor | None = None,
    shards: int | None = None,
    checkpoint: Path | None = None,
) -> Analysis:
    """Analysis of a recording: acceptance, how sure it is, and the best gamma by exact replay. Options have the names
    of `specdec analyze`. Ctrl-C ends it with what was read until then, but for what an `executor` does.

    Parameters
    ----------
    recording : Recording, path or iterable of paths, or columns of Arrow
        A table, a reader or a frame is read as by :meth:`Recording.from_arrow`.
    c : float, optional
        Draft step time / target step time, >= 0; without it there are no speedups.
    verify_factor : float or mapping of int to float, optional
        Time of scoring n tokens / one token.
    overhead : float, optional
        Other time of a speculative step / target step time.
    gamma : int or sequence of int, optional
        Those that are shown, rising, in [1, 512]; 1 to 16 where it is not given.
    lenience : sequence of float, optional
        Each in (0, 1]; of whole rows. 0.9, 0.7, 0.5, 0.3 and 0.1 where it is not given.
    standardise : sequence of mappings, optional
        Other ways to sample whole rows: [{"temperature": 0.7, "top_p": 0.9}, {"model": "draft", "temperature": 0.5}]. A few
        temperatures of small recordings where it is not given.
    rule : {"rejection", "greedy-draft", "greedy"}, optional
        Where it is not to be the one recorded.
    assume_processed : bool
        Log-probabilities are those that were sampled from, whatever the recording says.
    force_replay : bool
        Replay a text that is not the target's own, too.
    row_tolerance : float, optional
        How far from 1 a row may sum, (0, 1]; by its type where it is not given.
    by : str, optional
        The groups: "task" where it is not given, or "context:N1,N2,..." for ranges of the place in a text.
    threads : int, optional
        Those of the machine where it is not given; results do not depend on them.
    progress : callable, optional
        Told now and then of the share that was read, where that is known.
    executor : concurrent.futures.Executor or the like, optional
        Does the work in `shards` equal shares of the sequences, each in one call, and the answer is the same to the bit:
        a ProcessPoolExecutor, a client of Dask, a :class:`RayExecutor`, or whatever has ``submit``. Workers open files by
        the same names; a recording in memory is sent to each.
    shards : int, optional
        As many as this machine has processors where it is not given; with `executor` alone.
    checkpoint : path, optional
        A folder that all workers see, where each share is left once it is done, as a part that `specdec merge` reads, too. A
        call with the same recording, options and `shards` takes from there what it finds; with `executor` alone.

    Returns
    -------
    Analysis
        ``partial`` is True where Ctrl-C ended it.

    Raises
    ------
    QuestionError
        A ValueError whose ``parameter`` names what is wrong, also where a row in memory is no distribution.
    FileError
        Where a file is not what its format promises.

    Examples
    --------
    >>> import numpy as np
    >>> p, q = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.7, 0.3], [0.8, 0.2]])
    >>> round(analyze(Recording.from_rows(p, q, tokens=[1, 0])).alpha.value, 3)
    0.85
    """
    recording = as_recording(recording)
    gammas = plain(gamma)
    if isinstance(gammas, int):
        gammas = [gammas]
    question = given_only(
        {
            "c": as_float(c),
            "verify_factor": verify_factor,
            "overhead": as_float(overhead),
            "gamma": gammas,
            "lenience": plain(lenience),
            "standardise": None if standardise is None else [dict(one) for one in standardise],
            "rule": rule,
            "assume_processed": assume_processed,
            "force_replay": force_replay,
            "row_tolerance": as_float(row_tolerance),
            "by": by,
            "threads": threads or min(max(len(os.sched_getaffinity(0)), 1), 64),
        }
    )
    inputs = {**question, "verify_factor": factors(verify_factor)}
    inputs["acceptance"] = inputs.pop("rule", "recorded")
    inputs = given_only(inputs)
    if gamma is not None:
        inputs["gamma"] = listed(inputs["gamma"])
    if lenience is not None:
        inputs["lenience"] = listed(inputs["lenience"]) or "none"
    if standardise is not None:
        inputs["standardise"] = ";".join(map(_sampling_text, standardise)) or "none"
    hidden = ("files", "metadata", "columns")
    told = {name: value for name, value in recording._options.items() if name not in hidden}
    of_columns = "columns" in recording._options
    inputs = {
        **_options.ANALYZE,
        **inputs,
        **told,
        "traces": [] if of_columns else recording._options.get("files", []),
    }
    if executor is None:
        for name, given in (("shards", shards), ("checkpoint", checkpoint)):
            if given is not None:
                raise QuestionError(f"{name} is given, but needs executor beside it", name)
        answer = _core.analyze(recording._core, question, progress)
    else:
        parts = len(os.sched_getaffinity(0)) if shards is None else shards
        if parts < 1:
            raise QuestionError(f"shards is {parts}, but must be an integer of at least 1", "shards")
        kept = None if checkpoint is None else _kept_in(checkpoint, recording, inputs)
        answer = _analyzed_by(executor, parts, recording, question, kept, progress)
    files = [] if of_columns else answer.files
    document = _options.document("analyze", _core.__version__, inputs, files, "", answer.json)
    return Analysis._shown(document, answer)
