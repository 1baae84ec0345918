"""A benchmark of llama.cpp's server, which brings none: answers of prompts, several at a time, as a table of one run. A program.

usage: python -m specdec._llamacpp_client --url URL --prompts FILE --concurrency N --requests N --gamma G --output FILE
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import itertools
import json
import pathlib
import time
import urllib.request
from typing import Any


def _answer(url: str, prompt: str, tokens: int, temperature: float) -> dict[str, Any]:
    body = {"prompt": prompt, "n_predict": tokens, "temperature": temperature, "seed": 1, "cache_prompt": False}
    asked = urllib.request.Request(
        f"{url.rstrip('/')}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=600) as answer:
        timings: dict[str, Any] = json.load(answer)["timings"]
        return timings


def row_of(timings: list[dict[str, Any]], seconds: float, concurrency: int, gamma: int) -> dict[str, Any]:
    """The run as a table has it. The first token of an answer comes from its prompt."""
    timings = [one for one in timings if one["predicted_n"] > 1]
    if not timings:
        raise SystemExit("no answer has more than one token")
    tokens = sum(one["predicted_n"] for one in timings)
    row: dict[str, Any] = {
        "concurrency": concurrency,
        "gamma": gamma if any(one.get("draft_n", 0) > 0 for one in timings) else 0,
        "requests": len(timings),
        "total_input_tokens": sum(one["prompt_n"] for one in timings),
        "total_output_tokens": tokens,
        "output_tokens_per_second": tokens / seconds,
        "ms_per_token": sum(one["predicted_ms"] for one in timings) / (tokens - len(timings)),
    }
    if row["gamma"] > 0:
        rounds = tokens - len(timings) - sum(one.get("draft_n_accepted", 0) for one in timings)
        row |= {"rounds": rounds, "tokens_per_step": (tokens - len(timings)) / rounds}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--url", required=True)
    parser.add_argument("--prompts", required=True, type=pathlib.Path, help='JSON lines {"prompt": ...}')
    parser.add_argument("--concurrency", required=True, type=int)
    parser.add_argument("--requests", required=True, type=int)
    parser.add_argument("--gamma", required=True, type=int)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--temperature", type=float, default=0.0)
    options = parser.parse_args()
    lines = options.prompts.read_text(encoding="utf-8").splitlines()
    prompts = [str(json.loads(line)["prompt"]) for line in lines if line.strip()]
    # What the first answers wait for is the server's start.
    _answer(options.url, prompts[0], 8, options.temperature)
    asked = list(itertools.islice(itertools.cycle(prompts), options.requests))
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.concurrency) as pool:
        timings = list(pool.map(lambda one: _answer(options.url, one, options.max_tokens, options.temperature), asked))
    row = row_of(timings, time.monotonic() - begun, options.concurrency, options.gamma)
    with options.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
