"""An engine for tests of `tune`: a server that answers at once, and its benchmark, each of which can go wrong. A program.

usage: fake_engine.py serve PORT FAULT [--drafts G]
       fake_engine.py bench PORT BATCH RESULT
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import random
import signal
import socketserver
import subprocess
import sys
import time
import urllib.request


def tokens(gamma: int) -> float:
    return (1 - 0.7 ** (gamma + 1)) / (1 - 0.7)


def seconds_per_token(gamma: int, batch: int) -> float:
    """Least at three drafts, within 3% at two and four."""
    step = 0.01 * (1 + 0.01 * batch)
    return step * (1 + (0.05 + 0.2 * gamma if gamma > 0 else 0)) / tokens(gamma)


def regret(gamma: int, batch: int = 1) -> float:
    return 1 - min(seconds_per_token(one, batch) for one in range(9)) / seconds_per_token(gamma, batch)


def serve(port: int, fault: str, gamma: int) -> None:
    if fault == "crashes" and gamma > 0:
        sys.exit("out of memory")
    if fault == "crashes-long" and gamma > 2:
        sys.exit("out of memory")
    if fault == "hangs" and gamma > 0:
        time.sleep(600)
    if fault == "children":
        # One that leaves the group and the session, and asks not to be ended.
        ignoring = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        for _ in range(2):
            subprocess.Popen([sys.executable, "-c", ignoring], start_new_session=True)
    if fault == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/die":
                os._exit(3)
            body = json.dumps({"gamma": 0 if fault == "ignores" else gamma, "fault": fault}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("127.0.0.1", port), Handler) as server:
        print("ready", flush=True)
        server.serve_forever()


def bench(port: int, batch: int, result: pathlib.Path) -> None:
    def ask(path: str) -> dict[str, object]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            found: dict[str, object] = json.load(answer)
            return found

    state = ask("/state")
    gamma, fault = int(str(state["gamma"])), state["fault"]
    if fault == "dies" and gamma > 0:
        ask("/die")
    if fault == "stalls" and gamma > 0:
        time.sleep(600)
    if fault == "garbage" and gamma > 0:
        result.write_text("<html>502 Bad Gateway</html>")
        return
    if fault == "silent" and gamma > 0:
        return
    seconds = seconds_per_token(gamma, batch) * random.lognormvariate(0, 0.01)
    if fault == "lies":
        seen = result.parent.parent / f"lied-{gamma}-{batch}"
        if gamma > 0 and not list(result.parent.parent.glob("lied-*")):
            seconds /= 4
            seen.touch()
    requests, length = 8 * batch, 256
    made = requests * (length - 1)
    written = {
        "backend": "vllm", "model_id": "fake", "num_prompts": requests, "completed": requests, "max_concurrency": batch,
        "request_rate": "inf", "duration": requests * length * seconds / batch, "total_input_tokens": 100 * requests,
        "total_output_tokens": length * requests, "output_throughput": batch / seconds, "mean_tpot_ms": 1e3 * seconds,
    }
    if gamma > 0:
        rounds = round(made / tokens(gamma))
        at = [round(rounds * 0.7 ** (j + 1)) for j in range(gamma)]
        written |= {
            "spec_decode_num_drafts": rounds, "spec_decode_draft_tokens": gamma * rounds,
            "spec_decode_accepted_tokens": sum(at),
            "spec_decode_per_position_acceptance_rates": [one / rounds for one in at],
        }
    result.write_text(json.dumps(written))


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "serve":
        serve(int(words[1]), words[2], int(words[4]) if "--drafts" in words else 0)
    else:
        bench(int(words[1]), int(words[2]), pathlib.Path(words[3]))
