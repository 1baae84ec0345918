"""`specdec.tune` finds the best setting, whatever its engines do, and leaves nothing running."""

from __future__ import annotations

import json
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
import specdec
from fake_engine import regret, seconds_per_token, tokens
from specdec._commands import Commands, CommandServer, commands_of, drafting_options, end_leftovers
from specdec._tune import Failure, Known, Step, next_step

if not sys.platform.startswith("linux"):
    pytest.skip("needs Linux", allow_module_level=True)

FAKE = pathlib.Path(__file__).with_name("fake_engine.py")
QUICK: Mapping[str, Any] = {"draft_kind": "eagle", "max_gamma": 8, "enough": 0.02}


class Simulated:
    """A server that takes no time."""

    def __init__(self, seed: int = 0, noise: float = 0.01) -> None:
        self.random = random.Random(seed)
        self.noise = noise
        self.gamma: int | None = None
        self.starts: list[int] = []
        self.measured: list[tuple[int, int]] = []
        self.stops = 0

    def start(self, gamma: int) -> None:
        assert self.gamma is None
        self.starts.append(gamma)
        self.gamma = gamma

    def factor(self, gamma: int, batch: int) -> float:
        return 1.0

    def measure(self, batch: int) -> dict[str, Any]:
        assert self.gamma is not None
        self.measured.append((self.gamma, batch))
        seconds = seconds_per_token(self.gamma, batch) * self.factor(self.gamma, batch)
        seconds *= self.random.lognormvariate(0, self.noise)
        row: dict[str, Any] = {"ms_per_token": 1e3 * seconds, "output_tokens_per_second": batch / seconds}
        return row | ({"tokens_per_step": tokens(self.gamma), "rounds": 1000 * batch} if self.gamma else {})

    def stop(self) -> None:
        self.stops += 1
        self.gamma = None


def is_best(answer: specdec.Tuning) -> bool:
    assert answer.plan is not None
    return all(regret(point.gamma) < 0.03 for point in answer.plan.points)


def test_the_best_gamma_is_found_in_a_fraction_of_a_grid() -> None:
    server = Simulated()
    answer = specdec.tune(server, batch=[1, 8], **QUICK)
    assert answer.reason == "enough"
    assert is_best(answer)
    assert answer.regret is not None and answer.regret < 0.02
    assert len(server.starts) <= 5
    assert server.measured[0][0] == 0
    assert server.gamma is None
    assert "expected regret" in str(answer)


def test_a_gamma_that_never_starts_is_planned_around() -> None:
    class Fails(Simulated):
        def start(self, gamma: int) -> None:
            if gamma > 2:
                raise MemoryError(f"no room for {gamma} drafts")
            super().start(gamma)

    answer = specdec.tune(Fails(), batch=1, **QUICK)
    failed = [one.gamma for one in answer.failures]
    assert failed and all(failed.count(gamma) <= 2 for gamma in failed)
    assert all("no room" in one.why for one in answer.failures)
    assert {run.gamma for run in answer.runs} <= {0, 1, 2}


def test_a_run_that_contradicts_the_others_is_repeated_and_left_out(tmp_path: pathlib.Path) -> None:
    class Lies(Simulated):
        lied = False

        def factor(self, gamma: int, batch: int) -> float:
            lies = gamma > 0 and len(self.measured) > 3 and not self.lied
            self.lied = self.lied or lies
            return 0.3 if lies else 1.0

    server = Lies()
    answer = specdec.tune(server, batch=[1, 4, 8], folder=tmp_path, **{**QUICK, "enough": 0.001})
    assert server.lied
    assert is_best(answer)
    assert ["contradicts its repetition" in one.why for one in answer.failures] == [True]
    assert len(list((tmp_path / "failed").iterdir())) == 1


def test_a_server_that_ignores_its_setting_is_found_out() -> None:
    class Ignores(Simulated):
        def measure(self, batch: int) -> dict[str, Any]:
            gamma, self.gamma = self.gamma, 0
            try:
                return {**super().measure(batch), "gamma": 0}
            finally:
                self.gamma = gamma

    answer = specdec.tune(Ignores(), batch=1, **QUICK)
    assert answer.failures and all("counts no drafts" in one.why for one in answer.failures)
    assert answer.reason == "nothing left"
    assert [run.gamma for run in answer.runs] == [0]


def test_several_servers_measure_different_settings_at_once() -> None:
    meet = threading.Barrier(2, timeout=20)
    met: list[int] = []

    class Meets(Simulated):
        def measure(self, batch: int) -> dict[str, Any]:
            if not met:
                met.append(meet.wait())
            return super().measure(batch)

    servers = [Meets(seed) for seed in range(2)]
    answer = specdec.tune(servers, batch=[1, 8], **QUICK)
    assert is_best(answer)
    assert met and all(server.measured and server.gamma is None for server in servers)
    assert len({run.server for run in answer.runs}) > 1


def test_the_budget_ends_it_and_the_folder_goes_on(tmp_path: pathlib.Path) -> None:
    first = specdec.tune(Simulated(), batch=[1, 8], folder=tmp_path, budget=1e-9, **QUICK)
    assert first.reason == "budget" and not first.runs
    server = Simulated(noise=0.03)

    def stop_soon(batch: int, measure: Any = server.measure) -> Any:
        if len(server.measured) == 3:
            raise KeyboardInterrupt
        return measure(batch)

    server.measure = stop_soon  # type: ignore[method-assign]
    second = specdec.tune(server, batch=[1, 8], folder=tmp_path, **{**QUICK, "enough": 0.001})
    assert second.reason == "interrupted" and len(second.runs) == 3 and server.gamma is None
    with (tmp_path / "state.jsonl").open("a") as file:
        file.write('{"event": "run", "at": 1, "ru')
    (tmp_path / "runs" / "099-half.json").write_text("{")
    third = specdec.tune(Simulated(), batch=[1, 8], folder=tmp_path, **QUICK)
    assert third.reason == "enough" and third.runs[:3] == second.runs
    assert is_best(third)
    assert {file.name for file in (tmp_path / "runs").iterdir()} == {run.file for run in third.runs}
    again = specdec.plan_runs(sorted((tmp_path / "runs").iterdir()), draft_kind="eagle", batch=4)
    assert regret(again.points[0].gamma) < 0.03
    with pytest.raises(specdec.QuestionError, match="another question"):
        specdec.tune(Simulated(), batch=[2], folder=tmp_path, **QUICK)


def test_a_folder_has_one_tune_at_a_time(tmp_path: pathlib.Path) -> None:
    class Asks(Simulated):
        def measure(self, batch: int) -> dict[str, Any]:
            with pytest.raises(specdec.QuestionError, match="at work"):
                specdec.tune(Simulated(), batch=1, folder=tmp_path, **QUICK)
            return super().measure(batch)

    specdec.tune(Asks(), batch=1, folder=tmp_path, **QUICK)


def test_plain_decoding_comes_first_and_nothing_exceeds_the_time_left() -> None:
    assert next_step(Known(), None, [1, 8, 32], enough=0.01) == Step(0, 1)
    assert next_step(Known(), None, [1, 8, 32], enough=0.01, minutes=2) is None
    given_up = Known(failures=[Failure(0, None, "s1", 0.1, "no")] * 2)
    assert next_step(given_up, None, [1], enough=0.01) is None


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp"])
def test_engines_are_started_with_what_plan_writes(engine: Any, tmp_path: pathlib.Path) -> None:
    draft = "draft.gguf" if engine == "llamacpp" else "org/draft"
    kind = "model" if engine == "llamacpp" else "eagle"
    commands = commands_of(engine, "org/target", kind=kind, draft_model=draft, prompts="my prompts.jsonl")  # type: ignore[arg-type]
    words = commands.server_words(5)
    text = drafting_options(engine, kind, draft, 5)  # type: ignore[arg-type]
    if engine == "vllm":
        assert json.loads(words[words.index("--speculative-config") + 1]) == json.loads(text)
    else:
        assert words[-len(text.split()) :] == text.split()
    assert not any("spec" in word for word in commands.server_words(0))
    client = commands.client_words(5, 8, tmp_path / "r.json")
    assert "my prompts.jsonl" in client and "64" in client and not any("{" in word for word in client)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def fake_words(port: int, fault: str) -> dict[str, str]:
    python, fake = shlex.quote(sys.executable), shlex.quote(str(FAKE))
    return {
        "server": f"{python} {fake} serve {port} {fault} {{spec}}",
        "spec": "--drafts {gamma}",
        "client": f"{python} {fake} bench {port} {{batch}} {{result}}",
        "ready": f"http://127.0.0.1:{port}/health",
    }


def left_running(folder: pathlib.Path) -> list[int]:
    """Processes that carry the folder's mark."""
    begins = f"SPECDEC_TUNE={folder.resolve()}#".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if any(one.startswith(begins) for one in (entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def tuned(folder: pathlib.Path, fault: str, **limits: float) -> specdec.Tuning:
    limits = {"start_limit": 20, "run_limit": 20, "stop_limit": 0.3, **limits}
    commands = Commands(**fake_words(free_port(), fault), **limits)  # type: ignore[arg-type]
    server = CommandServer(commands, folder)
    answer = specdec.tune(server, batch=1, folder=folder, **{**QUICK, "max_gamma": 6})
    assert left_running(folder) == []
    return answer


def test_a_server_is_tuned_by_its_commands(tmp_path: pathlib.Path) -> None:
    answer = tuned(tmp_path, "none")
    assert answer.reason == "enough" and is_best(answer) and not answer.failures
    assert {json.loads((tmp_path / "runs" / run.file).read_text())["server"] for run in answer.runs} == {
        run.server for run in answer.runs
    }


@pytest.mark.parametrize(
    ("fault", "limits", "why"),
    [
        ("crashes", {}, "the server ended with status 1; out of memory"),
        ("hangs", {"start_limit": 0.6}, "the server did not answer in 0.6 s"),
        ("dies", {}, "the server ended with status 3"),
        ("stalls", {"run_limit": 0.6}, "the client did not end in 0.6 s"),
        ("garbage", {}, "content is in no known format"),
        ("silent", {}, "the client wrote no"),
        ("ignores", {}, "counts no drafts"),
    ],
)
def test_a_fault_is_reported_and_ends_well(tmp_path: pathlib.Path, fault: str, limits: dict[str, float], why: str) -> None:
    answer = tuned(tmp_path, fault, **limits)
    assert answer.failures and {run.gamma for run in answer.runs} == {0}
    assert {why in one.why for one in answer.failures} == {True}, [one.why for one in answer.failures]
    assert answer.plan is not None


@pytest.mark.parametrize("fault", ["children", "stubborn"])
def test_what_does_not_want_to_end_is_ended(tmp_path: pathlib.Path, fault: str) -> None:
    assert is_best(tuned(tmp_path, fault))


def test_a_port_that_answers_already_is_refused(tmp_path: pathlib.Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        commands = Commands(**fake_words(other.getsockname()[1], "none"))
        answer = specdec.tune(CommandServer(commands, tmp_path), batch=1, folder=tmp_path, **QUICK)
    assert answer.plan is None and answer.reason == "nothing left"
    assert all("answers before the server is started" in one.why for one in answer.failures)


def command(folder: pathlib.Path, fault: str, *more: str) -> list[str]:
    words = fake_words(free_port(), fault)
    options = [word for name, value in words.items() for word in (f"--{name}", value)]
    rest = ["--batch", "1,4", "--draft-kind", "eagle", "--max-gamma", "6", "--enough", "2%", "--folder", str(folder)]
    return [sys.executable, "-m", "specdec", "tune", *options, *rest, *more]


def ends(folder: pathlib.Path, seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while left_running(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_a_kill_at_any_moment_leaves_no_server_and_the_folder_goes_on(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    words = command(folder, "none")
    for moment in range(10):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        state = folder / "state.jsonl"
        while not state.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.05 + 0.13 * moment)
        process.kill()
        process.wait()
        assert ends(folder)
        words = [sys.executable, "-m", "specdec", "tune", "--continue", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Draft ")
    assert "--bench" in done.stdout
    assert left_running(folder) == []


def test_an_interrupt_ends_the_server_and_says_what_is_known(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    process = subprocess.Popen(command(folder, "stalls"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while '"run"' not in ((folder / "state.jsonl").read_text() if (folder / "state.jsonl").exists() else ""):
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out
    assert left_running(folder) == []


def test_what_survives_when_tune_and_supervisors_are_killed_together_is_ended_by_continue(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "kept"
    process = subprocess.Popen(command(folder, "children"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = folder / "logs"
    while not (log.exists() and any(file.stat().st_size for file in log.glob("*-server.log"))):
        time.sleep(0.05)
    supervisors = [
        pid for pid in left_running(folder) if "_supervisor.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    ]
    assert supervisors
    for pid in [process.pid, *supervisors]:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    # The server ended with its supervisor, the two that it started and that left its session did not.
    survived = left_running(folder)
    assert len(survived) == 2
    assert sorted(end_leftovers(folder)) == sorted(survived)
    assert ends(folder)


def test_a_dry_run_shows_the_commands_and_starts_nothing(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(command(tmp_path / "kept", "none", "--dry-run"), capture_output=True, text=True)
    assert done.returncode == 0 and not (tmp_path / "kept").exists()
    assert "--drafts 4" in done.stdout and "bench" in done.stdout
