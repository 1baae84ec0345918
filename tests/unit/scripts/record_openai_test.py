#!/usr/bin/env python3
"""scripts/record_openai.py against servers that answer as the engines do. usage: record_openai_test.py SCRIPT"""

import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace

import stub_servers
from stub_servers import Stub

SCRIPT = sys.argv.pop()


def letters(text):
    return [ord(c) - ord("a") for c in text]


class Recording(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(self.folder, "run.jsonl")
        self.prompts = self.file("prompts.jsonl", "".join(
            json.dumps({"task": "ab"[i % 2], "text": "speculate"[i:]}) + "\n" for i in range(6)))

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
        return path

    def server(self, *arguments, **named):
        stub = Stub(*arguments, **named)
        self.addCleanup(stub.server_close)
        self.addCleanup(stub.shutdown)
        return stub

    def run_script(self, target, draft, *more, prompts=None):
        command = [sys.executable, SCRIPT, "--target", target.url, "--draft", draft.url, "--prompts",
                   prompts or self.prompts, "--output", self.output, "--max-tokens", "20", *more]
        # The servers are on this machine, whatever proxy the environment names.
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False,
                              env=os.environ | {"no_proxy": "127.0.0.1", "PYTHONIOENCODING": "utf-8"})

    def lines(self):
        with open(self.output, encoding="utf-8") as content:
            return [json.loads(line) for line in content]

    def check_lines(self, ranks_known):
        metadata, *lines = self.lines()
        self.assertEqual(metadata["format"], "specdec-record")
        self.assertEqual(metadata["path"], "target")
        self.assertEqual(sorted(line["id"] for line in lines), list("123456"))
        for line in lines:
            prompt = "speculate"[int(line["id"]) - 1:]
            self.assertEqual(line["prompt_tokens"], len(prompt))
            text = letters(prompt)[-1:] + line["token_ids"]
            for key, flavour in (("target", "p"), ("draft", "q")):
                self.assertEqual(len(line[key]["logprobs"]), len(line["token_ids"]))
                for place, (last, token) in enumerate(zip(text, text[1:])):
                    row = stub_servers.logprobs(flavour, last)
                    self.assertAlmostEqual(line[key]["logprobs"][place], row[token], places=12)
                    rank = stub_servers.rank(row, token)
                    self.assertEqual(line[key]["ranks"][place], rank if ranks_known else min(rank, 2))

    def test_vllm_gives_log_probability_and_rank_of_every_generated_token(self):
        target = self.server("vllm", "p")
        result = self.run_script(target, self.server("vllm", "q"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("6 requests", result.stdout)
        self.check_lines(ranks_known=True)
        asked = target.requests[0]
        self.assertEqual((asked["top_p"], asked["top_k"], asked["min_p"]), (1.0, -1, 0.0))

    def test_texts_of_one_prompt_say_so_whatever_their_ids(self):
        prompts = self.file("again.jsonl", "".join(
            json.dumps({"id": name, "text": text}) + "\n"
            for name, text in (("x", "abcd"), ("y", "speculate"), ("z", "abcd"))))
        result = self.run_script(self.server("vllm", "p"), self.server("vllm", "q"), prompts=prompts)
        self.assertEqual(result.returncode, 0)
        prompt_of = {line["id"]: line["prompt"] for line in self.lines()[1:]}
        self.assertEqual(prompt_of["x"], prompt_of["z"])
        self.assertNotEqual(prompt_of["x"], prompt_of["y"])

    def test_sglang_gives_the_same_numbers_with_ranks_one_or_more(self):
        result = self.run_script(self.server("sglang", "p"), self.server("sglang", "q"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.check_lines(ranks_known=False)

    def test_llamacpp_gives_the_same_numbers_one_request_a_token_each_text_in_a_slot_of_its_own(self):
        target, draft = self.server("llamacpp", "p"), self.server("llamacpp", "q")
        result = self.run_script(target, draft)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.check_lines(ranks_known=False)
        tokens = sum(len(line["token_ids"]) for line in self.lines()[1:])
        self.assertEqual(len(target.requests), 6 + 6)  # /tokenize and /completion: what it wrote is scored by that
        self.assertEqual(len(draft.requests), tokens)
        self.assertEqual({request["id_slot"] for request in draft.requests}, {0, 1})
        asked = next(request for request in target.requests if "samplers" in request)
        self.assertEqual((asked["samplers"], asked["mirostat"], asked["n_probs"]), (["temperature"], 0, 1))

    def test_a_llamacpp_target_with_a_draft_behind_it_is_asked_for_every_token(self):
        target = self.server("llamacpp", "p", speculates=True)
        result = self.run_script(target, self.server("llamacpp", "q"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.check_lines(ranks_known=False)
        self.assertEqual(len(target.requests), 6 + 6 + sum(len(line["token_ids"]) for line in self.lines()[1:]))

    def test_llamacpp_scores_tokens_that_end_inside_a_character(self):
        often = 14
        target, draft = (self.server("llamacpp", flavour, part_of_character=often) for flavour in "pq")
        result = self.run_script(target, draft)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(often, [token for line in self.lines()[1:] for token in line["token_ids"]])
        self.check_lines(ranks_known=False)

    def test_any_two_engines_may_be_mixed(self):
        engines = ("vllm", "sglang", "llamacpp")
        for target, draft in [(one, other) for one in engines for other in engines if one != other]:
            with self.subTest(target=target, draft=draft):
                self.output = os.path.join(self.folder, f"{target}-{draft}.jsonl")
                result = self.run_script(self.server(target, "p"), self.server(draft, "q"))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(len(self.lines()), 7)

    def test_at_temperature_0_every_token_has_the_targets_rank_1(self):
        result = self.run_script(self.server("vllm", "p"), self.server("vllm", "q"), "--temperature", "0")
        self.assertEqual(result.returncode, 0, result.stderr)
        metadata, *lines = self.lines()
        self.assertEqual(metadata["temperature"], 0)
        self.assertEqual({rank for line in lines for rank in line["target"]["ranks"]}, {1})
        self.assertGreater(len({rank for line in lines for rank in line["draft"]["ranks"]}), 1)

    def test_the_text_follows_the_targets_law(self):
        # 400 tokens: the mean surprisal lies within 4 standard errors of the mean entropy (false alarm 1 in 15,000).
        self.run_script(self.server("vllm", "p"), self.server("vllm", "q"), "--max-tokens", "100")
        surplus = variance = 0.0
        for line in self.lines()[1:]:
            text = letters("speculate"[int(line["id"]) - 1:])[-1:] + line["token_ids"]
            for last, token in zip(text, text[1:]):
                row = stub_servers.logprobs("p", last)
                entropy = -sum(math.exp(x) * x for x in row)
                surplus += -row[token] - entropy
                variance += sum(math.exp(x) * x * x for x in row) - entropy ** 2
        self.assertLess(abs(surplus), 4 * math.sqrt(variance))

    def test_a_stopped_run_goes_on_where_it_ended(self):
        target, draft = self.server("vllm", "p"), self.server("vllm", "q")
        self.run_script(target, draft)
        whole = sorted(map(json.dumps, self.lines()))
        with open(self.output, encoding="utf-8") as content:
            text = content.read()
        cut = text.rindex("\n", 0, -1) + 40
        with open(self.output, "w", encoding="utf-8") as content:
            content.write(text[:cut])
        asked = len(target.requests)
        result = self.run_script(target, draft)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(target.requests) - asked, 2)
        self.assertEqual(sorted(map(json.dumps, self.lines())), whole)

    def test_a_server_that_fails_leaves_whole_lines_and_one_message(self):
        result = self.run_script(self.server("vllm", "p"), self.server("vllm", "q", fail_after=3),
                                 "--concurrency", "1")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^record_openai: error: http://\S+/v1/completions answered 500: .*memory.*; "
                                        r"\S+ holds 3 of 6 requests: run the same command again to go on\n$")
        self.assertEqual(len(self.lines()), 4)

    def test_a_run_that_records_nothing_leaves_no_file(self):
        for engine in ("vllm", "sglang", "llamacpp"):
            with self.subTest(engine=engine):
                result = self.run_script(self.server(engine, "p"), self.server(engine, "q", fail_after=0))
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr, r"^record_openai: error: \S+ answered 500: [^;]*\n$")
                self.assertFalse(os.path.exists(self.output))

    def test_an_output_that_is_no_file_or_has_no_folder_gets_one_line(self):
        for output, message in (("/dev/null", "is no file"), (self.folder, "is no file"),
                                (os.path.join(self.folder, "none", "run.jsonl"), "cannot be written")):
            with self.subTest(output=output):
                self.output = output
                result = self.run_script(self.server("vllm", "p"), self.server("vllm", "q"))
                self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
                self.assertIn(f"error: {output} {message}", result.stderr)
        self.assertTrue(os.path.exists("/dev/null"))

    def test_another_command_does_not_go_on_with_the_same_file(self):
        target, draft = self.server("vllm", "p"), self.server("vllm", "q")
        self.run_script(target, draft)
        result = self.run_script(target, draft, "--seed", "2")
        self.assertEqual((result.returncode, result.stderr), (2, f"record_openai: error: {self.output} was recorded "
                                                                 "with another seed; --output must name a new file\n"))
        self.assertEqual(len(self.lines()), 7)

    def test_a_file_of_something_else_is_left_alone(self):
        with open(self.output, "w", encoding="utf-8") as content:
            content.write("my notes\n")
        result = self.run_script(self.server("vllm", "p"), self.server("vllm", "q"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("is not a recording of this script", result.stderr)
        with open(self.output, encoding="utf-8") as content:
            self.assertEqual(content.read(), "my notes\n")

    def test_two_vocabularies_are_refused_with_the_token(self):
        other = stub_servers.VOCABULARY[::-1]
        result = self.run_script(self.server("vllm", "p"), self.server("vllm", "q", vocabulary=other))
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"token \d+ is '.+' to the target and '.+' to the draft")

    def test_wrong_input_gets_one_line(self):
        target, draft = self.server("vllm", "p"), self.server("vllm", "q")
        nameless = self.server("triton", "p")
        cases = [
            (dict(prompts=self.file("empty.jsonl", "\n")), target, "holds no prompt"),
            (dict(prompts=os.path.join(self.folder, "none")), target, "cannot be read"),
            (dict(prompts=self.file("bad.jsonl", '{"text": "a"}\n{"txt": "b"}\n')), target,
             'bad.jsonl:2: prompt is missing, but must be "text" or "tokens"'),
            (dict(prompts=self.file("number.jsonl", '{"text": 5}\n')), target,
             "number.jsonl:1: text is '5', but must be a text or token ids that are not empty"),
            (dict(prompts=self.file("half.jsonl", '{"tokens": [1, 2.5]}\n')), target,
             "half.jsonl:1: tokens is '[1, 2.5]', but must be a text or token ids"),
            (dict(prompts=self.file("true.jsonl", '{"tokens": [true]}\n')), target, "true.jsonl:1: tokens is '[True]'"),
            (dict(prompts=self.file("list.jsonl", '[{"text": "a"}]\n')), target,
             "list.jsonl:1: line is '[{\"text\": \"a\"}]', but must be a JSON object"),
            (dict(prompts=self.file("twice.jsonl", '{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n')), target,
             "id is given twice"),
            ({}, nameless, "is served by triton, but must be one of vllm, sglang, llamacpp"),
        ]
        for named, server, message in cases:
            with self.subTest(message=message):
                result = self.run_script(server, draft, **named)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertFalse(os.path.exists(self.output))

    def test_a_wrong_option_gets_one_line(self):
        words = {"--target": "http://localhost:1", "--draft": "http://localhost:2", "--prompts": "p", "--output": "o"}
        for option, value, message in (
                ("--target", "foo", "argument --target: is foo, but must be a server's URL, for instance http://"),
                ("--draft", "http://", "argument --draft: is http://, but must be a server's URL"),
                ("--max-tokens", "0", "argument --max-tokens: is 0, but must be an integer, 1 or above"),
                ("--max-tokens", "x", "argument --max-tokens: is x, but must be an integer, 1 or above"),
                ("--limit", "-1", "argument --limit: is -1, but must be an integer, 1 or above"),
                ("--timeout", "nan", "argument --timeout: is nan, but must be a number of seconds in (0, 1000000.0]"),
                ("--timeout", "0", "argument --timeout: is 0, but must be a number of seconds"),
                ("--temperature", "2", "argument --temperature: invalid choice: 2.0"),
                ("--nothing", "1", "unrecognized arguments: --nothing")):
            with self.subTest(option=option, value=value):
                given = [word for pair in {**words, option: value}.items() for word in pair]
                result = subprocess.run([sys.executable, SCRIPT, *given], capture_output=True, encoding="utf-8",
                                        timeout=60, check=False)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_a_server_that_is_not_there_is_named(self):
        # A bound socket that does not listen refuses connections and keeps its port from any other server.
        with socket.socket() as unheard:
            unheard.bind(("127.0.0.1", 0))
            gone = SimpleNamespace(url=f"http://127.0.0.1:{unheard.getsockname()[1]}")
            result = self.run_script(gone, self.server("vllm", "q"))
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"{gone.url}/v1/models cannot be reached", result.stderr)


if __name__ == "__main__":
    unittest.main()
