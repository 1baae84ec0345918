"""From a server to the right setting: which run to make next, until enough is known."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import fcntl
import json
import math
import os
import pathlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, Union

from specdec._answers import Plan
from specdec._cost import DraftKind
from specdec._errors import FileError, QuestionError
from specdec._options import Path, given_only
from specdec._questions import Engine as EngineName
from specdec._questions import plan_runs

#: A file in any format that `plan --bench` reads, or the columns of a table of runs.
Result = Union[Path, Mapping[str, Any]]
Reason = Literal["enough", "budget", "interrupted", "nothing left"]

#: After so many failures a gamma is left alone, and each larger one.
_failures = 2
#: A run that is so many times what the others foretell is repeated; repeats that differ so much contradict each other.
_doubtful, _contradictory = 1.5, 1.2
#: Until one was made.
_usual_start_minutes, _usual_run_minutes = 3.0, 1.0


class Server(Protocol):
    """What :func:`tune` needs. Each method may raise an exception: the run then is a failed one."""

    def start(self, gamma: int, /) -> None:
        """Starts the server with ``gamma`` drafts, plain for 0, and returns when it answers."""

    def measure(self, batch: int, /) -> Result:
        """Runs the benchmark with ``batch`` requests at a time."""

    def stop(self) -> None:
        """Ends the server, and a measurement in another thread with it."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that was made: at ``gamma`` and ``batch`` by the server's start ``server``, in ``minutes``. Then the expected
    regret was ``regret``, and the plan's first line ``advice``."""

    gamma: int
    batch: int
    server: str
    minutes: float
    file: str
    regret: float | None = None
    advice: str = ""


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that failed, and why; without a batch the server did not start."""

    gamma: int
    batch: int | None
    server: str
    minutes: float
    why: str


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Answer of :func:`tune`.

    Attributes
    ----------
    plan : Plan or None
        Of all runs; None without any.
    runs : list of Run
    failures : list of Failure
    reason : {"enough", "budget", "interrupted", "nothing left"}
        Why it ended.
    minutes : float
    """

    plan: Plan | None
    runs: list[Run]
    failures: list[Failure]
    reason: Reason
    minutes: float

    @property
    def regret(self) -> float | None:
        """The expected regret of the recommendation."""
        return None if self.plan is None else self.plan.bench.expected_regret

    def __str__(self) -> str:
        regret = "unknown" if self.regret is None else f"{self.regret:.1%}"
        lines = ["" if self.plan is None else f"{str(self.plan).rstrip()}\n"]
        lines.append(f"Ended by: {self.reason}. Expected regret {regret}, {self.minutes:.1f} minutes, {len(self.runs)} runs.")
        before = None
        for run in self.runs:
            now = "" if run.regret is None else f"expected regret {run.regret:.1%}"
            gained = "" if run.regret is None or before is None else f", {before:.1%} before"
            lines.append(f"  {named(run.gamma, run.batch):32} {run.minutes:5.1f} min  {now}{gained}")
            before = run.regret
        for one in self.failures:
            lines.append(f"  {named(one.gamma, one.batch):32} {one.minutes:5.1f} min  failed: {one.why}")
        return "\n".join(lines).lstrip("\n") + "\n"


def named(gamma: int, batch: int | None = None) -> str:
    """ "3 drafts at 8 requests" """
    setting = "plain" if gamma == 0 else f"{gamma} draft{'s' if gamma > 1 else ''}"
    return setting if batch is None else f"{setting} at {batch} request{'s' if batch > 1 else ''}"


@dataclasses.dataclass(frozen=True)
class Step:
    """A run to make."""

    gamma: int
    batch: int


@dataclasses.dataclass
class Known:
    """All that happened so far."""

    runs: list[Run] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    #: Minutes of each start.
    starts: list[float] = dataclasses.field(default_factory=list)
    #: The gamma that failed last, if no run was made since.
    failing: int | None = None

    def start_minutes(self) -> float:
        return sum(self.starts) / len(self.starts) if self.starts else _usual_start_minutes

    def run_minutes(self, batch: int) -> float:
        """Of the runs at the nearest batch."""
        if not self.runs:
            return _usual_run_minutes
        nearest = min(abs(math.log(run.batch / batch)) for run in self.runs)
        near = [run.minutes for run in self.runs if abs(math.log(run.batch / batch)) == nearest]
        return sum(near) / len(near)

    def is_given_up(self, gamma: int) -> bool:
        """It failed often, a smaller one did, or half of what failed last is to be tried first."""
        failed = [one.gamma for one in self.failures]
        often = {one for one in failed if failed.count(one) >= _failures}
        longest = min([one - 1 for one in often if one > 0], default=gamma)
        if self.failing is not None and self.failing > 0:
            longest = min(longest, max(1, self.failing // 2))
        return gamma in often or gamma > longest

    def minutes(self, step: Step, running: int | None) -> float:
        return self.run_minutes(step.batch) + (0 if step.gamma == running else self.start_minutes())


def next_step(
    known: Known,
    plan: Plan | None,
    batches: Sequence[int],
    *,
    enough: float,
    running: int | None = None,
    pending: Sequence[Step] = (),
    minutes: float = math.inf,
) -> Step | None:
    """The run to make next, None where none is worth it: plain decoding first, then what saves most expected regret a minute.

    Parameters
    ----------
    plan : Plan or None
        Of all runs so far.
    batches : sequence of int
        To plan for.
    enough : float
        Expected regret.
    running : int, optional
        The gamma of the server that is to make it, which needs no start.
    pending : sequence of Step
        Runs that other servers make meanwhile.
    minutes : float
        Time left.
    """
    made = [Step(run.gamma, run.batch) for run in known.runs]
    worth = {Step(0, batch): math.inf for batch in batches if Step(0, batch) not in made}
    if not worth and plan is not None:
        again = _doubted(known, plan)
        regret = plan.bench.expected_regret
        if again is not None:
            worth[again] = math.inf
        elif regret is not None and regret >= enough and not known.is_given_up(1):
            for one in plan.bench.candidates:
                step = Step(one.gamma, min(batches, key=lambda batch: abs(batch - one.batch)))
                saved = regret - one.regret_after
                worth[step] = max(worth.get(step, 0), saved / known.minutes(step, running))
    possible = [
        step
        for step in worth
        if step not in pending and not known.is_given_up(step.gamma) and known.minutes(step, running) <= minutes
    ]
    return max(possible, key=lambda step: worth[step], default=None)


def _doubted(known: Known, plan: Plan) -> Step | None:
    """A run that is far from what the others foretell, or after which nothing can be decided, if it was not repeated."""
    made = [Step(run.gamma, run.batch) for run in known.runs]
    if plan.bench.expected_regret is None:
        again = (made[-1], Step(0, made[-1].batch))
        return next((step for step in again if made.count(step) == 1), None)
    by_file = {run.file: Step(run.gamma, run.batch) for run in known.runs}
    # Other batches alone foretell nothing.
    foretold = {step for step in made if any(one.batch == step.batch and one != step for one in made)}
    for row in plan.to_dict()["runs"]:
        step = by_file[pathlib.Path(row["file"]).name]
        off = row["prediction_error"]
        if off is not None and step in foretold and made.count(step) == 1 and abs(math.log1p(off)) > math.log(_doubtful):
            return step
    return None


def _contradiction(known: Known, plan: Plan) -> tuple[Run, Run, float] | None:
    """The last run and an earlier one of the same setting, if they differ too much, and how many times."""
    seconds = {pathlib.Path(row["file"]).name: row["seconds_per_output_token"] for row in plan.to_dict()["runs"]}
    last = known.runs[-1]
    for other in known.runs[:-1]:
        # Results that are the same to the last digit count once.
        if (last.gamma, last.batch) == (other.gamma, other.batch) and {last.file, other.file} <= seconds.keys():
            times: float = seconds[last.file] / seconds[other.file]
            if abs(math.log(times)) > math.log(_contradictory):
                return last, other, max(times, 1 / times)
    return None


class Kept:
    """The folder of a tuning: `state.jsonl` with an event a line, `runs` with the results that count, `failed` with others,
    and logs.
    """

    def __init__(self, folder: pathlib.Path, begin: Mapping[str, Any] | None) -> None:
        """@param begin  of a new tuning; None goes on with that of the folder"""
        self.folder = folder
        if begin is not None:
            folder.mkdir(parents=True, exist_ok=True)
        path = folder / "state.jsonl"
        try:
            self._file = open(path, "a+b" if begin is not None else "r+b")  # noqa: SIM115
        except FileNotFoundError:
            raise QuestionError(f"folder is {folder}, but must be that of a tuning: it has no state.jsonl", "folder") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise QuestionError(f"folder is {folder}, where another tune is at work", "folder") from None
        for name in ("runs", "failed", "logs", "new"):
            (folder / name).mkdir(exist_ok=True)
        self._file.seek(0)
        text = self._file.read()
        # The last line may have been cut off.
        whole = text[: text.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        self._file.seek(0, os.SEEK_END)
        events = [json.loads(line) for line in whole.splitlines()]
        if begin is not None and events and events[0]["question"] != dict(begin):
            raise QuestionError(f"folder is {folder}, which holds a tuning of another question", "folder")
        self.minutes_before: float = events[-1]["at"] if events else 0.0
        if not events:
            if begin is None:
                raise QuestionError(f"folder is {folder}, whose state.jsonl says nothing", "folder")
            events.append(self.add(0.0, "begin", question=begin))
        self.question: dict[str, Any] = events[0]["question"]
        self.known = Known()
        self.servers = 0
        for event in events:
            self._take(event)
        for file in (folder / "runs").iterdir():
            if file.name not in {run.file for run in self.known.runs}:
                file.unlink()

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "start":
            self.servers += 1
        elif event["event"] == "ready":
            self.known.starts.append(event["minutes"])
        elif event["event"] == "run":
            self.known.runs.append(Run(**event["run"]))
            self.known.failing = None
        elif event["event"] == "failure":
            failure = Failure(**event["failure"])
            self.known.failures.append(failure)
            self.known.runs = [run for run in self.known.runs if run.file != event["drops"]]
            if event["drops"] is None:
                self.known.failing = failure.gamma

    def add(self, at: float, event: str, **more: Any) -> dict[str, Any]:
        """Appends an event, as a whole line that survives a kill."""
        line = {"event": event, "at": round(at, 4), **more}
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        return line

    def close(self) -> None:
        self._file.close()


class _Loop:
    """Servers that measure, and one planner that chooses."""

    def __init__(
        self,
        kept: Kept,
        question: Mapping[str, Any],
        *,
        enough: float,
        budget: float,
        clock: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        self._kept = kept
        self._known = kept.known
        self._batches: list[int] = question["batch"]
        self._question = dict(question)
        self._enough = enough
        self._budget = budget
        self._clock = clock
        self._begun = clock()
        self._tell = tell
        self._changed = threading.Condition()
        self._pending: list[Step] = []
        self._plan = self._planned() if kept.known.runs else None
        self._stopping = False
        self._left_out = False
        self._number = 0

    def minutes(self) -> float:
        return self._kept.minutes_before + (self._clock() - self._begun) / 60

    def _planned(self, left_out: str | None = None, also: Iterable[str] = (), **more: Any) -> Plan:
        files = [run.file for run in self._known.runs if run.file != left_out] + list(also)
        return plan_runs([self._kept.folder / "runs" / file for file in files], **{**self._question, **more})

    def _add(self, event: str, **more: Any) -> None:
        self._kept._take(self._kept.add(self.minutes(), event, **more))

    def _next(self, running: int | None) -> Step | None:
        """Waits while others may find out what is worth a run."""
        with self._changed:
            while not self._stopping:
                left = self._budget - self.minutes()
                step = next_step(
                    self._known, self._plan, self._batches, enough=self._enough, running=running, pending=self._pending,
                    minutes=left,
                )
                if step is not None:
                    self._pending.append(step)
                    return step
                if not self._pending:
                    self._left_out = next_step(self._known, self._plan, self._batches, enough=self._enough) is not None
                    return None
                self._changed.wait(1)
            return None

    def work(self, server: Server) -> None:
        """All runs of one server."""
        running: int | None = None
        name = ""
        try:
            while (step := self._next(running)) is not None:
                begun = self._clock()
                batch: int | None = None
                try:
                    if step.gamma != running:
                        running = None
                        server.stop()
                        with self._changed:
                            name = f"s{self._kept.servers + 1}"
                            self._add("start", server=name, gamma=step.gamma)
                        self._tell(f"starting {named(step.gamma)} ({name})")
                        server.start(step.gamma)
                        running = step.gamma
                        with self._changed:
                            self._add("ready", server=name, minutes=(self._clock() - begun) / 60)
                        begun = self._clock()
                    batch = step.batch
                    self._tell(f"measuring {named(step.gamma, batch)}")
                    result = server.measure(batch)
                    with self._changed:
                        self._take(step, name, result, (self._clock() - begun) / 60)
                except Exception as error:
                    running = None
                    if not self._stopping:
                        with self._changed:
                            why = str(error).strip() or type(error).__name__
                            self._fail(Failure(step.gamma, batch, name, (self._clock() - begun) / 60, why))
                finally:
                    with self._changed:
                        self._pending.remove(step)
                        self._changed.notify_all()
        finally:
            server.stop()

    def _fail(self, failure: Failure, drops: str | None = None) -> None:
        self._tell(f"failed, {named(failure.gamma, failure.batch)}: {failure.why}")
        self._add("failure", failure=dataclasses.asdict(failure), drops=drops)

    def _take(self, step: Step, name: str, result: Result, minutes: float) -> None:
        """Reads a result, holds it against the setting, and plans again."""
        numbers = [int(file.name[:3]) for kind in ("runs", "failed") for file in (self._kept.folder / kind).iterdir()]
        stem = f"{max(numbers, default=0) + 1:03}-{name}-gamma{step.gamma}-batch{step.batch}"
        written = _written(result, self._kept.folder / "new", stem, step, name)
        file = written.rename(self._kept.folder / "runs" / written.name)
        try:
            plan = self._planned(also=[file.name])
            _require_setting(plan, file.name, step)
        except Exception:
            file.rename(self._kept.folder / "failed" / file.name)
            raise
        self._plan = plan
        regret, text = plan.bench.expected_regret, plan.decision.text
        self._add("run", run=dataclasses.asdict(Run(step.gamma, step.batch, name, minutes, file.name, regret, text[0])))
        if (found := _contradiction(self._known, plan)) is not None:
            self._drop(*found)
            regret, text = self._plan.bench.expected_regret, self._plan.decision.text
        known = "" if regret is None else f" Expected regret {regret:.1%}."
        self._tell(f"{' '.join(line for line in text if line)}{known}")

    def _drop(self, last: Run, other: Run, times: float) -> None:
        """Of two runs that contradict each other the one without which the others are foretold better."""

        def without(run: Run) -> tuple[bool, float, Plan]:
            plan = self._planned(left_out=run.file)
            error = plan.bench.leave_one_out_error
            return plan.bench.expected_regret is None, math.inf if error is None else error, plan

        found = {run.file: without(run) for run in (last, other)}
        run = min((last, other), key=lambda one: found[one.file][:2])
        (self._kept.folder / "runs" / run.file).rename(self._kept.folder / "failed" / run.file)
        why = f"contradicts its repetition, which took {times:.2g} times as long or as short, and the other runs"
        self._fail(Failure(run.gamma, run.batch, run.server, run.minutes, why), drops=run.file)
        self._plan = found[run.file][2]

    def run(self, servers: Sequence[Server], emit: EngineName | None) -> Tuning:
        """Until it is enough."""
        interrupted = False
        try:
            if len(servers) == 1:
                self.work(servers[0])
            else:
                self._work_together(servers)
        except KeyboardInterrupt:
            interrupted = True
        regret = None if self._plan is None else self._plan.bench.expected_regret
        reason: Reason = (
            "interrupted" if interrupted
            else "enough" if regret is not None and regret < self._enough
            else "budget" if self._left_out
            else "nothing left"
        )
        self._kept.add(self.minutes(), "end", reason=reason)
        plan = self._plan
        if plan is not None and emit is not None:
            try:
                plan = self._planned(emit=emit)
            except QuestionError as error:
                self._tell(f"no configuration: {error}")
        return Tuning(plan, list(self._known.runs), list(self._known.failures), reason, self.minutes())

    def _work_together(self, servers: Sequence[Server]) -> None:
        errors: list[BaseException] = []

        def work(server: Server) -> None:
            try:
                self.work(server)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(server,), daemon=True) for server in servers]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.1) if threads[0].is_alive() else time.sleep(0.1)
        except KeyboardInterrupt:
            self._stopping = True
            for server in servers:
                server.stop()
            for thread in threads:
                thread.join()
            raise
        if errors:
            raise errors[0]


def _written(result: Result, folder: pathlib.Path, stem: str, step: Step, server: str) -> pathlib.Path:
    """The result as a file of the folder, which says the server's start, and gamma where the format has a place for it."""
    if isinstance(result, Mapping):
        file = folder / f"{stem}.csv"
        row = {"concurrency": step.batch, "gamma": step.gamma, "server": server, **result}
        with file.open("w", newline="", encoding="utf-8") as written:
            writer = csv.DictWriter(written, row)
            writer.writeheader()
            writer.writerow(row)
        return file
    source = pathlib.Path(os.fspath(result))
    file = folder / f"{stem}{source.suffix or '.json'}"
    try:
        document = json.loads(source.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"the client wrote no {source.name}") from None
    except ValueError:
        document = None
    if isinstance(document, dict) and "completed" in document:
        # Of vLLM's and SGLang's benchmarks; SGLang's results say gamma by the server's arguments.
        document["server"] = server
        if "accept_length" in document:
            document.setdefault("speculative_num_steps", step.gamma)
            document.setdefault("speculative_eagle_topk", 1)
            document.setdefault("speculative_num_draft_tokens", step.gamma + 1)
        file.write_text(json.dumps(document), encoding="utf-8")
    elif source != file:
        shutil.copyfile(source, file)
    return file


def _require_setting(plan: Plan, file: str, step: Step) -> None:
    """@throws ValueError for a result that is more than one run, or of another setting"""
    # A result that is the same as another to the last digit is no row of the plan.
    found = [row["gamma"] for row in plan.to_dict()["runs"] if pathlib.Path(row["file"]).name == file] or [step.gamma]
    if len(found) > 1:
        raise ValueError(f"the result holds {len(found)} runs, but must hold one")
    if found == [step.gamma]:
        return
    if step.gamma > 0 and found == [0]:
        raise ValueError("the result counts no drafts: the server did not take the setting, or its client does not say it")
    raise ValueError(f"the result is of {named(found[0])}, but the server was started with {named(step.gamma)}")


def tune(
    server: Server | Sequence[Server],
    *,
    batch: int | Sequence[int],
    folder: Path | None = None,
    budget: float | None = None,
    enough: float = 0.0075,
    draft_kind: DraftKind | None = None,
    draft_model: str | None = None,
    max_gamma: int | None = None,
    min_gain: float | None = None,
    emit: EngineName | None = None,
    tell: Callable[[str], None] | None = None,
) -> Tuning:
    """Finds the number of tokens to draft on a server, by the runs that are worth their time: `specdec tune`.

    Parameters
    ----------
    server : Server or sequence of Server
        Any object with ``start(gamma)``, ``measure(batch)`` and ``stop()``. Several measure different settings at once, each
        in a thread.
    batch : int or sequence of int
        Requests at a time to plan for.
    folder : path, optional
        Keeps results and state; a folder that holds the same question goes on. Nothing is kept where it is not given.
    budget : float, optional
        Minutes.
    enough : float
        Ends below this expected regret.
    draft_kind, draft_model, max_gamma, min_gain
        As :func:`plan_runs`.
    emit : {"vllm", "sglang", "trtllm", "llamacpp"}, optional
        A configuration for this engine: ``plan.config_text`` of the answer.
    tell : callable, optional
        Called with a line whenever something is begun or known.

    Returns
    -------
    Tuning

    Raises
    ------
    QuestionError
    """
    question = given_only(
        {
            "batch": sorted({int(one) for one in ([batch] if isinstance(batch, int) else batch)}),
            "draft_kind": draft_kind,
            "draft_model": draft_model,
            "max_gamma": max_gamma,
            "min_gain": min_gain,
        }
    )
    if not question["batch"] or question["batch"][0] < 1:
        raise QuestionError("batch must be one or more numbers of requests, each at least 1", "batch")
    servers = list(server) if isinstance(server, Sequence) else [server]
    with _folder(folder) as kept_in:
        kept = Kept(kept_in, question)
        return run_loop(kept, question, servers, enough=enough, budget=budget, emit=emit, tell=tell)


def run_loop(
    kept: Kept,
    question: Mapping[str, Any],
    servers: Sequence[Server],
    *,
    enough: float,
    budget: float | None,
    emit: EngineName | None = None,
    tell: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Tuning:
    """With a clock in seconds; closes the folder."""
    try:
        limit = math.inf if budget is None else budget
        said = tell if tell is not None else lambda line: None
        return _Loop(kept, question, enough=enough, budget=limit, clock=clock, tell=said).run(servers, emit)
    finally:
        kept.close()


@contextlib.contextmanager
def _folder(given: Path | None) -> Iterator[pathlib.Path]:
    if given is not None:
        yield pathlib.Path(given)
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield pathlib.Path(scratch)
