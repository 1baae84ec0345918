#!/usr/bin/env python3
"""Writes the files of this folder: what vLLM counts of a known process, in its formats.

60 requests draft 4 tokens a round. A request of category "chat" has alpha 0.65 + 0.10 z, of "code" 0.82 + 0.06 z with
standard normal z, within [0.05, 0.98], for all its rounds; acceptances are independent given that. The scrapes hold the
counters before and after these requests.
"""

import json
import pathlib
import random

GAMMA = 4
FOLDER = pathlib.Path(__file__).parent
BEFORE = {"drafts": 5120, "draft_tokens": 20480, "accepted": 11008, "positions": [3850, 2990, 2300, 1868]}


def request(number: int, source: random.Random) -> dict:
    category = "chat" if number % 3 else "code"
    mean, spread = (0.65, 0.10) if category == "chat" else (0.82, 0.06)
    alpha = min(max(source.gauss(mean, spread), 0.05), 0.98)
    histogram = [0] * (GAMMA + 1)
    for _ in range(source.randint(20, 120)):
        accepted = 0
        while accepted < GAMMA and source.random() < alpha:
            accepted += 1
        histogram[accepted] += 1
    steps = sum(histogram)
    accepted = sum(j * rounds for j, rounds in enumerate(histogram))
    return {
        "id": f"cmpl-{number}",
        "model": "target-8b",
        "category": category,
        "metrics": {
            "speculative_decoding": {
                "mean_acceptance_length": 1 + accepted / steps,
                "draft_acceptance_rate": accepted / (GAMMA * steps),
                "acceptance_histogram": histogram,
                "acceptance_histogram_by_draft_length": {str(GAMMA): histogram},
                "num_spec_steps": steps,
                "num_accepted_draft_tokens": accepted,
                "num_draft_tokens": GAMMA * steps,
                "num_spec_tokens": GAMMA,
            }
        },
    }


def scrape(counts: dict) -> str:
    def series(name: str, value: int, more: str = "") -> str:
        return f'vllm:spec_decode_{name}_total{{engine="0",model_name="target-8b"{more}}} {float(value)}\n'

    text = "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.\n"
    text += "# TYPE vllm:spec_decode_num_drafts_total counter\n"
    text += series("num_drafts", counts["drafts"])
    text += series("num_draft_tokens", counts["draft_tokens"])
    text += series("num_accepted_tokens", counts["accepted"])
    for position, accepted in enumerate(counts["positions"]):
        text += series("num_accepted_tokens_per_pos", accepted, f',position="{position}"')
    return text


def main() -> None:
    source = random.Random(1)
    requests = [request(number, source) for number in range(60)]
    (FOLDER / "vllm_requests.jsonl").write_text("".join(json.dumps(r) + "\n" for r in requests), encoding="utf-8")
    (FOLDER / "vllm_before.prom").write_text(scrape(BEFORE), encoding="utf-8")
    after = {**BEFORE, "positions": list(BEFORE["positions"])}
    for r in requests:
        counts = r["metrics"]["speculative_decoding"]
        after["drafts"] += counts["num_spec_steps"]
        after["draft_tokens"] += counts["num_draft_tokens"]
        after["accepted"] += counts["num_accepted_draft_tokens"]
        for position in range(GAMMA):
            after["positions"][position] += sum(counts["acceptance_histogram"][position + 1 :])
    (FOLDER / "vllm_after.prom").write_text(scrape(after), encoding="utf-8")


if __name__ == "__main__":
    main()
