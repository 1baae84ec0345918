"""Ways to draft and to verify, run on the same prompts with the same random numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from specdec import _core, _options
from specdec._answers import Comparison, Simulation
from specdec._options import Options, Path, Schedule, VerifyFactor, factors, given_only, listed, plain, stretches
from specdec._shipped import shipped_models

Source = Literal["pair", "synthetic", "trace"]
Laws = Literal["bigram", "fixed", "iid"]

_PATHS = ("target", "draft_model", "prompts", "ngram_text", "eagle_head", "parallel_heads", "exits", "trace")
_NUMBERS = (
    *("temperature", "lenience", "epsilon", "delta", "threshold"),
    *("noise", "alpha", "until_error", "c", "overhead"),
)


def _method_question(given: Options) -> Options:
    """As the library has it."""
    question = {name: plain(value) for name, value in given_only(given).items()}
    for name in _PATHS:
        if name in question:
            question[name] = os.fspath(question[name])
    if isinstance(question.get("tasks"), str):
        question["tasks"] = [question["tasks"]]
    question["threads"] = question.get("threads") or min(max(len(os.sched_getaffinity(0)), 1), 64)
    return question


def _method_inputs(question: Options) -> Options:
    """As the command line has it."""
    texts: dict[str, Callable[[Any], str | None]] = {
        "tasks": ",".join,
        "tree": lambda shape: "x".join(map(str, shape)),
        "tree_acceptance": listed,
        "schedule": stretches,
        "verify_factor": factors,
    }
    inputs = {**_options.METHODS}
    for name, value in question.items():
        inputs[name] = texts[name](value) if name in texts else float(value) if name in _NUMBERS else value
    return inputs


def compare(
    methods: str | Sequence[str] = (),
    *,
    source: Source | None = None,
    target: Path | None = None,
    draft_model: Path | None = None,
    prompts: Path | None = None,
    tasks: str | Sequence[str] | None = None,
    ngram_text: Path | None = None,
    eagle_head: Path | None = None,
    parallel_heads: Path | None = None,
    exits: Path | None = None,
    laws: Laws | None = None,
    vocab: int | None = None,
    noise: float | None = None,
    trace: Path | None = None,
    alpha: float | None = None,
    gamma: int | None = None,
    temperature: float | None = None,
    lenience: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    threshold: float | None = None,
    schedule: Schedule | None = None,
    batch: int | None = None,
    drafts: int | None = None,
    tree: tuple[int, int] | None = None,
    tree_nodes: int | None = None,
    tree_acceptance: Sequence[float] | None = None,
    exit_layer: int | None = None,
    tokens: int | None = None,
    until_error: float | None = None,
    max_new_tokens: int | None = None,
    end_token: int | None = None,
    timed: bool = False,
    seed: int = 1,
    threads: int | None = None,
    c: float | None = None,
    verify_factor: VerifyFactor = None,
    overhead: float | None = None,
    progress: Callable[[float], object] | None = None,
) -> Comparison:
    """Runs several methods on the same prompts with the same random numbers. Options have the names of `specdec compare`.
    Ctrl-C ends it with what was finished until then.

    Parameters
    ----------
    methods : str or sequence of str
        "DRAFT+VERIFIER+POLICY", of which one is enough: "block", "copy+algorithm1"; docs/reference/methods.md has them. All that the
        source allows where none is named.
    source : {"pair", "synthetic", "trace"}, optional
        A pair of models and prompts; a random pair of tables; or a recording that methods are replayed over. A pair where it
        is not given.
    target, draft_model, prompts : path, optional
        Of a pair: folders of checkpoints, the draft's or "unigram:FILE" or "bigram:FILE", and a file of prompts. The shipped
        ones where they are not given.
    tasks : str or sequence of str, optional
        Those of the prompts; all where it is not given.
    ngram_text : path, optional
        Texts in which n-grams are counted; the prompts where it is not given.
    eagle_head, parallel_heads, exits : path, optional
        What was trained on the target; the shipped target's where that is the target.
    laws : {"bigram", "fixed", "iid"}, optional
        Of a synthetic source: by the token before, the same everywhere, or acceptances alone. "iid" with an alpha, "fixed"
        above 4096 tokens, else "bigram" where it is not given.
    vocab : int, optional
        Tokens of the synthetic vocabulary, in [2, 2^20]; 64 where it is not given.
    noise : float, optional
        Of the synthetic draft, in logits, in [0, 100]; 0 is the target, 1 where it is not given.
    trace : path, optional
        The recording.
    alpha : float, optional
        Acceptance of every draft, for the laws "iid".
    gamma : int, optional
        Drafted tokens per step, in [1, 1024]; 5 where it is not given.
    temperature : float, optional
        Of both models, in [0, 1000], 0 for greedy decoding; 1 where it is not given.
    lenience : float, optional
        l of the lenient verifiers, in (0, 1].
    epsilon, delta : float, optional
        Of typical acceptance, in [0, 1].
    threshold : float, optional
        Of the policies threshold, product and confidence, in [0, 1].
    schedule : sequence of (int, int, int), optional
        (first batch, last batch, gamma) from batch 1 on, of the policy batch.
    batch : int, optional
        The batch that it looks up.
    drafts : int, optional
        Chains of recursive and k-sequential.
    tree : (int, int), optional
        Children of every node, and levels, of tree and static-tree.
    tree_nodes : int, optional
        Nodes of optimal-tree, and at most of best-tree; the root is one.
    tree_acceptance : sequence of float, optional
        How often the child of each rank is the accepted one.
    exit_layer : int, optional
        Blocks of the draft early-exit.
    tokens : int, optional
        Per method, rounded up to whole sequences; 4608 where it is not given, with `until_error` what that takes.
    until_error : float, optional
        End a method where tokens per step are known to this share of them: half of the 95% interval.
    max_new_tokens : int, optional
        Tokens per sequence; 64 where it is not given.
    end_token : int, optional
        The token that ends a text.
    timed : bool
        Decode one sequence at a time, in turn with plain decoding, and time both; threads are then those of each model.
    seed : int
        Of all random numbers.
    threads : int, optional
        Those of the machine where it is not given; results do not depend on them.
    c : float, optional
        Draft step time / target step time, >= 0; the ratio of operations where it is not given.
    verify_factor, overhead
        As :meth:`Cost.of_constants`; with c.
    progress : callable, optional
        Told now and then of the share that is done, in [0, 1].

    Returns
    -------
    Comparison
        ``partial`` is True where Ctrl-C ended it.

    Raises
    ------
    QuestionError
        A ValueError: also where an option is given that none of the methods uses.
    FileError
        Where a file is not what its format promises.

    Examples
    --------
    >>> answer = compare(["algorithm1", "block"], source="synthetic", tokens=2048, c=0.1)
    >>> [row.method for row in answer.results], answer.results[1].lossless
    (['algorithm1', 'block'], True)
    """
    given = dict(locals())
    progress = given.pop("progress")
    given["methods"] = [methods] if isinstance(methods, str) else list(methods)
    question = _method_question(given)
    answer = _core.compare(question, os.fspath(shipped_models()), progress)
    inputs = {**_method_inputs(question), **_options.OUTPUT}
    document = _options.document("compare", _core.__version__, inputs, answer.files, "", answer.json)
    return Comparison._shown(document, answer)


def simulate(
    *,
    draft: str | None = None,
    verifier: str | None = None,
    policy: str | None = None,
    source: Source | None = None,
    target: Path | None = None,
    draft_model: Path | None = None,
    prompts: Path | None = None,
    tasks: str | Sequence[str] | None = None,
    ngram_text: Path | None = None,
    eagle_head: Path | None = None,
    parallel_heads: Path | None = None,
    exits: Path | None = None,
    laws: Laws | None = None,
    vocab: int | None = None,
    noise: float | None = None,
    trace: Path | None = None,
    alpha: float | None = None,
    gamma: int | None = None,
    temperature: float | None = None,
    lenience: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    threshold: float | None = None,
    schedule: Schedule | None = None,
    batch: int | None = None,
    drafts: int | None = None,
    tree: tuple[int, int] | None = None,
    tree_nodes: int | None = None,
    tree_acceptance: Sequence[float] | None = None,
    exit_layer: int | None = None,
    tokens: int | None = None,
    until_error: float | None = None,
    max_new_tokens: int | None = None,
    end_token: int | None = None,
    timed: bool = False,
    seed: int = 1,
    threads: int | None = None,
    c: float | None = None,
    verify_factor: VerifyFactor = None,
    overhead: float | None = None,
    progress: Callable[[float], object] | None = None,
) -> Simulation:
    """Runs one draft, verifier and policy, and says what became of it. Options have the names of `specdec simulate`. Ctrl-C
    ends it with what was finished until then.

    Parameters
    ----------
    draft, verifier, policy : str, optional
        Who proposes, who accepts and how far to draft; "model", "algorithm1" and "fixed" where they are not given.
        docs/reference/methods.md has them.
    source : {"pair", "synthetic", "trace"}, optional
        A pair of models and prompts; a random pair of tables; or a recording that methods are replayed over. A pair where it
        is not given.
    target, draft_model, prompts : path, optional
        Of a pair: folders of checkpoints, the draft's or "unigram:FILE" or "bigram:FILE", and a file of prompts. The shipped
        ones where they are not given.
    tasks : str or sequence of str, optional
        Those of the prompts; all where it is not given.
    ngram_text : path, optional
        Texts in which n-grams are counted; the prompts where it is not given.
    eagle_head, parallel_heads, exits : path, optional
        What was trained on the target; the shipped target's where that is the target.
    laws : {"bigram", "fixed", "iid"}, optional
        Of a synthetic source: by the token before, the same everywhere, or acceptances alone. "iid" with an alpha, "fixed"
        above 4096 tokens, else "bigram" where it is not given.
    vocab : int, optional
        Tokens of the synthetic vocabulary, in [2, 2^20]; 64 where it is not given.
    noise : float, optional
        Of the synthetic draft, in logits, in [0, 100]; 0 is the target, 1 where it is not given.
    trace : path, optional
        The recording.
    alpha : float, optional
        Acceptance of every draft, for the laws "iid".
    gamma : int, optional
        Drafted tokens per step, in [1, 1024]; 5 where it is not given.
    temperature : float, optional
        Of both models, in [0, 1000], 0 for greedy decoding; 1 where it is not given.
    lenience : float, optional
        l of the lenient verifiers, in (0, 1].
    epsilon, delta : float, optional
        Of typical acceptance, in [0, 1].
    threshold : float, optional
        Of the policies threshold, product and confidence, in [0, 1].
    schedule : sequence of (int, int, int), optional
        (first batch, last batch, gamma) from batch 1 on, of the policy batch.
    batch : int, optional
        The batch that it looks up.
    drafts : int, optional
        Chains of recursive and k-sequential.
    tree : (int, int), optional
        Children of every node, and levels, of tree and static-tree.
    tree_nodes : int, optional
        Nodes of optimal-tree, and at most of best-tree; the root is one.
    tree_acceptance : sequence of float, optional
        How often the child of each rank is the accepted one.
    exit_layer : int, optional
        Blocks of the draft early-exit.
    tokens : int, optional
        Per method, rounded up to whole sequences; 4608 where it is not given, with `until_error` what that takes.
    until_error : float, optional
        End a method where tokens per step are known to this share of them: half of the 95% interval.
    max_new_tokens : int, optional
        Tokens per sequence; 64 where it is not given.
    end_token : int, optional
        The token that ends a text.
    timed : bool
        Decode one sequence at a time, in turn with plain decoding, and time both; threads are then those of each model.
    seed : int
        Of all random numbers.
    threads : int, optional
        Those of the machine where it is not given; results do not depend on them.
    c : float, optional
        Draft step time / target step time, >= 0; the ratio of operations where it is not given.
    verify_factor, overhead
        As :meth:`Cost.of_constants`; with c.
    progress : callable, optional
        Told now and then of the share that is done, in [0, 1].

    Returns
    -------
    Simulation
        ``partial`` is True where Ctrl-C ended it.

    Raises
    ------
    QuestionError
        A ValueError: also where an option is given that the method does not use.
    FileError
        Where a file is not what its format promises.

    Examples
    --------
    >>> answer = simulate(verifier="block", source="synthetic", noise=0, temperature=0, gamma=3, tokens=64)
    >>> answer.results[0].tokens_per_step.value
    4.0
    """
    given = dict(locals())
    progress = given.pop("progress")
    question = _method_question(given)
    answer = _core.simulate(question, os.fspath(shipped_models()), progress)
    parts = {"draft": "model", "verifier": "algorithm1", "policy": "fixed"}
    inputs = {**parts, **_method_inputs(question), **_options.SHARES, **_options.OUTPUT}
    document = _options.document("simulate", _core.__version__, inputs, answer.files, "", answer.json)
    return Simulation._shown(document, answer)
