#!/usr/bin/env python3
"""Many-digit values of the closed forms, computed at exactly the doubles that the tests pass.

    python3 tests/reference/generate_closed_forms.py > tests/reference/closed_forms.txt

Needs mpmath. Every number is an exact binary fraction (written in hexadecimal); the formulas are the textbook ones,
with all their cancellations, evaluated with 6000 bits; sums and recursions are taken term by term in exact rationals.
None of them is the form that the library evaluates. A rate is written a:ALPHA or e:EPSILON, by what is exact.
"""
import itertools
from fractions import Fraction

import mpmath
from mpmath import mp, mpf

mp.prec = 6000
DIGITS = 25


def exact(x):
    return mpf(Fraction(x).numerator) / Fraction(x).denominator


class Rate:
    def __init__(self, kind, value):
        self.kind, self.value = kind, float(value)
        self.alpha = exact(self.value) if kind == "a" else 1 - exact(self.value)
        self.epsilon = 1 - self.alpha

    def __str__(self):
        return f"{self.kind}:{self.value.hex()}"


def alpha(x):
    return Rate("a", x)


def rejection(x):
    return Rate("e", x)


def text(argument):
    return argument.hex() if isinstance(argument, float) else str(argument)


def number(value):
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        value = exact(value)
    return mpmath.nstr(value, DIGITS, min_fixed=0, max_fixed=0) if value else "0"


def row(function, *arguments, value):
    print(function, *(text(a) for a in arguments), number(value))


RATES = [alpha(a) for a in (0, 5e-324, 1e-300, 1e-20, 1e-3, 0.2, 0.35, 0.5 - 2**-54, 0.5, 0.62, 0.7, 0.8, 0.9, 0.95,
                            0.99, 0.9999, 1 - 1e-9, 1 - 2**-53, 1)]
RATES += [rejection(e) for e in (1 - 2**-53, 0.7, 0.5, 0.2, 0.01, 1e-5, 1e-8, 1e-9, 1e-12, 1e-15, 1e-17, 1e-30, 1e-300,
                                 5e-324, 0)]
GAMMAS = (0, 1, 2, 3, 5, 10, 64, 1000, 10**6, 10**9, 2**63 - 1)
COSTS = (0.0, 5e-324, 1e-9, 0.05, 0.7, 1.0, 1e300)


def expected_tokens(r, gamma):
    return mpf(gamma + 1) if r.epsilon == 0 else (1 - r.alpha ** (gamma + 1)) / r.epsilon


def variance(r, gamma):
    if r.epsilon == 0:
        return mpf(0)
    m = gamma + 1
    return (r.alpha - (2 * m - 1) * r.epsilon * r.alpha**m - r.alpha ** (2 * m)) / r.epsilon**2


def derivative(r, gamma):
    if r.epsilon == 0:
        return mpf(gamma) * (gamma + 1) / 2
    if gamma == 0:
        return mpf(0)
    return (1 - (gamma + 1) * r.alpha**gamma + gamma * r.alpha ** (gamma + 1)) / r.epsilon**2


def speedup(r, gamma, c):
    return expected_tokens(r, gamma) / (1 + exact(c) * gamma)


def tie_cost(r, g):
    if r.epsilon == 0:
        return mpf(1)
    tail = r.alpha**g
    return tail * r.epsilon / (1 - tail - (g - 1) * tail * r.epsilon)


def closed_forms():
    for r, gamma in itertools.product(RATES, GAMMAS):
        row("expected_tokens", r, gamma, value=expected_tokens(r, gamma))
        row("tokens_variance", r, gamma, value=variance(r, gamma))
        row("expected_tokens_derivative", r, gamma, value=derivative(r, gamma))
        row("power", r, gamma, value=r.alpha**gamma)
        row("one_minus_power", r, gamma, value=1 - r.alpha**gamma)
        row("wasted_fraction", r, gamma, value=1 - expected_tokens(r, gamma) / (gamma + 1))
        if gamma > 0:
            row("tie_cost", r, gamma, value=tie_cost(r, gamma))
        if r.alpha > 0:
            row("exact_token_fraction", r, gamma, value=r.alpha**gamma / expected_tokens(r, gamma))
    for r, gamma, c in itertools.product(RATES[1::3], GAMMAS[::2], COSTS):
        row("walltime_improvement", r, gamma, c, value=speedup(r, gamma, c))
        row("operations_factor", r, gamma, c, value=(gamma * exact(c) + gamma + 1) / expected_tokens(r, gamma))
        oracle = r.epsilon + r.alpha * exact(c)
        if oracle > 0:
            row("oracle_improvement", r, gamma, c, value=1 / (oracle * speedup(r, gamma, c)))
    for r in RATES:
        for c in COSTS:
            if r.epsilon + exact(c) > 0:
                row("oracle_speedup", r, c, value=1 / (r.epsilon + r.alpha * exact(c)))


def z_of(log_reciprocal, c):
    """-W_{-1}(-exp(-1-D)) as the root of z - ln z = 1 + D above 1."""
    d = log_reciprocal * (1 - c) / c
    z = 1 + mpmath.sqrt(2 * d) + d
    for _ in range(2000):
        step = (z - mpmath.log(z) - 1 - d) / (1 - 1 / z)
        z -= step
        if abs(step) < abs(z - 1) * mpf(2) ** -5000:
            return z
    raise ArithmeticError("no convergence")


def optimal_gamma():
    rates = [alpha(a) for a in (5e-324, 1e-3, 0.3, 0.5, 0.62, 0.75, 0.8, 0.9, 0.95, 0.99, 0.9999)]
    rates += [rejection(e) for e in (1e-5, 1e-8, 1e-12, 1e-17, 1e-20, 1e-28)]
    costs = (5e-324, 1e-300, 1e-12, 1e-6, 0.001, 0.015, 0.05, 0.1, 0.2, 0.29, 0.5, 0.9, 0.999, 1 - 2**-53)
    for r, c in itertools.product(rates, costs):
        log_reciprocal = -mpmath.log(r.alpha)
        if log_reciprocal * r.alpha <= r.epsilon * exact(c):
            row("optimal_gamma_real", r, c, 0, value=mpf(1))
            row("optimal_gamma", r, c, 0, value=mpf(1))
            continue
        z = z_of(log_reciprocal, exact(c))
        real = (z - 1) / log_reciprocal - 1 / exact(c)
        best_real = log_reciprocal / (exact(c) * r.epsilon * z)
        row("optimal_gamma_real", r, c, number(real), value=best_real)
        below = int(mpmath.floor(real))
        best = below if speedup(r, below, c) >= speedup(r, below + 1, c) else below + 1
        if best > 2**53:
            row("optimal_gamma", r, c, "too_large", value=speedup(r, 2**53, c))
        else:
            row("optimal_gamma", r, c, best, value=speedup(r, best, c))
    for r, share in itertools.product(rates, (1e-9, 0.5, 0.75, 0.9, 0.99, 0.999999, 1 - 2**-53)):
        tokens = int(mpmath.ceil(mpmath.log(1 - exact(share)) / mpmath.log(r.alpha)))
        while tokens > 1 and 1 - r.alpha ** (tokens - 1) >= exact(share):
            tokens -= 1
        row("gamma_reaching_share", r, share, value=str(tokens - 1) if tokens - 1 < 2**53 else "none")


def inversion():
    for gamma, fraction in itertools.product((1, 2, 3, 5, 10, 100, 10**6), (1e-9, 0.01, 0.2, 0.5, 0.9, 1 - 1e-6)):
        length = 1 + gamma * fraction
        accepted = exact(length) - 1
        low, high = mpf(0), mpf(1)
        for _ in range(400):
            middle = (low + high) / 2
            tokens = middle * (1 - middle**gamma) / (1 - middle) if middle < 1 else mpf(gamma)
            low, high = (middle, high) if tokens < accepted else (low, middle)
        row("alpha_from_acceptance_length", length, gamma, number(low), value=1 - low)


def finite_generation():
    for a, gamma, tokens, c in itertools.product((0.3, 0.8, 0.9), (0, 1, 3, 5, 10), (1, 2, 5, 10, 20), (0.0, 0.05, 0.1)):
        f, cost = Fraction(a), Fraction(c)
        # distribution of the number of steps and the drafts of each path, forward over the tokens still to generate
        paths = {(tokens, 0): Fraction(1)}
        mean = second = spent = Fraction(0)
        while paths:
            after = {}
            for (left, steps), p in paths.items():
                drafts = min(gamma, left - 1)
                spent += p * (1 + cost * drafts)
                for k in range(drafts + 1):
                    q = p * f**k * ((1 - f) if k < drafts else 1)
                    key = (left - k - 1, steps + 1)
                    if key[0] == 0:
                        mean += q * key[1]
                        second += q * key[1] ** 2
                    else:
                        after[key] = after.get(key, 0) + q
            paths = after
        row("finite_generation", alpha(a), gamma, tokens, c, number(mean), number(second - mean**2),
            value=tokens / spent)


def replay():
    texts = ((0.9, 0.3, 0.5, 0.8, 0.2, 0.7), (1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.25,),
             (0.99, 1.0, 0.6, 0.0, 0.93, 0.71, 1e-9, 0.8))
    for text_, gamma in itertools.product(texts, (0, 1, 2, 3, 6, 20)):
        law = [Fraction(0)] * (len(text_) + 1)
        for flags in itertools.product((True, False), repeat=len(text_)):  # one coin per token of the text
            p = Fraction(1)
            for accept, flag in zip(text_, flags):
                p *= Fraction(accept) if flag else 1 - Fraction(accept)
            position = steps = 0
            while position < len(text_):
                steps += 1
                drafted = 0
                while drafted < gamma and position < len(text_) and flags[position]:
                    position += 1
                    drafted += 1
                position += 1
            law[steps] += p
        mean = sum(n * p for n, p in enumerate(law))
        row("replay", gamma, len(text_), *text_, *(number(p) for p in law), number(mean),
            value=sum(n * n * p for n, p in enumerate(law)) - mean**2)


def rows_of(p, q, *values, name, value):
    row(name, len(p), *p, *q, *values, value=value)


def pairs():
    yield (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
    yield (0.6, 0.25, 0.1, 0.05), (0.3, 0.3, 0.25, 0.15)
    yield (0.5, 0.5, 0.0), (0.25, 0.25, 0.5)
    yield (1.0, 0.0), (0.0, 1.0)
    yield (0.5, 0.5 - 2**-40, 2**-40), (0.5 - 2**-40, 0.5, 2**-40)
    yield (0.7, 0.3), (0.2, 0.8)
    yield (0.125,) * 8, (0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.0625)


def distributions():
    for p, q in pairs():
        fp, fq = [Fraction(x) for x in p], [Fraction(x) for x in q]
        both = list(zip(fp, fq))
        rows_of(p, q, name="overlap", value=sum(min(x, y) for x, y in both))
        rows_of(p, q, name="rejected_mass", value=sum(max(0, y - x) for x, y in both))
        rows_of(p, q, name="missing_mass", value=sum(max(0, x - y) for x, y in both))
        rows_of(p, q, name="d_lk", value=sum(abs(x - (x + y) / 2) for x, y in both))
        rows_of(p, q, name="matching", value=sum(x * y for x, y in both))
        rows_of(p, q, name="rejection_sampling", value=min(min(y / x for x, y in both if x), 1))
        for lenience in (1.0, 0.75, 0.5, 0.1):
            l = Fraction(lenience)
            accepted = sum(min(x / l, y) for x, y in both)
            rejected = sum(max(0, y - x / l) for x, y in both)
            rows_of(p, q, lenience, number(accepted), name="lenient_acceptance", value=rejected)
            for reading, scale in (("strict", Fraction(1)), ("lenient", l)):
                missing = [max(0, x - scale * y) for x, y in both]
                total = sum(missing)
                output = [min(x / l, y) + (rejected * m / total if total else rejected * x)
                          for (x, y), m in zip(both, missing)]
                distance = sum(abs(o - x) for o, x in zip(output, fp)) / 2
                rows_of(p, q, lenience, reading, *(number(o) for o in output), name="lenient_output", value=distance)


if __name__ == "__main__":
    print("# Made by: python3 tests/reference/generate_closed_forms.py > tests/reference/closed_forms.txt")
    print("# Inputs are hexadecimal doubles, results have", DIGITS, "digits. See the generator for the formulas.")
    closed_forms()
    optimal_gamma()
    inversion()
    finite_generation()
    replay()
    distributions()
