"""Closed forms of speculative decoding, over arrays.

Every function takes numbers or arrays, which broadcast against each other, and gives a float where all of them are numbers,
else an array. Other threads run meanwhile. ``alpha`` is the probability that a drafted token is accepted, in [0, 1]; what it
lacks of 1 is given as ``Rejection(1e-12)``, which keeps its digits where alpha is close to 1. ``gamma`` is the number of
drafted tokens of a step, ``c`` the time of a draft step over that of a target step. A value outside its range is a
``QuestionError``, a ``ValueError`` whose ``parameter`` names it.

Sources and derivations stand in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from specdec import _core

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Numbers = Union[float, numpy.typing.NDArray[numpy.float64]]
    Integers = Union[int, numpy.typing.NDArray[numpy.int64]]
    Truths = Union[bool, numpy.typing.NDArray[numpy.bool_]]
    NumbersLike = numpy.typing.ArrayLike

VerifyFactor = Union[float, Mapping[int, float], Sequence[tuple[int, float]], None]


class Rejection:
    """Acceptance rates by what they lack of 1, exact where they are close to it.

    Parameters
    ----------
    epsilon : array_like
        1 - alpha, in [0, 1].
    """

    def __init__(self, epsilon: NumbersLike) -> None:
        self.epsilon = epsilon

    def __repr__(self) -> str:
        return f"Rejection({self.epsilon!r})"


if TYPE_CHECKING:
    RatesLike = Union[NumbersLike, Rejection]


class OptimalGamma(NamedTuple):
    """The result of :func:`optimal_gamma`."""

    gamma: Integers
    """The optimum, the smallest one of ties; 2^53 where none is attained."""
    speedup: Numbers
    """The speedup of that gamma; where none is attained its supremum, infinite where there is none."""
    attained: Truths
    """False where every larger gamma is better."""


class RealOptimum(NamedTuple):
    """The result of :func:`optimal_gamma_real`; NaN where there is no finite optimum."""

    gamma: Numbers
    speedup: Numbers


class FiniteGeneration(NamedTuple):
    """The result of :func:`finite_generation`."""

    expected_steps: Numbers
    steps_variance: Numbers
    """In steps^2."""
    expected_cost: Numbers
    """In plain target steps."""
    speedup: Numbers


class _Column(NamedTuple):
    name: str
    values: Any
    dtype: str


def _float(name: str, values: NumbersLike) -> _Column:
    return _Column(name, values, "float64")


def _integer(name: str, values: NumbersLike) -> _Column:
    return _Column(name, values, "int64")


def _arrays(columns: Sequence[_Column]) -> list[Any]:
    import numpy

    arrays = []
    for name, values, dtype in columns:
        array = numpy.asarray(values)
        kinds = "iu" if dtype == "int64" else "iuf"
        if array.dtype.kind not in kinds:
            what = "integers" if dtype == "int64" else "real numbers"
            raise TypeError(f"{name} is of type {array.dtype}, but must be {what}")
        arrays.append(array.astype(dtype, copy=False))
    return arrays


def _fill(
    function: Callable[..., None], rates: RatesLike | None, columns: Sequence[_Column], results: int, *more: Any
) -> list[Numbers]:
    """The results of one function of the module, each in the shape that rates and columns broadcast to."""
    import numpy

    by_rejection = isinstance(rates, Rejection)
    if rates is not None:
        of_rates = rates.epsilon if isinstance(rates, Rejection) else rates
        columns = [_float("epsilon" if by_rejection else "alpha", of_rates), *columns]
    arrays = _arrays(columns)
    shape = numpy.broadcast_shapes(*(array.shape for array in arrays))
    count = int(numpy.prod(shape, dtype=int))
    # One value stands for all of them without a copy.
    flat = [
        numpy.ascontiguousarray(a).reshape(-1) if a.size == 1 and count > 0 else numpy.broadcast_to(a, shape).reshape(-1)
        for a in arrays
    ]
    out = numpy.empty((results, count))
    arguments = [flat[0], by_rejection, *flat[1:]] if rates is not None else flat
    function(*arguments, *more, out)
    shaped = out.reshape((results, *shape))
    return [row.item() if shape == () else row for row in shaped]


def _integers(values: Any) -> Any:
    return int(values) if isinstance(values, float) else values.astype("int64")


def _truths(values: Any) -> Any:
    return bool(values) if isinstance(values, float) else values.astype(bool)


def expected_tokens(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """Expected tokens of one speculative step, the target's own token included.

    E[K] = (1 - alpha^(gamma+1)) / (1 - alpha), gamma + 1 at alpha = 1. Leviathan et al. 2023, Eq. (1).

    Parameters
    ----------
    alpha : array_like or Rejection
        Acceptance rate, in [0, 1]; acceptances independent.
    gamma : array_like of int
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
        Tokens per step, in [1, gamma + 1]; relative error at most 1e-13.

    Examples
    --------
    >>> round(expected_tokens(0.8, 4), 4)
    3.3616
    """
    return _fill(_core.expected_tokens, alpha, [_integer("gamma", gamma)], 1)[0]


def expected_tokens_limit(alpha: RatesLike) -> Numbers:
    """The limit of :func:`expected_tokens` for gamma -> infinity, 1 / (1 - alpha).

    Parameters
    ----------
    alpha : array_like or Rejection

    Returns
    -------
    float or ndarray
        Tokens per step, >= 1; infinity at alpha = 1.
    """
    return _fill(_core.expected_tokens_limit, alpha, [], 1)[0]


def tokens_probability(alpha: RatesLike, gamma: NumbersLike, tokens: NumbersLike) -> Numbers:
    """P(K = tokens), K being the tokens of a step: the capped geometric distribution.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.
    tokens : array_like of int
        In [1, gamma + 1].

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.tokens_probability, alpha, [_integer("gamma", gamma), _integer("tokens", tokens)], 1)[0]


def tokens_variance(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """Variance of the tokens of a step.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
        In tokens^2.
    """
    return _fill(_core.tokens_variance, alpha, [_integer("gamma", gamma)], 1)[0]


def expected_tokens_derivative(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """d E[K] / d alpha.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.expected_tokens_derivative, alpha, [_integer("gamma", gamma)], 1)[0]


def walltime_improvement(
    alpha: RatesLike,
    gamma: NumbersLike,
    c: NumbersLike,
    *,
    verify_factor: VerifyFactor = None,
    overhead: NumbersLike = 0.0,
) -> Numbers:
    """Expected improvement of the wall time over plain decoding.

    E[K] / (v(gamma + 1) + c gamma + overhead) for gamma >= 1, 1 at gamma = 0. Leviathan et al. 2023, Theorem 3.8, where
    v = 1 and overhead = 0.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.
    c : array_like
        Draft step time / target step time, >= 0.
    verify_factor : float or mapping of int to float, optional
        v(n), the time of scoring n tokens / one token: one factor, or factors by n with straight lines between; 1 where it
        is not given.
    overhead : array_like
        Other time of a speculative step / target step time, >= 0.

    Returns
    -------
    float or ndarray
        Above 1 where speculation is faster.

    Examples
    --------
    >>> round(walltime_improvement(0.8, 8, 0.05), 4)
    3.0921
    """
    columns = [_integer("gamma", gamma), _float("c", c), _float("overhead", overhead)]
    return _fill(_core.walltime_improvement, alpha, columns, 1, verify_factor)[0]


def parallel_draft_speedup(
    alpha: RatesLike,
    gamma: NumbersLike,
    c: NumbersLike,
    *,
    verify_factor: VerifyFactor = None,
    overhead: NumbersLike = 0.0,
) -> Numbers:
    """Speedup of a draft that proposes all its tokens in one call: E[K] / (v(gamma + 1) + c + overhead).

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Tokens proposed, >= 0.
    c : array_like
        Time of that call / target step time, >= 0.
    verify_factor, overhead
        As :func:`walltime_improvement`.

    Returns
    -------
    float or ndarray
    """
    columns = [_integer("gamma", gamma), _float("c", c), _float("overhead", overhead)]
    return _fill(_core.parallel_draft_speedup, alpha, columns, 1, verify_factor)[0]


def copying_speedup(
    match_rate: NumbersLike,
    alpha: RatesLike,
    gamma: NumbersLike,
    c: NumbersLike = 0.0,
    *,
    verify_factor: VerifyFactor = None,
    overhead: NumbersLike = 0.0,
) -> Numbers:
    """Speedup of a draft that finds something to propose in a share m of the steps, as one that copies from the context
    does: (m E[K] + 1 - m) / (m cost(gamma) + 1 - m).

    Parameters
    ----------
    match_rate : array_like
        m, in [0, 1].
    alpha : array_like or Rejection
        Of the tokens copied in the steps that do.
    gamma : array_like of int
        Tokens copied, >= 0.
    c, verify_factor, overhead
        As :func:`walltime_improvement`.

    Returns
    -------
    float or ndarray
    """
    columns = [
        _float("match_rate", match_rate),
        _integer("gamma", gamma),
        _float("c", c),
        _float("overhead", overhead),
    ]
    return _fill(_core.copying_speedup, alpha, columns, 1, verify_factor)[0]


def finite_generation(
    alpha: RatesLike,
    gamma: NumbersLike,
    tokens: NumbersLike,
    c: NumbersLike = 0.0,
    *,
    verify_factor: VerifyFactor = None,
    overhead: NumbersLike = 0.0,
) -> FiniteGeneration:
    """Steps and cost of a generation that ends after exactly so many tokens, whose last steps draft less.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.
    tokens : array_like of int
        In [1, 10^7]; time grows with tokens min(gamma, tokens).
    c, verify_factor, overhead
        As :func:`walltime_improvement`.

    Returns
    -------
    FiniteGeneration
    """
    columns = [
        _integer("gamma", gamma),
        _integer("tokens", tokens),
        _float("c", c),
        _float("overhead", overhead),
    ]
    return FiniteGeneration(*_fill(_core.finite_generation, alpha, columns, 4, verify_factor))


def some_gamma_helps(alpha: RatesLike, c: NumbersLike) -> Truths:
    """Whether some gamma >= 1 improves the wall time: alpha > c. Leviathan et al. 2023, Corollary 3.9.

    Parameters
    ----------
    alpha : array_like or Rejection
    c : array_like
        Draft step time / target step time, >= 0.

    Returns
    -------
    bool or ndarray of bool
    """
    result: Truths = _truths(_fill(_core.some_gamma_helps, alpha, [_float("c", c)], 1)[0])
    return result


def guaranteed_improvement(alpha: RatesLike, c: NumbersLike) -> Numbers:
    """The improvement by gamma = 1, (1 + alpha) / (1 + c). Leviathan et al. 2023, Corollary 3.9.

    Parameters
    ----------
    alpha : array_like or Rejection
    c : array_like
        Draft step time / target step time, >= 0.

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.guaranteed_improvement, alpha, [_float("c", c)], 1)[0]


def break_even_alpha(
    c: NumbersLike,
    *,
    gamma: NumbersLike | None = None,
    verify_factor: VerifyFactor = None,
    overhead: NumbersLike = 0.0,
) -> Numbers:
    """The rate above which speculation pays: with some gamma, or with the given one.

    Parameters
    ----------
    c : array_like
        Draft step time / target step time, >= 0.
    gamma : array_like of int, optional
        Drafted tokens per step, >= 1.
    verify_factor, overhead
        As :func:`walltime_improvement`.

    Returns
    -------
    float or ndarray
        NaN where no rate pays.
    """
    costs = [_float("c", c), _float("overhead", overhead)]
    if gamma is None:
        return _fill(_core.break_even_alpha, None, costs, 1, verify_factor)[0]
    return _fill(_core.break_even_alpha_of_gamma, None, [_integer("gamma", gamma), *costs], 1, verify_factor)[0]


def operations_factor(alpha: RatesLike, gamma: NumbersLike, c_hat: NumbersLike) -> Numbers:
    """Expected factor by which arithmetic operations grow, (gamma c_hat + gamma + 1) / E[K]. Leviathan et al. 2023,
    Theorem 3.11.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.
    c_hat : array_like
        Draft operations per token / target operations per token, >= 0.

    Returns
    -------
    float or ndarray
        >= 1.
    """
    return _fill(_core.operations_factor, alpha, [_integer("gamma", gamma), _float("c_hat", c_hat)], 1)[0]


def memory_access_factor(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """Factor by which the reads of the target's weights and cache shrink, 1 / E[K]. Leviathan et al. 2023, Section 3.4.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
        In [1 / (gamma + 1), 1].
    """
    return _fill(_core.memory_access_factor, alpha, [_integer("gamma", gamma)], 1)[0]


def wasted_fraction(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """Share of the gamma + 1 positions scored by the target whose result is thrown away, 1 - E[K] / (gamma + 1).

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.wasted_fraction, alpha, [_integer("gamma", gamma)], 1)[0]


def exact_token_fraction(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """Share of the tokens of lenient decoding that are distributed exactly as the target's, alpha^gamma / E[K], alpha being
    the lenient acceptance.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.exact_token_fraction, alpha, [_integer("gamma", gamma)], 1)[0]


def optimal_gamma(
    alpha: RatesLike, c: NumbersLike, *, verify_factor: VerifyFactor = None, overhead: NumbersLike = 0.0
) -> OptimalGamma:
    """The gamma >= 0 of the greatest :func:`walltime_improvement`, over all integers, exactly.

    Parameters
    ----------
    alpha : array_like or Rejection
    c : array_like
        Draft step time / target step time, >= 0.
    verify_factor, overhead
        As :func:`walltime_improvement`.

    Returns
    -------
    OptimalGamma

    Examples
    --------
    >>> best = optimal_gamma(0.8, 0.05)
    >>> best.gamma, round(best.speedup, 4)
    (8, 3.0921)
    """
    costs = [_float("c", c), _float("overhead", overhead)]
    gamma, speedup, attained = _fill(_core.optimal_gamma, alpha, costs, 3, verify_factor)
    return OptimalGamma(_integers(gamma), speedup, _truths(attained))


def optimal_gamma_real(alpha: RatesLike, c: NumbersLike) -> RealOptimum:
    """The maximum of :func:`walltime_improvement` over real gamma >= 0, by Lambert W.

    Parameters
    ----------
    alpha : array_like or Rejection
    c : array_like
        Draft step time / target step time, >= 0.

    Returns
    -------
    RealOptimum
    """
    return RealOptimum(*_fill(_core.optimal_gamma_real, alpha, [_float("c", c)], 2))


def gamma_reaching_share(alpha: RatesLike, share: NumbersLike) -> Numbers:
    """The smallest gamma whose expected tokens reach a share of their limit: what c = 0 asks for.

    Parameters
    ----------
    alpha : array_like or Rejection
    share : array_like
        In [0, 1).

    Returns
    -------
    float or ndarray
        A whole number; NaN at alpha = 1, and where it exceeds 2^53.
    """
    return _fill(_core.gamma_reaching_share, alpha, [_float("share", share)], 1)[0]


def tie_cost(alpha: RatesLike, gamma: NumbersLike) -> Numbers:
    """The c at which gamma and gamma - 1 are equally fast.

    Parameters
    ----------
    alpha : array_like or Rejection
    gamma : array_like of int
        >= 1.

    Returns
    -------
    float or ndarray
        In [0, 1].
    """
    return _fill(_core.tie_cost, alpha, [_integer("gamma", gamma)], 1)[0]


def alpha_from_acceptance_length(tokens_per_step: NumbersLike, gamma: NumbersLike) -> Numbers:
    """The rate whose :func:`expected_tokens` are a given acceptance length.

    Parameters
    ----------
    tokens_per_step : array_like
        Bonus token included, in [1, gamma + 1].
    gamma : array_like of int
        Drafted tokens per step at which it was measured, >= 1.

    Returns
    -------
    float or ndarray
        alpha, in [0, 1].
    """
    columns = [_float("tokens_per_step", tokens_per_step), _integer("gamma", gamma)]
    return _fill(_core.alpha_from_acceptance_length, None, columns, 1)[0]


def oracle_tokens(alpha: RatesLike) -> Numbers:
    """Tokens per step of an oracle that knows how many drafts will be accepted, 1 / (1 - alpha).

    Parameters
    ----------
    alpha : array_like or Rejection

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.oracle_tokens, alpha, [], 1)[0]


def oracle_speedup(alpha: RatesLike, c: NumbersLike) -> Numbers:
    """Wall-time improvement of that oracle, 1 / (1 - alpha + alpha c).

    Parameters
    ----------
    alpha : array_like or Rejection
    c : array_like
        Draft step time / target step time, >= 0.

    Returns
    -------
    float or ndarray
    """
    return _fill(_core.oracle_speedup, alpha, [_float("c", c)], 1)[0]


def oracle_improvement(alpha: RatesLike, c: NumbersLike, *, gamma: NumbersLike | None = None) -> Numbers:
    """:func:`oracle_speedup` over the speedup of the best fixed gamma, or of the given one.

    Parameters
    ----------
    alpha : array_like or Rejection
    c : array_like
        Draft step time / target step time, >= 0.
    gamma : array_like of int, optional
        Drafted tokens per step, >= 0.

    Returns
    -------
    float or ndarray
    """
    if gamma is None:
        return _fill(_core.oracle_improvement, alpha, [_float("c", c)], 1)[0]
    return _fill(_core.oracle_improvement_over_gamma, alpha, [_integer("gamma", gamma), _float("c", c)], 1)[0]
