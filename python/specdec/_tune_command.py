"""`specdec tune`: the command line of :func:`specdec.tune`."""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shlex
import signal
import sys
import time
from typing import Any

from specdec._commands import Commands, CommandServer, commands_of, end_leftovers
from specdec._errors import FileError, QuestionError
from specdec._options import given_only
from specdec._tune import Kept, named, run_loop

_description = """Finds the number of tokens to draft on your server: starts it, runs your benchmark, and asks `plan` which run is
worth its time next, until it is known well enough. Nothing of it is left running, however it ends."""

_epilog = """{spec} in --server stands for --spec: as one argument after an option, which goes with it for plain runs, else as
words. --client is given {gamma}, {batch}, {requests}, {result} (a file to write), {result_folder} and {result_name}."""


def _minutes(text: str) -> float:
    found = re.fullmatch(r"([0-9.]+)(s|m|h)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"is {text!r}, but must be a time such as 90s, 30m or 2h")
    return float(found[1]) * {"s": 1 / 60, "m": 1.0, "h": 60.0}[found[2]]


def _share(text: str) -> float:
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"is {text!r}, but must be a share such as 0.005 or 0.5%")
    return value


def _batches(text: str) -> list[int]:
    try:
        batches = sorted({int(word) for word in text.split(",")})
    except ValueError:
        batches = [0]
    if batches[0] < 1:
        raise argparse.ArgumentTypeError(f"is {text!r}, but must be numbers of requests, for instance 1,8,32")
    return batches


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("specdec tune", description=_description, epilog=_epilog, allow_abbrev=False)
    commands = parser.add_argument_group("the server and its benchmark (--engine, or --server, --spec and --client)")
    commands.add_argument("--engine", choices=("vllm", "sglang", "llamacpp"), help="writes both commands")
    commands.add_argument("--model", metavar="M", help="of --engine: the target")
    commands.add_argument("--draft-model", metavar="D", help="of --engine: the draft")
    commands.add_argument("--prompts", metavar="FILE", help='of --engine: JSON lines {"prompt": ...} of your traffic')
    commands.add_argument("--port", metavar="N", type=int, default=8000, help="of --engine [8000]")
    commands.add_argument("--server-options", metavar="TEXT", default="", help="of --engine: more options of the server")
    commands.add_argument("--client-options", metavar="TEXT", default="", help="of --engine: more options of the benchmark")
    commands.add_argument("--server", metavar="COMMAND", help="starts the server, with {spec}; it must not go to the background")
    commands.add_argument("--spec", metavar="TEXT", help="what {spec} stands for, with {gamma} or {gamma+1}")
    commands.add_argument("--client", metavar="COMMAND", help="measures, with {batch} and {result}")
    commands.add_argument("--ready", metavar="URL", help="answers 200 when the server is ready")
    commands.add_argument("--ready-log", metavar="REGEX", help="stands in the server's log when it is ready")
    commands.add_argument("--start-limit", metavar="T", type=_minutes, default=15.0, help="longest start [15m]")
    commands.add_argument("--run-limit", metavar="T", type=_minutes, default=60.0, help="longest run [60m]")
    question = parser.add_argument_group("the question")
    question.add_argument("--batch", metavar="B,...", type=_batches, default=[1], help="requests at a time [1]")
    question.add_argument(
        "--draft-kind", choices=("model", "mirrored", "eagle", "mtp", "parallel", "ngram", "suffix"),
        help="how drafts are made",
    )
    question.add_argument("--max-gamma", metavar="G", type=int, help="longest draft to try [16]")
    question.add_argument("--min-gain", metavar="SHARE", type=float, help="speedup below which plain decoding is preferred [0.05]")
    question.add_argument("--budget", metavar="T", type=_minutes, help="ends after this time, for instance 30m")
    question.add_argument("--enough", metavar="SHARE", type=_share, default=0.0075, help="ends below this expected regret [0.75%%]")
    parser.add_argument("--folder", metavar="FOLDER", help="keeps all there [tune-DATE]")
    parser.add_argument("--continue", dest="go_on", metavar="FOLDER", help="goes on with an earlier one, with its options")
    parser.add_argument("--dry-run", action="store_true", help="shows the commands and ends")
    return parser


def _commands(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Commands:
    limits = {"start_limit": 60 * options.start_limit, "run_limit": 60 * options.run_limit}
    own = [options.server, options.spec, options.client]
    if options.engine is None:
        if None in own:
            parser.error("--engine is missing, or --server, --spec and --client")
        server, spec, client = own
        return Commands(server, spec, client, options.ready, options.ready_log, **limits)
    if any(word is not None for word in own):
        parser.error("--engine writes the commands: leave out --server, --spec and --client")
    if options.model is None or options.draft_kind is None:
        parser.error("--engine needs --model and --draft-kind")
    return commands_of(
        options.engine, options.model, kind=options.draft_kind, draft_model=options.draft_model, prompts=options.prompts,
        port=options.port, server_options=options.server_options, client_options=options.client_options, **limits,
    )


def _dry_run(commands: Commands, batch: int) -> None:
    for gamma in (0, 4):
        print(f"{named(gamma)}:\n  {shlex.join(commands.server_words(gamma))}")
    print(f"the benchmark, at {batch}:\n  {shlex.join(commands.client_words(4, batch, pathlib.Path('FOLDER/new/result.json')))}")


class _Progress:
    def __init__(self, budget: float | None) -> None:
        self._begun = time.monotonic()
        self._budget = budget

    def __call__(self, line: str) -> None:
        passed = (time.monotonic() - self._begun) / 60
        of = "" if self._budget is None else f" of {self._budget:.0f}"
        print(f"[{passed:5.1f}{of} min] {line}", file=sys.stderr, flush=True)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def main(words: list[str]) -> int:
    """@return the exit code"""
    parser = _parser()
    options = parser.parse_args(words)
    try:
        if options.go_on is not None:
            if len(words) > 2:
                parser.error("--continue takes the options of the folder, and no others beside it")
            kept = Kept(pathlib.Path(options.go_on), None)
            options = parser.parse_args(kept.question["words"])
            commands = _commands(options, parser)
            for number in end_leftovers(kept.folder):
                print(f"specdec: process {number} was left by a tune that was killed, and is ended", file=sys.stderr)
        else:
            commands = _commands(options, parser)
            if options.dry_run:
                _dry_run(commands, options.batch[-1])
                return 0
            folder = pathlib.Path(options.folder or time.strftime("tune-%Y%m%d-%H%M%S"))
            if (folder / "state.jsonl").exists():
                parser.error(f"--folder {folder} holds a tuning: --continue {folder} goes on with it")
            kept = Kept(folder, {"words": words})
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        question = given_only(
            {"draft_kind": options.draft_kind, "max_gamma": options.max_gamma, "min_gain": options.min_gain}
        )
        if options.engine is not None:
            question |= given_only({"draft_model": options.draft_model})
        answer = run_loop(
            kept, {"batch": options.batch, **question}, [CommandServer(commands, kept.folder)], enough=options.enough,
            budget=options.budget, emit=options.engine, tell=_Progress(options.budget),
        )
    except (QuestionError, FileError) as error:
        print(f"specdec: error: {error}", file=sys.stderr)
        return 2
    print(answer, end="")
    print(f"Kept in {os.fspath(kept.folder)}: specdec plan --bench {shlex.quote(os.fspath(kept.folder))}/runs/*")
    return {"interrupted": 130}.get(answer.reason, 0 if answer.plan is not None else 1)
