#!/usr/bin/env python3
"""Kills runs by SIGKILL at random moments and starts them again: what was done is there, and the result is to the bit that of
a run that nobody killed. And lets the disk fill up in the middle.

usage: killed_runs_test.py SPECDEC
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SPECDEC = ""
KILLS = 10
ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "transformer"


def without_inputs(document: str) -> dict:
    return {key: value for key, value in json.loads(document).items() if key != "inputs"}


class KilledRuns(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_whole(self, *words: str) -> subprocess.CompletedProcess:
        done = subprocess.run([SPECDEC, *words], capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def kill_at_random(self, words: list[str], seconds: float, seed: int) -> None:
        """Starts the command again and again and kills it KILLS times, each time at a moment within so many seconds, unless one
        of the runs was done before."""
        moments = random.Random(seed)
        for _ in range(KILLS):
            run = subprocess.Popen([SPECDEC, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(moments.uniform(0, seconds))
            run.kill()
            if run.wait() == 0:
                return

    def test_an_analysis_with_a_checkpoint_loses_nothing_and_answers_to_the_same_bits(self):
        recording, kept = str(self.folder / "trace"), str(self.folder / "kept")
        self.run_whole("trace", "generate", "--tasks", "easy:0.9,hard:0.5", "--sequences", "4000", "--tokens", "100",
                       "--output", recording)
        analyze = ["analyze", recording, "--c", "0.05", "--samples", "4", "--threads", "1", "--format", "json"]
        begin = time.monotonic()
        whole = self.run_whole(*analyze)
        seconds = time.monotonic() - begin
        analyze += ["--checkpoint", kept, "--unit-positions", "5000"]
        self.kill_at_random(analyze, seconds, 1)
        last = self.run_whole(*analyze)
        self.assertEqual(without_inputs(last.stdout), without_inputs(whole.stdout))
        found = re.fullmatch(r"specdec: (\d+) units were done already, in .*\n", last.stderr)
        self.assertIsNotNone(found, last.stderr)
        self.assertTrue(0 < int(found[1]) <= 80, last.stderr)
        again = self.run_whole(*analyze)
        self.assertEqual(without_inputs(again.stdout), without_inputs(whole.stdout))
        self.assertIn("specdec: 80 units were done already", again.stderr)
        self.assertEqual(self.run_whole(*analyze, "--quiet").stderr, "")

    def test_a_recording_loses_no_whole_shard_and_has_the_same_bytes(self):
        words = ["record", "--target", str(FIXTURES / "llama_gqa"), "--draft", str(FIXTURES / "llama_gqa"), "--prompts",
                 str(FIXTURES / "prompts.jsonl"), "--max-new-tokens", "100", "--sequences", "60", "--threads", "1",
                 "--shard-positions", "300"]
        whole, killed = self.folder / "whole", self.folder / "killed"
        begin = time.monotonic()
        self.run_whole(*words, "--output", str(whole))
        seconds = time.monotonic() - begin
        words += ["--output", str(killed)]
        self.kill_at_random(words, seconds / 2, 2)
        there = len(list(killed.glob("*.safetensors")))
        last = self.run_whole(*words, "--format", "json")
        self.assertEqual(json.loads(last.stdout)["resumed_sequences"], min(3 * there, 60))
        self.assertEqual({file.name: file.read_bytes() for file in killed.iterdir()},
                         {file.name: file.read_bytes() for file in whole.iterdir()})

    def test_a_share_of_a_recording_that_was_killed_is_recorded_again_to_the_same_bytes(self):
        words = ["record", "--target", str(FIXTURES / "llama_gqa"), "--draft", str(FIXTURES / "llama_gqa"), "--prompts",
                 str(FIXTURES / "prompts.jsonl"), "--max-new-tokens", "100", "--sequences", "60", "--threads", "1"]
        whole, killed = self.folder / "whole", self.folder / "killed"
        begin = time.monotonic()
        self.run_whole(*words, "--output", str(self.folder / "all"))
        seconds = time.monotonic() - begin
        for folder in (whole, killed):
            for share in ("1/2", "2/2"):
                share_of = [*words, "--shard", share, "--output", str(folder)]
                if folder == killed:
                    self.kill_at_random(share_of, seconds / 2, int(share[0]))
                self.run_whole(*share_of)
        self.assertEqual({file.name: file.read_bytes() for file in killed.iterdir()},
                         {file.name: file.read_bytes() for file in whole.iterdir()})
        # A task that is requeued although it had ended.
        again = self.run_whole(*words, "--shard", "1/2", "--output", str(whole), "--format", "json")
        self.assertRegex(again.stderr, r"\Aspecdec: share 1/2 was done already, in .*1-of-2.safetensors\n\Z")
        self.assertEqual(json.loads(again.stdout)["resumed_sequences"], 30)
        other = subprocess.run([SPECDEC, *words, "--seed", "7", "--shard", "1/2", "--output", str(whole)],
                               capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertEqual({file.name: file.read_bytes() for file in killed.iterdir()},
                         {file.name: file.read_bytes() for file in whole.iterdir()})

    def test_a_disk_that_fills_up_in_the_middle_is_named_and_what_was_kept_stays(self):
        (self.folder / "small").mkdir()
        recording, kept = self.folder / "trace", self.folder / "small" / "kept"
        self.run_whole("trace", "generate", "--tasks", "easy:0.9,hard:0.5", "--sequences", "3000", "--tokens", "40",
                       "--output", str(recording))
        analyze = f"'{SPECDEC}' analyze {recording} --c 0.05 --samples 4 --format json"
        whole = self.run_whole("analyze", str(recording), "--c", "0.05", "--samples", "4", "--format", "json")
        # A checkpoint is a third of a megabyte here, so that beside the last one the next has no room.
        script = f"""
            mount -t tmpfs -o size=600k none {kept.parent} || exit 77
            {analyze} --checkpoint {kept} --unit-positions 5000 >{self.folder}/out 2>{self.folder}/err
            echo $? >{self.folder}/code
            ls {kept} >{self.folder}/listed
            mount -o remount,size=8m {kept.parent}
            {analyze} --checkpoint {kept} --unit-positions 5000
        """
        done = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, encoding="utf-8", check=False)
        if not (self.folder / "code").exists():
            self.skipTest("no small file system can be mounted here: " + done.stderr)
        said = (self.folder / "err").read_text()
        self.assertEqual((self.folder / "code").read_text(), "2\n", said)
        self.assertRegex(said, r"\Aspecdec: error: [^\n]*/0.checkpoint: file is not writable \(No space left on device\), "
                               r"but must be writable\n\Z")
        self.assertEqual((self.folder / "out").read_text(), "")
        self.assertEqual((self.folder / "listed").read_text(), "0.checkpoint\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\Aspecdec: \d+ units were done already")
        self.assertEqual(without_inputs(done.stdout), without_inputs(whole.stdout))


if __name__ == "__main__":
    SPECDEC = sys.argv.pop(1)
    unittest.main()
