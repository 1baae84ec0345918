#!/usr/bin/env python3
"""Gives what `specdec plan --emit` writes to vLLM's and SGLang's own parsers, and asks their own look-ups for the number of
drafts at every batch. scripts/test_engines runs it in the environment that it makes: vLLM 0.33.0, SGLang 0.5.23.

No GPU is there and no model: the device is told to be a CPU, and a stand-in takes the place of the files that vLLM reads
of a target and a draft (`Model`). All that parses, checks and looks up is the engines'.

usage: engines_test.py SPECDEC
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import vllm.platforms
from vllm.platforms.cpu import CpuPlatform

vllm.platforms._current_platform = CpuPlatform()

from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams, resolve_candidate_steps_from_config
from transformers import LlamaConfig
from vllm.config import ParallelConfig, speculative
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup

SPECDEC = ""
ROOT = Path(__file__).resolve().parents[2]
BENCH = ["--bench", *sorted(str(f) for f in (ROOT / "traces/samples/bench").glob("*.json"))]
HARDWARE = ["--alpha", "0.8", "--hardware", "h100", "--model", "llama-3.1-8b", "--batch", "1,16,64,256", "--context", "300",
            "--max-num-seqs", "256"]
HEAD = ["--draft-kind", "eagle", "--draft-model", "org/head"]
# Plans that are emitted, by name, and what vLLM calls the method.
PLANS = {
    "draft model": ([*BENCH, "--draft-model", "org/draft"], "draft_model"),
    "head": ([*BENCH, *HEAD], "eagle3"),
    "head, server limited": ([*BENCH, *HEAD, "--max-num-seqs", "62"], "eagle3"),
    "head, fewer than planned": ([*BENCH, *HEAD, "--max-num-seqs", "40"], "eagle3"),
    "priced head": ([*HARDWARE, "--draft-model", "eagle3-llama-3.1-8b"], "eagle3"),
    "priced draft": ([*HARDWARE, "--draft-model", "llama-3.2-1b"], "draft_model"),
    "slow draft, none at large batches": ([*HARDWARE, "--draft-model", "llama-3.2-3b"], "draft_model"),
    "next-token module": ([*BENCH, "--draft-kind", "mtp"], "mtp"),
    "n-grams": ([*BENCH, "--draft-kind", "ngram"], "ngram"),
    "suffixes": ([*BENCH, "--draft-kind", "suffix"], "suffix"),
    "DFlash": ([*BENCH, "--draft-kind", "parallel", "--draft-model", "org/dflash"], "dflash"),
    "constants": (["--alpha", "0.7", "--c", "0.05", "--draft-model", "org/draft"], "draft_model"),
}


class Model:
    """The part of a model's files that vLLM reads: everything that it does not ask for by name is unset."""

    def __init__(self, model: str = "target", **given):
        self.model = self.tokenizer = model
        self.max_model_len = 4096
        kind = "deepseek_mtp" if model == "module" else "llama"
        self.hf_config = self.hf_text_config = LlamaConfig(num_hidden_layers=1, architectures=["LlamaForCausalLM"])
        self.hf_config.model_type = kind
        self.architectures = ["LlamaForCausalLM"]
        self.registry = SimpleNamespace(inspect_model_cls=lambda names, _: (None, names[0]))
        self.runner = given.get("runner", "generate")
        self.hf_overrides = None

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("get_") or name.startswith("using_") or name.startswith("verify_"):
            return {"get_vocab_size": lambda: 32000, "get_hidden_size": lambda: 4096,
                    "get_num_experts": lambda: 0, "using_transformers_backend": lambda: False}.get(name, lambda *_: None)
        return None


class Emitted:
    """The file that `specdec plan ... --emit ENGINE` writes, and the words that start the server."""

    def __init__(self, options: list[str], engine: str, folder: Path):
        self.file = folder / "config"
        command = [SPECDEC, "plan", *options, "--emit", engine, "--emit-file", str(self.file), "--format", "json"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        answer = json.loads(done.stdout)
        config = answer["config"]
        self.text = self.file.read_text()
        self.schedule = answer["decision"]["schedule"]
        line = config["command"].replace("FILE", str(self.file))
        line = line.replace("\\\n", " ").replace("'<TARGET>'", "org/target")
        words = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, encoding="utf-8", check=True)
        self.words = words.stdout.split("\0")[:-1]

    def gammas(self) -> dict[int, int]:
        """By batch, as far as the plan goes."""
        return {batch: one["gamma"] for one in self.schedule for batch in range(one["from"], one["to"] + 1)}


def of_vllm(words: list[str]):
    """vLLM's arguments, as `vllm serve MODEL ...` parses them, and its configuration of drafts; None without drafts."""
    assert words[:2] == ["vllm", "serve"], words
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    # A name that is no folder would be looked for at a hub.
    args = EngineArgs.from_cli_args(parser.parse_args(["--model", tempfile.gettempdir(), *words[3:]]))
    if args.speculative_config is None:
        return args, None
    given = dict(args.speculative_config)
    model = Model("module") if given["method"] == "mtp" else Model()
    return args, speculative.SpeculativeConfig(**given, target_model_config=model, target_parallel_config=ParallelConfig())


def gammas_of_vllm(config, largest: int) -> dict[int, int]:
    """As its scheduler looks them up."""
    if config is None:
        return dict.fromkeys(range(1, largest + 1), 0)
    if not config.num_speculative_tokens_per_batch_size:
        return dict.fromkeys(range(1, largest + 1), config.num_speculative_tokens)
    table = build_dynamic_sd_schedule_lookup(config.num_speculative_tokens_per_batch_size, vllm_max_batch_size=largest,
                                             vllm_num_speculative_tokens=config.num_speculative_tokens)
    return dict(enumerate(table[1:], 1))


def of_sglang(words: list[str]) -> argparse.Namespace:
    assert words[:3] == ["python", "-m", "sglang.launch_server"], words
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser.parse_args(words[3:])


def gammas_of_sglang(args: argparse.Namespace, largest: int) -> dict[int, int]:
    if not args.speculative_adaptive:
        gamma = 0
        if args.speculative_algorithm:
            gamma = args.speculative_num_steps or args.speculative_num_draft_tokens - 1
        return dict.fromkeys(range(1, largest + 1), gamma)
    params = AdaptiveSpeculativeParams(args.speculative_num_steps, args.speculative_adaptive_config)
    params.set_cuda_graph_bs(args.cuda_graph_bs_decode)
    return {batch: params.get_steps_for_batch(batch) for batch in range(1, largest + 1)}


class Engines(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        for name, put in (("ModelConfig", Model), ("has_arctic_inference", lambda: True)):
            self.addCleanup(setattr, speculative, name, getattr(speculative, name))
            setattr(speculative, name, put)

    def test_vllm_takes_what_is_emitted_and_drafts_as_planned_at_every_batch(self):
        scheduled = 0
        for name, (options, method) in PLANS.items():
            with self.subTest(name):
                emitted = Emitted(options, "vllm", self.folder)
                args, config = of_vllm(emitted.words)
                planned = emitted.gammas()
                self.assertEqual(gammas_of_vllm(config, max(planned)), planned)
                self.assertEqual(config.method, method)
                self.assertEqual(0 in planned.values(), name.startswith("slow draft"))
                scheduled += len(set(planned.values())) > 1
                if "--max-num-seqs" in options:
                    self.assertEqual(str(args.max_num_seqs), options[options.index("--max-num-seqs") + 1])
        self.assertGreater(scheduled, 8)

    def test_sglang_takes_what_is_emitted_and_drafts_as_planned_at_every_batch(self):
        adaptive = 0
        for name, (options, method) in PLANS.items():
            # SGLang looks up no suffixes, and drafts one length with a draft model: none, where that is the best one.
            if method == "suffix" or name.startswith("slow draft"):
                continue
            with self.subTest(name):
                emitted = Emitted(options, "sglang", self.folder)
                args = of_sglang(emitted.words)
                planned = emitted.gammas()
                self.assertEqual(gammas_of_sglang(args, max(planned)), planned)
                if args.speculative_adaptive:
                    adaptive += 1
                    # Buffers are sized for these alone.
                    self.assertEqual(resolve_candidate_steps_from_config(str(emitted.file)), sorted(set(planned.values())))
        self.assertGreater(adaptive, 3)

    def test_a_schedule_that_is_one_batch_off_is_noticed(self):
        emitted = Emitted(PLANS["head"][0], "vllm", self.folder)
        config = of_vllm(emitted.words)[1]
        schedule = [list(entry) for entry in config.num_speculative_tokens_per_batch_size]
        schedule[0][1] += 1
        schedule[1][0] += 1
        config.num_speculative_tokens_per_batch_size = schedule
        self.assertNotEqual(gammas_of_vllm(config, 62), emitted.gammas())
        emitted = Emitted(PLANS["head"][0], "sglang", self.folder)
        args = of_sglang(emitted.words)
        args.cuda_graph_bs_decode = [8, 16, 62]
        self.assertNotEqual(gammas_of_sglang(args, 62), emitted.gammas())

    def test_the_parsers_refuse_what_they_do_not_know(self):
        with self.assertRaises(Exception):
            of_vllm(["vllm", "serve", "m", "--speculative-config", '{"method": "ngram", "num_speculative_tokns": 3}'])
        with self.assertRaises(SystemExit):
            of_sglang(["python", "-m", "sglang.launch_server", "--model-path", "m", "--speculative-steps", "3"])


if __name__ == "__main__":
    SPECDEC = sys.argv.pop(1)
    unittest.main()
