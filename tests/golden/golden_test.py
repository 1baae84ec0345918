#!/usr/bin/env python3
"""Tests golden.py: that it catches what differs, and that its command lines use every option of the program.

usage: golden_test.py SPECDEC
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

import golden

SPECDEC = Path()

PLAN = "specdec plan --alpha 0.8 --format json"
TABLE = "specdec plan --alpha 0.8 --format csv"
REFUSED = "specdec plan --alpha 2"
DOCUMENT = {"schema": "specdec.plan/2", "points": [{"batch": 1, "speedup": 1.5}, {"batch": 8, "speedup": 1.25}]}


def answers() -> dict[str, dict]:
    return {PLAN: {"exit": 0, "stdout": json.dumps(DOCUMENT), "stderr": "", "files": {}},
            TABLE: {"exit": 0, "stdout": "gamma,speedup\n1,1.5\n2,1.75\n", "stderr": "", "files": {"a.txt": "one\n"}},
            REFUSED: {"exit": 2, "stdout": "", "stderr": "specdec: error: --alpha is 2\n", "files": {}}}


class Comparing(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.old, self.new = Path(scratch.name, "old"), Path(scratch.name, "new")
        self.twin = answers()
        self.write(self.old, answers())

    @staticmethod
    def write(folder: Path, of_lines: dict[str, dict]):
        folder.mkdir(exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(of_lines), encoding="utf-8")

    def change_document(self, change) -> None:
        document = json.loads(self.twin[PLAN]["stdout"])
        change(document)
        self.twin[PLAN]["stdout"] = json.dumps(document)

    def compared(self, wanted: str = "") -> tuple[int, str]:
        """The exit code of a comparison with the twin, and what it prints."""
        self.write(self.new, self.twin)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = golden.compare(self.old, self.new, golden.wanted_of(wanted))
        return code, said.getvalue()

    def assert_caught(self, *words: str) -> None:
        code, said = self.compared()
        self.assertEqual(code, 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_answers_that_are_the_same_pass(self):
        self.assertEqual(self.compared(),
                         (0, "3 lines compared: 0 differences without a reason, 0 wanted, 0 new keys\n"))

    def test_a_changed_number_is_caught_with_its_place_and_size(self):
        self.change_document(lambda document: document["points"][1].update(speedup=1.375))
        self.assert_caught("stdout:points[].speedup  changed  (1 line, by at most 9.1e-02 of itself)",
                           "points[1].speedup: 1.25 -> 1.375")

    def test_changes_of_one_path_are_one_line(self):
        self.change_document(lambda document: [point.update(speedup=2.0) for point in document["points"]])
        self.assert_caught("stdout:points[].speedup  changed  (1 line, 2 values, by at most 3.8e-01 of itself)")

    def test_a_missing_key_is_caught(self):
        self.change_document(lambda document: document["points"][0].pop("batch"))
        self.assert_caught("stdout:points[].batch  removed", "points[0].batch was 1")

    def test_a_key_of_another_type_is_caught(self):
        self.change_document(lambda document: document["points"][0].update(batch=None))
        self.assert_caught("stdout:points[].batch  changed type", "1 -> null")

    def test_a_shorter_list_is_caught(self):
        self.change_document(lambda document: document["points"].pop())
        self.assert_caught("stdout:points[]  changed length", "points has 2 -> 1 elements")

    def test_a_new_key_is_listed_and_needs_no_reason(self):
        self.change_document(lambda document: document.update(verdict="yes"))
        code, said = self.compared()
        self.assertEqual(code, 0)
        self.assertIn("== New keys\nstdout:verdict  added", said)

    def test_another_exit_code_is_caught(self):
        self.twin[REFUSED]["exit"] = 3
        self.assert_caught("exit  changed", "2 -> 3")

    def test_another_error_is_caught_as_a_diff(self):
        self.twin[REFUSED]["stderr"] = "specdec: error: --alpha is two\n"
        self.assert_caught("stderr  changed", "-specdec: error: --alpha is 2", "+specdec: error: --alpha is two")

    def test_a_changed_column_and_a_missing_one_are_caught(self):
        self.twin[TABLE]["stdout"] = "gamma,speedup\n1,1.5\n2,1.8\n"
        self.assert_caught("stdout:speedup  changed", "row 2: '1.75' -> '1.8'")
        self.twin[TABLE]["stdout"] = "gamma\n1\n2\n"
        self.assert_caught("stdout:speedup  removed")

    def test_columns_in_another_order_are_caught(self):
        self.twin[TABLE]["stdout"] = "speedup,gamma\n1.5,1\n1.75,2\n"
        self.assert_caught("stdout:header  changed order")

    def test_a_missing_file_and_another_content_are_caught(self):
        self.twin[TABLE]["files"] = {}
        self.assert_caught("a.txt  removed")
        self.twin[TABLE]["files"] = {"a.txt": "two\n"}
        self.assert_caught("a.txt  changed", "-one", "+two")

    def test_a_line_that_is_gone_is_caught_and_a_new_one_is_counted(self):
        self.twin["specdec plan --alpha 1"] = self.twin.pop(REFUSED)
        self.assert_caught("line  removed", "1 in ")

    def test_a_reason_explains_what_it_names_and_nothing_else(self):
        self.change_document(lambda document: document["points"][1].update(speedup=1.2500001))
        reason = "specdec plan *json :: stdout:points[].speedup within 1e-6 :: another order of sums"
        code, said = self.compared(reason)
        self.assertEqual(code, 0, said)
        self.assertIn("wanted: another order of sums", said)
        for other in (reason.replace("1e-6", "1e-9"), reason.replace("plan *", "capacity *"),
                      reason.replace("speedup", "batch")):
            code, said = self.compared(other)
            self.assertEqual(code, 1)
            self.assertIn(f"explains nothing: {other}", said)

    def test_a_wanted_difference_without_a_reason_is_refused(self):
        for wanted in ("specdec * :: stdout", "specdec * :: stdout :: ", "a :: b within x :: c"):
            with self.assertRaises(SystemExit):
                golden.wanted_of(wanted)


class Taking(unittest.TestCase):
    def test_two_takes_of_one_program_agree_and_name_what_differs_between_runs(self):
        lines = {"few": golden.lines_of(
            "all: specdec plan --alpha 0.8 --c 0.05\n# a comment\nspecdec plan \\\n  --alpha 2 --c 0.05\n"
            "specdec analyze sim/models/recording.safetensors --format json --output a.json\n"
            'varying: date +%N; specdec plan --alpha 0.8 --c 0.05 --output "$PWD/b.txt"; ls "$PWD/b.txt" >&2\n'
            "printf 'x\\0' > binary; specdec --version\n")}
        with tempfile.TemporaryDirectory() as scratch:
            folders = [Path(scratch, name) for name in ("first", "second")]
            for folder in folders:
                self.assertEqual(golden.take(SPECDEC, folder, lines), 7)
            first, second = [(folder / "few.json").read_text(encoding="utf-8") for folder in folders]
        self.assertEqual(first, second)
        plan, _, table, refused, analyzed, written, binary = json.loads(first).values()
        self.assertTrue(plan["stdout"].startswith("Draft 8 tokens: "))
        self.assertTrue(table["stdout"].startswith("batch,context,gamma,"))
        self.assertEqual((refused["exit"], refused["stderr"]),
                         (2, "specdec: error: --alpha is 2, but must be a number in [0, 1]\n"))
        document = json.loads(analyzed["files"]["a.json"])
        self.assertEqual((document["inputs"]["threads"], document["inputs"]["files"][0]["modified"]), (0, "<time>"))
        self.assertEqual((written["stdout"], written["stderr"]), ("#\n", "<folder>/b.txt\n"))
        self.assertEqual((binary["stdout"], list(binary["files"])), ("specdec <version>\n", ["binary"]))
        self.assertRegex(binary["files"]["binary"], r"\A<2 bytes, sha256 [0-9a-f]{64}>\Z")


class Lines(unittest.TestCase):
    def test_the_command_lines_use_every_option_and_word_that_help_shows(self):
        lines = [line for of_file in golden.all_lines().values() for line in of_file]
        self.assertEqual(golden.unused_of(SPECDEC, lines), [])

    def test_an_option_that_no_line_uses_is_named(self):
        lines = [line for of_file in golden.all_lines().values() for line in of_file]
        unused = golden.unused_of(SPECDEC, [line for line in lines if "--conditional" not in line.words
                                            and "--emit trtllm" not in line.words])
        self.assertEqual([name for name in unused if name.startswith("plan:")],
                         ["plan: --conditional", "plan: --emit trtllm"])


if __name__ == "__main__":
    SPECDEC = Path(sys.argv.pop(1)).resolve()
    unittest.main()
