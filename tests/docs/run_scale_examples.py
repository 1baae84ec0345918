#!/usr/bin/env python3
"""Runs the scripts of examples/scale as the launchers that they are for do, and holds what is merged against one run.

usage: run_scale_examples.py SPECDEC
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SPECDEC = Path()
SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "scale"
OPTIONS = ["--c", "0.05", "--gamma", "1:8"]


class Scripts(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "specdec").symlink_to(SPECDEC)
        self.recording = str(self.folder / "recording")
        self.run_in_shell("specdec", "trace", "generate", "--tasks", "easy:0.9,hard:0.5", "--sequences", "40",
                          "--tokens", "60", "--output", self.recording)
        self.whole = self.run_in_shell("specdec", "analyze", self.recording, *OPTIONS)

    def run_in_shell(self, *words: str, **variables: str) -> str:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("SLURM_", "OMPI_", "PMI_")) and name not in ("RANK", "WORLD_SIZE")}
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False,
                              env={**kept, **variables, "PATH": path})
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout

    def merged(self, parts: Path) -> str:
        return self.run_in_shell("specdec", "merge", str(parts))

    def test_an_array_of_slurm(self) -> None:
        parts = self.folder / "parts"
        for task in range(3, 9):
            self.run_in_shell(str(SCRIPTS / "slurm_array.sh"), self.recording, str(parts), *OPTIONS,
                              SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_MIN="3", SLURM_ARRAY_TASK_MAX="8",
                              SLURM_ARRAY_TASK_COUNT="6", SLURM_CPUS_PER_TASK="2")
        self.assertEqual(self.merged(parts), self.whole)

    def test_processes_of_one_machine(self) -> None:
        printed = self.run_in_shell(str(SCRIPTS / "xargs.sh"), self.recording, "5", "2", *OPTIONS)
        self.assertEqual(printed, self.whole)

    def test_ranks_of_torchrun_and_of_mpirun(self) -> None:
        for rank, size in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
            parts = self.folder / rank
            for i in range(4):
                self.run_in_shell(str(SCRIPTS / "ranks.sh"), self.recording, str(parts), *OPTIONS,
                                  **{rank: str(i), size: "4"})
            self.assertEqual(self.merged(parts), self.whole)


if __name__ == "__main__":
    SPECDEC = Path(sys.argv.pop(1)).resolve()
    unittest.main()
