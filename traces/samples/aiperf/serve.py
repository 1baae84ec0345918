"""Serves the chat endpoint that the samples of AIPerf and guidellm were taken from: serve.py PORT [plain].

Each round takes 20 ms and drafts three tokens; a request accepts each of them with a probability of its own, uniform in
[0.5, 0.9]. Its figures stand where vLLM puts them, in metrics.speculative_decoding of the last chunk.
"""

import json
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

GAMMA = 3
PLAIN = sys.argv[2:] == ["plain"]
WORDS = ["one", "two", "red", "blue", "sun", "sea", "day", "cat"]
REQUESTS = count(1)


class Server(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        rng = random.Random(next(REQUESTS))
        alpha, tokens = rng.uniform(0.5, 0.9), rng.randint(20, 60)
        histogram, chunks, left = [0] * (GAMMA + 1), [1], tokens - 1
        while left > 0:
            accepted = 0
            while not PLAIN and accepted < GAMMA and rng.random() < alpha:
                accepted += 1
            histogram[accepted] += 1
            chunks.append(min(left, accepted + 1))
            left -= accepted + 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in chunks:
            time.sleep(0.02)
            text = "".join(rng.choice(WORDS) + " " for _ in range(chunk))
            self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        end = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": tokens + 20}}
        if not PLAIN:
            rounds, accepted = sum(histogram), sum(j * n for j, n in enumerate(histogram))
            end["metrics"] = {"speculative_decoding": {
                "mean_acceptance_length": 1 + accepted / rounds, "draft_acceptance_rate": accepted / (GAMMA * rounds),
                "acceptance_histogram": histogram, "num_spec_steps": rounds, "num_accepted_draft_tokens": accepted,
                "num_draft_tokens": GAMMA * rounds, "num_spec_tokens": GAMMA}}
        self.event(end)
        self.wfile.write(b"data: [DONE]\n\n")

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "stub-8b"}]}')

    def event(self, chunk: dict) -> None:
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "stub-8b", **chunk}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Server).serve_forever()
