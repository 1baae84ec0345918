"""The closed forms: numbers against sums of Python's own, and what arrays add to them."""

from __future__ import annotations

import doctest
import math
import signal
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
import specdec
from specdec import theory


def tokens_by_terms(alpha: float, gamma: int) -> float:
    exact = Fraction(alpha)
    return float(sum((exact**j for j in range(gamma + 1)), Fraction(0)))


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.8, 0.999, 1.0])
@pytest.mark.parametrize("gamma", [0, 1, 4, 50])
def test_tokens_are_the_sum_of_the_powers_of_alpha(alpha: float, gamma: int) -> None:
    assert theory.expected_tokens(alpha, gamma) == pytest.approx(tokens_by_terms(alpha, gamma), rel=1e-13)


def test_arrays_broadcast_and_give_what_single_numbers_give() -> None:
    alpha = np.linspace(0, 0.99, 7)[:, None]
    gamma = np.arange(5)
    together = theory.walltime_improvement(alpha, gamma, 0.05, verify_factor={2: 1.02, 5: 1.1}, overhead=0.01)
    assert together.shape == (7, 5)
    for i in range(7):
        for g in range(5):
            one = theory.walltime_improvement(float(alpha[i, 0]), g, 0.05, verify_factor={2: 1.02, 5: 1.1}, overhead=0.01)
            assert isinstance(one, float)
            assert together[i, g] == one


def test_columns_of_any_layout_are_taken_element_by_element() -> None:
    alpha = np.linspace(0.1, 0.9, 12).reshape(3, 4)
    plain = theory.expected_tokens(alpha, 3)
    assert np.array_equal(theory.expected_tokens(np.asfortranarray(alpha), 3), plain)
    assert np.array_equal(theory.expected_tokens(alpha[:, ::2], 3), plain[:, ::2])
    assert np.array_equal(theory.expected_tokens(alpha.astype(">f8"), 3), plain)
    assert theory.expected_tokens(np.empty((0, 4)), 3).shape == (0, 4)
    assert np.array_equal(theory.expected_tokens(alpha.tolist(), 3), plain)


def test_rejections_keep_their_digits_near_1() -> None:
    assert theory.expected_tokens_limit(theory.Rejection(1e-13)) == pytest.approx(1e13, rel=1e-13)
    assert theory.expected_tokens_limit(1 - 1e-13) != pytest.approx(1e13, rel=1e-6)
    both = theory.expected_tokens(theory.Rejection(np.array([0.2, 0.5])), 4)
    assert np.allclose(both, theory.expected_tokens(np.array([0.8, 0.5]), 4), rtol=1e-13)


def test_the_best_gamma_beats_all_others() -> None:
    rng = np.random.default_rng(1)
    alpha, c = rng.uniform(0, 0.98, 50), rng.uniform(0.01, 0.5, 50)
    best = theory.optimal_gamma(alpha, c)
    assert best.gamma.dtype == np.int64
    assert best.attained.all()
    every = theory.walltime_improvement(alpha[:, None], np.arange(300), c[:, None])
    assert np.allclose(best.speedup, every.max(axis=1), rtol=1e-14)
    assert (every[np.arange(50), best.gamma] == best.speedup).all()


def test_a_free_draft_has_no_best_gamma() -> None:
    best = theory.optimal_gamma(0.8, 0.0)
    assert best.gamma == 2**53
    assert best.attained is False
    assert best.speedup == pytest.approx(5.0)
    assert theory.gamma_reaching_share(0.8, 0.95) == 13
    assert math.isnan(theory.optimal_gamma_real(0.8, 0.0).gamma)


def test_forms_agree_with_each_other() -> None:
    alpha, gamma, c = 0.73, 5, 0.07
    tokens = theory.expected_tokens(alpha, gamma)
    law = theory.tokens_probability(alpha, gamma, np.arange(1, gamma + 2))
    assert law.sum() == pytest.approx(1, rel=1e-14)
    assert law @ np.arange(1, gamma + 2) == pytest.approx(tokens, rel=1e-14)
    assert law @ (np.arange(1, gamma + 2) - tokens) ** 2 == pytest.approx(theory.tokens_variance(alpha, gamma), rel=1e-12)
    assert theory.alpha_from_acceptance_length(tokens, gamma) == pytest.approx(alpha, rel=1e-13)
    assert theory.memory_access_factor(alpha, gamma) == pytest.approx(1 / tokens, rel=1e-14)
    assert theory.wasted_fraction(alpha, gamma) == pytest.approx(1 - tokens / (gamma + 1), rel=1e-13)
    assert theory.operations_factor(alpha, gamma, 0.2) == pytest.approx((gamma * 0.2 + gamma + 1) / tokens, rel=1e-14)
    assert theory.exact_token_fraction(alpha, gamma) == pytest.approx(alpha**gamma / tokens, rel=1e-13)
    slope = (theory.expected_tokens(alpha + 1e-6, gamma) - theory.expected_tokens(alpha - 1e-6, gamma)) / 2e-6
    assert theory.expected_tokens_derivative(alpha, gamma) == pytest.approx(slope, rel=1e-7)
    even = theory.break_even_alpha(c, gamma=gamma)
    assert theory.walltime_improvement(even, gamma, c) == pytest.approx(1, rel=1e-12)
    assert theory.break_even_alpha(c) == pytest.approx(c)
    assert math.isnan(theory.break_even_alpha(0.5, gamma=1, verify_factor=3.0))
    assert theory.some_gamma_helps(alpha, c) is True
    assert theory.guaranteed_improvement(alpha, c) == pytest.approx((1 + alpha) / (1 + c), rel=1e-14)
    assert theory.oracle_tokens(alpha) == pytest.approx(1 / (1 - alpha), rel=1e-13)
    oracle = theory.oracle_speedup(alpha, c)
    assert oracle == pytest.approx(1 / (1 - alpha + alpha * c), rel=1e-13)
    best = theory.optimal_gamma(alpha, c)
    assert theory.oracle_improvement(alpha, c) == pytest.approx(oracle / best.speedup, rel=1e-13)
    over_one = theory.oracle_improvement(alpha, c, gamma=1)
    assert over_one == pytest.approx(oracle / theory.walltime_improvement(alpha, 1, c), rel=1e-13)
    tie = theory.tie_cost(alpha, 4)
    slower, faster = theory.walltime_improvement(alpha, [3, 4], tie)
    assert slower == pytest.approx(faster, rel=1e-13)
    long = theory.finite_generation(alpha, gamma, 200_000, c)
    assert long.speedup == pytest.approx(theory.walltime_improvement(alpha, gamma, c), rel=1e-4)
    assert long.speedup == pytest.approx(200_000 / long.expected_cost, rel=1e-12)
    parallel = theory.parallel_draft_speedup(alpha, gamma, c)
    assert parallel == pytest.approx(tokens / (1 + c), rel=1e-13)
    assert theory.copying_speedup(1.0, alpha, gamma) == pytest.approx(tokens, rel=1e-13)
    real = theory.optimal_gamma_real(alpha, c)
    assert best.speedup <= real.speedup
    assert abs(best.gamma - real.gamma) < 1


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: theory.expected_tokens(1.2, 3), "alpha"),
        (lambda: theory.expected_tokens(math.nan, 3), "alpha"),
        (lambda: theory.expected_tokens(theory.Rejection(-0.1), 3), "epsilon"),
        (lambda: theory.expected_tokens(0.5, -1), "gamma"),
        (lambda: theory.walltime_improvement(0.5, 3, -1.0), "c"),
        (lambda: theory.walltime_improvement(0.5, 3, 0.1, overhead=math.inf), "overhead"),
        (lambda: theory.tokens_probability(0.5, 3, 5), "tokens"),
        (lambda: theory.gamma_reaching_share(0.5, 1.0), "share"),
    ],
)
def test_a_value_outside_its_range_names_its_parameter(call: object, parameter: str) -> None:
    with pytest.raises(ValueError, match=rf"{parameter} is .*, but must be") as raised:
        call()  # type: ignore[operator]
    assert isinstance(raised.value, specdec.QuestionError)
    assert raised.value.parameter == parameter


def test_a_wrong_element_of_an_array_is_named_by_its_place() -> None:
    with pytest.raises(ValueError, match=r"alpha is 1.5, but must be in \[0, 1\] \(element 2\)"):
        theory.expected_tokens([0.1, 0.2, 1.5], 3)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="gamma is of type float64, but must be integers"):
        theory.expected_tokens(0.5, 2.5)
    with pytest.raises(TypeError, match="alpha is of type"):
        theory.expected_tokens("0.5", 2)
    with pytest.raises(TypeError, match="alpha is of type complex128"):
        theory.expected_tokens(0.5 + 0j, 2)
    with pytest.raises(TypeError, match="verify_factor is '1', but must be a number"):
        theory.walltime_improvement(0.5, 2, 0.1, verify_factor="1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="broadcast"):
        theory.expected_tokens([0.1, 0.2], [1, 2, 3])


def test_other_threads_run_meanwhile() -> None:
    alpha = np.linspace(0, 0.999, 100_000)
    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(1e-4)

    counter = threading.Thread(target=count)
    counter.start()
    theory.optimal_gamma(alpha, 0.01)
    done.set()
    counter.join()
    assert ticks > 5


def test_ctrl_c_ends_a_long_call() -> None:
    alpha = np.full(20_000_000, 0.999)
    started = time.monotonic()
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        theory.optimal_gamma(alpha, 0.01)
    assert time.monotonic() - started < 5


def test_the_examples_of_the_docstrings_print_what_they_show() -> None:
    failed, tried = doctest.testmod(theory)
    assert tried > 3
    assert failed == 0
