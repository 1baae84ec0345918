"""The options of a question to the command line with their values, as "inputs" of an answer shows them."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Iterable[Path]]
#: A number, or the two ends of a range of it.
Uncertain = Union[float, tuple[float, float]]
VerifyFactor = Union[float, Mapping[int, float], Sequence[tuple[int, float]], None]
Schedule = Sequence[tuple[int, int, int]]

Options = dict[str, Any]

_ACCEPTANCE: Options = {
    "alpha": None,
    "rejection": None,
    "acceptance_length": None,
    "acceptance_rate": None,
    "acceptance_per_position": None,
    "published": None,
    "counters": [],
    "trace": [],
    "draft_array": None,
    "at": None,
    "rounds": None,
    "conditional": False,
    "acceptance": "recorded",
    "mix": None,
    "mix_by": "tokens",
    "by": None,
}
_HARDWARE: Options = {
    "hardware": None,
    "tensor_parallel_size": None,
    "data_parallel_size": None,
    "expert_parallel_size": None,
    "draft_tensor_parallel_size": None,
    "weight_dtype": None,
    "draft_weight_dtype": None,
    "kv_cache_dtype": None,
    "kernel_times": None,
    "bandwidth_efficiency": None,
    "compute_efficiency": None,
    "link_efficiency": None,
    "all_reduce_latency_us": None,
    "launch_seconds": None,
    "draft_launch_seconds": None,
    "layer_seconds": None,
    "scheduling_seconds": None,
    "calibrate": [],
}
OUTPUT: Options = {"format": "json", "table": None, "output": None, "quiet": False, "explain": False, "config": None}

PLAN: Options = {
    **_ACCEPTANCE,
    "c": None,
    "verify_factor": None,
    "overhead": None,
    "c_hat": None,
    "cost": [],
    "draft_cost": [],
    "overhead_seconds": None,
    "draft_kind": None,
    "hit_rate": None,
    "mean_draft_length": None,
    **_HARDWARE,
    "bench": [],
    "holdout": [],
    "model": None,
    "draft_model": None,
    "draft": [],
    "batch": None,
    "context": None,
    "max_num_seqs": None,
    "min_gain": None,
    "gamma": None,
    "schedule": None,
    "max_regret": None,
    "max_gamma": None,
    "tokens": None,
    "emit": None,
    "emit_file": None,
    "scrape": None,
    "every": "30s",
    "duration": None,
    "scrape_folder": None,
    "scrape_remote": False,
    **OUTPUT,
}

SYNTHETIC: Options = {
    **_ACCEPTANCE,
    "model": None,
    "gamma": None,
    "emit": None,
    **OUTPUT,
}

DIFFERENCE: Options = {
    "gamma": None,
    "draft_array": None,
    "by": None,
    "unpaired": False,
    "runs": [],
    **OUTPUT,
}

DOCTOR: Options = {
    "target": None,
    "draft": None,
    "gamma": None,
    "draft_kind": None,
    "draft_cost": [],
    "hardware": None,
    "tensor_parallel_size": None,
    "model": None,
    "draft_model": None,
    "threads": 1,
    "sources": [],
    **OUTPUT,
}

CAPACITY: Options = {
    "arrival_rate": None,
    "concurrency": None,
    "outside_ms": 0.0,
    "prompt_tokens": None,
    "output_tokens": None,
    "requests": None,
    "prefix_cache_hit_rate": 0.0,
    "shared_prefixes": None,
    "decode_only": False,
    **_ACCEPTANCE,
    "alpha_spread": None,
    **_HARDWARE,
    "model": None,
    "draft_model": None,
    "draft_kind": None,
    "hit_rate": None,
    "mean_draft_length": None,
    "cost": [],
    "draft_cost": [],
    "c": None,
    "overhead_seconds": None,
    "bench": [],
    "prefill_tokens_per_second": None,
    "gpus": None,
    "replicas": None,
    "price": None,
    "gpu_memory_utilization": 0.9,
    "activation_reserve_gb": None,
    "kv_cache_tokens": None,
    "max_num_seqs": "256",
    "max_num_batched_tokens": 8192,
    "prefill_first": False,
    "gamma": None,
    "schedule": None,
    "verification_budget": False,
    "ttft_ms": None,
    "tpot_ms": None,
    "percentile": 99.0,
    "replications": 4,
    "num_requests": None,
    "seed": 0,
    "threads": 1,
    **OUTPUT,
}

ANALYZE: Options = {
    "acceptance": "recorded",
    "assume_processed": False,
    "force_replay": False,
    "row_tolerance": None,
    "by": None,
    "c": None,
    "verify_factor": None,
    "overhead": None,
    "gamma": "1:16",
    "lenience": "0.9,0.7,0.5,0.3,0.1",
    "standardise": "auto",
    "threads": 1,
    "shard": None,
    "part": None,
    "target": None,
    "draft": None,
    "numbers": "auto",
    "target_array": None,
    "draft_array": None,
    "salvage": False,
    "traces": [],
    **OUTPUT,
}

METHODS: Options = {
    "source": "pair",
    "target": None,
    "draft_model": None,
    "prompts": None,
    "tasks": None,
    "ngram_text": None,
    "eagle_head": None,
    "parallel_heads": None,
    "exits": None,
    "laws": None,
    "vocab": None,
    "noise": None,
    "trace": None,
    "alpha": None,
    "gamma": 5,
    "temperature": 1.0,
    "lenience": 0.5,
    "epsilon": 0.09,
    "delta": 0.3,
    "threshold": 0.4,
    "schedule": None,
    "batch": None,
    "drafts": 3,
    "tree": "2x3",
    "tree_nodes": 16,
    "tree_acceptance": None,
    "exit_layer": 2,
    "tokens": None,
    "until_error": None,
    "max_new_tokens": 64,
    "end_token": None,
    "timed": False,
    "seed": 1,
    "threads": 1,
    "c": None,
    "verify_factor": None,
    "overhead": None,
}

#: Of a simulation beside them: shares of the work.
SHARES: Options = {"shard": None, "part": None}

#: What one draft among several is told by its own keys.
_DRAFT_KEYS = {
    "alpha": "alpha",
    "acceptance_length": "acceptance-length",
    "at": "at",
    "rounds": "rounds",
    "published": "published",
    "counters": "counters",
    "trace": "trace",
    "draft_array": "array",
    "acceptance": "rule",
    "c": "c",
    "draft_cost": "cost",
    "draft_kind": "kind",
    "draft_model": "model",
    "draft_tensor_parallel_size": "tp",
}


def paths(given: Paths) -> list[str]:
    """Files as the library takes them."""
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    return [os.fspath(one) for one in given]


def given_only(options: Mapping[str, Any]) -> Options:
    return {name: value for name, value in options.items() if value is not None}


def number(value: Any) -> str:
    """As short as reads back as the same number; a string stays as it was typed."""
    if isinstance(value, str):
        return value
    if hasattr(value, "item"):
        value = value.item()
    return repr(value)


def require_number(name: str, value: Any) -> float:
    """A number as it is typed, which may be a text of it."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, but must be a number") from None


def require_type(name: str, value: Any, expected: type, what: str) -> None:
    if not isinstance(value, expected):
        raise TypeError(f"{name} is {value!r:.60}, but must be {what}")


def listed(values: Iterable[Any]) -> str:
    return ",".join(number(value) for value in values)


def uncertain(value: Uncertain) -> str:
    return ":".join(number(end) for end in value) if isinstance(value, (tuple, list)) else number(value)


def factors(value: VerifyFactor) -> str | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, (str, int, float)) or not isinstance(value, Iterable):
        return number(value)
    return ",".join(f"{number(tokens)}:{number(factor)}" for tokens, factor in value)


def stretches(schedule: Schedule) -> str:
    return ",".join(f"{low}-{high}:{gamma}" for low, high, gamma in schedule)


def plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, (tuple, list, range)) else value


def as_float(value: Any) -> float | None:
    return None if value is None else float(value)


def draft_text(name: str, options: Options) -> str:
    """"NAME:key=value,..." of a draft among several."""
    parts = []
    for option, key in _DRAFT_KEYS.items():
        values = options.get(option)
        for value in values if isinstance(values, list) else [] if values is None else [values]:
            parts.append(f"{key}={number(value)}")
    return f"{name}:{','.join(parts)}"


def of_all_drafts(options: Options) -> Options:
    """The options of one draft that hold for all of them."""
    return {option: value for option, value in options.items() if option not in _DRAFT_KEYS}


_HASHED_BYTES = 64_000_000


def file_facts(path: str, hashed: bool = True) -> Options:
    """Facts that identify a file that an answer rests on, with the hash of a small one where it is `hashed`."""
    facts = os.stat(path)
    modified = datetime.datetime.fromtimestamp(int(facts.st_mtime), datetime.timezone.utc)
    digest = None
    if hashed and facts.st_size <= _HASHED_BYTES:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "path": path,
        "size_bytes": facts.st_size,
        "modified": modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "sha256": digest,
    }


def document(command: str, version: str, inputs: Options, files: list[str], presets: str, body: str) -> Options:
    """All of an answer, as `specdec ... --format json` prints it."""
    inputs = dict(inputs)
    if files:
        inputs["files"] = [file_facts(file) for file in files]
    if presets:
        inputs["presets"] = json.loads(presets)
    answer = json.loads(body)
    decision = answer.pop("decision")
    return {"schema": f"specdec.{command}/2", "version": version, "decision": decision, "inputs": inputs, **answer}
