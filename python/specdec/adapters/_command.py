"""Records a trace from two running servers: the target writes, both score what it wrote.

For each prompt the target generates at temperature 1 or 0 with nothing cut off. Prompt and output then go to both
servers as token ids, and each returns its log-probability of every generated token: all that exact replay needs.
vLLM, SGLang and llama.cpp's llama-server are known.

The output is JSON Lines, one request a line after a first line of metadata; `specdec analyze F` reads it as it is. A
run that was stopped goes on where it ended: run the same command again. One that records nothing leaves no file. Needs
Python 3.9 or newer and nothing else.

Example:
  scripts/record_openai.py --target http://localhost:8000 --draft http://localhost:8001 \\
      --prompts prompts.jsonl --output run.jsonl
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from ._prompts import RecordingError, read_prompts
from ._recording import Sampling, record
from ._servers import ENGINES, connect

_LONGEST_WAIT = 1e6


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see --help\n")


def _at_least_one(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"is {text}, but must be an integer, 1 or above")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= _LONGEST_WAIT:
        raise argparse.ArgumentTypeError(f"is {text}, but must be a number of seconds in (0, {_LONGEST_WAIT}]")
    return number


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+\S*", text):
        raise argparse.ArgumentTypeError(f"is {text}, but must be a server's URL, for instance http://localhost:8000")
    return text


def _parse(arguments: Sequence[str], program: str) -> argparse.Namespace:
    first_line, _, rest = (__doc__ or "").partition("\n")
    parser = _Parser(prog=program, description=first_line, epilog=rest,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--target", required=True, type=_url, metavar="URL",
        help="server of the target, for instance http://localhost:8000")
    add("--draft", required=True, type=_url, metavar="URL", help="server of the draft")
    add("--prompts", required=True, metavar="FILE", help='JSON Lines with "text" or "tokens", or a .txt file')
    add("--output", required=True, metavar="FILE", help="JSON Lines to write or to go on with")
    add("--temperature", type=float, choices=(0.0, 1.0), default=1.0, help="1 (default) or 0, which compares ranks")
    add("--max-tokens", type=_at_least_one, default=256, metavar="N", help="longest output (default 256)")
    add("--limit", type=_at_least_one, metavar="N", help="take the first N prompts only")
    add("--seed", type=int, default=1, metavar="S", help="seed of the target's sampler (default 1)")
    add("--concurrency", type=_at_least_one, default=8, metavar="N", help="requests at a time (default 8)")
    add("--timeout", type=_seconds, default=600.0, metavar="SECONDS", help="longest wait for an answer (default 600)")
    add("--target-model", default="", metavar="NAME", help="where the server has several; default the first it lists")
    add("--draft-model", default="", metavar="NAME")
    add("--target-engine", choices=("auto", *ENGINES), default="auto", help="default: what the server says it is")
    add("--draft-engine", choices=("auto", *ENGINES), default="auto")
    add("--api-key-variable", default="OPENAI_API_KEY", metavar="NAME", help="environment variable that holds the key")
    return parser.parse_args(arguments)


def _show(written: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{written} of {of} requests", end="", file=sys.stderr, flush=True)


def _run(options: argparse.Namespace) -> None:
    prompts = read_prompts(options.prompts)[:options.limit]
    both = {"timeout": options.timeout, "api_key": os.environ.get(options.api_key_variable, "")}
    target = connect(options.target, model=options.target_model, engine=options.target_engine, **both)
    draft = connect(options.draft, model=options.draft_model, engine=options.draft_engine, **both)
    how = Sampling(options.temperature, options.max_tokens, options.seed, options.concurrency)
    written = record(prompts, target, draft, options.output, how, _show)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"{options.output}: {written} requests; next: specdec analyze {options.output}")


def main(arguments: Sequence[str], program: str) -> int:
    """Exit code 0, 2 for what is refused, 130 where it was stopped."""
    try:
        _run(_parse(arguments, program))
    except RecordingError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: stopped; run the same command again to go on", file=sys.stderr)
        return 130
    return 0
