#!/usr/bin/env python3
"""Trains drafts for SmolLM2-135M-Instruct on the model's own answers.

Usage (after scripts/real_model, with torch, numpy, safetensors and tokenizers; MODELS is its folder):
    train_smollm2.py texts      --work DIR --models MODELS --tokens 1e6
    train_smollm2.py vocabulary --work DIR --models MODELS
    train_smollm2.py train      --work DIR --models MODELS --what head  --minutes 40
    train_smollm2.py train      --work DIR --models MODELS --what draft --minutes 20
    train_smollm2.py evaluate   --work DIR --models MODELS --what head
    train_smollm2.py export     --work DIR --models MODELS --what head --out FOLDER

texts       the target's answers, half at temperature 0 and half at 1, with its state after the final norm at every
            position, in shards; run again it adds shards
vocabulary  the tokens that drafts know: the most frequent ones of the answers, --size of them
head        a head in the manner of EAGLE (train_heads.py), whose output rows are the target's for those tokens
draft       a small model of the Llama layout that knows those tokens alone

Both are trained on what is rejected, 1 - sum min(p, q), and on cross entropy against the target's distribution. A run
goes on from its checkpoint; --fresh begins anew.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
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
LONGEST_PROMPT, NEW, SLOTS, SHARD = 224, 192, 96, 64  # tokens, tokens, texts at a time, texts of a shard
SHAPES = {"draft": dict(hidden=128, layers=2, heads=4, intermediate=384)}
RATES = {"head": 1e-3, "draft": 3e-3}
DEPTHS = 3


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
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                text = textwrap.dedent(ast.get_source_segment(source, node, padded=True) or "")
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
        longest = int(at.max()) + 1
        seen = (torch.arange(longest)[None] <= at[:, None])[:, None, None]
        mask = torch.zeros(seen.shape, dtype=torch.bfloat16).masked_fill(~seen, float("-inf"))
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
            y = F.scaled_dot_product_attention(q.view(SLOTS, kv, heads // kv, self.size), keys[:, :, :longest],
                                               values[:, :, :longest], attn_mask=mask)
            x = x + attention.o_proj(y.reshape(SLOTS, -1))
            x = x + block.mlp(block.post_attention_layernorm(x))
        states = net.model.norm(x)
        writing = [i for i, text in enumerate(self.texts) if text["at"] + 1 == len(text["tokens"])]
        if writing:
            logits = F.linear(states[writing], net.output_matrix()).float()
            greedy = logits.argmax(-1).tolist()
            sampled = torch.multinomial(logits.softmax(-1), 1)[:, 0].tolist()
            for i, first, drawn in zip(writing, greedy, sampled):
                text = self.texts[i]
                text["tokens"].append(first if text["temperature"] == 0 else drawn)
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
    shards = sorted(folder.glob("*.npz"))
    torch.manual_seed(SEED + len(shards))
    rng = np.random.default_rng([SEED, len(shards)])
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
                path = folder / f"{len(list(folder.glob('*.npz'))):05d}.npz"
                np.savez(folder / "part.npz.tmp.npz", tokens=np.concatenate([t["tokens"] for t in done]).astype(np.int32),
                         length=np.array([len(t["tokens"]) for t in done], np.int32),
                         prompt=np.array([t["prompt"] for t in done], np.int32),
                         answer=np.array([len(t["tokens"]) - t["prompt"] for t in done], np.int32),
                         temperature=np.array([t["temperature"] for t in done], np.int32),
                         states=np.concatenate([np.stack(t["states"]) for t in done]))
                os.replace(folder / "part.npz.tmp.npz", path)
                print(f"{time.strftime('%H:%M:%S')} {path.name}: {written} tokens, {here / (time.time() - begin):.0f} a second, "
                      f"{dropped} texts dropped, which repeated themselves or were short", flush=True)
                done = []


def chat_template():
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("real_model", str(TOP / "scripts" / "real_model")).load_module().chat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    sub = parser.add_subparsers(dest="command", required=True)
    for name, call in (("texts", cmd_texts),):
        p = sub.add_parser(name, help=call.__doc__.split("\n", 1)[0])
        p.add_argument("--work", type=Path, required=True, help="working directory")
        p.add_argument("--models", type=Path, required=True, help="folder of scripts/real_model")
        p.add_argument("--threads", type=int, default=2)
        p.set_defaults(call=call)
        if name == "texts":
            p.add_argument("--tokens", type=float, default=1e6, help="tokens of answers in all shards")
    args = parser.parse_args()
    args.call(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
