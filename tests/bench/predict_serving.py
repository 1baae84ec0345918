#!/usr/bin/env python3
"""Holds the times per output token and to the first token that specdec prices against measured serving.

The measurements are silicon_sample.csv of the PyPI package aiconfigurator-core 0.12.0 (Apache-2.0): points of
deployments (engine, model, device, precision, layout) by prompt length, output length and concurrency. They stay in
that package; nothing of them is kept here but the rows in serving_without_speculation.txt that are known to have run
without a next-token module, by the history of the published configurations.

  pip install aiconfigurator-core==0.12.0 pandas          # and aiconfigurator==0.12.0 for --peer
  tests/bench/predict_serving.py --specdec build/release/specdec --answers /tmp/answers --peer

Each row is answered by

  plan       a plain round at batch = concurrency and context = prompt + output / 2
  capacity   the means that clients of --concurrency report, with lengths as the row's client draws them
  plan-k, capacity-k   the same with --kernel-times of the row's engine
  peer       aiconfigurator's estimate of the aggregated server (--peer)

Answers are kept in DIR/NAME.csv and asked for only where missing: remove the files of specdec after a change. A
row that a program refuses counts as a miss of 100%. Errors are |predicted / measured - 1|; intervals of medians and of
paired differences resample whole deployments.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import csv
import importlib.resources
import json
import logging
import math
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd

# Engines' names of the types of weights; gpt-oss keeps what its file says (mxfp4 experts, the rest bf16).
WEIGHT_TYPES = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "int4_wo": "int4"}
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
DEVICES = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200", "gb200": "gb200", "b300_sxm": "b300"}
# Rows that name a model whose configuration the package has under another name of the same weights' shape.
CONFIGURATIONS = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
}
# Of these a server may have run the next-token module, and the rows do not say it.
WITH_NEXT_TOKEN_MODULE = ("deepseek", "GLM", "Kimi", "MiniMax", "Qwen3.5")
ACCELERATORS_PER_NODE = 8
# Share of the nominal length, standard deviation over the mean, and milliseconds beside the engine. InferenceX's client
# draws both lengths evenly from 0.8 of the nominal one up to it, and its shortest times to first token are 40 ms. The
# others' lengths are constant, so that their requests stay in step, which a way of 40 ms between two would end: the
# measured times say that they do.
DRAWN_LENGTHS = (0.9, 0.064, 40)
CONSTANT_LENGTHS = (1.0, 0, 0)
FIELDS = ["id", "tpot_ms", "tpot_low_ms", "tpot_high_ms", "ttft_ms", "refusal"]


def package_folder(given: str | None) -> pathlib.Path:
    if given:
        return pathlib.Path(given)
    return pathlib.Path(str(importlib.resources.files("aiconfigurator_core")))


def reason_left_out(row: Any, plain_ids: set[str]) -> str:
    """Why a row cannot be asked or its label is uncertain; empty where neither."""
    if row.mode != "agg":
        return "disaggregated"
    if row.tp_size > ACCELERATORS_PER_NODE:
        return "more accelerators than a node"
    if row.attention_dp_size > 1:
        return "attention data parallel"
    if row.moe_ep_size > 1:
        return "expert parallel"
    if any(name in row.model_path for name in WITH_NEXT_TOKEN_MODULE) and row.id not in plain_ids:
        return "unknown whether it speculated"
    return ""


def read_points(package: pathlib.Path) -> tuple[pd.DataFrame, collections.Counter[str]]:
    """The rows to predict, and how many were left out for what."""
    labels = pathlib.Path(__file__).with_name("serving_without_speculation.txt").read_text().splitlines()
    plain_ids = {line for line in labels if line and not line.startswith("#")}
    rows = pd.read_csv(package / "systems" / "silicon_sample.csv")
    reasons = pd.Series([reason_left_out(row, plain_ids) for row in rows.itertuples()], index=rows.index)
    measured = [name for name in rows.columns if name not in ("id", "silicon_data_source")]
    reasons[(reasons == "") & rows.duplicated(measured)] = "an exact copy"
    left_out = collections.Counter(reasons[reasons != ""])
    points = rows[reasons == ""].reset_index(drop=True)
    layout = ["model_path", "system", "backend", "gemm_quant_mode", "tp_size"]
    points["deployment"] = [" ".join(map(str, values)) for values in points[layout].itertuples(index=False)]
    return points, left_out


def configuration(package: pathlib.Path, model: str) -> pathlib.Path:
    name = CONFIGURATIONS.get(model, model).replace("/", "--")
    return package / "model_configs" / f"{name}_config.json"


def common_options(package: pathlib.Path, row: Any, kernels: bool) -> list[str]:
    path = configuration(package, row.model_path)
    options = ["--model", str(path), "--hardware", DEVICES[row.system], "--tp", str(int(row.tp_size)), "--quiet"]
    options += ["--format", "json"]
    weights = WEIGHT_TYPES.get(row.gemm_quant_mode)
    if kernels:
        options += ["--kernel-times", ENGINES[row.backend]]
    if "gpt-oss" not in row.model_path:
        options += ["--weight-dtype", weights or "bf16"]
    if row.backend == "trtllm" and weights in ("fp8", "nvfp4"):
        options += ["--kv-cache-dtype", "fp8"]
    return options


def ask(command: list[str]) -> tuple[dict[str, Any] | None, str]:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return json.loads(run.stdout), ""
    error = run.stderr.strip().splitlines()
    return None, error[-1] if error else f"exit code {run.returncode}"


def plan_answer(specdec: str, package: pathlib.Path, row: Any, kernels: bool) -> dict[str, Any]:
    command = [specdec, "plan", "--draft-kind", "ngram", "--alpha", "0.5", "--gamma", "1"]
    command += ["--batch", f"{row.batch_size:g}", "--context", f"{row.isl + row.osl / 2:g}"]
    answer, refusal = ask(command + common_options(package, row, kernels))
    if answer is None:
        return {"refusal": refusal}
    return {"tpot_ms": 1e3 * answer["points"][0]["rows"][0]["round_seconds"]}


def capacity_answer(specdec: str, package: pathlib.Path, row: Any, kernels: bool) -> dict[str, Any]:
    constant = "aic-auto-gap-analysis" in row.silicon_data_source
    share, variation, outside = CONSTANT_LENGTHS if constant else DRAWN_LENGTHS
    command = [specdec, "capacity", "--concurrency", f"{row.batch_size:g}", "--outside-ms", str(outside)]
    command += ["--prompt-tokens", f"{share * row.isl:g}:{variation}"]
    command += ["--output-tokens", f"{share * row.osl:g}:{variation}"]
    command += ["--max-num-seqs", f"{max(256, row.batch_size):g}", "--replications", "2", "--threads", "1"]
    if row.backend == "sglang":
        command += ["--prefill-first"]
    answer, refusal = ask(command + common_options(package, row, kernels))
    if answer is None:
        return {"refusal": refusal}
    scenario = answer["scenarios"][0]
    tpot, ttft = scenario["tpot_seconds"]["mean"], scenario["ttft_seconds"]["mean"]
    if tpot["value"] is None:
        return {"refusal": "no time per output token"}
    low, high = tpot.get("ci95") or (math.nan, math.nan)
    return {
        "tpot_ms": 1e3 * tpot["value"],
        "tpot_low_ms": 1e3 * low,
        "tpot_high_ms": 1e3 * high,
        "ttft_ms": 1e3 * ttft["value"],
    }


def peer_answer(row: Any) -> dict[str, Any]:
    from aiconfigurator.cli.api import cli_estimate  # noqa: PLC0415: a package that only --peer needs

    logging.disable(logging.CRITICAL)
    path = CONFIGURATIONS.get(row.model_path, row.model_path)
    quantised = {"gemm_quant_mode": row.gemm_quant_mode, "moe_quant_mode": row.moe_quant_mode}
    if "gpt-oss" in row.model_path:
        quantised = {}
    try:
        estimate = cli_estimate(
            path,
            row.system,
            backend_name=row.backend,
            isl=int(row.isl),
            osl=int(row.osl),
            batch_size=int(row.batch_size),
            tp_size=int(row.tp_size),
            moe_tp_size=int(row.tp_size),
            moe_ep_size=1,
            **{name: value for name, value in quantised.items() if isinstance(value, str)},
        )
    except Exception as error:  # noqa: BLE001: whatever it refuses by
        return {"refusal": str(error).splitlines()[0] if str(error) else type(error).__name__}
    return {"tpot_ms": estimate.tpot, "ttft_ms": estimate.ttft}


def answers_of(points: pd.DataFrame, path: pathlib.Path, answer: Any, workers: int) -> pd.DataFrame:
    """One row per point; asks for those that the file lacks, and adds them to it."""
    known = set(pd.read_csv(path).id) if path.exists() else set()
    missing = [row for row in points.itertuples() if row.id not in known]
    if missing:
        with path.open("a", newline="") as file, concurrent.futures.ThreadPoolExecutor(workers) as pool:
            writer = csv.DictWriter(file, FIELDS)
            if not known:
                writer.writeheader()
            for row, found in zip(missing, pool.map(answer, missing)):
                writer.writerow({"id": row.id, **found})
                file.flush()
    answers = pd.read_csv(path).drop_duplicates("id")
    return points[["id"]].merge(answers, on="id", how="left")


def deployment_draws(deployments: pd.Series, draws: int = 2000) -> list[np.ndarray]:
    """Indices of points, by deployments drawn with replacement."""
    groups = [np.flatnonzero(deployments.to_numpy() == name) for name in deployments.unique()]
    random = np.random.default_rng(20261124)
    return [
        np.concatenate([groups[i] for i in random.integers(len(groups), size=len(groups))]) for _ in range(draws)
    ]


def summary(error: np.ndarray, deployments: pd.Series) -> str:
    """Signed relative errors, NaN where refused: median absolute error with its interval, 90th percentile, bias."""
    size = np.abs(np.where(np.isnan(error), 1.0, error))
    medians = [float(np.median(size[draw])) for draw in deployment_draws(deployments, 500)]
    low, high = np.quantile(medians, [0.025, 0.975])
    bias = 100 * np.nanmedian(error) if np.isfinite(error).any() else math.nan
    return (
        f"{100 * np.median(size):5.1f}% ({100 * low:4.1f} to {100 * high:4.1f})  p90 {100 * np.quantile(size, 0.9):5.1f}%"
        f"  bias {bias:+5.1f}%  refused {int(np.isnan(error).sum()):3d}"
    )


def slices_of(points: pd.DataFrame) -> dict[str, pd.Series]:
    moe = points.model_path.str.contains("DeepSeek|gpt-oss|A22B|Kimi|GLM|MiniMax|A17B")
    found = {"all": pd.Series(True, points.index), "dense": ~moe, "MoE": moe}
    for column in ("system", "backend", "model_path"):
        for value in sorted(points[column].unique()):
            found[value] = points[column] == value
    for value in sorted(points.gemm_quant_mode.fillna("bf16").unique()):
        found[value] = points.gemm_quant_mode.fillna("bf16") == value
    for low, high in ((1, 8), (9, 32), (33, 128), (129, 1 << 30)):
        found[f"batch {low} to {high}" if high < 1 << 30 else "batch beyond 128"] = points.batch_size.between(low, high)
    return found


def report(points: pd.DataFrame, answers: dict[str, pd.DataFrame]) -> None:
    print(f"{len(points)} points of {points.deployment.nunique()} deployments")
    for quantity in ("tpot", "ttft"):
        errors = {
            name: (found[f"{quantity}_ms"] / points[f"silicon_{quantity}_ms"] - 1).to_numpy()
            for name, found in answers.items()
            if found[f"{quantity}_ms"].notna().any()
        }
        print(f"\n{quantity}: median |error| (95% by deployments)")
        for label, chosen in slices_of(points).items():
            part = chosen.to_numpy()
            if not part.any():
                continue
            deployments = points.deployment[part].reset_index(drop=True)
            for name, error in errors.items():
                print(f"  {label:34} {name:10} {part.sum():5d} {summary(error[part], deployments)}")
        if "peer" not in errors:
            continue
        theirs = np.abs(np.where(np.isnan(errors["peer"]), 1.0, errors["peer"]))
        for name, error in errors.items():
            if name == "peer":
                continue
            paired = np.abs(np.where(np.isnan(error), 1.0, error)) - theirs
            medians = [float(np.median(paired[draw])) for draw in deployment_draws(points.deployment)]
            low, high = np.quantile(medians, [0.025, 0.975])
            print(f"  {name} - peer, paired: {100 * np.median(paired):+.1f} points ({100 * low:+.1f} to {100 * high:+.1f})")
    for name, found in answers.items():
        if found.tpot_low_ms.notna().any():
            inside = points.silicon_tpot_ms.between(found.tpot_low_ms, found.tpot_high_ms)
            print(f"\n{name}: the 95% interval of the time per output token holds {100 * inside.mean():.0f}% of the points")
        for reason, count in collections.Counter(found.refusal.dropna()).most_common(12):
            print(f"  {name} refused {count}: {reason[:160]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", help="folder of aiconfigurator_core [the installed one]")
    parser.add_argument("--specdec", required=True, help="the program")
    parser.add_argument("--answers", required=True, type=pathlib.Path, help="folder that answers are kept in")
    parser.add_argument("--peer", action="store_true", help="ask the installed aiconfigurator, too")
    parser.add_argument("--every", type=int, default=1, help="takes one point of so many [1]")
    parser.add_argument("--workers", type=int, default=2, help="programs that run at once [2]")
    arguments = parser.parse_args()
    package = package_folder(arguments.package)
    arguments.answers.mkdir(parents=True, exist_ok=True)
    points, left_out = read_points(package)
    points = points.iloc[:: arguments.every].reset_index(drop=True)
    for reason, count in left_out.most_common():
        print(f"left out {count}: {reason}")

    def asked(name: str, answer: Any, workers: int) -> pd.DataFrame:
        return answers_of(points, arguments.answers / f"{name}.csv", answer, workers)

    specdec, workers = arguments.specdec, arguments.workers
    answers = {
        "plan": asked("plan", lambda row: plan_answer(specdec, package, row, False), workers),
        "capacity": asked("capacity", lambda row: capacity_answer(specdec, package, row, False), workers),
        "plan-k": asked("plan-k", lambda row: plan_answer(specdec, package, row, True), workers),
        "capacity-k": asked("capacity-k", lambda row: capacity_answer(specdec, package, row, True), workers),
    }
    if arguments.peer:
        answers["peer"] = asked("peer", peer_answer, 1)
    report(points, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
