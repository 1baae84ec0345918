"""Recordings in columns of Arrow: tables and streams of whatever speaks its C interface (pyarrow, polars, pandas, DuckDB)."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from specdec import _core
from specdec._errors import QuestionError

#: Rows and numbers of a shard, so that one is converted at a time, whatever the batches of the stream.
_MOST_ROWS = 65_536
_MOST_NUMBERS = 8_388_608

#: Columns of one number a position, by their type in the trace format.
_SCALARS = {
    "seq": "int64",
    "pos": "int64",
    "token": "int32",
    "overlap": "float32",
    **{f"{model}.{name}": kind for model in "pq" for name, kind in (
        ("token_logprob", "float32"), ("token_rank", "int32"), ("tail_logprob", "float32"))},
}
#: Columns of a list a position.
_LISTS = {
    "p.at_q_topk": "float32",
    "q.at_p_topk": "float32",
    **{f"{model}.{name}": kind for model in "pq" for name, kind in (
        ("topk_ids", "int32"), ("topk_logprobs", "float32"),
        ("logits", "float32"), ("logprobs", "float32"), ("probs", "float32"))},
}
#: What the schema's metadata may say, as docs/reference/formats.md has it.
_METADATA = ("vocab_size", "temperature", "top_k", "top_p", "min_p", "temperature_last", "p.model", "q.model", "engine",
             "draft_kind", "acceptance", "logprob_space", "path", "p.sum_tolerance", "q.sum_tolerance")


def is_stream(given: Any) -> bool:
    """Whether it hands over batches of columns by Arrow's C interface."""
    return hasattr(given, "__arrow_c_stream__")


def write(stream: Any, folder: pathlib.Path, metadata: Mapping[str, str]) -> None:
    """Writes the stream as a trace of shards into an empty folder; no more than one of its batches is held.

    Raises
    ------
    QuestionError
        Where columns are not those of docs/reference/formats.md, or there is no row.
    ImportError
        Without pyarrow.
    """
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError("columns of Arrow are read by pyarrow, which is not there: pip install pyarrow") from error
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    said = {key.decode(): value.decode() for key, value in (reader.schema.metadata or {}).items() if key.decode() in _METADATA}
    writer = _Writer(folder, {**said, **metadata}, reader.schema.names)
    for batch in reader:
        writer.add(batch)
    if writer.shards == 0:
        raise QuestionError("recording is a stream without rows, but must have one at least", "recording")


class _Writer:
    def __init__(self, folder: pathlib.Path, metadata: Mapping[str, str], names: list[str]) -> None:
        known = [*_SCALARS, *_LISTS, "task", "prompt"]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise QuestionError(f"recording has the column {unknown[0]}, but must have those of docs/reference/formats.md alone: "
                                f"{', '.join(known)}", "recording")
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise QuestionError(f"recording has the column {repeated[0]} twice, but must have it once", "recording")
        self._folder, self._metadata, self._names = folder, dict(metadata), names
        self._tasks: dict[str, int] = {}
        self._rows = 0
        # The last sequence and its length, which the next batch may go on with.
        self._sequence, self._length = 0, 0
        self.shards = 0

    def add(self, batch: Any) -> None:
        numbers = max(1, sum(_width(batch.column(name)) for name in self._names if name in _LISTS))
        rows = max(1, min(_MOST_ROWS, _MOST_NUMBERS // numbers))
        for first in range(0, batch.num_rows, rows):
            self._write(batch.slice(first, rows))

    def _write(self, batch: Any) -> None:
        columns = {name: self._column(name, batch.column(name)) for name in self._names}
        self._add_places(columns, batch.num_rows)
        metadata = dict(self._metadata)
        if self._tasks:
            metadata["tasks"] = json.dumps(list(self._tasks))
        _core.write_trace(os.fspath(self._folder / f"shard-{self.shards:06}.safetensors"), metadata, columns)
        self.shards += 1
        self._rows += batch.num_rows

    def _column(self, name: str, column: Any) -> Any:
        """As an array of the trace format's type."""
        if column.null_count > 0:
            row = self._rows + column.is_null().to_pylist().index(True)
            raise self._refusal(name, f"null in row {row}", "a value in every row, NaN or -1 where none is known")
        if name == "task":
            return self._numbered(name, column, lambda text: self._tasks.setdefault(text, len(self._tasks)), "int32")
        if name == "prompt":
            return self._numbered(name, column, _core.prompt_id, "int64")
        if name in _SCALARS:
            return self._numbers(name, column, _SCALARS[name])
        if not hasattr(column, "flatten") or not hasattr(column.type, "value_type"):
            raise self._refusal(name, f"of {column.type}", "of lists of numbers")
        width = _width(column)
        flat = column.flatten()
        if flat.null_count > 0 or len(flat) != width * len(column) or not _have_width(column, width):
            raise self._refusal(name, "of lists of several lengths, or with nulls",
                                "of lists of one length, filled up with -1 and -inf")
        return self._numbers(name, flat, _LISTS[name]).reshape(len(column), width)

    def _numbers(self, name: str, column: Any, kind: str) -> Any:
        import numpy as np
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        wanted = (pyarrow.types.is_integer if kind.startswith("int") else
                  lambda type_: pyarrow.types.is_floating(type_) or pyarrow.types.is_integer(type_))
        if not wanted(column.type):
            raise self._refusal(name, f"of {column.type}", "of integers" if kind.startswith("int") else "of numbers")
        try:
            # Floating numbers are rounded, integers must fit.
            cast = column.cast(kind, safe=kind.startswith("int"))
        except pyarrow.ArrowInvalid as error:
            raise self._refusal(name, f"out of range ({error})", f"of {kind}") from error
        return np.ascontiguousarray(cast.to_numpy(zero_copy_only=False))

    def _numbered(self, name: str, column: Any, number_of: Any, kind: str) -> Any:
        """Texts by their numbers, numbers as they are."""
        import numpy as np
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        type_ = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        if not (pyarrow.types.is_string(type_) or pyarrow.types.is_large_string(type_) or
                str(type_).startswith("string")):
            return self._numbers(name, column, kind)
        coded = column if pyarrow.types.is_dictionary(column.type) else column.cast("string").dictionary_encode()
        used = coded.indices.to_numpy(zero_copy_only=False)
        texts = coded.dictionary.to_pylist()
        numbers = np.zeros(len(texts), dtype=kind)
        # In the order of the rows, so that numbers do not depend on the batches.
        for index in dict.fromkeys(used.tolist()):
            numbers[index] = number_of(texts[index])
        return numbers[used]

    def _add_places(self, columns: dict[str, Any], rows: int) -> None:
        """Without sequences all is one, without tokens none is known, and places count from a sequence's beginning."""
        import numpy as np

        if "token" not in columns:
            columns["token"] = np.full(rows, -1, dtype=np.int32)
        if "seq" not in columns:
            if "pos" in columns:
                raise QuestionError("recording has the column pos without seq, but must have both", "recording")
            columns["seq"] = np.zeros(rows, dtype=np.int64)
        if "pos" in columns:
            return
        sequence = columns["seq"]
        begins = np.flatnonzero(np.diff(sequence, prepend=self._sequence))
        start = np.zeros(rows, dtype=np.int64)
        start[begins] = begins
        goes_on = self._length if rows and (len(begins) == 0 or begins[0] > 0) else 0
        places = np.arange(rows, dtype=np.int64) - np.maximum.accumulate(start)
        first = int(begins[0]) if len(begins) else rows
        places[:first] += goes_on
        columns["pos"] = places
        self._sequence, self._length = int(sequence[-1]), int(places[-1]) + 1

    @staticmethod
    def _refusal(name: str, found: str, expected: str) -> QuestionError:
        return QuestionError(f"recording has the column {name} {found}, but must have it {expected}", "recording")


def _width(column: Any) -> int:
    """The length of its first list."""
    return len(column[0]) if len(column) and column[0].is_valid and hasattr(column[0], "__len__") else 0


def _have_width(column: Any, width: int) -> bool:
    import pyarrow.compute  # type: ignore[import-untyped,import-not-found,unused-ignore]

    lengths = pyarrow.compute.min_max(pyarrow.compute.list_value_length(column)).as_py()
    return bool(lengths["min"] == lengths["max"] == width)
