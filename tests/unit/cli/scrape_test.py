#!/usr/bin/env python3
"""Scrapes servers on the loopback that answer as vLLM and SGLang do, and as what is no such server.

usage: scrape_test.py SPECDEC
"""

from __future__ import annotations

import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

SPECDEC = ""
SAMPLES = Path(__file__).resolve().parents[3] / "traces" / "samples" / "serving"


def value_of(line: str) -> tuple[str, float]:
    name, value = line.rsplit(" ", 1)
    return name, float(value)


def counters_after(engine: str, times: int) -> str:
    """The sample's counters, `times` times as far beyond its first scrape as its second one is; gauges stay."""
    before = dict(value_of(line) for line in (SAMPLES / f"{engine}_before.prom").read_text().splitlines() if line[0] != "#")
    text = []
    for line in (SAMPLES / f"{engine}_after.prom").read_text().splitlines():
        if line[0] != "#":
            name, after = value_of(line)
            is_counter = re.match(r"[\w:]+_(total|count|sum|bucket)\b", name)
            line = f"{name} {before[name] + times * (after - before[name]) if is_counter else after!r}"
        text.append(line)
    return "\n".join(text) + "\n"


class Server:
    """Gives the answers one after another, the last one for ever: a text, a status, or what writes to the connection."""

    def __init__(self, *answers):
        answered = iter(answers)
        last = [None]
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler):
                self.requests.append((handler.path, dict(handler.headers)))
                last[0] = answer = next(answered, last[0])
                if callable(answer):
                    handler.close_connection = True
                    return answer(handler)
                status, text = (200, answer) if isinstance(answer, str) else (answer, "<html>no</html>")
                handler.send_response(status)
                handler.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                handler.send_header("Content-Length", str(len(text.encode())))
                handler.end_headers()
                handler.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def chunked(text: str):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(text), 1000):
            part = text[start:start + 1000].encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.wfile.write(b"0\r\n\r\n")

    return answer


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([SPECDEC, *words], timeout=60, capture_output=True, encoding="utf-8", check=False)


class Scraping(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def document(self, *words: str) -> dict:
        done = run(*words, "--format", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return json.loads(done.stdout)

    def assert_refused(self, done: subprocess.CompletedProcess, says: str):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Aspecdec: error: [^\n]+\n\Z")
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def assert_as_files(self, scraped: dict, files: dict):
        """Equal but for the names of what was read."""
        for key, value in scraped.items():
            if key in ("inputs", "groups"):
                continue
            if key == "decision":
                value, files = {**value, "next": None}, {**files, key: {**files[key], "next": None}}
            names = re.sub(r"http://[^#]*#(\d+)", r"\1", json.dumps(value))
            self.assertEqual(names, re.sub(re.escape(str(self.folder)) + r"/scrape-0*(\d+)\.prom", r"\1",
                                           json.dumps(files[key])), key)
        for ours, theirs in zip(scraped.get("groups", []), files.get("groups", [])):
            self.assertEqual({**ours, "files": 0}, {**theirs, "files": 0})

    def test_counters_of_servers_are_those_of_files_scraped_meanwhile(self):
        for engine in ("vllm_k4", "sglang"):
            texts = [counters_after(engine, i) for i in range(4)]
            words = ["counters", "--every", "100ms", "--duration", "300ms"]
            with Server(*texts) as server:
                scraped = self.document(*words, "--scrape", server.url)
                self.assertEqual(len(server.requests), 4)
                self.assertEqual(server.requests[0][0], "/metrics")
                self.assertIn("text/plain", server.requests[0][1]["Accept"])
            self.assertEqual(scraped["groups"][0]["units"], 3)
            self.assertEqual([f["path"] for f in scraped["inputs"]["files"]],
                             [f"{server.url}#{i}" for i in range(1, 5)])
            for i, text in enumerate(texts, 1):
                (self.folder / f"scrape-{i:04}.prom").write_text(text)
            files = self.document("counters", *sorted(map(str, self.folder.iterdir())))
            self.assert_as_files(scraped, files)

    def test_a_server_of_vllm_alone_answers_plan_with_a_plain_run_beside_it(self):
        plain = [str(SAMPLES / f"vllm_plain_{when}.prom") for when in ("before", "after")]
        texts = [counters_after("vllm_k4", i) for i in range(3)]
        with Server(*texts) as server:
            scraped = self.document("plan", "--scrape", server.url, "--every", "100ms", "--duration", "200ms", "--cost", *plain)
        for i, text in enumerate(texts, 1):
            (self.folder / f"scrape-{i:04}.prom").write_text(text)
        files = sorted(map(str, self.folder.iterdir()))
        self.assert_as_files(scraped, self.document("plan", "--counters", *files, "--cost", *plain, *files))
        self.assertEqual(scraped["points"][0]["verdict"], "sure")
        with Server(*texts) as server:
            alone = self.document("plan", "--scrape", server.url, "--every", "100ms")
        self.assertEqual(alone["points"][0]["basis"], "extrapolated")
        with Server(*texts) as server:
            priced = self.document("plan", "--scrape", server.url, "--every", "100ms", "--c", "0.1")
        self.assertEqual(priced["points"][0]["basis"], "stated")

    def test_a_server_that_counts_no_times_needs_another_cost(self):
        texts = [counters_after("sglang", i) for i in range(2)]
        words = ["plan", "--every", "100ms"]
        with Server(*texts) as server:
            self.assert_refused(run(*words, "--scrape", server.url), "counters of sglang, which say nothing of times")
        with Server(*texts) as server:
            priced = self.document(*words, "--scrape", server.url, "--c", "0.05")
        self.assertEqual(priced["points"][0]["basis"], "stated")

    def test_scrapes_that_are_kept_are_files_like_others(self):
        words = ["counters", "--every", "100ms", "--scrape-folder", str(self.folder)]
        with Server(counters_after("vllm_k4", 0), chunked(counters_after("vllm_k4", 1))) as server:
            kept = self.document(*words, "--scrape", server.url)
            files = sorted(map(str, self.folder.iterdir()))
            self.assertEqual([Path(f).name for f in files], ["scrape-0001.prom", "scrape-0002.prom"])
            self.assert_as_files(kept, self.document("counters", *files))
            self.assert_refused(run(*words, "--scrape", server.url), "must hold no scrapes of before")

    def test_the_end_by_ctrl_c_answers_what_was_seen(self):
        with Server(*[counters_after("vllm_k4", i) for i in range(100)]) as server:
            long_run = subprocess.Popen([SPECDEC, "counters", "--scrape", server.url, "--every", "200ms", "--duration", "90s",
                                             "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while len(server.requests) < 4 and long_run.poll() is None:
                time.sleep(0.02)
            long_run.send_signal(signal.SIGINT)
            out, err = long_run.communicate(timeout=20)
        self.assertEqual((long_run.returncode, err), (0, b""))
        self.assertIn(json.loads(out)["groups"][0]["units"], (2, 3))

    def test_a_server_that_restarts_or_is_away_for_a_while_is_warned_of(self):
        def answer(*texts):
            with Server(*texts) as server:
                return self.document("counters", "--scrape", server.url, "--every", "100ms", "--duration", "300ms")

        def codes(document):
            return [w["code"] for w in document["warnings"]]

        texts = [counters_after("vllm_k4", i) for i in range(4)]
        restarted = answer(texts[2], texts[3], texts[0], texts[1])
        self.assertIn("counter_reset", codes(restarted))
        self.assertEqual(restarted["groups"][0]["units"], 2)
        away = answer(texts[0], 503, 503, texts[1])
        warned = [w["message"] for w in away["warnings"] if w["code"] == "scrape_failed"]
        self.assertRegex(warned[0], r"^2 of 4 scrapes of .* failed and are left out, the first since: the server answers 503 Ser")
        self.assertEqual(away["groups"][0]["units"], 1)

    def test_what_is_no_server_of_counters_is_refused_in_one_line(self):
        def closed(handler):
            handler.connection.shutdown(socket.SHUT_RDWR)

        def silent(_):
            time.sleep(7)

        def cut(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nvllm:")

        for answer, says in ((404, "the server answers 404 Not Found"), (302, "the server answers 302 Found"),
                             ("<!DOCTYPE html><p>Welcome</p>", "and no metrics in Prometheus' text format"),
                             ("", "the answer is empty, and no metrics"), ('{"detail": "x"}', "and no metrics"),
                             (closed, "the connection was closed without an answer"), (silent, "no answer in time"),
                             (lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n"), "an answer that is not HTTP"),
                             (cut, "the answer is cut off")):
            with Server(answer) as server:
                done = run("counters", "--scrape", server.url, "--every", "100ms")
                self.assert_refused(done, says)
                self.assertIn(f"--scrape is {server.url}, but cannot be read", done.stderr)
        with Server(counters_after("vllm_k4", 0), 500) as server:
            self.assert_refused(run("counters", "--scrape", server.url, "--every", "100ms"),
                                "cannot be read a second time: the server answers 500")
        with Server("# TYPE up gauge\nup 1\n") as server:
            self.assert_refused(run("counters", "--scrape", server.url, "--every", "100ms"), "but must be")
        self.assert_refused(run("plan", "--c", "0.1", "--scrape", server.url), "Connection refused")

    def test_nothing_is_asked_where_the_question_is_wrong(self):
        with Server(counters_after("vllm_k4", 0)) as server:
            for words, says in ((["plan", "--gamma", "3", "--schedule", "1-4:3"], "--schedule"),
                                (["plan", "--alpha", "0.5"], "--scrape is given beside another acceptance"),
                                (["counters", "--duration", "10s"], "--duration is 10s, but must be 1 to 499 times --every, 30s"),
                                (["plan", "--c", "0", "--duration", "9h"], "--duration is 9h, but must be 1 to 499 times"),
                                (["counters", "--every", "5"], "--every is 5, but must be a number and ms, s, m or h"),
                                (["counters", "--every", "1ms"], "between 100ms"),
                                (["counters", "--scrape-folder", "/nowhere"], "an existing folder")):
                self.assert_refused(run(*words, "--scrape", server.url), says)
            self.assertEqual(server.requests, [])
        for url in ("http://192.0.2.1:8000/metrics", "http://localhost.example.com/metrics", "http://127.0.0.1@192.0.2.1/"):
            self.assert_refused(run("counters", "--scrape", url), "--scrape is " + url)
        for url in ("https://127.0.0.1/metrics", "127.0.0.1:8000", "http://", "http://[::1/metrics", "http://127.0.0.1:0/"):
            self.assert_refused(run("counters", "--scrape", url), "--scrape")
        self.assert_refused(run("counters", "--every", "10s", "x.prom"), "--every is given, but needs --scrape beside it")


if __name__ == "__main__":
    SPECDEC = sys.argv.pop(1)
    unittest.main()
