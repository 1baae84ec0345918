#!/usr/bin/env python3
"""Figures as people reported them: what the commands must say of each, and of more files of the same kinds.

usage: reports_test.py SPECDEC
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SPECDEC = ""
REPORTS = Path(__file__).resolve().parent / "reports"


def sglang(tokens: float, rounds: float, length: float, steps: int = 5, model: str = "m") -> str:
    labels = f'{{model_name="{model}",tp_rank="0"}}'
    return (f"sglang:generation_tokens_total{labels} {tokens}\nsglang:spec_verify_calls_total{labels} {rounds}\n"
            f"sglang:spec_accept_length{labels} {length}\nsglang:spec_num_steps{labels} {steps}\n")


def vllm(drafts: int, drafted: int, accepted: int, model: str = "m") -> str:
    labels = f'{{model_name="{model}"}}'
    return "".join(f"vllm:spec_decode_num_{name}_total{labels} {value}\n"
                   for name, value in (("drafts", drafts), ("draft_tokens", drafted), ("accepted_tokens", accepted)))


def log_line(accepted_at: list[float], rounds: int = 200, minute: int = 0, running: int = 1) -> str:
    counts = [round(rate * rounds) for rate in accepted_at]
    accepted, drafted = sum(counts), rounds * len(counts)
    rates = ", ".join(f"{count / rounds:.3f}" for count in counts)
    clock = f"INFO 07-02 10:{minute // 6:02}:{minute % 6}0"
    return (f"{clock} [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
            f"{(accepted + rounds) / 10:.1f} tokens/s, Running: {running} reqs, Waiting: 0 reqs\n"
            f"{clock} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {1 + accepted / rounds:.2f}, Accepted "
            f"throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: {drafted / 10:.2f} tokens/s, Accepted: "
            f"{accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, Avg Draft acceptance "
            f"rate: {100 * accepted / drafted:.1f}%\n")


class Reports(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.written = 0

    def put(self, content: str | bytes, name: str = "") -> Path:
        self.written += 1
        path = self.folder / (name or f"file{self.written}")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run_specdec(self, *words: str | Path, code: int | None = 0) -> str:
        done = subprocess.run([SPECDEC, *map(str, words)], capture_output=True, encoding="utf-8", timeout=120, check=False)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return " ".join((done.stdout + done.stderr).split())

    def findings(self, *files: str | Path) -> dict[str, str]:
        done = subprocess.run([SPECDEC, "doctor", *map(str, files), "--format", "json"], capture_output=True,
                              encoding="utf-8", timeout=120, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return {finding["code"]: finding["message"] for finding in json.loads(done.stdout)["findings"]}

    # The reports.

    def test_nothing_of_260_drafts_is_accepted(self):
        said = self.run_specdec("doctor", REPORTS / "a_zero_of_260.log", code=1)
        self.assertIn("0 of 260 drafted tokens were accepted", said)
        self.assertIn("Check that the draft was loaded", said)
        counted = self.run_specdec("counters", REPORTS / "a_zero_of_260.log")
        self.assertTrue(counted.startswith("No drafted token is accepted: find out why before you plan."))
        self.assertIn("0 of 260 drafted tokens were accepted: check that the draft was loaded", counted)
        self.assertNotIn("Next:", counted)

    def test_few_or_no_drafts_of_other_logs_are_accepted(self):
        line = "draft acceptance = {:.5f} ({:5} accepted / {:5} generated), mean len = {:5.2f}\n"
        none_of_40 = "eval time = 783.55 ms / 41 tokens ( 12.44 ms per token, 80.40 tokens per second)\n" + line.format(0, 0, 40, 1)
        one_of_633 = log_line([1 / 633], rounds=633)
        for log, code in ((none_of_40, "draft_never_accepted"), (one_of_633, "draft_hardly_accepted"),
                          (log_line([0.0, 0.0, 0.0, 0.0], rounds=65), "draft_never_accepted")):
            with self.subTest(log=log):
                self.assertIn(code, self.findings(self.put(log)))

    def test_the_head_of_a_known_kind_is_held_against_published_ones(self):
        config = "INFO [core.py:1] Initializing with speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens=1)\n"
        fallen = self.put(config + log_line([0.21], rounds=2000))
        self.assertIn("draft_hardly_accepted", self.findings(fallen))
        self.assertEqual(self.findings(self.put(config + log_line([0.82], rounds=2000))), {})
        self.assertEqual(self.findings(self.put(log_line([0.6], rounds=2000))), {})

    def test_more_log_is_never_quieter_than_one_of_its_lines(self):
        good, none = log_line([0.8, 0.6]), log_line([0.0, 0.0])
        for lines in ([none], [good, none], [none, good], [good] * 30 + [none] + [good] * 29, [good] * 300 + [none]):
            with self.subTest(lines=len(lines)):
                self.assertIn("draft_never_accepted", self.findings(self.put("".join(lines))))

    def test_power_is_stated(self):
        said = self.run_specdec("doctor", self.put(log_line([0.8, 0.6], rounds=4000)))
        self.assertRegex(said, r"Nothing is wrong or suspicious\.\s+Acceptance of the first draft below \d+% would have shown")
        few = self.run_specdec("doctor", self.put(log_line([0.5], rounds=2)))
        self.assertIn("Nothing was found, and little could be", few)
        self.assertNotIn("Nothing is wrong", few)

    def test_lengths_do_not_change_a_decision_of_timed_runs(self):
        words = ["plan", "--bench", REPORTS / "c_nolen.csv"]
        alone = self.run_specdec(*words)
        self.assertRegex(alone, r"Draft [23] tokens: about 1\.2[89]x plain decoding\. Sure")
        self.assertRegex(alone, r"\s2\s+2\.\d+\s+1\.28 ")
        typed = self.run_specdec(*words, "--acceptance-length", "2.63", "--at", "2")
        in_file = self.run_specdec("plan", "--bench", REPORTS / "c_len.csv")
        self.assertEqual(typed.split("Next:")[0], in_file.split("Next:")[0])

    def test_tokens_verifications_and_the_gauge_contradict_each_other(self):
        files = [REPORTS / "e_before.prom", REPORTS / "e_after.prom"]
        self.assertRegex(self.run_specdec("counters", *files), r"tokens per step are 5\.44\d? by .*spec_accept_length, 2\.7")
        self.assertIn("figures_contradict", self.findings(*files))
        refused = self.run_specdec("plan", "--counters", *files, "--at", "5", "--c", ".05", code=2)
        self.assertIn("give --acceptance-length", refused)
        self.run_specdec("plan", "--acceptance-length", "5:2.7", "--c", ".05")

    def test_other_figures_contradict_each_other(self):
        twice = [self.put(sglang(1000, 400, 2.5)), self.put(sglang(1400, 500, 1.5))]
        self.assertIn("figures_contradict", self.findings(*twice))
        self.assertEqual(self.findings(self.put(sglang(1000, 400, 2.5)), self.put(sglang(1270, 500, 2.7))), {})
        log = log_line([0.8, 0.6]).replace("generation throughput: 48.0", "generation throughput: 12.0")
        self.assertIn("figures_contradict", self.findings(self.put(log)))

    def test_impossible_figures_are_errors_with_both(self):
        for before, after, field in (
            (sglang(1000, 400, 2.5), sglang(1600, 490, 2.5), "6.667"),
            (sglang(1000, 400, 2.5), sglang(1050, 490, 2.5), "0.5556"),
            (sglang(1000, 400, 2.5), sglang(90, 40, 2.5), "is 40, but must be at least 400"),
            (vllm(100, 300, 150), vllm(20, 60, 30), "20"),
            (vllm(100, 300, 150), "".join(vllm(200, 600, 300).splitlines(True)[:2]), "missing"),
            (vllm(100, 300, 150) + vllm(10, 30, 15, "n"), vllm(200, 600, 300), "missing"),
        ):
            with self.subTest(after=after):
                files = [self.put(before), self.put(after)]
                self.assertIn(field, self.run_specdec("counters", *files, code=2))
                self.assertIn("refused", self.findings(*files))

    def test_a_round_that_costs_more_than_it_yields_has_a_cause(self):
        said = self.run_specdec("doctor", REPORTS / "f_runs.csv")
        self.assertRegex(said, r"costs 2\.\d+ plain steps and puts out 2 tokens at most")
        self.assertIn("what drafting switches off, such as CUDA graphs", said)
        self.assertRegex(self.run_specdec("plan", "--bench", REPORTS / "f_runs.csv"), r"^Do not draft.*CUDA graphs")

    def test_what_a_benchmark_prints_is_read(self):
        self.assertIn("104880 rounds in 1 run", self.run_specdec("counters", REPORTS / "g_bench_stdout.txt"))

    def test_rounded_figures_do_not_contradict(self):
        self.assertIn("Acceptance length 3.29 ", self.run_specdec("counters", REPORTS / "h_rounded.csv"))
        header = ("subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0,"
                  "acceptance_at_pos_1\n")
        self.run_specdec("counters", self.put(header + "a,1000,2000,1234,2.23,0.71,0.52\n"))
        self.run_specdec("counters", self.put(header + "a,1000,2000,1300,2.23,0.71,0.52\n"), code=2)

    def test_acceptance_falls_over_a_log(self):
        for words in (("doctor",), ("counters",), ("plan", "--c", ".05", "--counters")):
            said = self.run_specdec(*words, REPORTS / "i_decay.log")
            self.assertRegex(said, r"[Aa]cceptance falls from 4\.67 tokens per step in the first window to 2\.85")
        self.assertIn("give the part alone", said)

    def test_other_changes_over_a_log_are_told(self):
        def noisy(i: int) -> float:
            return 0.02 * ((i * 7919) % 11 - 5) / 5

        jump = "".join(log_line([0.82 + noisy(i) if i < 12 else 0.4 + noisy(i)], minute=i) for i in range(24))
        rise = "".join(log_line([0.5 + 0.015 * i + noisy(i), 0.3 + 0.012 * i + noisy(i)], minute=i) for i in range(30))
        steady = "".join(log_line([0.7 + noisy(i), 0.5 + noisy(i)], minute=i) for i in range(40))
        self.assertIn("after 12 of 24 windows", self.findings(self.put(jump))["acceptance_changes"])
        self.assertIn("acceptance rises", self.findings(self.put(rise))["acceptance_changes"])
        self.assertEqual(self.findings(self.put(steady)), {})

    def test_a_change_between_logs_is_told_like_one_within(self):
        def log(rate: float, hour: int) -> pathlib.Path:
            noisy = (rate + 0.02 * ((i * 7919) % 11 - 5) / 5 for i in range(20))
            return self.put("".join(log_line([rate], minute=60 * hour + i) for i, rate in enumerate(noisy)))

        before, after, again = log(0.8, 0), log(0.4, 1), log(0.8, 2)
        self.assertIn(f"after 20 of 40 windows, at {after}:2", self.findings(before, after)["acceptance_changes"])
        self.assertIn("acceptance falls", self.run_specdec("counters", before, after))
        self.assertEqual(self.findings(before, again), {})

    def test_two_scrapes_of_one_server_are_not_two_runs(self):
        before, after = self.put(vllm(1000, 3000, 1500)), self.put(vllm(1800, 5400, 2500))
        self.assertIn(f"are what `specdec counters {before} {after}` counts", self.run_specdec("diff", before, after))
        self.assertIn(f"specdec counters {before} {after}", self.run_specdec("diff", after, before))
        reset = self.put(vllm(900, 5400, 2500))
        self.assertNotIn("goes on from", self.run_specdec("diff", before, reset))

    def test_words_of_engines_are_taken(self):
        plan = ("plan", "--alpha", ".8", "--c", ".05")
        self.assertEqual(self.run_specdec(*plan, "--draft-kind", "EAGLE3", "--emit", "llama.cpp"),
                         self.run_specdec(*plan, "--draft-kind", "eagle", "--emit", "llamacpp"))
        inputs = json.loads(self.run_specdec(*plan, "--draft-kind", "NEXTN", "--emit", "llama.cpp", "--format", "json"))["inputs"]
        self.assertEqual((inputs["draft_kind"], inputs["emit"]), ("mtp", "llamacpp"))
        self.run_specdec(*plan, "--draft-kind", "supermodel", code=2)
        self.run_specdec(*plan, "--format", "j.son", code=2)
        self.assertIn("write 1,8,64", self.run_specdec(*plan, "--batch", "1-64", code=2))

    def test_arguments_of_a_server_say_how_it_drafts(self):
        log = REPORTS / "k2.log"
        self.assertRegex(self.run_specdec("counters", log), r"with 3 draft tokens")
        self.run_specdec("plan", "--counters", log, "--c", ".05")
        other = self.put(log.read_text().replace("accept len: 2.96", "accept len: 2.40"))
        self.assertRegex(self.run_specdec("diff", log, other), r"2\.96")

    # What comes from files is escaped.

    def test_control_characters_of_files_reach_no_terminal(self):
        evil = "a\x1b]0;x\x07\x9b31m\u202eb"
        quoted = json.dumps(evil)[1:-1]
        files = [
            ("counters", self.put(vllm(100, 300, 150, evil).replace("\n", "\n"))),
            ("counters", self.put(json.dumps({"model": evil, "usage": {"completion_tokens": 20}, "category": evil, "metrics": {
                "speculative_decoding": {"num_spec_tokens": 2, "num_draft_tokens": 20, "num_accepted_draft_tokens": 9,
                                         "acceptance_histogram": [4, 3, 3], "mean_acceptance_length": 1.9,
                                         "draft_acceptance_rate": 0.45}}}) + "\n")),
            ("counters", self.put(f"model,concurrency,gamma,output_tokens_per_second,tokens_per_step,tag\n{evil},1,2,50,2.1,{evil}\n")),
            ("doctor", self.put(vllm(100, 300, 0, evil), name=f"n{evil}.prom")),
        ]
        for command, path in files:
            for form in ("table", "csv", "json"):
                with self.subTest(command=command, file=path.name, form=form):
                    said = subprocess.run([SPECDEC, command, str(path), "--format", form], capture_output=True, check=False)
                    self.assertIn(said.returncode, (0, 1, 2))
                    for stream in (said.stdout, said.stderr):
                        for sequence in (b"\x1b", b"\x07", b"\xc2\x9b", b"\xe2\x80\xae"):
                            self.assertNotIn(sequence, stream, quoted)

    def test_formulas_of_files_are_text_in_csv(self):
        for formula in ('=cmd|"/c calc"!A1', "+1+1", "-2+3", "@sum(a1)"):
            path = self.put(vllm(100, 300, 150, formula.replace('"', '\\"')))
            said = subprocess.run([SPECDEC, "counters", str(path), "--format", "csv"], capture_output=True, encoding="utf-8",
                                  check=True)
            cells = said.stdout.splitlines()[1]
            self.assertRegex(cells, r"^\"?'")


if __name__ == "__main__":
    SPECDEC = sys.argv.pop(1)
    unittest.main()
