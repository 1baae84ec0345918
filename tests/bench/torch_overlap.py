#!/usr/bin/env python3
"""PyTorch's sum min(p, q), row by row, for docs/benchmarks.md: what bench_traces is compared with."""

import statistics
import sys
import time

import torch

VOCAB, POSITIONS, ROUNDS = 131072, 512, 9

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
p = torch.rand(POSITIONS, VOCAB)
q = torch.rand(POSITIONS, VOCAB)
seconds = []
for _ in range(ROUNDS):
    start = time.perf_counter()
    for i in range(POSITIONS):
        torch.minimum(p[i], q[i]).sum()
    seconds.append(time.perf_counter() - start)
print(f"{torch.get_num_threads()} threads, {POSITIONS / statistics.median(seconds):.0f} positions/s")
