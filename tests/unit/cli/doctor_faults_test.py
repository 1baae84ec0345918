#!/usr/bin/env python3
"""Puts faults into the samples, two or three strengths of each, and looks what `specdec doctor` finds. Written from the
documentation alone, before the checks were read.

usage: doctor_faults_test.py SPECDEC
"""

from __future__ import annotations

import array
import copy
import json
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

SPECDEC = ""
ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "traces/samples"
SERVING, BENCH, LLAMACPP = SAMPLES / "serving", SAMPLES / "bench", SAMPLES / "llamacpp"
RECORDING = ROOT / "sim/models/recording.safetensors"
RUNS = sorted(BENCH.glob("*.json"))


def with_values(text: str, change: Callable[[str, float], float]) -> str:
    """A scrape whose samples are changed by series and value."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            line = f"{name} {change(name, float(value))!r}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def sum_of(text: str, series: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(series))


class Faults(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.written = 0

    def put(self, content: str | bytes) -> Path:
        self.written += 1
        path = self.folder / f"file{self.written}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def put_lines(self, records: list[dict]) -> Path:
        return self.put("".join(json.dumps(record) + "\n" for record in records))

    def codes(self, *words: str | Path) -> list[str]:
        done = subprocess.run([SPECDEC, "doctor", *map(str, words), "--format", "json"], capture_output=True, encoding="utf-8",
                              timeout=60, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return [finding["code"] for finding in json.loads(done.stdout)["findings"]]

    def assert_found(self, code: str, *words: str | Path):
        self.assertIn(code, self.codes(*words))

    # Files with a fault.

    def answers(self, change: Callable[[list[int]], list[int]]) -> Path:
        """vLLM's answers with other histograms of accepted drafts, and all that follows from these."""
        records = [json.loads(line) for line in (SERVING / "vllm_requests.jsonl").read_text().splitlines()]
        for record in records:
            counted = record["metrics"]["speculative_decoding"]
            histogram = change(list(counted["acceptance_histogram"]))
            histogram[0] += sum(counted["acceptance_histogram"]) - sum(histogram)
            rounds, drafted = sum(histogram), counted["num_draft_tokens"]
            accepted = sum(j * n for j, n in enumerate(histogram))
            counted.update(acceptance_histogram=histogram, num_accepted_draft_tokens=accepted,
                           acceptance_histogram_by_draft_length={str(counted["num_spec_tokens"]): histogram},
                           mean_acceptance_length=1 + accepted / rounds, draft_acceptance_rate=accepted / drafted)
        return self.put_lines(records)

    def scrapes(self, change: Callable[[int, float], float]) -> list[Path]:
        """vLLM's two scrapes with other counts at a position of the draft."""
        files = []
        for when in ("before", "after"):
            def changed(name: str, value: float) -> float:
                position = re.search(r'position="(\d)"', name)
                return float(round(change(int(position[1]), value))) if position else value

            text = with_values((SERVING / f"vllm_k4_{when}.prom").read_text(), changed)
            total = sum_of(text, "vllm:spec_decode_num_accepted_tokens_per_pos_total")
            files.append(self.put(with_values(text, lambda n, v: total if "num_accepted_tokens_total" in n else v)))
        return files

    def run_with(self, name: str = "c8-k3.json", **changed) -> Path:
        return self.put(json.dumps({**json.loads((BENCH / name).read_text()), **changed}))

    def run_with_rates(self, rates: list[float]) -> Path:
        rounds = json.loads((BENCH / "c8-k3.json").read_text())["spec_decode_num_drafts"]
        accepted = round(sum(rates) * rounds)
        return self.run_with(spec_decode_per_position_acceptance_rates=rates, spec_decode_accepted_tokens=accepted,
                             spec_decode_acceptance_length=round(1 + accepted / rounds, 2),
                             spec_decode_acceptance_rate=round(100 * accepted / (3 * rounds), 2))

    def recording(self, change: Callable[[list[float], list[float]], tuple[list[float], list[float]]], **metadata) -> Path:
        """The shipped recording with other log-probabilities of the emitted tokens, target's and draft's."""
        content = RECORDING.read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        header, body = json.loads(content[8:8 + size]), bytearray(content[8 + size:])
        header["__metadata__"].update(metadata)
        places = [slice(*header[f"{model}.token_logprob"]["data_offsets"]) for model in ("p", "q")]
        for place, column in zip(places, change(*[list(array.array("f", bytes(body[place]))) for place in places])):
            body[place] = array.array("f", column).tobytes()
        words = json.dumps(header).encode()
        words += b" " * (-len(words) % 8)
        return self.put(struct.pack("<Q", len(words)) + words + bytes(body))

    # Findings in them.

    def test_files_without_faults(self):
        self.assertEqual(self.codes(SERVING / "vllm_requests.jsonl"), [])
        self.assertEqual(self.codes(self.answers(lambda h: h)), [])
        self.assertEqual(self.codes(*self.scrapes(lambda _, value: value)), [])
        # All of its answers were cut at 64 tokens, as its log and the answers say.
        self.assertEqual(self.codes(LLAMACPP / "server.log"), ["outputs_all_equal"])
        self.assertEqual(self.codes(LLAMACPP / "server-answers.jsonl"), ["outputs_all_equal"])
        self.assertEqual(self.codes(self.recording(lambda p, q: (p, q))), [])
        self.assertEqual(self.codes(*RUNS), [])

    def test_no_draft_is_accepted(self):
        self.assert_found("draft_never_accepted", self.answers(lambda h: [sum(h), 0, 0, 0, 0]))
        self.assert_found("draft_hardly_accepted", self.answers(lambda h: [sum(h) - 1, 1, 0, 0, 0]))
        self.assert_found("draft_never_accepted", *self.scrapes(lambda *_: 0))
        self.assert_found("draft_never_accepted", self.run_with_rates([0.0, 0.0, 0.0]))
        line = r"draft acceptance = \S+ \(\s*\d+ accepted /(\s*\d+) generated\), mean len =  \S+"
        none = r"draft acceptance = 0.00000 (    0 accepted /\1 generated), mean len =  1.00"
        self.assert_found("draft_never_accepted", self.put(re.sub(line, none, (LLAMACPP / "server.log").read_text())))
        sglang = []
        for when in ("before", "after"):
            text = (SERVING / f"sglang_{when}.prom").read_text()
            tokens = sum_of(text, "sglang:generation_tokens_total")
            sglang.append(self.put(with_values(text, lambda n, v: tokens if "spec_verify_calls" in n else v)))
        self.assert_found("draft_never_accepted", *sglang)

    def test_the_first_draft_is_worse_than_the_second(self):
        for kept in (0.7, 0.5, 0.2):
            with self.subTest(kept=kept):
                self.assert_found("first_position_below_second", self.answers(lambda h: [0] + [round(kept * n) for n in h[1:]]))
                self.assert_found("first_position_below_second", *self.scrapes(lambda _, value: kept * value))
                self.assert_found("first_position_below_second",
                                  self.run_with_rates([round(kept * rate, 6) for rate in (0.714, 0.519, 0.387)]))

    def test_acceptance_drops_behind_a_position(self):
        for last in (1, 2, 3):
            for kept in (0, 0.1, 0.4):
                with self.subTest(last=last, kept=kept):
                    def cut(h: list[int]) -> list[int]:
                        tail = [round(kept * n) for n in h[last + 1:]]
                        return [h[0], *h[1:last], h[last] + sum(h[last + 1:]) - sum(tail), *tail]

                    self.assert_found("drop_behind_position", self.answers(cut))
            self.assert_found("drop_behind_position", *self.scrapes(lambda j, value: 0.1 * value if j >= last else value))
        self.assert_found("drop_behind_position", self.run_with_rates([0.71, 0.52, 0.02]))

    def test_greedy_drafting_is_taken_for_rejection(self):
        # A server of llama.cpp drafts greedily; with these two samplings it ran the pair of the recording, of other prompts.
        self.assert_found("rule_mistaken", RECORDING, LLAMACPP / "server.log")
        self.assert_found("rule_mistaken", RECORDING, LLAMACPP / "server-before.prom", LLAMACPP / "server-after.prom")

    def test_percentages_stand_for_shares(self):
        self.assert_found("percentages_as_shares",
                          self.run_with(spec_decode_per_position_acceptance_rates=[71.41, 51.89, 38.69]))
        records = [json.loads(line) for line in (SERVING / "vllm_requests.jsonl").read_text().splitlines()]
        for record in records:
            record["metrics"]["speculative_decoding"]["draft_acceptance_rate"] *= 100
        self.assert_found("percentages_as_shares", self.put_lines(records))

        def in_per_cent(found: re.Match) -> str:
            return found[1] + ", ".join(f"{100 * float(rate):.1f}" for rate in found[2].split(", "))

        rates = r"(Per-position acceptance rate: )([\d.]+(?:, [\d.]+)*)"
        self.assert_found("percentages_as_shares", self.put(re.sub(rates, in_per_cent, (SERVING / "vllm_k4.log").read_text())))
        self.assert_found("percentages_as_shares",
                          self.put(re.sub(r"(draft acceptance = )(\S+)", in_per_cent, (LLAMACPP / "server.log").read_text())))
        # The other way round the reader itself says so.
        self.assert_found("refused", self.run_with(spec_decode_acceptance_rate=0.54))

    def test_a_length_is_the_mean_over_requests(self):
        records = [json.loads(line) for line in (SERVING / "vllm_requests.jsonl").read_text().splitlines()]
        lengths = [r["metrics"]["speculative_decoding"]["mean_acceptance_length"] for r in records]
        run = {"backend": "sglang", "dataset_name": "sharegpt", "request_rate": "inf", "max_concurrency": 8, "completed": 60,
               "duration": 10.0, "total_input_tokens": 60000, "total_output_tokens": 15000, "output_throughput": 1500.0,
               "mean_ttft_ms": 20.0, "mean_tpot_ms": 5.0, "mean_itl_ms": 5.0}
        mean = {**run, "accept_length": sum(lengths) / len(lengths)}
        self.assert_found("mean_over_requests", SERVING / "vllm_requests.jsonl", self.put_lines([mean]))
        self.assertNotIn("mean_over_requests", self.codes(SERVING / "vllm_requests.jsonl",
                                                          self.put_lines([{**run, "accept_length": 2.8974}])))
        for data in ("random", "random-ids"):
            self.assert_found("random_prompts", self.put_lines([{**mean, "dataset_name": data}]))

    def test_ends_are_ignored(self):
        self.assert_found("outputs_all_equal", LLAMACPP / "server-answers.jsonl")
        self.assert_found("outputs_all_equal", self.run_with(output_lens=[256] * 48))
        self.assertNotIn("outputs_all_equal", self.codes(self.run_with(output_lens=[256] * 47 + [255])))
        self.assert_found("random_prompts", self.run_with(dataset_name="random"))

    def test_target_and_draft_saw_different_things(self):
        for name, change in {
            "swapped": lambda p, q: (q, p),
            "one token apart": lambda p, q: (p, q[1:] + q[:1]),
            "hotter target": lambda p, q: ([x / 1.25 for x in p], q),
            "colder target": lambda p, q: ([x / 0.8 for x in p], q),
        }.items():
            with self.subTest(name):
                self.assert_found("alphas_disagree", self.recording(change))
        self.assert_found("not_greedy_text", self.recording(lambda p, q: (p, q), temperature="0"))

    def test_a_plain_run_is_of_another_load_or_model(self):
        run, plain = BENCH / "c8-k3.json", json.loads((BENCH / "c8-plain.json").read_text())
        self.assert_found("plain_run_differs", *[file for file in RUNS if file.name != "c8-plain.json"])
        self.assert_found("plain_run_differs", run, BENCH / "c32-plain.json")
        for changed in ({"model_id": "example/other-8b"}, {"total_output_tokens": plain["total_output_tokens"] // 2},
                        {"total_input_tokens": round(1.2 * plain["total_input_tokens"])},
                        {"total_input_tokens": 2 * plain["total_input_tokens"]}):
            with self.subTest(changed):
                self.assert_found("plain_run_differs", run, self.run_with("c8-plain.json", **changed))

    def test_times_contradict_each_other(self):
        plain, drafted = (json.loads((BENCH / f"c8-{kind}.json").read_text()) for kind in ("plain", "k3"))
        for factor in (1.35, 2):
            slower = self.run_with("c8-plain.json", mean_tpot_ms=plain["mean_tpot_ms"] * factor,
                                   output_throughput=plain["output_throughput"] / factor, duration=plain["duration"] * factor)
            self.assert_found("plain_time_contradicted", *RUNS, slower)
        others = [file for file in RUNS if file.name != "c8-k3.json"]
        self.assert_found("round_below_target_pass", *others, self.run_with(
            mean_tpot_ms=drafted["mean_tpot_ms"] / 3, output_throughput=drafted["output_throughput"] * 3))
        self.assert_found("times_far_apart", *others, self.run_with(
            mean_tpot_ms=drafted["mean_tpot_ms"] / 1000, mean_itl_ms=drafted["mean_itl_ms"] / 1000,
            output_throughput=drafted["output_throughput"] * 1000))
        self.assert_found("throughput_falls_with_load", *[
            self.run_with(file.name, output_throughput=json.loads(file.read_text())["output_throughput"]
                          / json.loads(file.read_text())["max_concurrency"]) for file in RUNS])

    def test_a_server_is_on_its_way_up(self):
        records = [json.loads(line) for line in (LLAMACPP / "server-answers.jsonl").read_text().splitlines()]
        cold = copy.deepcopy(records)
        cold[0]["timings"].update({key: factor * cold[0]["timings"][key] for key, factor in (
            ("predicted_ms", 3), ("predicted_per_token_ms", 3), ("predicted_per_second", 1 / 3))})
        self.assert_found("server_warming_up", self.put_lines(cold))
        log = (SERVING / "vllm_k4.log").read_text()
        # The rate of the first window without prompts.
        first = re.search(r"Avg prompt throughput: 0\.0 tokens/s, Avg generation throughput: ([\d.]+)", log)
        for factor in (1.3, 2):
            slow = f"{log[:first.start(1)]}{float(first[1]) / factor:.1f}{log[first.end(1):]}"
            self.assert_found("server_warming_up", self.put(slow))

    def test_a_draft_is_slower_than_its_roofline(self):
        def words(milliseconds: float) -> list[str | Path]:
            times = self.put("batch,tokens,context,seconds\n" +
                             "".join(f"1,1,{context},{milliseconds / 1000}\n" for context in (128, 1024)))
            return ["--draft-cost", times, "--hardware", "h100", "--model", "llama-3.1-8b", "--draft-model", "llama-3.2-1b",
                    SERVING / "vllm_requests.jsonl"]

        self.assertEqual(self.codes(*words(2.5)), [])
        for slow in (10, 30):
            self.assert_found("draft_far_above_roofline", *words(slow))

    def test_a_configuration_is_not_what_ran(self):
        def config(**given) -> Path:
            return self.put(json.dumps({"speculative_config": {"method": "eagle3", **given}}))

        answers = SERVING / "vllm_requests.jsonl"
        self.assertEqual(self.codes(answers, config(num_speculative_tokens=4)), [])
        self.assert_found("gamma_not_as_configured", answers, config(num_speculative_tokens=5))
        self.assert_found("synthetic_acceptance", answers, config(num_speculative_tokens=4, synthetic_acceptance_length=2.9,
                                                                  rejection_sample_method="synthetic"))
        self.assert_found("same_content", answers, self.put(answers.read_text()))


if __name__ == "__main__":
    SPECDEC = sys.argv.pop(1)
    unittest.main()
