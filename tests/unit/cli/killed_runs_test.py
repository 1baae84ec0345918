#!/usr/bin/env python3
"""Kills runs by SIGKILL at random moments and starts them again: what was done is there, and the result is to the bit that of
a run that nobody killed. And lets the disk fill up.

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

    def test_a_disk_that_is_full_is_named_and_no_half_of_a_part_is_left(self):
        (self.folder / "small").mkdir()
        recording, part = self.folder / "trace", self.folder / "small" / "1.part"
        self.run_whole("trace", "generate", "--tasks", "easy:0.9,hard:0.5", "--sequences", "3000", "--tokens", "40",
                       "--output", str(recording))
        analyze = f"'{SPECDEC}' analyze {recording} --c 0.05 --part {part} --quiet"
        whole = self.run_whole("analyze", str(recording), "--c", "0.05")
        # A part is a third of a megabyte here.
        script = f"""
            mount -t tmpfs -o size=100k none {part.parent} || exit 77
            {analyze} >{self.folder}/out 2>{self.folder}/err
            echo $? >{self.folder}/code
            ls {part.parent} >{self.folder}/listed
            mount -o remount,size=8m {part.parent}
            {analyze}
        """
        done = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, encoding="utf-8", check=False)
        if not (self.folder / "code").exists():
            self.skipTest("no small file system can be mounted here: " + done.stderr)
        said = (self.folder / "err").read_text()
        self.assertEqual((self.folder / "code").read_text(), "2\n", said)
        self.assertRegex(said, r"\Aspecdec: error: [^\n]*/1.part: file is not writable \(No space left on device\), "
                               r"but must be writable\n\Z")
        self.assertEqual((self.folder / "out").read_text(), "")
        self.assertEqual((self.folder / "listed").read_text(), "")
        self.assertEqual((done.returncode, done.stdout), (0, whole.stdout), done.stderr)


if __name__ == "__main__":
    SPECDEC = sys.argv.pop(1)
    unittest.main()
