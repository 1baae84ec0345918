#!/usr/bin/env python3
"""Train drafting heads and early exits on a finished target, which stays as it is.

Usage (after prepare_corpus.py, and train.py encode with the target's tokenizer):
    train_heads.py train    --work DIR --heads exits    --minutes 6
    train_heads.py train    --work DIR --heads parallel --minutes 12
    train_heads.py train    --work DIR --heads eagle    --minutes 40
    train_heads.py evaluate --work DIR --heads NAME
    train_heads.py export   --work DIR --heads NAME --out sim/models

The target is the shipped one, or with --target a folder with config.json and
model*.safetensors of the Llama family, without biases and stretched positions.
README.md says how to train on other text.

Every kind of head ends in a vector that the target's output matrix turns into
logits. f is the target's state after its final norm, h_k its state after k of
its blocks, E its embedding, O its output matrix (E where they are shared).

exits     e_k = h_k + W_k norm_k(h_k), logits O final_norm(e_k), k = 1, 2, ..
          up to the last block but one
parallel  r_j = f + silu(W_j f + b_j), logits O r_j: the token j places beyond
          the next one, j = 1..5
eagle     the feature of the next position, g = norm(block(fc [E x; f])) with x
          the token after f's; logits O g.  Deeper in a round g takes f's place.

All are trained on cross entropy against the target's own distribution at the
position that they predict.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from train import (TASKS, SEED, Shape, Stream, build_model, heldout_windows, parse_deadline,
                   save)

HERE = Path(__file__).resolve().parent
OFFSETS = 5  # parallel heads
DEPTHS = 5  # depths of a round that evaluation looks at
LENGTH = 256  # tokens of a training sequence
BATCH = 16  # sequences of a step
RATES = {"exits": 2e-3, "parallel": 2e-3, "eagle": 2e-3}  # peak learning rates
FILES = {"exits": ("exits.safetensors", "specdec-exits"),  # name and format in the metadata
         "parallel": ("parallel_heads.safetensors", "specdec-parallel-heads"),
         "eagle": ("eagle_head.safetensors", "specdec-eagle-head")}


# ---------------------------------------------------------------- target


def read_shape(path: Path) -> Shape:
    """The shape in a config.json; what build_model does not do is refused."""
    config = json.loads(path.read_text(encoding="utf-8"))
    rope = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling") or rope
    fixed = {"model_type": (config.get("model_type"), "llama"),
             "hidden_act": (config.get("hidden_act", "silu"), "silu"),
             "attention_bias": (config.get("attention_bias", False), False),
             "mlp_bias": (config.get("mlp_bias", False), False),
             "rope type": (scaling.get("rope_type", scaling.get("type", "default")), "default")}
    for name, (found, expected) in fixed.items():
        if found != expected:
            raise SystemExit(f"{path}: {name} is {found}, but must be {expected}")
    return Shape(
        hidden=config["hidden_size"], layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"], intermediate=config["intermediate_size"],
        key_value_heads=config.get("num_key_value_heads") or 0,
        head_size=config.get("head_dim") or 0, vocab=config["vocab_size"],
        positions=config.get("max_position_embeddings", 2048),
        theta=config.get("rope_theta") or rope.get("rope_theta") or 10000.0,
        eps=config.get("rms_norm_eps", 1e-6), tied=config.get("tie_word_embeddings", False))


def load_target(folder: Path):
    """A target with its weights in F32, frozen."""
    from safetensors.torch import load_file

    net = build_model(read_shape(folder / "config.json"))
    stored: dict = {}
    for part in sorted(folder.glob("model*.safetensors")):
        stored.update(load_file(part))
    if net.shape.tied:
        stored.pop("lm_head.weight", None)
    net.load_state_dict({k: v.float() for k, v in stored.items()})
    return net.requires_grad_(False).eval()


def window_of(net) -> int:
    """Tokens of a sequence; the depths of a round stand behind it."""
    return min(LENGTH, net.shape.positions - DEPTHS)


def states(net, tokens) -> list:
    """h_0, h_1, .. [B, T, H]: the stream before and after each block."""
    t = tokens.shape[1]
    x = net.model.embed_tokens(tokens)
    out = [x]
    for block in net.model.layers:
        x = block(x, net.cos[:t], net.sin[:t])
        out.append(x)
    return out


def logits_of(net, features):
    """O times the features, in F32."""
    import torch.nn.functional as F

    return F.linear(features, net.output_matrix()).float()


# ----------------------------------------------------------------- heads


def build_heads(kind: str, net):
    """The torch module of one kind; parameter names match the exported file."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    hidden = net.shape.hidden

    def rms(x, weight):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + net.shape.eps) * weight

    class Exits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for k in range(1, net.shape.layers):
                part = nn.Module()
                part.norm, part.proj = nn.Module(), nn.Linear(hidden, hidden, bias=False)
                part.norm.weight = nn.Parameter(torch.ones(hidden))
                part.proj.weight.data.zero_()
                setattr(self, str(k), part)

        def forward(self, k: int, h):
            part = getattr(self, str(k))
            e = h + part.proj(rms(h, part.norm.weight))
            return rms(e, net.model.norm.weight)

    class Parallel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for j in range(1, OFFSETS + 1):
                part = nn.Linear(hidden, hidden)
                part.weight.data.zero_()
                part.bias.data.zero_()
                setattr(self, str(j), part)

        def forward(self, j: int, f):
            return f + F.silu(getattr(self, str(j))(f))

    class Eagle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            one = build_model(net.shape)
            self.fc = nn.Linear(2 * hidden, hidden, bias=False)
            self.layer = one.model.layers[0]
            self.norm = one.model.norm
            self.norm.weight.data.copy_(net.model.norm.weight)

        def forward(self, embedded, f, kept: list, depth: int):
            """Features of the next positions, [B, T, H], at one depth of the round.

            Entry t has the token t + depth, embedded, and the feature of t + depth - 1; at
            depth 1 features are the target's.  `kept` has keys and values of the lesser
            depths; entry t sees depth 1's entries to t and one entry of every later depth,
            which are those that a round begun at t makes.
            """
            t = f.shape[1]
            x = self.fc(torch.cat((embedded, f.to(embedded.dtype)), -1))
            at = slice(depth - 1, depth - 1 + t)  # positions of the entries
            attention = self.layer.self_attn
            q, k, v = attention.projected(self.layer.input_layernorm(x), net.cos[at], net.sin[at])
            kept.append((k, v))
            if depth == 1:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                first_k, first_v = kept[0]
                mask = torch.full((t, first_k.shape[2]), float("-inf")).triu(1)
                scores = [q @ first_k.transpose(-1, -2) + mask]
                scores += [(q * kk[:, :, :t]).sum(-1, keepdim=True) for kk, _ in kept[1:]]
                weight = torch.softmax(
                    torch.cat(scores, -1).float() * q.shape[-1] ** -0.5, -1).to(v.dtype)
                y = weight[..., :first_k.shape[2]] @ first_v
                for i, (_, vv) in enumerate(kept[1:]):
                    y = y + weight[..., first_k.shape[2] + i, None] * vv[:, :, :t]
            x = x + attention.output(y)
            x = x + self.layer.mlp(self.layer.post_attention_layernorm(x))
            return self.norm(x.float())

    torch.manual_seed(SEED)
    heads = {"exits": Exits, "parallel": Parallel, "eagle": Eagle}[kind]()
    if kind == "eagle":
        heads.fc.weight.data.normal_(0.0, 0.6 * (2 * hidden) ** -0.5)
    return heads


def predictions(kind: str, heads, net, tokens, depths: int):
    """Yield (name, make, final, shift): the layer, offset or depth; a call that computes its
    features [B, n, H], to be made before the next is asked for; the target's final states
    [B, n, H] that predict the same tokens, which stand `shift` positions further on.
    """
    import torch

    with torch.no_grad():
        stream = states(net, tokens)
        final = net.model.norm(stream[-1])
    if kind == "exits":
        for k in range(1, net.shape.layers):
            yield k, lambda k=k: heads(k, stream[k]), final, 0
    elif kind == "parallel":
        for j in range(1, OFFSETS + 1):
            yield j, lambda j=j: heads(j, final[:, :-j]), final[:, j:], j
    else:
        kept: list = []
        feature = final
        for depth in range(1, depths + 1):
            n = final.shape[1] - depth
            feature = heads(net.model.embed_tokens(tokens[:, depth:]), feature[:, :n], kept, depth)
            yield depth, lambda: feature, final[:, depth:], depth


# -------------------------------------------------------------- training


def cmd_train(args: argparse.Namespace) -> None:
    """Train one kind of head until the deadline.

    Warm-up over 100 steps, a constant rate, a linear fall to zero over the last 40 % of
    the time.  The eagle head sees depth 1 alone at first and --depths depths in the last
    60 % of the time.
    """
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    run = args.work / "runs" / args.heads
    run.mkdir(parents=True, exist_ok=True)
    net = load_target(args.target)
    heads = build_heads(args.heads, net)
    params = list(heads.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in params if p.ndim == 2], "weight_decay": 0.01},
         {"params": [p for p in params if p.ndim == 1], "weight_decay": 0.0}],
        lr=RATES[args.heads], betas=(0.9, 0.95), fused=True)
    step, elapsed, cursor = 0, 0.0, (0, 0)
    if args.resume and (run / "checkpoint.pt").exists():
        state = torch.load(run / "checkpoint.pt", weights_only=True)
        heads.load_state_dict(state["heads"])
        optimizer.load_state_dict(state["optimizer"])
        step, elapsed, cursor = state["step"], state["elapsed"], tuple(state["cursor"])
    length, hidden = window_of(net), net.shape.hidden
    stream = Stream(args.work, length, *cursor, tasks=args.tasks)
    if (most := max(int(d.max()) for d in stream.docs if len(d))) >= net.shape.vocab:
        raise SystemExit(f"a token is {most}, but the target has {net.shape.vocab}")
    log = open(run / "log.txt", "a", encoding="utf-8")

    def say(text: str) -> None:
        line = time.strftime("%H:%M:%S ", time.gmtime()) + text
        print(line, file=log, flush=True)
        print(line, flush=True)

    def checkpoint() -> None:
        save(run / "checkpoint.pt", {
            "heads": heads.state_dict(), "optimizer": optimizer.state_dict(), "step": step,
            "elapsed": elapsed, "cursor": (stream.epoch, stream.position)})

    end = parse_deadline(args.deadline) if args.deadline else time.time() + 60 * args.minutes
    begin = last = saved = time.time()
    begin -= elapsed
    losses: dict[int, float] = {}
    since = 0
    say(f"start {args.heads} parameters {sum(p.numel() for p in params)} step {step}")
    while time.time() < end:
        left = (end - time.time()) / (end - begin)
        for group in optimizer.param_groups:
            group["lr"] = RATES[args.heads] * max(0.0, min(1.0, (step + 1) / 100, left / 0.4))
        tokens = torch.from_numpy(stream.next(BATCH))
        with torch.autocast("cpu", torch.bfloat16):
            total = None
            for name, make, final, _ in predictions(args.heads, heads, net, tokens,
                                                    args.depths if left < 0.6 else 1):
                # The loss looks at a random half of the positions: the logits are what costs.
                flat = final.reshape(-1, hidden)
                chosen = torch.randperm(len(flat))[:len(flat) // 2]
                feature = make().reshape(-1, hidden)[chosen]
                with torch.no_grad():
                    teacher = torch.softmax(logits_of(net, flat[chosen]), -1)
                loss = -(teacher * torch.log_softmax(logits_of(net, feature), -1)).sum(-1).mean()
                losses[name] = losses.get(name, 0.0) + float(loss.detach())
                if args.heads == "eagle":
                    loss = loss + args.regression * F.smooth_l1_loss(feature, flat[chosen])
                    total = loss * 0.8 ** (name - 1) + (0.0 if total is None else total)
                else:
                    loss.backward()
            if total is not None:
                total.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        since += 1
        now = time.time()
        elapsed += now - last
        if step % args.log_every == 0:
            say(f"step {step} tokens {step * BATCH * length} lr {optimizer.param_groups[0]['lr']:.1e} loss "
                + " ".join(f"{name}:{value / since:.4f}" for name, value in losses.items())
                + f" seconds/step {elapsed / step:.3f}")
            losses, since = {}, 0
        last = now
        if now - saved > args.save_seconds:
            checkpoint()
            saved = now
    checkpoint()
    say(f"end step {step} tokens {step * BATCH * length} minutes {elapsed / 60:.1f}")


# ---------------------------------------------------- evaluation, export


def rounded(args: argparse.Namespace, net):
    """The heads of the last checkpoint, their weights rounded to F16."""
    import torch

    heads = build_heads(args.heads, net)
    state = torch.load(args.work / "runs" / args.heads / "checkpoint.pt", weights_only=True)
    heads.load_state_dict({k: v.half().float() for k, v in state["heads"].items()})
    return heads.requires_grad_(False)


def cmd_evaluate(args: argparse.Namespace) -> None:
    """Held-out figures by depth: what share of the text's tokens is the head's first choice,
    how often its first choice is the target's, and the mean of sum min(p, q)."""
    import torch

    torch.set_num_threads(args.threads)
    net = load_target(args.target)
    heads = rounded(args, net)
    hidden = net.shape.hidden
    print(f"{args.heads:8s} task   depth  text   same   sum min   tokens")
    with torch.no_grad():
        for task in args.tasks:
            sums: dict[int, np.ndarray] = {}
            for x, y in heldout_windows(args.work, task, window_of(net), args.limit):
                tokens, targets = torch.from_numpy(x), torch.from_numpy(y)
                for name, make, final, shift in predictions(args.heads, heads, net, tokens, DEPTHS):
                    text = targets[:, shift:].reshape(-1)
                    real = text >= 0
                    p = torch.softmax(logits_of(net, final.reshape(-1, hidden)[real]), -1)
                    q = torch.softmax(logits_of(net, make().reshape(-1, hidden)[real]), -1)
                    first = q.argmax(-1)
                    sums[name] = sums.get(name, np.zeros(4)) + np.array([
                        float((first == text[real]).sum()), float((first == p.argmax(-1)).sum()),
                        float(torch.minimum(p, q).sum()), float(real.sum())])
            for name, s in sums.items():
                print(f"{'':8s} {task:6s} {name:5d} {s[0] / s[3]:.4f} {s[1] / s[3]:.4f} "
                      f"{s[2] / s[3]:.4f} {int(s[3])}", flush=True)


def cmd_export(args: argparse.Namespace) -> None:
    """Write the heads of the last checkpoint as F16, with the sizes of the target that they are for."""
    import torch
    from safetensors.torch import save_file

    name, form = FILES[args.heads]
    net = load_target(args.target)
    heads = rounded(args, net)
    tensors = {f"{args.heads}.{k}": v.to(torch.float16).contiguous()
               for k, v in heads.state_dict().items()}
    if not all(torch.isfinite(v).all() for v in tensors.values()):
        raise SystemExit("a weight is outside the range of F16")
    part = args.out / f".{name}.part"
    save_file(tensors, part, metadata={
        "format": form, "version": "1", "hidden_size": str(net.shape.hidden),
        "vocab_size": str(net.shape.vocab), "num_hidden_layers": str(net.shape.layers)})
    part.chmod(0o644)
    os.replace(part, args.out / name)
    for key, value in sorted(tensors.items()):
        print(f"{key:50s} {list(value.shape)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    sub = parser.add_subparsers(dest="command", required=True)
    for name, call in (("train", cmd_train), ("evaluate", cmd_evaluate), ("export", cmd_export)):
        p = sub.add_parser(name, help=call.__doc__.split("\n", 1)[0])
        p.add_argument("--work", type=Path, required=True, help="working directory")
        p.add_argument("--heads", choices=FILES, required=True)
        p.add_argument("--target", type=Path, default=HERE / "target", help="folder of a checkpoint")
        p.add_argument("--threads", type=int, default=2)
        p.set_defaults(call=call)
        if name == "train":
            p.add_argument("--tasks", nargs="+", default=TASKS, help="of tokens/NAME.train.tokens.npy")
            p.add_argument("--deadline", help="end of the run, HH:MM in UTC")
            p.add_argument("--minutes", type=float, default=15.0, help="length without --deadline")
            p.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
            p.add_argument("--depths", type=int, default=3, help="unrolled depths of the eagle head")
            p.add_argument("--regression", type=float, default=0.5,
                           help="weight of the eagle head's feature regression")
            p.add_argument("--log-every", type=int, default=25)
            p.add_argument("--save-seconds", type=float, default=120.0)
        elif name == "evaluate":
            p.add_argument("--tasks", nargs="+", default=TASKS)
            p.add_argument("--limit", type=int, help="windows of a task to look at")
        else:
            p.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.call(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
