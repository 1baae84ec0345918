"""Seconds of a server's iteration by a preset of measured kernels, written down once more and on its own, and the
time per output token of N requests that are always in flight.

It follows docs/theory.md#measured-kernels and reads the presets and Hugging Face configurations, nothing of the program,
whose plain rounds predict_serving.py holds against it.
"""

from __future__ import annotations

import json
import math
import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np

PRESETS = pathlib.Path(__file__).resolve().parents[2] / "analysis" / "cost" / "presets"
BITS = {"bf16": 16.0, "fp8": 8.0, "nvfp4": 4.5, "int4": 4.125, "mxfp4": 4.25}
# Types of peaks in order of preference, by the weights' type.
PEAKS = {"bf16": ("bf16",), "int4": ("bf16",), "fp8": ("fp8", "bf16"), "nvfp4": ("fp4", "bf16"), "mxfp4": ("fp4", "bf16")}
# Positions that an iteration computes at most.
BUDGET = 8192


@dataclass
class Layers:
    """Alike layers, in numbers of each: parameters, values of the cache of a token, operations of a pair, key/value heads."""

    count: int
    dense: int
    cached: int
    pair: int
    heads: int
    window: float = math.inf
    experts: int = 0
    chosen: int = 0
    expert: int = 0


@dataclass
class Model:
    kind: str
    width: int
    vocabulary: int
    layers: list[Layers]

    @property
    def depth(self) -> int:
        return sum(layers.count for layers in self.layers)


@dataclass
class Part:
    """Sequences of an iteration that compute as many positions each behind as many tokens."""

    count: float
    tokens: float
    context: float


def read_model(path: pathlib.Path) -> Model | None:
    """The model of a config.json; None for a type that is not written down here."""
    c = json.loads(path.read_text())
    c = c.get("text_config", c)
    kind, width, depth, heads = c["model_type"], c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"]
    if kind in ("deepseek_v3", "kimi_k2"):
        queries, kept, rotary = c["q_lora_rank"], c["kv_lora_rank"], c["qk_rope_head_dim"]
        content, value, hidden = c["qk_nope_head_dim"], c["v_head_dim"], c["moe_intermediate_size"]
        attention = width * queries + queries * heads * (content + rotary) + width * (kept + rotary)
        attention += kept * heads * (content + value) + heads * value * width
        latent = {"cached": kept + rotary, "pair": 2 * heads * (2 * kept + rotary), "heads": 1}
        first, experts = c["first_k_dense_replace"], c["n_routed_experts"]
        shared = attention + width * experts + 3 * width * hidden * c["n_shared_experts"]
        chosen = {"experts": experts, "chosen": c["num_experts_per_tok"], "expert": 3 * width * hidden}
        layers = [
            Layers(first, attention + 3 * width * c["intermediate_size"], **latent),
            Layers(depth - first, shared, **latent, **chosen),
        ]
        return Model(kind, width, c["vocab_size"], layers)
    kept, size = c.get("num_key_value_heads", heads), c.get("head_dim") or width // heads
    attention = width * (heads + 2 * kept) * size + heads * size * width
    cache = {"cached": 2 * kept * size, "pair": 4 * heads * size, "heads": kept}
    if kind in ("llama", "qwen3"):
        layers = [Layers(depth, attention + 3 * width * c["intermediate_size"], **cache)]
    elif kind in ("qwen3_moe", "minimax_m2"):
        many = c.get("num_experts") or c["num_local_experts"]
        expert = 3 * width * (c.get("moe_intermediate_size") or c["intermediate_size"])
        experts = {"experts": many, "chosen": c["num_experts_per_tok"], "expert": expert}
        layers = [Layers(depth, attention + width * many, **cache, **experts)]
    elif kind == "gpt_oss":
        inner = c["intermediate_size"]
        experts = {"experts": c["num_local_experts"], "chosen": c["num_experts_per_tok"]}
        expert = 3 * width * inner + 2 * inner + width
        dense = attention + width * c["num_local_experts"]
        windows = (float(c["sliding_window"]), math.inf)
        layers = [Layers(depth // 2, dense, **cache, window=window, **experts, expert=expert) for window in windows]
    else:
        return None
    return Model(kind, width, c["vocab_size"], layers)


def rounded(times: dict[str, float], read: float, computed: float) -> float:
    a, b, corner = read / times["bandwidth_share"], computed / times["peak_share"], times["corner"]
    return max(a, b) * ((a / max(a, b)) ** corner + (b / max(a, b)) ** corner) ** (1 / corner)


def pairs(tokens: float, context: float, window: float) -> float:
    below = min(max(window - context, 0.0), tokens)
    return below * context + below * (below + 1) / 2 + ((tokens - below) * window if below < tokens else 0.0)


class Server:
    """Kernels of an engine and a model on accelerators that share it. Seconds are None where these were not measured."""

    def __init__(
        self,
        device: str,
        kernels: dict[str, Any],
        model: Model,
        shared: int,
        weights: str,
        cache: str,
        groups: int = 1,
        parts: int = 1,
    ) -> None:
        """@param groups  each of `shared` accelerators, with its own sequences  @param parts  divide the experts"""
        described = json.loads((PRESETS / "hardware" / f"{device}.json").read_text())
        self.bandwidth = described["memory_bandwidth_bytes_per_second"]["value"]
        self.peaks = {name: peak["value"] for name, peak in described["peak_flops"].items()}
        self.kernels, self.model, self.shared, self.cache = kernels, model, shared, cache
        self.groups, self.parts = groups, parts
        # gpt-oss leaves all but its experts as they were.
        self.experts = "mxfp4" if model.kind == "gpt_oss" else weights
        self.dense = "bf16" if model.kind == "gpt_oss" else weights

    def peak(self, kind: str) -> float:
        return next(self.peaks[name] for name in PEAKS[kind] if name in self.peaks)

    @staticmethod
    def collective(table: dict[str, Any], size: float) -> float:
        sizes, seconds = table["bytes"], table["seconds"]
        if size >= sizes[-1]:
            return seconds[-1] * size / sizes[-1]
        return math.exp(np.interp(math.log(size), np.log(sizes), np.log(seconds)))

    def all_reduce(self, size: float) -> float | None:
        table = next((one for one in self.kernels["all_reduces"] if one["accelerators"] == self.shared), None)
        return None if table is None else self.collective(table, size)

    def all_to_all(self, positions: float, chosen: int) -> float:
        """Seconds for a group's positions, over all accelerators; by those of as many, else of the nearest fewer."""
        many = self.shared * self.groups
        table = min(self.kernels["all_to_alls"], key=lambda one: (one["accelerators"] > many, abs(one["accelerators"] - many)))
        reached = many * (1 - (1 - 1 / self.parts) ** chosen)
        return self.collective(table, positions * self.model.width * 2 / self.shared * reached)

    def of_group(self, part: Part) -> Part:
        """The share of the group that has most of it."""
        return Part(max(part.count / self.groups, min(part.count, 1)), part.tokens, part.context)

    def products(self, positions: float, headed: float) -> float:
        model, t, kind = self.model, self.shared, self.dense
        times = self.kernels["products"].get(kind, self.kernels["products"]["bf16"])
        reached = times["bandwidth_share"] * self.bandwidth
        head = model.vocabulary * model.width
        body = sum(layers.count * layers.dense for layers in model.layers)
        operations = (2 * body * positions + 2 * head * headed) / t / self.peak(kind)
        total = rounded(times, (body + head) * BITS[kind] / 8 / t / self.bandwidth, operations)
        total += times["call_seconds"] + headed * (model.vocabulary / t + model.width) * 2 / reached
        for layers in model.layers:
            # Sides of products, and of gates, rotations and two norms with residuals between them.
            sides = 2 * layers.dense / model.width / t + 12 * model.width
            total += layers.count * (4 * times["call_seconds"] + positions * sides * 2 / reached)
        return total

    def routed(self, positions: float) -> float:
        """@param positions  those of all groups"""
        model, kind, total = self.model, self.experts, 0.0
        t, busiest = self.shared * self.groups, self.parts**0.4
        for layers in (one for one in model.layers if one.experts > 0):
            times = self.kernels["experts"].get(kind) or self.kernels["experts"]["bf16"]
            missed = positions ** times["routing"] * math.log1p(-layers.chosen / layers.experts)
            read = -math.expm1(missed) * layers.experts * layers.expert * BITS[kind] / 8 / t / self.bandwidth
            computed = 2 * positions * layers.chosen * layers.expert / t / self.peak(kind) * busiest
            moved = positions * layers.chosen / self.parts * busiest * 2
            moved *= layers.expert / model.width * self.parts / t + 2 * model.width
            moved /= times["bandwidth_share"] * self.bandwidth
            total += layers.count * (times["call_seconds"] + rounded(times, read, computed) + moved)
        return total

    def attention(self, parts: list[Part]) -> float:
        times = self.kernels["attention"].get(self.cache) or self.kernels["attention"]["bf16"]
        read = computed = total = 0.0
        for part in parts:
            for layers in self.model.layers:
                held = -(-layers.heads // self.shared)
                seen = min(part.context + part.tokens, layers.window) * layers.cached * held / layers.heads
                read += layers.count * part.count * seen * BITS[self.cache] / 8 / self.bandwidth
                looked = pairs(part.tokens, part.context, layers.window) * layers.pair
                computed += layers.count * part.count * looked / self.shared / self.peak("bf16")
                total += layers.count * (times["floor_seconds"] + part.count * held * times["sequence_seconds"])
        return total + max(read / times["bandwidth_share"], computed / times["peak_share"])

    def seconds(self, parts: list[Part], headed: float) -> float | None:
        """Seconds of the kernels of an iteration."""
        routed = sum(part.count * part.tokens for part in parts)
        own = [self.of_group(part) for part in parts]
        positions = sum(part.count * part.tokens for part in own)
        reduced: float | None = 0.0
        if self.shared > 1:
            reduced = self.all_reduce(positions * 2 * self.model.width)
        if reduced is None:
            return None
        total = self.products(positions, headed * sum(part.count for part in own) / sum(part.count for part in parts))
        served, prompts = self.kernels["serving"], sum(part.count * part.tokens for part in own if part.tokens > 1)
        total += self.routed(routed) * (1 + prompts / positions * (served.get("prompt_experts", 1) - 1))
        total += self.attention(own)
        travelling = [layers for layers in self.model.layers if layers.experts > 0 and self.groups > 1]
        total += sum(2 * layers.count * self.all_to_all(positions, layers.chosen) for layers in travelling)
        total += (2 * self.model.depth - sum(layers.count for layers in travelling)) * reduced
        if prompts == 0:
            return total
        return max(total, self.model.depth * served.get("prompt_layer_seconds", 0) - self.constants(headed))

    def seconds_per_token(self, requests: float, prompt: float, output: float) -> float | None:
        """Kernels' seconds, in the mean over the output of requests that are always so many: the iterations that each
        token takes, the prompts of the others that begin meanwhile, in pieces of BUDGET positions with the rounds."""
        context = prompt + output / 2
        plain = self.seconds([Part(requests, 1, context)], requests)
        if plain is None:
            return None
        others = max(requests - 1, 1.0)
        begun = max(requests - 1, 0.0) / output
        at_once = max(1.0, begun)
        delay = done = 0.0
        while done < prompt:
            piece = min(BUDGET / at_once, prompt - done)
            parts = [Part(others, 1, context), Part(at_once, piece, done)]
            delay += ((self.seconds(parts, others + at_once) or 0.0) - plain) / at_once
            done += piece
        return plain + begun * delay

    def constants(self, requests: float) -> float:
        """Seconds of an iteration beside its kernels."""
        adds = self.kernels["serving"]
        beside = self.model.depth * adds["layer_seconds"] + adds["iteration_seconds"]
        return beside + max(requests / self.groups, min(requests, 1)) * adds["sequence_seconds"]
