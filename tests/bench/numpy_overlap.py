#!/usr/bin/env python3
"""NumPy's best form of sum min(p, q), row by row, for docs/benchmarks.md: what bench_traces is compared with."""

import statistics
import time

import numpy as np

VOCAB, POSITIONS, ROUNDS = 131072, 512, 9

generator = np.random.default_rng(1)
p = generator.random((POSITIONS, VOCAB), dtype=np.float32)
q = generator.random((POSITIONS, VOCAB), dtype=np.float32)
seconds = []
for _ in range(ROUNDS):
    start = time.perf_counter()
    for i in range(POSITIONS):
        np.minimum(p[i], q[i]).sum()
    seconds.append(time.perf_counter() - start)
print(f"{POSITIONS / statistics.median(seconds):.0f} positions/s")
