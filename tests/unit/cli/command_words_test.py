#!/usr/bin/env python3
"""Runs the program as people type it: with slips of the pen, options before the command, in a terminal.

usage: command_words_test.py SPECDEC
"""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SPECDEC = ""
ROOT = Path(__file__).resolve().parents[3]
PLAN = ["plan", "--alpha", "0.8", "--c", "0.1"]
REQUESTS = 2000
CAPACITY = ["capacity", "--hardware", "h100-sxm", "--model", "llama-3.1-8b", "--draft-model", "llama-3.2-1b", "--alpha",
            "0.7", "--prompt-tokens", "1000", "--output-tokens", "250", "--gamma", "1-8", "--num-requests", str(REQUESTS)]


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([SPECDEC, *words], capture_output=True, encoding="utf-8", timeout=120, check=False)


def on_terminal(*words: str) -> tuple[str, str]:
    """Its output on standard output, and on a standard error that is a terminal."""
    control, terminal = pty.openpty()
    with subprocess.Popen([SPECDEC, *words], stdout=subprocess.PIPE, stderr=terminal, encoding="utf-8") as program:
        os.close(terminal)
        seen = b""
        while True:
            try:
                part = os.read(control, 65536)
            except OSError:  # the program has ended
                break
            if not part:
                break
            seen += part
        out, _ = program.communicate(timeout=120)
    os.close(control)
    assert program.returncode == 0, seen
    return out, seen.decode()


class Commands(unittest.TestCase):
    def assert_refused(self, words: list[str], message: str):
        done = run(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), words)
        self.assertEqual(done.stderr, f"specdec: error: {message}\n")


class NearNames(Commands):
    def test_an_option_that_is_misspelt_is_answered_by_the_nearest_ones_of_its_command(self):
        self.assert_refused(["plan", "--alhpa", "0.8", "--c", "0.1"],
                            "--alhpa is not an option of plan (near it: --alpha); see specdec plan --help")
        self.assert_refused(["plan", "--alhpa=0.8"],
                            "--alhpa is not an option of plan (near it: --alpha); see specdec plan --help")
        self.assert_refused([*PLAN, "--quite"], "--quite is not an option of plan (near it: --quiet); "
                                                "see specdec plan --help")
        self.assert_refused([*PLAN, "--confg", "f"], "--confg is not an option of plan (near it: --config); "
                                                     "see specdec plan --help")
        self.assert_refused(["trace", "info", "--numbres", "f"],
                            "--numbres is not an option of trace info (near it: --numbers); "
                            "see specdec trace info --help")

    def test_an_option_without_its_dashes_is_recognised(self):
        self.assert_refused([*PLAN, "gamma"], "gamma is not an option of plan (near it: --gamma, --max-gamma); "
                                              "see specdec plan --help")

    def test_what_is_near_nothing_is_refused_without_a_guess(self):
        self.assert_refused([*PLAN, "--zzyzx"], "--zzyzx is not an option of plan; see specdec plan --help")
        self.assert_refused([*PLAN, "-Z"], "-Z is not an option of plan; see specdec plan --help")

    def test_an_option_of_other_commands_is_answered_by_their_names(self):
        self.assert_refused([*PLAN, "--until-error", "1"],
                            "--until-error is not an option of plan, but of simulate and compare; "
                            "see specdec plan --help")
        done = run("--alpha", "0.8")
        self.assertRegex(done.stderr, r"^specdec: error: --alpha is not an option of specdec, but of plan, report, "
                                      r"capacity and \d+ more commands; see specdec --help\n$")

    def test_an_option_of_one_command_must_stand_behind_it(self):
        self.assert_refused(["--alpha", "0.8", "plan", "--c", "0.1"],
                            "--alpha must stand behind plan; see specdec plan --help")

    def test_a_command_that_was_taken_for_an_option_is_named(self):
        self.assert_refused(["--plan"], "--plan is not an option of specdec (near it: plan); see specdec --help")

    def test_neighbours_that_were_swapped_are_one_slip(self):
        self.assertIn("paln is not a command (near it: plan), but one of plan, report", run("paln").stderr)
        self.assertIn("infoo is not a command of trace (near it: info), but one of info, check",
                      run("trace", "infoo").stderr)

    def test_a_misspelt_key_of_a_configuration_is_answered_too(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "c.toml"
            config.write_text("[plan]\nalhpa = 0.8\n")
            self.assert_refused(["plan", "--config", str(config)],
                                f"{config}:2: plan.alhpa is not an option of a command (near it: alpha)")
            config.write_text("[trace.info]\nhahs = \"x\"\n")
            done = run("trace", "info", "f", "--config", str(config))
            self.assertIn("trace.info.hahs is not an option of a command", done.stderr)
            config.write_text("format = \"json\"\n")
            self.assertIn("format stands above all sections, but must stand in that of a command", run(*PLAN, "--config", str(config)).stderr)


class BeforeTheCommand(Commands):
    def assert_alike(self, before: list[str], behind: list[str]):
        first, second = run(*before), run(*behind)
        self.assertEqual((first.returncode, first.stdout, first.stderr),
                         (second.returncode, second.stdout, second.stderr), before)

    def test_what_every_command_takes_may_stand_before_it(self):
        self.assert_alike(["--format", "json", *PLAN], [*PLAN, "--format", "json"])
        self.assert_alike(["--quiet", "--format=csv", "--table", "assumptions", *PLAN],
                          [*PLAN, "--quiet", "--format=csv", "--table", "assumptions"])
        self.assert_alike(["--format", "csv", "--table", "sources", "list", "hardware", "h100-sxm"],
                          ["list", "hardware", "h100-sxm", "--format", "csv", "--table", "sources"])
        self.assert_alike(["list", "--format", "csv", "models", "llama-3.1-8b"],
                          ["list", "models", "llama-3.1-8b", "--format", "csv"])
        self.assert_alike(["--format", "json", "plot"], ["plot", "--format", "json"])
        self.assert_alike(["--print-config", "--quiet", *PLAN], [*PLAN, "--quiet", "--print-config"])
        self.assertIs(json.loads(run("--quiet", "--format", "json", *PLAN).stdout)["inputs"]["quiet"], True)

    def test_output_before_the_command_is_the_commands_own(self):
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "out.json")
            done = run("--output", file, "--format", "json", *PLAN)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertEqual(json.loads(Path(file).read_text())["inputs"]["output"], file)
            trace = str(Path(folder) / "trace.safetensors")
            done = run("--output", trace, "trace", "generate", "--sequences", "3", "--tokens", "20")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(Path(trace).exists())

    def test_it_is_refused_there_as_behind(self):
        self.assert_refused(["--format", "xml", *PLAN], "--format is xml, but must be one of table, json, csv")
        self.assert_refused(["--format", "json", *PLAN, "--format", "csv"],
                            "--format must be given exactly one value, once")
        self.assert_refused(["--format", "json", "--format", "json", *PLAN],
                            "--format must be given exactly one value, once")
        self.assert_refused(["--table", "nothing", "--format", "csv", *PLAN], run(
            *PLAN, "--format", "csv", "--table", "nothing").stderr.removeprefix("specdec: error: ").rstrip("\n"))

    def test_the_command_line_overrides_a_configuration_from_there_too(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "c.toml"
            config.write_text("[plan]\nformat = \"csv\"\nalpha = 0.8\nc = 0.1\n")
            done = run("--format", "json", "--config", str(config), "plan")
            self.assertEqual(done.stderr, "")
            self.assertEqual(json.loads(done.stdout)["closed_form"]["alpha"], 0.8)


class Help(Commands):
    def test_the_program_alone_shows_five_questions_whose_commands_run_in_the_clone(self):
        lines = run().stdout.splitlines()
        self.assertEqual(len(lines), 5)
        for line in lines:
            command = f"{shlex.quote(SPECDEC)} {line.partition('specdec ')[2]}"
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)

    def test_help_fits_a_screen_and_has_the_rest_under_another_option(self):
        for command in ("plan", "report", "capacity", "analyze"):
            short, whole = run(command, "--help").stdout, run(command, "--help-all").stdout
            self.assertLess(len(short.splitlines()), 40, command)
            self.assertIn("Examples:", short)
            self.assertGreater(len(whole.splitlines()), 60, command)
            self.assertEqual(run("help", command).stdout, short)

    def test_help_is_a_command_too(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        for words in (["plan"], ["trace"], ["trace", "info"], ["help"]):
            done = run("help", *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, run(*words, "--help").stdout)

    def test_help_for_what_is_no_command_names_the_nearest_one(self):
        done = run("help", "paln")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("paln is not a command (near it: plan), but one of plan, report", done.stderr)
        self.assertIn("inof is not a command of trace (near it: info)", run("help", "trace", "inof").stderr)

    def test_the_version_has_a_short_name(self):
        self.assertEqual(run("-V").stdout, run("--version").stdout)
        self.assertRegex(run("-V").stdout, r"^specdec \d+\.\d+\.\d+\n$")


class ProgressLine(unittest.TestCase):
    def test_capacity_says_on_a_terminal_how_far_it_is_and_how_long_it_takes(self):
        began = time.monotonic()
        plain = run(*CAPACITY).stdout
        seconds = time.monotonic() - began
        out, seen = on_terminal(*CAPACITY)
        self.assertEqual(out, plain)
        self.assertRegex(seen, r"\rspecdec: simulating, \d+% ")
        shares = [int(part.split("%")[0]) for part in seen.split("simulating, ")[1:]]
        self.assertEqual(shares, sorted(shares))
        self.assertGreater(len(set(shares)), 5)
        self.assertTrue(seen.endswith(" \r"), "the line is removed at the end")
        # The time left is told from the second second on: a question that takes about six on this machine.
        requests = max(REQUESTS, int(REQUESTS * 6 / seconds))
        _, seen = on_terminal(*CAPACITY[:-1], str(requests))
        self.assertRegex(seen, r"\rspecdec: simulating, \d+%, \d+ (s|min) left ")

    def test_nothing_is_said_with_quiet_or_where_standard_error_is_no_terminal(self):
        self.assertEqual(on_terminal("--quiet", *CAPACITY)[1], "")
        self.assertEqual(run(*CAPACITY).stderr, "")

    def test_writing_a_trace_says_how_far_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            _, seen = on_terminal("trace", "generate", "--sequences", "20000", "--tokens", "100", "--output",
                                  str(Path(folder) / "large.safetensors"))
        self.assertRegex(seen, r"\rspecdec: writing, \d+% ")
        self.assertTrue(seen.endswith(" \r"))


if __name__ == "__main__":
    SPECDEC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
