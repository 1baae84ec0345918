#!/usr/bin/env python3
"""Makes analysis/cost/presets/kernels/DEVICE.json, times of measured kernels, from a package of measurements.

  pip install aiconfigurator-core==0.12.0 pandas pyarrow scipy
  scripts/kernel_presets.py --output analysis/cost/presets/kernels

The package (Apache-2.0, its licence text is in its wheel) holds tables of single kernels: products by type and shape,
attention of decoding and of prompts, all-reduces. Of each engine's newest tables four numbers are fitted per type of
product,

  t = call + ((bytes / (b BW))^p + (flops / (e F))^p)^(1/p) + 2 m (n + k) bytes / (b BW)

with BW and F the device's bandwidth and dense peak of analysis/cost/presets/hardware; three of decoding's attention,

  t = floor + sequence * sequences * key/value heads + bytes of cache, queries and outputs / (b BW)

and the share of the peak that long prompts' attention reaches; five of all routed experts of a layer, n positions of
which choose k of E each,

  t = call + ((bytes / (b BW))^p + (flops / (e F))^p)^(1/p) + activation bytes / (b BW),
  bytes those of E (1 - (1 - k/E)^(n^r)) experts

from tables that were measured with loads by a power law of exponent 1.2; all-reduces and all-to-alls are kept as they
are, every second size. The logarithm of the time is fitted, robustly. What is dropped and why is printed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.resources
import itertools
import json
import pathlib
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from measure_verification import measured_attention

PACKAGE = "aiconfigurator-core"
ROOT = pathlib.Path(__file__).resolve().parents[1]
# Times of vLLM's attention over several positions of a sequence, which the package has no table of, by
# scripts/measure_verification.py.
VERIFICATION = ROOT / "tests" / "published" / "verification"
DEVICES = {
    "a100-80gb-sxm": "a100_sxm",
    "b200": "b200_sxm",
    "b300": "b300_sxm",
    "gb200": "gb200",
    "gb300": "gb300",
    "h100-sxm": "h100_sxm",
    "h200-sxm": "h200_sxm",
    "l40s": "l40s",
    "rtx-pro-6000-server": "rtx_pro_6000_server",
}
ENGINES = {"sglang": "sglang", "tensorrt-llm": "trtllm", "vllm": "vllm"}
# Type here: type in the tables, bits of a stored weight, peaks in order of preference.
PRODUCTS = {
    "bf16": ("bfloat16", 16.0, ("bf16",)),
    "fp8": ("fp8", 8.0, ("fp8", "bf16")),
    "nvfp4": ("nvfp4", 4.5, ("fp4", "fp8", "bf16")),
}
CACHES = {"bf16": ("bfloat16", 2), "fp8": ("fp8", 1)}
# The same of experts. Published checkpoints in fp8 have scales of blocks; devices that multiply in 4 bits take mxfp4
# weights with activations in 8.
EXPERTS = {
    "bf16": (("bfloat16",), 16.0, ("bf16",)),
    "fp8": (("fp8_block", "fp8"), 8.0, ("fp8", "bf16")),
    "int4": (("int4_wo",), 4.125, ("bf16",)),
    "mxfp4": (("w4a8_mxfp4_mxfp8", "w4a16_mxfp4"), 4.25, ("fp4", "bf16")),
    "nvfp4": (("nvfp4",), 4.5, ("fp4", "bf16")),
}
ROUTING = "power_law_1.2"
POSITIONS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192)
SIDES = (512, 16384)
# Times that serving adds to the kernels, by engine: seconds of a layer, an iteration and a sequence of an iteration, as
# tests/bench/predict_serving.py fits them to 1,572 rows of H100, H200, B200 and GB200 with one group and whole experts,
# of Llama 3.1, Qwen3, DeepSeek R1, V3 and V3.1 and gpt-oss; and standard deviations of ln(measured / priced), as it holds them.
SERVING = {
    "sglang": {"layer_seconds": 24.1e-6, "iteration_seconds": 0.0, "sequence_seconds": 15.8e-6},
    "tensorrt-llm": {"layer_seconds": 5.5e-6, "iteration_seconds": 0.17e-3, "sequence_seconds": 12.6e-6},
    "vllm": {"layer_seconds": 15.8e-6, "iteration_seconds": 0.0, "sequence_seconds": 0.0},
}
# Of iterations with prompts: seconds of a layer at least, and how often the experts' measured time they take, as times to
# the first token say.
PROMPTS = {
    "sglang": {"prompt_layer_seconds": 0.5e-3, "prompt_experts": 1.8},
    "tensorrt-llm": {"prompt_layer_seconds": 0.5e-3, "prompt_experts": 1.0},
    "vllm": {"prompt_layer_seconds": 0.5e-3, "prompt_experts": 1.8},
}
ERRORS = {
    engine: {"deployment_error": 0.25, "point_error": 0.09, "prompt_error": error}
    for engine, error in {"sglang": 0.6, "tensorrt-llm": 0.6, "vllm": 0.4}.items()
}
# A fit beyond these says that the four numbers do not describe the table.
WORST_MEDIAN, LEAST_BANDWIDTH, LONGEST_CALL = 0.25, 0.45, 1.8
FEWEST_ROWS, FEWEST_EXPERT_ROWS = 200, 90


def version_of(path: pathlib.Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", path.parent.name)]


def newest_of(paths: Iterable[pathlib.Path]) -> pathlib.Path | None:
    return max(paths, key=version_of, default=None)


def versions(package: pathlib.Path, device: str, operation: str, engine: str, table: str) -> list[pathlib.Path]:
    """Newest first."""
    found = (package / "systems" / "data" / device / operation / engine).glob(f"*/{table}.parquet")
    return sorted(found, key=version_of, reverse=True)


def newest(package: pathlib.Path, device: str, operation: str, engine: str, table: str) -> tuple[pd.DataFrame, str] | None:
    found = versions(package, device, operation, engine, table)
    return (pd.read_parquet(found[0]), found[0].parent.name) if found else None


def fitted(seconds: Any, logs: np.ndarray, start: list[float], low: list[float], high: list[float]) -> tuple[Any, float, float]:
    """Parameters, and the median and 90th percentile of the relative errors they leave."""
    result = least_squares(
        lambda x: np.log(seconds(x)) - logs, start, bounds=(low, high), loss="soft_l1", f_scale=0.1, x_scale=np.array(high)
    )
    error = np.abs(np.exp(np.log(seconds(result.x)) - logs) - 1)
    return result.x, float(np.median(error)), float(np.quantile(error, 0.9))


def rounded(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}") if value > 1e-12 else 0.0


def rounded_maximum(read: Any, computed: Any, corner: float) -> Any:
    most = np.maximum(read, computed)
    return most * ((read / most) ** corner + (computed / most) ** corner) ** (1 / corner)


def product_fit(
    table: pd.DataFrame, bits: float, bandwidth: float, peak: float, sides: tuple[int, int] = SIDES, fewest: int = FEWEST_ROWS
) -> dict[str, float] | None:
    # Engines pad positions to even tiles: odd ones above 16 are slower than any that they run.
    padded = table[(table.m <= 16) | (table.m % 2 == 0)]
    best = padded.groupby(["n", "k", "m"], as_index=False).latency.min().sort_values(["n", "k", "m"])
    # No engine runs fewer positions slower than more: it would pad them.
    best["seconds"] = 1e-3 * best.groupby(["n", "k"]).latency.transform(lambda times: times[::-1].cummin()[::-1])
    chosen = best[best.m.isin(POSITIONS) & best.n.between(*sides) & best.k.between(*sides)]
    if len(chosen) < fewest:
        return None
    m, n, k = (chosen[name].to_numpy(float) for name in ("m", "n", "k"))

    def seconds(x: Any) -> Any:
        read, computed = n * k * bits / 8 / (x[0] * bandwidth), 2 * m * n * k / (x[1] * peak)
        return 1e-6 * x[3] + rounded_maximum(read, computed, x[2]) + 2 * m * (n + k) / (x[0] * bandwidth)

    logs = np.log(chosen.seconds.to_numpy())
    x, median, p90 = fitted(seconds, logs, [0.85, 0.7, 2, 4], [0.2, 0.05, 1, 0], [1, 1, 6, 80])
    return {
        "bandwidth_share": rounded(x[0]),
        "peak_share": rounded(x[1]),
        "corner": rounded(x[2]),
        "call_seconds": rounded(1e-6 * x[3]),
        "rows": len(chosen),
        "median_error": rounded(median, 2),
        "p90_error": rounded(p90, 2),
    }


def attention_fit(table: pd.DataFrame, prompts: pd.DataFrame, bytes_per_value: int, bandwidth: float, peak: float) -> dict[str, float] | None:
    if "window_size" in table:
        table = table[table.window_size.fillna(0) <= 0]
    table = table[table.head_dim.isin([64, 128]) & (table.batch_size <= 512)]
    keys = ["batch_size", "step", "num_heads", "num_key_value_heads", "head_dim"]
    best = table.groupby(keys, as_index=False).latency.min()
    if len(best) < FEWEST_ROWS:
        return None
    batch, context, heads, kept, size = (best[name].to_numpy(float) for name in keys)
    moved = batch * (context + 1) * 2 * kept * size * bytes_per_value + 4 * batch * heads * size

    def seconds(x: Any) -> Any:
        return 1e-6 * x[0] + 1e-9 * x[1] * batch * kept + moved / (x[2] * bandwidth)

    logs = np.log(1e-3 * best.latency.to_numpy())
    x, median, p90 = fitted(seconds, logs, [12, 10, 0.6], [0, 0, 0.05], [60, 500, 1])
    if "window_size" in prompts:
        prompts = prompts[prompts.window_size.fillna(0) <= 0]
    long = prompts[(prompts.step == 0) & (prompts.isl >= 2048) & (prompts.head_dim == 128) & (prompts.num_heads >= 8)]
    share = 2 * long.batch_size * long.isl.astype(float) ** 2 * long.num_heads * long.head_dim / (1e-3 * long.latency * peak)
    if share.empty:
        return None
    return {
        "floor_seconds": rounded(1e-6 * x[0]),
        "sequence_seconds": rounded(1e-9 * x[1]),
        "bandwidth_share": rounded(x[2]),
        "peak_share": rounded(min(1.0, float(share.median()))),
        "rows": len(best),
        "median_error": rounded(median, 2),
        "p90_error": rounded(p90, 2),
    }


def expert_fit(table: pd.DataFrame, bits: float, bandwidth: float, peak: float) -> dict[str, float] | None:
    keys = ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"]
    best = table.groupby(keys, as_index=False).latency.min()
    if len(best) < FEWEST_EXPERT_ROWS:
        return None
    positions, width, inner, chosen, experts, divided, apart = (best[name].to_numpy(float) for name in keys)
    values = 3 * width * inner / divided / apart

    def seconds(x: Any) -> Any:
        touched = -experts * np.expm1(positions ** x[4] * np.log1p(-chosen / experts))
        read = touched * values * bits / 8 / (x[0] * bandwidth)
        computed = 2 * positions * chosen * values / (x[1] * peak)
        moved = positions * chosen / apart * (3 * inner / divided + 2 * width) * 2 / (x[0] * bandwidth)
        return 1e-6 * x[3] + rounded_maximum(read, computed, x[2]) + moved

    logs = np.log(1e-3 * best.latency.to_numpy())
    x, median, p90 = fitted(seconds, logs, [0.7, 0.5, 2, 30, 0.8], [0.05, 0.02, 1, 0, 0.3], [1, 1, 6, 300, 1])
    return {
        "bandwidth_share": rounded(x[0]),
        "peak_share": rounded(x[1]),
        "corner": rounded(x[2]),
        "call_seconds": rounded(1e-6 * x[3]),
        "routing": rounded(x[4]),
        "rows": len(best),
        "median_error": rounded(median, 2),
        "p90_error": rounded(p90, 2),
    }


def expert_fits(
    package: pathlib.Path, device: str, engine: str, version: str, bandwidth: float, peaks: dict[str, float], drop: Any
) -> dict[str, Any]:
    """By type of the weights: of the version of the products where that measured it, else of the newest that did."""
    fits: dict[str, Any] = {}
    paths = versions(package, device, "moe", engine, "moe_perf")
    tables = {path.parent.name: pd.read_parquet(path) for path in sorted(paths, key=lambda path: path.parent.name != version)}
    for kind, (columns, bits, preferred) in EXPERTS.items():
        peak = next((peaks[name] for name in preferred if name in peaks), None)
        if peak is None:
            drop(f"{engine} {kind} experts", "no peak")
            continue
        # Accelerators that divide each expert; where that was not measured, those that hold some of the experts each.
        for apart, name, column in itertools.product((1, 8), tables, columns):
            table = tables[name]
            rows = table[(table.moe_dtype == column) & (table.distribution == ROUTING) & (table.topk < table.num_experts)]
            rows = rows[(rows.moe_ep_size <= apart) & (rows.moe_ep_size * rows.moe_tp_size <= 8)]
            fit = expert_fit(rows[rows.num_tokens <= POSITIONS[-1]], bits, bandwidth, peak)
            if fit is not None:
                fits[kind] = {**fit, "measured_with": f"{name} {column}"}
                break
        if kind not in fits:
            drop(f"{engine} {kind} experts", "fewer rows than needed")
        elif fits[kind]["median_error"] > WORST_MEDIAN:
            drop(f"{engine} {kind} experts", f"not described by five numbers: {fits.pop(kind)}")
    return fits


def collective(accelerators: int, seconds: pd.Series) -> dict[str, Any]:
    """@param seconds  seconds of one call, by bytes of each accelerator"""
    best = seconds.groupby(level=0).min().sort_index()
    kept = best.iloc[::2] if len(best) % 2 else pd.concat([best.iloc[::2], best.iloc[-1:]])
    # A larger message that took less time is noise.
    times = np.maximum.accumulate(kept.to_numpy())
    return {
        "accelerators": int(accelerators),
        "bytes": [int(size) for size in kept.index],
        "seconds": [rounded(time, 3) for time in times],
    }


def all_reduces(table: pd.DataFrame) -> list[dict[str, Any]]:
    # Decoding runs in graphs.
    table = table[~table.kernel_source.str.contains("eager")]
    # Sizes count values of two bytes.
    table = table.assign(bytes=2 * table.message_size, seconds=1e-3 * table.latency)
    return [collective(many, rows.set_index("bytes").seconds) for many, rows in table.groupby("num_gpus")]


def all_to_alls(package: pathlib.Path, device: str) -> list[dict[str, Any]]:
    """The all-to-alls of NCCL's newest table, whichever engine calls it; over more accelerators than it has, of a table
    of tokens that travel to experts and back, half of which is one call."""
    folder = package / "systems" / "data" / device / "comm"
    found = newest_of(folder.glob("nccl/*/nccl_perf.parquet"))
    table = pd.read_parquet(found) if found else pd.DataFrame({"op_name": [], "nccl_dtype": []})
    table = table[(table.op_name == "alltoall") & (table.nccl_dtype == "half")]
    if not table.empty:
        table = table.assign(bytes=2 * table.message_size, seconds=1e-3 * table.latency)
    tables = [
        collective(many, rows.set_index("bytes").seconds) for many, rows in table.groupby("num_gpus") if not table.empty
    ]
    found = newest_of(folder.glob("trtllm/*/trtllm_alltoall_perf.parquet"))
    if found is None:
        return tables
    routed = pd.read_parquet(found)
    routed = routed[(routed.moe_dtype == "bfloat16") & (routed.kernel_source == "NVLinkTwoSided")]
    known = {one["accelerators"] for one in tables}
    for many, rows in routed[~routed.moe_ep_size.isin(known)].groupby("moe_ep_size"):
        keys = ["num_tokens", "hidden_size", "topk"]
        both = rows.groupby(keys).latency.sum().reset_index()
        reached = many * (1 - (1 - 1 / many) ** both.topk)
        both = both.assign(bytes=(2 * both.num_tokens * both.hidden_size * reached).round(), seconds=1e-3 * both.latency / 2)
        tables.append(collective(many, both[both.num_tokens <= POSITIONS[-1]].set_index("bytes").seconds))
    return tables


def device_file(package: pathlib.Path, name: str, hardware: dict[str, Any], version: str) -> dict[str, Any]:
    device = DEVICES[name]
    bandwidth = hardware["memory_bandwidth_bytes_per_second"]["value"]
    peaks = {kind: peak["value"] for kind, peak in hardware["peak_flops"].items()}

    def drop(what: str, why: str) -> None:
        print(f"{name}: dropped {what}: {why}", file=sys.stderr)

    engines: dict[str, Any] = {}
    undescribed: list[tuple[str, str]] = []
    for engine, folder in ENGINES.items():
        products: dict[str, Any] = {}
        found = newest(package, device, "gemm", folder, "gemm_perf")
        if found is None:
            drop(engine, "no table of products")
            continue
        table, table_version = found
        for kind, (column, bits, preferred) in PRODUCTS.items():
            peak = next((peaks[name] for name in preferred if name in peaks), None)
            rows = table[table.gemm_dtype == column]
            if rows.empty or peak is None:
                drop(f"{engine} {kind} products", "no rows" if rows.empty else "no peak")
                continue
            fit = product_fit(rows, bits, bandwidth, peak)
            if fit is None:
                drop(f"{engine} {kind} products", "fewer rows than needed")
            elif fit["median_error"] > WORST_MEDIAN or fit["bandwidth_share"] < LEAST_BANDWIDTH:
                drop(f"{engine} {kind} products", f"not described by four numbers: {fit}")
                undescribed.append((engine, kind))
            else:
                products[kind] = fit
        for kind in sorted(set(table.gemm_dtype) - {column for column, _, _ in PRODUCTS.values()}):
            drop(f"{engine} {kind} products", "no such type of weights here")
        decoding = newest(package, device, "attention", folder, "generation_attention_perf")
        prompts = newest(package, device, "attention", folder, "context_attention_perf")
        attention: dict[str, Any] = {}
        if decoding is not None and prompts is not None:
            for kind, (column, size) in CACHES.items():
                rows, long = (found[0][found[0].kv_cache_dtype == column] for found in (decoding, prompts))
                fit = attention_fit(rows, long, size, bandwidth, peaks["bf16"]) if len(rows) else None
                if fit is None:
                    drop(f"{engine} attention with a {kind} cache", "fewer rows than needed")
                else:
                    attention[kind] = fit
        verified = VERIFICATION / f"{name}.csv"
        if engine == "vllm" and "bf16" in attention and verified.exists():
            attention["bf16"]["verification"] = measured_attention(verified, bandwidth)["verification"]
        reduced = newest(package, device, "comm", folder, "custom_allreduce_perf")
        if "bf16" not in products or "bf16" not in attention or reduced is None:
            drop(engine, "lacks products or attention in bf16, or all-reduces")
            continue
        engines[engine] = {
            "version": table_version,
            "products": products,
            "attention": attention,
            "experts": expert_fits(package, device, folder, table_version, bandwidth, peaks, drop),
            "all_reduces": all_reduces(reduced[0]),
            "all_to_alls": all_to_alls(package, device),
            "serving": {**SERVING[engine], **PROMPTS[engine], **ERRORS[engine]},
        }
    # A call that takes much longer than another engine's of the same product holds kernels that serving fuses: activations
    # brought to 8 bits.
    for engine, kind in itertools.product(engines, PRODUCTS):
        calls = [other["products"][kind]["call_seconds"] for other in engines.values() if kind in other["products"]]
        if kind in engines[engine]["products"] and engines[engine]["products"][kind]["call_seconds"] > LONGEST_CALL * min(calls):
            drop(f"{engine} {kind} products", f"a call takes more than {LONGEST_CALL:g} times another engine's")
            undescribed.append((engine, kind))
    # Such a type, and one that four numbers do not describe, has the numbers of another engine on the device.
    for engine, kind in undescribed:
        others = (other for other in ("vllm", "sglang") if other != engine and kind in engines.get(other, {}).get("products", {}))
        lender = next(others, None)
        if engine in engines and lender is not None:
            borrowed = {"measured_with": f"{lender} {engines[lender]['version']}"}
            engines[engine]["products"][kind] = {**engines[lender]["products"][kind], **borrowed}
    return {
        "device": name,
        "source": f"https://pypi.org/project/{PACKAGE}/{version}/",
        "licence": "Apache-2.0",
        "attribution": "fitted to kernels measured by NVIDIA CORPORATION & AFFILIATES",
        "engines": engines,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=pathlib.Path, help="folder of aiconfigurator_core [the installed one]")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder to write to")
    arguments = parser.parse_args()
    package = arguments.package or pathlib.Path(str(importlib.resources.files("aiconfigurator_core")))
    version = importlib.metadata.version(PACKAGE)
    hardware = ROOT / "analysis" / "cost" / "presets" / "hardware"
    known = {path.name for path in (package / "systems" / "data").iterdir() if path.is_dir()}
    for device in sorted(known - set(DEVICES.values())):
        print(f"{device}: dropped: no preset of the hardware", file=sys.stderr)
    for name in DEVICES:
        described = json.loads((hardware / f"{name}.json").read_text())
        text = json.dumps(device_file(package, name, described, version), indent=1)
        # One line for each list of numbers.
        text = re.sub(r"\[\s+([-0-9.e+,\s]+?)\s+\]", lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text)
        (arguments.output / f"{name}.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
