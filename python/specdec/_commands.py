"""A server and its benchmark as two commands, each below a supervisor that leaves nothing of it running."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from specdec._acceptance import Acceptance
from specdec._cost import Cost, DraftKind
from specdec._errors import QuestionError
from specdec._questions import Engine as EngineName
from specdec._questions import plan

_supervisor = pathlib.Path(__file__).with_name("_supervisor.py")
#: In the environment of all that a tuning starts, and of all that they start.
_mark = "SPECDEC_TUNE"
_poll_seconds = 0.2
#: A gamma by which its place in an engine's options is found.
_stand_in = 199


class CommandError(Exception):
    """A command that failed, hung, or could not be started."""


@dataclasses.dataclass(frozen=True)
class Commands:
    """The two command lines, and how to tell that the server answers.

    ``{spec}`` of the server stands for ``spec``: as one argument after an option, which goes with it in plain runs, else as
    words. ``{gamma}`` and ``{gamma+1}`` stand in ``spec``; ``{gamma}``, ``{batch}``, ``{requests}`` and ``{result}``, a file to
    write, in ``client``.
    """

    server: str
    spec: str
    client: str
    #: A URL that answers 200, or none.
    ready: str | None = None
    #: A regular expression of the server's log, or none.
    ready_log: str | None = None
    start_limit: float = 900.0
    run_limit: float = 3600.0
    #: Seconds after which what was asked to end is killed.
    stop_limit: float = 10.0
    requests_each: int = 8

    def __post_init__(self) -> None:
        if self.ready is None and self.ready_log is None:
            raise QuestionError("ready is missing: a URL that answers when the server does, or ready_log", "ready")
        if "{spec}" not in self.server:
            raise QuestionError("server must hold {spec}, where the options of speculation stand", "server")
        if "{gamma" not in self.spec:
            raise QuestionError("spec must hold {gamma} or {gamma+1}", "spec")
        if "{batch}" not in self.client or "{result" not in self.client:
            raise QuestionError("client must hold {batch} and {result}", "client")

    def server_words(self, gamma: int) -> list[str]:
        spec = self.spec.replace("{gamma}", str(gamma)).replace("{gamma+1}", str(gamma + 1))
        words: list[str] = []
        for word in shlex.split(self.server):
            if word != "{spec}":
                words.append(word)
            elif words and words[-1].startswith("-"):
                words = [*words, spec] if gamma > 0 else words[:-1]
            elif gamma > 0:
                words += shlex.split(spec)
        return words

    def client_words(self, gamma: int, batch: int, result: pathlib.Path) -> list[str]:
        put = {"gamma": str(gamma), "batch": str(batch), "requests": str(self.requests_each * batch), "result": str(result)}
        put |= {"result_folder": str(result.parent), "result_name": result.name}
        return [re.sub(r"\{(\w+)\}", lambda found: put.get(found[1], found[0]), word) for word in shlex.split(self.client)]


def drafting_options(engine: EngineName, kind: DraftKind, draft_model: str | None, gamma: int) -> str:
    """What ``engine`` is started with for so many drafts, as `plan --emit` writes it."""
    if kind in ("ngram", "suffix"):
        cost = Cost.of_constants(draft_kind=kind, hit_rate=1, mean_draft_length=gamma)
    else:
        cost = Cost.of_constants(1e-9, draft_kind=kind, draft_model=draft_model)
    text = plan(Acceptance.of_rate(1 - 1e-9), cost, max_gamma=gamma, emit=engine).config_text
    if text is None:
        needs = "the draft's GGUF file" if engine == "llamacpp" else "the draft's name"
        raise QuestionError(f"draft_model is {draft_model}, but must be {needs}", "draft_model")
    return text


def commands_of(
    engine: EngineName,
    model: str,
    *,
    kind: DraftKind,
    draft_model: str | None = None,
    prompts: str | None = None,
    port: int = 8000,
    server_options: str = "",
    client_options: str = "",
    start_limit: float = 900.0,
    run_limit: float = 3600.0,
) -> Commands:
    """The commands for vLLM, SGLang or llama.cpp."""
    if engine == "trtllm":
        raise QuestionError("engine is trtllm, but must be vllm, sglang or llamacpp; others by their commands", "engine")
    if prompts is None:
        raise QuestionError(
            "prompts is missing: a file of your prompts, since random ones do not tell what is accepted", "prompts"
        )
    text = drafting_options(engine, kind, draft_model, _stand_in)
    spec = " ".join(text.split()) if engine != "vllm" else " ".join(line.strip() for line in text.splitlines())
    spec = spec.replace(str(_stand_in + 1), "{gamma+1}").replace(str(_stand_in), "{gamma}")
    url = f"http://127.0.0.1:{port}"
    name, file = shlex.quote(model), shlex.quote(prompts)
    server = {
        "vllm": f"vllm serve {name} --port {port} --speculative-config {{spec}}",
        "sglang": f"{shlex.quote(sys.executable)} -m sglang.launch_server --model-path {name} --port {port} {{spec}}",
        "llamacpp": f"llama-server --model {name} --port {port} {{spec}}",
    }[engine]
    client = {
        "vllm": f"vllm bench serve --model {name} --base-url {url} --dataset-name custom --dataset-path {file} "
        "--num-prompts {requests} --max-concurrency {batch} --save-result --result-dir {result_folder} "
        "--result-filename {result_name}",
        "sglang": f"{shlex.quote(sys.executable)} -m sglang.bench_serving --model {name} --base-url {url} "
        f"--dataset-name custom --dataset-path {file} --num-prompts {{requests}} --max-concurrency {{batch}} "
        "--output-file {result}",
        "llamacpp": f"{shlex.quote(sys.executable)} -m specdec._llamacpp_client --url {url} --prompts {file} "
        "--concurrency {batch} --requests {requests} --gamma {gamma} --output {result}",
    }[engine]
    return Commands(
        f"{server} {server_options}".strip(),
        spec,
        f"{client} {client_options}".strip(),
        ready=f"{url}/health",
        start_limit=start_limit,
        run_limit=run_limit,
    )


class Supervised:
    """A command below a supervisor."""

    def __init__(self, words: list[str], log: pathlib.Path, stop_limit: float, mark: str) -> None:
        self.log = log
        self._status: int | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.fspath(_supervisor), os.fspath(log), str(stop_limit), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, _mark: mark},
        )

    def status(self) -> int | None:
        """The command's exit status, once nothing of it is left; None while something is."""
        if self._status is None and self._process.poll() is not None:
            assert self._process.stdout is not None
            lines = self._process.stdout.read().split()
            # A supervisor that was killed said no status.
            self._status = int(lines[1]) if len(lines) > 1 else 128 + signal.SIGKILL
        return self._status

    def text(self) -> str:
        """What it wrote."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def last_line(self) -> str:
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        return f"; {lines[-1][:200]} ({self.log})" if lines else f" ({self.log})"

    def stop(self) -> None:
        """Ends the command and all that it has started, and waits for that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError, ValueError):
        return False


def _require_free(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "https" else 80))
    try:
        socket.create_connection(address, timeout=2).close()
    except OSError:
        return
    raise CommandError(f"{address[0]}:{address[1]} answers before the server is started: another one is there")


class CommandServer:
    """A server for :func:`specdec.tune` that is started and measured by two commands."""

    def __init__(self, commands: Commands, folder: pathlib.Path) -> None:
        self.commands = commands
        self._folder = folder
        self._mark = f"{folder.resolve()}#{uuid.uuid4().hex}"
        self._server: Supervised | None = None
        self._client: Supervised | None = None
        self._gamma = 0
        self._starts = 0

    def start(self, gamma: int, /) -> None:
        if self.commands.ready is not None:
            _require_free(self.commands.ready)
        self._starts += 1
        self._gamma = gamma
        log = self._folder / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{self._starts}-gamma{gamma}-server.log"
        words = self.commands.server_words(gamma)
        self._server = server = Supervised(words, log, self.commands.stop_limit, self._mark)
        ends = time.monotonic() + self.commands.start_limit
        while not self._is_ready(server):
            if server.status() is not None:
                raise CommandError(f"the server ended with status {server.status()}{server.last_line()}")
            if time.monotonic() > ends:
                raise CommandError(f"the server did not answer in {self.commands.start_limit:g} s{server.last_line()}")
            time.sleep(_poll_seconds)

    def _is_ready(self, server: Supervised) -> bool:
        if self.commands.ready_log is not None and not re.search(self.commands.ready_log, server.text()):
            return False
        if self.commands.ready is not None and not _answers(self.commands.ready):
            return False
        return server.status() is None

    def measure(self, batch: int, /) -> pathlib.Path:
        assert self._server is not None
        result = self._folder / "new" / f"result-{os.getpid()}.json"
        result.unlink(missing_ok=True)
        log = self._server.log.with_name(self._server.log.name.replace("-server.log", f"-batch{batch}-client.log"))
        words = self.commands.client_words(self._gamma, batch, result)
        self._client = client = Supervised(words, log, self.commands.stop_limit, self._mark)
        try:
            ends = time.monotonic() + self.commands.run_limit
            while client.status() is None and self._server.status() is None and time.monotonic() < ends:
                time.sleep(_poll_seconds)
            if client.status() == 0:
                return result
            # The client may be faster to end than its server is.
            time.sleep(_poll_seconds)
            if self._server.status() is not None:
                raise CommandError(f"the server ended with status {self._server.status()}{self._server.last_line()}")
            if client.status() is None:
                raise CommandError(f"the client did not end in {self.commands.run_limit:g} s{client.last_line()}")
            raise CommandError(f"the client ended with status {client.status()}{client.last_line()}")
        finally:
            client.stop()

    def stop(self) -> None:
        for process in (self._client, self._server):
            if process is not None:
                process.stop()
        self._server = None


def end_leftovers(folder: pathlib.Path) -> list[int]:
    """Kills what a tuning of this folder has left where it was killed together with its supervisors: processes that carry
    its mark in their environment. A handle is taken before the mark is read, so that no other process is meant."""
    begins = f"{_mark}={folder.resolve()}#".encode()
    ended: list[int] = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            handle = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            if any(one.startswith(begins) for one in (entry / "environ").read_bytes().split(b"\0")):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                ended.append(int(entry.name))
        except OSError:
            pass
        finally:
            os.close(handle)
    return ended
