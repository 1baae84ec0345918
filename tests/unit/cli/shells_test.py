#!/usr/bin/env python3
"""Completes command lines in the shells themselves.

usage: shells_test.py SPECDEC
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SPECDEC = ""


def shell(*words: str, folder: str | None = None) -> subprocess.CompletedProcess:
    path = f"{Path(SPECDEC).parent}:{os.environ['PATH']}"
    return subprocess.run(words, capture_output=True, encoding="utf-8", timeout=60, check=False, cwd=folder,
                          env={**os.environ, "PATH": path, "HOME": folder or "/tmp", "TERM": "xterm"})


def needs(program: str):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Completion(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        (Path(self.folder) / "recording.jsonl").touch()

    def script(self, name: str) -> str:
        done = shell("specdec", "completion", name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout


class Bash(Completion):
    def completed(self, *words: str) -> list[str]:
        given = " ".join(f"'{word}'" for word in words)
        line = (f'source <(specdec completion bash); COMP_WORDS=({given}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
                '_specdec specdec; printf "%s\\n" "${COMPREPLY[@]}"')
        done = shell("bash", "-c", line, folder=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.split()

    def test_commands_are_completed(self):
        self.assertEqual(self.completed("specdec", "pl"), ["plan", "plot"])
        self.assertEqual(self.completed("specdec", "trace", "in"), ["info"])
        self.assertEqual(self.completed("specdec", "--format", "json", "--quiet", "cap"), ["capacity"])
        self.assertEqual(self.completed("specdec", "help", "tr"), ["trace"])
        self.assertEqual(self.completed("specdec", "help", "trace", "mer"), ["merge"])
        self.assertEqual(self.completed("specdec", "completion", ""), ["bash", "zsh", "fish"])

    def test_options_of_the_command_and_of_all_commands_are_completed(self):
        self.assertEqual(self.completed("specdec", "plan", "--alp"), ["--alpha"])
        self.assertEqual(self.completed("specdec", "plan", "--pri"), ["--print-config"])
        self.assertEqual(self.completed("specdec", "--ver"), ["--version"])
        self.assertIn("--tier", self.completed("specdec", "trace", "convert", "recording.jsonl", "--"))

    def test_values_that_are_words_are_completed_with_and_without_an_equals_sign(self):
        self.assertEqual(self.completed("specdec", "plan", "--format", ""), ["table", "json", "csv"])
        self.assertEqual(self.completed("specdec", "plan", "--format", "=", "js"), ["json"])
        self.assertEqual(self.completed("specdec", "plan", "--format", "="), ["table", "json", "csv"])
        self.assertEqual(self.completed("specdec", "list", "hardware", "--table", "s"), ["sources"])

    def test_names_of_devices_models_and_figures_are_completed(self):
        self.assertIn("h100-sxm", self.completed("specdec", "plan", "--hardware", "h1"))
        self.assertIn("h100-sxm", self.completed("specdec", "plan", "--gpu", "h1"))
        self.assertIn("llama-3.3-70b", self.completed("specdec", "capacity", "--model", "llama-3.3"))
        self.assertIn("h100-sxm", self.completed("specdec", "list", "hardware", "h1"))
        self.assertIn("optimal-gamma", self.completed("specdec", "plot", "optimal"))

    def test_methods_are_completed_by_each_of_their_parts(self):
        self.assertEqual(self.completed("specdec", "compare", "algo"), ["algorithm1"])
        self.assertEqual(self.completed("specdec", "compare", "copy+algo"), ["copy+algorithm1"])

    def test_files_are_completed_where_one_is_read(self):
        self.assertEqual(self.completed("specdec", "analyze", "rec"), ["recording.jsonl"])
        self.assertEqual(self.completed("specdec", "plan", "--trace", "rec"), ["recording.jsonl"])
        self.assertEqual(self.completed("specdec", "plan", "--trace", "=", "rec"), ["recording.jsonl"])
        self.assertEqual(self.completed("specdec", "plan", "--alpha", ""), [])


@needs("zsh")
class Zsh(Completion):
    def test_the_script_is_zsh(self):
        done = shell("zsh", "-n", "-c", self.script("zsh"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_commands_and_values_are_completed(self):
        (Path(self.folder) / "_specdec").write_text(self.script("zsh"))
        for typed, wanted in (("specdec cap", "specdec capacity"), ("specdec plan --format js", "--format json"),
                              ("specdec analyze rec", "recording.jsonl")):
            line = f"""
                zmodload zsh/zpty
                zpty it zsh -f -i
                zpty -w it "PS1=; fpath=({self.folder} \\$fpath); autoload -U compinit; compinit -u -D; print ready"
                zpty -r it seen '*ready*ready*'
                zpty -n -w it "{typed}"$'\\t'
                sleep 2
                zpty -n -w it $'\\n'
                while zpty -r -t it part; do print -r -- $part; done
                zpty -d it"""
            done = shell("zsh", "-f", "-c", line, folder=self.folder)
            self.assertIn(wanted, done.stdout, done.stderr)


@needs("fish")
class Fish(Completion):
    def completed(self, line: str) -> list[str]:
        done = shell("fish", "--no-config", "-c", f"specdec completion fish | source; complete -C '{line}'",
                     folder=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [found.split("\t")[0] for found in done.stdout.splitlines()]

    def test_the_script_is_fish(self):
        script = Path(self.folder) / "specdec.fish"
        script.write_text(self.script("fish"))
        done = shell("fish", "--no-execute", str(script))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_commands_options_values_and_files_are_completed(self):
        self.assertEqual(self.completed("specdec cap"), ["capacity"])
        self.assertEqual(self.completed("specdec plan --alp"), ["--alpha"])
        self.assertEqual(self.completed("specdec plan --format js"), ["json"])
        self.assertEqual(self.completed("specdec plan --format=js"), ["--format=json"])
        self.assertEqual(self.completed("specdec analyze rec"), ["recording.jsonl"])


class Scripts(unittest.TestCase):
    def test_another_shell_is_refused(self):
        done = shell("specdec", "completion", "tcsh")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "specdec: error: SHELL is tcsh, but must be one of bash, zsh, fish\n")


if __name__ == "__main__":
    SPECDEC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
