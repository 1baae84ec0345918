#!/usr/bin/env python3
"""Measures what an accelerator takes to verify drafts: products with weights, attention of 1 to 16 positions a sequence, and
whole layers of three models, in bf16.

    scripts/measure_verification.py measure --table h100.csv        on the accelerator; PyTorch alone
    scripts/measure_verification.py fit --table h100.csv --device h100-sxm --output k.json    anywhere; pandas and SciPy
    specdec plan --kernel-times k.json --hardware h100-sxm ...

`measure` writes one row a time: seconds of a call whose data no cache holds, as the median over replays of a graph of calls on
different data. --attention names the kernel: `sdpa` is PyTorch's own; `vllm` is the FlashAttention 3 that vLLM's package brings
(the folder vllm/vllm_flash_attn of its wheel suffices), over pages of 16 tokens, scheduled as vLLM does it in graphs. Points are
visited in a random order, so that a run that --minutes ends has measured all kinds of them.

`fit` writes the form of docs/theory.md#measured-kernels and prints how far it is from the rows. What was not measured (other
types, experts, all-reduces, prompts, what an engine takes beside its kernels) is that of the engine in --base. Without one a
layer takes beside its kernels what PyTorch's did here, and the rest is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import importlib.metadata
import itertools
import json
import math
import pathlib
import random
import statistics
import sys
import time
from typing import Any, Callable, Iterator

COLUMNS = ["operation", "kernel", "model", "m", "n", "k", "batch", "queries", "context", "heads", "kv_heads", "head_dim", "seconds"]
COMMENT = "# "
OPERATIONS = ["product", "attention", "layer"]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A layer of a dense transformer."""

    name: str
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int

    def all_heads(self) -> tuple[int, int, int]:
        """Heads of queries, heads of keys and values, and the values of one."""
        return self.heads, self.kv_heads, self.head_dim

    def products(self) -> list[tuple[int, int]]:
        """(n, k) of queries with keys and values, outputs, gate with up, down."""
        attended = self.heads * self.head_dim
        return [
            (attended + 2 * self.kv_heads * self.head_dim, self.width),
            (self.width, attended),
            (2 * self.inner, self.width),
            (self.width, self.inner),
        ]


MODELS = [
    Shape("llama-3.2-1b", 2048, 32, 8, 64, 8192),
    Shape("llama-3.1-8b", 4096, 32, 8, 128, 14336),
    Shape("llama-3.3-70b", 8192, 64, 8, 128, 28672),
]
TINY = [Shape("tiny", 64, 4, 2, 16, 96)]
# Heads, key/value heads, values of one: of the models, of one without groups, and of shares of llama-3.3-70b over 4 and 8.
HEADS = [(32, 8, 128), (64, 8, 128), (32, 8, 64), (32, 32, 128), (16, 2, 128), (8, 1, 128)]
HEAD_PRODUCT = (128256, 4096)
POSITIONS = [*range(1, 17), 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 448, 512, 768, 1024, 2048]
QUERIES = [*range(1, 10), 10, 12, 14, 16]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
CONTEXTS = [512, 2048, 8192, 32768]
LAYER_CONTEXTS = [1024, 8192]
PAGE = 16
# Bytes of one pool, keys or values: larger caches are not measured.
POOL_BYTES = 6 << 30
# Data of consecutive calls, so that no cache of the device holds a call's own.
ROTATED_BYTES = 200 << 20
MOST_CALLS, FEWEST_CALLS = 64, 2
REPLAYS = 7
# Rows of a tile of attention: pairs of a position and a query head of a group.
TILE = 64
HARDWARE = pathlib.Path(__file__).resolve().parents[1] / "analysis" / "cost" / "presets" / "hardware"
# Nobody measured how servers with these kernels differ from them: as of the presets (docs/theory.md#measured-kernels).
UNKNOWN_ERRORS = {"iteration_seconds": 0, "sequence_seconds": 0, "deployment_error": 0.25, "point_error": 0.09}
# As vLLM schedules what runs in graphs, which hold up to so many positions.
GRAPH_SPLITS, GRAPH_POSITIONS = 32, 512


class Timer:
    """Median seconds of a call."""

    def __init__(self, torch: Any, device: Any):
        self.torch, self.device = torch, device

    def __call__(self, calls: list[Callable[[], Any]]) -> float:
        if self.device.type != "cuda":
            return statistics.median(self.on_host(call) for call in calls * 3)
        cuda = self.torch.cuda
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            for call in calls[:2]:
                call()
        cuda.current_stream().wait_stream(stream)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            for call in calls:
                call()
        graph.replay()
        spans = []
        for _ in range(REPLAYS):
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            spans.append((start, end))
        cuda.synchronize()
        return 1e-3 * statistics.median(start.elapsed_time(end) for start, end in spans) / len(calls)

    def on_host(self, call: Callable[[], Any]) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


def calls_over(data_bytes: float) -> int:
    return max(FEWEST_CALLS, min(MOST_CALLS, math.ceil(ROTATED_BYTES / data_bytes)))


class Cache:
    """Keys and values of many sequences, random, in one pool for all shapes of heads."""

    def __init__(self, torch: Any, device: Any, pool_bytes: int):
        self.torch, self.device = torch, device
        values = pool_bytes // 2
        self.keys, self.values = (torch.randn(values, dtype=torch.bfloat16, device=device) for _ in range(2))

    def fits(self, tokens: int, kv_heads: int, head_dim: int) -> bool:
        return tokens * kv_heads * head_dim <= len(self.keys)

    def pages(self, kv_heads: int, head_dim: int) -> tuple[Any, Any]:
        size = PAGE * kv_heads * head_dim
        count = len(self.keys) // size
        return tuple(pool[: count * size].view(count, PAGE, kv_heads, head_dim) for pool in (self.keys, self.values))

    def contiguous(self, start: int, batch: int, tokens: int, kv_heads: int, head_dim: int) -> tuple[Any, Any]:
        """batch x heads x tokens x values, from a sequence's start on."""
        size = batch * tokens * kv_heads * head_dim
        return tuple(pool[start : start + size].view(batch, tokens, kv_heads, head_dim).transpose(1, 2) for pool in (self.keys, self.values))


class SdpaAttention:
    """PyTorch's scaled dot-product attention over caches without pages."""

    name, said = "sdpa", "scaled_dot_product_attention"

    def __init__(self, torch: Any, cache: Cache):
        from torch.nn.attention.bias import causal_lower_right

        self.torch, self.cache, self.mask = torch, cache, causal_lower_right

    def calls(self, count: int, batch: int, queries: int, context: int, heads: tuple[int, int, int]) -> list[Callable[[Any], Any]]:
        """Each takes queries of (batch queries) x heads x values and gives outputs of the same shape."""
        _, kv_heads, head_dim = heads
        tokens = context + queries
        size = batch * tokens * kv_heads * head_dim
        last = len(self.cache.keys) - size
        mask = self.mask(queries, tokens) if queries > 1 else None

        def call_at(start: int) -> Callable[[Any], Any]:
            keys, values = self.cache.contiguous(start, batch, tokens, kv_heads, head_dim)

            def call(q: Any) -> Any:
                shaped = q.view(batch, queries, *q.shape[1:]).transpose(1, 2)
                out = self.torch.nn.functional.scaled_dot_product_attention(shaped, keys, values, attn_mask=mask, enable_gqa=heads[0] != kv_heads)
                return out.transpose(1, 2).reshape(q.shape)

            return call

        # Starts are whole rows of 64 values apart, so that they are aligned.
        return [call_at(min(last, i * size) // 64 * 64) for i in range(count)]


class VllmAttention:
    """vLLM's FlashAttention 3 over pages."""

    name, said = "vllm", "FlashAttention 3 of vllm"

    def __init__(self, torch: Any, cache: Cache):
        from vllm.vllm_flash_attn import flash_attn_interface

        self.torch, self.cache, self.flash = torch, cache, flash_attn_interface
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            self.said += " " + importlib.metadata.version("vllm")

    def calls(self, count: int, batch: int, queries: int, context: int, heads: tuple[int, int, int]) -> list[Callable[[Any], Any]]:
        torch, device = self.torch, self.cache.device
        query_heads, kv_heads, head_dim = heads
        tokens = context + queries
        keys, values = self.cache.pages(kv_heads, head_dim)
        pages = math.ceil(tokens / PAGE)
        used = torch.full((batch,), tokens, dtype=torch.int32, device=device)
        starts = torch.arange(0, (batch + 1) * queries, queries, dtype=torch.int32, device=device)
        most = pages * PAGE
        splits = GRAPH_SPLITS if batch * queries <= GRAPH_POSITIONS else 0
        schedule = self.flash.get_scheduler_metadata(
            batch_size=batch,
            max_seqlen_q=queries,
            max_seqlen_k=most,
            num_heads_q=query_heads,
            num_heads_kv=kv_heads,
            headdim=head_dim,
            cache_seqlens=used,
            qkv_dtype=torch.bfloat16,
            cu_seqlens_q=starts,
            page_size=PAGE,
            causal=True,
            num_splits=splits,
        )

        def call_with(table: Any) -> Callable[[Any], Any]:
            return lambda q: self.flash.flash_attn_varlen_func(
                q,
                keys,
                values,
                max_seqlen_q=queries,
                cu_seqlens_q=starts,
                max_seqlen_k=most,
                seqused_k=used,
                causal=True,
                block_table=table,
                scheduler_metadata=schedule,
                num_splits=splits,
                fa_version=3,
            )

        return [call_with(torch.randperm(len(keys), device=device)[: batch * pages].to(torch.int32).view(batch, pages)) for _ in range(count)]


ATTENTION = {kernel.name: kernel for kernel in (SdpaAttention, VllmAttention)}


class Layers:
    """Whole layers of one model: normed residuals, products, rotated queries and keys, attention."""

    def __init__(self, torch: Any, device: Any, shape: Shape, count: int):
        self.torch, self.shape = torch, shape
        self.weights = [
            [torch.randn(n, k, dtype=torch.bfloat16, device=device) / math.sqrt(k) for n, k in shape.products()] for _ in range(count)
        ]
        self.norm = torch.ones(shape.width, dtype=torch.bfloat16, device=device)
        angles = torch.outer(torch.arange(1 << 16, device=device).float(), 1e4 ** -(torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim))
        self.cos, self.sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        functional = torch.nn.functional

        def add_norm(x: Any, residual: Any, weight: Any) -> tuple[Any, Any]:
            residual = x + residual
            return functional.rms_norm(residual, (shape.width,), weight, 1e-5), residual

        def gated(x: Any) -> Any:
            gate, up = x.chunk(2, -1)
            return functional.silu(gate) * up

        def rotated(x: Any, cos: Any, sin: Any) -> Any:
            left, right = x.chunk(2, -1)
            return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)

        # Engines have fused kernels for gates and rotations, which are compiled; PyTorch has one for norms.
        fused = (lambda f: torch.compile(f, dynamic=True)) if device.type == "cuda" else (lambda f: f)
        torch._dynamo.config.cache_size_limit = 64
        self.add_norm, self.gated, self.rotated = add_norm, fused(gated), fused(rotated)

    def forward(self, x: Any, residual: Any, weights: Any, attend: Any, cos: Any, sin: Any, kept: Any, slots: Any) -> tuple[Any, Any]:
        """Outputs and residuals of x, (positions x width). kept are the rows of the cache that take new keys and values."""
        s, linear = self.shape, self.torch.nn.functional.linear
        normed, residual = self.add_norm(x, residual, self.norm)
        q, k, v = linear(normed, weights[0]).view(len(x), -1, s.head_dim).split([s.heads, s.kv_heads, s.kv_heads], 1)
        kept[0][slots] = self.rotated(k, cos, sin)
        kept[1][slots] = v
        attended = attend(self.rotated(q, cos, sin))
        normed, residual = self.add_norm(linear(attended.reshape(len(x), -1), weights[1]), residual, self.norm)
        return linear(self.gated(linear(normed, weights[2])), weights[3]), residual


def place_of(batch: int, queries: int, context: int, heads: tuple[int, int, int]) -> dict[str, int]:
    names = ("batch", "queries", "context", "heads", "kv_heads", "head_dim")
    return dict(zip(names, (batch, queries, context, *heads)))


class Measurement:
    def __init__(self, torch: Any, arguments: argparse.Namespace):
        self.torch, self.device = torch, torch.device(arguments.device)
        self.tiny = arguments.tiny
        self.timer = Timer(torch, self.device)
        self.cache = Cache(torch, self.device, (8 << 20) if self.tiny else POOL_BYTES)
        self.attention = ATTENTION[arguments.attention](torch, self.cache)
        self.models = TINY if self.tiny else MODELS

    def products(self) -> Iterator[Callable[[], dict[str, Any]]]:
        sides = {side for shape in self.models for side in shape.products()} | (set() if self.tiny else {HEAD_PRODUCT})
        for (n, k), m in itertools.product(sorted(sides), [1, 4] if self.tiny else POSITIONS):
            yield lambda m=m, n=n, k=k: {"m": m, "n": n, "k": k, "seconds": self.product(m, n, k)}

    def product(self, m: int, n: int, k: int) -> float:
        torch, pool = self.torch, self.cache.keys
        inputs = torch.randn(m, k, dtype=torch.bfloat16, device=self.device)
        output = torch.empty(m, n, dtype=torch.bfloat16, device=self.device)
        count = min(calls_over(2 * n * k), len(pool) // (n * k))
        weights = [pool[i * n * k : (i + 1) * n * k].view(n, k) for i in range(count)]
        return self.timer([lambda w=w: torch.mm(inputs, w.t(), out=output) for w in weights])

    def attentions(self) -> Iterator[Callable[[], dict[str, Any]]]:
        shapes = [(4, 2, 16)] if self.tiny else HEADS
        grid = itertools.product(shapes, [1, 2] if self.tiny else BATCHES, [1, 3] if self.tiny else QUERIES, [64] if self.tiny else CONTEXTS)
        for heads, batch, queries, context in grid:
            if self.cache.fits(batch * (context + 32), *heads[1:]):
                yield lambda h=heads, b=batch, q=queries, c=context: {**place_of(b, q, c, h), "seconds": self.attend(b, q, c, h)}

    def attend(self, batch: int, queries: int, context: int, heads: tuple[int, int, int]) -> float:
        q = self.torch.randn(batch * queries, heads[0], heads[2], dtype=self.torch.bfloat16, device=self.device)
        count = calls_over(4 * batch * (context + queries) * heads[1] * heads[2])
        return self.timer([lambda call=call: call(q) for call in self.attention.calls(count, batch, queries, context, heads)])

    def layers(self, shape: Shape) -> Iterator[Callable[[], dict[str, Any]]]:
        # Weights of one layer already exceed any cache; the next one must not find its keys there.
        count = max(2, min(8, calls_over(sum(2 * n * k for n, k in shape.products()))))
        built = Layers(self.torch, self.device, shape, count)
        grid = itertools.product([1, 2] if self.tiny else BATCHES[:-1], [1, 3] if self.tiny else QUERIES, [64] if self.tiny else LAYER_CONTEXTS)
        for batch, queries, context in grid:
            if self.cache.fits(batch * (context + 32), shape.kv_heads, shape.head_dim):
                yield lambda b=batch, q=queries, c=context: {
                    "model": shape.name,
                    **place_of(b, q, c, shape.all_heads()),
                    "seconds": self.layer(built, b, q, c),
                }

    def layer(self, layers: Layers, batch: int, queries: int, context: int) -> float:
        torch, shape = self.torch, layers.shape
        rows = batch * queries
        x = torch.randn(rows, shape.width, dtype=torch.bfloat16, device=self.device)
        places = context + torch.arange(queries, device=self.device).repeat(batch)
        cos, sin = layers.cos[places][:, None], layers.sin[places][:, None]
        kept = [pool.view(-1, shape.kv_heads, shape.head_dim) for pool in (self.cache.keys, self.cache.values)]
        slots = torch.randperm(len(kept[0]), device=self.device)[:rows]
        attends = self.attention.calls(len(layers.weights), batch, queries, context, shape.all_heads())

        def call() -> None:
            out, residual = x, x
            for weights, attend in zip(layers.weights, attends):
                out, residual = layers.forward(out, residual, weights, attend, cos, sin, kept, slots)

        return self.timer([call] * 4) / len(layers.weights)

    def warm_up(self) -> None:
        """Until the device's clocks have risen."""
        torch = self.torch
        a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device=self.device) for _ in range(2))
        for _ in range(1000):
            torch.mm(a, b)
        torch.cuda.synchronize()

    def check(self) -> float:
        """Largest relative distance of attention from its sums in double precision."""
        torch, worst = self.torch, 0.0
        for heads, batch, queries in itertools.product([(4, 2, 64), (8, 1, 128)], [1, 3], [1, 5]):
            context = 203
            keys, values = self.cache.pages(heads[1], heads[2])
            tokens, pages = context + queries, math.ceil((context + queries) / PAGE)
            torch.manual_seed(1)
            call = self.attention.calls(1, batch, queries, context, heads)[0]
            q = torch.randn(batch * queries, heads[0], heads[2], dtype=torch.bfloat16, device=self.device)
            found = call(q).double().view(batch, queries, heads[0], heads[2])
            torch.manual_seed(1)
            if self.attention.name == "vllm":
                table = torch.randperm(len(keys), device=self.device)[: batch * pages].view(batch, pages)
                k, v = (pool[table].flatten(1, 2)[:, :tokens].double() for pool in (keys, values))
            else:
                k, v = (pool.transpose(1, 2).double() for pool in self.cache.contiguous(0, batch, tokens, heads[1], heads[2]))
            group = heads[0] // heads[1]
            k, v = (x.repeat_interleave(group, 2) for x in (k, v))
            scores = torch.einsum("bqhd,bkhd->bhqk", q.double().view(found.shape), k) / math.sqrt(heads[2])
            seen = torch.arange(tokens, device=self.device)[None, :] <= context + torch.arange(queries, device=self.device)[:, None]
            expected = torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(~seen, -math.inf).softmax(-1), v)
            worst = max(worst, float((found - expected).norm() / expected.norm()))
        return worst


def measure(arguments: argparse.Namespace) -> int:
    import torch

    torch.manual_seed(0)
    begun = time.monotonic()
    measurement = Measurement(torch, arguments)
    error = measurement.check()
    if not error < 0.01:
        print(f"measure_verification: error: attention by {arguments.attention} is {error:.2g} off double precision", file=sys.stderr)
        return 1
    on_gpu = measurement.device.type == "cuda"
    device = torch.cuda.get_device_name(measurement.device) if on_gpu else "cpu"
    with arguments.table.open("w", newline="") as table:
        table.write(f"{COMMENT}{device}\n{COMMENT}torch {torch.__version__}\n{COMMENT}{measurement.attention.said}\n")
        if on_gpu:
            measurement.warm_up()
        rows = csv.DictWriter(table, COLUMNS, restval="", lineterminator="\n")
        rows.writeheader()
        sections = [("product", measurement.products, 0.25), ("attention", measurement.attentions, 0.45)]
        sections += [("layer", lambda shape=shape: measurement.layers(shape), 0.3 / len(measurement.models)) for shape in measurement.models]
        sections = [section for section in sections if section[0] in arguments.operations]
        whole, due = sum(share for _, _, share in sections), 0.0
        for operation, points, share in sections:
            due += share / whole
            order = list(points())
            random.Random(0).shuffle(order)
            done = 0
            with torch.inference_mode():
                for point in order:
                    if time.monotonic() - begun > due * 60 * arguments.minutes:
                        break
                    row = {"operation": operation, "kernel": arguments.attention if operation != "product" else "", **point()}
                    rows.writerow({**row, "seconds": f"{row['seconds']:.4g}"})
                    done += 1
            table.flush()
            print(f"measured {done} of {len(order)} {operation} points, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            if on_gpu:
                torch.cuda.empty_cache()
    return 0


class Refusal(Exception):
    """A fault of the input."""


def rows_of(path: pathlib.Path) -> tuple[Any, list[str]]:
    """A table that measure wrote, and what it says of itself: device, PyTorch, attention.

    Raises Refusal where it lacks a column, products, or attention of one and of several positions.
    """
    import pandas as pd

    try:
        text = path.read_text()
        table = pd.read_csv(path, comment=COMMENT[0])
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise Refusal(f"{path} cannot be read as a table: {error}") from None
    for column in COLUMNS:
        if column not in table:
            raise Refusal(f"{path}: column {column} is missing, but must be there")
    attention = table[table.operation == "attention"]
    needed = {
        "products": table.operation == "product",
        "attention of one position": attention.queries == 1,
        "attention of several positions": attention.queries > 1,
    }
    for what, rows in needed.items():
        if not rows.any():
            raise Refusal(f"{path} holds no rows of {what}, but must hold some")
    if not pd.to_numeric(table.seconds, errors="coerce").gt(0).all():
        raise Refusal(f"{path}: seconds are not all numbers above 0")
    return table, [line[len(COMMENT) :] for line in text.splitlines() if line.startswith(COMMENT)]


def measured_attention(path: pathlib.Path, bandwidth: float) -> dict[str, Any]:
    """The times of one position a sequence, and what more of them take beside."""
    import numpy as np
    from kernel_presets import fitted, rounded

    rows, said = rows_of(path)
    table, measured_with = rows[rows.operation == "attention"], ", ".join(said)
    columns = ["batch", "queries", "context", "heads", "kv_heads", "head_dim"]
    batch, queries, context, heads, kept, size = (table[name].to_numpy(float) for name in columns)
    logs, one, more = np.log(table.seconds.to_numpy()), queries == 1, queries > 1
    cache = batch * (context + queries) * 2 * kept * size * 2 / bandwidth

    def alone(x: Any) -> Any:
        return 1e-6 * x[0] + 1e-9 * x[1] * batch * kept + cache / x[2]

    first, median, p90 = fitted(lambda x: alone(x)[one], logs[one], [10, 10, 0.9], [0, 0, 0.05], [60, 500, 1])
    tiles = np.ceil(queries * heads / kept / TILE) - np.ceil(heads / kept / TILE)

    def added(x: Any, each_head: bool) -> Any:
        read = cache * (heads / kept / x[3] - 1 / first[2]) if each_head else 0
        return (alone(first) + 1e-6 * x[0] + 1e-9 * x[1] * batch * heads * (queries - 1) + 1e-6 * x[2] * tiles + read)[more]

    def fit_of(each_head: bool) -> tuple[Any, float, float]:
        return fitted(lambda x: added(x, each_head), logs[more], [0.5, 0.2, 1, 0.8], [0, 0, 0, 0.05], [20, 50, 50, 1])

    by_head = fit_of(True)[1] < fit_of(False)[1]
    found, found_median, found_p90 = fit_of(by_head)
    verification = {
        "floor_seconds": rounded(1e-6 * found[0], 3),
        "position_seconds": rounded(1e-9 * found[1], 3),
        "tile_seconds": rounded(1e-6 * found[2], 3),
        **({"each_head_bandwidth_share": rounded(found[3], 3)} if by_head else {}),
        "rows": int(more.sum()),
        "median_error": rounded(found_median, 2),
        "p90_error": rounded(found_p90, 2),
        "measured_with": measured_with,
    }
    return {
        "floor_seconds": rounded(1e-6 * first[0]),
        "sequence_seconds": rounded(1e-9 * first[1]),
        "bandwidth_share": rounded(first[2]),
        "verification": verification,
        "rows": int(one.sum()),
        "median_error": rounded(median, 2),
        "p90_error": rounded(p90, 2),
        "measured_with": measured_with,
    }


def layer_constant(table: Any, products: dict[str, Any], attention: dict[str, Any], bandwidth: float, peak: float) -> float:
    """Seconds of a layer beside its kernels: the median of what they leave, of passes of few positions."""
    import numpy as np
    from kernel_presets import rounded_maximum

    left = []
    shapes = {shape.name: shape for shape in MODELS + TINY}
    for row in table[table.batch * table.queries <= 64].itertuples():
        shape, positions = shapes[row.model], row.batch * row.queries
        priced = attention_seconds(attention, row.batch, row.queries, row.context, shape.all_heads(), bandwidth)
        for n, k in shape.products():
            read = 2 * n * k / (products["bandwidth_share"] * bandwidth)
            computed = 2 * positions * n * k / (products["peak_share"] * peak)
            priced += products["call_seconds"] + rounded_maximum(read, computed, products["corner"])
        # Values moved by products, and by gates, rotations and two norms with residuals between them.
        sides = sum(n * k for n, k in shape.products()) / shape.width
        priced += 2 * positions * (2 * sides + 12 * shape.width) / (products["bandwidth_share"] * bandwidth)
        left.append(row.seconds - priced)
    return max(0.0, float(np.median(left))) if left else 0.0


def attention_seconds(
    times: dict[str, Any], batch: int, queries: int, context: int, heads: tuple[int, int, int], bandwidth: float
) -> float:
    query_heads, kept, size = heads
    group, cache = query_heads / kept, batch * (context + queries) * 4 * kept * size / bandwidth
    seconds = times["floor_seconds"] + times["sequence_seconds"] * batch * kept + cache / times["bandwidth_share"]
    if queries == 1:
        return seconds
    more = times["verification"]
    tiles = math.ceil(queries * group / TILE) - math.ceil(group / TILE)
    seconds += more["floor_seconds"] + more["position_seconds"] * batch * query_heads * (queries - 1) + more["tile_seconds"] * tiles
    return seconds + (
        cache * (group / more["each_head_bandwidth_share"] - 1 / times["bandwidth_share"]) if "each_head_bandwidth_share" in more else 0
    )


def engine_of(base: pathlib.Path | None, name: str) -> dict[str, Any] | None:
    """The parts of an engine that are kept; None without a base."""
    if base is None:
        return None
    engines = read_json(base).get("engines", {})
    if name not in engines:
        raise Refusal(f"--engine is {name}, but --base {base} has {', '.join(engines) or 'no engine'}")
    return engines[name]


def read_json(path: pathlib.Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be read as JSON: {error}") from None


def fit(arguments: argparse.Namespace) -> int:
    from kernel_presets import product_fit, rounded

    hardware = read_json(arguments.hardware or HARDWARE / f"{arguments.device}.json")
    bandwidth, peak = hardware["memory_bandwidth_bytes_per_second"]["value"], hardware["peak_flops"]["bf16"]["value"]
    table, said = rows_of(arguments.table)
    family = arguments.device.split("-")[0]
    if not arguments.hardware and said and family not in said[0].lower():
        raise Refusal(f"{arguments.table} is of {said[0]}, but --device is {arguments.device}")
    engine = engine_of(arguments.base, arguments.engine)
    rows = table[table.operation == "product"]
    products = product_fit(rows.assign(latency=1e3 * rows.seconds), 16.0, bandwidth, peak, (1, 1 << 20), 1)
    attention = measured_attention(arguments.table, bandwidth)
    if engine is None:
        layers = table[table.operation == "layer"]
        if layers.empty:
            raise Refusal(f"{arguments.table} holds no rows of layers, which tell what one takes beside its kernels: --base FILE does")
        seconds = rounded(layer_constant(layers, products, attention, bandwidth, peak), 3)
        engine = {"version": "measured", "products": {}, "attention": {}, "all_reduces": []}
        engine["serving"] = {"layer_seconds": seconds, **UNKNOWN_ERRORS}
        print(f"layers take {1e6 * seconds:.1f} us beside their kernels, as PyTorch runs them; engines fuse more")
    # Long prompts were not measured: as products, unless the base knows.
    share = engine["attention"].get("bf16", products)["peak_share"]
    engine["products"]["bf16"] = {**products, "measured_with": ", ".join(said)}
    engine["attention"]["bf16"] = {**attention, "peak_share": share}
    document = {"device": arguments.device, "source": str(arguments.table), "engines": {arguments.engine: engine}}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    for name, one in (("products", products), ("attention", attention), ("verification", attention["verification"])):
        print(f"{name}: {one['rows']} rows, off by {one['median_error']:.1%} in the median, {one['p90_error']:.1%} at the 90th percentile")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="on the accelerator")
    measuring.add_argument("--table", type=pathlib.Path, required=True, help="CSV file to write")
    measuring.add_argument("--attention", choices=sorted(ATTENTION), default="sdpa", help="kernel of attention [sdpa]")
    measuring.add_argument("--device", default="cuda", help="PyTorch's name of the device [cuda]")
    measuring.add_argument("--minutes", type=float, default=6, help="time for all points [6]")
    measuring.add_argument("--operations", nargs="+", choices=OPERATIONS, default=OPERATIONS, help="what to measure [all]")
    measuring.add_argument("--tiny", action="store_true", help="few points of a tiny model, to try the script")
    measuring.set_defaults(run=measure)
    fitting = commands.add_parser("fit", help="anywhere")
    fitting.add_argument("--table", type=pathlib.Path, required=True, help="CSV file that measure wrote")
    fitting.add_argument("--device", required=True, help="name of the --hardware that will be planned for")
    fitting.add_argument("--hardware", type=pathlib.Path, help="its JSON file, where it is no preset")
    fitting.add_argument("--base", type=pathlib.Path, help="kernel times whose --engine is kept but for what was measured")
    fitting.add_argument("--engine", default="measured", help="name in the file, and in --base [measured]")
    fitting.add_argument("--output", type=pathlib.Path, required=True, help="JSON file to write")
    fitting.set_defaults(run=fit)
    arguments = parser.parse_args()
    try:
        return arguments.run(arguments)
    except (Refusal, OSError) as refusal:
        print(f"measure_verification: error: {refusal}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
