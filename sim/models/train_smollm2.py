#!/usr/bin/env python3
"""Trains drafts for SmolLM2-135M-Instruct on the model's own answers.

Usage (after scripts/real_model, with torch, numpy, safetensors and tokenizers; MODELS is its folder):
    train_smollm2.py texts      --work DIR --models MODELS --tokens 1e6
    train_smollm2.py read       --work DIR --models MODELS --tokens 3e5
    train_smollm2.py vocabulary --work DIR --models MODELS
    train_smollm2.py ngrams     --work DIR --models MODELS --out FOLDER
    train_smollm2.py train      --work DIR --models MODELS --what head  --minutes 40
    train_smollm2.py train      --work DIR --models MODELS --what draft --minutes 20
    train_smollm2.py evaluate   --work DIR --models MODELS --what head
    train_smollm2.py export     --work DIR --models MODELS --what head --out FOLDER

texts       the target's answers, half at temperature 0 and half at 1, with its state after the final norm at every
            position, in shards; run again it adds shards
read        the target's states along answers that people wrote, which takes a tenth of the time
vocabulary  the tokens that drafts know: the most frequent ones of the answers, --size of them
head        a head in the manner of EAGLE (train_heads.py), whose output rows are the target's for those tokens
draft       a small model of the Llama layout that knows those tokens alone

Both are trained on what is rejected, 1 - sum min(p, q), and on cross entropy against the target's distribution. A run
goes on from its checkpoint; --fresh begins anew. Memory that goes back to the kernel after each step costs a tenth of the
time: MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=20000000000 keep it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import sysconfig
import textwrap
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.append(str(HERE))

SEED = 20361
END = 2  # <|im_end|>
SYSTEM = 23  # tokens of the system's part of every prompt
LONGEST_PROMPT, NEW, SLOTS, SHARD = 144, 144, 160, 64  # tokens, tokens, texts at a time, texts of a shard
SHAPES = {"draft": dict(hidden=128, layers=2, heads=4, intermediate=384)}
RATES = {"head": 2e-3, "draft": 3e-3}
DEPTHS = 3
ENTROPY = 0.3  # weight of the cross entropy beside what is rejected


# ------------------------------------------------------------------ prompts

SUBJECTS = """a river; a lost dog; an old clock; a train journey; a violin; the moon; a storm at sea; a small village; a robot; a
grandmother; a chess player; a mountain climber; winter; a market; a beekeeper; a secret garden; a school play; a bridge; the first
snow; a lost key; a painter; a whale; a telephone box; a night in the forest; a circus; a castle; friendship; courage; patience; music;
the internet; coffee; bread; volcanoes; the heart; photosynthesis; gravity; electricity; recycling; the Roman empire; democracy; maps;
sleep; dreams; exercise; reading; cooking; travel; money; time; the weather; the ocean; trees; birds; cats; horses; cities; farming;
bicycles; trains; computers; numbers; language; colours; glass; paper; salt; sugar; tea; football; swimming; a detective; a doctor; a
teacher; a pilot; a farmer; a king; a dragon; a ghost; a mirror; a lighthouse in summer; a desert; an island; a spaceship""".replace("\n", " ").split("; ")

PROSE = ["Write a short story about {}.", "Write a paragraph about {}.", "Explain {} to a child.", "Write a short essay about {}.",
         "Describe {} in detail.", "Write a letter about {} to a friend.", "What is interesting about {}?",
         "Write the beginning of a novel about {}.", "Tell me a few facts about {}.", "Write a news article about {}."]
DIALOGUE = ["I want to learn more about {}. Where do I start?", "Give me some advice about {}.", "What do you think about {}?",
            "Can you help me plan a lesson about {}?", "How can I talk about {} with my children?",
            "What are common mistakes people make with {}?", "What questions should I ask about {}?",
            "I am worried about {}. What can I do?", "List five tips about {}.", "What is the best way to enjoy {}?"]
FOLLOW = ["Can you explain that in more detail?", "Thank you. What should I do first?", "Can you give me an example?",
          "Why is that?", "Can you say that in fewer words?", "What else should I know?"]
CODE = ["Add a docstring and comments to this code.", "Add type hints to this code.", "Add comments to this code.",
        "Rewrite this code with clearer names.", "Add error handling to this code.", "Rewrite this code with a docstring.",
        "Explain this code, then write it again with comments.", "Find and fix any bugs in this code.",
        "Simplify this code.", "Write a test for this code."]
SUMMARY = ["Summarize the following text.", "Summarize the following text in two sentences.", "List the main points of this text.",
           "Summarize this text in your own words.", "Write a short summary of this text.", "What does this text say?",
           "Rewrite the following text in simpler words.", "Shorten this text, and keep its facts.",
           "Rewrite this text as a news item.", "Correct any errors in this text."]


def functions() -> list[str]:
    """Short functions and classes of Python's standard library (PSF licence)."""
    found = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        lines = source.split("\n")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                text = textwrap.dedent("\n".join(lines[node.lineno - 1:node.end_lineno]))
                if 4 <= text.count("\n") <= 22 and len(text) < 700:
                    found.append(text)
    return found


def passages() -> list[str]:
    """Paragraphs of this project's documents and of the standard library's docstrings."""
    found = []
    for path in sorted((TOP / "docs").glob("*.md")):
        found += path.read_text(encoding="utf-8").split("\n\n")
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
            if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
                found += (ast.get_docstring(node) or "").split("\n\n")
    plain = [re.sub(r"\s+", " ", text).strip() for text in found]
    return [t for t in plain if 250 < len(t) < 800 and sum(c.isalpha() or c == " " for c in t) > 0.88 * len(t)]


def prompt_texts(rng, answers: list[str], chat):
    """Prompts without end. Stories of the target itself become sources of summaries, and its advice goes on."""
    codes, sources = functions(), passages()

    def one_of(many):
        return many[int(rng.integers(len(many)))]

    while True:
        kind = int(rng.integers(4))
        if kind == 0:
            yield "prose", chat(one_of(PROSE).format(one_of(SUBJECTS)))
        elif kind == 1:
            yield "code", chat(f"{one_of(CODE)}\n\n```python\n{one_of(codes)}\n```")
        elif kind == 2:
            own = rng.random() < 0.5 and answers
            yield "summary", chat(f"{one_of(SUMMARY)}\n\n{one_of(answers)[:700] if own else one_of(sources)}")
        elif rng.random() < 0.3 and answers:
            yield "dialogue", chat(one_of(FOLLOW), [(one_of(DIALOGUE).format(one_of(SUBJECTS)), one_of(answers)[:500])])
        else:
            yield "dialogue", chat(one_of(DIALOGUE).format(one_of(SUBJECTS)))


# --------------------------------------------------------------- generation


def repeated_share(tokens, n: int = 6) -> float:
    """The share of n-grams that occurred before in the text."""
    grams = [tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


class Writer:
    """Decodes many texts together in BF16; a slot whose text has ended takes the next prompt."""

    def __init__(self, net, prompts) -> None:
        import torch

        self.net, self.prompts = net.bfloat16(), prompts
        self.shape = net.shape
        self.size = self.shape.head_size or self.shape.hidden // self.shape.heads
        room = LONGEST_PROMPT + NEW
        self.positions = torch.arange(room)
        self.caches = [[torch.zeros(SLOTS, self.shape.key_value_heads, room, self.size, dtype=torch.bfloat16)
                        for _ in range(2)] for _ in range(self.shape.layers)]
        self.cos, self.sin = net.cos, net.sin
        self.texts = [self.begin() for _ in range(SLOTS)]

    def begin(self) -> dict:
        task, ids, temperature = next(self.prompts)
        return {"task": task, "tokens": list(ids), "prompt": len(ids), "temperature": temperature, "states": [], "at": 0}

    def step(self):
        """Reads one token in each slot; yields the texts that ended."""
        import torch
        import torch.nn.functional as F

        net, heads, kv = self.net, self.shape.heads, self.shape.key_value_heads
        at = torch.tensor([text["at"] for text in self.texts])
        tokens = torch.tensor([text["tokens"][text["at"]] for text in self.texts])
        unseen = (self.positions > at[:, None])[:, None, None]
        mask = torch.zeros(unseen.shape, dtype=torch.bfloat16).masked_fill(unseen, float("-inf"))
        cos, sin = self.cos[at][:, None].bfloat16(), self.sin[at][:, None].bfloat16()
        rows = torch.arange(SLOTS)

        def rotated(x):
            a, b = x.chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

        x = net.model.embed_tokens(tokens)
        for block, (keys, values) in zip(net.model.layers, self.caches):
            normed, attention = block.input_layernorm(x), block.self_attn
            q = rotated(attention.q_proj(normed).view(SLOTS, heads, self.size))
            keys[rows, :, at] = rotated(attention.k_proj(normed).view(SLOTS, kv, self.size))
            values[rows, :, at] = attention.v_proj(normed).view(SLOTS, kv, self.size)
            # Over the whole cache, whose products need no copies: half the time of F.scaled_dot_product_attention when it is full.
            scores = q.view(SLOTS, kv, heads // kv, self.size) @ keys.transpose(2, 3) * self.size ** -0.5 + mask
            y = scores.softmax(-1) @ values
            x = x + attention.o_proj(y.reshape(SLOTS, -1))
            normed, mlp = block.post_attention_layernorm(x), block.mlp
            x = x + mlp.down_proj(F.silu(mlp.gate_proj(normed)) * mlp.up_proj(normed))
        states = net.model.norm(x)
        writing = [i for i, text in enumerate(self.texts) if text["at"] + 1 == len(text["tokens"])]
        if writing:
            logits = F.linear(states[writing], net.output_matrix()).float()
            chosen = logits.argmax(-1)
            warm = [row for row, i in enumerate(writing) if self.texts[i]["temperature"] > 0]
            # By the inverse of the distribution function: torch.multinomial draws a number for every token of every row.
            below = logits[warm].softmax(-1).cumsum(-1)
            chosen[warm] = torch.searchsorted(below, torch.rand(len(warm), 1) * below[:, -1:])[:, 0]
            for i, token in zip(writing, chosen.tolist()):
                self.texts[i]["tokens"].append(token)
        kept = states.half().numpy()
        for i, text in enumerate(self.texts):
            text["states"].append(kept[i])
            text["at"] += 1
            ended = text["at"] >= text["prompt"] and text["tokens"][-1] == END
            if ended or len(text["tokens"]) - text["prompt"] >= NEW:
                yield text
                self.texts[i] = self.begin()


def cmd_texts(args: argparse.Namespace) -> None:
    """Let the target answer prompts until there are so many tokens of answers."""
    import torch
    from tokenizers import Tokenizer
    from train_heads import load_target

    chat = chat_template()
    torch.set_num_threads(args.threads)
    folder = args.work / "texts"
    folder.mkdir(parents=True, exist_ok=True)
    shards = sorted(folder.glob(f"{args.part}-*.npz"))
    torch.manual_seed(SEED + 1000 * args.part + len(shards))
    rng = np.random.default_rng([SEED, args.part, len(shards)])
    tokenizer = Tokenizer.from_file(str(args.models / "smollm2" / "tokenizer.json"))
    answers: list[str] = []
    written = sum(int(np.load(path)["answer"].sum()) for path in shards)

    def prompts():
        for task, text in prompt_texts(rng, answers, chat):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if len(ids) <= LONGEST_PROMPT:
                yield task, ids, int(rng.integers(2))

    net = load_target(args.models / "smollm2")
    begin, here, done, dropped = time.time(), 0, [], 0
    with torch.no_grad():
        writer = Writer(net, prompts())
        while written < args.tokens:
            for text in writer.step():
                answer = text["tokens"][text["prompt"]:]
                if len(answer) < 8 or repeated_share(answer) > 0.2:
                    dropped += 1
                    continue
                if text["task"] in ("prose", "dialogue") and text["temperature"] > 0:
                    answers.append(tokenizer.decode(answer))
                    del answers[:-500]
                done.append(text)
                written, here = written + len(answer), here + len(answer)
            if len(done) >= SHARD:
                path = write_shard(folder, str(args.part), len(shards), done)
                shards.append(path)
                print(f"{time.strftime('%H:%M:%S')} {path.name}: {written} tokens, {here / (time.time() - begin):.0f} a second, "
                      f"{dropped} texts dropped, which repeated themselves or were short", flush=True)
                done = []


def write_shard(folder: Path, part: str, number: int, texts: list[dict]) -> Path:
    """Texts with "tokens", "prompt" (its length), "temperature" and "states" (of all tokens but the last)."""
    path, unfinished = folder / f"{part}-{number:05d}.npz", folder / f"unfinished-{part}.npz"
    np.savez(unfinished, tokens=np.concatenate([t["tokens"] for t in texts]).astype(np.int32),
             length=np.array([len(t["tokens"]) for t in texts], np.int32),
             prompt=np.array([t["prompt"] for t in texts], np.int32),
             answer=np.array([len(t["tokens"]) - t["prompt"] for t in texts], np.int32),
             temperature=np.array([t["temperature"] for t in texts], np.int32),
             states=np.concatenate([np.stack(t["states"]) for t in texts]))
    os.replace(unfinished, path)
    return path


def read_pairs(rng):
    """Prompts with answers that people wrote: documented functions behind their code, paragraphs behind their names."""
    codes = [code for code in functions() if '"""' in code]
    paragraphs = passages()
    while True:
        if rng.random() < 0.5:
            code = codes[int(rng.integers(len(codes)))]
            bare = re.sub(r'\n[ \t]*[rR]?"""(?:.|\n)*?"""', "", code, count=1)
            yield f"{CODE[int(rng.integers(3))]}\n\n```python\n{bare}\n```", f"```python\n{code}\n```"
        else:
            text = paragraphs[int(rng.integers(len(paragraphs)))]
            if rng.random() < 0.5:
                yield f"{SUMMARY[int(rng.integers(len(SUMMARY)))]}\n\n{text}", ". ".join(text.split(". ")[:2])
            else:
                yield PROSE[int(rng.integers(len(PROSE)))].format(" ".join(text.split()[:4])), text


def cmd_read(args: argparse.Namespace) -> None:
    """Let the target read answers that people wrote, ten times as fast as it writes its own."""
    import torch
    from tokenizers import Tokenizer
    from train_heads import load_target, states

    chat = chat_template()
    torch.set_num_threads(args.threads)
    folder = args.work / "texts"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(args.models / "smollm2" / "tokenizer.json"))
    net = load_target(args.models / "smollm2").bfloat16()
    net.cos, net.sin = net.cos.bfloat16(), net.sin.bfloat16()
    number = len(list(folder.glob("read-*.npz")))
    pairs = read_pairs(np.random.default_rng([SEED, 77, number]))
    read, begin = 0, time.time()
    while read < args.tokens:
        texts = []
        while len(texts) < SHARD:
            question, answer = next(pairs)
            prompt = tokenizer.encode(chat(question), add_special_tokens=False).ids
            tokens = prompt + tokenizer.encode(answer, add_special_tokens=False).ids + [END]
            if len(tokens) <= LONGEST_PROMPT + NEW:
                texts.append({"tokens": tokens, "prompt": len(prompt), "temperature": 1})
        texts.sort(key=lambda t: len(t["tokens"]))
        with torch.no_grad():
            for at in range(0, SHARD, 16):
                batch = texts[at:at + 16]
                longest = max(len(t["tokens"]) for t in batch)
                tokens = torch.tensor([t["tokens"] + [0] * (longest - len(t["tokens"])) for t in batch])
                final = net.model.norm(states(net, tokens)[-1]).half().numpy()
                for text, rows in zip(batch, final):
                    text["states"] = rows[:len(text["tokens"]) - 1]
        write_shard(folder, "read", number, texts)
        number, read = number + 1, read + sum(len(t["tokens"]) for t in texts)
        print(f"{time.strftime('%H:%M:%S')} {read} tokens read, {read / (time.time() - begin):.0f} a second", flush=True)


def chat_template():
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("real_model", str(TOP / "scripts" / "real_model")).load_module().chat


# ----------------------------------------------------------------- training


def read_texts(work: Path) -> tuple[list[dict], list[dict]]:
    """The texts to train on, and every twentieth, which is held out."""
    texts = []
    for path in sorted((work / "texts").glob("*-[0-9]*.npz")):
        shard = np.load(path)
        tokens, states = shard["tokens"], shard["states"]
        at = read = 0
        for length, prompt in zip(shard["length"], shard["prompt"]):
            texts.append({"tokens": tokens[at:at + length], "states": states[read:read + length - 1], "prompt": int(prompt)})
            at, read = at + length, read + length - 1
    return [t for i, t in enumerate(texts) if i % 20], texts[::20]


def cmd_vocabulary(args: argparse.Namespace) -> None:
    """Choose the tokens that drafts know, by how often the answers have them."""
    counts = np.zeros(49152, np.int64)
    for text in read_texts(args.work)[0]:
        np.add.at(counts, text["tokens"][text["prompt"]:], 1)
    order = np.argsort(-counts, kind="stable")[:args.size]
    known = np.unique(np.append(order[order != 0][:args.size - 1], 0))
    np.save(args.work / "vocabulary.npy", known)
    print(f"{len(known)} tokens, which are {counts[known].sum() / counts.sum():.4f} of the answers'")


def cmd_ngrams(args: argparse.Namespace) -> None:
    """Count tokens, and pairs of them, of the answers and of what people wrote (README.md has the format)."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer

    vocab = 49152
    tokenizer = Tokenizer.from_file(str(args.models / "smollm2" / "tokenizer.json"))
    unigram, pairs = np.zeros(vocab, np.int64), []
    written = [t["tokens"][t["prompt"] - 1:] for t in read_texts(args.work)[0]]
    for text in [*functions(), *passages()]:
        written.append(tokenizer.encode(text, add_special_tokens=False).ids + [END])
    for ids in written:
        ids = np.asarray(ids, np.int64)
        np.add.at(unigram, ids, 1)
        pairs.append(ids[:-1] * vocab + ids[1:])
    keys, counts = np.unique(np.concatenate(pairs), return_counts=True)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    args.out.mkdir(parents=True, exist_ok=True)
    save_file({"unigram.counts": unigram,
               "bigram.row_offsets": np.searchsorted(keys, np.arange(vocab + 1) * vocab).astype(np.int32),
               "bigram.tokens": (keys % vocab).astype(np.int32), "bigram.counts": counts.astype(np.int32)},
              args.out / "ngrams.safetensors",
              metadata={"format": "specdec-ngrams", "version": "1", "vocab_size": str(vocab), "min_count": "1",
                        "discount": str(once / (once + 2 * twice))})
    print(f"{unigram.sum()} tokens, {len(keys)} distinct pairs")


class Batches:
    """Endless batches of texts of about one length, reproducible and seekable."""

    def __init__(self, texts: list[dict], tokens: int, number: int = 0) -> None:
        self.texts, self.tokens, self.number = texts, tokens, number

    def __iter__(self):
        while True:
            order = sorted(range(len(self.texts)), key=lambda i: len(self.texts[i]["tokens"]))
            batches, batch = [], []
            for i in order:
                if batch and (len(batch) + 1) * len(self.texts[i]["tokens"]) > self.tokens:
                    batches.append(batch)
                    batch = []
                batch.append(i)
            batches.append(batch)
            epoch, at = divmod(self.number, len(batches))
            chosen = np.random.default_rng([SEED, epoch]).permutation(len(batches))
            for b in chosen[at:]:
                self.number += 1
                yield padded([self.texts[i] for i in batches[b]], False)


def padded(texts: list[dict], answers_alone: bool):
    """Tokens [B, T], states [B, T, H] and whether a position is behind the system's part of the prompt [B, T]."""
    import torch

    longest = max(len(t["tokens"]) for t in texts)
    tokens = torch.zeros(len(texts), longest, dtype=torch.int64)
    states = torch.zeros(len(texts), longest, texts[0]["states"].shape[1], dtype=torch.bfloat16)
    answer = torch.zeros(len(texts), longest, dtype=torch.bool)
    for i, text in enumerate(texts):
        n = len(text["tokens"])
        tokens[i, :n] = torch.from_numpy(text["tokens"].astype(np.int64))
        states[i, :n - 1] = torch.from_numpy(text["states"])
        answer[i, text["prompt"] - 1 if answers_alone else SYSTEM:n - 1] = True
    return tokens, states, answer


class Head:
    """The head in training; its rows at each depth of a round.

    The target's states are 14 times as large as its embeddings, and some of their dimensions 20 times as large as others. So
    it learns on inputs of unit size; fold() moves the units into its weights.
    """

    def __init__(self, target, known) -> None:
        import torch
        from train_heads import build_heads

        self.net, self.target = build_heads("eagle", target), target
        self.net.register_buffer("units", torch.ones(2, target.shape.hidden))
        self.rows = target.output_matrix()[known].bfloat16()

    def measure_units(self, texts: list[dict]) -> None:
        import torch

        states = torch.from_numpy(np.concatenate([t["states"][SYSTEM:] for t in texts[:200]])).float()
        for unit, inputs in zip(self.net.units, (self.target.model.embed_tokens.weight.data, states)):
            unit.copy_(inputs.pow(2).mean(0).rsqrt())

    def fold(self) -> None:
        self.net.fc.weight.data.mul_(self.net.units.flatten())
        self.net.units.fill_(1.0)

    def depths(self, tokens, states, answer, count: int):
        """Yield (features, the target's states of the same positions, chosen positions)."""
        kept: list = []
        feature = states
        for depth in range(1, count + 1):
            n = tokens.shape[1] - depth
            embedded, features = self.target.model.embed_tokens(tokens[:, depth:]), feature[:, :n]
            feature = self.net(embedded * self.net.units[0], features * self.net.units[1], kept, depth)
            yield feature, states[:, depth:], answer[:, depth:]

    def output_rows(self):
        return self.rows


class Draft:
    """The small model in training."""

    def __init__(self, target, known) -> None:
        import torch
        from train import Shape, build_model

        self.net = build_model(Shape(**SHAPES["draft"], vocab=len(known), positions=target.shape.positions))
        self.own = torch.zeros(target.shape.vocab, dtype=torch.int64)
        self.own[known] = torch.arange(len(known))

    def depths(self, tokens, states, answer, count: int):
        net, t = self.net, tokens.shape[1]
        x = net.model.embed_tokens(self.own[tokens])
        for block in net.model.layers:
            x = block(x, net.cos[:t], net.sin[:t])
        yield net.model.norm(x), states, answer

    def output_rows(self):
        return self.net.output_matrix()


def load_parts(args: argparse.Namespace):
    import torch
    from train_heads import load_target

    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    known = torch.from_numpy(np.load(args.work / "vocabulary.npy"))
    target = load_target(args.models / "smollm2")
    return known, target, {"head": Head, "draft": Draft}[args.what](target, known)


def distillation_loss(features, rows, final, teacher_rows):
    """The loss of features [N, H] against the target's states [N, T], and its parts: cross entropy and what is rejected.

    A block of features at a time goes through both output matrices, so that rows of 8,192 numbers stay in the cache. That
    needs the gradient written out. With logits z, d(entropy)/dz = q - p and d(rejected)/dz = q (sum of q below p - [q < p]).
    """
    import torch

    class Distilled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, features, rows, final):
            slopes = torch.empty_like(features)
            row_slopes = torch.zeros_like(rows) if ctx.needs_input_grad[1] else None
            entropy = rejected = 0.0
            for at in range(0, len(features), 128):
                block = features[at:at + 128]
                p = (final[at:at + 128] @ teacher_rows.T).float().softmax(-1)
                log_q = (block @ rows.T).float().log_softmax(-1)
                entropy -= float(torch.dot(p.flatten(), log_q.flatten()))
                q = log_q.exp_()
                rejected += len(block) - float(torch.minimum(p, q).sum())
                below = q * (q < p)
                slope = q.mul_(ENTROPY + below.sum(-1, keepdim=True)).sub_(below).sub_(p, alpha=ENTROPY).to(rows.dtype)
                slopes[at:at + 128] = slope @ rows
                if row_slopes is not None:
                    row_slopes += slope.T @ block
            ctx.slopes = [None if s is None else s / len(features) for s in (slopes, row_slopes)]
            return features.new_tensor((ENTROPY * entropy + rejected) / len(features), dtype=torch.float32), entropy, rejected

        @staticmethod
        def backward(ctx, loss, *_):
            return (*(None if s is None else s * loss for s in ctx.slopes), None)

    loss, entropy, rejected = Distilled.apply(features.bfloat16(), rows.bfloat16(), final)
    return loss, entropy / len(features), rejected / len(features)


def cmd_train(args: argparse.Namespace) -> None:
    """Train the head or the draft for so many minutes, from its checkpoint on."""
    import torch
    from train import save

    known, target, part = load_parts(args)
    texts, held_out = read_texts(args.work)
    run = args.work / "runs" / args.what
    run.mkdir(parents=True, exist_ok=True)
    params = list(part.net.parameters())
    optimizer = torch.optim.AdamW(params, lr=RATES[args.what], betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    state = {"step": 0, "seen": 0, "batch": 0}
    if args.what == "head":
        part.measure_units(texts)
    if (run / "checkpoint.pt").exists() and not args.fresh:
        stored = torch.load(run / "checkpoint.pt", weights_only=True)
        part.net.load_state_dict(stored["net"])
        optimizer.load_state_dict(stored["optimizer"])
        state = stored["state"]
    log = open(run / "log.txt", "a", encoding="utf-8")

    def say(text: str) -> None:
        line = time.strftime("%H:%M:%S ") + text
        print(line, file=log, flush=True)
        print(line, flush=True)

    def checkpoint() -> None:
        save(run / "checkpoint.pt", {"net": part.net.state_dict(), "optimizer": optimizer.state_dict(), "state": state})

    teacher_rows = target.output_matrix()[known].bfloat16()
    begin, first = time.time(), state["step"]
    end, saved, losses, since = begin + 60 * args.minutes, begin, {}, 0
    say(f"start {args.what}: {sum(p.numel() for p in params)} parameters, {len(texts)} texts, step {first}, seen {state['seen']}")
    batches = Batches(texts, 2048, state["batch"])
    for tokens, states, answer in batches:
        left = (end - time.time()) / (end - begin)
        if left <= 0:
            break
        rate = RATES[args.what] * max(0.0, min(1.0, (state["step"] - first + 1) / 50, left / 0.5))
        for group in optimizer.param_groups:
            group["lr"] = rate
        total = 0.0
        # Deeper steps of a round take twice the time: only in the last 60% of it.
        count = DEPTHS if args.what == "head" and left < 0.6 else 1
        with torch.autocast("cpu", torch.bfloat16):
            for depth, (features, final, chosen) in enumerate(part.depths(tokens, states, answer, count)):
                chosen = chosen & (torch.rand(chosen.shape) < 0.5)
                loss, *parts = distillation_loss(features[chosen], part.output_rows(), final[chosen], teacher_rows)
                losses[depth] = losses.get(depth, np.zeros(2)) + parts
                total = total + 0.8 ** depth * loss
        total.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        since += 1
        state.update(step=state["step"] + 1, seen=state["seen"] + int(answer.sum()), batch=batches.number)
        if state["step"] % 50 == 0:
            say(f"step {state['step']} seen {state['seen']} lr {rate:.1e} entropy/rejected "
                + " ".join(f"{v[0] / since:.3f}/{v[1] / since:.3f}" for v in losses.values()))
            losses, since = {}, 0
        if time.time() - saved > 120:
            checkpoint()
            saved = time.time()
    checkpoint()
    say(f"end step {state['step']} seen {state['seen']}; held out: {held_out_alphas(part, target, known, held_out[:200])}")


def held_out_alphas(part, target, known, texts: list[dict]) -> str:
    """Mean of sum min(p, q) over whole rows of the target, and how often the first choices agree, at each depth."""
    import torch

    sums: dict[int, np.ndarray] = {}
    matrix = target.output_matrix().bfloat16()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for at in range(0, len(texts), 8):
            tokens, states, answer = padded(texts[at:at + 8], True)
            for depth, (features, final, chosen) in enumerate(part.depths(tokens, states, answer, DEPTHS)):
                p = torch.softmax((final[chosen] @ matrix.T).float(), -1)
                q = torch.softmax((features[chosen] @ part.output_rows().T).float(), -1)
                same = known[q.argmax(-1)] == p.argmax(-1)
                sums[depth] = sums.get(depth, np.zeros(3)) + [
                    float(torch.minimum(p[:, known], q).sum()), float(same.sum()), len(p)]
    return ", ".join(f"depth {d + 1} alpha {s[0] / s[2]:.4f} same {s[1] / s[2]:.4f}" for d, s in sums.items())


# ------------------------------------------------------- evaluation, export


def rounded(args: argparse.Namespace):
    """The parts of the last checkpoint, its weights rounded to F16."""
    import torch

    known, target, part = load_parts(args)
    stored = torch.load(args.work / "runs" / args.what / "checkpoint.pt", weights_only=True)
    part.net.load_state_dict(stored["net"])
    if args.what == "head":
        part.fold()
    for values in part.net.parameters():
        values.data = values.data.half().float()
    return known, target, part


def cmd_evaluate(args: argparse.Namespace) -> None:
    """Acceptance on the answers that were held out."""
    known, target, part = rounded(args)
    print(held_out_alphas(part, target, known, read_texts(args.work)[1]))


def cmd_export(args: argparse.Namespace) -> None:
    """Write the head as a file, or the draft as a checkpoint, in F16 with the tokens that it knows."""
    import torch
    from safetensors.torch import save_file

    known, target, part = rounded(args)
    # EAGLE-3's way to say which token of the target a row is: how much its number exceeds the row's.
    tensors = {"d2t": known - torch.arange(len(known))}
    prefix = "eagle." if args.what == "head" else ""
    tensors.update({prefix + k: v.half().contiguous() for k, v in part.net.named_parameters()})
    args.out.mkdir(parents=True, exist_ok=True)
    if args.what == "head":
        save_file(tensors, args.out / "eagle_head.safetensors", metadata={
            "format": "specdec-eagle-head", "version": "1", "hidden_size": str(target.shape.hidden),
            "vocab_size": str(target.shape.vocab), "num_hidden_layers": str(target.shape.layers)})
        return
    shape = part.net.shape
    save_file(tensors, args.out / "model.safetensors", metadata={"format": "pt"})
    (args.out / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_act": "silu", "hidden_size": shape.hidden, "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "max_position_embeddings": shape.positions,
        "rms_norm_eps": shape.eps, "rope_theta": shape.theta, "vocab_size": target.shape.vocab,
        "draft_vocab_size": len(known), "tie_word_embeddings": True}, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    sub = parser.add_subparsers(dest="command", required=True)
    for name, call in (("texts", cmd_texts), ("read", cmd_read), ("vocabulary", cmd_vocabulary), ("ngrams", cmd_ngrams), ("train", cmd_train),
                       ("evaluate", cmd_evaluate), ("export", cmd_export)):
        p = sub.add_parser(name, help=call.__doc__.split("\n", 1)[0])
        p.add_argument("--work", type=Path, required=True, help="working directory")
        p.add_argument("--models", type=Path, required=True, help="folder of scripts/real_model")
        p.add_argument("--threads", type=int, default=1)
        p.set_defaults(call=call)
        if name == "texts":
            p.add_argument("--part", type=int, default=0, help="of several runs at a time, each with a number of its own")
            p.add_argument("--tokens", type=float, default=1e6, help="tokens of answers in this part's shards")
        elif name == "read":
            p.add_argument("--tokens", type=float, default=3e5)
        elif name == "vocabulary":
            p.add_argument("--size", type=int, default=8192)
        elif name != "ngrams":
            p.add_argument("--what", choices=RATES, required=True)
        if name == "train":
            p.add_argument("--minutes", type=float, default=40)
            p.add_argument("--fresh", action="store_true", help="begin anew")
        if name in ("ngrams", "export"):
            p.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.call(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
