#!/usr/bin/env python3
"""Words and lines that 24 typical commands print, and whether each begins with what to do.

usage: typical_commands.py SPECDEC [OLDER_SPECDEC] [--show]

The commands are those of three users: an engineer who serves, a researcher, and somebody at home. An answer without
--explain is to have at most 15 lines of 100 columns, a second sentence that says how sure it is, and no number of more
than four digits but counts. Exit code 1 if one is longer, or has no answer. --show prints the answers, too.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES, MOST_COLUMNS = 15, 100
LOAD = "--prompt-tokens 1000:0.5 --output-tokens 250:0.5"
SERVING = "traces/samples/serving"
RECORDING = "sim/models/recording.safetensors"
COMMANDS = {
    "engineer": [
        "plan --bench traces/samples/bench/*.json",
        "plan --acceptance-length 2.92 --at 3 --c 0.04 --gamma 3",
        f"plan --counters {SERVING}/vllm_requests.jsonl --c 0.05 --batch 1,8,64",
        f"counters {SERVING}/vllm_k4.log",
        f"counters {SERVING}/vllm_k4_before.prom {SERVING}/vllm_k4_after.prom",
        f"counters {SERVING}/vllm_requests.jsonl --by category",
        "doctor traces/samples/bench/*.json",
        f"doctor {SERVING}/vllm_k4.log",
        f"diff {SERVING}/vllm_k4.log {SERVING}/vllm_requests.jsonl",
        f"capacity --config docs/examples/chat_70b.toml --tp 4 {LOAD}",
        f"capacity --config docs/examples/chat_70b.toml --tp 4 {LOAD} --arrival-rate 15 --price 2.5",
        "sweep docs/examples/sweep.toml",
    ],
    "researcher": [
        f"analyze {RECORDING}",
        f"analyze {RECORDING} --c 0.05",
        "compare --tokens 576",
        "simulate --verifier block --tokens 2304",
        "validate --tokens 1152 --gamma 3,5 --timed-prompts 0",
        "reproduce",
        f"trace info {RECORDING}",
    ],
    "at home": [
        "plan --hardware rtx-4090 --model llama-3.1-8b --draft-model eagle3-llama-3.1-8b --context 2000",
        "counters traces/samples/llamacpp/server-answers.jsonl",
        f"synthetic --counters {SERVING}/vllm_k4.log --gamma 4 --emit llamacpp",
        "report --alpha 0.7:0.8 --c 0.05 --static --output SCRATCH/page.html",
    ],
}


def answered(program: str, command: str, scratch: str) -> subprocess.CompletedProcess[str]:
    line = f"{program} {command}".replace("SCRATCH", scratch)
    return subprocess.run(["bash", "-c", line], capture_output=True, encoding="utf-8", cwd=ROOT, check=False,
                          env={**os.environ, "COLUMNS": str(MOST_COLUMNS)})


def main(words: list[str]) -> int:
    programs = [str(Path(word).resolve()) for word in words if word != "--show"]
    totals = [0] * len(programs)
    wrong = 0
    print("words  lines  " * len(programs) + "command")
    with tempfile.TemporaryDirectory() as scratch:
        for user, commands in COMMANDS.items():
            print(f"-- {user}")
            for command in commands:
                answers = [answered(program, command, scratch) for program in programs]
                for i, answer in enumerate(answers):
                    lines = answer.stdout.splitlines()
                    totals[i] += len(answer.stdout.split())
                    print(f"{len(answer.stdout.split()):5}  {len(lines):5}  ", end="")
                new = answers[0].stdout.splitlines()
                is_long = len(new) > MOST_LINES or any(len(line) > MOST_COLUMNS for line in new)
                wrong += answers[0].returncode not in (0, 1) or not new or is_long
                print(f"{command}{'  TOO LONG' if is_long else ''}{answers[0].stderr}")
                print(f"      {new[0] if new else 'NO ANSWER'}")
                if "--show" in words:
                    print("".join(f"    | {line}\n" for line in new))
    print("  ".join(map(str, totals)) + " words in all")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
