#!/usr/bin/env python3
"""Gives the program several hundred bad inputs and holds it to its promise about them.

usage: bad_inputs.py SPECDEC [--show]

Each case is a command line, with files that are written beside it into an empty folder. The program must exit with 2,
say one line on standard error that begins "specdec: error: ", print nothing, and leave the folder as it was: no file
written, changed or removed. Two tables make the cases: EACH_OPTION gives every option that --help lists a value that it
cannot have, FILES and WORDS are inputs that people have. --show prints what the program says to each.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "traces" / "samples"
FEWEST_CASES = 300
SECONDS = 60


@dataclass
class Case:
    words: str
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""


# ------------------------------------------------------------------------------------------------------------ the files


def text(content: str) -> bytes:
    return content.encode("utf-8", "surrogateescape")


def document(value) -> bytes:
    return json.dumps(value).encode()


def safetensors(tensors: dict[str, tuple[str, list[int], bytes]], metadata=None) -> bytes:
    header, data = {"__metadata__": {"format": "specdec-trace", "version": "1", **(metadata or {})}}, b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    packed = json.dumps(header).encode()
    packed += b" " * (-len(packed) % 8)
    return len(packed).to_bytes(8, "little") + packed + data


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def integers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def scalar_trace(target: bytes, draft: bytes, **more) -> bytes:
    size = len(target) // 4
    return safetensors({"seq": ("I64", [size], integers(*[0] * size)), "pos": ("I64", [size], integers(*range(size))),
                        "p.token_logprob": ("F32", [size], target), "q.token_logprob": ("F32", [len(draft) // 4], draft),
                        **more})


def full_trace(target: bytes, draft: bytes) -> bytes:
    rows = len(target) // 8
    return safetensors({"seq": ("I64", [rows], integers(*[0] * rows)), "pos": ("I64", [rows], integers(*range(rows))),
                        "p.probs": ("F32", [rows, 2], target), "q.probs": ("F32", [rows, 2], draft)})


def npy(kind: str, shape: str, data: bytes) -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def npz(**arrays: bytes) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(name + ".npy", array)
    return packed.getvalue()


ROW = npy("<f4", "(1, 2)", floats(0.5, 0.5))
RECORDING = (ROOT / "sim" / "models" / "recording.safetensors").read_bytes()
SCRAPE = (SAMPLES / "serving" / "vllm_before.prom").read_bytes()
REQUESTS = (SAMPLES / "serving" / "vllm_requests.jsonl").read_bytes()
LOG = (SAMPLES / "serving" / "vllm_k4.log").read_bytes()
TIMES = (SAMPLES / "llamacpp" / "batched-bench.jsonl").read_bytes()
LOGITS = (SAMPLES / "llamacpp" / "target.kld").read_bytes()
STORED = (SAMPLES / "numpy" / "stored.npz").read_bytes()
PLAIN_RUN = json.loads((SAMPLES / "bench" / "c1-plain.json").read_bytes())
DRAFTED_RUN = json.loads((SAMPLES / "bench" / "c1-k3.json").read_bytes())
COUNTED = "spec_decode_num_drafts"


def run_with(run: dict, without=(), **changes) -> bytes:
    return document({key: value for key, value in {**run, **changes}.items() if key not in without})


POSITIONS = {"prompt_token_ids": [1], "generated_token_ids": [1, 2, 3], "acc_eagle": {"acc_len": [2, 2, 1]}}

# Files given as traces that are none.
BAD_TRACES = {
    "empty": b"",
    "blank": b"\n\n  \n",
    "zeros": bytes(4096),
    "words": b"hello, world\n",
    "gzip": b"\x1f\x8b\x08" + bytes(40),
    "utf16": "target_logprob,draft_logprob\n-1,-1\n".encode("utf-16"),
    "half": RECORDING[: len(RECORDING) // 2],
    "first_8": RECORDING[:8],
    "first_200": RECORDING[:200],
    "huge_header": (2**62).to_bytes(8, "little") + RECORDING[8:],
    "header_of_garbage": (16).to_bytes(8, "little") + b"{not json at all",
    "no_columns": safetensors({}),
    "one_model": safetensors({"p.token_logprob": ("F32", [1], floats(-1))}),
    "other_names": safetensors({"target": ("F32", [1], floats(-1)), "draft": ("F32", [1], floats(-1))}),
    "no_positions": scalar_trace(b"", b""),
    "of_two_lengths": scalar_trace(floats(-1, -1), floats(-1)),
    "positive_logprob": scalar_trace(floats(0.5), floats(-1)),
    "nan_logprob": scalar_trace(floats(float("nan")), floats(-1)),
    "short_tensor": safetensors({"p.token_logprob": ("F32", [9], floats(-1)), "q.token_logprob": ("F32", [9], floats(-1))}),
    "whole_numbers": safetensors({"p.token_logprob": ("I64", [1], integers(1)), "q.token_logprob": ("I64", [1], integers(1))}),
    "rows_of_half": full_trace(floats(0.25, 0.25), floats(0.5, 0.5)),
    "rows_of_nan": full_trace(floats(float("nan"), 0.5), floats(0.5, 0.5)),
    "negative_rows": full_trace(floats(-0.5, 1.5), floats(0.5, 0.5)),
    "later_version": safetensors({}, {"version": "99"}),
    "pairs.csv": text("p_logprob,q_logprob\n"),
    "without_header.csv": text("-0.1,-0.2\n-0.3,-0.4\n"),
    "wrong_names.csv": text("tgt,drf\n-0.1,-0.2\n"),
    "one_model.csv": text("target_logprob,other\n-0.1,-0.2\n"),
    "two_targets.csv": text("p_logprob,p_prob,q_prob\n-0.1,0.2,0.2\n"),
    "ragged.csv": text("p_logprob,q_logprob\n-0.1,-0.2\n-0.1\n"),
    "word.csv": text("p_logprob,q_logprob\n-0.1,low\n"),
    "no_number.csv": text("p_logprob,q_logprob\n-0.1,\n"),
    "nan.csv": text("p_logprob,q_logprob\nnan,-1\n"),
    "above_1.csv": text("p_prob,q_prob\n1.5,0.5\n"),
    "above_0.csv": text("p_logprob,q_logprob\n0.5,-1\n"),
    "open_quote.csv": text('p_logprob,q_logprob\n"-0.1,-0.2\n'),
    "zeros.csv": text("p,q\n0,0\n0,0\n"),
    "logits.csv": text("p_logit,q_logit\n1,2\n"),
    "parted_sequence.csv": text("seq,p_logprob,q_logprob\na,-1,-1\nb,-1,-1\na,-1,-1\n"),
    "leap.csv": text("pos,p_logprob,q_logprob\n0,-1,-1\n7,-1,-1\n"),
    "token.csv": text("token,p_logprob,q_logprob\n-7,-1,-1\n"),
    "overlap.csv": text("overlap,p_logprob,q_logprob\n3,-1,-1\n"),
    "rank.csv": text("p_rank,p_logprob,q_logprob\n-1,-1,-1\n"),
    "one_model.jsonl": text('{"p_logprob":-0.1,"x":2}\n'),
    "broken.jsonl": text('{"p_logprob":-0.1,"q_logprob":-0.2}\n{"p_logprob":\n'),
    "word.jsonl": text('{"p_logprob":"low","q_logprob":-0.2}\n'),
    "null.jsonl": text('{"p_logprob":null,"q_logprob":-0.2}\n'),
    "lengths.jsonl": text('{"p_logprobs":[-0.1,-0.2],"q_logprobs":[-0.2]}\n'),
    "number_and_list.jsonl": text('{"p_logprobs":[-0.1,-0.2],"q_logprobs":-0.2}\n'),
    "later_line.jsonl": text('{"p_logprob":-0.1,"q_logprob":-0.2}\n{"p_logprob":-0.1}\n'),
    "array_line.jsonl": text('{"p_logprob":-0.1,"q_logprob":-0.2}\n[1]\n'),
    "deep.json": b"[" * 5000,
    "number.json": b"17",
    "object.json": b"{}",
    "list.json": b"[]",
    "open.json": b'{"p_logprob": -0.1, "q_logprob"',
    "two_drafts.jsonl": document({**POSITIONS, "acc_ngram": {"acc_len": [1, 1, 1]}}),
    "no_lengths.jsonl": document({**POSITIONS, "acc_eagle": {}}),
    "zero_length.jsonl": document({**POSITIONS, "acc_eagle": {"acc_len": [0, 1]}}),
    "word_length.jsonl": document({**POSITIONS, "acc_eagle": {"acc_len": ["a"]}}),
    "one.npy": ROW,
    "target_alone.npz": npz(p_probs=ROW),
    "nameless.npz": npz(logits=ROW),
    "several.npz": npz(p_probs=ROW, target_probs=ROW, q_probs=ROW),
    "shapes.npz": npz(p_probs=ROW, q_probs=npy("<f4", "(1, 3)", floats(0.5, 0.5, 0))),
    "whole.npz": npz(p_probs=npy("<i8", "(1, 2)", integers(1, 0)), q_probs=ROW),
    "objects.npz": npz(p_probs=npy("|O", "(1, 2)", bytes(16)), q_probs=ROW),
    "negative_shape.npz": npz(p_probs=npy("<f4", "(-1, 2)", b""), q_probs=ROW),
    "huge_shape.npz": npz(p_probs=npy("<f4", "(9223372036854775807, 2)", b""), q_probs=ROW),
    "cut.npz": STORED[: len(STORED) // 2],
    "no_arrays.npz": npz(),
    "logits.kld": LOGITS,
    "cut.kld": LOGITS[:100],
    "answer.json": document({"choices": [{"logprobs": None, "text": "x"}]}),
}

# Files given as counts that are none.
BAD_COUNTS = {
    "empty": b"",
    "words": b"hello, world\n",
    "zeros": bytes(512),
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(20),
    "table.csv": text("rounds,accepted\n10,20\n"),
    "object.json": b"{}",
    "list.json": b"[1, 2]",
    "open.json": b'{"choices": [',
    "metrics_of_others.prom": text("# TYPE up gauge\nup 1\n"),
    "negative.prom": re.sub(rb"(drafts_total\{[^}]*\}) \S+", rb"\1 -5", SCRAPE),
    "word.prom": re.sub(rb"(drafts_total\{[^}]*\}) \S+", rb"\1 many", SCRAPE),
    "open_label.prom": re.sub(rb'"\}', b"", SCRAPE),
    "twice.prom": SCRAPE + SCRAPE,
    "broken.jsonl": REQUESTS[:-20],
    "accepted_more_than_drafted.json": run_with(DRAFTED_RUN, spec_decode_accepted_tokens=9_000_000),
    "no_count_of_rounds.json": run_with(DRAFTED_RUN, [COUNTED]),
    "length_below_1.json": run_with(DRAFTED_RUN, spec_decode_acceptance_length=0.5),
    "length_of_another.json": run_with(DRAFTED_RUN, spec_decode_acceptance_length=3.9),
    "percent_above_100.json": run_with(DRAFTED_RUN, spec_decode_acceptance_rate=140),
    "negative_rounds.json": run_with(DRAFTED_RUN, **{COUNTED: -3}),
    "rounds_and_a_half.json": run_with(DRAFTED_RUN, **{COUNTED: 2.5}),
    "word_for_rounds.json": run_with(DRAFTED_RUN, **{COUNTED: "many"}),
    "idle.log": text("INFO 01-01 00:00:00 [metrics.py:101] nothing of the kind\n"),
    "zero_length.jsonl": document({**POSITIONS, "acc_eagle": {"acc_len": [0, 1]}}),
}

# Files given as measured times that are none.
BAD_TIMES = {
    "empty": b"",
    "words": b"hello, world\n",
    "header_only.csv": text("batch,tokens,context,seconds\n"),
    "without_header.csv": text("1,1,0,0.1\n2,1,0,0.2\n"),
    "wrong_names.csv": text("batch,tokens,ctx,time\n1,1,0,0.1\n"),
    "column_twice.csv": text("batch,batch,tokens,context,seconds\n1,1,1,0,0.1\n"),
    "column_missing.csv": text("batch,context,seconds\n1,0,0.1\n"),
    "ragged.csv": text("batch,tokens,context,seconds\n1,1,0\n"),
    "word.csv": text("batch,tokens,context,seconds\n1,1,0,fast\n"),
    "zero.csv": text("batch,tokens,context,seconds\n1,1,0,0\n"),
    "negative.csv": text("batch,tokens,context,seconds\n1,1,0,-1\n"),
    "nan.csv": text("batch,tokens,context,seconds\n1,1,0,nan\n"),
    "infinite.csv": text("batch,tokens,context,seconds\n1,1,0,inf\n"),
    "batch_0.csv": text("batch,tokens,context,seconds\n0,1,0,0.1\n"),
    "two_models.csv": text("model,batch,tokens,context,seconds\na,1,1,0,0.1\nb,1,1,0,0.1\n"),
    "list.json": b"[1]",
    "object.json": b"{}",
    "broken.jsonl": TIMES[:-15],
    "zero_seconds.jsonl": re.sub(rb'"t_tg": *[\d.]+', b'"t_tg": 0', TIMES),
    "insert.sql": text("INSERT INTO llama_bench (a) VALUES ('1', '2');\n"),
    "table.md": text("| model | test | t/s |\n| --- | --- | --- |\n| m | tg128 |\n"),
    "test.md": text("| model | test | t/s |\n| --- | --- | --- |\n| m | warm-up | 3 |\n"),
    "drafted_alone.log": LOG,
}

# Files given to --bench beside the plain run.
BAD_RUNS = {
    "empty": b"",
    "words": b"hello, world\n",
    "length_alone.json": run_with(
        PLAIN_RUN, spec_decode_acceptance_length=2.67),
    "rates_alone.json": run_with(PLAIN_RUN, spec_decode_per_position_acceptance_rates=[0.7, 0.5]),
    "drafted_alone.json": run_with(DRAFTED_RUN, [COUNTED, "spec_decode_acceptance_length", "spec_decode_acceptance_rate"]),
    "short_outputs.json": run_with(DRAFTED_RUN, total_output_tokens=4000),
    "another_concurrency.json": run_with(DRAFTED_RUN, max_concurrency=4),
    "another_model.json": run_with(DRAFTED_RUN, model_id="another"),
    "no_times.json": run_with(DRAFTED_RUN, ["mean_tpot_ms", "output_throughput", "duration"]),
    "negative_time.json": run_with(DRAFTED_RUN, mean_tpot_ms=-1),
    "cut.json": run_with(DRAFTED_RUN)[:-30],
}

BAD_REQUESTS = {
    "empty": b"",
    "words": b"hello, world\n",
    "wrong_names.csv": text("a,b,c\n1,2,3\n"),
    "without_header.csv": text("1,2,3\n"),
    "header_only.csv": text("seconds,prompt_tokens,output_tokens\n"),
    "backwards.csv": text("seconds,prompt_tokens,output_tokens\n5,10,10\n1,10,10\n"),
    "zero.csv": text("seconds,prompt_tokens,output_tokens\n1,0,10\n"),
    "word.csv": text("seconds,prompt_tokens,output_tokens\nsoon,10,10\n"),
    "broken.jsonl": text('{"timestamp": 1, "input_length": 2'),
}

BAD_HARDWARE = {
    "empty": b"",
    "words": b"hello",
    "list.json": b"[]",
    "object.json": b"{}",
    "word.json": document({"name": "x", "memory_bytes": "much"}),
    "unknown.json": document({"name": "x", "wings": 2}),
    "long.json": b"{" + b" " * (1 << 20) + b"}",
}

BAD_MODELS = {
    "empty": b"",
    "words": b"hello",
    "object.json": b"{}",
    "list.json": b"[]",
    "no_layers.json": document({"model_type": "llama", "hidden_size": 64}),
    "negative.json": document({"model_type": "llama", "hidden_size": -64, "num_hidden_layers": 2, "vocab_size": 10,
                               "num_attention_heads": 2, "intermediate_size": 10}),
    "unknown.json": document({"model_type": "abacus", "hidden_size": 64}),
    "cut.gguf": b"GGUF\3\0\0\0" + bytes(4),
}

BAD_PROMPTS = {
    "empty.jsonl": b"",
    "words.jsonl": b"hello\n",
    "no_task.jsonl": b"{}\n",
    "word_tokens.jsonl": document({"task": "a", "tokens": ["x"]}),
    "negative_tokens.jsonl": document({"task": "a", "tokens": [-1]}),
    "no_tokens.jsonl": document({"task": "a", "tokens": []}),
}

BAD_CONFIGS = {
    "unknown_key.toml": text("[plan]\nalhpa = 0.8\n"),
    "unknown_command.toml": text("[plam]\nalpha = 0.8\n"),
    "no_section.toml": text("alpha = 0.8\n"),
    "bad_value.toml": text("[plan]\nalpha = 1.8\nc = 0.1\n"),
    "long.toml": b"#" * (1 << 21),
    "zeros.toml": bytes(100),
    "latin_1.toml": "[plan]\ngröße = 3\n".encode("latin-1"),
    "utf_16.toml": "[plan]\nalpha = 0.8\n".encode("utf-16"),
}

HARDWARE = "--alpha 0.8 --hardware h100-sxm --model llama-3.1-8b --draft-kind ngram"
LOAD = f"{HARDWARE} --prompt-tokens 100 --output-tokens 50 --num-requests 20 --replications 2"
PLAIN = SAMPLES / "bench" / "c1-plain.json"

# Where a bad file is given: the tables of files, and the commands that read one, FILE being its name.
FILES = [
    (BAD_TRACES, ["analyze FILE --c 0.1", "plan --trace FILE --c 0.1"]),
    (BAD_COUNTS, ["counters FILE"]),
    (BAD_TIMES, ["plan --alpha 0.8 --c 0.1 --batch 1 --cost FILE"]),
    (BAD_RUNS, [f"plan --bench {PLAIN} FILE"]),
    (BAD_REQUESTS, [f"capacity {HARDWARE} --num-requests 20 --replications 2 --requests FILE"]),
    (BAD_HARDWARE, ["plan --alpha 0.8 --model llama-3.1-8b --draft-kind ngram --hardware ./FILE"]),
    (BAD_MODELS, ["plan --alpha 0.8 --hardware h100-sxm --draft-kind ngram --model ./FILE"]),
    (BAD_PROMPTS, ["record --output out --max-new-tokens 2 --prompts FILE", "validate --prompts FILE"]),
    (BAD_CONFIGS, ["plan --config FILE"]),
]

# -------------------------------------------------------------------------------------------------- words of the command

RUN = "plan --alpha 0.8 --c 0.05"
TRACE = ROOT / "sim" / "models" / "recording.safetensors"
WORDS = [
    "--quiet", "plam", "--plan", "plan plan", "plan reproduce", "trace", "trace eat", "list", "plot nothing", "plan --alhpa 0.8",
    "plan", "plan --alpha 0.8", f"{RUN} more", f"{RUN} --alpha 0.7", f"{RUN} --quiet=loud", f"{RUN} --table points",
    f"{RUN} --format csv --table nothing", f"{RUN} --gamma 9 --max-gamma 8", f"{RUN} --max-regret 0.1", f"{RUN} --at 3",
    f"{RUN} --conditional", f"{RUN} --rejection 0.2", f"{RUN} --verify-factor 1:2,2:3", f"{RUN} --verify-factor 1:1",
    f"{RUN} --verify-factor 3:1,2:1", f"{RUN} --emit-file x.json", f"{RUN} --holdout {PLAIN}", f"{RUN} --model llama",
    f"{RUN} --draft-array a", f"{RUN} --batch 0", f"{RUN} --batch 8,4", f"{RUN} --batch ,", f"{RUN} --batch 1e30",
    f"{RUN} --batch 8 --schedule 2-8:3", f"{RUN} --batch 8 --schedule 1-8:x", f"{RUN} --batch 8 --schedule 1-4:2,6-8:1",
    "plan --alpha 0.8:0.7 --c 0.1", "plan --alpha 0.1:0.2:0.3 --c 0.1", "plan --acceptance-length 4.2 --at 3 --c 0.1",
    "plan --acceptance-length 2.9 --c 0.1", "plan --acceptance-length 2:1.5,2:1.6 --c 0.1",
    "plan --draft a --c 0.1", "plan --draft a:alpha=0.8,alpha=0.7,c=0.1",
    "plan --draft a:wings=2", "plan --draft a:alpha=0.8,c=0.1,array=x", "plan --draft a:trace=nowhere,c=0.1",
    f"plan --bench {PLAIN} {PLAIN}", "plan --bench nowhere.json", "plan --alpha 0.8 --cost nowhere",
    "plan --counters nowhere --c 0.1", "plan --trace nowhere --c 0.1", f"plan --trace {TRACE} {TRACE} --c 0.1",
    "plan --alpha 0.8 --hardware h1000 --model llama-3.1-8b", "plan --alpha 0.8 --hardware h100-sxm",
    "plan --alpha 0.8 --hardware h100-sxm --model nothing-8b", f"plan {HARDWARE} --tp 3000",
    f"plan {HARDWARE} --weight-dtype int3", f"plan {HARDWARE} --calibrate batch=1", f"plan {HARDWARE} --calibrate nothing",
    f"plan {HARDWARE} --bandwidth-efficiency 2", f"plan {HARDWARE} --c 0.1", f"plan {HARDWARE} --emit nothing",
    "capacity", f"capacity {HARDWARE}", f"capacity {LOAD} --percentile 95", f"capacity {LOAD} --prompt-tokens 0",
    f"capacity {HARDWARE} --prompt-tokens 100:x --output-tokens 50", f"capacity {LOAD} --concurrency 4 --arrival-rate 2",
    "analyze", f"analyze {TRACE} {TRACE}", f"analyze {TRACE} --target {TRACE}", f"analyze --target {TRACE}",
    f"analyze --target {TRACE} --draft {TRACE}", f"analyze {TRACE} --numbers logits", f"analyze {TRACE} --gamma 3:1",
    f"analyze {TRACE} --gamma 0", f"analyze {TRACE} --standardise target:wings=2", f"analyze {TRACE} --draft-array x",
    f"analyze {TRACE} nowhere", "analyze .", "analyze /", "analyze /dev/null", "analyze /dev/zero", "analyze /dev/full",
    f"analyze {SAMPLES / 'bench'}", "trace info nowhere", "trace check nowhere", "trace info", "trace check",
    "trace convert", f"trace convert {TRACE}", f"trace convert --output out --k 3 {TRACE}",
    f"trace convert --output out.safetensors --shard-positions 3 {TRACE}", f"trace convert --output {TRACE} {TRACE}",
    f"trace convert --tier full --output out.safetensors {TRACE}", f"trace convert --output no/way/out.safetensors {TRACE}",
    f"trace slice --sequences 3:1 --output out {TRACE}", f"trace slice --sequences x --output out {TRACE}",
    f"trace slice --tasks nothing --output out.safetensors {TRACE}",
    f"trace slice --positions 99999: --output out.safetensors {TRACE}", f"trace merge --output out {TRACE} {TRACE}",
    f"trace merge --output out {TRACE} nowhere", "trace generate", "trace generate --output out.safetensors --tokens 0",
    "trace generate --output out.safetensors --law beta --vocab 9", "trace generate --output out.safetensors --alpha 2",
    "trace generate --output out.safetensors --tasks a,b", "trace generate --output out.safetensors --law markov --stay 1",
    "trace generate --output out.safetensors --sequences 1e9 --tokens 1e6",
    "trace generate --output out.safetensors --sequences 1e12 --tokens 4e9",
    "trace generate --output out.safetensors --law beta --tier full",
    "trace generate --output out.safetensors --law dirichlet --concentration 0",
    "counters", "counters nowhere", "counters .", "counters /dev/zero", f"counters {SAMPLES}/serving/vllm_after.prom --by wings",
    f"counters {SAMPLES}/serving/vllm_requests.jsonl {SAMPLES}/serving/vllm_requests.jsonl",
    f"counters {SAMPLES}/serving/vllm_requests.jsonl --tree 3,2", f"counters {SAMPLES}/serving/vllm_requests.jsonl --tree x",
    "counters --convert nothing=3", "counters --convert vllm.mean_acceptance_length=x --gamma 3",
    "counters --convert vllm.mean_acceptance_length=9 --gamma 3", "counters --convert gamma=3", "counters --convert =",
    "counters --convert accepted_drafts_per_step=2 --gamma 1", "counters --convert alpha=0.8,gamma=3 --max-gamma 4",
    "doctor", "doctor nowhere", "doctor /dev/zero", f"doctor {TRACE} {TRACE}", f"doctor --target {TRACE}",
    f"plan --bench {SAMPLES}/bench/c1-plain.json {SAMPLES}/bench/c32-k3.json",
    f"doctor --draft-cost {SAMPLES}/serving/vllm_k4.log --hardware h100 --model llama-3.1-8b --draft-model llama-3.2-1b",
    f"doctor {SAMPLES}/llamacpp/target.kld",
    "diff", "diff nowhere nowhere", f"diff {TRACE}", f"diff {TRACE} {TRACE}", f"diff {TRACE} {SAMPLES}/serving/vllm_requests.jsonl",
    f"diff {TRACE} {TRACE} --draft-array a,b,c --gamma 2", f"diff {SAMPLES}/serving/vllm_requests.jsonl {TRACE} --draft-array x --gamma 2",
    f"diff {SAMPLES}/bench/c8-plain.json {SAMPLES}/bench/c1-k3.json", "diff /dev/zero nowhere",
    "synthetic", "synthetic --gamma 3", "synthetic --alpha 0.8", "synthetic --alpha 0.8 --gamma 0", "synthetic --alpha 0.8 --gamma 257",
    f"merge {TRACE}", "merge nowhere", "merge .", f"analyze {TRACE} --shard 1/2", f"analyze {TRACE} --shard 3/2 --part a",
    f"analyze {TRACE} --shard two --part a.part", f"analyze {TRACE} --shard 1/2 --part nowhere/a.part",
    "record --output out --sequences 2 --shard 1/3", "record --output out.safetensors --sequences 2 --shard 1/2",
    "record", "record --output out.safetensors --target nowhere", "record --output out --tasks nothing",
    "record --output out --temperature -1", "record --output out --top-p 0", "record --output out --max-new-tokens 1",
    "record --output out --temperature 0 --sequences 1000", "record --output out --max-new-tokens 5000 --sequences 1",
    "record --output no/such/file.safetensors --max-new-tokens 4 --sequences 1",
    "record --output out --sequences 1000000000 --max-new-tokens 20 --tasks code", "record --output -",
    "record --output out --tier topk --k 99999", "trace generate --output -",
    "trace generate --output out --tasks a:0.5,a:0.6", "counters nowhere --at 0",
    "list hardware h1000", "list models nothing-8b", "simulate --draft nothing", "simulate --verifier nothing",
    "simulate --source trace", "simulate --source trace --trace nowhere", "simulate --source synthetic --laws nothing",
    "simulate --source synthetic --lenience 0.3", "simulate --target nowhere",
    "simulate --schedule 1-8:3", "simulate --tree 0x0 --verifier tree", "compare nothing", "compare --tokens 0",
    "validate --tokens 0", "validate --tasks nothing", "validate --target nowhere",
    "reproduce --table table9", "reproduce --format json --table table9", "reproduce --format xml", "report", f"report {RUN[5:]}", "report --output page.html",
    f"report {RUN[5:]} --output no/way/page.html", "plot --all", "plot --theme dark", "plot optimal-gamma --points 0",
    "plot optimal-gamma --output figure.xyz", "plot optimal-gamma --output no/way/figure.svg", "plot lenience --trace nowhere",
    f"{RUN} --output .", f"{RUN} --output no/way/out", f"{RUN} --output ''", f"{RUN} --output {'n' * 300}",
    f"{RUN} --output loop", f"{RUN} --config nowhere.toml", f"{RUN} --config .", f"{RUN} --config /dev/zero",
    "plan --alpha 'a\nb\033' --c 0.1", f"plan --c 0.1 --alpha {'7' * 100}", "plan --alpha 1e-320 --c 0.1",
]

# From standard input, which is read as a file where a file is called -.
STREAMS = [
    ("analyze -", b""), ("analyze -", b"hello"), ("analyze -", RECORDING[:500]), ("analyze - -", RECORDING),
    ("counters -", b""), ("counters -", b"hello"), ("counters - -", SCRAPE), ("counters - /dev/stdin", SCRAPE),
    ("plan --alpha 0.8 --c 0.1 --cost -", b"1,2,3\n"),
    ("plan --trace - --c 0.1", b"p,q\n"),
]

# Options to which any text is legal, or whose file is looked for only where something else is, and how a command is
# called so that nothing but the option is wrong.
ANY_TEXT = {"--title", "--model", "--draft-model", "--by", "--target-array", "--draft-array", "--output", "--quiet",
            "--label", "--help", "--emit-file", "--group"}
BASES = {"plan": RUN, "report": f"report {RUN[5:]}", "capacity": f"capacity {LOAD}", "analyze": f"analyze {TRACE}",
         "counters": f"counters {SAMPLES}/serving/vllm_requests.jsonl",
         "doctor": f"doctor {SAMPLES}/serving/vllm_requests.jsonl",
         "diff": f"diff {SAMPLES}/serving/vllm_requests.jsonl {SAMPLES}/bench/c1-k3.json",
         "synthetic": "synthetic --alpha 0.8 --gamma 3",
         "trace convert": f"trace convert {TRACE}", "trace slice": f"trace slice {TRACE}",
         "trace merge": f"trace merge {TRACE}"}
COMMANDS = ["plan", "report", "capacity", "analyze", "counters", "doctor", "diff", "synthetic", "record", "trace info", "trace check",
            "trace convert", "trace slice", "trace merge", "trace generate", "list hardware", "simulate", "compare",
            "reproduce", "validate", "plot optimal-gamma", "plot speedup-map", "plot speedup-over-batch"]
OPTION = re.compile(r"^  (?:-\w,)?(--[\w-]+)(?:,--[\w-]+)* (\S+)")


def option_cases(specdec: str) -> list[Case]:
    """Every option of every command with a value that it cannot have."""
    cases = []
    for command in COMMANDS:
        listed = subprocess.run([specdec, *command.split(), "--help"], capture_output=True, encoding="utf-8", check=True)
        for line in listed.stdout.splitlines():
            option = OPTION.match(line)
            if not option or option[1] in ANY_TEXT or option[1] in BASES.get(command, command).split():
                continue
            value = "nowhere/x" if re.search("FILE|DIR", option[2]) else "wr;ong"
            cases.append(Case(f"{BASES.get(command, command)} {option[1]} '{value}'"))
    return cases


def cases_of(specdec: str) -> list[Case]:
    cases = option_cases(specdec)
    for table, commands in FILES:
        for command in commands:
            cases += [Case(command.replace("FILE", name), {name: content}) for name, content in table.items()]
    cases += [Case(words) for words in WORDS]
    cases += [Case(words, stdin=stdin) for words, stdin in STREAMS]
    return cases


# ------------------------------------------------------------------------------------------------------------ the checks


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


def check(specdec: str, case: Case, scratch: str, show: bool) -> str | None:
    """The fault in the run of a case, or None."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        for file, content in case.files.items():
            (folder / file).write_bytes(content)
        (folder / "loop").symlink_to("loop")
        before = contents(folder)
        try:
            done = subprocess.run([specdec, *shlex.split(case.words)], cwd=folder, input=case.stdin, capture_output=True,
                                  timeout=SECONDS, check=False, env={**os.environ, "TMPDIR": scratch})
        except subprocess.TimeoutExpired:
            return f"specdec {case.words}: still running after {SECONDS} s"
        said = done.stderr.decode("utf-8", "replace")
        problems = []
        if done.returncode != 2:
            problems.append(f"exit {done.returncode}")
        if not re.fullmatch(r"specdec: error: [^\n]+\n", said):
            problems.append("not one line of error")
        if done.stdout:
            problems.append("output")
        if contents(folder) != before:
            problems.append(f"files are now {', '.join(contents(folder))}")
    if show:
        print(f"$ specdec {case.words}\n  {said.strip()}")
    return f"specdec {case.words}: {'; '.join(problems)}: {said[:300]!r}" if problems else None


def main() -> int:
    specdec = str(Path(sys.argv[1]).resolve())
    cases = cases_of(specdec)
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda case: check(specdec, case, scratch, "--show" in sys.argv), cases))
    problems = [problem for problem in found if problem]
    print("\n".join(problems))
    print(f"{len(cases)} bad inputs, {len(problems)} problems")
    return 1 if problems or len(cases) < FEWEST_CASES else 0


if __name__ == "__main__":
    sys.exit(main())
