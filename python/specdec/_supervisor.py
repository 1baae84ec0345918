"""Runs one command in a session of its own, and leaves nothing of it when it ends. A program, which imports nothing of the package.

usage: python _supervisor.py LOG SECONDS COMMAND [ARGUMENT...]

Standard output and error of the command go to LOG. Standard input is a pipe of whoever started this: when it ends, or says
anything, the command's group is asked to end (TERM), and killed SECONDS later. Descendants that outlive their parents
become children of this process, which ends when it has none left. It prints the command's process number, and at the end
its exit status, as a shell has it.

If this process is killed, the kernel kills the command, but not what that has started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import select
import signal
import sys
import time

_tick_seconds = 0.05
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _run(log: str, command: list[str]) -> None:
    """The forked child: never returns."""
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setpgid(0, 0)
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(written, 1)
        os.dup2(written, 2)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except BaseException as error:
        os.write(2, f"{command[0]}: {error}\n".encode())
    os._exit(127)


def _children() -> list[int]:
    """Those of this process, adopted ones too; only it can reap them, so that no number is used again meanwhile."""
    return [int(word) for word in pathlib.Path("/proc/thread-self/children").read_text().split()]


def main() -> None:
    log, grace, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda number, frame: asked.append(number))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        _run(log, command)
    with contextlib.suppress(OSError):  # The child may have done so, and be another program by now.
        os.setpgid(child, child)
    os.write(1, f"{child}\n".encode())
    status: int | None = None
    killed_at: float | None = None
    while True:
        while True:
            try:
                reaped, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                os.write(1, f"{0 if status is None else status}\n".encode())
                return
            if reaped == 0:
                break
            if reaped == child:
                code = os.waitstatus_to_exitcode(how)
                status = code if code >= 0 else 128 - code
        if killed_at is None and (asked or status is not None or select.select([0], [], [], _tick_seconds)[0]):
            killed_at = time.monotonic() + grace
            _signal_all(child, status, signal.SIGTERM)
        elif killed_at is not None:
            time.sleep(_tick_seconds)
            if time.monotonic() >= killed_at:
                _signal_all(child, status, signal.SIGKILL)


def _signal_all(child: int, status: int | None, number: signal.Signals) -> None:
    if status is None:
        os.killpg(child, number)
    for one in _children():
        if one != child:
            os.kill(one, number)


if __name__ == "__main__":
    main()
