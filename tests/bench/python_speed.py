#!/usr/bin/env python3
"""The Python package beside NumPy's hand-written forms, and what recording costs beside generating, for docs/benchmarks.md.

usage: python_speed.py [ROUNDS] [THREADS]

Lines that are compared take turns; medians and their ratios are printed. Recording is compared by processor time on one
thread, which other work on the machine changes little: torch's threads wait for one another. What torch and transformers are
needed for is left out where they are not installed.
"""

import importlib.util
import statistics
import sys
import tempfile
import time

import numpy as np
import specdec
from specdec import theory

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
VOCAB, ROWS = 131072, 256
TEXTS, LENGTH, GAMMAS = 2000, 500, 16
OPTIMA, LARGEST_GAMMA = 1_000_000, 64


def compare(title, hand_written, ours, clock=time.perf_counter):
    seconds = {"by hand": [], "specdec": []}
    for _ in range(ROUNDS):
        for name, run in (("by hand", hand_written), ("specdec", ours)):
            begin = clock()
            run()
            seconds[name].append(clock() - begin)
    hand, own = (statistics.median(seconds[name]) for name in ("by hand", "specdec"))
    print(f"{title:58} {hand:8.3f} s {own:8.3f} s {hand / own:8.2f}", flush=True)


def overlap(p, q):
    return np.minimum(p, q).sum(axis=1)


def statistics_of_rows(p, q, tokens):
    """Statistics of `analyze` for whole rows, lenience and other ways of sampling left out."""
    at = np.arange(len(p)), tokens
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            overlap(p, q), np.abs(p - q).sum(axis=1) / 2, -np.nansum(p * np.log(p), axis=1),
            p.argmax(axis=1) == q.argmax(axis=1), p[at], q[at], (p > p[at][:, None]).sum(axis=1), (q > q[at][:, None]).sum(axis=1),
            q.max(axis=1),
        )  # fmt: skip


def rows():
    rng = np.random.default_rng(1)
    p, q = (rng.exponential(size=(ROWS, VOCAB)).astype(np.float32) ** 4 for _ in range(2))
    for row in (p, q):
        row /= row.sum(axis=1, keepdims=True)
    tokens = rng.integers(0, VOCAB, ROWS)
    recording = specdec.Recording.from_rows(p, q, tokens)

    def ours():
        specdec.analyze(recording, lenience=[], standardise=[], gamma=[1], threads=THREADS, force_replay=True)

    compare(f"sum min(p, q) of {ROWS} rows of {VOCAB}, beside all of analyze", lambda: overlap(p, q), ours)
    compare(f"statistics of {ROWS} rows of {VOCAB}", lambda: statistics_of_rows(p, q, tokens), ours)


def steps_by_hand(acceptance, gamma):
    """Expected steps of each text, (texts): N(t) = 1 + sum over n of P(n accepted) N(t + n + 1), from the end to the front."""
    texts, length = acceptance.shape
    steps = np.zeros((length + gamma + 2, texts))
    columns = np.concatenate([acceptance.T, np.zeros((gamma + 1, texts))])
    for t in range(length - 1, -1, -1):
        reached, sum_of = np.ones(texts), np.ones(texts)
        for n in range(gamma):
            accepted = columns[t + n]
            sum_of += reached * (1 - accepted) * steps[t + n + 1]
            reached = reached * accepted
        steps[t] = sum_of + reached * steps[t + gamma + 1]
    return steps[0]


def replay():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 1, TEXTS * LENGTH)
    q = p * rng.uniform(0.3, 1.2, TEXTS * LENGTH).clip(max=1)
    sequences = np.repeat(np.arange(TEXTS), LENGTH)
    recording = specdec.Recording.from_rows(p, q, sequences=sequences, metadata={"path": "target"})
    acceptance = np.minimum(1, q / p).reshape(TEXTS, LENGTH)
    gammas = list(range(1, GAMMAS + 1))
    shown = specdec.analyze(recording, gamma=[4], threads=THREADS).gammas[0].tokens_per_step.replay
    assert abs(TEXTS * LENGTH / steps_by_hand(acceptance, 4).sum() / shown - 1) < 0.01
    compare(
        f"replay of {TEXTS * LENGTH} positions, gammas 1 to {GAMMAS}",
        lambda: [steps_by_hand(acceptance, gamma).sum() for gamma in gammas],
        lambda: specdec.analyze(recording, gamma=gammas, threads=THREADS),
    )


def optima():
    alpha = np.random.default_rng(3).uniform(0.3, 0.9, OPTIMA)
    c = 0.05

    def by_hand():
        best, best_gamma = np.ones(OPTIMA), np.zeros(OPTIMA, dtype=np.int64)
        for gamma in range(1, LARGEST_GAMMA + 1):
            speedup = (1 - alpha ** (gamma + 1)) / ((1 - alpha) * (gamma * c + 1))
            better = speedup > best
            best[better], best_gamma[better] = speedup[better], gamma
        return best_gamma

    assert np.array_equal(by_hand(), theory.optimal_gamma(alpha, c).gamma)
    compare(f"{OPTIMA} optimal gammas", by_hand, lambda: theory.optimal_gamma(alpha, c))


def recording_beside_generating(title, target, draft, prompts, new_tokens):
    import torch

    ids = torch.tensor(prompts)
    how = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": new_tokens, "eos_token_id": None}
    target.generation_config.eos_token_id = None

    def generate_and_read():
        with torch.inference_mode():
            draft(target.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, **how))

    def record():
        with tempfile.TemporaryDirectory() as folder:
            specdec.record(target, draft, prompts, output=folder, max_new_tokens=new_tokens, batch_size=len(prompts))

    record()
    compare(title, generate_and_read, record, clock=time.process_time)


def recording():
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(1)
    prompts = np.random.default_rng(4).integers(3, 2000, (8, 32)).tolist()
    shipped = [transformers.AutoModelForCausalLM.from_pretrained(specdec.shipped_models() / name).float()
               for name in ("target", "draft")]
    recording_beside_generating("record beside generate and a pass of the draft: shipped", *shipped, prompts, 64)
    sizes = {"num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 32000}
    pair = [
        transformers.LlamaForCausalLM(
            transformers.LlamaConfig(hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=layers, **sizes)
        ).eval()
        for hidden, layers in ((768, 12), (256, 4))
    ]
    recording_beside_generating("record beside generate and a pass of the draft: 134 million", *pair, prompts, 64)


print(f"{THREADS} threads, medians of {ROUNDS}; by hand, specdec, ratio")
rows()
replay()
optima()
if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
    recording()
