"""The cost of a round of speculative decoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from specdec import _core
from specdec._options import Options, Path, Paths, Uncertain, VerifyFactor, as_float, factors, given_only, number
from specdec._options import paths, uncertain

DraftKind = Literal["model", "mirrored", "eagle", "mtp", "parallel", "ngram", "suffix"]
NumberType = Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]


class Cost:
    """A cost: of constants, of hardware and models, of timed passes, or of an engine's logs.

    Made by its class methods. It can be pickled; one that was read from files reads them again.

    Examples
    --------
    >>> Cost.of_constants(0.05)
    <Cost: c 0.05>
    """

    def __init__(self, make: str, arguments: tuple[Any, ...], options: Mapping[str, Any], inputs: Options) -> None:
        self._recipe = (make, arguments, given_only(options), inputs)
        self._made: dict[Any, _core.Cost] = {}
        self._checked()

    def _checked(self) -> None:
        # A cost that needs a draft to be priced is checked where a price is asked of it.
        if self._recipe[0] != "cost_of_hardware":
            self._make()

    def __reduce__(self) -> tuple[Callable[..., Cost], tuple[Any, ...]]:
        return Cost, self._recipe

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cost) and self._recipe == other._recipe

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Cost: {', '.join(f'{name} {value}' for name, value in self._inputs.items())}>"

    @property
    def _inputs(self) -> Options:
        return self._recipe[3]

    def _make(self, *, drafts: bool = True, draft_name: str | None = None) -> _core.Cost:
        """As a question has it: whether anything drafts."""
        make, arguments, options, _ = self._recipe
        key = (drafts, draft_name)
        if key not in self._made:
            more: Options = given_only({"draft_name": draft_name})
            if make == "cost_of_hardware":
                more["drafts"] = drafts
            elif not drafts and make != "cost_of_constants":
                more["draft_kind"] = "ngram"
            self._made[key] = getattr(_core, make)(*arguments, {**options, **more})
        return self._made[key]

    @classmethod
    def of_constants(
        cls,
        c: float | None = None,
        *,
        verify_factor: VerifyFactor = None,
        overhead: float | None = None,
        draft_kind: DraftKind | None = None,
        hit_rate: float | None = None,
        mean_draft_length: float | None = None,
        model: str | None = None,
        draft_model: str | None = None,
    ) -> Cost:
        """Multiples of a plain target step, whatever batch and context: Theorem 3.8 of Leviathan et al. 2023.

        Parameters
        ----------
        c : float
            Draft step time / target step time, >= 0; needed unless the draft makes no step.
        verify_factor : float or mapping of int to float, optional
            Time of scoring n tokens / one token: one factor, or factors by n with straight lines between; 1 where it is
            not given.
        overhead : float, optional
            Other time of a speculative step / target step time; 0 where it is not given.
        draft_kind : str, optional
            How drafts are made: "model", "mirrored", "eagle", "mtp", "parallel", "ngram" or "suffix".
        hit_rate, mean_draft_length : float, optional
            Of "ngram" and "suffix": the share of rounds in which a lookup finds something, and how many tokens it finds
            on average, of which gamma at most are drafted; if not given, every round drafts gamma.
        model, draft_model : str, optional
            What an engine calls them.
        """
        options = {
            "c": c,
            "verify_factor": verify_factor,
            "overhead": overhead,
            "draft_kind": draft_kind,
            "hit_rate": as_float(hit_rate),
            "mean_draft_length": as_float(mean_draft_length),
            "model": model,
            "draft_model": draft_model,
        }
        inputs = {**options, "c": as_float(c), "verify_factor": factors(verify_factor), "overhead": as_float(overhead)}
        return cls("cost_of_constants", (), options, given_only(inputs))

    @classmethod
    def of_hardware(
        cls,
        hardware: Path,
        model: Path,
        *,
        draft_model: Path | None = None,
        draft_kind: DraftKind | None = None,
        hit_rate: float | None = None,
        mean_draft_length: float | None = None,
        tensor_parallel_size: int | None = None,
        data_parallel_size: int | None = None,
        expert_parallel_size: int | None = None,
        draft_tensor_parallel_size: int | None = None,
        weight_dtype: NumberType | None = None,
        draft_weight_dtype: NumberType | None = None,
        kv_cache_dtype: NumberType | None = None,
        kernel_times: Path | None = None,
        bandwidth_efficiency: Uncertain | None = None,
        compute_efficiency: Uncertain | None = None,
        link_efficiency: Uncertain | None = None,
        all_reduce_latency_us: Uncertain | None = None,
        launch_seconds: Uncertain | None = None,
        draft_launch_seconds: Uncertain | None = None,
        layer_seconds: Uncertain | None = None,
        scheduling_seconds: Uncertain | None = None,
        calibrate: Sequence[Mapping[str, float]] | None = None,
    ) -> Cost:
        """A roofline from what the models read and compute and what the hardware can do.

        Parameters
        ----------
        hardware : str or path
            A name of `specdec list hardware`, or a file.
        model : str or path
            A name of `specdec list models`, a config.json, its folder, or a GGUF file.
        draft_model : str or path, optional
            The same.
        draft_kind : str, optional
            "model", "mirrored", "eagle", "mtp", "parallel", "ngram" or "suffix"; what the models tell where it is not
            given.
        hit_rate, mean_draft_length : float, optional
            As for `of_constants`.
        tensor_parallel_size, draft_tensor_parallel_size : int, optional
            Accelerators that share a model.
        data_parallel_size, expert_parallel_size : int, optional
            Groups of as many accelerators, each with sequences of its own, that share the experts of the target with some,
            and parts that whole experts are divided into over all accelerators.
        weight_dtype, draft_weight_dtype, kv_cache_dtype : str, optional
            "fp32", "fp16", "bf16", "fp8", "int8", "int4", "nvfp4" or "mxfp4".
        kernel_times : str or path, optional
            "vllm", "sglang" or "tensorrt-llm", whose measured kernels come with the program, or a file of one engine's:
            in place of the shares of the peaks and of the all-reduces' latency; "none" for these. If not given, vLLM's
            where they come with the program and none of these is given.
        bandwidth_efficiency, compute_efficiency, link_efficiency : float or (float, float), optional
            Achieved share of the peaks, in (0, 1]; ranges from published measurements where they are not given.
        all_reduce_latency_us, launch_seconds, draft_launch_seconds, layer_seconds, scheduling_seconds : float or pair
            What passes lose beside that.
        calibrate : sequence of mappings, optional
            Measured times per output token: {"batch": 8, "tpot_ms": 15.9}, with "context", and with "gamma" and
            "tokens_per_step" where drafts were made; and of an idle server {"prompt": 2000, "ttft_ms": 120}.
        """
        losses: Options = {
            "bandwidth_efficiency": bandwidth_efficiency,
            "compute_efficiency": compute_efficiency,
            "link_efficiency": link_efficiency,
            "all_reduce_latency_us": all_reduce_latency_us,
            "launch_seconds": launch_seconds,
            "draft_launch_seconds": draft_launch_seconds,
            "layer_seconds": layer_seconds,
            "scheduling_seconds": scheduling_seconds,
        }
        options: Options = {
            "draft_model": None if draft_model is None else paths(draft_model)[0],
            "draft_kind": draft_kind,
            "hit_rate": as_float(hit_rate),
            "mean_draft_length": as_float(mean_draft_length),
            "tensor_parallel_size": tensor_parallel_size,
            "data_parallel_size": data_parallel_size,
            "expert_parallel_size": expert_parallel_size,
            "draft_tensor_parallel_size": draft_tensor_parallel_size,
            "weight_dtype": weight_dtype,
            "draft_weight_dtype": draft_weight_dtype,
            "kv_cache_dtype": kv_cache_dtype,
            "kernel_times": None if kernel_times is None else paths(kernel_times)[0],
        }
        timed = [{"name": _timed_text(one), **one} for one in calibrate or []]
        names = (paths(hardware)[0], paths(model)[0])
        inputs = {"hardware": names[0], "model": names[1], **given_only(options)}
        inputs.update({name: uncertain(value) for name, value in given_only(losses).items()})
        if timed:
            inputs["calibrate"] = [one["name"] for one in timed]
        return cls("cost_of_hardware", names, {**options, **losses, "calibrate": timed or None}, inputs)

    @classmethod
    def of_timings(
        cls,
        files: Paths,
        *,
        model: str | None = None,
        draft_model: str | None = None,
        draft_kind: DraftKind | None = None,
        hit_rate: float | None = None,
        mean_draft_length: float | None = None,
        c: float | None = None,
        draft_cost: Paths | None = None,
        overhead_seconds: float | None = None,
    ) -> Cost:
        """Timed passes: tables of batch, tokens, context and seconds, or llama-bench's.

        Parameters
        ----------
        files : path or iterable of paths
        model, draft_model : str, optional
            Where the files hold several models.
        draft_kind : str, optional
            "model", "mirrored", "eagle", "mtp", "parallel", "ngram" or "suffix".
        hit_rate, mean_draft_length : float, optional
            As for `of_constants`.
        c : float, optional
            Draft step time / target step time, where the draft was not timed.
        draft_cost : path or iterable of paths, optional
            Timed passes of the draft.
        overhead_seconds : float, optional
            Other time of a speculative step.
        """
        options = {
            "model": model,
            "draft_model": draft_model,
            "draft_kind": draft_kind,
            "hit_rate": as_float(hit_rate),
            "mean_draft_length": as_float(mean_draft_length),
            "c": c,
            "draft_cost": None if draft_cost is None else paths(draft_cost),
            "overhead_seconds": overhead_seconds,
        }
        inputs = {"cost": paths(files), **options, "c": as_float(c), "overhead_seconds": as_float(overhead_seconds)}
        return cls("cost_of_timings", (paths(files),), options, given_only(inputs))

    @classmethod
    def of_logs(
        cls,
        files: Paths,
        *,
        model: str | None = None,
        draft_model: str | None = None,
        draft_kind: DraftKind | None = None,
        at: int | None = None,
    ) -> Cost:
        """The steady windows of the logs of vLLM or SGLang, plain and speculative, or windows between scrapes of vLLM.

        Parameters
        ----------
        files : path or iterable of paths
        model, draft_model : str, optional
        draft_kind : str, optional
        at : int, optional
            Drafted tokens of a round, where the logs do not say it.
        """
        options = {"model": model, "draft_model": draft_model, "draft_kind": draft_kind, "at": at}
        return cls("cost_of_logs", (paths(files),), options, given_only({"cost": paths(files), **options}))


def _timed_text(timed: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={number(value)}" for key, value in timed.items())
