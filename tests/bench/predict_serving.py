#!/usr/bin/env python3
"""Holds the times per output token and to the first token that specdec prices against measured serving.

The measurements are silicon_sample.csv of the PyPI package aiconfigurator-core 0.12.0 (Apache-2.0): points of
deployments (engine, model, device, precision, layout) by prompt length, output length and concurrency. They stay in
that package; nothing of them is kept here but the rows in serving_without_speculation.txt that are known to have run
without a next-token module, by the history of the published configurations.

  pip install aiconfigurator-core==0.12.0 pandas scipy    # and aiconfigurator==0.12.0 for --peer
  tests/bench/predict_serving.py --specdec build/release/specdec --answers /tmp/answers --peer

Each row is answered by

  plan       a plain round at batch = concurrency and context = prompt + output / 2
  capacity   the means that clients of --concurrency report, with lengths as the row's client draws them
  plan-r, capacity-r   the same with --kernel-times none, by the roofline
  plan-k, capacity-k   the same with --kernel-times of the row's engine
  left out   that engine's kernels by serving_formula.py, with the prompts of requests that are always in flight, and
             seconds of layers, iterations and sequences that were fitted to other deployments of the engine: of ten
             parts of them the constants of each come from the other nine
  peer       aiconfigurator's estimate of the aggregated server (--peer)

The constants that all deployments give are printed; those of scripts/kernel_presets.py are of a part of the rows, which
it names. Each device and each model is held with constants of the others, too (--priced --formula). Of `left out` the
share of points is printed that its errors' deviations hold, before and after one point of the deployment calibrated it,
and how alike its errors of one deployment are by numbers of requests; of published speedups how many the intervals of
plan hold. Answers are kept in DIR/NAME.csv and asked for only where missing: remove the files of specdec after a
change. A row that a program refuses counts as a miss of 100%. Errors are |predicted / measured - 1|; intervals of
medians and of paired differences resample whole deployments.
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
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from serving_formula import PRESETS, Part, Server, read_model

# Engines' names of the types of weights; gpt-oss keeps what its file says (mxfp4 experts, the rest bf16).
WEIGHT_TYPES = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "int4_wo": "int4"}
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
DEVICES = {
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "gb200": "gb200",
    "b300_sxm": "b300",
    "gb300": "gb300",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
# Rows that name a model whose configuration the package has under another name of the same weights' shape.
CONFIGURATIONS = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
    "zhipuai/GLM-5": "zai-org/GLM-5",
}
# Models for which a server may have run the next-token module, which the rows do not say.
WITH_NEXT_TOKEN_MODULE = ("deepseek", "GLM", "Kimi", "MiniMax", "Qwen3.5")
ACCELERATORS_PER_NODE = 8
# Share of the nominal length and standard deviation over the mean. InferenceX's client draws both lengths evenly from 0.8
# of the nominal one up to it. The others' lengths are constant, so that their requests stay in step, which a way between
# two would end: the measured times say that they do.
DRAWN_LENGTHS = (0.9, 0.064)
CONSTANT_LENGTHS = (1.0, 0)
# Milliseconds beside the engine of InferenceX's requests, fitted to times to first token. Its SGLang takes up what came
# only after some iterations (--scheduler-recv-interval).
OUTSIDE_MS = {"vllm": 20, "trtllm": 20, "sglang": 180}
# Rows of published_rounds.csv beside plain rounds on devices with kernels: target, draft, device, accelerators.
# SpecBundle does not print the last: the number whose plain rounds are nearest.
PUBLISHED = {
    "specbundle Llama-3.1-8B-Instruct": ("llama-3.1-8b", "eagle3-llama-3.1-8b", "h200-sxm", 1),
    "specbundle Llama-3.3-70B-Instruct": ("llama-3.3-70b", "eagle3-llama-3.3-70b", "h200-sxm", 4),
    "specbundle Qwen3-30B-A3B-Instruct-2507": ("qwen3-30b-a3b", "eagle3-qwen3-30b-a3b", "h200-sxm", 4),
    "specbundle Qwen3-235B-A22B-Instruct-2507": ("qwen3-235b-a22b", "eagle3-qwen3-235b-a22b", "h200-sxm", 8),
    "specbundle Kimi-K2-Instruct": ("kimi-k2", "eagle3-kimi-k2", "h200-sxm", 8),
    "vllm 16035": ("llama-3.1-8b", "eagle3-llama-3.1-8b", "h100-sxm", 1),
}
FIELDS = ["id", "tpot_ms", "tpot_low_ms", "tpot_high_ms", "ttft_ms", "ttft_low_ms", "ttft_high_ms", "refusal"]


def package_folder(given: str | None) -> pathlib.Path:
    if given:
        return pathlib.Path(given)
    return pathlib.Path(str(importlib.resources.files("aiconfigurator_core")))


def reason_left_out(row: Any, plain_ids: set[str]) -> str:
    """Why a row cannot be asked or its label is uncertain; empty where neither."""
    if row.mode != "agg":
        return "prefill and decode apart"
    if row.shared * row.groups % row.parts != 0:
        return "sizes that contradict each other"
    if row.shared > ACCELERATORS_PER_NODE:
        return "more accelerators than a node"
    if any(name in row.model_path for name in WITH_NEXT_TOKEN_MODULE) and row.id not in plain_ids:
        return "unknown whether it speculated"
    return ""


# Sizes as an id has them: requests in flight, accelerators, parts of the experts.
SIZES = re.compile(r"_c(?P<requests>\d+)_tp(?P<shared>\d+)(?:_0)?_ep(?P<parts>\d+)(?:_0)?_\d+$")


def with_layout(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds requests in flight, accelerators that share layers, groups of these, and parts of the experts.

    Sizes are those of the id where it has them, since the columns multiply them in some dumps: tp of a server
    that attends to sequences in groups is their number. Requests of the columns are those of a group.
    """
    found = rows.id.str.extract(SIZES).astype(float)
    by_id = found.requests.notna() & ((rows.attention_dp_size > 1) | (rows.moe_ep_size > 1))
    in_groups = by_id & (rows.attention_dp_size > 1) & (rows.tp_size == 1)
    rows = rows.assign(
        requests=rows.batch_size * rows.attention_dp_size.fillna(1).clip(lower=1),
        shared=rows.tp_size,
        groups=rows.attention_dp_size.fillna(1).clip(lower=1),
        parts=rows.moe_ep_size.clip(lower=1),
    )
    rows.loc[by_id, "requests"] = found.requests[by_id]
    rows.loc[by_id, "shared"] = found.shared[by_id].where(~in_groups, 1)
    rows.loc[by_id, "groups"] = found.shared[by_id].where(in_groups, 1)
    rows.loc[by_id, "parts"] = found.parts[by_id]
    # Layouts that columns leave open have whole experts on one server.
    rows["parts"] = rows.parts.where(~rows.model_path.str.contains("Qwen3-32B|Llama|llama"), 1).fillna(1)
    return rows


def read_points(package: pathlib.Path) -> tuple[pd.DataFrame, collections.Counter[str]]:
    """The rows to predict, and how many were left out for what."""
    labels = pathlib.Path(__file__).with_name("serving_without_speculation.txt").read_text().splitlines()
    plain_ids = {line for line in labels if line and not line.startswith("#")}
    rows = with_layout(pd.read_csv(package / "systems" / "silicon_sample.csv"))
    reasons = pd.Series([reason_left_out(row, plain_ids) for row in rows.itertuples()], index=rows.index)
    # The same measurement is there with several readings of its sizes.
    measured = ["model_path", "system", "backend", "gemm_quant_mode", "mode", "isl", "osl", "requests", "shared", "groups"]
    measured += ["parts", "silicon_ttft_ms", "silicon_tpot_ms"]
    reasons[(reasons == "") & rows[reasons == ""].duplicated(measured).reindex(rows.index, fill_value=False)] = "an exact copy"
    left_out = collections.Counter(reasons[reasons != ""])
    points = rows[reasons == ""].reset_index(drop=True)
    layout = ["model_path", "system", "backend", "gemm_quant_mode", "mode", "shared", "groups", "parts"]
    points["deployment"] = [" ".join(map(str, values)) for values in points[layout].itertuples(index=False)]
    return points, left_out


def configuration(package: pathlib.Path, model: str) -> pathlib.Path:
    name = CONFIGURATIONS.get(model, model).replace("/", "--")
    return package / "model_configs" / f"{name}_config.json"


def cache_type(row: Any) -> str:
    quantised = row.backend == "trtllm" and WEIGHT_TYPES.get(row.gemm_quant_mode) in ("fp8", "nvfp4")
    return "fp8" if quantised else "bf16"


def common_options(package: pathlib.Path, row: Any, kernels: str | None) -> list[str]:
    path = configuration(package, row.model_path)
    options = ["--model", str(path), "--hardware", DEVICES[row.system], "--tp", str(int(row.shared)), "--quiet"]
    if row.groups > 1:
        options += ["--dp", str(int(row.groups))]
    if row.parts > 1:
        options += ["--ep", str(int(row.parts))]
    options += ["--format", "json"]
    weights = WEIGHT_TYPES.get(row.gemm_quant_mode)
    if kernels is not None:
        options += ["--kernel-times", kernels]
    if "gpt-oss" not in row.model_path:
        options += ["--weight-dtype", weights or "bf16"]
    if cache_type(row) != "bf16":
        options += ["--kv-cache-dtype", cache_type(row)]
    return options


def ask(command: list[str]) -> tuple[dict[str, Any] | None, str]:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return json.loads(run.stdout), ""
    error = run.stderr.strip().splitlines()
    return None, error[-1] if error else f"exit code {run.returncode}"


def plan_answer(specdec: str, package: pathlib.Path, row: Any, kernels: str | None = None) -> dict[str, Any]:
    command = [specdec, "plan", "--draft-kind", "ngram", "--alpha", "0.5", "--gamma", "1"]
    command += ["--batch", f"{row.requests:g}", "--context", f"{row.isl + row.osl / 2:g}"]
    answer, refusal = ask(command + common_options(package, row, kernels))
    return {"refusal": refusal} if answer is None else {"tpot_ms": 1e3 * answer["points"][0]["rows"][0]["round_seconds"]}


def capacity_answer(specdec: str, package: pathlib.Path, row: Any, kernels: str | None = None) -> dict[str, Any]:
    constant = "aic-auto-gap-analysis" in row.silicon_data_source
    share, variation = CONSTANT_LENGTHS if constant else DRAWN_LENGTHS
    outside = 0 if constant else OUTSIDE_MS[row.backend]
    command = [specdec, "capacity", "--concurrency", f"{row.requests:g}", "--outside-ms", str(outside)]
    command += ["--prompt-tokens", f"{share * row.isl:g}:{variation}"]
    command += ["--output-tokens", f"{share * row.osl:g}:{variation}"]
    command += ["--max-num-seqs", f"{max(256, row.requests):g}", "--replications", "2", "--threads", "1"]
    if row.backend == "sglang":
        command += ["--prefill-first"]
    answer, refusal = ask(command + common_options(package, row, kernels))
    if answer is None:
        return {"refusal": refusal}
    scenario = answer["scenarios"][0]
    tpot, ttft = scenario["tpot_seconds"]["mean"], scenario["ttft_seconds"]["mean"]
    if tpot["value"] is None:
        return {"refusal": "no time per output token"}
    found = {}
    for name, time in (("tpot", tpot), ("ttft", ttft)):
        low, high = time.get("ci95") or (math.nan, math.nan)
        # Without an upper end the queue grows in some world.
        ends = (low, math.inf if high is None else high)
        found |= {f"{name}_ms": 1e3 * time["value"], f"{name}_low_ms": 1e3 * ends[0], f"{name}_high_ms": 1e3 * ends[1]}
    return found


def server_of(package: pathlib.Path, row: Any, engine: str) -> Server | None:
    """With the engine's kernels, of a row whose model and device the formula knows."""
    path, preset = configuration(package, row.model_path), PRESETS / "kernels" / f"{DEVICES[row.system]}.json"
    model = read_model(path) if path.exists() else None
    if model is None or not preset.exists():
        return None
    kernels = json.loads(preset.read_text())["engines"][engine]
    weights = WEIGHT_TYPES.get(row.gemm_quant_mode) or "bf16"
    sizes = {"groups": int(row.groups), "parts": int(row.parts)}
    return Server(DEVICES[row.system], kernels, model, int(row.shared), weights, cache_type(row), **sizes)


def constants_of(points: pd.DataFrame, alone: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Seconds of a layer, an iteration and a sequence, >= 0, that explain ln(measured); deployments count alike."""
    measured = np.log(1e-3 * points.silicon_tpot_ms.to_numpy())
    weight = points.groupby("deployment").id.transform("size").to_numpy() ** -0.5
    return least_squares(
        lambda x: weight * (np.log(alone + parts @ x) - measured) / 0.1,
        [1e-5] * parts.shape[1],
        bounds=(0, np.inf),
        loss="soft_l1",
        x_scale=1e-5,
    ).x


def seconds_and_parts(package: pathlib.Path, points: pd.DataFrame, plain: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of a token's kernels by the formula, NaN where it prices none, and how often each constant is in it.

    @param plain  the program's plain rounds, which the formula must reproduce
    """
    servers = [server_of(package, row, ENGINES[row.backend]) for row in points.itertuples()]
    seconds, layers, difference = np.full(len(points), math.nan), np.full(len(points), math.nan), 0.0
    for i, (server, row) in enumerate(zip(servers, points.itertuples())):
        if server is None:
            continue
        seconds[i] = server.seconds_per_token(row.requests, row.isl, row.osl) or math.nan
        layers[i] = server.model.depth
        if math.isfinite(plain.tpot_ms[i]):
            decoding = server.seconds([Part(row.requests, 1, row.isl + row.osl / 2)], row.requests) or math.nan
            decoding += server.constants(row.requests)
            difference = max(difference, abs(1e-3 * plain.tpot_ms[i] / decoding - 1))
    print(f"formula and program: plain rounds differ by {difference:.0e} at most")
    return seconds, np.column_stack([layers, np.ones(len(points)), points.requests / points.groups])


def predicted_without(points: pd.DataFrame, seconds: np.ndarray, parts: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Seconds of a token with constants that were fitted to the engine's points of other groups; NaN where none are."""
    predicted = np.full(len(points), math.nan)
    for engine in sorted(points.backend.unique()):
        known = (points.backend == engine).to_numpy() & np.isfinite(seconds)
        for one in np.unique(group[known]):
            given, asked = known & (group != one), known & (group == one)
            if given.any():
                predicted[asked] = seconds[asked] + parts[asked] @ constants_of(points[given], seconds[given], parts[given])
    return predicted


def fold_of(points: pd.DataFrame, folds: int = 10) -> np.ndarray:
    """For each point one of so many parts of the deployments."""
    names = np.array(sorted(points.deployment.unique()), dtype=object)
    np.random.default_rng(20261124).shuffle(names)
    return points.deployment.map({name: i % folds for i, name in enumerate(names)}).to_numpy()


def left_out_answers(points: pd.DataFrame, seconds: np.ndarray, parts: np.ndarray) -> pd.DataFrame:
    for engine in sorted(points.backend.unique()):
        known = (points.backend == engine).to_numpy() & np.isfinite(seconds)
        constants = 1e6 * constants_of(points[known], seconds[known], parts[known])
        print(f"{engine}: {constants[0]:.1f} us of a layer, {constants[1]:.0f} of an iteration, {constants[2]:.1f} of a sequence")
    tpot = 1e3 * predicted_without(points, seconds, parts, fold_of(points))
    nothing = {name: math.nan for name in FIELDS[2:]}
    return points[["id"]].assign(tpot_ms=tpot, **nothing)


def report_unseen(points: pd.DataFrame, seconds: np.ndarray, parts: np.ndarray) -> None:
    """For points that the formula prices with constants of other deployments, devices and models: errors, and the
    share that 1.96 deviations of kernel_presets.py hold."""
    half = 1.96 * math.hypot(0.25, 0.09)
    groups = {"deployments": fold_of(points), "devices": points.system.to_numpy(), "models": points.model_path.to_numpy()}
    for what, group in groups.items():
        print(f"\nconstants of other {what}")
        error = predicted_without(points, seconds, parts, group) / (1e-3 * points.silicon_tpot_ms.to_numpy()) - 1
        for label, chosen in slices_of(points).items():
            part = chosen.to_numpy() & np.isfinite(error)
            if part.any() and (what == "deployments" or label == "all" or label in group):
                deployments = points.deployment[part].reset_index(drop=True)
                held = 100 * np.mean(np.abs(np.log1p(error[part])) < half)
                print(
                    f"  {label:34} {part.sum():5d} of {deployments.nunique():3d} deployments"
                    f" {summary(error[part], deployments)}  held {held:.1f}%"
                )


def report_engines(package: pathlib.Path, points: pd.DataFrame) -> None:
    """Predictions by one engine's kernels and constants for the deployments of the others.

    @param points  those that the formula prices
    """
    print("\nkernels and constants of an engine on the other engines' points")
    for backend, engine in ENGINES.items():
        others = points[points.backend != backend].reset_index(drop=True)
        error = np.full(len(others), math.nan)
        for i, row in enumerate(others.itertuples()):
            server = server_of(package, row, engine)
            seconds = server and server.seconds_per_token(row.requests, row.isl, row.osl)
            if seconds:
                error[i] = 1e3 * (seconds + server.constants(row.requests)) / row.silicon_tpot_ms - 1
        print(f"  {engine:14} {len(others):5d} {summary(error, others.deployment)}")


def report_intervals(
    points: pd.DataFrame, answers: pd.DataFrame, reach: float = 1.2, reach_of_contexts: float = 0.3
) -> None:
    """Shares of points within 1.96 deviations, and of the others of a deployment given one point, where errors at two
    numbers of requests and contexts are as alike as their ratios to the power -1 / reach, or not alike."""
    known = points.assign(error=np.log(points.silicon_tpot_ms / answers.tpot_ms))
    known = known[np.isfinite(known.error)]
    groups = [
        (g.error.to_numpy(), np.log(g.requests.to_numpy()), np.log(g.isl.to_numpy() + g.osl.to_numpy() / 2 + 500))
        for _, g in known.groupby("deployment")
        if len(g) > 1
    ]
    print("\ndeviation of deployments and points, alike: held, held after one point calibrated, mean width then / before")
    for between, around, alike in ((0.2, 0.09, True), (0.25, 0.09, False), (0.25, 0.09, True), (0.25, 0.12, True)):
        random = np.random.default_rng(20261124)
        before = math.hypot(between, around)
        inside, widths = [], []
        for errors, place, context in groups:
            for one in random.integers(len(errors), size=20):
                apart = np.abs(place - place[one]) / reach + np.abs(context - context[one]) / reach_of_contexts
                shared = between**2 + (around**2 * np.exp(-np.delete(apart, one)) if alike else 0 * apart[1:])
                gain = shared / (before**2 + 0.03**2)
                half = 1.96 * np.sqrt(before**2 - gain * shared)
                inside.extend(np.abs(np.delete(errors, one) - gain * errors[one]) < half)
                widths.extend(half / (1.96 * before))
        print(
            f"  {between:.2f} {around:.2f} {alike}: {100 * (known.error.abs() < 1.96 * before).mean():.1f}%"
            f"  {100 * np.mean(inside):.1f}%  {np.mean(widths):.2f}"
        )


def report_likeness(points: pd.DataFrame, answers: pd.DataFrame, reach: float = 1.2, around: float = 0.09) -> None:
    """Differences of a deployment's errors between numbers of requests, where prompts are no longer than answers; the
    shares within 1.96 deviations that the reach of their likeness gives, 0 for none."""
    known = points.assign(error=np.log(points.silicon_tpot_ms / answers.tpot_ms))
    known = known[np.isfinite(known.error) & (known.isl <= 1.01 * known.osl)]
    pairs = []
    for _, group in known.groupby(["deployment", "backend_version", "isl", "osl"], dropna=False):
        errors = group.groupby("requests").error.median()
        one, other = np.triu_indices(len(errors), 1)
        apart = np.abs(np.log(errors.index.to_numpy()[one] / errors.index.to_numpy()[other]))
        difference = np.abs(errors.to_numpy()[one] - errors.to_numpy()[other])
        pairs.append(pd.DataFrame({"deployment": group.deployment.iloc[0], "apart": apart, "difference": difference}))
    found = pd.concat(pairs)
    print("\nerrors of one deployment, between numbers of requests of a ratio")
    for low, high in ((1.7, 2.3), (3.5, 4.5), (7, 9), (1.7, 9)):
        part = found[found.apart.between(math.log(low), math.log(high))]
        weight = 1 / part.groupby("deployment").difference.transform("size")
        root = math.sqrt(np.average(part.difference**2, weights=weight))
        line = f"  {low} to {high}: {len(part)} pairs of {part.deployment.nunique()} deployments, deviation {root:.3f}"
        for likeness in (0, reach):
            alike = np.exp(-part.apart / likeness) if likeness else 0 * part.apart
            half = 1.96 * around * np.sqrt(2 * (1 - alike))
            held = np.average(part.difference < half, weights=weight)
            line += f"; reach {likeness}: half-width {np.average(half, weights=weight):.3f}, holds {100 * held:.1f}%"
        print(line)


def report_replicas(points: pd.DataFrame, answers: pd.DataFrame) -> None:
    """Replicas that hold a load of requests in flight within a limit on the time per output token: the limit is a
    measured time, the load four, eight or sixteen times the requests that it was measured at, and both curves are
    linear in logarithms between the numbers of requests that were measured. A prediction that no number of replicas
    meets the limit is a miss."""
    known = points.assign(predicted=answers.tpot_ms)
    known = known[np.isfinite(known.predicted)]
    found = []
    for _, group in known.groupby(["deployment", "backend_version", "isl", "osl"], dropna=False):
        curve = group.groupby("requests")[["silicon_tpot_ms", "predicted"]].median()
        requests = np.log(curve.index.to_numpy(dtype=float))
        measured, predicted = (np.maximum.accumulate(np.log(curve[name].to_numpy())) for name in curve)
        for i in range(1, len(curve) - 1):
            carried = math.exp(np.interp(measured[i], predicted, requests)) if measured[i] >= predicted[0] else 0.0
            for true in (4, 8, 16):
                said = math.ceil(true * math.exp(requests[i]) / carried - 1e-9) if carried else math.inf
                found.append((group.deployment.iloc[0], true, said - true))
    replicas = pd.DataFrame(found, columns=["deployment", "true", "off"])
    print("\nreplicas that hold a load within a limit on the time per output token")
    for true, part in replicas.groupby("true"):
        within = part.off.abs() <= 1
        print(
            f"  {true}: {len(part)} limits of {part.deployment.nunique()} deployments, within one {100 * within.mean():.0f}%"
            f" ({100 * within.groupby(part.deployment).mean().mean():.0f}% where deployments count alike), too few"
            f" {100 * (part.off < -1).mean():.0f}%, none {100 * np.isinf(part.off).mean():.0f}%"
        )


def report_speedups(specdec: str) -> None:
    """The number of published speedups that the intervals of plan hold, at equal tokens per step."""
    lines = pathlib.Path(__file__).with_name("published_rounds.csv").read_text().splitlines()
    cells = pd.DataFrame(csv.DictReader(line for line in lines if not line.startswith("#")))
    cells = cells.astype({"gamma": int, "batch": float, "output_tokens_per_second": float, "tokens_per_step": float})
    cells["seconds"] = cells.batch * cells.tokens_per_step / cells.output_tokens_per_second
    print("\npublished speedups")
    for source, (model, draft, device, shared) in PUBLISHED.items():
        found = cells[cells.source == source]
        batch = found.batch.iloc[0]
        command = [specdec, "plan", "--alpha", "0.7", "--hardware", device, "--model", model, "--draft-model", draft]
        command += ["--draft-kind", "eagle", "--tp", str(shared), "--batch", f"{batch:g}", "--context", "600"]
        answer, refusal = ask([*command, "--max-gamma", "8", "--format", "json", "--quiet"])
        if answer is None:
            print(f"  {source}: {refusal}")
            continue
        priced = {row["gamma"]: row for row in answer["points"][0]["rows"]}
        held, width, error = [], [], []
        for _, one in found[found.batch == batch].groupby("deployment"):
            plain = one[one.gamma == 0].seconds
            for cell in one[one.gamma > 0].itertuples() if len(plain) else ():
                row = priced[cell.gamma]
                speedup = row["tokens_per_step"]["value"] * plain.iloc[0] / cell.seconds
                low, high = row["speedup"]["ci95"]
                held.append(low <= speedup <= high)
                width.append(math.log(high / low) / 2)
                error.append(math.log(speedup / row["speedup"]["value"]))
        print(
            f"  {source}: {sum(held)} of {len(held)} held, half-width of ln {np.mean(width):.2f}"
            f", ln(measured / priced) {np.min(error):+.2f} to {np.max(error):+.2f}"
        )


def peer_types(row: Any) -> dict[str, str]:
    """The peer's names of the types of a row. Its plain "fp8" scales activations anew at every product, which servers of
    a checkpoint in fp8 do not: DeepSeek and Qwen's FP8 have scales by block, the others fixed ones. gpt-oss keeps what
    its file says."""
    if "gpt-oss" in row.model_path or not isinstance(row.gemm_quant_mode, str):
        return {}
    products = row.gemm_quant_mode
    if products == "fp8":
        by_block = "deepseek" in row.model_path or row.model_path.startswith("Qwen/") and "FP8" in row.model_path
        products = "fp8_block" if by_block else "fp8_static"
    types = {"gemm_quant_mode": products, "moe_quant_mode": products.replace("_static", "")}
    if cache_type(row) == "fp8":
        types["kvcache_quant_mode"] = "fp8"
    return types


def peer_answer(row: Any) -> dict[str, Any]:
    from aiconfigurator.cli.api import cli_estimate  # noqa: PLC0415: a package that only --peer needs

    logging.disable(logging.CRITICAL)
    path = CONFIGURATIONS.get(row.model_path, row.model_path)
    try:
        estimate = cli_estimate(
            path,
            row.system,
            backend_name=row.backend,
            isl=int(row.isl),
            osl=int(row.osl),
            batch_size=max(1, int(row.requests / row.groups)),
            tp_size=int(row.shared),
            attention_dp_size=int(row.groups),
            moe_tp_size=int(row.shared * row.groups / row.parts),
            moe_ep_size=int(row.parts),
            **peer_types(row),
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
        found[f"batch {low} to {high}" if high < 1 << 30 else "batch beyond 128"] = points.requests.between(low, high)
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
            both = np.isfinite(error) & np.isfinite(errors["peer"])
            for rows, part in (("all rows", np.full(len(points), True)), ("answered by both", both)):
                medians = [
                    float(np.median(paired[part][draw]))
                    for draw in deployment_draws(points.deployment[part].reset_index(drop=True))
                ]
                low, high = np.quantile(medians, [0.025, 0.975])
                print(
                    f"  {name} - peer, paired, {rows}, {part.sum()}: {100 * np.median(paired[part]):+.1f} points"
                    f" ({100 * low:+.1f} to {100 * high:+.1f})"
                )
    for name, found in answers.items():
        if found.tpot_low_ms.notna().any():
            answered = found.refusal.isna()
            held = [
                100
                * points[f"silicon_{time}_ms"][answered]
                .between(found[f"{time}_low_ms"][answered], found[f"{time}_high_ms"][answered])
                .mean()
                for time in ("tpot", "ttft")
            ]
            print(f"\n{name}: 95% intervals of times per output token and to the first hold {held[0]:.0f} and {held[1]:.0f}%")
        for reason, count in collections.Counter(found.refusal.dropna()).most_common(12):
            print(f"  {name} refused {count}: {reason[:160]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", help="folder of aiconfigurator_core [the installed one]")
    parser.add_argument("--specdec", required=True, help="the program")
    parser.add_argument("--answers", required=True, type=pathlib.Path, help="folder that answers are kept in")
    parser.add_argument("--peer", action="store_true", help="ask the installed aiconfigurator, too")
    parser.add_argument("--formula", action="store_true", help="asks for plain rounds alone, and prints what is left out")
    parser.add_argument("--priced", action="store_true", help="leave out what the program refuses, and say why")
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
    plan = asked("plan", lambda row: plan_answer(specdec, package, row), workers)
    if arguments.priced:
        for reason, count in collections.Counter(plan.refusal.dropna()).most_common():
            print(f"left out {count}: {reason[:160]}")
        points = points[plan.refusal.isna()].reset_index(drop=True)
        plan = plan[plan.refusal.isna()].reset_index(drop=True)
    by_engine = asked("plan-k", lambda row: plan_answer(specdec, package, row, ENGINES[row.backend]), workers)
    answers = {"plan": plan, "plan-k": by_engine}
    if not arguments.formula:
        answers |= {
            "capacity": asked("capacity", lambda row: capacity_answer(specdec, package, row), workers),
            "capacity-k": asked("capacity-k", lambda row: capacity_answer(specdec, package, row, ENGINES[row.backend]), workers),
            "plan-r": asked("plan-r", lambda row: plan_answer(specdec, package, row, "none"), workers),
            "capacity-r": asked("capacity-r", lambda row: capacity_answer(specdec, package, row, "none"), workers),
        }
    seconds, parts = seconds_and_parts(package, points, by_engine)
    answers["left out"] = left_out_answers(points, seconds, parts)
    if arguments.peer:
        answers["peer"] = asked("peer", peer_answer, 1)
    report(points, answers)
    report_unseen(points, seconds, parts)
    report_engines(package, points[np.isfinite(seconds)])
    report_intervals(points, answers["left out"])
    report_likeness(points, answers["left out"])
    report_replicas(points, answers["left out"])
    report_speedups(specdec)
    return 0


if __name__ == "__main__":
    sys.exit(main())
