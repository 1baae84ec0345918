#!/usr/bin/env python3
"""The shipped pair by transformers: the recipe of docs/trace_format.md runs, and tokens and logits are specdec's.

usage: run_transformers_recipe.py PROJECT SPECDEC

Needs transformers (4.38 or later), torch, safetensors and sentencepiece in the Python that SPECDEC_TRANSFORMERS_PYTHON
names, or in this one; they are gigabytes, so that where they are not the test is skipped (exit code 77).
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
LARGEST_DIFFERENCE = 1e-5  # of a probability; 4e-6 was seen over 9.4 million of them

COMPARE = """
import json
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

trace, prompts = load_file("greedy.safetensors"), [json.loads(line)["text"] for line in open("prompts.jsonl")]
worst = 0
for name, rows in (("target", "p.probs"), ("draft", "q.probs")):
    tokenizer = AutoTokenizer.from_pretrained(f"sim/models/{name}")
    model = AutoModelForCausalLM.from_pretrained(f"sim/models/{name}").float()
    for number, prompt in enumerate(prompts):
        ids, mine = tokenizer(prompt).input_ids, trace["seq"] == number
        assert tokenizer.decode(ids[1:]) == prompt, f"{name} does not give prompt {number} back"
        text = torch.tensor([ids + trace["token"][mine].tolist()])
        with torch.inference_mode():
            theirs = model(text).logits[0, len(ids) - 1 : -1]
        if name == "target":
            assert theirs.argmax(-1).tolist() == trace["token"][mine].tolist(), f"prompt {number} goes on otherwise"
        ours = torch.tensor(trace[rows][mine])
        worst = max(worst, float((theirs.softmax(-1) - ours).abs().max()))
print(worst)
"""


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        sys.exit(f"{command} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    project, specdec = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    python = os.environ.get("SPECDEC_TRANSFORMERS_PYTHON", sys.executable)
    modules = "import transformers, torch, safetensors, sentencepiece"
    if subprocess.run([python, "-c", modules], capture_output=True, check=False).returncode != 0:
        print(f"skipped: {python} has not all of transformers, torch, safetensors and sentencepiece")
        sys.exit(SKIPPED)
    page = (project / "docs/trace_format.md").read_text(encoding="utf-8")
    recipe = next(block for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
                  if "from transformers" in block)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sim").symlink_to(project / "sim")
        run([python, "-c", recipe], folder)
        told = run([specdec, "analyze", "trace.safetensors"], folder)
        if "see nothing against it" not in " ".join(told.split()):
            sys.exit(f"the recipe's text is not the target's own:\n{told}")
        prompts = (project / "sim/models/prompts.jsonl").read_text(encoding="utf-8").splitlines()[::12]
        (folder / "prompts.jsonl").write_text("\n".join(prompts) + "\n", encoding="utf-8")
        run([specdec, "record", "--target", "sim/models/target", "--draft", "sim/models/draft", "--prompts",
             "prompts.jsonl", "--temperature", "0", "--max-new-tokens", "32", "--output", "greedy.safetensors"], folder)
        worst = float(run([python, "-c", COMPARE], folder))
        if worst > LARGEST_DIFFERENCE:
            sys.exit(f"probabilities differ by {worst}, but may by {LARGEST_DIFFERENCE}")


if __name__ == "__main__":
    main()
