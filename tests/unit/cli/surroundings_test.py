#!/usr/bin/env python3
"""Runs the program where its surroundings are not as usual: streams in the place of files, streams that cannot be
written, limits on memory and threads, folders that others write to.

usage: surroundings_test.py SPECDEC
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SPECDEC = ""
ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "traces" / "samples"
RECORDING = ROOT / "sim" / "models" / "recording.safetensors"
REFUSED = ["plan", "--alpha", "2", "--c", "0.1"]


class Surroundings(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def bash(self, command: str, **how) -> subprocess.CompletedProcess:
        """Runs a line of shell in the folder; $S is the program."""
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env={**os.environ, "S": SPECDEC}, timeout=120,
                              capture_output=True, encoding="utf-8", errors="replace", check=False, **how)

    def document(self, command: str) -> dict:
        done = self.bash(command)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return json.loads(done.stdout)

    def assert_refused(self, done: subprocess.CompletedProcess, says: str):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Aspecdec: error: [^\n]+\n\Z")
        self.assertIn(says, done.stderr)

    def test_an_error_that_cannot_be_said_is_an_error_all_the_same(self):
        for where in ("2>&-", "2>/dev/full", "2>&- >&-"):
            self.assertEqual(self.bash(f'"$S" {" ".join(REFUSED)} {where}').returncode, 2, where)

    def test_a_closed_standard_error_is_not_the_file_that_is_opened_next(self):
        done = self.bash('"$S" plan --alpha 0.8 --c 0.05 --tokens 9 --gamma 3 --format csv --output out.csv 2>&-')
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("warning", (self.folder / "out.csv").read_text())

    def test_help_that_cannot_be_printed_is_an_error(self):
        self.assert_refused(self.bash('"$S" plan --help >/dev/full'), "standard output cannot be written")

    def test_a_loop_of_links_and_a_folder_that_may_not_be_searched_are_refused(self):
        (self.folder / "loop").symlink_to("loop")
        self.assert_refused(self.bash('"$S" plan --alpha 0.8 --c 0.1 --output loop'), "--output: loop cannot be written")
        closed = self.folder / "closed"
        closed.mkdir(mode=0)
        self.folder.chmod(0o755)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        done = self.bash('"$S" plan --alpha 0.8 --c 0.1 --output closed/out', **nobody)
        self.assert_refused(done, "closed/out cannot be written: Permission denied")

    def skip_unless_sanitizers_leave_room(self, limit):
        started = self.bash('"$S" --version', preexec_fn=limit)
        if "AddressSanitizer" in started.stderr or "failed to map segment" in started.stderr:
            self.skipTest("the sanitizer's code and tables need more addresses than the limit leaves")

    def test_more_threads_than_the_system_starts_are_refused(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))

        self.skip_unless_sanitizers_leave_room(limit)
        done = self.bash('"$S" trace generate --threads 256 --sequences 1000 --output out', preexec_fn=limit)
        self.assert_refused(done, "--threads is 256, but the system starts only ")

    def test_threads_that_the_system_does_not_start_are_named_as_they_were_given(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))

        self.skip_unless_sanitizers_leave_room(limit)
        done = self.bash('"$S" record --tier scalar --sequences 40 --threads 256 --output out', preexec_fn=limit)
        self.assert_refused(done, "--threads is 256, but the system starts only ")

    def test_files_beyond_the_limit_on_their_size_are_refused_and_leave_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        for command in ("trace generate --output out", "trace generate --output out.safetensors",
                        "plan --alpha 0.8 --c 0.1 --format json --output out.json"):
            with self.subTest(command=command):
                self.assert_refused(self.bash(f'"$S" {command}', preexec_fn=limit), "File too large")
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_gnuplot_that_does_not_start_is_no_internal_error(self):
        for script, says in (("echo cannot load libraries >&2; exit 127", "cannot load libraries"),
                             ("kill -9 $$", "signal 9 ended it")):
            gnuplot = self.folder / "gnuplot"
            gnuplot.write_text(f"#!/bin/sh\n{script}\n")
            gnuplot.chmod(0o755)
            done = self.bash('PATH=$PWD:$PATH "$S" plot speedup-map --output x.svg')
            self.assert_refused(done, "gnuplot is needed to draw, but cannot be run: " + says)

    def test_a_stream_without_end_is_refused_before_it_fills_the_disk(self):
        (self.folder / "small").mkdir()
        mounted = 'mount -t tmpfs -o size=16m none small && df small >mounted && '
        done = self.bash(f"unshare -rm bash -c '{mounted} yes | TMPDIR=$PWD/small \"$S\" counters -'")
        if not (self.folder / "mounted").exists():
            self.skipTest("no small file system can be mounted here: " + done.stderr)
        self.assert_refused(done, "-: file is longer than 8388608 bytes, half of what is free in ")

    def test_a_pipe_that_nobody_writes_to_is_named_while_it_is_waited_for(self):
        after = SAMPLES / "serving" / "vllm_after.prom"
        for option, says in (("", "specdec: waiting for what is written to the pipe p\n"), ("--quiet", "")):
            done = self.bash(f'rm -f p; mkfifo p; (sleep 2; cat {after} >p) & "$S" counters p {option}')
            self.assertEqual((done.returncode, done.stderr), (0, says))

    def test_a_trace_on_standard_input_has_its_size(self):
        document = self.document(f'"$S" trace info - --format json <{RECORDING}')
        self.assertEqual(document["size_bytes"], RECORDING.stat().st_size)

    def test_a_folder_that_cannot_be_made_and_a_full_disk_are_named_with_the_output(self):
        (self.folder / "loop").symlink_to("loop")
        done = self.bash('"$S" trace generate --output loop/trace')
        self.assert_refused(done, "loop/trace: folder is not made (Too many levels of symbolic links)")

    def test_a_trace_that_the_disk_has_no_room_for_is_refused_before_it_is_written(self):
        done = self.bash('"$S" trace generate --sequences 1e9 --tokens 1e6 --output out.safetensors')
        self.assert_refused(done, "out.safetensors: free space is ")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_configuration_without_end_is_refused(self):
        done = self.bash('"$S" plan --alpha 0.8 --c 0.1 --config /dev/zero')
        self.assert_refused(done, "/dev/zero: file is a device")

    def test_traces_times_and_runs_come_from_standard_input(self):
        by_name = self.document(f'"$S" analyze {RECORDING} --format json')
        by_stream = self.document(f'"$S" analyze - --format json <{RECORDING}')
        self.assertEqual(by_name["alpha"], by_stream["alpha"])
        file, stream = by_name["inputs"]["files"][0], by_stream["inputs"]["files"][0]
        self.assertEqual((file["size_bytes"], file["sha256"]), (stream["size_bytes"], stream["sha256"]))
        self.assertEqual(stream["path"], "-")
        times, runs = SAMPLES / "llamacpp" / "batched-bench.jsonl", SAMPLES / "bench"
        for question, words in ((f"--cost {times}", f"--cost - <{times}"),
                                (f"--bench {runs}/c1-k3.json {runs}/c1-plain.json",
                                 f"--bench - {runs}/c1-plain.json <{runs}/c1-k3.json")):
            rest = "--alpha 0.8 --c 0.1 --batch 1,2 " if "cost" in question else ""
            points = [self.document(f'"$S" plan {rest}--format json {given}')["points"] for given in (question, words)]
            self.assertEqual(*points)

    def test_a_pipe_is_read_once_and_two_of_them_are_two_files(self):
        before, after = SAMPLES / "serving" / "vllm_before.prom", SAMPLES / "serving" / "vllm_after.prom"
        gammas = [self.document(f'{given} --format json')["groups"][0]["gammas"] for given in (
            f'"$S" counters {before} {after}', f'"$S" counters <(cat {before}) <(cat {after})',
            f'mkfifo p; cat {after} >p & "$S" counters {before} p')]
        self.assertEqual(gammas[0], gammas[1])
        self.assertEqual(gammas[0], gammas[2])

    def test_one_stream_given_twice_is_refused(self):
        self.assert_refused(self.bash('"$S" counters - /dev/stdin </dev/null'), "/dev/stdin twice")

    def test_a_configuration_comes_from_standard_input(self):
        for option in ("--config -", "--config=-"):
            document = self.document(
                r'printf "[plan]\nalpha = 0.8\nc = 0.1\n" | "$S" plan --format json ' + option)
            self.assertEqual(document["closed_form"]["alpha"], 0.8)
            self.assertEqual(document["inputs"]["config"]["path"], "-")
            done = self.bash(r'printf "[plan]\nalpha = 2\nc = 0.1\n" | "$S" plan ' + option)
            self.assert_refused(done, "specdec: error: -:2: --alpha is 2")

    def test_a_configuration_comes_through_a_pipe_with_its_facts(self):
        config = r"[plan]\nalpha = 0.8\nc = 0.1\n"
        document = self.document(f'"$S" plan --format json --config <(printf "{config}")')
        self.assertEqual(document["inputs"]["config"]["size_bytes"], len(config.encode().decode("unicode_escape")))
        self.assertEqual(document["closed_form"]["alpha"], 0.8)

    def test_of_two_recordings_into_one_folder_at_once_one_is_refused(self):
        record = '"$S" record --output run --tier scalar --sequences 6 --max-new-tokens 24 --quiet --seed'
        both = self.bash(f'{record} 1 >1.out 2>1.err & first=$!; {record} 2 >2.out 2>2.err; echo $?; wait $first; echo $?')
        self.assertEqual(sorted(both.stdout.split()), ["0", "2"])
        said = (self.folder / "1.err").read_text() + (self.folder / "2.err").read_text()
        # Whoever comes late enough finds the other's recording whole.
        self.assertRegex(said, "folder is being written by another run|metadata ")
        self.assertEqual(self.bash('"$S" trace check run').returncode, 0)

    def test_of_two_traces_into_one_file_at_once_none_is_torn(self):
        make = '"$S" trace generate --sequences 2000 --tokens 1000 --output t.safetensors --quiet --seed'
        both = self.bash(f'{make} 1 2>1.err & first=$!; {make} 2 2>2.err; echo $? >2; wait $first; echo $? >1')
        self.assertEqual(both.stderr, "")
        for run in ("1", "2"):
            if (self.folder / run).read_text() == "2\n":
                self.assertIn("file is being written by another run", (self.folder / f"{run}.err").read_text())
        self.assertEqual(self.bash('"$S" trace check t.safetensors').returncode, 0)
        self.assertFalse((self.folder / "t.safetensors.partial").exists())


if __name__ == "__main__":
    SPECDEC = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
