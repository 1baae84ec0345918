"""The questions: what to draft, and how many GPUs a load needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union

from specdec import _core, _options
from specdec._acceptance import Acceptance, Rule
from specdec._answers import Capacity, Checkup, Difference, Plan, Synthetic
from specdec._cost import Cost, DraftKind
from specdec._errors import QuestionError
from specdec._options import Options, Path, Paths, Schedule, as_float, given_only, listed, number, paths, plain
from specdec._options import require_type, stretches

Engine = Literal["vllm", "sglang", "trtllm", "llamacpp"]
#: A mean, or a mean and a coefficient of variation.
Lengths = Union[float, tuple[float, float]]


def _plan_question(given: Options) -> tuple[Options, Options]:
    """As the library and as the command line have it."""
    question = {name: plain(value) for name, value in given_only(given).items()}
    for name in ("batch", "context"):
        if name in question and not isinstance(question[name], list):
            question[name] = [question[name]]
    inputs = dict(question)
    for name in ("batch", "context"):
        if name in inputs:
            inputs[name] = listed(inputs[name])
    if "schedule" in inputs:
        inputs["schedule"] = stretches(inputs["schedule"])
    for name in ("min_gain", "max_regret", "c_hat"):
        if name in inputs:
            inputs[name] = as_float(inputs[name])
    return question, inputs


def _planned(inputs: Options, answer: _core.Answer) -> Plan:
    document = _options.document(
        "plan", _core.__version__, {**_options.PLAN, **inputs}, answer.files, answer.presets, answer.json
    )
    return Plan._shown(document, answer)


def _require_nouns(acceptance: Acceptance | None, cost: Cost) -> None:
    if acceptance is not None:
        require_type("acceptance", acceptance, Acceptance, "a specdec.Acceptance")
    require_type("cost", cost, Cost, "a specdec.Cost")


def _names_draft(cost: Cost) -> bool:
    return "draft_model" in cost._inputs or "draft_kind" in cost._inputs


def plan(
    acceptance: Acceptance | None = None,
    cost: Cost | None = None,
    *,
    drafts: Mapping[str, tuple[Acceptance, Cost]] | None = None,
    batch: float | Sequence[float] | None = None,
    context: float | Sequence[float] | None = None,
    max_num_seqs: int | None = None,
    min_gain: float | None = None,
    gamma: int | None = None,
    schedule: Schedule | None = None,
    max_regret: float | None = None,
    max_gamma: int | None = None,
    tokens: int | None = None,
    c_hat: float | None = None,
    emit: Engine | None = None,
) -> Plan:
    """The number of tokens to draft, and what that gains. Options have the names of `specdec plan`.

    Parameters
    ----------
    acceptance : Acceptance, optional
        Without it the prior of published lengths for the head that the cost names as its draft.
    cost : Cost
    drafts : mapping of str to (Acceptance, Cost), optional
        Instead of the two: drafts to choose among, by name.
    batch : float or sequence of float, optional
        Sequences decoded together, rising, each in (0, 65536]; those that were measured where it is not given, else 1.
    context : float or sequence of float, optional
        Tokens in the cache of each, rising.
    max_num_seqs : int, optional
        The schedule covers batch 1 to this one.
    min_gain : float, optional
        Speculation has to be 1 + this times as fast to be worth it; 0.05 if not given.
    gamma : int, optional
        In use: its speedup and regret are told.
    schedule : sequence of (int, int, int), optional
        In use by batch: (first batch, last batch, gamma).
    max_regret : float, optional
        Largest acceptable regret of what is in use, in [0, 1].
    max_gamma : int, optional
        Largest gamma to recommend and to show.
    tokens : int, optional
        Also for generations of so many tokens; with one rate and constants alone.
    c_hat : float, optional
        Draft operations / target operations per token; with one rate and constants alone.
    emit : {"vllm", "sglang", "trtllm", "llamacpp"}, optional
        A configuration for this engine: ``config_text`` of the answer.

    Returns
    -------
    Plan

    Raises
    ------
    QuestionError
        A ValueError whose ``parameter`` names what is wrong.
    FileError
        Where a file is not what its format promises.

    Examples
    --------
    >>> print(plan(Acceptance.of_rate(0.8), Cost.of_constants(0.05)).decision.text[0])
    Draft 8 tokens: about 3.09x plain decoding.
    """
    question, inputs = _plan_question(
        {
            "batch": batch,
            "context": context,
            "max_num_seqs": max_num_seqs,
            "min_gain": min_gain,
            "gamma": gamma,
            "schedule": schedule,
            "max_regret": max_regret,
            "max_gamma": max_gamma,
            "tokens": tokens,
            "c_hat": c_hat,
            "emit": emit,
        }
    )
    largest = _core.largest_compared_gamma(question, False)

    def made(name: str | None, one: Acceptance, its_cost: Cost) -> tuple[str | None, _core.Acceptance, _core.Cost]:
        _require_nouns(one, its_cost)
        return name, one._make(max_gamma=largest, engine=emit), its_cost._make(draft_name=name)

    if drafts is not None:
        if acceptance is not None or cost is not None:
            raise QuestionError("drafts is given, but must not be beside acceptance and cost", "drafts")
        given = [made(name, *of) for name, of in drafts.items()]
        texts = [_options.draft_text(name, {**one._inputs, **its._inputs}) for name, (one, its) in drafts.items()]
        for one, its in drafts.values():
            inputs.update(_options.of_all_drafts({**one._inputs, **its._inputs}))
        inputs["draft"] = texts
    elif cost is None:
        raise QuestionError("cost is missing: an acceptance and a cost make a plan", "cost")
    elif acceptance is None:
        _require_nouns(None, cost)
        if not _names_draft(cost):
            raise QuestionError("acceptance is missing: an acceptance and a cost make a plan", "acceptance")
        priced = cost._make()
        given = [(None, _core.acceptance_prior_for(priced), priced)]
        inputs = {**cost._inputs, **inputs}
    else:
        given = [made(None, acceptance, cost)]
        inputs = {**acceptance._inputs, **cost._inputs, **inputs}
    return _planned(inputs, _core.plan(given, question))


def plan_runs(
    bench: Paths,
    acceptance: Acceptance | None = None,
    *,
    holdout: Paths | None = None,
    model: str | None = None,
    draft_model: str | None = None,
    draft_kind: DraftKind | None = None,
    at: int | None = None,
    rule: Rule | None = None,
    batch: float | Sequence[float] | None = None,
    context: float | Sequence[float] | None = None,
    max_num_seqs: int | None = None,
    min_gain: float | None = None,
    gamma: int | None = None,
    schedule: Schedule | None = None,
    max_regret: float | None = None,
    max_gamma: int | None = None,
    emit: Engine | None = None,
) -> Plan:
    """Plans from what a server was measured to do: `specdec plan --bench`.

    Parameters
    ----------
    bench : path or iterable of paths
        Results of `vllm bench serve` or SGLang's `bench_serving`, or answers of llama-server with their timings; with and
        without speculation.
    acceptance : Acceptance, optional
        To plan with instead of what the runs accepted.
    holdout : path or iterable of paths, optional
        Runs to predict, which are used for nothing else.
    model, draft_model : str, optional
        Where the files are of several.
    draft_kind : str, optional
        "model", "mirrored", "eagle", "mtp", "parallel", "ngram" or "suffix".
    at : int, optional
        Drafted tokens of a round, where the files do not say it.
    rule : {"rejection", "greedy-draft", "greedy"}, optional
        The engine's, where it is known.
    batch, context, max_num_seqs, min_gain, gamma, schedule, max_regret, max_gamma
        As :func:`plan`.
    emit
        As :func:`plan`.

    Returns
    -------
    Plan

    Raises
    ------
    QuestionError, FileError
    """
    question, inputs = _plan_question(
        {
            "batch": batch,
            "context": context,
            "max_num_seqs": max_num_seqs,
            "min_gain": min_gain,
            "gamma": gamma,
            "schedule": schedule,
            "max_regret": max_regret,
            "max_gamma": max_gamma,
            "emit": emit,
        }
    )
    largest = _core.largest_compared_gamma(question, True)
    files: Options = {"bench": paths(bench), "model": model, "draft_model": draft_model, "draft_kind": draft_kind, "at": at}
    if holdout is not None:
        files["holdout"] = paths(holdout)
    files = given_only(files)
    made = None if acceptance is None else acceptance._make(max_gamma=largest, engine=emit)
    answer = _core.plan_runs(made, {**files, **given_only({"rule": rule})}, question)
    inputs = {**(acceptance._inputs if acceptance else {}), **files, **given_only({"acceptance": rule}), **inputs}
    return _planned(inputs, answer)


def synthetic(
    acceptance: Acceptance, gamma: int, *, emit: Engine | None = None
) -> Synthetic:
    """The settings by which engines accept drafts as the acceptance says, for benchmarks: `specdec synthetic`.

    Parameters
    ----------
    acceptance : Acceptance
    gamma : int
        Drafted tokens per step of the benchmark, in [1, 256].
    emit : {"vllm", "sglang", "trtllm", "llamacpp"}, optional
        One engine; all of them where it is not given.

    Returns
    -------
    Synthetic

    Raises
    ------
    QuestionError, FileError

    Examples
    --------
    >>> synthetic(Acceptance.of_rate(0.5), 2, emit="trtllm").settings[0].text
    'TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=0.75\\n'
    """
    require_type("acceptance", acceptance, Acceptance, "a specdec.Acceptance")
    question = given_only({"gamma": plain(gamma), "emit": emit})
    answer = _core.synthetic(acceptance._make(max_gamma=gamma, engine=emit), question)
    inputs = {**_options.SYNTHETIC, **acceptance._inputs, **question}
    document = _options.document("synthetic", _core.__version__, inputs, answer.files, answer.presets, answer.json)
    return Synthetic._shown(document, answer)


def difference(
    a: Path,
    b: Path,
    *,
    gamma: int | None = None,
    draft_array: str | tuple[str, str] | None = None,
    by: str | None = None,
    unpaired: bool = False,
) -> Difference:
    """Two runs or two drafts held against each other: `specdec diff`.

    Parameters
    ----------
    a, b : path
        Counts in any format of docs/reference/formats.md, or recordings.
    gamma : int, optional
        Drafted tokens per step: of recordings, and of counts that do not say it.
    draft_array : str or (str, str), optional
        The draft of recordings that hold several; two names are of the first run and of the second.
    by : str, optional
        The label of the prompt mix, with ranges as "prompt_tokens:1024,4096"; "category", of recordings "task".
    unpaired : bool
        Take no two requests or texts for those of one prompt.

    Returns
    -------
    Difference

    Raises
    ------
    QuestionError, FileError
    """
    runs = (os.fspath(a), os.fspath(b))
    drafts = (draft_array, draft_array) if draft_array is None or isinstance(draft_array, str) else draft_array
    shared = given_only({"gamma": None if gamma is None else plain(gamma), "by": by, "unpaired": unpaired})
    answer = _core.difference(*runs, {**shared, **given_only({"draft_array_a": drafts[0], "draft_array_b": drafts[1]})})
    named = None if draft_array is None else draft_array if isinstance(draft_array, str) else ",".join(draft_array)
    inputs = {**_options.DIFFERENCE, **shared, "draft_array": named, "runs": list(runs)}
    document = _options.document("diff", _core.__version__, inputs, answer.files, answer.presets, answer.json)
    return Difference._shown(document, answer)


def doctor(
    files: Paths = (),
    *,
    target: Path | None = None,
    draft: Path | None = None,
    gamma: int | None = None,
    draft_cost: Paths = (),
    hardware: str | None = None,
    tensor_parallel_size: int | None = None,
    model: str | None = None,
    draft_model: str | None = None,
    draft_kind: str | None = None,
    threads: int = 1,
) -> Checkup:
    """Faults and doubtful figures in what servers, benchmarks and recorders wrote: `specdec doctor`.

    Parameters
    ----------
    files : path or iterable of paths
        Counters, logs, benchmark results, answers, recordings and engines' configurations; scrapes of one server in the order
        of time.
    target, draft : path, optional
        The two halves of a recording in two files.
    gamma : int, optional
        Drafted tokens per step, where the files do not say it.
    draft_kind : str, optional
        How drafts are made, where the files do not say it.
    draft_cost : path or iterable of paths
        Times of the draft, to be held against its roofline: as for `plan`, or llama.cpp's log with statistics of its drafts.
    hardware, model, draft_model : str, optional
        What both models run on, the target and the draft; beside `draft_cost`, which needs the first two.
    tensor_parallel_size : int, optional
        Accelerators that share the target.
    threads : int
        The answer does not depend on it.

    Returns
    -------
    Checkup

    Raises
    ------
    QuestionError
        Without files, for one that is given twice, or a value out of range.
    FileError
        For a file that cannot be read or is in no known format.
    """
    if (target is None) != (draft is None):
        given = "target" if draft is None else "draft"
        raise QuestionError("target and draft are the two halves of a recording: give both", given)
    sources = paths(files)
    halves = given_only({"target": target and os.fspath(target), "draft": draft and os.fspath(draft)})
    roofline = {
        "hardware": hardware,
        "tensor_parallel_size": plain(tensor_parallel_size),
        "model": model,
        "draft_model": draft_model,
    }
    times = paths(draft_cost)
    if times and (hardware is None or model is None):
        raise QuestionError("draft_cost is given, but needs hardware and model beside it", "draft_cost")
    for name, value in roofline.items():
        if value is not None and not times:
            raise QuestionError(f"{name} is given, but needs draft_cost beside it", name)
    tests = {"gamma": plain(gamma), "draft_kind": draft_kind, "threads": threads}
    question = given_only({**tests, "draft_cost": times or None, **roofline, **halves})
    answer = _core.doctor(sources, question)
    inputs = {**_options.DOCTOR, **question, "sources": sources}
    document = _options.document("doctor", _core.__version__, inputs, answer.files, answer.presets, answer.json)
    return Checkup._shown(document, answer)


def capacity(
    acceptance: Acceptance | None = None,
    cost: Cost | None = None,
    *,
    prompt_tokens: Lengths | None = None,
    output_tokens: Lengths | None = None,
    requests: Path | None = None,
    arrival_rate: float | None = None,
    concurrency: int | None = None,
    outside_ms: float = 0.0,
    prefix_cache_hit_rate: float = 0.0,
    shared_prefixes: int | None = None,
    decode_only: bool = False,
    alpha_spread: float | None = None,
    tensor_parallel_size: int | None = None,
    prefill_tokens_per_second: float | None = None,
    gpus: int | None = None,
    replicas: int | None = None,
    price: float | None = None,
    gpu_memory_utilization: float = 0.9,
    activation_reserve_gb: float | None = None,
    kv_cache_tokens: int | None = None,
    max_num_seqs: int | Sequence[int] = 256,
    max_num_batched_tokens: int = 8192,
    prefill_first: bool = False,
    gamma: int | Sequence[int] | None = None,
    schedule: Schedule | None = None,
    verification_budget: bool = False,
    ttft_ms: float | None = None,
    tpot_ms: float | None = None,
    percentile: float = 99.0,
    replications: int = 4,
    num_requests: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Capacity:
    """The load that a deployment takes, and the GPUs that a load needs, with and without drafts, by simulation. Options have
    the names of `specdec capacity`. Ctrl-C ends it with the scenarios that were simulated until then.

    Parameters
    ----------
    acceptance : Acceptance, optional
        Without it the prior of published lengths for the head that the cost names as its draft; nothing drafts if it names
        none, or with `gamma=0`.
    cost : Cost
        In seconds.
    prompt_tokens, output_tokens : float or (float, float)
        Lengths of the requests: mean, or mean and standard deviation / mean. Needed without `requests`.
    requests : path, optional
        Requests that arrived, as Azure or Mooncake publish them, or a table.
    arrival_rate : float, optional
        Requests/s of all replicas; without it what one replica can take is answered.
    concurrency : int, optional
        Instead: clients, each of which sends its next request when its last one has ended.
    outside_ms : float
        Of each request beside the engine, there and back: transport, tokenizer.
    prefix_cache_hit_rate : float
        Share of the prompts that is found in the cache, in [0, 1).
    shared_prefixes : int, optional
        Distinct prefixes of which that share is, on a replica, each held once; without it each request holds its own.
    decode_only : bool
        Prompts are computed elsewhere.
    alpha_spread : float, optional
        Standard deviation of a Beta law of the rate over requests.
    tensor_parallel_size : int, optional
        Accelerators of a replica where hardware does not price it.
    prefill_tokens_per_second : float, optional
        Speed of prompts, without hardware.
    gpus : int, optional
        Accelerators that there are: finds the layout of the target on them, as far as the cost does not state it.
    replicas : int, optional
        How many there are; as many as the load needs where it is not given.
    price : float, optional
        Of a GPU for an hour.
    gpu_memory_utilization, activation_reserve_gb, kv_cache_tokens, max_num_batched_tokens
        Of the engine.
    max_num_seqs : int or sequence of int
        Sequences that run together; each is tried.
    prefill_first : bool
        Prompts have iterations of their own, before rounds, as in SGLang, and do not share them.
    gamma : int or sequence of int, optional
        Compared with plain decoding; 1 to 8 where neither it nor a schedule is given.
    schedule : sequence of (int, int, int), optional
        (first batch, last batch, gamma).
    verification_budget : bool
        Beside each way that drafts, the same with a budget: of the drafts of a batch those are verified that make most tokens
        for their time.
    ttft_ms, tpot_ms : float, optional
        Limits on the percentile of the requests.
    percentile : float
    replications, seed : int
        Of the simulation.
    num_requests : int, optional
        Of a run; 1000, or with `concurrency` 10 for each of a replica's clients, where it is not given.
    threads : int, optional
        Those of the machine where it is not given; results do not depend on them.
    progress : callable, optional
        Told now and then of the share that is done, in [0, 1].

    Returns
    -------
    Capacity
        ``partial`` is True where Ctrl-C ended it.

    Raises
    ------
    QuestionError, FileError
    """
    if requests is None and (prompt_tokens is None or output_tokens is None):
        missing = "prompt_tokens" if prompt_tokens is None else "output_tokens"
        raise QuestionError(f"{missing} is missing: a mean, or a mean and its variation, or the requests", missing)
    if requests is not None and (prompt_tokens is not None or output_tokens is not None):
        named = "prompt_tokens" if prompt_tokens is not None else "output_tokens"
        raise QuestionError(f"{named} is given, but requests brings its own lengths", named)
    several = {"max_num_seqs": plain(max_num_seqs), "gamma": plain(gamma)}
    for name, value in several.items():
        if isinstance(value, int):
            several[name] = [value]
    given = given_only(
        {
            "prompt_tokens": prompt_tokens,
            "output_tokens": output_tokens,
            "requests": None if requests is None else paths(requests)[0],
            "arrival_rate": as_float(arrival_rate),
            "concurrency": concurrency,
            "outside_ms": as_float(outside_ms),
            "prefix_cache_hit_rate": as_float(prefix_cache_hit_rate),
            "shared_prefixes": shared_prefixes,
            "decode_only": decode_only,
            "alpha_spread": as_float(alpha_spread),
            "tensor_parallel_size": tensor_parallel_size,
            "prefill_tokens_per_second": as_float(prefill_tokens_per_second),
            "gpus": gpus,
            "replicas": replicas,
            "price": as_float(price),
            "gpu_memory_utilization": as_float(gpu_memory_utilization),
            "activation_reserve_gb": as_float(activation_reserve_gb),
            "kv_cache_tokens": kv_cache_tokens,
            **several,
            "max_num_batched_tokens": max_num_batched_tokens,
            "prefill_first": prefill_first,
            "verification_budget": verification_budget,
            "schedule": schedule,
            "ttft_ms": as_float(ttft_ms),
            "tpot_ms": as_float(tpot_ms),
            "percentile": as_float(percentile),
            "replications": replications,
            "num_requests": num_requests,
            "seed": seed,
            "threads": threads or min(max(len(os.sched_getaffinity(0)), 1), 64),
        }
    )
    inputs = dict(given)
    for name in ("prompt_tokens", "output_tokens"):
        if name in inputs:
            law = inputs[name]
            inputs[name] = ":".join(map(number, law)) if isinstance(law, (tuple, list)) else number(law)
    for name in ("max_num_seqs", "gamma"):
        if name in inputs:
            inputs[name] = listed(inputs[name])
    if "schedule" in inputs:
        inputs["schedule"] = stretches(inputs["schedule"])
    if cost is None:
        raise QuestionError("cost is missing: what an iteration costs, in seconds", "cost")
    _require_nouns(acceptance, cost)
    largest = _core.largest_gamma(given, acceptance is not None or _names_draft(cost))
    made = None if acceptance is None else acceptance._make(max_gamma=max(1, largest), by_request=True)
    priced = cost._make(drafts=largest > 0)
    if acceptance is None and largest > 0:
        made = _core.acceptance_prior_for(priced)
    of_both = {**(acceptance._inputs if acceptance else {}), **cost._inputs}
    answer = _core.capacity(made, priced, given, progress)
    document = _options.document(
        "capacity",
        _core.__version__,
        {**_options.CAPACITY, **of_both, **inputs},
        answer.files,
        answer.presets,
        answer.json,
    )
    return Capacity._shown(document, answer)
