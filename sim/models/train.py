#!/usr/bin/env python3
"""Train, evaluate and export the simulated model pair.

Usage (in this order; DIR is the directory given to prepare_corpus.py):
    train.py tokenizer --work DIR
    train.py encode    --work DIR
    train.py ngrams    --work DIR
    train.py train     --work DIR --model draft  --minutes 11
    train.py train     --work DIR --model target --minutes 95 --decay-share 0.35
    train.py evaluate  --work DIR
    train.py export    --work DIR --out sim/models

To move the draft towards the finished target on the target's own text, and write it elsewhere:
    train.py write     --work DIR
    train.py train     --work DIR --model draft --distill d_lk --minutes 5
    train.py export    --work DIR --distilled --out OTHER

Both models have the Llama layout: token embedding, pre-norm blocks with
causal self-attention (rotary positions, split-half pairing) and a gated SiLU
MLP, a final RMSNorm, and logits through the transposed embedding.

Losses are natural-logarithm cross entropies in nats per token.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TASKS = ("prose", "docs", "code")
VOCAB = 2048
UNK, BOS, EOS = 0, 1, 2
MAX_POSITIONS = 512
THETA = 10000.0
EPS = 1e-5
SEED = 20231
# Held-out chapters not quoted as prompts (adult or violent passages).
PROMPT_SKIP = ("bible/Gen.38", "bible/1Sam.31", "bible/Eph.4")
HELDOUT_TOKENS = 4096  # tokens scored at the head of a held-out document


@dataclass(frozen=True)
class Shape:
    """Sizes and training constants of one model."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    lr: float = 0.0  # peak learning rate
    batch: int = 0  # sequences of 256 tokens in a step
    # Settings in which models made elsewhere may differ; 0 stands for the value that follows from the sizes above.
    key_value_heads: int = 0
    head_size: int = 0
    vocab: int = VOCAB
    positions: int = MAX_POSITIONS
    theta: float = THETA
    eps: float = EPS
    tied: bool = True  # the output matrix is the embedding


SHAPES = {
    "target": Shape(hidden=192, layers=6, heads=6, intermediate=512, lr=2e-3, batch=16),
    "draft": Shape(hidden=48, layers=2, heads=3, intermediate=112, lr=6e-3, batch=32),
}


# ------------------------------------------------------------- tokenizer


def rows(work: Path, task: str, part: str) -> Iterator[dict]:
    """Documents of one task and part, in file order."""
    with open(work / "corpus" / f"{task}.{part}.jsonl", encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def cmd_tokenizer(args: argparse.Namespace) -> None:
    """Train the SentencePiece BPE model on a sample of training lines."""
    import sentencepiece as spm

    # Every k-th document of a task, so that the tasks weigh about the same.
    lines: list[str] = []
    for task in TASKS:
        docs = [row["text"] for row in rows(args.work, task, "train")]
        step = max(1, round(sum(map(len, docs)) / 8e6))
        for text in docs[::step]:
            lines += [ln for ln in text.split("\n") if ln.strip() and "\t" not in ln]
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model,
        model_type="bpe", vocab_size=VOCAB, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        add_dummy_prefix=False, allow_whitespace_only_pieces=True,
        split_digits=True, character_coverage=0.9995,
        user_defined_symbols=["\n", "\t"],
        unk_id=UNK, bos_id=BOS, eos_id=EOS, pad_id=-1,
        max_sentence_length=8192, num_threads=2, minloglevel=1)
    (args.work / "tokenizer.model").write_bytes(model.getvalue())
    sp = load_tokenizer(args.work)
    texts = ["  two spaces\n\n\tdef f(x):\n        return x  # caf\u00e9 \u4e2d\r\n", "a", " a", "\n"]
    for task in TASKS:
        texts += [row["text"] for row in rows(args.work, task, "heldout")]
    for text in texts:
        if sp.decode(sp.encode(text)) != text:
            raise SystemExit(f"round trip failed: {text[:200]!r}")
    print(f"{len(lines)} lines, vocabulary {sp.vocab_size()}, {len(texts)} round trips")


def load_tokenizer(work: Path):
    """The SentencePiece processor of the working directory."""
    import sentencepiece as spm

    return spm.SentencePieceProcessor(model_file=str(work / "tokenizer.model"))


def cmd_encode(args: argparse.Namespace) -> None:
    """Write tokens (uint16, uint32 where needed, <s> before each document) and document offsets."""
    sp = load_tokenizer(args.work)
    kind = np.uint16 if sp.vocab_size() <= 2 ** 16 else np.uint32
    first = [sp.bos_id()] if sp.bos_id() >= 0 else []
    out = args.work / "tokens"
    out.mkdir(exist_ok=True)
    for task in args.tasks:
        for part in ("train", "heldout"):
            ids: list[np.ndarray] = []
            texts = [row["text"] for row in rows(args.work, task, part)]
            for at in range(0, len(texts), 64):
                for doc in sp.encode(texts[at:at + 64], num_threads=1):
                    ids.append(np.array(first + doc, kind))
            offsets = np.cumsum([0] + [len(d) for d in ids])
            np.save(out / f"{task}.{part}.tokens.npy", np.concatenate(ids))
            np.save(out / f"{task}.{part}.offsets.npy", offsets.astype(np.int64))
            chars = sum(map(len, texts))
            print(f"{task} {part}: {len(texts)} documents, {offsets[-1]} tokens, "
                  f"{chars / offsets[-1]:.2f} characters a token", flush=True)


def load_docs(work: Path, task: str, part: str) -> list[np.ndarray]:
    """Token arrays of the documents of one task and part."""
    tokens = np.load(work / "tokens" / f"{task}.{part}.tokens.npy")
    offsets = np.load(work / "tokens" / f"{task}.{part}.offsets.npy")
    return [tokens[a:b] for a, b in zip(offsets[:-1], offsets[1:])]


# --------------------------------------------------------------- n-grams


def cmd_ngrams(args: argparse.Namespace) -> None:
    """Count unigrams and bigrams inside the training documents."""
    unigram = np.zeros(VOCAB, np.int64)
    bigram = np.zeros(VOCAB * VOCAB, np.int64)
    for task in TASKS:
        for doc in load_docs(args.work, task, "train"):
            ids = doc.astype(np.int64)
            unigram += np.bincount(ids, minlength=VOCAB)
            bigram += np.bincount(ids[:-1] * VOCAB + ids[1:], minlength=VOCAB * VOCAB)
    np.savez(args.work / "ngrams.npz", unigram=unigram, bigram=bigram.reshape(VOCAB, VOCAB))
    print(f"{unigram.sum()} tokens, {(bigram > 0).sum()} distinct bigrams, "
          f"{(bigram > 1).sum()} seen more than once")


def kn_discount(bigram: np.ndarray) -> float:
    """Absolute discount n1 / (n1 + 2 n2) from the counts of counts."""
    n1, n2 = int((bigram == 1).sum()), int((bigram == 2).sum())
    return n1 / (n1 + 2 * n2)


def kneser_ney(bigram: np.ndarray, discount: float) -> np.ndarray:
    """Interpolated Kneser-Ney probabilities, [V, V], rows sum to one.

    The lower order is the continuation distribution (distinct left
    neighbours), itself interpolated with the uniform distribution.
    """
    v = bigram.shape[0]
    left = (bigram > 0).sum(0).astype(np.float64)  # distinct left neighbours
    total = left.sum()
    lower = np.maximum(left - discount, 0) / total
    lower += discount * (left > 0).sum() / total / v
    rows_total = bigram.sum(1).astype(np.float64)
    kinds = (bigram > 0).sum(1)
    safe = np.maximum(rows_total, 1)
    weight = np.where(rows_total > 0, discount * kinds / safe, 1.0)
    return np.maximum(bigram - discount, 0) / safe[:, None] + weight[:, None] * lower


# ----------------------------------------------------------------- model


def build_model(shape: Shape):
    """The torch module; parameter names match the exported file."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    size = shape.head_size or shape.hidden // shape.heads
    kv_heads = shape.key_value_heads or shape.heads

    class RMSNorm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(shape.hidden))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + shape.eps) * self.weight

    def linear(n_in: int, n_out: int) -> nn.Linear:
        return nn.Linear(n_in, n_out, bias=False)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q_proj = linear(shape.hidden, shape.heads * size)
            self.k_proj = linear(shape.hidden, kv_heads * size)
            self.v_proj = linear(shape.hidden, kv_heads * size)
            self.o_proj = linear(shape.heads * size, shape.hidden)

        def projected(self, x, cos, sin):
            """Queries, keys and values [B, heads, T, size], a key head once for each of its queries."""
            b, t, _ = x.shape
            w = torch.cat((self.q_proj.weight, self.k_proj.weight, self.v_proj.weight))
            parts = F.linear(x, w).view(b, t, -1, size).transpose(1, 2)
            q, k, v = parts.split((shape.heads, kv_heads, kv_heads), 1)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if kv_heads != shape.heads:
                k, v = (y.repeat_interleave(shape.heads // kv_heads, 1) for y in (k, v))
            return q, k, v

        def forward(self, x, cos, sin):  # x [B, T, hidden]
            q, k, v = self.projected(x, cos, sin)
            return self.output(F.scaled_dot_product_attention(q, k, v, is_causal=True))

        def output(self, y):  # y [B, heads, T, size]
            b, _, t, _ = y.shape
            return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))

    def rotate(x, cos, sin):  # split-half rotary positions
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)

    class MLP(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate_proj = linear(shape.hidden, shape.intermediate)
            self.up_proj = linear(shape.hidden, shape.intermediate)
            self.down_proj = linear(shape.intermediate, shape.hidden)

        def forward(self, x):
            w = torch.cat((self.gate_proj.weight, self.up_proj.weight))
            gate, up = F.linear(x, w).chunk(2, -1)
            return self.down_proj(F.silu(gate) * up)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input_layernorm = RMSNorm()
            self.self_attn = Attention()
            self.post_attention_layernorm = RMSNorm()
            self.mlp = MLP()

        def forward(self, x, cos, sin):
            x = x + self.self_attn(self.input_layernorm(x), cos, sin)
            return x + self.mlp(self.post_attention_layernorm(x))

    class Body(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
            self.layers = nn.ModuleList(Block() for _ in range(shape.layers))
            self.norm = RMSNorm()

    class Llama(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shape = shape
            self.model = Body()
            if not shape.tied:
                self.lm_head = linear(shape.hidden, shape.vocab)
            half = size // 2
            freq = shape.theta ** (-torch.arange(half, dtype=torch.float64) / half)
            angle = torch.arange(shape.positions, dtype=torch.float64)[:, None] * freq
            self.register_buffer("cos", angle.cos().float(), persistent=False)
            self.register_buffer("sin", angle.sin().float(), persistent=False)

        def output_matrix(self):
            return self.model.embed_tokens.weight if shape.tied else self.lm_head.weight

        def logits(self, tokens):
            """[B, T, V] after tokens [B, T]."""
            t = tokens.shape[1]
            x = self.model.embed_tokens(tokens)
            for block in self.model.layers:
                x = block(x, self.cos[:t], self.sin[:t])
            return F.linear(self.model.norm(x), self.output_matrix()).float()

        def forward(self, tokens, targets, reduction: str = "mean"):
            """Cross entropy of targets [B, T] after tokens [B, T]; -100 is ignored."""
            return F.cross_entropy(self.logits(tokens).reshape(-1, shape.vocab),
                                   targets.reshape(-1), reduction=reduction)

        def next_logits(self, tokens, at: int, caches: list):
            """[B, V] after tokens [B] at one position; caches hold the keys and values before it."""
            x = self.model.embed_tokens(tokens[:, None])
            for block, cache in zip(self.model.layers, caches):
                attention, normed = block.self_attn, block.input_layernorm(x)
                q, *new = attention.projected(normed, self.cos[at:at + 1], self.sin[at:at + 1])
                for old, part in zip(cache, new):
                    old[:, :, at:at + 1] = part
                k, v = (part[:, :, :at + 1] for part in cache)
                x = x + attention.output(F.scaled_dot_product_attention(q, k, v))
                x = x + block.mlp(block.post_attention_layernorm(x))
            return F.linear(self.model.norm(x[:, 0]), self.output_matrix()).float()

        def empty_caches(self, batch: int, length: int) -> list:
            """Keys and values [B, heads, length, size] of each block."""
            return [[torch.zeros(batch, shape.heads, length, size) for _ in range(2)]
                    for _ in range(shape.layers)]

    net = Llama()
    generator = torch.Generator().manual_seed(SEED)
    for name, p in net.named_parameters():
        if p.ndim == 2:
            std = 0.02 if "embed" in name else 0.6 * p.shape[1] ** -0.5
            if "o_proj" in name or "down_proj" in name:
                std /= math.sqrt(2 * shape.layers)
            p.data.normal_(0.0, std, generator=generator)
    return net


# ---------------------------------------------------------- distillation


OWN = "own"  # names the text of the target among the tasks


def sampled_texts(net, count: int, length: int):
    """The model's own text at temperature 1, [count, length], each from <s> on."""
    import torch

    texts = torch.full((count, length), BOS)
    caches = net.empty_caches(count, length)
    with torch.no_grad():
        for at in range(length - 1):
            rows = net.next_logits(texts[:, at], at, caches).softmax(-1)
            texts[:, at + 1] = torch.multinomial(rows, 1)[:, 0]
    return texts


def cmd_write(args: argparse.Namespace) -> None:
    """Let the target write the text that a draft is distilled on; a tenth of it is held out."""
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    net, _ = load_run(args.work, "target", args.averaged)
    batches = []
    for left in range(args.texts, 0, -64):
        batches.append(sampled_texts(net, min(left, 64), MAX_POSITIONS).numpy())
        print(f"{sum(map(len, batches))} texts", flush=True)
    texts = np.concatenate(batches).astype(np.uint16)
    held_out = max(1, len(texts) // 10)
    for part, chosen in (("train", texts[held_out:]), ("heldout", texts[:held_out])):
        np.save(args.work / "tokens" / f"{OWN}.{part}.tokens.npy", chosen.reshape(-1))
        np.save(args.work / "tokens" / f"{OWN}.{part}.offsets.npy",
                np.arange(len(chosen) + 1, dtype=np.int64) * MAX_POSITIONS)


def distance(name: str, p_logits, q_logits):
    """Distance of the draft's rows from the target's, [...]: "kl" is sum p log(p / q); "tv" sum |p - q| / 2
    and "d_lk" sum |p - (p + q) / 2| are one number, what is rejected."""
    log_p, log_q = p_logits.log_softmax(-1), q_logits.log_softmax(-1)
    p, q = log_p.exp(), log_q.exp()
    if name == "kl":
        return (p * (log_p - log_q)).sum(-1)
    return (p - q).abs().sum(-1) / 2 if name == "tv" else (p - (p + q) / 2).abs().sum(-1)


def held_out_alpha(net, target, work: Path) -> str:
    """Mean sum min(p, q) over the held-out texts of the target, with a 95% interval over texts."""
    import torch

    with torch.no_grad():
        texts = [torch.from_numpy(doc[None, :-1].astype(np.int64)) for doc in load_docs(work, OWN, "heldout")]
        alphas = [1 - float(distance("d_lk", target.logits(x), net.logits(x)).mean()) for x in texts]
    half = 1.96 * np.std(alphas, ddof=1) / math.sqrt(len(alphas)) if len(alphas) > 1 else math.nan
    mean = np.mean(alphas)
    return f"alpha {mean:.4f} (95%: {mean - half:.4f} to {mean + half:.4f}) over {len(alphas)} texts"


# -------------------------------------------------------------- training


class Stream:
    """Endless training sequences of int64 tokens, reproducible and seekable.

    Each epoch joins all training documents in a new random order, cuts them
    into sequences and shuffles these.
    """

    def __init__(self, work: Path, length: int, epoch: int = 0, position: int = 0,
                 tasks: Sequence[str] = TASKS) -> None:
        self.docs = [d for task in tasks for d in load_docs(work, task, "train")]
        self.length, self.epoch, self.position = length, epoch, position
        self.load()

    def load(self) -> None:
        rng = np.random.default_rng([SEED, self.epoch, self.length])
        self.tokens = np.concatenate([self.docs[i] for i in rng.permutation(len(self.docs))])
        self.order = rng.permutation((len(self.tokens) - 1) // self.length)

    def next(self, batch: int) -> np.ndarray:
        """[batch, length + 1] tokens."""
        if self.position + batch > len(self.order):
            self.epoch, self.position = self.epoch + 1, 0
            self.load()
        starts = self.order[self.position:self.position + batch] * self.length
        self.position += batch
        return np.stack([self.tokens[s:s + self.length + 1] for s in starts]).astype(np.int64)


def heldout_windows(work: Path, task: str, length: int, limit: int | None = None):
    """Yield (tokens, targets) [B, length]; padding has target -100.

    The first HELDOUT_TOKENS tokens after the <s> of a held-out document are
    predicted once each, so that no long document dominates; the context of a
    window starts at the window.
    """
    windows = []
    total = 0
    for doc in load_docs(work, task, "heldout"):
        ids = doc[:HELDOUT_TOKENS + 1].astype(np.int64)
        for at in range(0, len(ids) - 1, length):
            n = min(length, len(ids) - 1 - at)
            x, y = np.zeros(length, np.int64), np.full(length, -100)
            x[:n], y[:n] = ids[at:at + n], ids[at + 1:at + 1 + n]
            windows.append((x, y))
            total += n
    if limit is not None:
        windows = windows[::max(1, len(windows) // limit)]
    for at in range(0, len(windows), 16):
        x, y = zip(*windows[at:at + 16])
        yield np.stack(x), np.stack(y)


def heldout_loss(net, work: Path, length: int = 256, limit: int | None = None,
                 amp: bool = False) -> dict[str, tuple[float, int]]:
    """Task -> (summed nats, tokens)."""
    import torch

    out = {}
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=amp):
        for task in TASKS:
            nats, count = 0.0, 0
            for x, y in heldout_windows(work, task, length, limit):
                nats += float(net(torch.from_numpy(x), torch.from_numpy(y), "sum"))
                count += int((y >= 0).sum())
            out[task] = (nats, count)
    return out


def summary(losses: dict[str, tuple[float, int]]) -> str:
    """One line: pooled loss, then each task."""
    nats = sum(v[0] for v in losses.values())
    count = sum(v[1] for v in losses.values())
    parts = [f"pooled {nats / count:.4f}"]
    parts += [f"{task} {v[0] / v[1]:.4f}" for task, v in losses.items()]
    return " ".join(parts)


def parse_deadline(text: str) -> float:
    """Unix time of the next HH:MM UTC."""
    hour, minute = map(int, text.split(":"))
    now = datetime.datetime.now(datetime.timezone.utc)
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if at <= now:
        at += datetime.timedelta(days=1)
    return at.timestamp()


def save(path: Path, state: dict) -> None:
    """Write a checkpoint through a temporary file and an atomic rename."""
    import torch

    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def cmd_train(args: argparse.Namespace) -> None:
    """Train one model until the deadline.

    The learning rate is warmed up over --warmup steps, then constant, and
    falls linearly to zero over the last --decay-share of the time between the
    start and the deadline.  The last --long-share of the time uses sequences
    of 512 tokens in place of 256.

    With --distill the trained draft goes on towards the target, on the text of `write`.
    """
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    shape = SHAPES[args.model]
    run = args.work / "runs" / (DISTILLED if args.distill else args.model)
    run.mkdir(parents=True, exist_ok=True)
    if args.distill:
        net, _ = load_run(args.work, args.model, args.averaged)
        target = load_run(args.work, "target", args.averaged)[0].requires_grad_(False)
    else:
        net = build_model(shape)
    net_params = list(net.parameters())
    average = [p.detach().clone() for p in net_params]
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in net_params if p.ndim == 2], "weight_decay": 0.1},
         {"params": [p for p in net_params if p.ndim == 1], "weight_decay": 0.0}],
        lr=shape.lr, betas=(0.9, 0.95), fused=True)
    step, seen, elapsed, cursor = 0, 0, 0.0, {}
    if args.resume and (run / "checkpoint.pt").exists():
        state = torch.load(run / "checkpoint.pt", weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        for a, b in zip(average, state["average"]):
            a.copy_(b)
        step, seen, elapsed = state["step"], state["seen"], state["elapsed"]
        cursor = {int(k): v for k, v in state["cursor"].items()}

    def distilled(tokens, _):
        return distance(args.distill, target.logits(tokens), net.logits(tokens)).mean()

    def held_out(limit: int | None = None, amp: bool = False) -> str:
        if args.distill:
            return held_out_alpha(net, target, args.work)
        return summary(heldout_loss(net, args.work, limit=limit, amp=amp))

    forward = distilled if args.distill else net
    if not args.no_compile:
        forward = torch.compile(forward, dynamic=False)
    log = open(run / "log.txt", "a", encoding="utf-8")

    def say(text: str) -> None:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%H:%M:%S")
        print(f"{stamp} {text}", file=log, flush=True)
        print(f"{stamp} {text}", flush=True)

    def checkpoint() -> None:
        save(run / "checkpoint.pt", {
            "net": net.state_dict(), "optimizer": optimizer.state_dict(), "average": average,
            "step": step, "seen": seen, "elapsed": elapsed, "cursor": cursor})

    end = parse_deadline(args.deadline) if args.deadline else time.time() + 60 * args.minutes
    begin = time.time() - elapsed
    last = time.time()
    stream: Stream | None = None
    window, window_seen, window_time, saved = 0.0, 0, time.time(), time.time()
    say(f"start {args.model} parameters {sum(p.numel() for p in net_params)} step {step} "
        f"seen {seen} minutes left {(end - time.time()) / 60:.1f}")
    if args.distill:
        say("heldout " + held_out())
    while time.time() < end:
        if args.pause_file and args.pause_file.exists():
            checkpoint()
            say("pause")
            while args.pause_file.exists():
                time.sleep(1.0)
            say("continue")
            window, window_seen, window_time, last = 0.0, 0, time.time(), time.time()
        left = max(0.0, end - time.time())
        total = end - begin
        length = MAX_POSITIONS if left < args.long_share * total else 256
        if stream is None or stream.length != length:
            stream = Stream(args.work, length, *cursor.get(length, (0, 0)),
                            tasks=(OWN,) if args.distill else TASKS)
        scale = min(1.0, (step + 1) / args.warmup, left / (args.decay_share * total))
        for group in optimizer.param_groups:
            group["lr"] = args.lr_scale * shape.lr * scale
        batch = torch.from_numpy(stream.next(shape.batch * 256 // length))
        cursor[length] = (stream.epoch, stream.position)
        with torch.autocast("cpu", torch.bfloat16):
            loss = forward(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net_params, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        keep = min(args.average, 1 - 1 / (step / 10 + 1))
        torch._foreach_lerp_(average, [p.detach() for p in net_params], 1 - keep)
        step += 1
        seen += shape.batch * 256
        window += float(loss.detach())
        window_seen += 1
        now = time.time()
        elapsed += now - last
        last = now
        if step % args.log_every == 0:
            rate = window_seen * shape.batch * 256 / (now - window_time)
            say(f"step {step} seen {seen} epoch {stream.epoch} length {length} "
                f"lr {optimizer.param_groups[0]['lr']:.2e} loss {window / window_seen:.4f} "
                f"tokens/s {rate:.0f}")
            window, window_seen, window_time = 0.0, 0, now
        if now - saved > args.save_seconds:
            checkpoint()
            saved = time.time()
            say("heldout sample (averaged weights) "
                + with_weights(net, average, lambda: held_out(limit=48, amp=True)))
            window, window_seen, window_time = 0.0, 0, time.time()
    checkpoint()
    say(f"end step {step} seen {seen} minutes {elapsed / 60:.1f}")
    say("heldout " + held_out())


def with_weights(net, weights: list, call):
    """Run call() with the given parameter values, then restore."""
    kept = [p.detach().clone() for p in net.parameters()]
    for p, w in zip(net.parameters(), weights):
        p.data.copy_(w)
    try:
        return call()
    finally:
        for p, w in zip(net.parameters(), kept):
            p.data.copy_(w)


# ---------------------------------------------------- evaluation, export


DISTILLED = "draft-distilled"  # names the run of a distilled draft


def load_run(work: Path, name: str, averaged: Sequence[str], run: str = ""):
    """(net, checkpoint) of a model's run, with the raw or the averaged weights."""
    import torch

    state = torch.load(work / "runs" / (run or name) / "checkpoint.pt", weights_only=True)
    net = build_model(SHAPES[name])
    net.load_state_dict(state["net"])
    if name in averaged:
        for p, w in zip(net.parameters(), state["average"]):
            p.data.copy_(w)
    return net, state


def cmd_evaluate(args: argparse.Namespace) -> None:
    """Held-out losses of the bigram, the draft and the target, rounded to F16."""
    import torch

    torch.set_num_threads(args.threads)
    bigram = np.load(args.work / "ngrams.npz")["bigram"]
    discount = kn_discount(bigram)
    log_p = np.log(kneser_ney(bigram, discount))
    table = {"bigram-kn": {}}
    for task in TASKS:
        nats, count = 0.0, 0
        for doc in load_docs(args.work, task, "heldout"):
            ids = doc[:HELDOUT_TOKENS + 1].astype(np.int64)
            nats -= float(log_p[ids[:-1], ids[1:]].sum())
            count += len(ids) - 1
        table["bigram-kn"][task] = (nats, count)
    for name in ("draft", "target"):
        net, state = load_run(args.work, name, args.averaged)
        net.load_state_dict({k: v.half().float() for k, v in net.state_dict().items()})
        for length in (256, 512):
            table[f"{name}-{length}"] = heldout_loss(net, args.work, length)
        print(f"{name}: step {state['step']} tokens {state['seen']} "
              f"minutes {state['elapsed'] / 60:.1f}")
    print(f"discount {discount:.6f} tokens "
          + str({task: v[1] for task, v in table["bigram-kn"].items()}))
    for name, losses in table.items():
        print(f"{name:12s} {summary(losses)}")
    (args.work / "losses.json").write_text(json.dumps(table, indent=1) + "\n")


def config(shape: Shape) -> dict:
    """Contents of config.json."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "vocab_size": VOCAB, "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.heads,
        "head_dim": shape.hidden // shape.heads, "hidden_act": "silu",
        "max_position_embeddings": MAX_POSITIONS, "rms_norm_eps": EPS,
        "rope_theta": THETA, "rope_scaling": None, "tie_word_embeddings": True,
        "attention_bias": False, "mlp_bias": False, "bos_token_id": BOS,
        "eos_token_id": EOS, "torch_dtype": "float16"}


def natural_cut(text: str, start: int, low: int, high: int) -> str | None:
    """text[start:end] with low..high characters, ended at a line or sentence."""
    piece = text[start:start + high]
    end = piece.rfind("\n", low)
    if end < 0:
        end = max(piece.rfind(mark, low) for mark in (". ", "; ", ": ")) + 1
    return piece[:end].rstrip() if end >= low else None


def sample_prompts(work: Path, count: int) -> list[dict]:
    """`count` prompts a task: sources in turn, no document twice before all
    documents of its source were used; a prompt starts at a paragraph or line
    with a capital (prose) or after a blank line (docs, code)."""
    out = []
    for task in TASKS:
        rng = np.random.default_rng([SEED, 3, TASKS.index(task)])
        docs = [(row["source"], row["text"]) for row in rows(work, task, "heldout")
                if len(row["text"]) > 1200 and row["key"] not in PROMPT_SKIP]
        sources = sorted({d[0] for d in docs})
        pools: dict[str, list[str]] = {source: [] for source in sources}
        chosen: list[str] = []
        while len(chosen) < count:
            source = sources[len(chosen) % len(sources)]
            if not pools[source]:
                texts = [d[1] for d in docs if d[0] == source]
                pools[source] = [texts[i] for i in rng.permutation(len(texts))]
            text = pools[source].pop()
            starts = [0] + [i + 1 for i, c in enumerate(text[:-400]) if c == "\n"]
            if task == "prose":
                starts = [s for s in starts if text[s] in ":\"'" or text[s].isupper()]
            else:
                starts = [s for s in starts if text[max(0, s - 2):s] in ("", "\n\n")]
            piece = natural_cut(text, starts[rng.integers(len(starts))], 200, 400)
            if piece and len(piece) >= 200 and not any(
                    piece[:80] in c or c[:80] in piece for c in chosen):
                chosen.append(piece)
        out += [{"task": task, "text": text} for text in chosen]
    return out


# Settings for transformers and llama.cpp's converter; without these they put a space before a text.
TOKENIZER_CONFIG = {
    "tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False, "add_prefix_space": False,
    "bos_token": "<s>", "clean_up_tokenization_spaces": False, "eos_token": "</s>",
    "model_max_length": MAX_POSITIONS, "unk_token": "<unk>",
}


def export_model(args: argparse.Namespace, name: str, run: str) -> None:
    """Write the folder of one model below --out."""
    import torch
    from safetensors.torch import save_file

    net, _ = load_run(args.work, name, args.averaged, run)
    part, final, old = args.out / f".{name}.part", args.out / name, args.out / f".{name}.old"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    tensors = {k: v.to(torch.float16).contiguous() for k, v in net.state_dict().items()}
    if not all(torch.isfinite(v).all() for v in tensors.values()):
        raise SystemExit("a weight is outside the range of F16")
    save_file(tensors, part / "model.safetensors", metadata={"format": "pt"})
    (part / "config.json").write_text(json.dumps(config(SHAPES[name]), indent=2) + "\n")
    shutil.copyfile(args.work / "tokenizer.model", part / "tokenizer.model")
    (part / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG, indent=2) + "\n")
    if final.exists():
        os.replace(final, old)
    os.replace(part, final)
    shutil.rmtree(old, ignore_errors=True)


def export_tables(args: argparse.Namespace) -> None:
    """Write ngrams.safetensors and prompts.jsonl below --out."""
    from safetensors.numpy import save_file

    counts = np.load(args.work / "ngrams.npz")
    bigram = counts["bigram"]
    discount = kn_discount(bigram)
    kept = np.where(bigram >= args.min_count, bigram, 0)
    row, col = np.nonzero(kept)
    offsets = np.zeros(VOCAB + 1, np.int32)
    offsets[1:] = np.cumsum(np.bincount(row, minlength=VOCAB))
    part = args.out / ".ngrams.part"
    save_file(
        {"unigram.counts": counts["unigram"].astype(np.int64),
         "bigram.row_offsets": offsets,
         "bigram.tokens": col.astype(np.int32),
         "bigram.counts": kept[row, col].astype(np.int32)},
        part,
        metadata={"format": "specdec-ngrams", "version": "1", "vocab_size": str(VOCAB),
                  "discount": f"{discount:.6f}", "min_count": str(args.min_count)})
    os.replace(part, args.out / "ngrams.safetensors")
    lines = [json.dumps(p, ensure_ascii=False) for p in sample_prompts(args.work, 24)]
    part = args.out / ".prompts.part"
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(part, args.out / "prompts.jsonl")


def cmd_export(args: argparse.Namespace) -> None:
    """Write target/, draft/, ngrams.safetensors and prompts.jsonl below --out; or the distilled draft alone."""
    args.out.mkdir(parents=True, exist_ok=True)
    if args.distilled:
        export_model(args, "draft", DISTILLED)
    else:
        for name in SHAPES:
            export_model(args, name, name)
        export_tables(args)
    for path in sorted(args.out.rglob("*")):
        if path.is_file():
            path.chmod(0o644)
            print(f"{path.stat().st_size:9d} {path.relative_to(args.out)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    sub = parser.add_subparsers(dest="command", required=True)

    def command(name: str, call) -> argparse.ArgumentParser:
        p = sub.add_parser(name, help=call.__doc__.split("\n", 1)[0])
        p.add_argument("--work", type=Path, required=True, help="working directory")
        p.set_defaults(call=call)
        return p

    command("tokenizer", cmd_tokenizer)
    p = command("encode", cmd_encode)
    p.add_argument("--tasks", nargs="+", default=TASKS,
                   help="names NAME of corpus/NAME.train.jsonl and corpus/NAME.heldout.jsonl")
    command("ngrams", cmd_ngrams)
    p = command("train", cmd_train)
    p.add_argument("--model", choices=SHAPES, required=True)
    p.add_argument("--distill", choices=("kl", "tv", "d_lk"),
                   help="move the trained draft towards the target by this distance")
    p.add_argument("--deadline", help="end of the run, HH:MM in UTC")
    p.add_argument("--minutes", type=float, default=60.0, help="length without --deadline")
    p.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    p.add_argument("--warmup", type=int, default=200, help="steps of linear warm-up")
    p.add_argument("--decay-share", type=float, default=0.2)
    p.add_argument("--long-share", type=float, default=0.12)
    p.add_argument("--lr-scale", type=float, default=1.0, help="multiplies the peak rate")
    p.add_argument("--average", type=float, default=0.998,
                   help="decay of the running average of the weights")
    p.add_argument("--log-every", type=int, default=50)
    p.add_argument("--save-seconds", type=float, default=180.0)
    p.add_argument("--no-compile", action="store_true", help="run without torch.compile")
    p.add_argument("--pause-file", type=Path, help="sleep while this file exists")
    p = command("write", cmd_write)
    p.add_argument("--texts", type=int, default=1024, help="of 512 tokens")
    command("evaluate", cmd_evaluate)
    p = command("export", cmd_export)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--distilled", action="store_true", help="write the distilled draft alone")
    p.add_argument("--min-count", type=int, default=2, help="bigrams seen fewer times are not stored")
    for name in ("train", "write", "evaluate", "export"):
        p = sub.choices[name]
        p.add_argument("--averaged", nargs="*", default=[], choices=list(SHAPES),
                       help="finished models taken from the running average of their weights")
        p.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.call is cmd_train and args.distill and args.model != "draft":
        parser.error("--distill is for --model draft")
    args.call(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
