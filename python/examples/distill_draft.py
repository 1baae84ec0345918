#!/usr/bin/env python3
"""Trains a draft towards its target on the target's own text, and says what that does to acceptance.

usage: distill_draft.py --output DIR [--loss kl|tv|d_lk] [--steps N] [--target DIR] [--draft DIR] [--prompts FILE]

The target writes texts from its first token alone at temperature 1. At every position of them the draft's distribution q
is moved towards the target's p by one of

    kl    sum p log(p / q)              forward Kullback-Leibler divergence
    tv    sum |p - q| / 2               total variation distance
    d_lk  sum |p - (p + q) / 2|         the distance of Leviathan et al. 2023, Definition 3.2

of which the last two are one number, 1 - sum min(p, q): what is rejected. Before and after, specdec.record lets the target
continue held-out prompts and specdec.analyze says the acceptance rate, over the same texts. DIR gets the new draft, for
transformers and for `specdec compare --draft-model DIR`. The models are the shipped pair where no others are named.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import tempfile
from typing import Any

import specdec
import torch
import transformers


def kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence from log-probabilities, (..., vocabulary); nats, >= 0."""
    return (p.exp() * (p - q)).sum(-1)


def tv(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Total variation distance from log-probabilities, (..., vocabulary); in [0, 1]."""
    return (p.exp() - q.exp()).abs().sum(-1) / 2


def d_lk(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Leviathan et al.'s distance from log-probabilities, (..., vocabulary); in [0, 1]."""
    return (p.exp() - (p.exp() + q.exp()) / 2).abs().sum(-1)


LOSSES = {"kl": kl, "tv": tv, "d_lk": d_lk}


def write_texts(target: Any, count: int, length: int, batch: int = 64) -> torch.Tensor:
    """The target's own texts, (count, length), each from the first token on."""
    begin = torch.full((batch, 1), target.config.bos_token_id)
    how = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": length - 1, "eos_token_id": None}
    target.generation_config.eos_token_id = None  # a text goes on behind its end, as the training text of both did
    parts = []
    for _ in range(-(-count // batch)):
        parts.append(target.generate(begin, attention_mask=torch.ones_like(begin), pad_token_id=0, **how))
        print(f"{len(parts) * batch} texts of {length} tokens are written", flush=True)
    return torch.cat(parts)[:count]


def distill(
    target: Any, draft: Any, texts: torch.Tensor, loss_of: Any, *, steps: int, rate: float = 1e-3, batch: int = 16
) -> None:
    """Trains the draft on random texts: AdamW, a tenth of the steps of warm-up, a fall to zero over the second half."""
    optimizer = torch.optim.AdamW(draft.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    summed = 0.0
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 10 * step / steps, 2 * (1 - (step - 1) / steps))
        ids = texts[torch.randint(len(texts), (batch,))]
        with torch.no_grad():
            p = target(ids).logits[:, :-1].float().log_softmax(-1)
        loss = loss_of(p, draft(ids).logits[:, :-1].float().log_softmax(-1)).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        summed += float(loss.detach())
        if step % 50 == 0:
            print(f"step {step} of {steps}, loss {summed / 50:.4f}", flush=True)
            summed = 0.0


def held_out(target: Any, draft: Any, tokenizer: Any, prompts: str, seed: int) -> Any:
    """The analysis of a recording of the pair. The texts are the target's, the same for every draft."""
    with tempfile.TemporaryDirectory() as folder:
        recording = specdec.record(
            target, draft, prompts, tokenizer=tokenizer, output=folder, max_new_tokens=64, batch_size=24, seed=seed
        )
        return specdec.analyze(recording)


def main() -> None:
    shipped = specdec.shipped_models()
    parser = argparse.ArgumentParser(description="Trains a draft towards its target on the target's own text.")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder of the new draft")
    parser.add_argument("--loss", choices=LOSSES, default="d_lk")
    parser.add_argument("--steps", type=int, default=400, help="of training, 16 texts each")
    parser.add_argument("--texts", type=int, default=1024, help="that the target writes")
    parser.add_argument("--length", type=int, default=256, help="tokens of each")
    parser.add_argument("--target", type=pathlib.Path, default=shipped / "target")
    parser.add_argument("--draft", type=pathlib.Path, default=shipped / "draft")
    parser.add_argument("--prompts", default=str(shipped / "prompts.jsonl"), help="held-out prompts, as for specdec record")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.steps < 1 or args.texts < 1 or args.length < 2:
        parser.error("steps and texts must be 1 or more, length 2 or more")
    if args.output.exists() and args.output.resolve() in (args.target.resolve(), args.draft.resolve()):
        parser.error(f"output is {args.output}, which is read")

    torch.manual_seed(args.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.target)
    target, draft = (
        transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32) for path in (args.target, args.draft)
    )
    target.requires_grad_(False)
    before = held_out(target, draft, tokenizer, args.prompts, args.seed)
    texts = write_texts(target, args.texts, args.length)
    draft.train()
    distill(target, draft, texts, LOSSES[args.loss], steps=args.steps)
    draft.eval()
    after = held_out(target, draft, tokenizer, args.prompts, args.seed)

    draft.save_pretrained(args.output)
    for name in ("tokenizer.model", "tokenizer_config.json"):
        if (args.draft / name).exists():
            shutil.copy(args.draft / name, args.output)
    for name, answer in (("before", before), ("after", after)):
        low, high = answer.alpha.ci95
        print(f"alpha {name} {answer.alpha.value:.4f} (95%: {low:.4f} to {high:.4f}), D_LK {answer.d_lk.value:.4f}")


if __name__ == "__main__":
    main()
