"""The acceptance of drafted tokens, wherever it is known from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from specdec import _arrow, _core
from specdec._errors import QuestionError
from specdec._options import Options, Paths, given_only, listed, number, paths, require_number
from specdec._recording import Recording

Rule = Literal["rejection", "greedy-draft", "greedy"]
MixBy = Literal["tokens", "requests"]


class Acceptance:
    """An acceptance: of a rate, an interval, lengths, positions, a published figure, counters or a recording.

    Made by its class methods. It can be pickled and handed to other processes; one that was read from files reads them
    again there.

    Examples
    --------
    >>> Acceptance.of_rate(0.8).alpha
    0.8
    >>> Acceptance.of_lengths({3: 2.92}).alpha
    0.7928...
    """

    def __init__(
        self, make: str, arguments: tuple[Any, ...], options: Mapping[str, Any], inputs: Options, files: bool = False
    ) -> None:
        self._recipe = (make, arguments, given_only(options), inputs, files)
        self._made: dict[Any, _core.Acceptance] = {}
        if make == "acceptance_of_recording":
            return
        if make == "acceptance_from_recording":
            _core.require_recording(arguments[0], {"draft_array": options.get("draft_array")})
        else:
            self._make()

    def __reduce__(self) -> tuple[Callable[..., Acceptance], tuple[Any, ...]]:
        return Acceptance, self._recipe

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acceptance) and self._recipe == other._recipe

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Acceptance: {', '.join(f'{name} {value}' for name, value in self._inputs.items())}>"

    @property
    def _inputs(self) -> Options:
        return self._recipe[3]

    def _make(self, **reading: Any) -> _core.Acceptance:
        """As a question reads it: recordings up to its gammas."""
        make, arguments, options, _, files = self._recipe
        if not files:
            reading = {}
        elif make == "acceptance_from_counters":
            reading = {name: value for name, value in reading.items() if name == "by_request"}
        key = repr(sorted(reading.items()))
        if key not in self._made:
            given = [one._core if isinstance(one, Recording) else one for one in arguments]
            self._made[key] = getattr(_core, make)(*given, {**options, **given_only(reading)})
        return self._made[key]

    @property
    def alpha(self) -> float | None:
        """The rate, where there is one."""
        return self._make().alpha

    @property
    def alpha_ci95(self) -> tuple[float, float] | None:
        """Its 95% interval, where there is one."""
        return self._make().alpha_ci95

    @property
    def rule(self) -> str | None:
        """The acceptance rule, where it is stated or recorded."""
        return self._make().rule

    @property
    def method(self) -> str:
        """The origin of the interval: "exact", "stated", "iid_rounds", "clusters", "batch_means" or "sequences"."""
        return self._make().method

    @property
    def text(self) -> str:
        """A description for people."""
        return self._make().text

    @property
    def files(self) -> list[str]:
        return self._make().files

    @classmethod
    def of_rate(cls, alpha: float, *, rule: Rule | None = None) -> Acceptance:
        """One rate for all drafts.

        Parameters
        ----------
        alpha : float
            In [0, 1].
        rule : {"rejection", "greedy-draft", "greedy"}, optional
            The acceptance rule that it holds under.
        """
        ends = (require_number("alpha", alpha),) * 2
        return cls("acceptance_of_interval", ends, {"rule": rule}, {"alpha": number(alpha), **_rule_input(rule)})

    @classmethod
    def of_interval(cls, low: float, high: float, *, rule: Rule | None = None) -> Acceptance:
        """A rate somewhere in [low, high].

        Parameters
        ----------
        low, high : float
            In [0, 1], low <= high.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
        """
        inputs = {"alpha": f"{number(low)}:{number(high)}", **_rule_input(rule)}
        ends = (require_number("low", low), require_number("high", high))
        return cls("acceptance_of_interval", ends, {"rule": rule}, inputs)

    @classmethod
    def of_rejection(cls, low: float, high: float | None = None, *, rule: Rule | None = None) -> Acceptance:
        """A rate by 1 - alpha, exact where alpha is close to 1, or an interval of it.

        Parameters
        ----------
        low, high : float
            In [0, 1], low <= high; without `high` it is `low`.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
        """
        text = number(low) if high is None else f"{number(low)}:{number(high)}"
        ends = (require_number("low", low), require_number("high", low if high is None else high))
        return cls("acceptance_of_rejection", ends, {"rule": rule}, {"rejection": text, **_rule_input(rule)})

    @classmethod
    def of_lengths(
        cls, lengths: Mapping[int, float | str], *, rounds: float | None = None, rule: Rule | None = None
    ) -> Acceptance:
        """Tokens per step by gamma, the bonus token included, as serving engines log them.

        Parameters
        ----------
        lengths : mapping of int to float or str
            {gamma: length}. A length stands for all that rounds to it, half a unit of its last digit to either side; a
            string keeps zeros at its end, "2.920".
        rounds : float, optional
            That each length is the mean of, for an interval.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
        """
        typed = [
            (int(gamma), require_number("lengths", length), _core.half_unit_of(number(length)))
            for gamma, length in lengths.items()
        ]
        options = {"rounds": rounds, "rule": rule}
        if len(typed) == 1:
            ((gamma, length),) = lengths.items()
            inputs: Options = {"acceptance_length": number(length), "at": int(gamma)}
        else:
            inputs = {"acceptance_length": ",".join(f"{gamma}:{number(at)}" for gamma, at in lengths.items())}
        return cls("acceptance_of_lengths", (typed,), options, {**inputs, **_rounds_input(rounds), **_rule_input(rule)})

    @classmethod
    def of_positions(
        cls,
        rates: Sequence[float | str],
        *,
        conditional: bool = False,
        rounds: float | None = None,
        rule: Rule | None = None,
    ) -> Acceptance:
        """The rates at which the first, second, ... draft of a step is accepted.

        Parameters
        ----------
        rates : sequence of float or str
            Of all steps; each in [0, 1].
        conditional : bool
            They are given that all drafts before are accepted.
        rounds : float, optional
            That each rate is the mean of, for an interval.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
        """
        typed = [(require_number("rates", rate), _core.half_unit_of(number(rate))) for rate in rates]
        inputs: Options = {"acceptance_per_position": listed(rates), **_rounds_input(rounds), **_rule_input(rule)}
        if conditional:
            inputs["conditional"] = True
        options = {"conditional": conditional, "rounds": rounds, "rule": rule}
        return cls("acceptance_of_positions", (typed,), options, inputs)

    @classmethod
    def published(cls, name: str, *, rule: Rule | None = None) -> Acceptance:
        """The acceptance that others measured and printed: a rate, or a prior from acceptance lengths of heads.

        Parameters
        ----------
        name : str
            Of `specdec list published`.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
        """
        return cls("acceptance_published", (name,), {"rule": rule}, {"published": name, **_rule_input(rule)})

    @classmethod
    def from_counters(
        cls,
        files: Paths,
        *,
        model: str | None = None,
        at: int | None = None,
        rule: Rule | None = None,
        mix: Mapping[str, float] | None = None,
        by: str | None = None,
        mix_by: MixBy = "tokens",
    ) -> Acceptance:
        """The acceptance that a server counted, in any format of docs/reference/formats.md.

        Parameters
        ----------
        files : path or iterable of paths
        model : str, optional
            The target, where the files hold several.
        at : int, optional
            Drafted tokens of a round, where the files do not say it.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
            Where the files do not say it.
        mix : mapping of str to float, optional
            The traffic to plan for, as shares of groups of the requests: {"code": 0.6, "chat": 0.4}.
        by : str, optional
            The label whose values are these groups, "category" where it is not given; "prompt_tokens:1024,4096" for ranges.
        mix_by : {"tokens", "requests"}
            What the shares are of.
        """
        mixed = _mix_input(mix, by, mix_by)
        options = {"model": model, "at": at, "rule": rule, **mixed}
        inputs: Options = {"counters": paths(files), **_rule_input(rule), **mixed}
        inputs.update(given_only({"at": at, "model": model}))
        return cls("acceptance_from_counters", (paths(files),), options, inputs, files=True)

    @classmethod
    def from_recording(
        cls,
        recording: Recording | Paths | Any,
        *,
        draft_array: str | None = None,
        rule: Rule | None = None,
        mix: Mapping[str, float] | None = None,
        by: str | None = None,
        mix_by: MixBy = "tokens",
    ) -> Acceptance:
        """Exact replay of a recording, up to the gammas that a question asks for.

        Parameters
        ----------
        recording : Recording, path or iterable of paths, or columns of Arrow
            Files or a folder in any format of docs/reference/formats.md; a table, a reader or a frame as for
            :meth:`Recording.from_arrow`.
        draft_array : str, optional
            The draft's name or array, where files hold several.
        rule : {"rejection", "greedy-draft", "greedy"}, optional
            Where it is not to be the one recorded.
        mix, by, mix_by
            As for :meth:`from_counters`; groups are tasks, or by "context:N1,N2,..." places in the text. Of files alone.
            Such places without `mix` give each range of contexts its own acceptance, for the contexts of :func:`plan`
            and for the requests of :func:`capacity` as their contexts grow.
        """
        mixed = _mix_input(mix, by, mix_by) if mix is not None or mix_by != "tokens" else given_only({"by": by})
        if _arrow.is_stream(recording):
            recording = Recording.from_arrow(recording)
        if isinstance(recording, Recording):
            if mixed:
                given = next(iter(mixed))
                raise QuestionError(f"{given} is given, but goes with files only", given)
            if draft_array is not None:
                raise QuestionError("draft_array is given, but Recording.from_files takes it", "draft_array")
            told = {"trace": recording._files or ["memory"], **_rule_input(rule)}
            return cls("acceptance_of_recording", (recording,), {"rule": rule}, told, files=True)
        files = paths(recording)
        options = {"draft_array": draft_array, "rule": rule, **mixed}
        inputs = {"trace": files, **_rule_input(rule), **given_only({"draft_array": draft_array}), **mixed}
        return cls("acceptance_from_recording", (files,), options, inputs, files=True)


def _rule_input(rule: Rule | None) -> Options:
    return {} if rule is None else {"acceptance": rule}


def _mix_input(mix: Mapping[str, float] | None, by: str | None, mix_by: MixBy) -> Options:
    if mix_by not in ("tokens", "requests"):
        raise QuestionError(f"mix_by is {mix_by!r}, but must be tokens or requests", "mix_by")
    if mix is None:
        given = "by" if by is not None else "mix_by" if mix_by != "tokens" else None
        if given is not None:
            raise QuestionError(f"{given} is given, but needs mix beside it", given)
        return {}
    inputs: Options = {"mix": ",".join(f"{group}={number(share)}" for group, share in mix.items())}
    if mix_by != "tokens":
        inputs["mix_by"] = mix_by
    return {**inputs, **given_only({"by": by})}


def _rounds_input(rounds: float | None) -> Options:
    return {} if rounds is None else {"rounds": float(rounds)}
