#!/usr/bin/env python3
"""Writes the files of this folder: what vLLM counts of a known process, in its formats.

60 requests draft 4 tokens a round. A request of category "chat" has alpha 0.65 + 0.10 z, of "code" 0.82 + 0.06 z with
standard normal z, within [0.05, 0.98], for all its rounds; acceptances are independent given that. The scrapes hold the
counters before and after these requests.

The logs have a line of the engine every 10 s, of the same server with and without speculation, whose load changes four
times. A round of B requests takes FIXED + DRAFT_PASS gamma + VERIFIED (gamma + 1) B milliseconds; drafts are accepted
at the rate LOG_ALPHA. Windows in which the load changes read prompts.

The scrapes with times are of the same two servers, of which CLIENTS ask for ANSWER tokens again and again; an iteration
that reads a prompt takes PROMPT milliseconds longer and puts out its first token. A third server looks its drafts up:
a share of HIT_RATE of its steps finds something, which FOUND tokens follow on average, of a geometric law, and drafts
GAMMA of them at most.
"""

import json
import pathlib
import random

GAMMA = 4
FIXED, DRAFT_PASS, VERIFIED = 6.0, 0.8, 0.15
LOG_ALPHA = 0.72
LOADS = [2, 8, 24, 48]
CLIENTS, ANSWER, PROMPT = 8, 400, 14.0
HIT_RATE, FOUND = 0.35, 6.0
EDGES = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0]
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


def accepted_drafts(source: random.Random) -> int:
    accepted = 0
    while accepted < GAMMA and source.random() < LOG_ALPHA:
        accepted += 1
    return accepted


def log(gamma: int, source: random.Random) -> str:
    lines = []
    clock = 0

    def window(batch: int, prompts: float) -> None:
        nonlocal clock
        clock += 10
        prefix = f"(APIServer pid=7) INFO 05-30 08:{clock // 60:02}:{clock % 60:02}"
        seconds = (FIXED + DRAFT_PASS * gamma + VERIFIED * (gamma + 1) * batch) / 1000 * source.gauss(1, 0.005)
        decoding = 10.0 if prompts == 0 else 7.0
        rounds = round(batch * decoding / seconds)
        counts = [accepted_drafts(source) for _ in range(rounds)] if gamma else []
        generated = rounds + sum(counts)
        lines.append(
            f"{prefix} [loggers.py:123] Engine 000: Avg prompt throughput: {prompts:.1f} tokens/s, Avg generation "
            f"throughput: {generated / 10:.1f} tokens/s, Running: {batch} reqs, Waiting: 0 reqs, GPU KV cache usage: "
            f"{batch / 4:.1f}%, Prefix cache hit rate: 0.0%\n"
        )
        if not gamma:
            return
        by_position = ", ".join(f"{sum(c > j for c in counts) / rounds:.3f}" for j in range(gamma))
        lines.append(
            f"{prefix} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {generated / rounds:.2f}, Accepted "
            f"throughput: {sum(counts) / 10:.2f} tokens/s, Drafted throughput: {gamma * rounds / 10:.2f} tokens/s, "
            f"Accepted: {sum(counts)} tokens, Drafted: {gamma * rounds} tokens, Per-position acceptance rate: "
            f"{by_position}, Avg Draft acceptance rate: {100 * sum(counts) / (gamma * rounds):.1f}%\n"
        )

    for batch in LOADS:
        window(batch, 1024.0 * batch)
        for _ in range(6):
            window(batch, 0)
    return "".join(lines)


class TimedServer:
    """vLLM's counters while clients wait for their answers."""

    def __init__(self, gamma: int, source: random.Random, looks_up: bool = False) -> None:
        self.gamma, self.source, self.looks_up = gamma, source, looks_up
        self.left = [0] * CLIENTS
        self.counts = {"drafts": 0, "draft_tokens": 0, "accepted": 0, "positions": [0] * gamma}
        self.times: list[float] = []
        self.iterations = self.first_tokens = 0

    def drafts(self) -> int:
        """Drafted tokens of one sequence in a step."""
        if not self.looks_up:
            return self.gamma
        if self.source.random() >= HIT_RATE:
            return 0
        found = 1
        while self.source.random() >= 1 / FOUND:
            found += 1
        return min(found, self.gamma)

    def run(self, seconds: float) -> None:
        clock = 0.0
        while clock < seconds:
            decoding = [client for client, left in enumerate(self.left) if left > 0]
            prompts = [client for client, left in enumerate(self.left) if left <= 0]
            drafts = {client: self.drafts() for client in decoding}
            passes = 0 if self.looks_up else self.gamma
            took = (FIXED + DRAFT_PASS * passes + VERIFIED * (sum(drafts.values()) + len(decoding))) / 1000
            took = took * self.source.gauss(1, 0.01) + PROMPT / 1000 * len(prompts)
            clock += took
            self.iterations += 1
            for client in prompts:
                self.left[client] = self.source.randint(ANSWER // 2, ANSWER)
                self.first_tokens += 1
            for client in decoding:
                self.times.append(took)
                accepted = min(accepted_drafts(self.source), drafts[client]) if drafts[client] else 0
                self.left[client] -= 1 + accepted
                if drafts[client]:
                    self.counts["drafts"] += 1
                    self.counts["draft_tokens"] += drafts[client]
                    self.counts["accepted"] += accepted
                    for position in range(accepted):
                        self.counts["positions"][position] += 1

    def scrape(self) -> str:
        labels = 'engine="0",model_name="target-8b"'
        text = scrape(self.counts) if self.gamma else ""
        name = "vllm:inter_token_latency_seconds"
        text += f"# HELP {name} Histogram of inter-token latency in seconds.\n# TYPE {name} histogram\n"
        for edge in EDGES:
            text += f'{name}_bucket{{{labels},le="{edge}"}} {float(sum(time <= edge for time in self.times))}\n'
        text += f'{name}_bucket{{{labels},le="+Inf"}} {float(len(self.times))}\n'
        text += f"{name}_count{{{labels}}} {float(len(self.times))}\n{name}_sum{{{labels}}} {sum(self.times)}\n"
        text += f"vllm:iteration_tokens_total_count{{{labels}}} {float(self.iterations)}\n"
        text += f"vllm:time_to_first_token_seconds_count{{{labels}}} {float(self.first_tokens)}\n"
        return text


def timed_scrapes(name: str, server: TimedServer) -> None:
    for when, seconds in (("before", 30), ("after", 120)):
        server.run(seconds)
        (FOLDER / f"{name}_{when}.prom").write_text(server.scrape(), encoding="utf-8")


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
    (FOLDER / "vllm_k4.log").write_text(log(GAMMA, random.Random(2)), encoding="utf-8")
    (FOLDER / "vllm_plain.log").write_text(log(0, random.Random(3)), encoding="utf-8")
    timed_scrapes("vllm_k4", TimedServer(GAMMA, random.Random(4)))
    timed_scrapes("vllm_plain", TimedServer(0, random.Random(5)))
    timed_scrapes("vllm_ngram", TimedServer(GAMMA, random.Random(6), looks_up=True))


if __name__ == "__main__":
    main()
