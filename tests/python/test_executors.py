"""Shares of an analysis that run elsewhere, and the analysis when a worker dies. scripts/test_executors runs those on Dask
and Ray."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from specdec import Analysis, FileError, QuestionError, RayExecutor, Recording, analyze

RECORDING = pathlib.Path(__file__).parents[2] / "sim" / "models" / "recording.safetensors"
GIVEN: dict[str, Any] = {"c": 0.05, "gamma": [1, 4]}
SHARDS = 6


def without_inputs(answer: Analysis) -> dict[str, Any]:
    found = answer.to_dict()
    del found["inputs"]
    return found


class Murderous:
    """An executor one of whose workers dies once it has done its first share."""

    def __init__(self, executor: Any, marker: pathlib.Path) -> None:
        self.executor, self.marker = executor, marker

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        return self.executor.submit(dying_call, str(self.marker), fn, *args)


def dying_call(marker: str, fn: Callable[..., Any], *args: Any) -> Any:
    found = fn(*args)
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return found
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return without_inputs(analyze(RECORDING, **GIVEN))


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def ray() -> Iterator[RayExecutor]:
    module = pytest.importorskip("ray")
    module.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield RayExecutor(num_cpus=1)
    module.shutdown()


def pool() -> concurrent.futures.ProcessPoolExecutor:
    return concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.executors
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_dask_and_ray_answer_as_one_process_does(
    name: str, request: pytest.FixtureRequest, whole: dict[str, Any]
) -> None:
    executor = request.getfixturevalue(name)
    assert without_inputs(analyze(RECORDING, executor=executor, shards=5, **GIVEN)) == whole
    with pytest.raises(FileError, match="missing.safetensors"):
        analyze("missing.safetensors", executor=executor)
    with pytest.raises(QuestionError, match="gamma"):
        analyze(RECORDING, gamma=[4, 2], executor=executor)


@pytest.mark.executors
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_dask_and_ray_do_the_share_of_a_dead_worker_again(
    name: str, request: pytest.FixtureRequest, tmp_path: pathlib.Path, whole: dict[str, Any]
) -> None:
    executor = Murderous(request.getfixturevalue(name), tmp_path / "died")
    answer = analyze(RECORDING, executor=executor, shards=SHARDS, checkpoint=tmp_path / "kept", **GIVEN)
    assert (tmp_path / "died").exists()
    assert without_inputs(answer) == whole
    assert len(list((tmp_path / "kept").glob("*.part"))) == SHARDS


def test_a_pool_breaks_with_its_worker_and_the_next_call_goes_on(tmp_path: pathlib.Path, whole: dict[str, Any]) -> None:
    kept = tmp_path / "kept"
    with pytest.raises(concurrent.futures.process.BrokenProcessPool), pool() as broken:
        analyze(RECORDING, executor=Murderous(broken, tmp_path / "died"), shards=SHARDS, checkpoint=kept, **GIVEN)
    there = {part: part.stat().st_mtime_ns for part in kept.glob("*.part")}
    assert 1 <= len(there) < SHARDS
    with pool() as executor:
        answer = analyze(RECORDING, executor=executor, shards=SHARDS, checkpoint=kept, **GIVEN)
    assert without_inputs(answer) == whole
    # Finished work is not done again.
    assert {part: part.stat().st_mtime_ns for part in there} == there
    assert len(list(kept.glob("*.part"))) == SHARDS


def test_the_shares_that_were_kept_are_parts_that_merge_reads(tmp_path: pathlib.Path, whole: dict[str, Any]) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        analyze(RECORDING, executor=executor, shards=2, checkpoint=tmp_path, **GIVEN)
    merged = subprocess.run([sys.executable, "-m", "specdec", "merge", tmp_path, "--format", "json"], capture_output=True,
                            encoding="utf-8", check=True)
    document = json.loads(merged.stdout)
    assert document["inputs"]["c"] == GIVEN["c"]
    assert document["inputs"]["files"][0]["size_bytes"] == RECORDING.stat().st_size
    del document["inputs"]
    assert document == whole


def test_a_folder_of_another_question_or_recording_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    kept = tmp_path / "kept"
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        analyze(RECORDING, executor=executor, shards=2, checkpoint=kept, **GIVEN)
        with pytest.raises(FileError, match=r"1-of-2.part: --c is 0.05, but must be 0.1, as in this run"):
            analyze(RECORDING, executor=executor, shards=2, checkpoint=kept, **{**GIVEN, "c": 0.1})
        with pytest.raises(FileError, match=r"1-of-2.part: shard is 1/2, but must be one of 3, as in this run"):
            analyze(RECORDING, executor=executor, shards=3, checkpoint=kept, **GIVEN)
        copy = tmp_path / "copy.safetensors"
        changed = bytearray(RECORDING.read_bytes())
        changed[-1] ^= 1
        copy.write_bytes(changed)
        with pytest.raises(FileError, match=r"1-of-2.part: file 1 of the recording is "):
            analyze(copy, executor=executor, shards=2, checkpoint=kept, **GIVEN)
        folder = tmp_path / "trace"
        folder.mkdir()
        copy.rename(folder / copy.name)
        with pytest.raises(QuestionError, match="must be elsewhere"):
            analyze(folder, executor=executor, shards=2, checkpoint=folder, **GIVEN)
        in_memory = Recording.from_rows(np.full((1, 2), 0.5), np.full((1, 2), 0.5))
        with pytest.raises(QuestionError, match="goes with recordings in files only"):
            analyze(in_memory, executor=executor, checkpoint=kept)
    with pytest.raises(QuestionError, match="needs executor"):
        analyze(RECORDING, checkpoint=kept)
