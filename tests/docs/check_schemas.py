#!/usr/bin/env python3
"""Validates real output of the program against docs/schema/<command>.json, "trace info" against trace.info.json.

usage: check_schemas.py SPECDEC SCHEMA_FOLDER

Every figure of plot is run with its defaults. Each run below must give output that its schema accepts. So that a schema cannot pass by accepting anything, each
document is then broken in turn: every required key removed, an unknown key added, a value of another type put in place
of each top-level one. The schema must refuse all of these.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from jsonschema import Draft7Validator

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "transformer"
LLAMACPP = f"--target {ROOT}/traces/samples/llamacpp/target.kld --draft {ROOT}/traces/samples/llamacpp/draft.kld"
RECORDED = f"--target {FIXTURES}/llama_gqa --draft {FIXTURES}/llama_gqa --prompts {FIXTURES}/prompts.jsonl"
PAIR = f"{RECORDED} --gamma 2"
METHODS = f"{RECORDED.replace('--draft', '--draft-model')} --tokens 64 --max-new-tokens 16"
SERVING = f"{ROOT}/traces/samples/serving"
REQUESTS = f"{ROOT}/traces/samples/requests"
CAPACITY = "--hardware h100-sxm --num-requests 100 --replications 2"
BENCH = " ".join(map(str, sorted((ROOT / "traces" / "samples" / "bench").glob("*.json"))))

# SCRATCH stands for a folder that the commands may write to; they run in this order.
RUNS = {
    "trace generate": [
        "--output SCRATCH/plan.safetensors --sequences 4 --tokens 40",
        "--output SCRATCH/beta.safetensors --sequences 3 --tokens 40",
        "--output SCRATCH/tasks --tasks easy:0.9,hard:0.5 --tokens 30",
        "--output SCRATCH/markov --law markov --tokens 30",
        "--output SCRATCH/topk --law logit-noise --alpha 0.7 --vocab 40 --tier topk --k 4 --sequences 2 --tokens 20",
    ],
    "report": [
        "--alpha 0.7:0.8 --c 0.05 --output SCRATCH/report.html",
        "--trace SCRATCH/plan.safetensors --c 0.05 --emit vllm --static --output SCRATCH/report.html",
        "--alpha 0.8 --hardware h200 --model llama-3.1-8b --draft-kind ngram --batch 1,64 --output SCRATCH/report.html",
    ],
    "plan": [
        "--alpha 0.8 --c 0.05",
        "--alpha 0.8 --hardware h200 --model llama-3.1-8b --draft-kind ngram --calibrate batch=8,tpot_ms=5 --batch 1,64",
        "--alpha 0.8 --c 0.05 --gamma 3 --tokens 64 --c-hat 0.01",
        "--alpha 0.8 --c 0.05 --gamma 2 --max-regret 0.01",
        "--alpha 0.7:0.8 --c 0.05 --gamma 4",
        "--alpha 0.7:1 --c 0.05",
        "--alpha 0.7:0.8 --c 0",
        "--alpha 0.999:1 --c 1e-9",
        "--alpha 0.8 --c 0",
        "--alpha 1 --c 0",
        "--alpha 1 --c 0.1",
        "--alpha 0 --c 0.1",
        "--alpha 0 --c 0",
        "--alpha 0.05 --c 0.1",
        "--alpha 0.8 --c 3",
        "--alpha 0.8 --c 0.05 --max-gamma 4",
        "--rejection 1e-12 --c 1e-12",
        "--rejection 1e-17 --c 1e-17 --tokens 1000000",
        "--acceptance-length 2.92 --at 3 --c 0.02",
        "--acceptance-length 1:1.84,2:2.51,3:3.01 --c 0.02",
        "--acceptance-length 1:1.5,2:2.4 --c 0.02",
        "--alpha 0:0.4 --c 0.25",
        "--rejection 1e-17:2e-17 --c 0.05",
        "--acceptance-per-position 0.805,0.632,0.483 --c 0.02",
        "--acceptance-per-position 0.8,0.8,0.7 --conditional --c 0.02",
        "--alpha 0.8 --c 0.05 --verify-factor 1.15 --overhead 0.1",
        "--alpha 0.8 --c 0.05 --verify-factor 2:1.02,5:1.10,9:1.31",
        "--alpha 0.8 --c 1e9 --overhead 1e9",
        "--alpha 0.8 --c 0.05 --min-gain 0.2 --gamma 3",
        "--alpha 0.7:0.8 --c 0.3 --batch 1,64 --context 0,4096 --gamma 9 --max-regret 0.01 --emit vllm",
        "--alpha 0.05 --c 0.3 --batch 1,8 --emit sglang",
        "--draft a:alpha=0.8,c=0.1 --draft b:alpha=0.6,c=0.01,kind=eagle,rule=rejection --batch 4 --emit trtllm",
        "--alpha 0.5:0.7 --c 0.5 --min-gain 0.2 --batch 2",
        "--trace SCRATCH/plan.safetensors --c 0.1 --batch 1,2",
        f"--alpha 0.7 --draft-kind ngram --batch 1,4,8 --cost {ROOT}/traces/samples/llamacpp/batched-bench.jsonl "
        "--emit llamacpp",
        f"--bench {BENCH} --holdout {ROOT}/traces/samples/bench/held_out/c16-k3.json --gamma 5",
        f"--bench {ROOT}/traces/samples/bench/trees.csv",
    ],
    "capacity": [
        f"{CAPACITY} --tp 4 --model llama-3.3-70b --draft-model eagle3-llama-3.3-70b --draft-kind eagle --alpha 0.7 "
        "--gamma 3 --prompt-tokens 1000:0.5 --output-tokens 200 --arrival-rate 10 --tpot-ms 40 --price 3 --replicas 1",
        f"{CAPACITY} --model llama-3.1-8b --prompt-tokens 100 --output-tokens 50 --tpot-ms 0.5",
        f"{CAPACITY} --model llama-3.1-8b --counters {SERVING}/vllm_requests.jsonl --draft-kind ngram --decode-only "
        f"--schedule 1-8:3,9-64:1,65-512:0 --max-num-seqs 16,64 --requests {REQUESTS}/table.csv",
        f"{CAPACITY} --model llama-3.1-8b --alpha 0.5 --alpha-spread 0.1 --draft-kind ngram --gamma 2 --concurrency 4 "
        "--bandwidth-efficiency 1 --compute-efficiency 1 --launch-seconds 0 --layer-seconds 0 --scheduling-seconds 0 "
        "--calibrate batch=1,tpot_ms=6 --prompt-tokens 100 --output-tokens 50",
        f"--cost {ROOT}/traces/samples/llamacpp/batched-bench.jsonl --kv-cache-tokens 20000 "
        "--prefill-tokens-per-second 5000 --prompt-tokens 100 --output-tokens 50 --num-requests 100 --replications 2",
        f"{CAPACITY} --model llama-3.1-8b --draft-model eagle3-llama-3.1-8b --alpha 0.7 --alpha-spread 0.2 --gamma 2 "
        "--verification-budget --concurrency 8 --prompt-tokens 100 --output-tokens 50",
        f"{CAPACITY} --model llama-3.3-70b --gpus 4 --prompt-tokens 100 --output-tokens 50",
    ],
    "record": [
        f"{RECORDED} --output SCRATCH/full --sequences 2 --max-new-tokens 8",
        f"{RECORDED} --output SCRATCH/full --sequences 3 --max-new-tokens 8",
        "--output SCRATCH/shipped --sequences 2 --max-new-tokens 4 --tier scalar --tasks code",
    ],
    "analyze": [
        "SCRATCH/beta.safetensors",
        "SCRATCH/beta.safetensors --c 0.1",
        "SCRATCH/tasks --c 0 --gamma 2,5",
        "SCRATCH/tasks --c 5",
        "SCRATCH/topk --c 0.1",
        "SCRATCH/full --acceptance greedy",
        f"{LLAMACPP}",
        f"{LLAMACPP} --c 0.1 --force-replay --standardise target:top_k=5;temperature=0",
    ],
    "analyze --shard 2/3": ["--part SCRATCH/2.part SCRATCH/tasks --c 0.1"],
    "merge": ["--partial SCRATCH/2.part"],
    "sweep": ["SCRATCH/plans.toml", "SCRATCH/plans.toml --cache SCRATCH/answers", "SCRATCH/loads.toml"],
    "sweep --shard 1/2": ["--part SCRATCH/sweep.part SCRATCH/plans.toml"],
    "merge --partial": ["SCRATCH/sweep.part"],
    "counters": [
        f"{SERVING}/vllm_requests.jsonl",
        f"--by category --max-gamma 5 {SERVING}/vllm_requests.jsonl",
        f"{SERVING}/vllm_before.prom {SERVING}/vllm_after.prom",
        f"{SERVING}/vllm_after.prom",
    ],
    "doctor": [
        f"{SERVING}/vllm_before.prom {SERVING}/vllm_after.prom {SERVING}/vllm_k4.log",
        f"{SERVING}/vllm_plain.log --gamma 3",
        f"{LLAMACPP} --threads 2",
        f"{SERVING}/../bench/c8-plain.json {SERVING}/../bench/c1-k3.json",
        f"--draft-cost {ROOT}/traces/samples/llamacpp/llama-bench.md --hardware h100 --tp 2 --model llama-3.1-8b "
        "--draft-model llama-3.2-1b --draft-kind model",
    ],
    "diff": [
        f"{SERVING}/vllm_requests.jsonl {ROOT}/traces/samples/aiperf/records.jsonl",
        f"{SERVING}/../bench/c1-k3.json {SERVING}/../bench/c8-k3.json",
        f"SCRATCH/tasks {SERVING}/vllm_requests.jsonl --gamma 3 --unpaired",
    ],
    "synthetic": [
        "--alpha 0.8 --gamma 4",
        "--rejection 1 --gamma 2",
        f"--counters {SERVING}/vllm_requests.jsonl --gamma 6 --emit llamacpp",
        "--trace SCRATCH/tasks --gamma 3 --emit sglang",
    ],
    "trace info": ["SCRATCH/tasks", "SCRATCH/full", f"{LLAMACPP}"],
    "trace check": ["SCRATCH/tasks", f"{LLAMACPP}", f"{ROOT}/README.md"],
    "trace convert": [f"--tier topk --k 8 --output SCRATCH/converted {LLAMACPP}"],
    "trace slice": ["--tasks easy --output SCRATCH/slice.safetensors SCRATCH/tasks"],
    "trace merge": ["--output SCRATCH/merged SCRATCH/slice.safetensors SCRATCH/beta.safetensors"],
    "list hardware": ["", "h100-sxm l4"],
    "list models": ["", "deepseek-v3 eagle3-llama-3.1-8b gpt-oss-20b t5-small lamda-2b"],
    "list published": ["", "ende-t5-small-t0"],
    "simulate": [
        f"{METHODS} --draft combination --verifier lenient --policy heuristic",
        "--source synthetic --tokens 256 --verifier block",
        "--source synthetic --tokens 256 --draft copy --c 0.1 --verify-factor 2:1.1",
    ],
    "simulate --shard 1/2": ["--source synthetic --tokens 256 --part SCRATCH/simulate.part"],
    "merge --partial --quiet": ["SCRATCH/simulate.part"],
    "compare": [f"{METHODS} block ngram", "--source synthetic --tokens 256"],
    "reproduce": [""],
    "plot": [""],
    "plot steps": ["--tokens 12", "--gamma 2 --tokens 6 --temperature 0"],
    "validate": [
        f"{PAIR} --tokens 64 --max-new-tokens 16 --timed-prompts 1",
        f"{PAIR} --tokens 2000 --max-new-tokens 100 --temperature 1 --timed-prompts 0 --tasks odd",
        f"{PAIR} --tokens 16 --max-new-tokens 124 --temperature 0 --timed-prompts 0",
    ],
}

# Schemas of commands that print what another one does, or something else with some options.
SCHEMA_OF = {
    "analyze --shard 2/3": "analyze.part",
    "merge": "analyze",
    "sweep --shard 1/2": "sweep.part",
    "merge --partial": "sweep",
    "simulate --shard 1/2": "simulate.part",
    "merge --partial --quiet": "simulate",
}

# Files that runs read.
FILES = {
    "plans.toml": '[plan]\nmodel = "llama-3.1-8b"\nhardware = ["h100", "l4"]\ndraft-kind = "ngram"\nalpha = [0.5, 0.8]\n'
    "tp = [1, 3]\n",
    "loads.toml": '[capacity]\nmodel = "llama-3.1-8b"\nhardware = "h100"\nnum-requests = 100\nreplications = 2\nprice = 2\n'
    "prompt-tokens = 100\noutput-tokens = 50\narrival-rate = [1, 4]\n",
}

OF_ANOTHER_TYPE = {str: 1, int: "text", float: "text", bool: "text", list: "text", dict: "text"}


def run(specdec, command, options, scratch):
    words = [*command.split(), *options.replace("SCRATCH", scratch).split(), "--format", "json"]
    done = subprocess.run([specdec, *words], capture_output=True, encoding="utf-8")
    if done.returncode not in (0, 1):
        sys.exit(f"specdec {command} {options}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout, parse_constant=lambda name: sys.exit(f"specdec {command} {options}: {name} in JSON"))


def broken(document):
    """The document with one thing wrong, and what that is."""
    yield {**document, "unknown_key": 1}, "an unknown key"
    for key, value in document.items():
        yield {k: v for k, v in document.items() if k != key}, f"{key} missing"
        if value is not None:
            yield {**document, key: OF_ANOTHER_TYPE[type(value)]}, f"{key} of another type"


def main():
    with tempfile.TemporaryDirectory() as scratch:
        failures = check(sys.argv[1], Path(sys.argv[2]), scratch)
    print("\n".join(failures) or f"{sum(map(len, RUNS.values()))} documents checked")
    return bool(failures)


def figures(specdec):
    """The figures' commands, which share one schema."""
    listed = subprocess.run([specdec, "plot", "--format", "json"], capture_output=True, encoding="utf-8")
    figures_of = json.loads(listed.stdout)["figures"]
    return {f"plot {figure['name']}": [""] for figure in figures_of if figure["name"] != "steps"}


def check(specdec, folder, scratch):
    """The faults in the documents and the schemas, in words."""
    failures = []
    decision = json.loads((folder / "decision.json").read_text(encoding="utf-8"))
    for name, text in FILES.items():
        Path(scratch, name).write_text(text, encoding="utf-8")
    for command, runs in {**RUNS, **figures(specdec)}.items():
        is_figure = command.startswith("plot ") and command not in RUNS
        name = "plot.figure" if is_figure else SCHEMA_OF.get(command, command.replace(" ", "."))
        schema = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        schema["properties"]["decision"] = decision
        Draft7Validator.check_schema(schema)
        validator = Draft7Validator(schema)
        key_types = {}
        for options in runs:
            document = run(specdec, command, options, scratch)
            for error in validator.iter_errors(document):
                failures.append(f"specdec {command} {options}: {'/'.join(map(str, error.path))}: {error.message}")
            for wrong, what in broken(document):
                if validator.is_valid(wrong):
                    failures.append(f"{name}.json accepts {what}")
            for key, value in document.items():
                key_types.setdefault(key, set()).add(type(value))
        for key, types in key_types.items():
            if len(types - {type(None)}) > 1 and types - {type(None)} != {int, float}:
                failures.append(f"{command}: {key} changes its type: {types}")
    return failures


if __name__ == "__main__":
    sys.exit(main())
