#!/usr/bin/env python3
"""Runs specdec-mpi on several ranks of this machine: the answer is that of `specdec analyze`, whatever becomes of the ranks on
the way.

usage: ranks_test.py MPIRUN SPECDEC SPECDEC_MPI
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MPIRUN = SPECDEC = SPECDEC_MPI = ""
KILLS = 10
ANALYZE = ["--c", "0.05", "--samples", "4", "--threads", "1", "--format", "json"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def without_inputs(document: str) -> dict:
    return {key: value for key, value in json.loads(document).items() if key != "inputs"}


def ranks_of(run: subprocess.Popen) -> list[int]:
    children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, encoding="utf-8", check=False)
    return [int(pid) for pid in children.stdout.split()]


def end(rank: int):
    try:
        os.kill(rank, signal.SIGKILL)
    except ProcessLookupError:
        pass


def is_zombie(rank: int) -> bool:
    status = Path(f"/proc/{rank}/status")
    return not status.exists() or "State:\tZ" in status.read_text()


class Ranks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def specdec(self, *words: str) -> str:
        return subprocess.run([SPECDEC, *words], capture_output=True, encoding="utf-8", check=True).stdout

    def recording(self, *words: str) -> str:
        path = str(self.folder / "trace")
        self.specdec("trace", "generate", "--tasks", "easy:0.9,hard:0.5", *words, "--output", path)
        return path

    def start(self, ranks: int, *words: str) -> subprocess.Popen:
        return subprocess.Popen([MPIRUN, "--oversubscribe", "-n", str(ranks), SPECDEC_MPI, *words], env=ENVIRONMENT,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def on_ranks(self, ranks: int, *words: str) -> subprocess.CompletedProcess:
        run = self.start(ranks, *words)
        out, err = run.communicate(timeout=300)
        return subprocess.CompletedProcess(run.args, run.returncode, out, err)

    def assert_same(self, done: subprocess.CompletedProcess, whole: str):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(without_inputs(done.stdout), without_inputs(whole))

    def test_shares_of_simulations_and_sweeps_answer_to_the_bits_of_one_process(self):
        sweep = self.folder / "sweep.toml"
        sweep.write_text('[plan]\nmodel = "llama-3.1-8b"\nhardware = ["h100", "l4"]\nalpha = [0.6, 0.7]\n'
                         'draft-model = "llama-3.2-1b"\nbatch = [1, 8]\ntp = [1, 2]\n')
        simulation = ["simulate", "--source", "synthetic", "--tokens", "3000", "--max-new-tokens", "50", "--c", "0.1"]
        for words in (["sweep", str(sweep)], simulation):
            whole = json.loads(self.specdec(*words, "--format", "json"))
            for ranks in (1, 2, 5):
                done = self.on_ranks(ranks, *words, "--format", "json")
                self.assertEqual(done.returncode, 0, done.stderr)
                answer = json.loads(done.stdout)
                for of_run in ("inputs", "simulated"):
                    whole.pop(of_run, None)
                    answer.pop(of_run, None)
                self.assertEqual(answer, whole)
        self.assertEqual(list(Path(tempfile.gettempdir()).glob("specdec-mpi-*")), [])
        refused = self.on_ranks(3, *simulation, "--shard", "1/2")
        self.assertEqual(refused.returncode, 2)
        self.assertEqual(refused.stderr.count("--shard is not an option of simulate"), 1)

    def test_any_number_of_ranks_answers_to_the_bits_of_one_process(self):
        for tier in ("full", "topk", "scalar"):
            trace = self.recording("--law", "logit-noise", "--vocab", "300", "--tier", tier, "--sequences", "40", "--tokens", "50",
                                   *(["--k", "20"] if tier == "topk" else []))
            whole = self.specdec("analyze", trace, *ANALYZE)
            for ranks in (1, 2, 4):
                with self.subTest(tier=tier, ranks=ranks):
                    self.assert_same(self.on_ranks(ranks, "analyze", trace, *ANALYZE, "--unit-positions", "150"), whole)
            subprocess.run(["rm", "-r", trace], check=True)

    def test_ranks_leave_one_part_and_one_file_of_output(self):
        trace = self.recording("--sequences", "60", "--tokens", "50")
        part, output = str(self.folder / "all.part"), self.folder / "out.json"
        words = ["analyze", trace, *ANALYZE, "--unit-positions", "200", "--part", part, "--output", str(output)]
        done = self.on_ranks(3, *words)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        whole = self.specdec("analyze", trace, *ANALYZE)
        self.assertEqual(without_inputs(output.read_text()), without_inputs(whole))
        self.assertEqual(without_inputs(self.specdec("merge", part, "--format", "json")), without_inputs(whole))

    def test_a_wrong_option_is_said_once_with_its_exit_code(self):
        for words, says in ((["analyze", "missing"], "missing: file is unreadable"),
                            (["analyze", "missing", "--c", "x"], "--c is x"),
                            (["analyze", "missing", "--shard", "1/2"], "--shard is given, but the ranks are dealt"),
                            (["record"], "record is not a command")):
            done = self.on_ranks(4, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(re.findall("specdec: error: .*", done.stderr), [next(
                line for line in done.stderr.splitlines() if says in line)])

    def test_a_rank_that_fails_names_its_file_and_ends_all(self):
        trace = self.recording("--law", "logit-noise", "--vocab", "300", "--tier", "full", "--sequences", "40", "--tokens",
                               "50", "--shard-positions", "500")
        shard = Path(trace) / "shard-000002.safetensors"
        content = bytearray(shard.read_bytes())
        (length,) = struct.unpack_from("<Q", content)
        tensors = json.loads(content[8:8 + length])
        begin, end = next(tensor["data_offsets"] for tensor in tensors.values() if len(tensor.get("shape", [])) == 2)
        content[8 + length + begin:8 + length + end] = b"\xff" * (end - begin)
        shard.write_bytes(content)
        done = self.on_ranks(4, "analyze", trace, *ANALYZE, "--unit-positions", "150")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        for line in re.findall("specdec: error: .*", done.stderr):
            self.assertIn(str(shard), line)
        self.assertIn("specdec: error: ", done.stderr)

    def test_a_rank_that_is_killed_at_any_moment_costs_no_unit_that_was_kept(self):
        trace = self.recording("--sequences", "40000", "--tokens", "100")
        whole = self.specdec("analyze", trace, *ANALYZE)
        words = ["analyze", trace, *ANALYZE, "--unit-positions", "40000", "--checkpoint", str(self.folder / "kept")]
        moments = random.Random(3)
        killed = 0
        for _ in range(10 * KILLS):
            run = self.start(moments.choice((2, 3, 4)), *words)
            time.sleep(moments.uniform(0.3, 1.5))
            ranks = ranks_of(run)
            if ranks:
                end(moments.choice(ranks))
            try:
                run.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                # mpirun 4.1.4 itself may wait for ever when a rank dies while it starts; the ranks have ended.
                self.assertEqual([rank for rank in ranks_of(run) if not is_zombie(rank)], [])
                run.kill()
                run.communicate()
            killed += run.returncode != 0
            if killed == KILLS:
                break
        self.assertEqual(killed, KILLS)
        last = self.on_ranks(2, *words)
        self.assert_same(last, whole)
        found = re.search(r"specdec: (\d+) units were done already", last.stderr)
        self.assertIsNotNone(found, last.stderr)
        self.assertTrue(0 < int(found[1]) <= 100)
        # The program of one process goes on from what ranks left.
        alone = subprocess.run([SPECDEC, *words], capture_output=True, encoding="utf-8", check=False)
        self.assert_same(alone, whole)
        self.assertIn("specdec: 100 units were done already", alone.stderr)

    def test_the_program_of_one_process_loads_no_mpi(self):
        needed = {program: subprocess.run(["ldd", program], capture_output=True, encoding="utf-8", check=True).stdout
                  for program in (SPECDEC, SPECDEC_MPI)}
        self.assertNotIn("libmpi", needed[SPECDEC])
        self.assertIn("libmpi", needed[SPECDEC_MPI])


if __name__ == "__main__":
    MPIRUN, SPECDEC, SPECDEC_MPI = (sys.argv.pop(1) for _ in range(3))
    unittest.main()
