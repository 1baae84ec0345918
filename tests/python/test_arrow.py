"""Recordings in columns of Arrow say what the same numbers in a file say, and streams need no memory for all of them."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import specdec
from specdec import Acceptance, Cost, QuestionError, Recording

pa = pytest.importorskip("pyarrow")

POSITIONS, SEQUENCES = 1200, 6
SAID = {"temperature": "1", "path": "target", "acceptance": "rejection"}


def scalar_columns(seed: int = 1, positions: int = POSITIONS) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    acceptance = rng.uniform(0.3, 0.95, positions)
    return {
        "seq": np.repeat(np.arange(SEQUENCES), positions // SEQUENCES),
        "token": rng.integers(0, 50, positions),
        "p.token_logprob": np.full(positions, np.log(0.5), dtype=np.float32),
        "q.token_logprob": (np.log(0.5) + np.log(acceptance)).astype(np.float32),
        "overlap": acceptance.astype(np.float32),
    }


def rows(seed: int = 2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(20), (2, 400)).astype(np.float32)
    return p, q, np.array([rng.choice(20, p=row / row.sum()) for row in p.astype(float)])


def answer_of(given: Any) -> dict[str, Any]:
    document = specdec.analyze(given, c=0.1).to_dict()
    document["inputs"].pop("traces")
    document["inputs"].pop("files", None)
    return document


def saved(columns: dict[str, Any], path: pathlib.Path) -> pathlib.Path:
    """By the columns as safetensors has them, without the library."""
    import json

    header, offset, blobs = {"__metadata__": SAID}, 0, []
    for name, values in columns.items():
        blob = np.ascontiguousarray(values).tobytes()
        kind = {"int64": "I64", "int32": "I32", "float32": "F32"}[str(values.dtype)]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [offset, offset + len(blob)]}  # type: ignore[dict-item]
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))
    return path


def test_tables_readers_and_frames_answer_what_their_file_answers(tmp_path: pathlib.Path) -> None:
    columns = scalar_columns()
    expected = answer_of(saved(columns, tmp_path / "scalar.safetensors"))
    table = pa.table(columns).replace_schema_metadata(SAID)
    given = [table, table.to_reader(max_chunksize=77), pa.concat_tables([table.slice(0, 501), table.slice(501)])]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    given.append(Recording.from_arrow(frame, metadata=SAID))
    for one in given:
        assert answer_of(one) == expected
    document = specdec.analyze(table, c=0.1).to_dict()
    assert document["inputs"]["traces"] == []
    assert "files" not in document["inputs"]


def test_a_parquet_file_is_read_by_row_groups(tmp_path: pathlib.Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pa.table(scalar_columns()).replace_schema_metadata(SAID)
    parquet.write_table(table, tmp_path / "recording.parquet", row_group_size=100)
    reader = dataset.dataset(tmp_path / "recording.parquet").scanner(batch_size=100).to_reader()
    assert answer_of(reader) == answer_of(table)


def test_lists_are_top_tokens_and_whole_rows(tmp_path: pathlib.Path) -> None:
    p, q, tokens = rows()
    expected = answer_of(Recording.from_rows(p, q, tokens, metadata=SAID))
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 20)):
        table = pa.table({"p.probs": pa.array(list(p), kind), "q.probs": pa.array(list(q), kind), "token": tokens})
        assert answer_of(Recording.from_arrow(table.to_reader(max_chunksize=150), metadata=SAID)) == expected
    order = np.argsort(-p, axis=1)[:, :5]
    others = np.argsort(-q, axis=1)[:, :5]
    ids = {"p.topk_ids": order.astype(np.int32), "q.topk_ids": others.astype(np.int32)}
    logs = {"p.topk_logprobs": np.log(np.take_along_axis(p, order, 1)), "q.topk_logprobs": np.log(np.take_along_axis(q, others, 1))}
    arrays = {"seq": np.zeros(len(tokens), dtype=np.int64), "token": tokens.astype(np.int32), **ids, **logs}
    table = pa.table({name: list(values) if values.ndim == 2 else values for name, values in arrays.items()})
    assert answer_of(Recording.from_arrow(table, metadata=SAID)) == answer_of(saved(arrays, tmp_path / "topk.safetensors"))


def test_texts_of_tasks_and_prompts_are_named_whatever_the_batches() -> None:
    columns = scalar_columns()
    names = np.array(["chat", "code", "maths"])[columns["seq"] % 3]
    prompts = np.array([f"prompt {number // 2}" for number in columns["seq"]])
    table = pa.table({**columns, "task": names, "prompt": prompts})
    whole = answer_of(table)
    assert [task["task"] for task in whole["tasks"]] == ["chat", "code", "maths"]
    assert answer_of(table.to_reader(max_chunksize=130)) == whole
    coded = table.set_column(table.schema.get_field_index("task"), "task", table.column("task").dictionary_encode())
    assert answer_of(coded) == whole


def test_columns_are_planned_from_as_their_file_is(tmp_path: pathlib.Path) -> None:
    columns = scalar_columns()
    path = saved(columns, tmp_path / "scalar.safetensors")
    table = pa.table(columns).replace_schema_metadata(SAID)
    of_table, of_file = (specdec.plan(Acceptance.from_recording(one), Cost.of_constants(0.1)) for one in (table, path))
    assert of_table.to_dict()["points"] == of_file.to_dict()["points"]


def test_a_stream_of_many_batches_is_never_held_whole() -> None:
    batch = pa.record_batch(scalar_columns(positions=60_000))
    most = 0

    def batches() -> Iterator[Any]:
        nonlocal most
        before = pa.total_allocated_bytes()
        for number in range(40):
            columns = scalar_columns(seed=number, positions=60_000)
            columns["seq"] = columns["seq"] + number * SEQUENCES
            yield pa.record_batch({name: pa.array(values) for name, values in columns.items()})
            most = max(most, pa.total_allocated_bytes() - before)

    schema = batch.schema
    recording = Recording.from_arrow(pa.RecordBatchReader.from_batches(schema, batches()), metadata=SAID)
    assert recording.positions == 40 * 60_000
    assert most < 6 * batch.nbytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": np.zeros(POSITIONS)}, "the column loss, but must have those of"),
        ({"token": np.zeros(POSITIONS)}, "token of double, but must have it of integers"),
        ({"token": np.full(POSITIONS, 2**40)}, "token out of range"),
        ({"overlap": pa.array([None] + [0.5] * (POSITIONS - 1))}, "overlap null in row 0"),
        ({"p.topk_ids": pa.array([[1, 2], [1]] * (POSITIONS // 2))}, "of lists of several lengths"),
        ({"p.topk_ids": np.zeros(POSITIONS, dtype=np.int32)}, "p.topk_ids of int32, but must have it of lists"),
    ],
)
def test_columns_that_are_not_the_formats_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        specdec.analyze(pa.table({**scalar_columns(), **change}))


def test_a_stream_without_rows_and_what_is_no_stream_are_refused() -> None:
    with pytest.raises(QuestionError, match="a stream without rows"):
        specdec.analyze(pa.table(scalar_columns()).slice(0, 0))
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        Recording.from_arrow([1, 2])
