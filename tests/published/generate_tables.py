#!/usr/bin/env python3
"""Expected values of tests/published/tables_test.cpp, in exact rational arithmetic from what the paper prints.

The paper: Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, ICML 2023. Sums of
powers stand for the closed forms, and every gamma up to 400 is tried, so that nothing is shared with the library.
Prints rows of C++ initialisers.
"""

import math
from fractions import Fraction as F

# Tables 2 and 4: gamma, alpha, speed, c.
TABLE_2 = [
    (7, "0.75", "3.4", "0.02"), (7, "0.8", "2.8", "0.04"), (7, "0.82", "1.7", "0.11"),
    (7, "0.62", "2.6", "0.02"), (5, "0.68", "2.4", "0.04"), (3, "0.71", "1.4", "0.11"),
    (5, "0.65", "3.1", "0.02"), (5, "0.73", "3.0", "0.04"), (3, "0.74", "2.2", "0.11"),
    (5, "0.53", "2.3", "0.02"), (3, "0.55", "2.2", "0.04"), (3, "0.56", "1.7", "0.11"),
]  # fmt: skip
# Table 3, in its order.
TABLE_3 = """0.03 0.05 0.88 0.03 0.05 0.89 0.08 0.20 0.75 0.80 0.82 0.07 0.19 0.62 0.68 0.71
0.13 0.23 0.65 0.73 0.74 0.08 0.16 0.53 0.55 0.56 0.61 0.71 0.75 0.57 0.71 0.74""".split()
# Table 5 and the argmax rule of A.5: c, rates at l = 1, 0.5, 0.3, 0.1.
TABLE_5 = [
    ("0.015", "0.75 0.75 0.8 0.87"),
    ("0", "0.07 0.1 0.11 0.16"), ("0", "0.19 0.23 0.25 0.32"),
    ("0.015", "0.62 0.71 0.76 0.84"), ("0.04", "0.68 0.8 0.83 0.9"),
]  # fmt: skip
HALF, TENTH = F(1, 200), F(1, 20)


def tokens(alpha: F, gamma: int) -> F:
    return sum(alpha**j for j in range(gamma + 1))


def alpha_needed(length: F, gamma: int) -> F | None:
    if length > gamma + 1:
        return None
    low, high = F(0), F(1)
    for _ in range(60):
        middle = F(round((low + high) / 2 * 2**70), 2**70)
        low, high = (middle, high) if tokens(middle, gamma) < length else (low, middle)
    return low


def best(alpha: F, c: F) -> tuple[int, float]:
    if c == 0:
        return -1, float(1 / (1 - alpha))
    a, cost = float(alpha), float(c)
    speeds = [math.fsum(a**j for j in range(g + 1)) / (1 + cost * g) for g in range(401)]
    gamma = max(range(401), key=lambda g: speeds[g])
    return gamma, float(tokens(alpha, gamma) / (1 + c * gamma))


def main() -> None:
    print("// Table 2: computed, error, verify factor and its range, c, alpha")
    for gamma, *printed in TABLE_2:
        alpha, speed, c = (F(x) for x in printed)
        computed = tokens(alpha, gamma) / (1 + c * gamma)
        factor = tokens(alpha, gamma) / speed - c * gamma
        low = tokens(alpha - HALF, gamma) / (speed + TENTH) - (c + HALF) * gamma
        high = tokens(alpha + HALF, gamma) / (speed - TENTH) - (c - HALF) * gamma
        needed = alpha_needed(speed * (1 + c * gamma), gamma)
        row = (computed, speed / computed - 1, factor, low, high, (tokens(alpha, gamma) / speed - 1) / gamma, needed)
        print("{" + ", ".join(f"{float(x):.9f}" for x in row) + "},")
    print("// Table 3: alpha, speedup at gamma 3, limit, largest c, gamma and speedup at c = 0.05")
    for text in TABLE_3:
        alpha = F(text)
        largest = max((tokens(alpha, g) / F("1.05") - 1) / g for g in range(1, 60))
        gamma, speedup = best(alpha, F("0.05"))
        row = (tokens(alpha, 3), 1 / (1 - alpha), largest if largest > 0 else -1)
        print(f"{{{text}, " + ", ".join(f"{float(x):.9f}" for x in row) + f", {gamma}, {speedup:.9f}}},")
    print("// Table 5: alpha, gamma (-1: none), speedup, gain")
    for c, rates in TABLE_5:
        strict = best(F(rates.split()[0]), F(c))[1]
        for text in rates.split():
            gamma, speedup = best(F(text), F(c))
            print(f"{{{text}, {gamma}, {speedup:.9f}, {speedup / strict:.9f}}},")


if __name__ == "__main__":
    main()
