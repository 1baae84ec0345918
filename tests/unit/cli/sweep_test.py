#!/usr/bin/env python3
"""Tests specdec sweep, and the shares of sweep and simulate, as processes.

usage: sweep_test.py SPECDEC
"""

from __future__ import annotations

import csv
import io
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SPECDEC = Path()

SAVED_BY_ESTIMATE = """[capacity]
model = llama-3.1-8b
hardware = h100-sxm
kernel-times = none
tensor-parallel-size = 1
draft-kind = ngram
gamma = 3
alpha = 0.6
prompt-tokens = 200
output-tokens = 100
num-requests = 200
replications = 8
arrival-rate = 100
tpot-ms = 10
"""
PLANS = """# What --print-config writes is a sweep, too.
[plan]
model = "llama-3.1-8b"
hardware = ["h100", "l40s", "l4"]
draft-model = "llama-3.2-1b"
alpha = [0.6, "0.7:0.8"]
tp = [1, 2, 1]
context = 1000
batch = [1,   # small
         32, "64,128"]
quiet = false
format = "table"
"""
CONSTANTS = """[[plan]]
c = [0.05, 0.2]
alpha = [0.5, 0.9, 1.5]

[[plan]]
alpha = 0.5
c = 0.05
min-gain = [0, 0.5]
"""
LOADS = """[capacity]
model = llama-3.1-8b
hardware = h100
alpha = 0.7
draft-kind = ngram
gamma = 2
prompt-tokens = 100
output-tokens = 50
num-requests = 100
replications = 2
price = 2
arrival-rate = [1, 20]
tpot-ms = [0.001, 100]
"""


def run(*words: str, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([SPECDEC, *map(str, words)], capture_output=True, encoding="utf-8")
    if done.returncode != code:
        raise AssertionError(f"{words}: exit {done.returncode}, not {code}: {done.stderr}")
    return done


def document(*words: str, code: int = 0) -> dict:
    return json.loads(run(*words, "--format", "json", code=code).stdout)


def answer(of: dict) -> dict:
    """Without what runs of one question may differ in."""
    return {key: value for key, value in of.items() if key not in ("inputs", "simulated", "from_cache")}


class Sweeping(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def file(self, text: str, name: str = "sweep.toml") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def refused(self, text: str, message: str):
        path = self.file(text, "refused.toml")
        said = run("sweep", path, code=2).stderr
        self.assertEqual(said, f"specdec: error: {message.replace('FILE', str(path))}\n")

    def shares(self, of: int, parts: Path, *words: str):
        for number in random.Random(of).sample(range(1, of + 1), of):
            run(*words, "--shard", f"{number}/{of}", "--part", f"{parts}/")

    def test_each_row_is_what_plan_answers(self):
        swept = document("sweep", self.file(PLANS))
        self.assertEqual(swept["varied"], ["hardware", "alpha", "tensor_parallel_size", "batch"])
        self.assertEqual((swept["points"], swept["repeated"]), (36, 18))
        self.assertEqual(len(swept["rows"]), 48)
        deployable = [row for row in swept["rows"] if row["why"] is None]
        for row in random.Random(3).sample(deployable, 12):
            asked = document(
                "plan", "--model", "llama-3.1-8b", "--draft-model", "llama-3.2-1b", "--hardware", row["hardware"],
                "--alpha", row["alpha"], "--tp", row["tensor_parallel_size"], "--context", "1000", "--batch", row["batch"])
            point = asked["points"][0]
            self.assertEqual(row["verdict"], point["verdict"])
            if row["recommended_gamma"]:
                self.assertEqual(row["speedup"], point["speedup"]["value"])
                self.assertEqual(row["speedup_ci95"], point["speedup"]["ci95"])
                self.assertEqual(row["seconds_per_output_token"], point["seconds_per_output_token"]["speculative"])
            self.assertEqual(row["plain_seconds_per_output_token"], point["seconds_per_output_token"]["baseline"])
            gpus = row["tensor_parallel_size"]
            self.assertEqual(row["gpus"], gpus)
            for prefix in ("", "plain_"):
                seconds = row[f"{prefix}seconds_per_output_token"]
                self.assertAlmostEqual(row[f"{prefix}gpu_seconds_per_million_tokens"] / (1e6 * gpus * seconds / row["batch"]), 1)

    def test_the_front_is_that_of_comparing_every_pair(self):
        rows = document("sweep", self.file(PLANS))["rows"]
        self.assertIn(True, [row["pareto"] for row in rows])
        self.assertIn(False, [row["pareto"] for row in rows])

        def beats(a: dict, b: dict) -> bool:
            keys = ("seconds_per_output_token", "gpu_seconds_per_million_tokens")
            return a["alpha"] == b["alpha"] and all(a[k] <= b[k] for k in keys) and any(a[k] < b[k] for k in keys)

        known = [row for row in rows if row["why"] is None]
        for row in known:
            self.assertEqual(row["pareto"], not any(beats(other, row) for other in known))

    def test_layouts_that_engines_refuse_are_held_against_no_other(self):
        for command, load in (("plan", 'batch = 1\ncontext = 1000\n'),
                              ("capacity", 'prompt-tokens = 500\noutput-tokens = 100\narrival-rate = 1\ngamma = 2\n'
                                           'num-requests = 100\nreplications = 2\n')):
            placed = 'hardware = "h200"\nmodel = "llama-3.1-8b"\ndraft-model = "eagle3-llama-3.1-8b"\nalpha = 0.7\n'
            rows = document("sweep", self.file(f"[{command}]\n{placed}tp = [2, 3]\n{load}"))["rows"]
            self.assertIsNone(rows[0]["why"])
            self.assertTrue(rows[0]["pareto"])
            self.assertIn("3 accelerators cannot evenly divide 32 heads", rows[1]["why"])
            self.assertIsNone(rows[1]["pareto"])
            self.assertIsNotNone(rows[1]["seconds_per_output_token"])

    def test_what_cannot_be_priced_is_a_row_that_says_why(self):
        swept = document("sweep", self.file(CONSTANTS))
        self.assertEqual((swept["points"], swept["unpriced"], swept["repeated"]), (8, 2, 0))
        why = [row["why"] for row in swept["rows"]]
        self.assertIn("--alpha is 1.5, but must be a number in [0, 1]", why)
        self.assertEqual(sum(reason is not None for reason in why), 2)
        rates = {(row["alpha"], row["c"], row["min_gain"]): row for row in swept["rows"]}
        plan = document("plan", "--alpha", "0.9", "--c", "0.2")
        self.assertEqual(rates["0.9", 0.2, None]["recommended_gamma"], plan["decision"]["gamma"])
        self.assertTrue(all(row["pareto"] is None for row in swept["rows"]))
        run("sweep", self.file("[plan]\nalpha = 2\nc = [0.1, 0.2]\n"), code=1)
        table = list(csv.DictReader(io.StringIO(run("sweep", self.file(CONSTANTS), "--format", "csv").stdout)))
        self.assertEqual([row["why"] or None for row in table], why)
        self.assertIn("speedup_ci95_low", table[0])

    def test_loads_are_answered_as_capacity_answers_them(self):
        swept = document("sweep", self.file(LOADS))
        self.assertEqual(swept["pareto_cost"], "cost_per_million_tokens")
        row = next(row for row in swept["rows"] if (row["arrival_rate"], row["tpot_ms"]) == (20, 100))
        words = [f"--{name.strip()}={value.strip()}" for name, value in
                 (line.split("=") for line in LOADS.splitlines()[1:] if "[" not in line)]
        capacity = document("capacity", *words, "--arrival-rate", "20", "--tpot-ms", "100")
        best = capacity["scenarios"][capacity["recommended"]["scenario"]]
        self.assertEqual(row["recommended_gamma"], best["gamma"])
        self.assertEqual(row["gpus"], best["gpus"]["value"])
        self.assertEqual(row["cost_per_million_tokens"], best["cost_per_million_tokens"])
        self.assertEqual(row["seconds_per_output_token"], best["tpot_seconds"]["p50"]["value"])
        impossible = [row for row in swept["rows"] if row["tpot_ms"] == 0.001]
        self.assertEqual({row["why"] for row in impossible}, {"no scenario carries the load within the limits"})
        self.assertEqual(swept["unpriced"], len(impossible))

    def test_gpus_saved_by_the_estimate_alone_are_not_sure(self):
        (row,) = document("sweep", self.file(SAVED_BY_ESTIMATE.replace("gamma = 3", "gamma = 3\nhit-rate = 1")))["rows"]
        self.assertLess(row["gpus"], row["plain_gpus"])
        self.assertEqual(row["verdict"], "open")

    def test_at_equal_gpus_the_verdict_is_on_times(self):
        swept = document("sweep", self.file(SAVED_BY_ESTIMATE.replace("0.6", "[0.4, 0.6]").replace("rate = 100", "rate = 10")
                                            .replace("kernel-times = none", "draft-model = llama-3.2-1b")
                                            .replace("draft-kind = ngram", "price = 1").replace("gamma = 3", "gamma = 1")
                                            .replace("tpot-ms = 10", "tpot-ms = 40")))
        self.assertEqual([(row["gpus"], row["plain_gpus"], row["verdict"]) for row in swept["rows"]],
                         [(1, 1, "open"), (1, 1, "likely")])

    def test_more_gpus_than_are_given_have_a_why_and_each_row_says_what_was_given(self):
        load = LOADS.replace("arrival-rate = [1, 20]", "arrival-rate = 2000").replace("tpot-ms = [0.001, 100]", "tpot-ms = 100")
        rows = document("sweep", self.file(load + "gpus = [1, 8]\n"))["rows"]
        self.assertEqual([row["given_gpus"] for row in rows], [1, 8])
        for row in rows:
            if row["gpus"] is not None and row["gpus"] > row["given_gpus"]:
                self.assertIsNotNone(row["why"])
                self.assertIsNone(row["pareto"])
        self.assertIsNotNone(rows[0]["why"])

    def test_caches_that_do_not_fit_at_one_batch_say_nothing_of_another(self):
        rows = document("sweep", self.file('[plan]\nhardware = "l40s"\nmodel = "llama-3.1-8b"\ndraft-kind = "ngram"\n'
                                           'hit-rate = 1\nalpha = 0.7\ncontext = 4000\nbatch = "1,128"\n'))["rows"]
        self.assertIsNone(rows[0]["why"])
        self.assertIn("at batch 128", rows[1]["why"])

    def test_a_point_of_runs_is_what_plan_answers(self):
        runs = self.file("concurrency,gamma,tok/s\n1,0,100\n1,3,140\n1,5,150\n", "runs.csv")
        (row,) = document("sweep", self.file(f'[plan]\nbench = "{runs}"\ndraft-kind = ngram\n'))["rows"]
        point = document("plan", "--bench", runs, "--draft-kind", "ngram")["points"][0]
        self.assertEqual((row["recommended_gamma"], row["verdict"]), (point["gamma"], point["verdict"]))
        self.assertEqual(row["speedup"], point["speedup"]["value"])
        self.assertIsNone(row["gpus"])

    def test_warnings_and_assumptions_of_points_are_those_of_single_questions(self):
        """A warning of several points stands once; what the points do not share is in none of their assumptions."""
        swept = document("sweep", self.file(SAVED_BY_ESTIMATE.replace("0.6", "[0.6, 0.7]")))
        words = [f"--{name.strip()}={value.strip()}" for name, value in
                 (line.split("=") for line in SAVED_BY_ESTIMATE.splitlines()[1:])]
        single = document("capacity", *words)
        codes = dict.fromkeys(warning["code"] for warning in single["warnings"])
        self.assertIn("roofline_uncalibrated", codes)
        first = swept["rows"][0]
        self.assertTrue(set(first["warnings"].split()) <= set(codes))
        said = {warning["code"]: warning["message"] for warning in swept["warnings"]}
        self.assertEqual(len(said), len(swept["warnings"]))
        (own,) = [w["message"] for w in single["warnings"] if w["code"] == "roofline_uncalibrated"]
        self.assertEqual(said["roofline_uncalibrated"], f"in 2 of 2 points, of point 1: {own}")
        shared = [assumption["name"] for assumption in swept["assumptions"]]
        self.assertIn("kernel_times", shared)
        self.assertNotIn("alpha", shared)
        self.assertTrue(all(assumption in single["assumptions"] for assumption in swept["assumptions"]))
        best = single["scenarios"][single["recommended"]["scenario"]]
        self.assertEqual(first["gpus"], best["gpus"]["value"])
        self.assertEqual(first["gpus_bounds"], best["gpus"]["ci95"])

    def test_shares_merge_to_the_bits_of_one_run(self):
        file = self.file(PLANS)
        whole = answer(document("sweep", file, "--threads", "1"))
        self.assertEqual(answer(document("sweep", file, "--threads", "2")), whole)
        for of in (1, 2, 3, 7):
            parts = self.folder / f"of{of}"
            self.shares(of, parts, "sweep", file, "--threads", str(of))
            self.assertEqual(answer(document("merge", parts)), whole)
        parts = self.folder / "of3"
        merged = document("merge", parts / "1-of-3.part", parts / "3-of-3.part", "--partial")
        self.assertTrue(merged["partial"])
        codes = [warning["code"] for warning in merged["warnings"]]
        self.assertEqual((codes[0], codes.count("parts_missing")), ("parts_missing", 1))
        self.assertLessEqual(set(codes[1:]), {warning["code"] for warning in whole["warnings"]})
        self.assertEqual(merged["rows"][0] | {"pareto": None}, whole["rows"][0] | {"pareto": None})

    def test_parts_that_do_not_belong_together_are_refused_by_name(self):
        file = self.file(PLANS)
        first, second = self.folder / "1.part", self.folder / "2.part"
        run("sweep", file, "--shard", "1/2", "--part", first)
        run("sweep", file, "--shard", "2/2", "--part", second)
        self.assertIn("PART lacks the shards 2/2", run("merge", first, code=2).stderr)
        self.assertIn(f"{first}: shard is 1/2 again", run("merge", first, second, first, code=2).stderr)
        other = self.folder / "other.part"
        run("sweep", self.file(CONSTANTS), "--shard", "2/2", "--part", other)
        self.assertIn(f"{other}: file 1", run("merge", first, other, code=2).stderr)
        run("simulate", "--source", "synthetic", "--tokens", "256", "--shard", "2/2", "--part", other)
        self.assertIn(f"{other}: command is simulate, but must be sweep", run("merge", first, other, code=2).stderr)
        second.write_bytes(second.read_bytes()[:-100])
        self.assertIn(str(second), run("merge", first, second, code=2).stderr)

    def test_an_ended_run_goes_on_where_it_was(self):
        """Each kill comes at a random moment; what was answered before is not asked again."""
        file, cache = self.file(LOADS.replace("[1, 20]", "[1, 2, 3, 4, 5, 6, 7, 8]")), self.folder / "cache"
        whole = answer(document("sweep", file, "--threads", "1"))
        moments = random.Random(5)
        for _ in range(5):
            process = subprocess.Popen([SPECDEC, "sweep", file, "--cache", cache, "--quiet"], stdout=subprocess.DEVNULL)
            time.sleep(moments.uniform(0.02, 0.3))
            process.send_signal(signal.SIGKILL)
            process.wait()
        kept = len(list(cache.rglob("*.answer")))
        resumed = document("sweep", file, "--cache", cache)
        self.assertEqual(resumed["from_cache"], kept)
        self.assertEqual(answer(resumed), whole)
        again = document("sweep", file, "--cache", cache)
        priced = again["points"] - again["unpriced"]
        self.assertGreaterEqual(again["from_cache"], priced)
        self.assertEqual(answer(again), whole)

    def test_a_damaged_answer_is_made_again_and_another_question_is_not_taken_for_it(self):
        cache = self.folder / "cache"
        file = self.file('[plan]\nc = 0.1\nalpha = [0.5, 0.6]\n')
        whole = answer(document("sweep", file, "--cache", cache))
        kept = sorted(cache.rglob("*.answer"))
        self.assertEqual(len(kept), 2)
        kept[0].write_bytes(kept[0].read_bytes()[:-3])
        again = document("sweep", file, "--cache", cache)
        self.assertEqual((answer(again), again["from_cache"]), (whole, 1))
        kept[0].write_bytes(kept[1].read_bytes())
        self.assertEqual(answer(document("sweep", file, "--cache", cache)), whole)
        # The content of files belongs to the question.
        table = self.file("batch,tokens,context,seconds\n1,1,0,0.01\n1,2,0,0.011\n1,9,0,0.012\n", "t.csv")
        timed = self.file(f'[plan]\nalpha = 0.7\nc = 0.1\ncost = "{table}"\n', "timed.toml")
        before = document("sweep", timed, "--cache", cache)
        table.write_text(table.read_text().replace("0.012", "0.018"))
        after = document("sweep", timed, "--cache", cache)
        self.assertEqual(after["from_cache"], 0)
        self.assertNotEqual(answer(before), answer(after))

    def test_files_that_say_nothing_sensible_are_refused_in_one_line(self):
        self.refused("", "FILE: has no section, but must have [plan] or [capacity]")
        self.refused("alpha = 1\n", "FILE:1: no section stands above this, but must be [plan] or [capacity]")
        self.refused("[analyze]\nc = 1\n", "FILE:1: [analyze] is a section, but must be [plan] or [capacity]")
        self.refused("[plan]\nalfa = 1\n", "FILE:2: alfa is not an option of specdec plan")
        self.refused("[plan]\nalpha = []\n", "FILE:2: nothing stands where there must be at least one value")
        self.refused("[plan]\nalpha = [1, \n", "FILE:3: nothing stands where there must be a value")
        self.refused("[plan]\nmodel = \"a\n", "FILE:2: nothing stands where there must be the \" that ends the text")
        self.refused("[plan]\ngamma = [1, -2]\n", "FILE:2: --gamma is -2, but must be an integer in [0, 9007199254740992]")
        self.refused("[plan]\nc = 1\n[capacity]\n", "FILE:3: [capacity] follows [plan] in line 1, but a sweep is of one "
                                                    "command")
        self.refused("[plan]\nc = 1\nalpha = 0.1\nc = 2\n", "FILE:4: c is given in line 2 already: several values stand in "
                                                            "a list")

    def test_simulations_merge_to_the_bits_of_one_run(self):
        for words in (
            ["--source", "synthetic", "--tokens", "3000", "--max-new-tokens", "50", "--gamma", "3", "--c", "0.1"],
            ["--source", "synthetic", "--laws", "fixed", "--tokens", "2000000", "--c", "0.1"],
            ["--source", "synthetic", "--alpha", "0.8", "--tokens", "3000000", "--seed", "7"],
            ["--tokens", "300", "--max-new-tokens", "20", "--verifier", "block"],
        ):
            whole = answer(document("simulate", *words))
            for of in (1, 2, 3, 7):
                with tempfile.TemporaryDirectory() as parts:
                    self.shares(of, Path(parts), "simulate", *words)
                    self.assertEqual(answer(document("merge", parts)), whole, words)

    def test_simulations_that_cannot_be_shared_are_refused(self):
        part = self.folder / "a.part"
        words = ["simulate", "--source", "synthetic", "--tokens", "256", "--shard", "1/2"]
        self.assertIn("--shard is given, but needs --part", run(*words, code=2).stderr)
        self.assertIn("--until-error", run(*words, "--until-error", "0.1", "--part", part, code=2).stderr)
        self.assertFalse(part.exists())
        run(*words, "--part", part)
        self.assertIn("PART lacks the shards 2/2", run("merge", part, code=2).stderr)
        other = self.folder / "b.part"
        run("simulate", "--source", "synthetic", "--tokens", "256", "--seed", "2", "--shard", "2/2", "--part", other)
        self.assertIn(f"{other}: --seed is 2, but must be 1", run("merge", part, other, code=2).stderr)


if __name__ == "__main__":
    SPECDEC = Path(sys.argv.pop(1)).resolve()
    unittest.main()
